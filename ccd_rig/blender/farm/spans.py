# SPDX-License-Identifier: GPL-3.0-or-later
"""How a long shot is shared out: chunks of frames, each solved with some frames before and after it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

ROLL = 64
"""Frames before and after a chunk that are solved too: as far as sudden turns reach that `solvers.motion`
smooths."""


class Span(NamedTuple):
    """A chunk of a shot, in frames.

    Attributes:
        first, last: that are taken from it.
        solve_first, solve_last: that are solved for it.
    """

    first: int
    last: int
    solve_first: int
    solve_last: int

    def words(self) -> str:
        """Such as "frames 501 to 1000"."""
        return f"frames {self.first} to {self.last}"


def spans(first: int, last: int, chunk: int) -> list[Span]:
    """Chunks of about the same size that make up a range.

    Args:
        first, last: frames of the range.
        chunk: most frames of a chunk; 0 for a single one.
    """
    count = last - first + 1
    if chunk <= 0 or count <= chunk:
        return [Span(first, last, first, last)]
    size = math.ceil(count / math.ceil(count / chunk))
    starts = [*range(first, last + 1, size), last + 1]
    return [
        Span(start, end - 1, max(first, start - ROLL), min(last, end + ROLL - 1))
        for start, end in pairwise(starts)
    ]
