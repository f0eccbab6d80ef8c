"""The best turn of a hinge for pairs of vectors, and angles brought into a range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mathutils import Vector

Pair = tuple[Vector, Vector, float]
"""`a`, `b` (model axes, seen from the joint's head) and a weight."""


FULL_TURN = 2.0 * math.pi


def best_hinge_turn(
    axis: Vector, pairs: Sequence[Pair], reference: float = 0.0, weight: float = 0.0
) -> float:
    """The turn about the unit `axis` (radians, -pi..pi) that minimises `sum w |R a - b|^2`.

    It is `atan2(sum w n.(a x b), sum w (a.b - (a.n)(b.n)))`; 0 where every turn is equally good (all pairs
    on the axis).

    With a `weight` three more pairs pull to the turn `reference`: they add 2 weight (sin, cos) of it.
    """
    sine = cosine = lever = 0.0
    for a, b, pair_weight in pairs:
        across: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
        sine += pair_weight * axis.dot(across)
        cosine += pair_weight * (a.dot(b) - a.dot(axis) * b.dot(axis))
        lever += pair_weight * a.length * b.length
    if weight > 0.0:
        sine += 2.0 * weight * math.sin(reference)
        cosine += 2.0 * weight * math.cos(reference)
        lever += 2.0 * weight
    # float32 vectors have noise of about 1e-7 of their length: no direction to turn to.
    if math.hypot(sine, cosine) <= 1e-6 * lever:
        return 0.0
    return math.atan2(sine, cosine)


def nearest_turn(angle: float, lower: float, upper: float) -> float:
    """`angle` plus whole turns, clamped to [lower, upper]: outside, the nearer end on the circle."""
    return min(max(wrapped(angle, 0.5 * (lower + upper)), lower), upper)


def wrapped(angle: float, middle: float) -> float:
    """`angle` plus the whole turns that bring it within half a turn of `middle`."""
    return middle + math.remainder(angle - middle, FULL_TURN)
