# SPDX-License-Identifier: GPL-3.0-or-later
"""What commands open, write and print, and how they end."""

from __future__ import annotations

import argparse
import enum
import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import bpy

from ...json_text import printable
from .. import whole_files
from ..bake import report
from ..farm import records
from ..keys.file_version import newer_than_blender


class Exit(enum.IntEnum):
    """Exit codes; `--help` lists them."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    NOT_REACHED = 3
    NOT_WRITTEN = 4
    INTERRUPTED = 130


class UsageError(Exception):
    """What was asked for makes no sense, whatever the set-up in the file is."""


def say(words: str) -> None:
    """Print lines on standard output."""
    print(_lines(words), flush=True)


def complain(words: str) -> None:
    """Print lines on standard error."""
    print(_lines(words), file=sys.stderr, flush=True)


def _lines(words: str) -> str:
    return "\n".join(map(printable, words.split("\n")))


LONGEST_PATH = 1023
"""Bytes of a path that Blender keeps."""
_NO_TEXT = "its path is not in UTF-8, and Blender takes no other"
_TOO_LONG = f"its path is longer than the {LONGEST_PATH} bytes that Blender keeps"


def open_file(path: Path, trust: bool) -> str | None:
    """Open a file; `trust` lets its scripts run.

    Returns:
        What of it was not run; None if there is nothing of that kind.

    Raises:
        UsageError: it is not there, or no file that this Blender reads.
    """
    try:
        place = path.resolve(strict=True)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"cannot open {path}: {error.strerror}") from error
    except RuntimeError as error:  # how Python 3.11 names a circle of links
        raise UsageError(f"cannot open {path}: {os.strerror(errno.ELOOP)}") from error
    if not place.is_file():
        raise UsageError(f"cannot open {path}: it is not a file")
    require_text(place)
    if _is_too_long(place):
        raise UsageError(f"cannot open {path}: {_TOO_LONG}")
    scripts = {"use_scripts": True} if trust else {}
    try:
        bpy.ops.wm.open_mainfile(filepath=str(place), load_ui=False, **scripts)
    except RuntimeError as error:  # how Blender's operators report; the first line says why
        raise UsageError(f"cannot open {path}: {_first_line(error)}{_newer(error)}") from error
    return bpy.app.autoexec_fail_message if bpy.app.autoexec_fail else None


def require_text(path: Path) -> None:
    """Raise UsageError if Blender cannot take a path."""
    if not _is_text(path):
        raise UsageError(f"cannot open {path}: {_NO_TEXT}")


def require_same_or_older(file: str) -> None:
    """Refuse to save what a newer Blender has saved: what this one does not know of it would be gone.

    Raises:
        UsageError: the open file is such a one.
    """
    versions = newer_than_blender()
    if versions is None:
        return
    saved, here = versions
    raise UsageError(
        f"{file} is of file version {saved}, that of this Blender is {here}: what this Blender does not know "
        "would be lost in the output; use a Blender as new as the file, or allow it by --allow-data-loss"
    )


def add_trust_argument(command: argparse.ArgumentParser, file: str) -> None:
    """Whether what `open_file` opens may run scripts; `file` is its name in the command's words."""
    command.add_argument(
        "--enable-autoexec",
        action="store_true",
        help=f"run scripted drivers in {file}; only for files you trust",
    )


def save_as(path: Path) -> None:
    """Save the open file under another name, as a whole or not at all.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    with whole_files.replacing(path) as temporary:
        if not _is_text(temporary):
            raise whole_files.WriteError(f"cannot write {path}: {_NO_TEXT}")
        if _is_too_long(temporary):
            raise whole_files.WriteError(f"cannot write {path}: {_TOO_LONG}")
        temporary.unlink()  # Blender would keep the empty file as a backup
        leftover = temporary.with_name(f"{temporary.name}@")  # where Blender writes before it renames
        try:
            bpy.ops.wm.save_as_mainfile(
                filepath=str(temporary.resolve()), copy=True, compress=_is_compressed(bpy.data.filepath)
            )
        except RuntimeError as error:
            # Blender's own reason may be that of a later step ("No such file"): likely ones are said first.
            reason = f"is the disk full, or the folder read-only? Blender says: {_first_line(error)}"
            raise whole_files.WriteError(f"cannot write {path}: {reason}") from error
        finally:
            leftover.unlink(missing_ok=True)
        if not _is_whole(temporary):
            raise whole_files.WriteError(
                f"cannot write {path}: is the disk full? Only a part of it was saved"
            )


def _is_text(path: Path) -> bool:
    """Whether a path is in UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:  # Python's stand-ins for bytes of another encoding
        return False
    return True


def _is_too_long(path: Path) -> bool:
    # Blender cuts longer paths short, and then opens or writes another file; "@" is what it adds to them.
    return len(os.fsencode(path)) + len("@") > LONGEST_PATH


def _is_whole(path: Path) -> bool:
    """Whether a .blend file was saved to its end; of compressed files Blender does not notice it if not.

    They end with the magic number of a Zstandard seek table, others with the block ENDB, of at most 32 bytes.
    """
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 32))
        end = file.read()
    return end.endswith(b"\xb1\xea\x92\x8f") or b"ENDB" in end


def _is_compressed(path: str) -> bool:
    """Whether a .blend file is compressed, with Zstandard or, before Blender 3.0, with gzip."""
    with open(path, "rb") as file:
        return file.read(4).startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b"))


def _first_line(error: Exception) -> str:
    """Blender's operators raise "Error: reason" with more lines below."""
    words = str(error).strip().splitlines() or ["unknown reason"]
    return words[0].removeprefix("Error: ")


def _newer(error: Exception) -> str:
    # Blender before 5.0 does not know the header that later ones write.
    return " (or one of a newer Blender than this)" if "not a blend file" in str(error) else ""


def add_arguments(command: argparse.ArgumentParser, file: str, kept: str, told: str) -> None:
    """What is kept; in words: the file that is worked on, what the output has, and what the report tells."""
    add = command.add_argument
    add("--output", type=Path, metavar="FILE", help=f"where to save the .blend file with {kept}")
    add("--report", type=Path, metavar="FILE", help=f"where to save {told} as JSON")
    add(
        "--allow-data-loss",
        action="store_true",
        help=f"save the output even if a newer Blender has saved {file}, without what this one does not know",
    )


def require(file: Path, options: argparse.Namespace, read: Mapping[Path, str] | None = None) -> None:
    """See that output and report can be written, and over nothing else: better said now than after a bake.

    Args:
        file: the open one, that is worked on. The output may take its place.
        options: of the command.
        read: what else the command reads, {path: what it is in words}. Nothing may take its place.

    Raises:
        UsageError: output or report would take the place of what is read, or the report that of the output;
            or the output would lack what this Blender does not know of the file.
        WriteError: a path leads nowhere, or to where nothing may be written.
    """
    also = {**dict.fromkeys(records.linked_files(), "a file that it uses"), **(read or {})}
    if options.output is not None:
        _require_place(options.output, "output", also)
        if not options.allow_data_loss:
            require_same_or_older(str(file))
    if options.report is None or report.is_stream(options.report):
        return
    also |= {file: "the file"} | ({} if options.output is None else {options.output: "the output"})
    _require_place(options.report, "report", also)


def _require_place(path: Path, name: str, others: Mapping[Path, str]) -> None:
    place = whole_files.require_writable(path)
    for other, words in others.items():
        if whole_files.is_same(place, other):
            raise UsageError(
                f"the {name} would take the place of {words}, {other}: give --{name} another path"
            )
