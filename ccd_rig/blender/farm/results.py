# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of tasks: records of their inputs, solved chunks, and the table of a job.

By its record a second run repeats only work whose inputs have changed. Chunks are files, written atomically,
and joined to a shot. The table is written as CSV and as aligned text.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import bpy
import numpy as np

from ... import json_text
from ...errors import CCDRigError, RigError
from ...json_text import printable
from ...maths import batch
from ...maths.batch import Array
from ..atomic_write import read_text, real_folder, replacing
from ..bake.bake_frames import BakeFrames, SmoothedGroup, Solutions
from ..bake.report import SEAM, BakeReport, write
from ..bake.trouble import Trouble
from ..keys import channels
from ..retarget.retarget import Retargeted, warnings
from . import bundle
from .shots import Shot, Span

FORMAT, VERSION = "ccd_rig.farm_record", 2
BLOCK = 1 << 20
CODE = Path(__file__).resolve().parents[2]
"""Folder of the package."""


@dataclass(frozen=True)
class Record:
    """Inputs and outputs of a result."""

    made_with: str  # hash of settings, frames, code and Blender, see `made_with`
    # {path relative to the shot's folder: hash} of the .blend file and the files that it links.
    inputs: Mapping[str, str]
    outputs: Mapping[str, str] = field(default_factory=dict)  # {name: hash} of files beside the record
    rows: tuple[Mapping[str, Any], ...] = ()  # of the table

    def is_current(self, path: Path, made_with: str) -> bool:
        """Whether a run for the shot or clip at `path` would have the same inputs."""
        return (
            self.made_with == made_with
            and path.name in self.inputs
            and all(_hash_if_there(path.parent / name) == known for name, known in self.inputs.items())
        )

    def is_whole(self, folder: Path) -> bool:
        """Whether its outputs are unchanged since they were written."""
        return all(_hash_if_there(folder / name) == known for name, known in self.outputs.items())

    def save(self, path: Path) -> None:
        """Write it as JSON; raises WriteError."""
        content = {"format": FORMAT, "version": VERSION, "sha256": self._digest(), **asdict(self)}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def _digest(self) -> str:
        """Hash of its fields, by which damaged and edited records are recognised."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def load_record(path: Path) -> Record | None:
    """Load a record; None, and the work is repeated, if it is missing, damaged or from another version."""
    try:
        text = read_text(path)
        record = json_text.read(text, Record, "the record", (FORMAT, VERSION))
    except CCDRigError:
        return None
    return record if record._digest() == json_text.parse(text).get("sha256") else None


def made_with(content: Mapping[str, Any], span: Span | None = None) -> str:
    """Return a hash of the inputs beside files: settings, frames, this code and this Blender.

    Args:
        content: of a shot or a clip, as JSON values.
        span: of a chunk; None for a shot or clip.
    """
    words = [content, span, _code(), channels.running()]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def inputs_of_open_file() -> dict[str, str]:
    """Hashes of the open .blend file, its libraries and caches, by their paths from the file's folder."""
    path = Path(bpy.data.filepath)
    return inputs((path, *linked_files()))


def inputs(paths: Sequence[Path]) -> dict[str, str]:
    """Hashes of files by their paths from the folder of the first."""
    folder = real_folder(paths[0]).parent
    return {_relative(folder, real_folder(path)): sha256(path) for path in paths}


def linked_files() -> list[Path]:
    """Files that the open file uses and that may move something in it, missing ones left out.

    These are libraries, caches and all else that it names, but for fonts, sounds, movies and the images of
    materials.
    """
    textures = {getattr(texture, "image", None) for texture in bpy.data.textures}
    images = [image for image in bpy.data.images if image not in textures]
    still = (*images, *bpy.data.sounds, *bpy.data.fonts, *bpy.data.movieclips)
    left_out = {real_folder(bpy.path.abspath(each.filepath, library=each.library)) for each in still}
    paths = {real_folder(path) for path in bpy.utils.blend_paths(absolute=True)}
    return sorted(path for path in paths - left_out if path.is_file())


