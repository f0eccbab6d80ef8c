"""What scripts of benchmarks share: their start and end, tables in Markdown, and words on the machine."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


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


def run_benchmark(main: Callable[[], int | None], registers: bool = True) -> NoReturn:
    """Register the product, unless the benchmark does, and run it; its exit code ends the process.

    Blender's own shutdown crashes (4.2) or hangs (4.5) with Rigify.
    """
    if registers:
        from ccd_rig.blender import register

        register()
    try:
        code = main() or 0
    except Exception:
        traceback.print_exc()
        code = 1
    except SystemExit as ended:  # of argparse, or a line that says what is missing
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
