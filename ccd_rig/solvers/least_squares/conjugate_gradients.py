"""Steps to the least of a function whose second derivative can be applied, not written down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...maths.batch import TINY, Array

INNER = 6
"""Most conjugate gradients of one step."""
LEAST_CURVATURE = 1e-2
"""Least curvature along a direction, beside that of the preconditioner, at which Newton's step is taken."""
OFF_SADDLE = 0.05
"""Radians by which a step goes along a direction in which the function bends down."""

Eased = tuple[Array, Array]
"""What a preconditioner makes of a force (k, B): a step (k, B), and the force with its rounding taken off."""


def least(
    start: Eased, bend: Callable[[Array], Array], ease: Callable[[Array], Eased], enough: Array
) -> Array:
    """(k, B) the step to the least, by conjugate gradients as far as the curvature is positive.

    Steihaug 1983, "The conjugate gradient method and trust regions in large scale optimization".

    Args:
        start: the eased gradient.
        bend: the second derivative, applied to steps (k, B).
        ease: the preconditioner.
        enough: (B,) product of force and eased force at which they stop.
    """
    rest, residual = start
    found, direction, force = np.zeros_like(rest), -rest, -residual
    size = (residual * rest).sum(0)
    going = size > TINY
    for count in range(INNER):
        turned = bend(direction)
        curve = (direction * turned).sum(0)
        own_size = (direction * force).sum(0)
        down = going & (curve > LEAST_CURVATURE * own_size)
        found = np.where(going & ~down, _along(found, direction), found)
        length = np.where(down, size / np.where(down, curve, 1.0), 0.0)
        found += length * direction
        going = down
        if not going.any() or count == INNER - 1:
            break
        rest, residual = ease(residual + length * turned)
        after = (residual * rest).sum(0)
        going &= after > enough
        part = np.where(going, after / np.maximum(size, TINY), 0.0)
        direction, force = part * direction - rest, part * force - residual
        size = after
    return found


def _along(found: Array, direction: Array) -> Array:
    """Steps that go on along directions of negative curvature.

    Beside a saddle gradients are small: steps as long as these would look as if the pose were at rest.
    """
    longest = np.maximum(np.abs(direction).max(0), TINY)
    return np.asarray(found + direction * np.maximum(OFF_SADDLE / longest, np.where(found.any(0), 0.0, 1.0)))
