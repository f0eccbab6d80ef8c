"""What to bake, and into what."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import bpy

from .. import sampling
from ..errors import InvalidInput
from .obstacles import Destination


class Keys(enum.Enum):
    """Which frames get keys."""

    EVERY_FRAME = "EVERY_FRAME"
    """Solved ones, and slerps between them; linear between keys."""
    SOLVED_FRAMES = "SOLVED_FRAMES"
    """Only solved ones; Blender interpolates between them (Bezier), and limits hold at the keys."""


@dataclass(frozen=True)
class BakeSettings:
    """What to bake.

    Attributes:
        frame_start: first frame.
        frame_end: last frame, not before the first.
        step: frames from one solve to the next; the last frame is always solved.
        keys: which frames get keys.
        destination: into which action.
        constraints: names of the constraints; empty for all that are enabled.
        share: part of what is left of the way that one pass over a chain's joints takes, shared out evenly
            over them, 0.1 to 0.999: smaller is smoother from frame to frame and slower. A frame that is not
            reached this way goes on with the solver's own step.

    Raises:
        InvalidInput: the range is empty, the step is below 1, or the fraction is not one that the solver
            takes.
    """

    frame_start: int
    frame_end: int
    step: int = 1
    keys: Keys = Keys.EVERY_FRAME
    destination: Destination = Destination.NEW_ACTION
    constraints: tuple[str, ...] = ()
    share: float = 0.97

    def __post_init__(self) -> None:
        known = bpy.types.Scene.bl_rna.properties["frame_current"]
        first, last = known.hard_min, known.hard_max
        if self.frame_start < first or self.frame_end > last:  # it would evaluate its last frame instead
            raise InvalidInput(
                f"frames {self.frame_start} to {self.frame_end}: Blender has frames {first} to {last} only"
            )
        sampling.solve_frames(self.frame_start, self.frame_end, self.step)
        if not 0.1 <= self.share <= 0.999:
            raise InvalidInput(f"share must be 0.1 to 0.999, not {self.share:g}")

    def solved_frames(self) -> list[int]:
        """Frames that are solved."""
        return sampling.solve_frames(self.frame_start, self.frame_end, self.step)

    def keyed_frames(self) -> list[int]:
        """Frames that get keys."""
        if self.keys is Keys.SOLVED_FRAMES:
            return self.solved_frames()
        return list(range(self.frame_start, self.frame_end + 1))
