"""What a bake reached: one row per frame and constraint, in words and as JSON. Knows nothing of Blender."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ...settings import Solver, SolverSettings
from ..whole_files import WriteError, replacing
from .entries import Entries
from .finding import Finding, Trouble
from .report_parts import (
    SLERPED,
    BodyReport,
    Check,
    Entry,
    FootSlip,
    LargestRotation,
    Loop,
    Smoothed,
    WeightedFit,
    metres,
    off,
)


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
        smoothed: frames whose poses frames beside them have moved, in order of time.
        body: what became of the bone that carries the figure; None where no constraint plants a bone.
        loop: the range, if base poses and targets end as they begin.
        findings: what an animator would see, by constraint and then in time.
        check: what plays after the bake; None if nobody looked.
        switched_to_fk: names of bones whose switches between IK and FK were keyed to FK.
        warnings: what the checks before the bake have found, and why the kernel runs uncompiled.
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
    entries: Entries
    angle_tolerance: float = SolverSettings().angle_tolerance
    solver: Solver = SolverSettings().solver
    start: str = "ACTION"
    from_rest: tuple[str, ...] = ()
    largest_rotation: LargestRotation | None = None
    foot_slips: tuple[FootSlip, ...] = ()
    fit: WeightedFit | None = None
    smoothed: tuple[Smoothed, ...] = ()
    body: BodyReport | None = None
    loop: Loop | None = None
    findings: tuple[Finding, ...] = ()
    check: Check | None = None
    switched_to_fk: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    keys: int = 0
    keys_before: int = 0

    def worst(self) -> Entry:
        """The row that is farthest off, in tolerances; the earliest of equals."""
        return self.entries.worst(self.tolerance, self.angle_tolerance)

    def largest_jump(self) -> Finding | None:
        """Of the jumps that were found; None where there are none."""
        found = (each for each in self.findings if each.trouble is Trouble.JUMP)
        return max(found, key=lambda each: each.angle, default=None)

    def unsolved(self) -> tuple[Entry, ...]:
        """Rows of solved frames where the constraint was not reached within the tolerance."""
        return self.entries.missed()

    def unsolved_count(self) -> int:
        """How many solved frames miss at least one constraint."""
        return self.entries.missed_frames()

    def solved_count(self) -> int:
        """How many frames were solved, with at least one constraint in force."""
        return self.entries.solved_frames()

    def summary(self) -> str:
        """One sentence for people, such as "118 of 120 frames reached; worst 0.0040 m at frame 57 (Hand)".

        Goals that pull against each other are told as a weighted fit; where no frame reaches all of them,
        that stands in place of the count. How far planted bones slide, and the bone that jumps most, are
        named too.
        """
        solved = self.solved_count()
        reached = solved - self.unsolved_count()
        worst = self.worst()
        # With a step there are frames that nobody asked about, whether they have keys or not.
        frames = ("solved " if self.step > 1 else "") + ("frames" if solved != 1 else "frame")
        who = worst.constraint + (", between solved frames" if worst.status == SLERPED else "")
        fit = "" if self.fit is None else self.fit.words()
        parts = (
            f"{reached} of {solved} {frames} reached" if reached or not fit else "",
            fit,
            self._unsolved_range(),
            f"worst {off(worst.residual, worst.angle)} at frame {worst.frame:g} ({who})",
            _short(self.findings),
            _slide(self.foot_slips),
            "" if self.body is None else self.body.words(),
            self._smoothed(),
            "" if self.loop is None else self.loop.words(),
            self._pop(),
            _rested(self.from_rest),
            f"switched to FK: {', '.join(self.switched_to_fk)}" if self.switched_to_fk else "",
            "" if self.keys == self.keys_before else f"{self.keys} of {self.keys_before} keys kept",
        )
        return "; ".join(filter(None, parts))

    def _unsolved_range(self) -> str:
        """How many frames of the range are not solved: nothing was in force there, or they got no keys."""
        total = self.frame_end - self.frame_start + 1
        left = total - self.solved_count()
        return f"{left} of {total} frames are not solved" if self.step == 1 and left > 0 else ""

    def _smoothed(self) -> str:
        seen = [each for each in self.smoothed if each.is_seen]
        if not seen:
            return ""
        more = f" and {len(seen) - 1} more" if len(seen) > 1 else ""
        return f"smoothed at {seen[0].span()} ({seen[0].constraints[0]}){more}"

    def advice(self) -> str:
        """That a bone jumps, or nothing."""
        turn = self.largest_jump()
        if turn is None:
            return ""
        return f"Bone '{turn.bone}' turns {math.degrees(turn.angle):.0f} degrees at frame {turn.frame:g}"

    def _pop(self) -> str:
        turn = self.largest_jump()
        if turn is None:
            return ""
        return f"'{turn.bone}' turns {math.degrees(turn.angle):.0f} degrees at frame {turn.frame:g}"

    def to_json(self) -> str:
        """The report as JSON text.

        An object with `format` ("ccd_rig.bake_report"), `version` (1), `armature`, `action`, `frame_start`,
        `frame_end`, `step`, `tolerance` (world metres), `angle_tolerance` (radians), `solver` (its name),
        `start` (ACTION, ORIGINAL, REST or POSE), `from_rest` (names of bones), `summary` (words),
        `frames_solved`, `frames_reached` (numbers of frames), `fit` (null, or of the
        missed frames the weighted `rms`, the `mean` and the `worst` of the frames' own, world metres, the
        `worst_frame`, and `frames`, a list of objects with `frame` and `rms`), `largest_rotation` (null, or
        `angle` in radians per frame, `frame` and `bone`), `foot_slips` (a list of objects with the fields of
        `FootSlip`; empty where nothing is planted), `smoothed` (a list of objects with the fields of
        `Smoothed` and `words`; empty where every frame goes the way that its base pose leads), `body`
        (null, or the fields of `BodyReport`), `loop` (null, or the fields of `Loop`), `findings` (a list of
        objects with the fields of `Finding` and `words`), `seconds` (of the bake), `keys` and `keys_before`
        (how many were written, and before any were left out), `switched_to_fk` (names of bones whose
        switches between IK and FK were keyed), `warnings` (what the checks before the bake
        have found, a list of sentences), `check` (null, or `seconds`, `frames`, `words` and `results`, a list
        of objects with the fields of `PlaybackResult`, null where these are infinite), and `entries`, a list
        of objects with the fields of `Entry`: `frame`, `constraint`, `status`, `residual`, `keyed_residual`
        (world metres), `influence`, `angle` and `keyed_angle` (radians).
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
            "smoothed": [{**asdict(each), "words": each.words()} for each in self.smoothed],
            "largest_rotation": None if self.largest_rotation is None else asdict(self.largest_rotation),
            "body": None if self.body is None else asdict(self.body),
            "loop": None if self.loop is None else asdict(self.loop),
            "findings": [{**asdict(each), "words": each.words()} for each in self.findings],
            "seconds": round(self.seconds, 3),
            "keys": self.keys,
            "keys_before": self.keys_before,
            "switched_to_fk": list(self.switched_to_fk),
            "warnings": list(self.warnings),
            "check": None if self.check is None else self.check.content(),
        }
        # One row per line: the text stays readable and can be compared line by line.
        entries = ",\n".join("    " + json.dumps(entry._asdict(), allow_nan=False) for entry in self.entries)
        head = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)[: -len("\n}")]
        return f'{head},\n  "entries": [\n{entries}\n  ]\n}}\n'


