"""The way back to the reference pose that the goals and the limits leave room for."""

from __future__ import annotations

import numpy as np

from ...maths.batch import TINY, Array
from ...maths.small_systems import inverses
from .bending import Now, along_paths
from .conjugate_gradients import Eased, least
from .held import Held
from .metric import Metric
from .problem import LeastSquaresProblem

LEAST_DAMPING = 1e-12
"""Damping that always remains, so that singular poses and goals that contradict each other have a step."""
LEAST_WAY = 1e-5
"""Radians: shorter ways back are none."""
NEAR = 1e-2
"""Part of the squared gradient at which they stop."""
LONGEST_BACK = 0.5
"""Longest rotation of a joint back to the reference in one step: farther away it would leave the goals."""


def way_back(
    bend: Curvature, metric: Metric, towards: Array, gradient: Array, projection: Projection
) -> Array:
    """The step (k, B) to the nearest pose to the reference that the goals leave room for.

    Newton's step of the Lagrangian |e|^2 / 2 + y.r in the null space of the slope, by projected conjugate
    gradients (Gould, Hribar & Nocedal 2001, "On the solution of equality constrained quadratic programming
    problems arising in optimization").

    Args:
        bend: the second derivative of the Lagrangian.
        metric: what steps cost.
        towards: (k, B) the step towards the goals that is taken as well.
        gradient: (k, B) that of the departure, as a step.
        projection: on what goals and limits leave free.
    """
    own = projection.free(gradient)
    # The gradient is wanted where the step towards the goals leads, not where it starts.
    small = np.abs(towards).max(0) <= LONGEST_BACK
    ahead = projection.apply(own + metric.apply(bend(np.where(small, towards, 0.0))))
    # Residuals are kept in the null space: what the multipliers hold is far larger, and its rounding too.
    residual, rest = metric.invert(ahead), ahead
    size = (residual * rest).sum(0)
    # Near the end they are taken further, so that steps fall with their square (Dembo & Steihaug 1983).
    enough = np.maximum(np.minimum(NEAR, size) * size, LEAST_WAY * LEAST_WAY)

    def ease(force: Array) -> Eased:
        own = projection.apply(metric.apply(force))
        return own, metric.invert(own)

    return least((rest, residual), bend, ease, enough)


class Projection:
    """What the goals and the limits that hold leave of a step, in the metric of the mobilities."""

    def __init__(self, parts: tuple[Array, Array, Array], held: Held, symmetric: bool) -> None:
        """`parts`: the slope (m, k, B) of what is free, the same in the metric, and their product (m, m, B),
        which may be symmetric."""
        self.slope, self.weighted, system = parts
        self.free = held.free
        damping = 1e-9 * np.einsum("mmb->b", system) + LEAST_DAMPING
        self.inverse = inverses(system, damping, symmetric)

    def dual(self, vector: Array) -> Array:
        """(m, B) the multipliers that hold the goals against a step."""
        return np.asarray(np.einsum("mnb,nb->mb", self.inverse, np.einsum("mkb,kb->mb", self.slope, vector)))

    def apply(self, vector: Array) -> Array:
        """What of a step (k, B) is left."""
        own = self.free(vector)
        return np.asarray(own - np.einsum("mkb,mb->kb", self.weighted, self.dual(own)))


class Curvature:
    """The second derivative of |departure|^2 / 2 + multipliers.residuals, applied to steps (k, B)."""

    def __init__(
        self,
        problem: LeastSquaresProblem,
        now: Now,
        departure: Array,
        multipliers: Array,
        metric: Metric,
    ) -> None:
        self.metric, self.now = metric, now
        blocks = zip(problem.blocks, problem.places, now.targets, strict=True)
        self.bendings = along_paths(
            bending
            for block, place, target in blocks
            for bending in block.bending(now, target, multipliers[place])
        )
        self.layout = layout = problem.layout
        self.bent = metric.curvature(departure) if len(layout.bent) else None
        self.balls = slice(layout.first_ball, layout.first_slide)
        balls = departure[self.balls].reshape(-1, 3, departure.shape[1])
        angle = np.sqrt((balls * balls).sum(1))
        half = np.maximum(0.5 * angle, 1e-4)
        # Along the rotation vector 1, across it (a / 2) cot(a / 2).
        self.across = (half / np.tan(half))[:, None]
        self.axis = balls / np.maximum(angle, TINY)[:, None]

    def __call__(self, step: Array) -> Array:
        found = step.copy()
        balls = step[self.balls].reshape(-1, 3, step.shape[1])
        along = (balls * self.axis).sum(1)[:, None] * self.axis
        found[self.balls] = (self.across * balls + (1.0 - self.across) * along).reshape(-1, step.shape[1])
        found = self.metric.invert(found)
        if self.bent is not None:
            bent = np.einsum("nijb,njb->nib", self.bent, balls[self.layout.bent])
            found[self.balls].reshape(-1, 3, step.shape[1])[self.layout.bent] = bent
        for bending in self.bendings:
            bending.add(self.now, step, found)
        return found
