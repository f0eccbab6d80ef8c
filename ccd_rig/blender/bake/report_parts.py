# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report of a bake is made of: entries, fits, ways, slips and checks. Knows nothing of Blender."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from .body_drift import BodyDrift

SLERPED = "SLERPED"
"""Status of a frame that was not solved: it stands between two frames that were."""

SEEN = math.radians(5.0)
"""Smoothing by less is told in JSON only."""

SEAM = math.radians(0.5)
"""A turn that nobody sees where a loop starts again."""


class Entry(NamedTuple):
    """How one constraint stands at one frame.

    Attributes:
        frame: the frame.
        constraint: name of the constraint.
        status: the name of a `SolveStatus` at solved frames (CONVERGED: all that this constraint asks for is
            within the tolerances; OPTIMAL: no small motion comes nearer), SLERPED between them.
        residual: distance of the tip (or of the centre of mass), world metres, from the target, or from the
            blended goal where the influence is below 1; 0 for a constraint that asks for no place.
        keyed_residual: distance from the target itself, in the pose that is keyed.
        influence: of the constraint at this frame, above 0 to 1.
        angle: in radians, how far the bone is from the rotation that is asked for, or the chain's bend from
            its pole, whichever is more; below influence 1 as `residual`. 0 where neither is asked for.
        keyed_angle: from the target itself, in the pose that is keyed.
    """

    frame: float
    constraint: str
    status: str
    residual: float
    keyed_residual: float
    influence: float
    angle: float
    keyed_angle: float


@dataclass(frozen=True, slots=True)
class LargestRotation:
    """The bone that turns most from one frame to the next.

    Attributes:
        angle: radians per frame.
        frame: at which it arrives.
        bone: its name.
    """

    angle: float
    frame: float
    bone: str


@dataclass(frozen=True, slots=True)
class FootSlip:
    """How far a planted bone strays from where it is held, over all frames in which it is planted.

    Attributes:
        constraint: name of the constraint.
        distance: the largest of its head, world metres, by the keys.
        angle: the largest of its rotation, radians, by the keys.
        played_distance: as `distance`, of the bone as Blender evaluates the action.
        played_angle: as `angle`, of the bone as Blender evaluates the action.
        frame: of the largest `played_distance`.
    """

    constraint: str
    distance: float
    angle: float
    played_distance: float
    played_angle: float
    frame: int


@dataclass(frozen=True, slots=True)
class BodyReport:
    """What became of the bone that carries a figure with planted bones.

    Attributes:
        bone: its name.
        mode: "KEEP_ANIMATION", "WALK_ON" or "FOLLOW_FEET".
        keys_replaced: whether it follows planted bones although it had keys of its own.
        moved_frames: at how many keyed frames it is moved off its animation, as a leg is too short.
        distance: the largest such shift, world metres.
        frame: where that is; None where it is never moved.
        short_frames: at how many keyed frames a leg is too short and the body cannot be moved.
        obstacle: what keeps it from being moved there, in words; empty if nothing does.
        travel: world metres along the ground by which it walks on.
        drift: how far the figure leaves its animation.
    """

    bone: str
    mode: str
    keys_replaced: bool = False
    moved_frames: int = 0
    distance: float = 0.0
    frame: float | None = None
    short_frames: int = 0
    obstacle: str = ""
    travel: float = 0.0
    drift: BodyDrift | None = None

    def words(self) -> str:
        """What a user should know, such as "'hips' moved at 12 frames so that legs reach"; or nothing."""
        travel = f"'{self.bone}' walks on by {metres(self.travel)}" if self.mode == "WALK_ON" else ""
        drift = "" if self.drift is None else self.drift.words()
        return "; ".join(filter(None, (travel, self._moves(), drift)))

    def _moves(self) -> str:
        if self.keys_replaced:
            return f"'{self.bone}' follows planted bones, its own keys are replaced"
        if self.short_frames:
            at = frame_count(self.short_frames)
            return f"a leg is too short at {at}, but '{self.bone}' cannot be moved: {self.obstacle}"
        if self.frame is None:
            return ""
        at = frame_count(self.moved_frames)
        far = f"at most {metres(self.distance)}, frame {self.frame:g}"
        return f"'{self.bone}' moved at {at} so that legs reach ({far})"


class FrameFit(NamedTuple):
    """How near goals that pull against each other came together at one frame.

    Attributes:
        frame: the frame.
        rms: weighted root mean square of their distances, world metres: sqrt(sum w d^2 / sum w).
    """

    frame: float
    rms: float


