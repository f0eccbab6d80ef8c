# SPDX-License-Identifier: GPL-3.0-or-later
"""What a chunk was solved to, as a file that is written whole or not at all; and chunks joined to a shot."""

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
from ..bake.bake_frames import BakeFrames, SmoothedGroup, Solutions
from ..bake.report import SEAM
from ..whole_files import replacing
from .job import Span
from .records import Record

DIGEST_SIZE = hashlib.sha256().digest_size
SAME = math.radians(0.01)
"""Radians up to which chunks agree: so near are the frames of two ranges that are reached and led one way."""
SAME_SLIDE = 1e-3
"""Parts of a slide's unit up to which chunks agree."""


@dataclass(frozen=True)
class Chunk:
    """The solved frames of a chunk, those before and after it included. S, J and K as in `BakeFrames`.

    Attributes:
        record: what it was made from.
        joints: names.
        constraints: names.
        frames: (S,)
        rotations: (S, J, 4)
        slides: (S, K)
        states: (S) of each frame how constraints ended, by their places.
        smoothed: (S) of each frame what the frames beside it have moved.
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
        """What was solved."""
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
    """A chunk; None if there is no such file, none that this version has written, or a damaged one."""
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
    """What stands at a file's end, after the archive."""
    return hashlib.sha256(content).digest()


class Seam(NamedTuple):
    """Where two chunks meet.

    Attributes:
        frame: the first one of the later chunk.
        angle: radians, the largest rotation of a bone from one chunk's pose to the other's at that frame.
        bone: its name.
    """

    frame: float
    angle: float
    bone: str


def joined(bake_frames: BakeFrames, chunks: Sequence[tuple[Span, Chunk]], seams: list[Seam]) -> Solutions:
    """What all frames of a shot were solved to.

    Args:
        bake_frames: of the shot, nothing solved.
        chunks: in order.
        seams: filled.

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
    for (_, one), (span, other) in pairwise(chunks):
        seams.append(_seam(span, one, other))
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


def _seam(span: Span, one: Chunk, other: Chunk) -> Seam:
    """Where the later of two chunks takes over: at its first frame, or if they differ there, where they are
    nearest to each other, half way into the frames that both have solved at most."""
    frames, ours, theirs = np.intersect1d(one.frames, other.frames, return_indices=True)
    near = np.abs(frames - span.first) <= (span.first - span.solve_first) / 2
    if not near.any() or one.joints != other.joints or one.slides.shape[1:] != other.slides.shape[1:]:
        raise RigError(f"{span.words()} and those before were not solved for one another: solve them again")
    frames, ours, theirs = frames[near], ours[near], theirs[near]
    turns = (batch.unit(each, axis=-1) for each in (one.rotations[ours], other.rotations[theirs]))
    angles = batch.angles_between(*turns, axis=-1)
    slid = np.abs(one.slides[ours] - other.slides[theirs]).max(axis=1, initial=0.0)
    off = np.maximum(angles.max(axis=1) / SAME, slid / SAME_SLIDE)
    away = np.abs(frames - span.first) / len(frames)
    best = int(np.lexsort((away, np.maximum(off, 1.0)))[0])
    bone = int(np.argmax(angles[best]))
    seam = Seam(float(frames[best]), float(angles[best, bone]), one.joints[bone])
    if seam.angle > SEAM or slid[best] > SAME_SLIDE:
        raise RigError(
            f"the chunks that meet at frame {seam.frame:g} disagree by {math.degrees(seam.angle):.2f} "
            f"degrees (bone '{seam.bone}'): several ways lead to the targets there, or none. Bake this "
            "shot whole (--chunk 0), or with other chunks"
        )
    return seam
