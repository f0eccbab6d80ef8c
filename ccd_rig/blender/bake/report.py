# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of bakes, in words and as JSON, without use of Blender."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from ... import json_text
from ...errors import InvalidInput
from ...settings import Solver, SolverSettings, SolveStatus
from ..atomic_write import WriteError, replacing
from .trouble import Fix, Trouble

REACHED = SolveStatus.CONVERGED.name
"""Status of a constraint whose goals are all within the tolerances."""

SLERPED = "SLERPED"
"""Status of a frame between two solved frames."""

GAVE_WAY = "GAVE_WAY"
"""Status of a constraint on a bone of the body that left its target to help others."""

EASED = "EASED"
"""Status of a limb that stays a little behind a target within its reach, so as not to snap straight."""

MET = (REACHED, GAVE_WAY, EASED)
"""Statuses that a solved frame counts as reached with."""

SEEN = math.radians(1.0)
"""Least smoothing and help of the body that the summary names, radians; JSON has all."""
SEEN_PART = 1e-3
"""Visible slide, shift, or depth below the ground, as a part of a chain's length."""

SEAM = math.radians(0.5)
"""Largest invisible turn where a loop starts again, radians."""


LENGTH = {"is_length": True}
"""Metadata of fields in metres, which `BakeReport.scaled` converts."""


class Entry(NamedTuple):
    """The errors of one constraint at one frame."""

    frame: float
    constraint: str  # name of the constraint
    # The name of a `SolveStatus` at solved frames (CONVERGED: all goals of the constraint are within the
    # tolerances; OPTIMAL: no small motion comes nearer; GAVE_WAY: a bone of the body left its target to help
    # others; EASED: a limb stays a little behind a target within its reach, by its Softness), SLERPED between
    # them.
    status: str
    # Distance of the tip (or of the centre of mass), metres, from the target, or from the blended goal
    # where the influence is below 1; 0 without a position goal.
    residual: float
    keyed_residual: float  # distance from the target itself, in the keyed pose
    influence: float  # of the constraint at this frame, above 0 to 1
    # Radians between the bone and its rotation goal, or between the chain's bend and its pole, whichever is
    # more; below influence 1 as `residual`. 0 without such goals.
    angle: float
    keyed_angle: float  # from the target itself, in the keyed pose


@dataclass(frozen=True, slots=True)
class LargestRotation:
    """The bone with the largest turn from one frame to the next."""

    angle: float  # radians per frame
    frame: float  # after the turn
    bone: str  # its name


@dataclass(frozen=True, slots=True)
class FootSlip:
    """The slip of a planted bone from its anchor, over all its planted frames."""

    constraint: str  # name of the constraint
    distance: float = field(metadata=LENGTH)  # the largest of its head, metres, by the keys
    angle: float  # the largest of its rotation, radians, by the keys
    played_distance: float = field(metadata=LENGTH)  # as `distance`, in playback
    played_angle: float  # as `angle`, in playback
    frame: int  # of the largest `played_distance`


CLIMBS = 0.05
"""Visible climb or sinking of a body, and floating of a planted bone, as a part of a leg's length."""
TIPS = math.radians(15.0)
"""Visible lean beside the animation, radians."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest value over a range."""

    bone: str  # its name
    frame: float  # of the value
    amount: float  # metres, above 0 upwards; or radians


