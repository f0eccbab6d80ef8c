"""What a bake reached: one row per frame and constraint, in words and as JSON. Knows nothing of Blender."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...settings import Solver, SolverSettings, SolveStatus
from ..whole_files import WriteError, replacing

SLERPED = "SLERPED"
"""Status of a frame that was not solved: it stands between two frames that were."""

_NOT_MISSED = (SolveStatus.CONVERGED.name, SLERPED)

POP = math.radians(30.0)
"""A turn from one frame to the next that an eye takes for a jump."""

SEEN = math.radians(5.0)
"""Two ways whose poses are nearer to each other are told in JSON only."""


class Entry(NamedTuple):
    """How one constraint stands at one frame.

    Attributes:
        frame: the frame.
        constraint: name of the constraint.
        status: the name of a `SolveStatus` at solved frames (CONVERGED: all that this constraint asks for is
            within the tolerances; OPTIMAL: no small motion comes nearer), SLERPED between them.
        residual: distance of the tip (or of the centre of mass) from the target in world metres, in the
            solved (or slerped) pose; 0 for a constraint that asks for no place.
        keyed_residual: the same in the pose that is keyed; it differs where the influence is below 1.
        influence: of the constraint at this frame, above 0 to 1.
        angle: in radians, how far the bone is from the rotation that is asked for, or the chain's bend from
            its pole, whichever is more; in the solved (or slerped) pose. 0 where neither is asked for.
        keyed_angle: the same in the pose that is keyed.
    """

    frame: float
    constraint: str
    status: str
    residual: float
    keyed_residual: float
    influence: float
    angle: float = 0.0
    keyed_angle: float = 0.0


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
        mode: "KEEP_ANIMATION" or "FOLLOW_FEET".
        keys_replaced: whether it follows planted bones although it had keys of its own.
        moved_frames: at how many keyed frames it is moved off its animation, as a leg is too short.
        distance: the largest such shift, world metres.
        frame: where that is; None where it is never moved.
        short_frames: at how many keyed frames a leg is too short and the body cannot be moved.
        obstacle: what keeps it from being moved there, in words; empty if nothing does.
    """

    bone: str
    mode: str
    keys_replaced: bool = False
    moved_frames: int = 0
    distance: float = 0.0
    frame: float | None = None
    short_frames: int = 0
    obstacle: str = ""

    def words(self) -> str:
        """What a user should know, such as "'hips' moved at 12 frames so that legs reach"; or nothing."""
        if self.keys_replaced:
            return f"'{self.bone}' follows planted bones, its own keys are replaced"
        if self.short_frames:
            at = _frames(self.short_frames)
            return f"a leg is too short at {at}, but '{self.bone}' cannot be moved: {self.obstacle}"
        if self.frame is None:
            return ""
        at = _frames(self.moved_frames)
        far = f"at most {_metres(self.distance)}, frame {self.frame:g}"
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
        words = f"weighted fit of {_frames(len(self.frames))}: RMS {_metres(self.rms)}"
        return f"{words}, at most {_metres(worst.rms)} at frame {worst.frame:g}"


@dataclass(frozen=True, slots=True)
class SeveralWays:
    """Frames in a row that go to their targets the way the frames around do, not where each alone would.

    Attributes:
        constraints: names of those that are solved together there.
        frame_start: the first of the frames.
        frame_end: the last of them.
        angle: radians, the largest rotation of a bone to another pose that meets the targets, to which the
            base pose alone leads; 0 where it leads to none.
    """

    constraints: tuple[str, ...]
    frame_start: float
    frame_end: float
    angle: float

    def words(self) -> str:
        """A sentence that starts like "Tail: two ways to its target at frames 40 to 58"."""
        is_one = len(self.constraints) == 1
        who, target = ", ".join(self.constraints), "its target" if is_one else "their targets"
        if self.angle > 0.0:
            return (
                f"{who}: two ways to {target} at {self.span()}, up to {math.degrees(self.angle):.2g} degrees "
                "apart; the bake goes on from the frames around, Solve at one of these goes the other way"
            )
        return (
            f"{who}: {'reaches' if is_one else 'reach'} {target} at {self.span()} the way that the frames "
            "around go; Solve at one of these may miss"
        )

    @property
    def is_seen(self) -> bool:
        """Whether an animator would see which way was taken."""
        return self.angle >= SEEN

    def span(self) -> str:
        """Such as "frame 40" or "frames 40 to 58"."""
        if self.frame_start == self.frame_end:
            return f"frame {self.frame_start:g}"
        return f"frames {self.frame_start:g} to {self.frame_end:g}"


