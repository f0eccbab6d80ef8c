# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a farm open, look for and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy

from .. import whole_files
from ..farm import bundle, messages, records
from ..farm.records import Record
from ..keys import file_version
from ..whole_files import WriteError
from . import blend_files
from .arguments import COMMAND
from .exits import UsageError
from .terminal import complain


def open_blend(path: Path) -> bpy.types.Scene:
    """Open a .blend file, without its scripts; its active scene.

    Raises:
        UsageError: it cannot be opened, or a newer Blender has saved it: what this one does not know of it
            would be lost.
    """
    skipped = blend_files.open_file(path, False)
    if skipped is not None:
        words = f"{path}: {skipped} was not run: scripts of files never are in farm jobs"
        complain(f"{COMMAND}: warning: {words}")
    if versions := file_version.newer_than_blender():
        saved, here = versions
        raise UsageError(
            f"{path} is of file version {saved}, that of this Blender is {here}: what this Blender does not "
            "know would be lost; use a Blender as new as the file for the whole job"
        )
    context: Any = bpy.context  # the stubs allow for a window without a scene
    scene: bpy.types.Scene = context.scene
    return scene


def open_for(name: str, folder: Path, path: Path, others: Sequence[Path] = ()) -> bpy.types.Scene:
    """Open the file that a task changes, and make the folder of the results.

    Args:
        name: of the result.
        folder: of the results.
        path: of the file.
        others: what else the task reads.

    Raises:
        UsageError: one of them, or a library of the file, would be overwritten; or as `open_blend`.
        WriteError: the folder cannot be made, or nothing can be written there.
    """
    result = folder / bundle.names(name).blend
    _require_free(result, (path, *others))
    messages.status(f"{name}: opening")
    scene = open_blend(path)
    make_folder(folder)
    _require_free(whole_files.require_writable(result), records.linked_files())
    return scene


def _require_free(place: Path, read: Sequence[Path]) -> None:
    """See that a task does not write over what it reads."""
    for each in read:
        if whole_files.is_same(place, each):
            raise UsageError(f"{each} would be overwritten: choose another folder for the results")


def make_folder(folder: Path) -> None:
    """Make a folder and those that it lies in; raises WriteError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}") from error


def is_done(folder: Path, path: Path, made_with: str) -> bool:
    """Whether the result of a file is there already, from the same and with the same; says so."""
    record = records.load(folder / bundle.names(path.stem).record)
    if record is None or not record.is_whole(folder) or not record.is_current(path, made_with):
        return False
    say_done(f"{path.stem}: done before, and nothing has changed")
    return True


def save_result(folder: Path, name: str, write_report: Callable[[Path], None], record: Record) -> None:
    """Write the open file and its report, and last the record, which says that both are complete.

    Two processes may do so at once: what each then finds is whole, whosever files were written last.

    Args:
        folder: of the results.
        name: of the result.
        write_report: writes it to a path.
        record: without outputs.
    """
    blend, report, record_path = (folder / each for each in bundle.names(name))
    blend_files.save_as(blend)
    write_report(report)
    while True:
        whole = replace(record, outputs={path.name: records.sha256(path) for path in (blend, report)})
        whole.save(record_path)
        if whole.is_whole(folder):
            return


def say_done(words: str) -> None:
    """Say that a task is through."""
    messages.progress(100.0)
    messages.status(words)
