# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of the inputs of results: a second run repeats only work whose inputs have changed."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import bpy

from ... import json_text
from ...errors import RigError
from ..atomic_write import read_text, replacing
from ..keys import file_version
from .shots import Span

FORMAT, VERSION = "ccd_rig.farm_record", 2
BLOCK = 1 << 20
CODE = Path(__file__).resolve().parents[2]
"""Folder of the package."""


@dataclass(frozen=True)
class Record:
    """Inputs and outputs of a result.

    Attributes:
        made_with: hash of settings, frames, code and Blender, see `made_with`.
        inputs: {path relative to the shot's folder: hash} of the .blend file and the files that it links.
        outputs: {name: hash} of files beside the record.
        rows: of the table.
    """

    made_with: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[Mapping[str, Any], ...] = ()

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


def load(path: Path) -> Record | None:
    """Load a record; None, and the work is repeated, if it is missing, damaged or from another version."""
    try:
        content = json_text.parse(read_text(path))
        if (content.pop("format"), content.pop("version")) != (FORMAT, VERSION):
            return None
        digest = content.pop("sha256")
        record = Record(**{**content, "rows": tuple(content["rows"])})
    except (RigError, json_text.NotJson, KeyError, TypeError, AttributeError):
        return None
    return record if record._digest() == digest else None


def made_with(content: Mapping[str, Any], span: Span | None = None) -> str:
    """Return a hash of the inputs beside files: settings, frames, this code and this Blender.

    Args:
        content: of a shot or a clip, as JSON values.
        span: of a chunk; None for a shot or clip.
    """
    words = [content, span, _code(), file_version.running()]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def inputs_of_open_file() -> dict[str, str]:
    """Hashes of the open .blend file, its libraries and caches, by their paths from the file's folder."""
    path = Path(bpy.data.filepath)
    return inputs((path, *linked_files()))


def inputs(paths: Sequence[Path]) -> dict[str, str]:
    """Hashes of files by their paths from the folder of the first."""
    return {_relative(paths[0].resolve().parent, path.resolve()): sha256(path) for path in paths}


def linked_files() -> list[Path]:
    """Libraries and caches that the open file uses, missing ones left out."""
    users = (*bpy.data.libraries, *bpy.data.cache_files)
    paths = (Path(bpy.path.abspath(user.filepath)).resolve() for user in users)
    return sorted({path for path in paths if path.is_file()})


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
