# SPDX-License-Identifier: GPL-3.0-or-later
"""Solved poses of a chunk as a file, written atomically, and chunks joined to a shot."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ... import json_text
from ...errors import RigError
from ...maths import batch
from ...maths.batch import Array
from ..atomic_write import replacing
from ..bake.bake_frames import BakeFrames, SmoothedGroup, Solutions
from ..bake.report import SEAM
from .records import Record
from .shots import Span

DIGEST_SIZE = hashlib.sha256().digest_size
SAME = math.radians(0.01)
"""Radians up to which chunks agree: solves of one frame in two ranges differ by less on one IK branch."""
SAME_SLIDE = 1e-3
"""Largest difference of slides between chunks that agree, in the slides' units."""


@dataclass(frozen=True)
class Chunk:
    """Solved frames of a chunk with the frames rolled on both sides. S, J and K as in `BakeFrames`.

    Attributes:
        record: its inputs.
        joints: names.
        constraints: names.
        frames: (S,)
        rotations: (S, J, 4)
        slides: (S, K)
        states: (S) outcomes of constraints per frame, {index of the constraint: outcome}.
        smoothed: (S) joint groups that smoothing has moved, per frame.
    """

    record: Record
    joints: tuple[str, ...]
    constraints: tuple[str, ...]
    frames: Array
    rotations: Array
    slides: Array
    states: tuple[Mapping[int, str], ...]
    smoothed: tuple[tuple[SmoothedGroup, ...], ...]

    @classmethod
    def of(cls, bake_frames: BakeFrames, record: Record) -> Chunk:
        """Take the solutions of a bake over the frames of a chunk."""
        rows = np.searchsorted(bake_frames.frames, bake_frames.solved_frames).tolist()
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
            temporary.write_bytes(content + _digest(content))


def load(path: Path) -> Chunk | None:
    """Load a chunk; None if the file is missing, damaged, or from another version."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    content, digest = written[:-DIGEST_SIZE], written[-DIGEST_SIZE:]
    if digest != _digest(content):  # before it is read: damage can stand anywhere in an archive
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


def _digest(content: bytes) -> bytes:
    """Checksum at a file's end, after the archive."""
    return hashlib.sha256(content).digest()


class Seam(NamedTuple):
    """Transition between two chunks.

    Attributes:
        frame: first frame taken from the later chunk.
        angle: radians, the largest rotation of a bone between the two chunks' poses at that frame.
        bone: name of that bone.
    """

    frame: float
    angle: float
    bone: str


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
    rows = np.searchsorted(bake_frames.frames, bake_frames.solved_frames).tolist()
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
            f"the chunks that meet at frame {seam.frame:g} disagree by {math.degrees(seam.angle):.2f} "
            f"degrees (bone '{seam.bone}'): several ways lead to the targets there, or none. Bake this "
            "shot whole (--chunk 0), or with other chunks"
        )
    return seam
