"""Settings of a bake."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import bpy

from ...errors import InvalidInput
from ...motion import interpolation
from ...settings import EVEN_REDUCTION, PRESETS, SMOOTHNESS, Solver
from ..keys.obstacles import Destination
from ..properties.body import require_known


class Keys(enum.Enum):
    """Choice of keyed frames."""

    EVERY_FRAME = "EVERY_FRAME"
    """All frames, with slerps between solved ones; linear between keys."""
    SOLVED_FRAMES = "SOLVED_FRAMES"
    """Solved frames; Blender interpolates between them (Bezier), and limits hold at the keys."""
    TARGET_KEYS = "TARGET_KEYS"
    """Frames at which targets, poles or their movers have keys; solved there, and Bezier between."""
    REFERENCE_KEYS = "REFERENCE_KEYS"
    """Frames at which another object, or a bone of it, has keys; solved there, and Bezier between."""

    @property
    def is_sparse(self) -> bool:
        """Whether Blender interpolates between solved frames."""
        return self is not Keys.EVERY_FRAME


class Start(enum.Enum):
    """Choice of the base pose of each frame, for bones that constraints move."""

    ACTION = "ACTION"
    """The animation; rest for bones without animation, whatever their present pose."""
    ORIGINAL = "ORIGINAL"
    """The animation before the first bake of the action."""
    REST = "REST"
    """The rest pose."""
    POSE = "POSE"
    """The present pose, at every frame."""


MOST_SMOOTHNESS = 1000.0
"""Largest smoothness; more would keep departures constant."""


@dataclass(frozen=True)
class BakeSettings:
    """Settings of a bake.

    Attributes:
        frame_start: first frame.
        frame_end: last frame, not before the first.
        step: frames from one solve to the next; the last frame is always solved. Without effect where frames
            are taken from other keys.
        keys: choice of keyed frames.
        destination: action for the keys.
        constraints: names of constraints; empty for all enabled ones.
        error_reduction: part of the error that one pass of CCD removes, shared out over a chain's joints, 0.1
            to 0.97. It counts where chains have several goals. Smaller bends chains more evenly and takes
            longer.
        reference_object: for REFERENCE_KEYS, name of the object with the keys.
        reference_bone: name of a bone of it; empty for all keys of the object.
        start: choice of base poses. A root bone that follows planted bones always starts from its animation.
        reduce_angle: radians that key reduction may turn a bone off the full motion; 0 for no such bound, and
            for all keys if `reduce_error` is 0 too.
        reduce_error: world metres that key reduction may move the end of a chain; 0 as above.
        verify: whether playback is evaluated after the bake, and compared with the keys.
        preroll: frames before the first that are solved without keys, to find where feet came down.
        smoothness: how strongly sudden turns between frames are smoothed, where the nearest pose jumps.
            Frames that need none keep their poses to the bit. 0 solves each frame for itself.
        solver: None for the armature's own setting.
        ground: height of level ground in the world, metres, for the report; None for the ground of the
            armature.
        body: mode of the bone that carries the figure while bones are planted: "AUTO", "KEEP_ANIMATION",
            "WALK_ON" or "FOLLOW_FEET"; empty for the armature's own setting.
        body_helps: whether spine, clavicles and hips move where chains miss their targets alone; None for the
            armature's own setting.
        switch_to_fk: whether IK switches of the rig are keyed to FK where they disable the baked bones.

    Raises:
        InvalidInput: the range is empty, the preroll is negative, the step is below 1, the fraction or the
            smoothness is not one that the solver takes, or the body is none of these.
    """

    frame_start: int
    frame_end: int
    step: int = 1
    keys: Keys = Keys.EVERY_FRAME
    destination: Destination = Destination.NEW_ACTION
    constraints: tuple[str, ...] = ()
    error_reduction: float = PRESETS["TAIL"].error_reduction
    preroll: int = 0
    smoothness: float = SMOOTHNESS
    verify: bool = True
    start: Start = Start.ACTION
    reduce_angle: float = 0.0
    reduce_error: float = 0.0
    reference_object: str = ""
    reference_bone: str = ""
    solver: Solver | None = None
    body: str = ""
    body_helps: bool | None = None
    ground: float | None = None
    switch_to_fk: bool = True

    def __post_init__(self) -> None:
        known = bpy.types.Scene.bl_rna.properties["frame_current"]
        first, last = known.hard_min, known.hard_max
        if self.preroll < 0:
            raise InvalidInput(f"preroll must be 0 or more frames, not {self.preroll}")
        earliest = self.frame_start - self.preroll
        if earliest < first or self.frame_end > last:  # it would evaluate its last frame instead
            raise InvalidInput(
                f"frames {earliest} to {self.frame_end}: Blender has frames {first} to {last} only"
            )
        interpolation.solve_frames(self.frame_start, self.frame_end, self.step)
        require_known(self.body)
        if not 0.1 <= self.error_reduction <= EVEN_REDUCTION + 1e-6:  # properties are single precision
            raise InvalidInput(
                f"error_reduction must be 0.1 to {EVEN_REDUCTION:g}, not {self.error_reduction:g}"
            )
        if not 0.0 <= self.smoothness <= MOST_SMOOTHNESS:
            raise InvalidInput(f"smoothness must be 0 to {MOST_SMOOTHNESS:g}, not {self.smoothness:g}")
        if self.ground is not None and not math.isfinite(self.ground):
            raise InvalidInput(f"ground must be a height, not {self.ground:g}")
        for name in ("reduce_angle", "reduce_error"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} must be 0 or more, not {getattr(self, name):g}")
        if self.reduces and self.keys.is_sparse:
            raise InvalidInput(
                "Keys are left out only of a bake that keys every frame: set Keys to Every Frame"
            )

    @property
    def reduces(self) -> bool:
        """Whether keys are reduced."""
        return self.reduce_angle > 0.0 or self.reduce_error > 0.0

    def solved_frames(self) -> list[int]:
        """Solved frames, unless these are taken from other keys."""
        return interpolation.solve_frames(self.frame_start, self.frame_end, self.step)

    def preroll_frames(self) -> list[int]:
        """Solved frames before the range."""
        return list(range(self.frame_start - self.step, self.frame_start - self.preroll - 1, -self.step))[
            ::-1
        ]

    def keyed_frames(self) -> list[int]:
        """Keyed frames, unless these are taken from other keys."""
        if self.keys is Keys.SOLVED_FRAMES:
            return self.solved_frames()
        return list(range(self.frame_start, self.frame_end + 1))
