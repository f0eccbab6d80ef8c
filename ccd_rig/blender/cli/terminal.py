# SPDX-License-Identifier: GPL-3.0-or-later
"""What commands print: names from files may hold anything, and are no commands to a terminal."""

from __future__ import annotations

import sys

from ...json_text import printable


def say(words: str) -> None:
    """Print lines on standard output."""
    print(_lines(words), flush=True)


def complain(words: str) -> None:
    """Print lines on standard error."""
    print(_lines(words), file=sys.stderr, flush=True)


def _lines(words: str) -> str:
    return "\n".join(map(printable, words.split("\n")))
