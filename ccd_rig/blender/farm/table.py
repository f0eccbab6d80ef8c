# SPDX-License-Identifier: GPL-3.0-or-later
"""Table of the shots or clips of a job, as CSV and as aligned text."""

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
from .shots import Shot

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
    """Return the row of an armature of a shot."""
    worst, solved = report.worst(), report.solved_count()
    largest_seam = max((seam.angle for seam in seams), default=0.0)
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
        "seam": round(math.degrees(largest_seam), 6),
        "mismatches": "" if report.check is None else len(report.check.mismatches()),
        "seconds": round(report.seconds, 2),
    }


FORMULA = ("=", "+", "-", "@")
"""First characters of formulas in spreadsheets."""

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
"""`drift`: largest displacement of a foot within a contact, metres; `slide`: mean speed of feet in contact,
metres per second; `off`: largest error of a limb's end that follows the source's, parts of the limb's length;
`hips`: largest lowering of the hips, metres; `seconds`: of the task."""


def row_of_clip(name: str, armature: str, result: Retargeted, seconds: float) -> dict[str, Any]:
    """Return the row of a clip on an armature."""
    measures = result.measures
    slides = [stance.slide for stance in measures.stances]
    return {
        "clip": name,
        "armature": armature,
        "first": float(result.frames[0]),
        "last": float(result.frames[-1]),
        "frames": len(result.frames),
        "contacts": len(measures.stances),
        "drift": round(max((stance.drift for stance in measures.stances), default=0.0), 6),
        "slide": round(sum(slides) / max(len(slides), 1), 6),
        "off": round(max((measures.errors[limb] for limb in measures.followed), default=0.0), 6),
        "hips": round(measures.moved, 6),
        "warnings": len(warnings(result)),
        "seconds": round(seconds, 2),
    }


def write_table(results: Mapping[str, str], columns: Sequence[str], folder: Path) -> str:
    """Write `table.csv` and `table.txt`; returns the text.

    Args:
        results: {name: hash by `records.made_with`} of all results of a job.
        columns: of the rows in their records.
        folder: of the results.

    Raises:
        RigError: results are missing or not the recorded ones; names them. Nothing is written then.
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
    """Return a value for a spreadsheet: text that starts like a formula gets a quote before it."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def _text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    lines = [tuple(columns), *(tuple(printable(str(row[name])) for name in columns) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
    texts = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{text.rstrip()}\n" for text in texts)
