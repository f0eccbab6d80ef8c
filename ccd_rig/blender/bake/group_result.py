# SPDX-License-Identifier: GPL-3.0-or-later
"""How a group of constraints ended at the frames of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...maths.batch import Array
from ...settings import SolveStatus
from .bake_frames import LedWay, Rows
from .batches import Batch, Group


@dataclass(frozen=True)
class GroupResult:
    """How a group ended at R rows.

    Attributes:
        met: (R, members) which constraints are met.
        led: (R,) rows that meet their goals another way than their base poses alone lead; see
            `least_squares.sequence.Sequence`.
        apart: (R,) radians to where the base poses of these alone meet their goals too; else 0.
        nearest: (R,) rows that miss a goal, though nothing nearer exists close by.
    """

    met: NDArray[np.bool_]
    led: NDArray[np.bool_]
    apart: Array
    nearest: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: Batch, group: Group) -> GroupResult:
        """Before anything is solved: only rows that are held are met."""
        size = len(batch.times)
        met = np.zeros((size, len(group.members)), np.bool_)
        met[batch.held] = True
        return cls(met, np.zeros(size, np.bool_), np.zeros(size), np.zeros(size, np.bool_))

    def put(self, rows: Rows, other: GroupResult) -> None:
        """Take over some rows, in place."""
        for mine, theirs in zip(self._arrays(), other._arrays(), strict=True):
            mine[rows] = theirs[rows]

    def copy(self) -> GroupResult:
        """One that may be written to."""
        return GroupResult(*(each.copy() for each in self._arrays()))

    def states(self) -> list[list[str]]:
        """Per row how each constraint ended, the name of a `SolveStatus`."""
        ended = np.where(self.nearest, SolveStatus.OPTIMAL.name, SolveStatus.STALLED.name)
        found: list[list[str]] = np.where(self.met, SolveStatus.CONVERGED.name, ended[:, None]).tolist()
        return found

    def led_ways(self, group: Group) -> Iterator[tuple[int, LedWay]]:
        """The rows that meet their goals another way than their base poses alone lead, and how."""
        for k in np.flatnonzero(self.led & self.met.all(1)).tolist():
            yield k, LedWay(group.members, float(self.apart[k]))

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.met, self.led, self.apart, self.nearest