def sha256(path: Path) -> str:
    """Hash of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _hash_if_there(path: Path) -> str:
    try:
        return sha256(path) if path.is_file() else ""  # a device's content may have no end
    except OSError:
        return ""


def _relative(folder: Path, path: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


@functools.cache
def _code() -> str:
    """Hash of this package's source."""
    digest = hashlib.sha256()
    for file in sorted(CODE.rglob("*.py")):
        digest.update(file.relative_to(CODE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


# Solved chunks ---------------------------------------------------------------------------------------------

DIGEST_SIZE = hashlib.sha256().digest_size
SAME = math.radians(0.01)
"""Radians up to which chunks agree: solves of one frame in two ranges differ by less on one IK branch."""
SAME_SLIDE = 1e-3
"""Largest difference of slides between chunks that agree, in the slides' units."""


@dataclass(frozen=True)
class Chunk:
    """Solved frames of a chunk with the frames rolled on both sides. S, J and K as in `BakeFrames`."""

    record: Record  # its inputs
    joints: tuple[str, ...]  # names
    constraints: tuple[str, ...]  # names
    frames: Array  # (S,)
    rotations: Array  # (S, J, 4)
    slides: Array  # (S, K)
    # (S) outcomes of constraints per frame, {index of the constraint: outcome}.
    states: tuple[Mapping[int, str], ...]
    smoothed: tuple[tuple[SmoothedGroup, ...], ...]  # (S) joint groups that smoothing has moved, per frame

    @classmethod
    def of(cls, bake_frames: BakeFrames, record: Record) -> Chunk:
        """Take the solutions of a bake over the frames of a chunk."""
        rows = bake_frames.solved_rows.tolist()
        return cls(
            record,
            tuple(joint.name for joint in bake_frames.skeleton.joints),
            tuple(constraint.name for constraint in bake_frames.constraints),
            bake_frames.solved_frames,
            bake_frames.solved,
            bake_frames.solved_slides,
            tuple(bake_frames.states.get(row, {}) for row in rows),
            tuple(bake_frames.smoothed.get(row, ()) for row in rows),
        )

    def save(self, path: Path) -> None:
        """Write it; raises WriteError."""
        words = {
            "record": asdict(self.record),
            "joints": self.joints,
            "constraints": self.constraints,
            "states": [sorted(states.items()) for states in self.states],
            "smoothed": self.smoothed,
        }
        text = np.frombuffer(json.dumps(words).encode(), np.uint8)
        archive = io.BytesIO()
        np.savez(archive, words=text, frames=self.frames, rotations=self.rotations, slides=self.slides)
        content = archive.getvalue()
        with replacing(path) as temporary:
            temporary.write_bytes(content + hashlib.sha256(content).digest())


def load_chunk(path: Path) -> Chunk | None:
    """Load a chunk; None if the file is missing, damaged, or from another version."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    content, digest = written[:-DIGEST_SIZE], written[-DIGEST_SIZE:]
    if (
        digest != hashlib.sha256(content).digest()
    ):  # before it is read: damage can stand anywhere in an archive
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            words = json_text.parse(arrays["words"].tobytes().decode())
            frames, rotations, slides = (arrays[name] for name in ("frames", "rotations", "slides"))
        return Chunk(
            Record(**{**words["record"], "rows": tuple(words["record"]["rows"])}),
            tuple(words["joints"]),
            tuple(words["constraints"]),
            frames,
            rotations,
            slides,
            tuple({int(c): str(state) for c, state in states} for states in words["states"]),
            tuple(
                tuple(SmoothedGroup(tuple(c), float(angle)) for c, angle in groups)
                for groups in words["smoothed"]
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):  # another version's
        return None


class Seam(NamedTuple):
    """Transition between two chunks."""

    frame: float  # first frame taken from the later chunk
    angle: float  # radians, the largest rotation of a bone between the two chunks' poses at that frame
    bone: str  # name of that bone


def joined(bake_frames: BakeFrames, chunks: Sequence[tuple[Span, Chunk]], seams: list[Seam]) -> Solutions:
    """Join the chunks of a shot to its solutions.

    Args:
        bake_frames: of the shot, not solved.
        chunks: in order of frames.
        seams: gets the transitions between the chunks.

    Raises:
        RigError: chunks are not of these frames, bones or constraints, or disagree where they meet.
    """
    joints = tuple(joint.name for joint in bake_frames.skeleton.joints)
    names = tuple(constraint.name for constraint in bake_frames.constraints)
    solved, slides = np.empty_like(bake_frames.solved), np.empty_like(bake_frames.solved_slides)
    states: dict[int, Mapping[int, str]] = {}
    smoothed: dict[int, tuple[SmoothedGroup, ...]] = {}
    rows = bake_frames.solved_rows.tolist()
    starts = [-math.inf]
    for (_, earlier), (span, later) in pairwise(chunks):
        seams.append(_seam(span, earlier, later))
        starts.append(seams[-1].frame)
    starts.append(math.inf)
    for k, (span, chunk) in enumerate(chunks):
        wanted = (bake_frames.solved_frames >= starts[k]) & (bake_frames.solved_frames < starts[k + 1])
        places = np.searchsorted(chunk.frames, bake_frames.solved_frames[wanted])
        if (
            (chunk.joints, chunk.constraints) != (joints, names)
            or chunk.slides.shape[1:] != slides.shape[1:]
            or not np.isin(bake_frames.solved_frames[wanted], chunk.frames).all()
        ):
            raise RigError(
                f"{span.words()} were solved for other bones, constraints or frames: solve them again"
            )
        solved[wanted], slides[wanted] = chunk.rotations[places], chunk.slides[places]
        for place, s in zip(places.tolist(), np.flatnonzero(wanted).tolist(), strict=True):
            states[rows[s]] = chunk.states[place]
            if chunk.smoothed[place]:
                smoothed[rows[s]] = chunk.smoothed[place]
    return Solutions(solved, slides, states, smoothed)


def _seam(span: Span, earlier: Chunk, later: Chunk) -> Seam:
    """Choose the frame from which the later chunk is taken.

    This is its first frame if the chunks agree there. Else it is the frame where they are nearest to each
    other, within half of the frames that both have solved. `span` is the later chunk's.
    """
    frames, before, after = np.intersect1d(earlier.frames, later.frames, return_indices=True)
    near = np.abs(frames - span.first) <= (span.first - span.solve_first) / 2
    if not near.any() or earlier.joints != later.joints or earlier.slides.shape[1:] != later.slides.shape[1:]:
        raise RigError(f"{span.words()} and those before were not solved for one another: solve them again")
    frames, before, after = frames[near], before[near], after[near]
    angles = batch.angles_between(
        batch.unit(earlier.rotations[before], axis=-1), batch.unit(later.rotations[after], axis=-1), axis=-1
    )
    slide_errors = np.abs(earlier.slides[before] - later.slides[after]).max(axis=1, initial=0.0)
    errors = np.maximum(angles.max(axis=1) / SAME, slide_errors / SAME_SLIDE)
    distances = np.abs(frames - span.first) / len(frames)
    best = int(np.lexsort((distances, np.maximum(errors, 1.0)))[0])
    bone = int(np.argmax(angles[best]))
    seam = Seam(float(frames[best]), float(angles[best, bone]), earlier.joints[bone])
    if seam.angle > SEAM or slide_errors[best] > SAME_SLIDE:
        raise RigError(
            f"the chunks that meet at frame {seam.frame:.7g} disagree by {math.degrees(seam.angle):.2f} "
            f"degrees (bone '{seam.bone}'): several ways lead to the targets there, or none. Bake this "
            "shot whole (--chunk 0), or with other chunks"
        )
    return seam


# Table -----------------------------------------------------------------------------------------------------


def row_of(shot: Shot, report: BakeReport, seams: Sequence[Seam] = ()) -> dict[str, Any]:
    """Return the row of an armature of a shot.

    `worst`: tip to target, world metres; `seam`: largest rotation between chunks where they meet, degrees;
    `mismatches`: constraints that do not play as they were baked; `seconds`: of the bake that wrote the file.
    """
    worst, solved = report.worst(), report.solved_count()
    between = [each for each in report.findings if each.trouble is Trouble.BETWEEN]
    far, frame = max([(worst.residual, worst.frame), *((each.distance, each.frame) for each in between)])
    largest_seam = max((seam.angle for seam in seams), default=0.0)
    return {
        "shot": shot.name,
        "armature": report.armature,
        "first": report.frame_start,
        "last": report.frame_end,
        "frames_solved": solved,
        "frames_reached": solved - report.unsolved_count(),
        "worst": round(far, 6),
        "worst_frame": frame,
        "chunks": len(shot.spans()),
        "seam": round(math.degrees(largest_seam), 6),
        "mismatches": "" if report.check is None else len(report.check.mismatches()),
        "seconds": round(report.seconds, 2),
    }


FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""First characters of formulas in spreadsheets; the last four are full-width, as some of them take too."""


def row_of_clip(name: str, armature: str, result: Retargeted, seconds: float) -> dict[str, Any]:
    """Return the row of a clip on an armature.

    `drift`: largest displacement of a foot within a contact, metres; `slide`: mean speed of feet in contact,
    metres per second; `off`: largest error of a limb's end that follows the source's, parts of the limb's
    length; `hips`: largest lowering of the hips, metres; `seconds`: of the task.
    """
    measures = result.measures
    slides = [stance.slide for stance in measures.stances]
    return {
        "clip": name,
        "armature": armature,
        "first": float(result.frames[0]),
        "last": float(result.frames[-1]),
        "frames": len(result.frames),
        "contacts": len(measures.stances),
        "drift": round(max((stance.drift for stance in measures.stances), default=0.0), 6),
        "slide": round(sum(slides) / max(len(slides), 1), 6),
        "off": round(max((measures.errors[limb] for limb in measures.followed), default=0.0), 6),
        "hips": round(measures.moved, 6),
        "warnings": len(warnings(result)),
        "seconds": round(seconds, 2),
    }


def write_table(results: Mapping[str, str], folder: Path) -> str:
    """Write `table.csv` and `table.txt` of the rows in records; returns the text.

    Args:
        results: {name: hash by `made_with`} of all results of a job, at least one.

    Raises:
        RigError: results are missing or not the recorded ones; names them. Nothing is written then.
        WriteError: the folder cannot be written.
    """
    rows: list[Mapping[str, Any]] = []
    missing = []
    for name, made_with in results.items():
        record = load_record(folder / bundle.names(name).record)
        if record is None or record.made_with != made_with or not record.is_whole(folder):
            missing.append(name)
        else:
            rows += record.rows
    if missing:
        raise RigError(
            f"no result of {', '.join(missing)} for these settings in {folder}: its task failed, or did not "
            "run. Run it again; the table is not written"
        )
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    lines = [tuple(rows[0]), *(tuple(printable(str(value)) for value in row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(map(str.ljust, line, widths)) for line in lines)
    text = "".join(f"{line.rstrip()}\n" for line in padded)
    write(sheet.getvalue(), folder / "table.csv")
    write(text, folder / "table.txt")
    return text


def _cell(value: Any) -> Any:
    """Return a value for a spreadsheet: text that starts like a formula gets a quote before it."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