@dataclass(frozen=True, slots=True)
class WeightedFit:
    """How near goals that pull against each other came together, at the solved frames that miss some of them.

    Attributes:
        rms: weighted root mean square of the distances of all these frames, world metres.
        frames: each of them.
    """

    rms: float
    frames: tuple[FrameFit, ...]

    def mean(self) -> float:
        """The mean of the frames' own, world metres."""
        return math.fsum(each.rms for each in self.frames) / len(self.frames)

    def worst(self) -> FrameFit:
        """The frame whose own is largest; the earliest of equals."""
        return max(self.frames, key=lambda each: each.rms)

    def words(self) -> str:
        """Such as "weighted fit of 250 frames: RMS 0.0294 m, at most 0.0410 m at frame 57"."""
        worst = self.worst()
        words = f"weighted fit of {frame_count(len(self.frames))}: RMS {metres(self.rms)}"
        return f"{words}, at most {metres(worst.rms)} at frame {worst.frame:g}"


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Frames in a row whose poses frames beside them have moved, where the nearest pose turns suddenly.

    Attributes:
        constraints: names of those that are solved together there.
        frame_start: the first of the frames.
        frame_end: the last of them.
        angle: radians, the largest rotation of a bone from the pose to which a frame alone leads.
    """

    constraints: tuple[str, ...]
    frame_start: float
    frame_end: float
    angle: float

    def words(self) -> str:
        """Such as "Tail: smoothed at frames 40 to 58, up to 12 degrees off the pose of each frame"."""
        who = ", ".join(self.constraints)
        return (
            f"{who}: smoothed at {self.span()}, up to {math.degrees(self.angle):.2g} degrees off the pose of "
            "each frame alone, which Solve has there"
        )

    @property
    def is_seen(self) -> bool:
        """Whether an animator would see it."""
        return self.angle >= SEEN

    def span(self) -> str:
        """Such as "frame 40" or "frames 40 to 58"."""
        if self.frame_start == self.frame_end:
            return f"frame {self.frame_start:g}"
        return f"frames {self.frame_start:g} to {self.frame_end:g}"


@dataclass(frozen=True, slots=True)
class Loop:
    """A range whose base poses and targets come back to where they began.

    Attributes:
        frame_start: first frame.
        frame_end: last frame.
        bone: name of the bone that ends farthest from where it began.
        angle: how far, radians.
        repeats_after: whether they come back at the frame after the last one, which is then solved too.
    """

    frame_start: float
    frame_end: float
    bone: str
    angle: float
    repeats_after: bool = False

    @property
    def closes(self) -> bool:
        """Whether nobody sees where it starts again."""
        return self.angle <= SEAM

    def words(self) -> str:
        """Such as "loop of frames 1 to 120 closes"."""
        again = f" ({self.frame_end + 1:g} is {self.frame_start:g} again)" if self.repeats_after else ""
        words = f"loop of frames {self.frame_start:g} to {self.frame_end:g}{again}"
        if self.closes:
            return f"{words} closes"
        return f"{words} does not close: '{self.bone}' ends {degrees(self.angle)} off"


@dataclass(frozen=True, slots=True)
class PlaybackResult:
    """How one constraint plays in Blender after the bake.

    Attributes:
        constraint: its name.
        residual: the largest distance from the target, world metres, at the frames with influence 1 (or,
            where there is none, above 0); 0 for a constraint that asks for no place. Here as in the others
            infinite where Blender shows bones at places that are no numbers.
        frame: where that is.
        angle: the largest angle, radians, as `Entry.angle`.
        angle_frame: where that is.
        deviation: how far a bone of its chain is from where its keys put it, world metres, at
            `deviation_frame`.
        deviation_angle: the same in radians.
        deviation_frame: the keyed frame at which the chain is farthest off.
        causes: what keeps the keys from playing; empty where they play as baked.
    """

    constraint: str
    residual: float
    frame: float
    angle: float
    angle_frame: float
    deviation: float
    deviation_angle: float
    deviation_frame: float
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """What Blender shows after a bake, measured by evaluating it once more.

    Attributes:
        frames: how many were evaluated.
        results: one per constraint that is in force at some frame.
        seconds: how long that took.
    """

    frames: int
    results: tuple[PlaybackResult, ...]
    seconds: float = field(default=0.0, compare=False)

    def content(self) -> dict[str, Any]:
        """All fields and `words` as JSON can hold them: null for what is infinite."""
        content = {**asdict(self), "words": self.words()}
        for result in content["results"]:
            result |= {
                name: None for name, value in result.items() if isinstance(value, float) and math.isinf(value)
            }
        return content

    def mismatches(self) -> tuple[str, ...]:
        """A sentence for each constraint whose keys do not play as baked."""
        return tuple(
            f"Constraint '{entry.constraint}' does not play as baked "
            f"({_away(entry)} at frame {entry.deviation_frame:g}): "
            f"{'; '.join(entry.causes)}"
            for entry in self.results
            if entry.causes
        )

    def words(self) -> str:
        """One sentence, such as "Plays as baked: at most 0.0040 m off target, at frame 57 (Hand)"."""
        wrong = [entry.constraint for entry in self.results if entry.causes]
        if wrong:
            return f"Does not play as baked: {', '.join(wrong)}"
        far = max(self.results, key=lambda entry: entry.residual, default=None)
        turned = max(self.results, key=lambda entry: entry.angle, default=None)
        if far is None or turned is None:
            return "Nothing to check"
        parts = [f"{metres(far.residual)} at frame {far.frame:g} ({far.constraint})"]
        if turned.angle > 0.0:
            parts.append(f"{degrees(turned.angle)} at frame {turned.angle_frame:g} ({turned.constraint})")
            if far.residual == 0.0:
                del parts[0]
        return f"Plays as baked: at most {' and '.join(parts)}"


def number(frame: float) -> float:
    """A frame as people write it: whole ones as whole numbers."""
    return int(frame) if frame == int(frame) else float(frame)


def off(distance: float, angle: float) -> str:
    """How far off something is: "0.0040 m", "2.1 degrees", or both."""
    parts = [] if distance == 0.0 and angle > 0.0 else [metres(distance)]
    if angle > 0.0:
        parts.append(degrees(angle))
    return " / ".join(parts)


def _away(played: PlaybackResult) -> str:
    if math.isinf(played.deviation) or math.isinf(played.deviation_angle):
        return "its bones are nowhere"
    return f"{off(played.deviation, played.deviation_angle)} off"


def frame_count(count: int) -> str:
    return f"{count} frame{'' if count == 1 else 's'}"


def degrees(angle: float) -> str:
    wide = math.degrees(angle)
    return f"{wide:.1f} degrees" if wide >= 0.05 else "below 0.1 degrees"


def metres(length: float) -> str:
    return f"{length:.4f} m" if length >= 5e-5 else "below 0.0001 m"