@dataclass(frozen=True, slots=True)
class BodyDrift:
    """The drift of a figure with planted bones from its animation."""

    leg: float = field(metadata=LENGTH)  # length of the shortest leg, metres
    # Of the root bone beside its animation, since the first frame; None if the root bone keeps its animation
    # or is placed by a constraint.
    rise: Peak | None = field(metadata=LENGTH)
    lean: Peak | None  # angle between the upright axes of figure and animation; None likewise
    # The planted bone held highest above its animation; None if none is held in height.
    hover: Peak | None = field(metadata=LENGTH)

    def findings(self) -> tuple[Finding, ...]:
        """Findings of visible drift."""
        seen, visible = CLIMBS * self.leg, list[tuple[Trouble, Peak]]()
        if self.rise is not None and abs(self.rise.amount) > seen:
            visible.append((Trouble.CLIMB if self.rise.amount > 0.0 else Trouble.SINK, self.rise))
        if self.lean is not None and self.lean.amount > TIPS:
            visible.append((Trouble.TIP, self.lean))
        # A climbing body lifts its feet too.
        if not visible and self.hover is not None and self.hover.amount > seen:
            visible.append((Trouble.FLOAT, self.hover))
        return tuple(
            Finding(trouble, "", peak.bone, *[peak.frame] * 3, angle=peak.amount)
            if trouble is Trouble.TIP
            else Finding(trouble, "", peak.bone, *[peak.frame] * 3, distance=abs(peak.amount))
            for trouble, peak in visible
        )

    def words(self) -> str:
        """Words on visible drift, such as "'hips' climbs 0.21 m by frame 40"; or empty."""
        return "; ".join(map(_drift_words, self.findings()))


def _drift_words(drift: Finding) -> str:
    """Words on the drift of a body, longer than the finding's."""
    amount, degrees = drift.distance, math.degrees(drift.angle)
    match drift.trouble:
        case Trouble.TIP:
            return f"'{drift.bone}' tips by {degrees:.0f} degrees at frame {drift.frame:.7g}"
        case Trouble.FLOAT:
            return (
                f"'{drift.bone}' floats, held {amount:.2f} m above its animation at frame {drift.frame:.7g}"
            )
        case _:
            does = "climbs" if drift.trouble is Trouble.CLIMB else "sinks"
            return f"'{drift.bone}' {does} {amount:.2f} m by frame {drift.frame:.7g}"


@dataclass(frozen=True, slots=True)
class BodyReport:
    """The motion of the bone that carries a figure with planted bones."""

    bone: str  # its name
    mode: str  # "KEEP_ANIMATION", "WALK_ON" or "FOLLOW_FEET"
    keys_replaced: bool = False  # whether it follows planted bones in place of its earlier keys
    moved_frames: int = 0  # count of keyed frames at which it is shifted, as a leg is too short
    distance: float = field(default=0.0, metadata=LENGTH)  # the largest shift, metres
    frame: float | None = None  # of the largest shift; None without a shift
    short_frames: int = 0  # count of keyed frames at which a leg is too short and the body cannot be shifted
    obstacle: str = ""  # reason why it cannot be shifted there, in words; else empty
    travel: float = field(default=0.0, metadata=LENGTH)  # metres along the ground
    drift: BodyDrift | None = None  # of the figure from its animation

    def words(self) -> str:
        """Words for the summary, such as "'hips' moved at 12 frames so that legs reach"; or empty."""
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
        far = f"at most {metres(self.distance)}, frame {self.frame:.7g}"
        return f"'{self.bone}' moved at {at} so that legs reach ({far})"


@dataclass(frozen=True, slots=True)
class FrameFit:
    """The weighted fit of conflicting goals at one frame."""

    frame: float
    # Weighted root mean square of their distances, metres: sqrt(sum w d^2 / sum w).
    rms: float = field(metadata=LENGTH)


