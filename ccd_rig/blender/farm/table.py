# SPDX-License-Identifier: GPL-3.0-or-later
"""One table of all shots of a job: as CSV, and as text for people."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RigError
from ..bake.report import BakeReport, write
from . import records
from .chunks import Seam
from .job import Shot

COLUMNS = (
    "shot",
    "armature",
    "first",
    "last",
    "frames_solved",
    "frames_reached",
    "worst",
    "worst_frame",
    "chunks",
    "seam",
    "mismatches",
    "seconds",
)
"""`worst`: tip to target, world metres; `seam`: largest rotation between chunks where they meet, degrees;
`mismatches`: constraints that do not play as they were baked; `seconds`: of the bake that wrote the file."""


def row_of(shot: Shot, report: BakeReport, seams: Sequence[Seam] = ()) -> dict[str, Any]:
    """The row of an armature."""
    worst, solved = report.worst(), report.solved_count()
    seam = max((each.angle for each in seams), default=0.0)
    return {
        "shot": shot.name,
        "armature": report.armature,
        "first": report.frame_start,
        "last": report.frame_end,
        "frames_solved": solved,
        "frames_reached": solved - report.unsolved_count(),
        "worst": round(worst.residual, 6),
        "worst_frame": worst.frame,
        "chunks": len(shot.spans()),
        "seam": round(math.degrees(seam), 6),
        "mismatches": "" if report.check is None else len(report.check.mismatches()),
        "seconds": round(report.seconds, 2),
    }


def write_table(shots: Sequence[Shot], folder: Path) -> str:
    """Write `table.csv` and `table.txt`; returns the text.

    Raises:
        RigError: shots have no result, or another one than was written; names them. Nothing is written then.
        WriteError: the folder cannot be written.
    """
    rows: list[Mapping[str, Any]] = []
    missing = []
    for shot in shots:
        record = records.load(folder / f"{shot.name}.record.json")
        if record is None or record.made_with != records.made_with(shot) or not record.is_whole(folder):
            missing.append(shot.name)
        else:
            rows += record.rows
    if missing:
        raise RigError(
            f"no result of {', '.join(missing)} for these settings in {folder}: its task failed, or did not "
            "run. Run it again; the table is not written"
        )
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    text = _text(rows)
    write(sheet.getvalue(), folder / "table.csv")
    write(text, folder / "table.txt")
    return text


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [COLUMNS, *(tuple(str(row[name]) for name in COLUMNS) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]
    texts = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{text.rstrip()}\n" for text in texts)
