"""Tables in Markdown that benchmarks print row by row, and what they say of the machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path


class Table:
    """A table whose head is printed at once.

    Args:
        heads: of the columns, with " | " between them; blanks behind a head widen its column.
    """

    def __init__(self, heads: str) -> None:
        cells = heads.split(" | ")
        self.widths = [max(6, len(cell)) for cell in cells]
        self.row(*map(str.strip, cells))
        print("|" + "|".join("-" * (width + 1) + ":" for width in self.widths) + "|")

    def row(self, *cells: object) -> None:
        """Print a row at once, with its columns one below the other."""
        padded = (f"{cell!s:>{width}}" for cell, width in zip(cells, self.widths, strict=True))
        print(f"| {' | '.join(padded)} |", flush=True)


def machine() -> str:
    """The processor's name and how many of them."""
    name = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        names = [
            line.split(":")[1].strip() for line in listed.read_text().splitlines() if "model name" in line
        ]
        name = names[0] if names else name
    return f"{name}, {os.cpu_count()} processors, {platform.system()}"
