"""Coupled offsets of one pose: where they shift joints, and what that adds to the columns of hinges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...skeleton.coupled_offset import unwrapped
from ...skeleton.joints import Coupling
from .state import Array, State


@dataclass(frozen=True)
class CoupledRow:
    """A coupled offset among the rows and columns of a problem.

    Attributes:
        coupling: in the skeleton.
        row: of the joint that is shifted. parent: of its parent.
        column: of the hinge, -1 where it does not move.
        sign: -1 where the column counts angles about the opposite axis, else 1.
        axis: (3,) of the shift in the parent's frame.
        carried: (points,) 1 for the points that the shift takes along.
    """

    coupling: Coupling
    row: int
    parent: int
    column: int
    sign: float
    axis: Array
    carried: Array

    def shift(self, turns: Array, fixed: float = 0.0) -> Array:
        """(3,) the shift in the parent's frame; `fixed`: the angle where no column turns the hinge."""
        return self.axis * self.coupling.offset.shift(self._angle(turns, fixed))

    def rate(self, state: State) -> Array:
        """(3,) model units per radian of the column, model space."""
        angle = np.array([self._angle(state.turns, 0.0)])
        _, slope = self.coupling.offset.evaluate(angle)
        rate: Array = state.frames[self.parent, :3, :3] @ (self.sign * slope[0] * self.axis)
        return rate

    def _angle(self, turns: Array, fixed: float) -> float:
        if self.column == -1:
            return fixed
        return unwrapped(self.coupling.hinge, self.sign * float(turns[self.column]))
