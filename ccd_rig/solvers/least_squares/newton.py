"""The step towards goals that cannot be met together, or not at all.

Where residuals stay, their own curvature counts: a stretched limb has no slope that tells how it bends.
"""

from __future__ import annotations

import numpy as np

from ...maths.batch import Array
from ...maths.small_systems import inverses
from .bending import Now, along_paths
from .conjugate_gradients import Eased, least
from .held import Held
from .metric import Metric
from .problem import LeastSquaresProblem

NEAR = 1e-2
"""Part of the squared gradient at which the search ends."""
LEAST = 1e-9
"""Least length of the residuals."""


def newton_step(
    problem: LeastSquaresProblem,
    about: tuple[Now, Metric, Held],
    slopes: tuple[Array, Array, Array],
    residuals: tuple[Array, Array],
    damping: Array,
) -> Array:
    """(k, B) Newton's step to the least square error.

    The preconditioner is Gauss and Newton's step with a damping as large as the residual.

    Args:
        problem: what all poses share.
        about: where, what steps cost there, and what the limits that hold leave.
        slopes: (m, k, B) of what is free, the same in the metric, and their product (m, m, B).
        residuals: (m, B), and with what held joints do.
        damping: (B,) of Gauss and Newton's step, a part of the square error. That of Newton's step is as
            large a part of the residual.
    """
    (now, metric, held), (slope, weighted, system), (values, missing) = about, slopes, residuals
    size = np.maximum(np.sqrt((values * values).sum(0)), LEAST)
    damping = damping / size
    loose = np.maximum(damping, size)
    inverse = inverses(system, loose)
    bendings = along_paths(
        bending
        for block, place, target in zip(problem.blocks, problem.places, now.targets, strict=True)
        for bending in block.bending(now, target, values[place])
    )

    def ease(force: Array) -> Eased:
        own = held.free(metric.apply(force))
        dual = np.einsum("mnb,nb->mb", inverse, np.einsum("mkb,kb->mb", slope, own))
        return (own - np.einsum("mkb,mb->kb", weighted, dual)) / loose, force

    def bend(step: Array) -> Array:
        found = damping * metric.invert(step.copy())
        found += np.einsum("mkb,mb->kb", slope, np.einsum("mkb,kb->mb", slope, step))
        for bending in bendings:
            bending.add(now, step, found)
        return held.free(found)

    start = ease(np.einsum("mkb,mb->kb", slope, missing))
    return least(start, bend, ease, NEAR * (start[0] * start[1]).sum(0))
