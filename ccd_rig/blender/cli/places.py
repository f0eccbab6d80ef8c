# SPDX-License-Identifier: GPL-3.0-or-later
"""Where commands write to: seen to before they work."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import whole_files
from ..bake import report
from . import blend_files
from .exits import UsageError


def require(file: Path, options: argparse.Namespace) -> None:
    """See that output and report can be written, and over nothing else: better said now than after a bake.

    Raises:
        UsageError: the report would take the place of the file or of the output, or the output would lack
            what this Blender does not know of the file.
        WriteError: a path leads nowhere.
    """
    if options.output is not None:
        whole_files.real_path(options.output)
        if not options.allow_data_loss:
            blend_files.require_same_or_older(str(file))
    if options.report is None or report.is_stream(options.report):
        return
    place = whole_files.real_path(options.report)
    for other, words in ((file, "the file"), (options.output, "the output")):
        if other is not None and whole_files.is_same(place, Path(other)):
            raise UsageError(
                f"the report would take the place of {words}, {other}: give --report another path"
            )