@dataclass(frozen=True, slots=True)
class PlaybackResult:
    """How one constraint plays in Blender after the bake.

    Attributes:
        constraint: its name.
        residual: the largest distance from the target, world metres, at the frames with influence 1 (or,
            where there is none, above 0); 0 for a constraint that asks for no place.
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

    def mismatches(self) -> tuple[str, ...]:
        """A sentence for each constraint whose keys do not play as baked."""
        return tuple(
            f"Constraint '{entry.constraint}' does not play as baked "
            f"({_off(entry.deviation, entry.deviation_angle)} off at frame {entry.deviation_frame:g}): "
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
        parts = [f"{_metres(far.residual)} at frame {far.frame:g} ({far.constraint})"]
        if turned.angle > 0.0:
            parts.append(f"{_degrees(turned.angle)} at frame {turned.angle_frame:g} ({turned.constraint})")
            if far.residual == 0.0:
                del parts[0]
        return f"Plays as baked: at most {' and '.join(parts)}"


@dataclass(frozen=True)
class BakeReport:
    """The outcome of one bake.

    Attributes:
        armature: name of the armature object.
        action: name of the action that holds the keys.
        frame_start: first frame.
        frame_end: last frame.
        step: frames from one solve to the next.
        tolerance: position tolerance, world metres.
        entries: by frame, then in the order of the constraints; none where a constraint's influence is 0.
        angle_tolerance: radians.
        solver: which methods solved.
        start: where frames started from, a name of `settings.Start`.
        from_rest: names of bones that started from rest although they stood in a pose, which nothing plays.
        largest_rotation: of the keyed bones; None if only one frame is keyed.
        foot_slips: one for each constraint that plants a bone in these frames.
        fit: of goals that pull against each other; None where there are none, or all are met.
        several_ways: frames of which a bake of another range may find other poses, in order of time.
        body: what became of the bone that carries the figure; None where no constraint plants a bone.
        check: what plays after the bake; None if nobody looked.
        warnings: what the checks before the bake have found.
        seconds: how long the bake took, without the check.
        keys: how many were written, all components of a channel counted as one.
        keys_before: how many there were before any were left out.
    """

    armature: str
    action: str
    frame_start: int
    frame_end: int
    step: int
    tolerance: float
    entries: tuple[Entry, ...]
    angle_tolerance: float = SolverSettings().angle_tolerance
    solver: Solver = SolverSettings().solver
    start: str = "ACTION"
    from_rest: tuple[str, ...] = ()
    largest_rotation: LargestRotation | None = None
    foot_slips: tuple[FootSlip, ...] = ()
    fit: WeightedFit | None = None
    several_ways: tuple[SeveralWays, ...] = ()
    body: BodyReport | None = None
    check: Check | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    keys: int = 0
    keys_before: int = 0

    def worst(self) -> Entry:
        """The row that is farthest off, in tolerances; the earliest of equals."""
        return max(
            self.entries,
            key=lambda entry: max(entry.residual / self.tolerance, entry.angle / self.angle_tolerance),
        )

    def unsolved(self) -> tuple[Entry, ...]:
        """Rows of solved frames where the constraint was not reached within the tolerance."""
        return tuple(entry for entry in self.entries if entry.status not in _NOT_MISSED)

    def unsolved_count(self) -> int:
        """How many solved frames miss at least one constraint."""
        return len({entry.frame for entry in self.unsolved()})

    def solved_count(self) -> int:
        """How many frames were solved, with at least one constraint in force."""
        return len({entry.frame for entry in self.entries if entry.status != SLERPED})

    def summary(self) -> str:
        """One sentence for people, such as "118 of 120 frames reached; worst 0.0040 m at frame 57 (Hand)".

        Goals that pull against each other are told as a weighted fit; where no frame reaches all of them,
        that stands in place of the count. How far planted bones slide, and a turn of more than `POP` from one
        frame to the next, are named too.
        """
        solved = self.solved_count()
        reached = solved - self.unsolved_count()
        worst = self.worst()
        # With a step there are frames that nobody asked about, whether they have keys or not.
        frames = ("solved " if self.step > 1 else "") + ("frames" if solved != 1 else "frame")
        who = worst.constraint + (", between solved frames" if worst.status == SLERPED else "")
        fit = "" if self.fit is None else self.fit.words()
        count = f"{reached} of {solved} {frames} reached" + (f"; {fit}" if fit else "")
        return (
            (
                f"{count if reached or not fit else fit}; "
                f"worst {_off(worst.residual, worst.angle)} at frame {worst.frame:g} ({who})"
            )
            + self._slide()
            + self._body()
            + self._ways()
            + self._pop()
            + self._rested()
            + self._left_out()
        )

    def _rested(self) -> str:
        if not self.from_rest:
            return ""
        first, others = self.from_rest[0], len(self.from_rest) - 1
        who = f"'{first}'" + (f" and {others} more" if others else "")
        return f"; {who} posed without keys, baked from rest"

    def _left_out(self) -> str:
        if self.keys == self.keys_before:
            return ""
        return f"; {self.keys} of {self.keys_before} keys kept"

    def _slide(self) -> str:
        if not self.foot_slips:
            return ""
        return f"; planted bones slide {_metres(max(slip.played_distance for slip in self.foot_slips))}"

    def _body(self) -> str:
        words = "" if self.body is None else self.body.words()
        return f"; {words}" if words else ""

    def _ways(self) -> str:
        seen = [each for each in self.several_ways if each.is_seen]
        if not seen:
            return ""
        more = f" and {len(seen) - 1} more" if len(seen) > 1 else ""
        return f"; several ways at {seen[0].span()} ({seen[0].constraints[0]}){more}"

    def advice(self, both_ways: bool) -> str:
        """What to try where a bone jumps, and was not solved both ways; or nothing."""
        turn = self.largest_rotation
        if both_ways or turn is None or turn.angle <= POP:
            return ""
        return (
            f"Bone '{turn.bone}' turns {math.degrees(turn.angle):.0f} degrees at frame {turn.frame:g}: its "
            "target leaps, or limits leave no nearer way from there. Try Order: Both Ways, or a Preroll"
        )

    def _pop(self) -> str:
        turn = self.largest_rotation
        if turn is None or turn.angle <= POP:
            return ""
        return f"; '{turn.bone}' turns {math.degrees(turn.angle):.0f} degrees at frame {turn.frame:g}"

    def to_json(self) -> str:
        """The report as JSON text.

        An object with `format` ("ccd_rig.bake_report"), `version` (1), `armature`, `action`, `frame_start`,
        `frame_end`, `step`, `tolerance` (world metres), `angle_tolerance` (radians), `solver` (its name),
        `start` (ACTION, ORIGINAL, REST or POSE), `from_rest` (names of bones), `summary` (words),
        `frames_solved`, `frames_reached` (numbers of frames), `fit` (null, or of the
        missed frames the weighted `rms`, the `mean` and the `worst` of the frames' own, world metres, the
        `worst_frame`, and `frames`, a list of objects with `frame` and `rms`), `largest_rotation` (null, or
        `angle` in radians per frame, `frame` and `bone`), `foot_slips` (a list of objects with the fields of
        `FootSlip`; empty where nothing is planted), `several_ways` (a list of objects with the fields of
        `SeveralWays` and `words`; empty where every frame goes the way that its base pose leads), `body`
        (null, or the fields of `BodyReport`), `seconds` (of the bake), `keys` and `keys_before` (how many
        were written, and before any were left out), `warnings` (what the checks before the bake have found,
        a list of sentences), `check` (null, or `seconds`, `frames`, `words` and `results`, a list of objects
        with the fields of `PlaybackResult`), and `entries`, a list of objects with the fields of `Entry`:
        `frame`, `constraint`, `status`, `residual`, `keyed_residual` (world metres), `influence`, `angle` and
        `keyed_angle` (radians).
        """
        solved = self.solved_count()
        content = {
            "format": "ccd_rig.bake_report",
            "version": 1,
            "armature": self.armature,
            "action": self.action,
            "frame_start": self.frame_start,
            "frame_end": self.frame_end,
            "step": self.step,
            "tolerance": self.tolerance,
            "angle_tolerance": self.angle_tolerance,
            "solver": self.solver.name,
            "start": self.start,
            "from_rest": list(self.from_rest),
            "summary": self.summary(),
            "frames_solved": solved,
            "frames_reached": solved - self.unsolved_count(),
            "fit": None if self.fit is None else _fit_content(self.fit),
            "foot_slips": [asdict(slip) for slip in self.foot_slips],
            "several_ways": [{**asdict(each), "words": each.words()} for each in self.several_ways],
            "largest_rotation": None if self.largest_rotation is None else asdict(self.largest_rotation),
            "body": None if self.body is None else asdict(self.body),
            "seconds": round(self.seconds, 3),
            "keys": self.keys,
            "keys_before": self.keys_before,
            "warnings": list(self.warnings),
            "check": None if self.check is None else {**asdict(self.check), "words": self.check.words()},
        }
        # One row per line: the text stays readable and can be compared line by line.
        entries = ",\n".join("    " + json.dumps(entry._asdict(), allow_nan=False) for entry in self.entries)
        head = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)[: -len("\n}")]
        return f'{head},\n  "entries": [\n{entries}\n  ]\n}}\n'


def save(report: BakeReport, path: str | os.PathLike[str]) -> None:
    """Write the report as JSON: a file as a whole or not at all; a device or pipe (/dev/stdout) as it comes.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    stream = Path(path)
    if stream.exists() and not stream.is_file() and not stream.is_dir():
        try:
            stream.write_text(report.to_json(), encoding="utf-8")
        except OSError as error:
            raise WriteError(f"cannot write {stream}: {error.strerror}") from error
        return
    with replacing(path) as temporary:
        temporary.write_text(report.to_json(), encoding="utf-8")


def _fit_content(fit: WeightedFit) -> dict[str, object]:
    worst = fit.worst()
    return {
        "rms": fit.rms,
        "mean": fit.mean(),
        "worst": worst.rms,
        "worst_frame": worst.frame,
        "frames": [each._asdict() for each in fit.frames],
    }


def _off(distance: float, angle: float) -> str:
    """How far off something is: "0.0040 m", "2.1 degrees", or both."""
    parts = [] if distance == 0.0 and angle > 0.0 else [_metres(distance)]
    if angle > 0.0:
        parts.append(_degrees(angle))
    return " / ".join(parts)


def _frames(count: int) -> str:
    return f"{count} frame{'' if count == 1 else 's'}"


def _degrees(angle: float) -> str:
    degrees = math.degrees(angle)
    return f"{degrees:.1f} degrees" if degrees >= 0.05 else "below 0.1 degrees"


def _metres(length: float) -> str:
    return f"{length:.4f} m" if length >= 5e-5 else "below 0.0001 m"
