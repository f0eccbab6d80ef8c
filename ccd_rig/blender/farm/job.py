# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job bakes: its shots with the settings of their bakes, as `settings.json` of a bundle holds them."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import bpy

from ... import json_text
from ...errors import InvalidInput, RigError
from ...json_text import shown
from ...solvers.stepping import result_of
from ..bake.settings import BakeSettings
from ..checks import setup
from ..properties.constraint_values import Constraint, Kind
from ..whole_files import read_text

ROLL = 64
"""Frames before and after a chunk that are solved too: as far as sudden turns reach that `solvers.motion`
smooths."""


class Span(NamedTuple):
    """A chunk of a shot, in frames.

    Attributes:
        first, last: that are taken from it.
        solve_first, solve_last: that are solved for it.
    """

    first: int
    last: int
    solve_first: int
    solve_last: int

    def words(self) -> str:
        """Such as "frames 501 to 1000"."""
        return f"frames {self.first} to {self.last}"


def spans(first: int, last: int, chunk: int) -> list[Span]:
    """Chunks of about the same size that make up a range.

    Args:
        first, last: frames of the range.
        chunk: most frames of a chunk; 0 for a single one.
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
"""Letters of a reason that a message shows."""


def read_settings(path: Path, kind: tuple[str, int], made_of: Callable[[dict[str, Any]], T]) -> T:
    """What a settings file says.

    Args:
        path: of the file.
        kind: format and version that it must have.
        made_of: what its content comes to; may raise what a wrong content leads to.

    Raises:
        RigError: the file cannot be read, or is none of this version's.
    """
    wrong = f"{path} is no settings file of this version of CCD Rig: write the bundle anew"
    try:
        content = json_text.parse(read_text(path))
        if (content["format"], content["version"]) != kind:
            raise RigError(wrong)
        return made_of(content)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise RigError(f"{wrong} ({json_text.shown(str(error), LONGEST)})") from error


def decoded(kind: Any, value: Any, name: str = "content") -> Any:
    """A value of a type, from what JSON has for it: dataclasses are objects, tuples lists, enums names.

    Args:
        kind: a type, as annotations name it.
        value: of the JSON.
        name: of the field.

    Raises:
        TypeError, KeyError: it is none of this type; names the field.
    """
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for each in kinds:
            try:
                return decoded(each, value, name)
            except (TypeError, KeyError):
                continue
    elif dataclasses.is_dataclass(kind) and isinstance(value, dict):
        known = get_type_hints(kind)
        return kind(**{key: decoded(known.get(key), each, key) for key, each in value.items()})  # type: ignore[operator]
    elif origin is Mapping and isinstance(value, dict):
        return {decoded(kinds[0], key, name): decoded(kinds[1], each, key) for key, each in value.items()}
    elif origin is tuple and isinstance(value, list):
        each_of = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
        if len(each_of) == len(value):
            return tuple(decoded(each, part, name) for each, part in zip(each_of, value, strict=True))
    elif isinstance(kind, type):
        if issubclass(kind, enum.Enum) and isinstance(value, str):
            return kind[value]
        if type(value) is kind or (kind is float and type(value) is int):
            return value
    raise TypeError(f"{name} must not be {json_text.shown(json.dumps(value))}")


FORMAT, VERSION = "ccd_rig.farm_settings", 1


@dataclass(frozen=True)
class Shot:
    """One .blend file and what is baked in it.

    Attributes:
        file: name of the file, without its folder; unique in a job, in capitals or not.
        armatures: {name of the armature object: its settings}; all of them have one range.
        chunk: most frames of a chunk; 0: the shot is baked whole.
    """

    file: str
    armatures: Mapping[str, BakeSettings]
    chunk: int = 0

    @property
    def name(self) -> str:
        """Of the shot, and of what is written for it."""
        return Path(self.file).stem

    @property
    def settings(self) -> BakeSettings:
        """Those of the first armature."""
        return next(iter(self.armatures.values()))

    def spans(self) -> list[Span]:
        """Its chunks; a shot that is baked whole has one."""
        settings = self.settings
        return spans(settings.frame_start, settings.frame_end, self.chunk)

    @property
    def is_split(self) -> bool:
        """Whether it has several chunks, which have to be joined."""
        return len(self.spans()) > 1

    def content(self) -> dict[str, Any]:
        """As JSON takes it."""
        armatures = {name: _settings_content(each) for name, each in self.armatures.items()}
        return {"file": self.file, "chunk": self.chunk, "armatures": armatures}


def to_json(shots: Sequence[Shot]) -> str:
    """The text of `settings.json`."""
    content = {"format": FORMAT, "version": VERSION, "shots": [shot.content() for shot in shots]}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path) -> list[Shot]:
    """The shots of a job.

    Raises:
        RigError: the file cannot be read, or is none of this version's.
    """
    return read_settings(path, (FORMAT, VERSION), lambda content: list(map(_shot, content["shots"])))


def _shot(content: Mapping[str, Any]) -> Shot:
    for settings in content["armatures"].values():
        settings.pop("order", None)  # of earlier versions; frames are solved each for itself
    read: Shot = decoded(Shot, content)
    return read


def shot_of(shots: Sequence[Shot], path: Path) -> Shot:
    """The shot of a file, wherever a farm has put it.

    Raises:
        RigError: the job has none.
    """
    for shot in shots:
        if shot.file == path.name:
            return shot
    raise RigError(
        f"{path.name} is no shot of this job: {shown(', '.join(shot.file for shot in shots), LONGEST)}"
    )


def _settings_content(settings: BakeSettings) -> dict[str, Any]:
    plain = asdict(settings)
    return {name: value.name if isinstance(value, enum.Enum) else value for name, value in plain.items()}


class Plan(NamedTuple):
    """A shot, and why it is baked whole although it is longer than a chunk; empty if it is not."""

    shot: Shot
    whole_because: str


def plan(scene: bpy.types.Scene, settings: Mapping[bpy.types.Object, BakeSettings], chunk: int) -> Plan:
    """What is baked of the open file.

    Args:
        scene: that is baked.
        settings: of each armature object.
        chunk: most frames of a chunk; 0 for whole shots.

    Raises:
        CCDRigError: there is nothing to bake, or the set-up cannot be baked.
    """
    if not settings:
        raise RigError("no armature in the file's active scene has enabled CCD constraints")
    reason = "" if len(settings) == 1 else "several rigs are baked together"
    for thing, own in settings.items():
        asked = own.constraints, own.destination, own.body, own.body_helps
        ready = result_of(setup.require(thing, scene, *asked))
        reason = reason or _one_after_the_other(own, ready.constraints)
    armatures = {thing.name: own for thing, own in settings.items()}
    shot = Shot(Path(bpy.data.filepath).name, armatures, chunk)
    if reason and shot.is_split:
        return Plan(Shot(shot.file, armatures), reason)
    return Plan(shot, "")


def _one_after_the_other(settings: BakeSettings, constraints: tuple[Constraint, ...]) -> str:
    """Why frames hang on those before them, so that no chunk can be solved apart; empty if none do."""
    if any(each.body_length for each in constraints):
        return "the body helps chains, whose frames are solved together"
    if any(each.kind is Kind.PLANT for each in constraints):
        return "where planted bones are held depends on all frames before"
    if settings.preroll:
        return "it has a preroll"
    if settings.step > 1:
        return "its solved frames are not next to each other"
    if settings.keys.name not in ("EVERY_FRAME", "SOLVED_FRAMES"):
        return "its frames are those of other keys"
    return ""
