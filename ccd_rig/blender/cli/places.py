# SPDX-License-Identifier: GPL-3.0-or-later
"""Where commands write to: seen to before they work."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from .. import whole_files
from ..bake import report
from ..farm import records
from . import blend_files
from .exits import UsageError


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
            blend_files.require_same_or_older(str(file))
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