def is_stream(path: Path) -> bool:
    """Whether a path leads to a device or pipe, such as /dev/stdout."""
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing there, or no way to it: what is in the way is said when it is written
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def save(report: BakeReport, path: str | os.PathLike[str]) -> None:
    """Write the report as JSON, see `write`."""
    write(report.to_json(), path)


def save_all(reports: Sequence[BakeReport], path: str | os.PathLike[str]) -> None:
    """Write the reports of several armatures as one JSON file, see `write`."""
    parts = [json.loads(report.to_json()) for report in reports]
    content = {"format": "ccd_rig.bake_reports", "version": 1, "reports": parts}
    write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def write(words: str, path: str | os.PathLike[str]) -> None:
    """Write words: a file as a whole or not at all; a device or pipe (/dev/stdout) as it comes.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    stream = Path(path)
    if is_stream(stream):
        try:
            stream.write_text(words, encoding="utf-8")
        except OSError as error:
            raise WriteError(f"cannot write {stream}: {error.strerror}") from error
        return
    with replacing(path) as temporary:
        temporary.write_text(words, encoding="utf-8")


def _short(findings: Sequence[Finding]) -> str:
    """What to do about targets that no chain gets to."""
    names = {each.constraint for each in findings if each.trouble is Trouble.SHORT}
    if len(names) == 1:
        return "a target is out of reach: bring it nearer to its chain, or the figure to it"
    return f"{len(names)} targets are out of reach: bring them nearer, or the figure" if names else ""


def _slide(foot_slips: Sequence[FootSlip]) -> str:
    if not foot_slips:
        return ""
    return f"planted bones slide {metres(max(slip.played_distance for slip in foot_slips))}"


def _rested(bones: Sequence[str]) -> str:
    if not bones:
        return ""
    first, others = bones[0], len(bones) - 1
    who = f"'{first}'" + (f" and {others} more" if others else "")
    return f"{who} posed without keys, baked from rest"


def _fit_content(fit: WeightedFit) -> dict[str, object]:
    worst = fit.worst()
    return {
        "rms": fit.rms,
        "mean": fit.mean(),
        "worst": worst.rms,
        "worst_frame": worst.frame,
        "frames": [each._asdict() for each in fit.frames],
    }
