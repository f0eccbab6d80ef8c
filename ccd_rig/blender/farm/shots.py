# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a job, as `settings.json` of a bundle: shots to bake, or clips to retarget to an armature.

A shot may be divided into chunks. A clip is one task: its contacts and the figure's travel depend on all of
its frames.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import bpy

from ... import json_text
from ...errors import InvalidInput, RigError
from ...json_text import shown
from ...solvers.stepping import result_of
from .. import checks
from ..atomic_write import read_text
from ..bake.settings import BakeSettings
from ..properties.constraint_values import Constraint
from ..retarget.retarget import RetargetChoice
from .settings import CHUNK

ROLL = 64
"""Frames on both sides of a chunk that are solved too: the reach of the smoothing in `solvers.motion`."""


class Span(NamedTuple):
    """Frame range of a chunk, ends included."""

    # Of the frames that the shot takes from it.
    first: int
    last: int
    # Of the frames that are solved for it.
    solve_first: int
    solve_last: int

    def words(self) -> str:
        """Range as text, such as "frames 501 to 1000"."""
        return f"frames {self.first} to {self.last}"


def spans(first: int, last: int, chunk: int) -> list[Span]:
    """Divide a range into chunks of about the same size.

    Args:
        first, last: frames of the range.
        chunk: maximum of frames of a chunk; 0 for a single chunk.
    """
    count = last - first + 1
    if chunk <= 0 or count <= chunk:
        return [Span(first, last, first, last)]
    size = math.ceil(count / math.ceil(count / chunk))
    starts = [*range(first, last + 1, size), last + 1]
    return [
        Span(start, end - 1, max(first, start - ROLL), min(last, end + ROLL - 1))
        for start, end in pairwise(starts)
    ]


T = TypeVar("T")
LONGEST = 200
"""Characters of a reason that a message shows."""


def read_settings(path: Path, kind: type[T], mark: tuple[str, int]) -> T:
    """Read a settings file; raises RigError if it cannot be read, or another version has written it."""
    text = read_text(path)
    try:
        return json_text.read(text, kind, "the job", mark)
    except InvalidInput as error:
        raise RigError(
            f"{path} is no settings file of this version of CCD Rig: write the bundle anew ({error})"
        ) from error


def _bake_settings(value: Any, place: str) -> BakeSettings:
    if isinstance(value, dict):  # earlier versions wrote an order, which has no effect
        value = {name: each for name, each in value.items() if name != "order"}
    settings: BakeSettings = json_text.decoded(BakeSettings, value, place)
    return settings


SHOTS = ("ccd_rig.farm_settings", 1)
"""Format and version of the settings of a job that bakes shots."""


@dataclass(frozen=True)
class Shot:
    """A .blend file with the settings of its bakes."""

    file: str  # name of the file, without its folder; unique in a job, letters' case disregarded
    # {name of the armature object: settings}; all of them bake one frame range.
    armatures: Mapping[str, Annotated[BakeSettings, _bake_settings]]
    chunk: int = CHUNK  # maximum of frames of a chunk; 0: the shot is baked whole

    @property
    def name(self) -> str:
        """Name of the shot and of its result."""
        return Path(self.file).stem

    @property
    def settings(self) -> BakeSettings:
        """Settings of the first armature."""
        return next(iter(self.armatures.values()))

    def spans(self) -> list[Span]:
        """Frame ranges of its chunks; a shot that is baked whole has one."""
        settings = self.settings
        return spans(settings.frame_start, settings.frame_end, self.chunk)

    @property
    def is_split(self) -> bool:
        """Whether it has several chunks, to be joined."""
        return len(self.spans()) > 1

    def content(self) -> dict[str, Any]:
        """Shot as JSON values."""
        content: dict[str, Any] = json_text.encoded(self)
        return content


def to_json(shots: Sequence[Shot]) -> str:
    """Return the text of `settings.json`."""
    content = {"format": SHOTS[0], "version": SHOTS[1], "shots": [shot.content() for shot in shots]}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class _ShotsFile:
    shots: tuple[Shot, ...]


