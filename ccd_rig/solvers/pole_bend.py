"""The bends of many poses that pole goals look at, and their slopes; for one: `skeleton.bends.pole_bend`.

Arrays are (3, B): components first, poses last, double precision. With l the unit line, B the part of
`between` across it, a the axis, f the smooth step and t = BEND_RANGE scale:

    F = (1 - f(|B| / t)) t        V = B + F (l x a)        weight w = f(|V| / t)

The residual is w times the signed angle about l from V to the side A of the target, plus the goal's own angle
(`PoleGoal.angle`), which is constant. Its differential follows from that of an azimuth: a vector v across l
turns about l by (l x v).dv / |v|^2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..maths.batch import TINY, Array, cross, dot
from ..maths.batch import length as length_of
from ..skeleton.bends import BEND_RANGE, POLE_NOISE

DIFFERENCE = 1e-6
"""Parts of their lengths by which vectors are moved to see how slopes change."""


class PoleBends(NamedTuple):
    """What a pole goal asks for in each of B poses, and what its slope is made of.

    Attributes:
        bend: (3, B) across the chain's line, the model's unit.
        side: (3, B) unit, across the line: towards the target, turned by the goal's angle.
        weight: (B,) 0 to 1, how much `bend` should point along `side`; 0 where nothing is asked for.
        angle: (B,) signed, about the line, from bend to side, radians; 0 where nothing is asked for.
        line: (3, B) unit.
        line_length: (B,).
        between: (3, B) as given.
        across: (3, B) its part across the line.
        to_target: (3, B) as given.
        axis: (3, B) as given.
        full: (B,), or one for all: BEND_RANGE times the scale.
        turned: the goal's angle.
    """

    bend: Array
    side: Array
    weight: Array
    angle: Array
    line: Array
    line_length: Array
    between: Array
    across: Array
    to_target: Array
    axis: Array
    full: Array | float
    turned: float

    @property
    def residual(self) -> Array:
        """(B,) the weighted signed angle, radians; its size is what `goals.measure` reports."""
        return self.weight * self.angle

    @property
    def met(self) -> Array:
        """(3, B) from the root's head: targets that the bends point at."""
        return turned_about(self.line, self.bend, -self.turned)


class PoleSlopes(NamedTuple):
    """Derivatives of `PoleBends.residual`, (3, B) each, by what moves.

    Attributes:
        line: by `line`, the vector from the root's head to the chain's end.
        between: by `between`.
        to_target: by `to_target`.
        axis: by `axis`.
        turn: by a rotation vector (model axes) of the frame that carries the axis.
    """

    line: Array
    between: Array
    to_target: Array
    axis: Array
    turn: Array


def turned_about(line: Array, across: Array, angle: float) -> Array:
    """(3, B) vectors across unit lines, turned about these by an angle in radians."""
    if angle == 0.0:
        return across
    return np.asarray(math.cos(angle) * across + math.sin(angle) * cross(line, across))


def pole_bends(
    line: Array, between: Array, to_target: Array, axis: Array, scale: Array | float, turned: float = 0.0
) -> PoleBends:
    """The bend, the side and the weight of a pole goal in each pose.

    Args:
        line: (3, B) from the head of the chain's root to the chain's end.
        between: (3, B) the sum of the heads between, each from the root's head.
        to_target: (3, B) from the root's head to the pole target.
        axis: (3, B) `BendAxis.axis` in model space.
        scale: (B,), or one for all: `BendAxis.scale`.
        turned: `PoleGoal.angle`.
    """
    full = BEND_RANGE * scale
    length = length_of(line)
    known = (full > 0.0) & (length > POLE_NOISE * scale)
    unit = line / np.maximum(length, TINY)
    across = between - dot(between, unit) * unit
    away = to_target - dot(to_target, unit) * unit
    away_length = length_of(away)
    known &= away_length > POLE_NOISE * length_of(to_target)
    side = turned_about(unit, away / np.maximum(away_length, TINY), turned)
    part = length_of(across) / np.maximum(full, TINY)
    bend = across + (1.0 - _smooth_step(part)) * full * cross(unit, axis)
    weight = np.where(known, _smooth_step(length_of(bend) / np.maximum(full, TINY)), 0.0)
    angle = np.arctan2(dot(unit, cross(bend, side)), dot(bend, side))
    angle = np.where(weight > 0.0, angle, 0.0)
    return PoleBends(bend, side, weight, angle, unit, length, between, across, to_target, axis, full, turned)


def pole_slopes(bends: PoleBends) -> PoleSlopes:
    """How the residual changes; 0 where nothing is asked for."""
    unit, bend, axis, full = bends.line, bends.bend, bends.axis, np.maximum(bends.full, TINY)
    size = np.maximum(length_of(bend), TINY)
    part, filled = np.minimum(length_of(bends.across), full) / full, np.minimum(size, full) / full
    # What the residual changes by is turn_bend.d(bend) + turn_side.d(to_target - its part along the line).
    fading = 6.0 * filled * (1.0 - filled) / full
    turn_bend = (bends.angle * fading * bend - bends.weight * cross(unit, bend) / size) / size
    away = bends.to_target - dot(bends.to_target, unit) * unit
    side = away / np.maximum(length_of(away), TINY)
    turn_side = bends.weight * cross(unit, side) / np.maximum(length_of(away), TINY)
    own = cross(unit, axis)
    # d(F) = -6 (1 - |B| / t) / t B.d(B), within the range of the smooth step.
    falling = 6.0 * (1.0 - part) / full
    by_between = turn_bend - falling * dot(turn_bend, own) * bends.across
    share = (1.0 - _smooth_step(part)) * full
    by_unit = (
        share * cross(axis, turn_bend)
        - dot(bends.between, unit) * by_between
        - dot(bends.to_target, unit) * turn_side
    )
    by_line = (by_unit - dot(by_unit, unit) * unit) / np.maximum(bends.line_length, TINY)
    by_axis = share * cross(turn_bend, unit)
    by_turn = cross(axis, by_axis)
    asked = bends.weight > 0.0
    found = (by_line, by_between, turn_side, by_axis, by_turn)
    return PoleSlopes(*(np.where(asked, each, 0.0) for each in found))


def pole_bending(bends: PoleBends) -> Array:
    """(12, 12, B) the second derivative of the residual by line, between, target and axis, in this order.

    By differences of `pole_slopes`, which are smooth but where a smooth step ends.
    """
    vectors = np.concatenate((bends.line_length * bends.line, bends.between, bends.to_target, bends.axis))
    count, size = vectors.shape
    steps = np.repeat(DIFFERENCE * np.array([length_of(each) for each in np.split(vectors, 4)]), 3, axis=0)
    steps += TINY
    moved = np.repeat(vectors[:, None], count + 1, axis=1)
    each = np.arange(count)
    moved[each, each] += steps
    line, between, to_target, axis = np.split(moved.reshape(count, -1), 4)
    scales = np.tile(np.broadcast_to(bends.full / BEND_RANGE, size), count + 1)
    by = pole_slopes(pole_bends(line, between, to_target, axis, scales, bends.turned))
    slopes = np.concatenate((by.line, by.between, by.to_target, by.axis)).reshape(count, count + 1, size)
    found = (slopes[:, :count] - slopes[:, count:]) / steps
    return np.asarray(0.5 * (found + found.transpose(1, 0, 2)))


def _smooth_step(x: Array) -> Array:
    x = np.minimum(x, 1.0)
    return np.asarray(x * x * (3.0 - 2.0 * x))
