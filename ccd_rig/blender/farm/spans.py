# SPDX-License-Identifier: GPL-3.0-or-later
"""How a long shot is shared out: chunks of frames, each solved with some frames before and after it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

ROLL = 64
"""Frames before and after a chunk that are solved too: four key poses of least squares, see
`solvers.least_squares.sequence`."""


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


def spans(first: int, last: int, step: int, chunk: int) -> list[Span]:
    """Chunks of about the same size that make up a range.

    Chunks begin at frames that are solved in the whole range too, so that all solve the same frames.

    Args:
        first, last: frames of the range.
        step: frames from one solve to the next.
        chunk: most frames of a chunk, rounded up to a multiple of `step`; 0 for a single one.
    """
    count = last - first + 1
    if chunk <= 0 or count <= chunk:
        return [Span(first, last, first, last)]
    size, roll = (step * math.ceil(frames / step) for frames in (count / math.ceil(count / chunk), ROLL))
    starts = [*range(first, last + 1, size), last + 1]
    return [
        Span(start, end - 1, max(first, start - roll), min(last, end + roll))
        for start, end in pairwise(starts)
    ]
