"""The step towards goals that cannot be met together, or not at all.

Where the residuals stay, their own curvature counts: a stretched limb has no slope that tells how it bends.
"""

from __future__ import annotations

import numpy as np

from ...maths.batch import TINY, Array
from ...maths.small_systems import inverses
from .bending import Bending, Composite, Now
from .held import Held
from .metric import Metric

INNER = 8
"""Most conjugate gradients of one step."""
NEAR = 1e-2
"""Part of the squared gradient at which they stop."""
LEAST_CURVATURE = 1e-3
"""Curvature along a direction, in parts of the residual, below which it bends down."""
LEAST = 1e-9
"""Least length of the residuals."""
OFF_SADDLE = 0.05
"""Radians by which a step goes along a direction in which the square error bends down."""


def newton_step(
    slopes: tuple[Array, Array, Array],
    bendings: list[Bending | Composite],
    about: tuple[Now, Metric, Held],
    values: Array,
    damping: Array,
) -> Array:
    """(k, B) Newton's step to the least square error, by conjugate gradients.

    They go as far as the curvature is positive (Steihaug 1983, "The conjugate gradient method and trust
    regions in large scale optimization"), after a damped Gauss-Newton step as the preconditioner.

    Args:
        slopes: (m, k, B) of what is free, the same in the metric, and their product (m, m, B).
        bendings: their sum is the second derivative of values.residual.
        about: where, what steps cost there, and what the limits that hold leave.
        values: (m, B) the residuals, with what held joints do.
        damping: (B,) of a Gauss-Newton step, which is in parts of the square error: that of Newton's step is
            as large a part of the residual.
    """
    slope, weighted, system = slopes
    now, metric, held = about
    size = np.maximum(np.sqrt((values * values).sum(0)), LEAST)
    damping = damping / size
    loose = np.maximum(damping, size)
    each = np.arange(len(system))
    whole = system.copy()
    whole[each, each] += loose
    inverse = inverses(whole)

    def eased(force: Array) -> Array:
        """The step that a force (k, B) makes in the damped linear picture."""
        own = held.free(metric.apply(force))
        dual = np.einsum("mnb,nb->mb", inverse, np.einsum("mkb,kb->mb", slope, own))
        return np.asarray((own - np.einsum("mkb,mb->kb", weighted, dual)) / loose)

    def bent(step: Array) -> Array:
        """What a step changes of the gradient."""
        found = damping * metric.invert(step.copy())
        found += np.einsum("mkb,mb->kb", slope, np.einsum("mkb,kb->mb", slope, step))
        for bending in bendings:
            bending.add(now, step, found)
        return held.free(found)

    left = np.einsum("mkb,mb->kb", slope, values)
    rest = eased(left)
    found, direction = np.zeros_like(rest), -rest
    product = (left * rest).sum(0)
    enough, going = NEAR * product, product > TINY
    for count in range(INNER):
        turned = bent(direction)
        curve = (direction * turned).sum(0)
        least = LEAST_CURVATURE * size * (direction * direction).sum(0)
        down = going & (curve > least)
        found = np.where(going & ~down & ~found.any(0), _away(direction), found)
        found += np.where(down, product / np.where(down, curve, 1.0), 0.0) * direction
        left = left + np.where(down, product / np.where(down, curve, 1.0), 0.0) * turned
        going = down
        if not going.any() or count == INNER - 1:
            break
        rest = eased(left)
        after = (left * rest).sum(0)
        going &= after > enough
        direction = np.where(going, after / np.maximum(product, TINY), 0.0) * direction - rest
        product = after
    return found


def _away(direction: Array) -> Array:
    """Steps along directions in which the square error bends down from the start: long enough to leave."""
    longest = np.maximum(np.abs(direction).max(0), TINY)
    return np.asarray(direction * np.maximum(OFF_SADDLE / longest, 1.0))
