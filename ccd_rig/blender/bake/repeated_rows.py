# SPDX-License-Identifier: GPL-3.0-or-later
"""Values over frames that often are the same as in the frame before.

Such rows are filled ahead, as many at once as there are already, so that a frame in which nothing changes
costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ...maths.batch import Array


@dataclass
class RepeatedRows:
    """Arrays over frames, filled row by row in order.

    Attributes:
        arrays: they change together; each has a row for each frame.
    """

    arrays: tuple[Array, ...]
    first: int = 0  # row from which on all are the same
    filled: int = 0  # row from which on nothing stands yet

    def set(self, row: int, *values: ArrayLike) -> None:
        """Put in a row that is another one than that before it; one value for each array."""
        for array, value in zip(self.arrays, values, strict=True):
            array[row] = value
        self.first, self.filled = row, row + 1

    def change(self, row: int, places: Sequence[int], *values: ArrayLike) -> None:
        """Let a row be as the one before it but for some places; one value for each array."""
        self.keep(row)
        for array, value in zip(self.arrays, values, strict=True):
            array[row, places] = value
        self.first, self.filled = row, row + 1

    def keep(self, row: int) -> None:
        """Let a row be as the one before it."""
        if row >= self.filled:
            self.filled = 2 * row - self.first
            for array in self.arrays:
                array[row : self.filled] = array[row - 1]
