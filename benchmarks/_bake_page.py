"""Puts what `bake.py` printed into docs/measurements/bake.md, between the marks of each case."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class _Tee(io.StringIO):
    """What is printed, kept as well as shown."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
        return super().write(text)


@contextmanager
def heard() -> Iterator[io.StringIO]:
    """What is printed within the block."""
    shown, sys.stdout = sys.stdout, _Tee()
    try:
        yield sys.stdout
    finally:
        sys.stdout = shown


def write(page: Path, heading: str, printed: dict[str, str]) -> None:
    """Replace the part of each case that was measured; `heading` says where and by which Blender."""
    text = page.read_text(encoding="utf-8")
    for name, words in printed.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (begin and end):
            raise SystemExit(f"{page.name} has no part <!-- {name} --> ... <!-- end -->")
        text = f"{before}{begin}\n{heading}\n\n{_tidy(words.strip())}\n\n{end}{after}"
    page.write_text(text, encoding="utf-8")


def _tidy(words: str) -> str:
    """Tables in Markdown without the blanks that align them; all else stays as it was printed."""
    if "|" not in words:
        return f"```\n{words}\n```"
    lines = []
    for line in words.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if set(cells[0]) <= set("-:") and cells[0]:
                cells = ["---", *["--:"] * (len(cells) - 1)]
            line = f"| {' | '.join(cells)} |"
        lines.append(line)
    return "\n".join(lines)