def read_shots(path: Path) -> tuple[Shot, ...]:
    """Read the shots of a job; raises RigError as `read_settings`."""
    return read_settings(path, _ShotsFile, SHOTS).shots


def shot_of(shots: Sequence[Shot], path: Path) -> Shot:
    """Return the shot of a file; its folder may be any, since farms move files.

    Raises:
        RigError: the job has no such shot.
    """
    for shot in shots:
        if shot.file == path.name:
            return shot
    raise RigError(
        f"{path.name} is no shot of this job: {shown(', '.join(shot.file for shot in shots), LONGEST)}"
    )


def plan(
    scene: bpy.types.Scene, settings: Mapping[bpy.types.Object, BakeSettings], chunk: int
) -> tuple[Shot, str]:
    """Plan the bake of the open file.

    Returns the shot, and the reason to bake it whole although it is longer than a chunk; empty if there is
    none.

    Args:
        settings: {armature object: its settings}.
        chunk: maximum of frames of a chunk; 0 for whole shots.

    Raises:
        CCDRigError: there is nothing to bake, or the set-up cannot be baked.
    """
    if not settings:
        raise RigError("no armature in the file's active scene has enabled CCD constraints")
    reason = "" if len(settings) == 1 else "several rigs are baked together"
    for rig, bake in settings.items():
        chosen = bake.constraints, bake.destination, bake.body, bake.body_helps, float(bake.frame_start)
        ready = result_of(checks.require(rig, scene, *chosen))
        reason = reason or _why_sequential(bake, ready.constraints)
    armatures = {rig.name: bake for rig, bake in settings.items()}
    shot = Shot(Path(bpy.data.filepath).name, armatures, chunk)
    return (Shot(shot.file, armatures), reason) if reason and shot.is_split else (shot, "")


def _why_sequential(settings: BakeSettings, constraints: tuple[Constraint, ...]) -> str:
    """Reason why chunks cannot be solved independently; empty if they can."""
    if any(constraint.body_length for constraint in constraints):
        return "the body helps chains, whose frames are solved together"
    if any(constraint.kind.plants for constraint in constraints):
        return "where planted bones are held depends on all frames before"
    if settings.preroll:
        return "it has a preroll"
    if settings.step > 1:
        return "its solved frames are not next to each other"
    if settings.keys.name not in ("EVERY_FRAME", "SOLVED_FRAMES"):
        return "its frames are those of other keys"
    return ""


CLIPS = ("ccd_rig.farm_clips", 1)
"""Format and version of the settings of a job that retargets clips."""


@dataclass(frozen=True)
class Clips:
    """Clips and the armature that they are retargeted to."""

    files: tuple[str, ...]  # names of the clips, without folders; their stems are unique in a job
    target: str  # name of the .blend file with the armature, without its folder
    armature: str  # name of the armature object that gets the motion
    source_armature: str | None  # name of the armature in each clip; None for the only one
    choice: RetargetChoice  # settings of the retargeting

    def content(self, file: str) -> dict[str, Any]:
        """Settings that the result of one clip depends on, as JSON values."""
        content: dict[str, Any] = json_text.encoded(self)
        del content["files"]
        return {"file": file, **content}

    def to_json(self) -> str:
        """Text of `settings.json`."""
        content = {"format": CLIPS[0], "version": CLIPS[1], **json_text.encoded(self)}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def require(self, clip: Path) -> None:
        """Raise RigError if the job has no such clip."""
        if clip.name not in self.files:
            raise RigError(f"{clip.name} is no clip of this job: {shown(', '.join(self.files), LONGEST)}")


def is_clips_job(path: Path) -> bool:
    """Whether a settings file is of a job that retargets clips.

    Raises:
        RigError: the file cannot be read.
    """
    try:
        content = json_text.parse(read_text(path))
    except json_text.NotJson:
        return False
    return isinstance(content, dict) and content.get("format") == CLIPS[0]


def read_clips(path: Path) -> Clips:
    """Read the clips of a job; raises RigError as `read_settings`."""
    return read_settings(path, Clips, CLIPS)
