# SPDX-License-Identifier: GPL-3.0-or-later
"""One table of all shots or clips of a job: as CSV, and as text for people."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RigError
from ...json_text import printable
from ..bake.report import BakeReport, write
from ..retarget.retarget import Retargeted, warnings
from . import bundle, records
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


FORMULA = ("=", "+", "-", "@")
"""What a formula starts with in spreadsheets."""

CLIP_COLUMNS = (
    "clip",
    "armature",
    "first",
    "last",
    "frames",
    "contacts",
    "drift",
    "slide",
    "off",
    "hips",
    "warnings",
    "seconds",
)
"""`drift`: largest way of a foot that is down, metres; `slide`: mean speed of feet that are down, metres per
second; `off`: largest miss of a limb's end, parts of the limb; `hips`: how far they are lowered at most,
metres; `seconds`: of the task."""


def row_of_clip(name: str, armature: str, done: Retargeted, seconds: float) -> dict[str, Any]:
    """The row of a clip on an armature."""
    found = done.measures
    slides = [stance.slide for stance in found.stances]
    return {
        "clip": name,
        "armature": armature,
        "first": float(done.frames[0]),
        "last": float(done.frames[-1]),
        "frames": len(done.frames),
        "contacts": len(found.stances),
        "drift": round(max((stance.drift for stance in found.stances), default=0.0), 6),
        "slide": round(sum(slides) / max(len(slides), 1), 6),
        "off": round(max(found.errors.values(), default=0.0), 6),
        "hips": round(found.moved, 6),
        "warnings": len(warnings(done)),
        "seconds": round(seconds, 2),
    }


def write_table(results: Mapping[str, str], columns: Sequence[str], folder: Path) -> str:
    """Write `table.csv` and `table.txt`; returns the text.

    Args:
        results: {name: what it was made with, see `records.made_with`} of all that a job makes.
        columns: of the rows that their records hold.
        folder: of the results.

    Raises:
        RigError: some have no result, or another one than was written; names them. Nothing is written then.
        WriteError: the folder cannot be written.
    """
    rows: list[Mapping[str, Any]] = []
    missing = []
    for name, made_with in results.items():
        record = records.load(folder / bundle.names(name).record)
        if record is None or record.made_with != made_with or not record.is_whole(folder):
            missing.append(name)
        else:
            rows += record.rows
    if missing:
        raise RigError(
            f"no result of {', '.join(missing)} for these settings in {folder}: its task failed, or did not "
            "run. Run it again; the table is not written"
        )
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    text = _text(rows, columns)
    write(sheet.getvalue(), folder / "table.csv")
    write(text, folder / "table.txt")
    return text


def _cell(value: Any) -> Any:
    """A value as spreadsheets take it for what it is: text that starts like a formula gets a quote before."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def _text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    lines = [tuple(columns), *(tuple(printable(str(row[name])) for name in columns) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
    texts = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{text.rstrip()}\n" for text in texts)