@dataclass(frozen=True, slots=True)
class WeightedFit:
    """The weighted fit of conflicting goals, at solved frames that miss targets."""

    # Weighted root mean square of the distances of all these frames, metres.
    rms: float = field(metadata=LENGTH)
    frames: tuple[FrameFit, ...]  # each of them

    def worst(self) -> FrameFit:
        """The frame with the largest fit; the earliest of equals."""
        return max(self.frames, key=lambda each: each.rms)

    def content(self) -> dict[str, object]:
        """The fit for JSON, with the mean and the largest of the frames."""
        worst = self.worst()
        return {
            "rms": self.rms,
            "mean": math.fsum(each.rms for each in self.frames) / len(self.frames),
            "worst": worst.rms,
            "worst_frame": worst.frame,
            "frames": [asdict(each) for each in self.frames],
        }

    def words(self) -> str:
        """Such as "weighted fit of 250 frames: RMS 0.0294 m, at most 0.0410 m at frame 57"."""
        worst = self.worst()
        words = f"weighted fit of {frame_count(len(self.frames))}: RMS {metres(self.rms)}"
        return f"{words}, at most {metres(worst.rms)} at frame {worst.frame:.7g}"


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Consecutive frames whose poses are smoothed, where the nearest pose turns suddenly."""

    constraints: tuple[str, ...]  # names of the group
    frame_start: float
    frame_end: float
    angle: float  # radians, the largest turn of a bone from its pose without smoothing

    def words(self) -> str:
        """Words such as "Tail: smoothed at frames 40 to 58, up to 12 degrees off the pose of each frame"."""
        who = ", ".join(self.constraints)
        angle = two_digits(math.degrees(self.angle))
        return (
            f"{who}: smoothed at {self.span()}, up to {angle} degrees off the pose of each frame alone, "
            "which Solve has there"
        )

    @property
    def is_seen(self) -> bool:
        """Whether an animator would see it."""
        return self.angle >= SEEN

    def span(self) -> str:
        """Words such as "frame 40" or "frames 40 to 58"."""
        if self.frame_start == self.frame_end:
            return f"frame {self.frame_start:.7g}"
        return f"frames {self.frame_start:.7g} to {self.frame_end:.7g}"


@dataclass(frozen=True, slots=True)
class Helped:
    """Consecutive frames at which the body helps chains that miss their targets alone."""

    constraints: tuple[str, ...]  # names of the helped constraints
    frame_start: float
    frame_end: float
    turned: str  # name of the bone of the body that turns most beside its base pose
    angle: float  # its turn, radians
    shifted: str  # name of the bone that is shifted most; empty without a shift
    distance: float = field(metadata=LENGTH)  # its shift, metres
    gave_way: tuple[str, ...] = ()  # names of constraints that leave their targets meanwhile
    # Their largest distance from a target, metres.
    off: float = field(default=0.0, metadata=LENGTH)
    # Length of the shortest helped chain, metres.
    size: float = field(default=0.0, metadata=LENGTH)

    @property
    def is_seen(self) -> bool:
        """Whether an animator would see it."""
        return self.angle >= SEEN or max(self.distance, self.off) >= SEEN_PART * self.size

    def words(self) -> str:
        """Words such as "the body helps at frames 40 to 58 (hand.L): 'spine' turns by up to 12 degrees"."""
        span = f"frame {self.frame_start:.7g}"
        if self.frame_start != self.frame_end:
            span = f"frames {self.frame_start:.7g} to {self.frame_end:.7g}"
        angle, shift, off = two_digits(math.degrees(self.angle)), metres(self.distance), metres(self.off)
        words, names = f"'{self.turned}' turns by up to {angle} degrees", ", ".join(self.gave_way)
        # Whole sentences: in parts a translation would not know where one ends.
        if self.shifted and names:
            words = (
                f"'{self.turned}' turns by up to {angle} degrees, '{self.shifted}' is shifted by up to "
                f"{shift}, {names} up to {off} off for it"
            )
        elif self.shifted:
            words = (
                f"'{self.turned}' turns by up to {angle} degrees, "
                f"'{self.shifted}' is shifted by up to {shift}"
            )
        elif names:
            words = f"'{self.turned}' turns by up to {angle} degrees, {names} up to {off} off for it"
        return f"the body helps at {span} ({', '.join(self.constraints)}): {words}"


@dataclass(frozen=True, slots=True)
class Loop:
    """A range whose base poses and targets come back to where they began."""

    frame_start: float
    frame_end: float
    bone: str  # name of the bone with the largest difference between first and last frame
    angle: float  # its difference, radians
    repeats_after: bool = False  # whether the loop repeats at the frame after the last one

    @property
    def closes(self) -> bool:
        """Whether its seam is invisible."""
        return self.angle <= SEAM

    def words(self) -> str:
        """Words such as "loop of frames 1 to 120 closes"."""
        again = f" ({self.frame_end + 1:.7g} is {self.frame_start:.7g} again)" if self.repeats_after else ""
        words = f"loop of frames {self.frame_start:.7g} to {self.frame_end:.7g}{again}"
        if self.closes:
            return f"{words} closes"
        return f"{words} does not close: '{self.bone}' ends {degrees(self.angle)} off"


@dataclass(frozen=True, slots=True)
class PlaybackResult:
    """Playback of one constraint in Blender after the bake."""

    constraint: str  # its name
    # The largest distance from the target, metres, at frames with influence 1 (or above 0, if there are
    # none); 0 without a position goal. Infinite, as the others, where Blender shows NaN.
    residual: float = field(metadata=LENGTH)
    frame: float  # of the residual
    angle: float  # the largest angle, radians, as `Entry.angle`
    angle_frame: float  # of the angle
    # Of a bone of its chain from its keys, metres, at `deviation_frame`.
    deviation: float = field(metadata=LENGTH)
    deviation_angle: float  # likewise, radians
    deviation_frame: float  # the keyed frame with the largest deviation
    causes: tuple[str, ...] = ()  # reasons why keys do not play as baked, in words; else empty


@dataclass(frozen=True, slots=True)
class Check:
    """The check of playback after a bake."""

    frames: int  # count of evaluated frames
    results: tuple[PlaybackResult, ...]  # one per constraint that is active at any frame
    seconds: float = field(default=0.0, compare=False)  # time of the check

    def content(self) -> dict[str, Any]:
        """All fields and `words` for JSON, with null for infinity."""
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
            f"({_away(entry)} at frame {entry.deviation_frame:.7g}): "
            f"{'; '.join(entry.causes)}"
            for entry in self.results
            if entry.causes
        )

    def words(self) -> str:
        """A sentence such as "Plays as baked: at most 0.0040 m off target, at frame 57 (Hand)"."""
        wrong = [entry.constraint for entry in self.results if entry.causes]
        if wrong:
            return f"Does not play as baked: {', '.join(wrong)}"
        far = max(self.results, key=lambda entry: entry.residual, default=None)
        turned = max(self.results, key=lambda entry: entry.angle, default=None)
        if far is None or turned is None:
            return "Nothing to check"
        errors = [f"{metres(far.residual)} at frame {far.frame:.7g} ({far.constraint})"]
        if turned.angle > 0.0:
            errors.append(f"{degrees(turned.angle)} at frame {turned.angle_frame:.7g} ({turned.constraint})")
            if far.residual == 0.0:
                del errors[0]
        return f"Plays as baked: at most {' and '.join(errors)}"


def number(frame: float) -> float:
    """A frame, as an int if it is whole."""
    return int(frame) if frame == int(frame) else float(frame)


def off(distance: float, angle: float) -> str:
    """Words such as "0.0040 m", "2.1 degrees", or both."""
    errors = [] if distance == 0.0 and angle > 0.0 else [metres(distance)]
    if angle > 0.0:
        errors.append(degrees(angle))
    return " / ".join(errors)


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


STATUSES = (*(status.name for status in SolveStatus), SLERPED, GAVE_WAY, EASED)
"""Values of `Entry.status`."""


class Entries(tuple[Entry, ...]):
    """Entries by frame, then in the order of the constraints; none at influence 0."""

    __slots__ = ()

    def worst(self, tolerance: float, angle_tolerance: float) -> Entry:
        """The entry with the largest error in tolerances; the earliest of equals.

        Constraints that gave way while the body helped count only if all did.
        """
        counted = [each for each in self if each.status != GAVE_WAY] or self
        return max(counted, key=lambda each: max(each.residual / tolerance, each.angle / angle_tolerance))

    def missed(self) -> tuple[Entry, ...]:
        """Entries of solved frames beyond the tolerances."""
        return tuple([each for each in self if each.status not in (*MET, SLERPED)])

    def missed_frames(self) -> int:
        """Count of frames that miss at least one constraint."""
        return len({each.frame for each in self.missed()})

    def solved_frames(self) -> int:
        """Count of solved frames."""
        return len({each.frame for each in self if each.status != SLERPED})

    def eased(self) -> tuple[Entry, ...]:
        """Entries of limbs that are eased short of targets within their reach."""
        return tuple([each for each in self if each.status == EASED])

    def gave_way(self, tolerance: float, angle_tolerance: float) -> tuple[Entry, ...]:
        """Entries of constraints that left their targets while the body helped others."""
        gone = (each for each in self if each.status == GAVE_WAY)
        return tuple([each for each in gone if each.residual > tolerance or each.angle > angle_tolerance])

    def scaled(self, factor: float) -> Entries:
        """The entries in another unit of length."""
        return Entries(
            each._replace(residual=factor * each.residual, keyed_residual=factor * each.keyed_residual)
            for each in self
        )


LAST_FRAME = 1_048_574
"""The largest frame of a scene."""


_UNMET = {Trouble.IK, Trouble.BETWEEN, Trouble.TAKEN}
"""Findings of targets that are missed although the solved frames reach them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding over consecutive frames."""

    trouble: Trouble
    constraint: str  # name of the constraint; empty for a loop, and for a body
    bone: str  # name of the bone that shows it most
    frame_start: float
    frame_end: float
    frame: float  # the worst frame
    # Metres at that frame; 0 if it is no distance.
    distance: float = field(default=0.0, metadata=LENGTH)
    angle: float = 0.0  # radians at that frame; 0 if it is no angle
    more: int = 0  # count of other bones of the constraint that show it
    follows: bool = False  # of a jump, whether the target jumps too
    fix: Fix = Fix.NONE  # the setting that helps

    def words(self) -> str:
        """Words such as "112-120 tail.tip 0.48 m out of reach"."""
        return f"{self.span()} {self.label()}"

    def span(self) -> str:
        """The frames, such as "57" or "112-120"."""
        first, last = f"{self.frame_start:.7g}", f"{self.frame_end:.7g}"
        return first if first == last else f"{first}-{last}"

    def label(self) -> str:
        """The words without the frames."""
        more = f" (and {self.more} more)" if self.more else ""
        far, wide = _length(self.distance), f"{two_digits(math.degrees(self.angle))}°"
        match self.trouble:
            case Trouble.SHORT | Trouble.OFF:
                what = "out of reach" if self.trouble is Trouble.SHORT else "off"
                if self.distance and self.angle:
                    return f"{self.constraint} {far} {what}, turned {wide} off"
                if self.angle:
                    return f"{self.constraint} turned {wide} off"
                return f"{self.constraint} {far} {what}"
            case Trouble.JUMP:
                amount = wide if self.angle else far
                return f"{self.bone} jumps {amount}{more}" + (", as its target does" if self.follows else "")
            case Trouble.SLIDE:
                return f"{self.constraint} slides {far}"
            case Trouble.GROUND:
                return f"{self.bone} {far} below the ground{more}"
            case Trouble.LIMIT:
                return f"{self.bone} held by its limit{more}"
            case Trouble.LOOP:
                return f"loop does not close: {self.bone} {wide} off"
            case Trouble.CLIMB:
                return f"{self.bone} climbs {far}"
            case Trouble.SINK:
                return f"{self.bone} sinks {far}"
            case Trouble.TIP:
                return f"{self.bone} tips {wide}"
            case Trouble.FLOAT:
                return f"{self.bone} floats {far} above its animation"
            case Trouble.IK:
                return f"{self.constraint} moves nothing: {self.bone} is at IK"
            case Trouble.BETWEEN | Trouble.TAKEN:
                errors = " / ".join(filter(None, (self.distance and far, self.angle and wide)))
                if self.trouble is Trouble.BETWEEN:
                    return f"{self.constraint} {errors} off between solved frames"
                return f"{self.constraint} taken {errors} off: it is not baked too"


def to_json(findings: Iterable[Finding]) -> str:
    """Findings as one line of JSON."""
    return json.dumps([asdict(each) for each in findings], allow_nan=False)


@lru_cache(maxsize=8)
def from_json(text: str) -> tuple[Finding, ...]:
    """Findings from `to_json`; entries of damaged files or other versions are left out."""
    try:
        rows = json_text.parse(text) if text else []
    except json_text.NotJson:
        return ()
    readable = []
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        with contextlib.suppress(InvalidInput):
            readable.append(json_text.decoded(Finding, row, f"findings[{number}]"))
    return tuple(
        each
        for each in readable
        if max(abs(each.frame_start), abs(each.frame_end), abs(each.frame)) <= LAST_FRAME
    )


def _length(metres: float) -> str:
    """Words such as "0.48 m" or "2.1 mm"."""
    if metres >= 0.01:
        return f"{two_digits(metres)} m"
    return f"{two_digits(1000.0 * metres)} mm" if metres >= 5e-5 else "below 0.1 mm"


def two_digits(value: float) -> str:
    """Two significant digits, or all digits before the point: "0.48", "2.1", "148"."""
    return f"{value:.0f}" if value >= 10.0 else f"{value:.2g}"


def is_sound(unsolved: int, mismatches: int, findings: Sequence[Finding]) -> bool:
    """Whether a bake needs no second look.

    A bone that a limit holds is no fault, nor one that jumps as its target does.

    Args:
        unsolved: count of frames that miss a target.
        mismatches: count of constraints whose keys do not play as baked.
    """
    faults = {finding.trouble for finding in findings if not finding.follows} - {Trouble.LIMIT}
    return not (unsolved or mismatches or faults)


@dataclass(frozen=True)
class BakeReport:
    """The report of one bake."""

    armature: str  # name of the armature object
    action: str  # name of the action that holds the keys
    frame_start: int
    frame_end: int
    step: int  # frames from one solve to the next
    tolerance: float = field(metadata=LENGTH)  # position tolerance, metres
    entries: Entries
    angle_tolerance: float = SolverSettings().angle_tolerance  # radians
    solver: Solver = SolverSettings().solver  # of the bake
    start: str = "ACTION"  # choice of base poses, a name of `settings.Start`
    # Names of bones that started from rest, although they have a pose without animation.
    from_rest: tuple[str, ...] = ()
    largest_rotation: LargestRotation | None = None  # of the keyed bones; None if only one frame is keyed
    foot_slips: tuple[FootSlip, ...] = ()  # one for each constraint that plants a bone in these frames
    fit: WeightedFit | None = None  # of conflicting goals; None without conflicts, or if all goals are met
    smoothed: tuple[Smoothed, ...] = ()  # smoothed frames, in order of time
    helped: tuple[Helped, ...] = ()  # frames at which the body helps, in order of time
    body: BodyReport | None = None  # motion of the root bone; None if no constraint plants a bone
    loop: Loop | None = None  # the range, if base poses and targets end as they begin
    findings: tuple[Finding, ...] = ()  # by constraint and then in time
    check: Check | None = None  # of playback; None without a check
    switched_to_fk: tuple[str, ...] = ()  # names of bones whose IK switches were keyed to FK
    warnings: tuple[str, ...] = ()  # of the checks before the bake, and the reason for an uncompiled kernel
    seconds: float = field(default=0.0, compare=False)  # time of the bake, without the check
    keys: int = 0  # count of written keys, with all components of a channel as one
    keys_before: int = 0  # count of keys before reduction

    def scaled(self, factor: float) -> BakeReport:
        """Return the same in another unit of length."""
        return _scaled(self, factor)

    def worst(self) -> Entry:
        """The entry with the largest error in tolerances; the earliest of equals."""
        return self.entries.worst(self.tolerance, self.angle_tolerance)

    def unsolved(self) -> tuple[Entry, ...]:
        """Entries of solved frames whose constraint is beyond the tolerances."""
        return self.entries.missed()

    def unsolved_count(self) -> int:
        """Count of solved frames that miss at least one constraint."""
        return self.entries.missed_frames()

    @property
    def is_sound(self) -> bool:
        """Whether all frames are reached, keys play as baked, and nothing is at fault; see `is_sound`."""
        return is_sound(self.unsolved_count(), len(self.mismatches()), self.findings)

    @property
    def reaches_all(self) -> bool:
        """Whether what plays reaches all targets, at solved frames and between them."""
        is_met = not self.unsolved_count() and not self.mismatches()
        return is_met and _UNMET.isdisjoint(finding.trouble for finding in self.findings)

    def mismatches(self) -> tuple[str, ...]:
        """A sentence for each constraint whose keys do not play as baked; none without a check."""
        return () if self.check is None else self.check.mismatches()

    def solved_count(self) -> int:
        """Count of solved frames with an active constraint."""
        return self.entries.solved_frames()

    def summary(self) -> str:
        """A sentence such as "118 of 120 frames reached; worst 0.0040 m at frame 57 (Hand)".

        It names the weighted fit of conflicting goals (in place of the count, if no frame reaches all),
        slides of planted bones, the largest jump, and the first finding of each other kind of fault.
        """
        return "; ".join(filter(None, self._clauses()))

    def _clauses(self) -> Iterator[str]:
        """Yield the clauses of the summary; empty ones do not count."""
        solved = self.solved_count()
        reached, worst = solved - self.unsolved_count(), self.worst()
        # With a step, frames between solved ones do not count.
        frames = ("solved " if self.step > 1 else "") + ("frames" if solved != 1 else "frame")
        if reached or self.fit is None:
            yield ", ".join([f"{reached} of {solved} {frames} reached", *self._near_misses()])
        if self.fit is not None:
            yield self.fit.words()
        total = self.frame_end - self.frame_start + 1
        unsolved = total - solved  # nothing was active there, or they got no keys
        if self.step == 1 and unsolved > 0:
            yield f"{unsolved} of {total} frames are not solved"
        who = worst.constraint + (", between solved frames" if worst.status == SLERPED else "")
        yield f"worst {off(worst.residual, worst.angle)} at frame {worst.frame:.7g} ({who})"
        short = {each.constraint for each in self.findings if each.trouble is Trouble.SHORT}
        if len(short) == 1:
            yield "a target is out of reach: bring it nearer to its chain, or the figure to it"
        elif short:
            yield f"{len(short)} targets are out of reach: bring them nearer, or the figure"
        if self.foot_slips:
            yield f"planted bones slide {metres(max(slip.played_distance for slip in self.foot_slips))}"
        planted = {slip.constraint for slip in self.foot_slips}  # told of above
        for trouble in (Trouble.IK, Trouble.BETWEEN, Trouble.TAKEN, Trouble.GROUND, Trouble.SLIDE):
            same = [each for each in self.findings if each.trouble is trouble]
            if trouble is Trouble.SLIDE:
                same = [each for each in same if each.constraint not in planted]
            if same:
                more = f" and {len(same) - 1} more" if len(same) > 1 else ""
                yield f"{same[0].words()}{more}"
        yield "" if self.body is None else self.body.words()
        if seen := [each for each in self.smoothed if each.is_seen]:
            more = f" and {len(seen) - 1} more" if len(seen) > 1 else ""
            yield f"smoothed at {seen[0].span()} ({seen[0].constraints[0]}){more}"
        if helped := [each for each in self.helped if each.is_seen]:
            more = f" and {len(helped) - 1} more" if len(helped) > 1 else ""
            yield f"{helped[0].words()}{more}"
        yield "" if self.loop is None else self.loop.words()
        yield self.advice()
        if self.from_rest:
            first, others = self.from_rest[0], len(self.from_rest) - 1
            who = f"'{first}'" + (f" and {others} more" if others else "")
            yield f"{who} posed without keys, baked from rest"
        if self.switched_to_fk:
            yield f"switched to FK: {', '.join(self.switched_to_fk)}"
        if self.keys != self.keys_before:
            yield f"{self.keys} of {self.keys_before} keys kept"

    def _near_misses(self) -> Iterator[str]:
        """Counts of frames with limbs eased short of straight, and with targets that give way to the body."""
        if eased := self.entries.eased():
            farthest = metres(max(entry.residual for entry in eased))
            yield f"{len({entry.frame for entry in eased})} eased short of straight by up to {farthest}"
        if gone := self.entries.gave_way(self.tolerance, self.angle_tolerance):
            farthest = metres(max(entry.residual for entry in gone))
            yield f"targets give way in {len({entry.frame for entry in gone})} by up to {farthest}"

    def advice(self) -> str:
        """Words on the largest turn of a jump, or else the largest move; or empty."""
        jumps = (each for each in self.findings if each.trouble is Trouble.JUMP)
        jump = max(jumps, key=lambda each: (each.angle, each.distance), default=None)
        if jump is None:
            return ""
        if not jump.angle:
            return f"'{jump.bone}' moves {metres(jump.distance)} at frame {jump.frame:.7g}"
        return f"'{jump.bone}' turns {math.degrees(jump.angle):.0f} degrees at frame {jump.frame:.7g}"

    def to_json(self) -> str:
        """The report as JSON text; docs/reference/headless.md lists its fields."""

        def values(*names: str) -> dict[str, Any]:
            return {name: _plain(getattr(self, name)) for name in names}

        solved, tolerances = self.solved_count(), (self.tolerance, self.angle_tolerance)
        content = {
            "format": "ccd_rig.bake_report",
            "version": 1,
            **values("armature", "action", "frame_start", "frame_end", "step"),
            **values("tolerance", "angle_tolerance"),
            "solver": self.solver.name,
            **values("start", "from_rest"),
            "summary": self.summary(),
            "frames_solved": solved,
            "frames_reached": solved - self.unsolved_count(),
            "frames_eased": len({entry.frame for entry in self.entries.eased()}),
            "frames_gave_way": len({entry.frame for entry in self.entries.gave_way(*tolerances)}),
            **values("fit", "foot_slips", "smoothed", "helped", "largest_rotation", "body", "loop"),
            **values("findings"),
            "seconds": round(self.seconds, 3),
            **values("keys", "keys_before", "switched_to_fk", "warnings", "check"),
        }
        # One row per line: the text stays readable and can be compared line by line.
        entries = ",\n".join("    " + json.dumps(entry._asdict(), allow_nan=False) for entry in self.entries)
        head = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)[: -len("\n}")]
        return f'{head},\n  "entries": [\n{entries}\n  ]\n}}\n'


def _scaled(value: Any, factor: float, is_length: bool = False) -> Any:
    """Multiply the lengths in a part of a report."""
    if isinstance(value, Entries):
        return value.scaled(factor)
    if isinstance(value, tuple):
        return tuple(_scaled(each, factor) for each in value)
    if isinstance(value, Peak):
        return replace(value, amount=factor * value.amount) if is_length else value
    if is_dataclass(value) and not isinstance(value, type):
        lengths = {each.name: bool(each.metadata) for each in fields(value)}
        return replace(
            value, **{name: _scaled(getattr(value, name), factor, kind) for name, kind in lengths.items()}
        )
    return factor * value if is_length and value is not None else value


def _plain(value: Any) -> Any:
    """A value of a report for JSON; runs of frames and findings with their words."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, WeightedFit | Check):
        return value.content()
    if isinstance(value, Smoothed | Helped | Finding):
        return {**asdict(value), "words": value.words()}
    return asdict(value) if is_dataclass(value) else value


def is_stream(path: str | os.PathLike[str] | int) -> bool:
    """Whether a path is a device or pipe, such as /dev/stdout, or an open file by its number."""
    if isinstance(path, int):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:  # writing will raise the reason
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def save(report: BakeReport | Sequence[BakeReport], path: str | os.PathLike[str] | int) -> None:
    """Write a report, or those of several armatures, as one JSON file, see `write`."""
    if isinstance(report, BakeReport):
        write(report.to_json(), path)
        return
    contents = [json.loads(each.to_json()) for each in report]
    content = {"format": "ccd_rig.bake_reports", "version": 1, "reports": contents}
    write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def write(words: str, path: str | os.PathLike[str] | int) -> None:
    """Write words: a file as a whole or not at all; an open file, device or pipe (/dev/stdout) directly.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    if not isinstance(path, int) and not is_stream(path):
        with replacing(path) as temporary:
            temporary.write_text(words, encoding="utf-8")
        return
    try:
        with open(path, "w", encoding="utf-8", closefd=not isinstance(path, int)) as stream:
            stream.write(words)
    except OSError as error:
        name = "standard output" if isinstance(path, int) else path
        raise WriteError(f"cannot write {name}: {error.strerror}") from error
