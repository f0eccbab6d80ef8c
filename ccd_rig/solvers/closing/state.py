"""A pose and how far off the goals are in it, as arrays in double precision: what `kinematics` works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """A pose of the joints that matter.

    Attributes:
        turns: of the hinges, radians about their axes, unwrapped into their ranges.
        rotations: of the ball joints, (w, x, y, z) relative to rest.
        slides: shifts along the slides' axes, the model's unit.
        local: (rows, 4, 4) each joint's frame in its parent's.
        frames: (rows + 1, 4, 4) each joint's frame in model space; the last one is model space itself.
    """

    turns: Array
    rotations: Array
    slides: Array
    local: Array
    frames: Array


@dataclass(frozen=True)
class Residual:
    """How far off the goals are in a state.

    Attributes:
        state: where.
        ends: (points, 3) the goals' points in model space.
        values: what is to become 0, without unit, weighted.
        square: the weighted square error.
        misses: per goal (distance in the model's unit, angle in radians).
    """

    state: State
    ends: Array
    values: Array
    square: float
    misses: tuple[tuple[float, float], ...]

    def excess(self, tolerances: tuple[float, float]) -> float:
        """The largest miss in parts of its tolerance (position, angle): up to 1 all goals are met."""
        position, angle = tolerances
        return max(max(far / position, off / angle) for far, off in self.misses)
