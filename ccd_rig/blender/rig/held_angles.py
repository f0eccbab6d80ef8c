"""Euler angles of which some are held, as a bone's locked rotation channels are.

A rotation has two sets of Euler angles, and at gimbal lock (middle angle a quarter turn) endless many: near
it the outer ones change a lot with the last digits of a rotation. A held angle is taken as it is, and the
others are found with it.

Arrays have one row per frame; angles are radians, rotations unit quaternions (w, x, y, z) relative to rest.
"""

from __future__ import annotations

import math

import numpy as np

from ...maths import batch
from ...maths.batch import Array

NEAR = 1e-6
"""Radians by which the other set has to be nearer to the held middle angle: noise does not choose."""


def with_held(mode: str, rotations: Array, angles: Array, held: Array) -> Array:
    """Angles (F, 3) about X, Y and Z that lead to rotations, with the held ones as they are.

    Args:
        mode: axes in the order in which they are applied, such as "XYZ".
        rotations: (F, 4).
        angles: (F, 3) that lead there too.
        held: (F, 3) angles; in the columns of free axes not a number.

    Returns:
        (F, 3), free angles modulo a whole turn. Where no rotation with the held angles is the given one, the
        nearest is taken.
    """
    first, middle, last = ("XYZ".index(axis) for axis in mode)
    is_held = ~np.isnan(held).any(axis=0)
    found = np.where(is_held, held, angles)
    if is_held[middle] and not (is_held[first] or is_held[last]):
        gap, other = _apart(angles, held, middle), _apart(math.pi - angles, held, middle)
        flipped = other + NEAR < gap
        found[np.ix_(flipped, (first, last))] += math.pi
        return found
    # What is held is taken off at both ends: rotation = last * middle * first.
    rest = rotations
    if is_held[first]:
        rest = batch.multiply(rest, _turn(first, -held[:, first]), axis=-1)
    if is_held[last]:
        rest = batch.multiply(_turn(last, -held[:, last]), rest, axis=-1)
    if is_held[middle] and is_held[first]:
        rest = batch.multiply(rest, _turn(middle, -held[:, middle]), axis=-1)
    elif is_held[middle]:
        rest = batch.multiply(_turn(middle, -held[:, middle]), rest, axis=-1)
    free = [axis for axis in (last, middle, first) if not is_held[axis]]
    if len(free) == 1:
        found[:, free[0]] = 2.0 * np.arctan2(rest[:, 1 + free[0]], rest[:, 0])
    elif len(free) == 2:
        found[:, free[0]], found[:, free[1]] = _two_turns(rest, *free)
    return found


def _two_turns(rotations: Array, outer: int, inner: int) -> tuple[Array, Array]:
    """(F,) angles about two axes whose turns, the inner one first, come nearest to rotations.

    With half angles a and b the product is (cos a cos b, cos a sin b of the inner axis, sin a cos b of the
    outer one, sin a sin b of their cross product): a matrix of rank one.
    """
    third = 3 - outer - inner
    sign = (outer - inner) * (inner - third) * (third - outer) // 2  # 1 where outer x inner = third
    w, along_inner, along_outer = (rotations[:, k] for k in (0, 1 + inner, 1 + outer))
    across = sign * rotations[:, 1 + third]
    squares = w**2 - across**2, along_inner**2 - along_outer**2
    return (
        np.arctan2(2.0 * (w * along_outer + along_inner * across), squares[0] + squares[1]),
        np.arctan2(2.0 * (w * along_inner + along_outer * across), squares[0] - squares[1]),
    )


def _turn(axis: int, angles: Array) -> Array:
    """(F, 4) rotations about one axis."""
    turns = np.zeros((len(angles), 4))
    turns[:, 0], turns[:, 1 + axis] = np.cos(angles / 2.0), np.sin(angles / 2.0)
    return turns


def _apart(angles: Array, held: Array, axis: int) -> Array:
    """(F,) how far an angle is from the held one, modulo a whole turn."""
    return np.abs(np.remainder(angles[:, axis] - held[:, axis] + math.pi, 2.0 * math.pi) - math.pi)
