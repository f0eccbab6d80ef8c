"""The best rotation of a ball joint, turn of a hinge and shift of a slide for some pairs of vectors: closed
forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mathutils import Quaternion, Vector

from .rotations import between
from .tolerances import NOISE

Pair = tuple[Vector, Vector, float]
"""`a`, `b` (model axes, seen from the joint's head) and a weight."""


FULL_TURN = 2.0 * math.pi


def best_rotation(pairs: Sequence[Pair], inertia: float = NOISE) -> Quaternion:
    """The rotation that minimises `sum w |R a - b|^2`: Davenport's q-method (Horn 1987, eq. 8 ff.).

    For one pair this is the shortest arc from a to b; a pair without length has no say. Vectors that are
    nearly on one line leave the turn about it nearly open, and what little they say of it may ask for half a
    turn: `inertia` is what a turn must win, in parts of all there is to win, to be made.
    """
    if len(pairs) == 1:
        return between(pairs[0][0], pairs[0][1])
    profile = np.zeros((3, 3))
    for a, b, weight in pairs:
        profile += weight * np.outer(np.array(b), np.array(a))
    scale = float(np.abs(profile).max())
    if scale == 0.0:
        return Quaternion((1.0, 0.0, 0.0, 0.0))
    profile /= scale
    trace = float(np.trace(profile))
    cross = np.array(
        (profile[2, 1] - profile[1, 2], profile[0, 2] - profile[2, 0], profile[1, 0] - profile[0, 1])
    )
    davenport = np.empty((4, 4))
    davenport[0, 0] = trace
    davenport[0, 1:] = davenport[1:, 0] = cross
    davenport[1:, 1:] = profile + profile.T - trace * np.eye(3)
    davenport[0, 0] += inertia  # as much for the rotation that turns nothing
    w, x, y, z = np.linalg.eigh(davenport)[1][:, -1].tolist()
    return Quaternion((w, x, y, z) if w >= 0.0 else (-w, -x, -y, -z))


def best_hinge_turn(axis: Vector, pairs: Sequence[Pair]) -> float:
    """The turn about the unit `axis` (radians, -pi..pi) that minimises `sum w |R a - b|^2`.

    It is `atan2(sum w n.(a x b), sum w (a.b - (a.n)(b.n)))`; 0 where every turn is equally good (all pairs
    on the axis).
    """
    sine = cosine = lever = 0.0
    for a, b, weight in pairs:
        across: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
        sine += weight * axis.dot(across)
        cosine += weight * (a.dot(b) - a.dot(axis) * b.dot(axis))
        lever += weight * a.length * b.length
    # float32 vectors leave about 1e-7 of their length as noise: that is no direction to turn to.
    if math.hypot(sine, cosine) <= 1e-6 * lever:
        return 0.0
    return math.atan2(sine, cosine)


def square_of(pairs: Sequence[Pair]) -> float:
    """`sum w |a - b|^2`: what a rotation that turns nothing leaves."""
    return math.fsum(weight * (a - b).length_squared for a, b, weight in pairs)


def best_slide(axis: Vector, shifts: Sequence[tuple[Vector, float, float]]) -> float:
    """The shift along the unit `axis` that minimises `sum w |g d axis - s|^2` over (s, g, w); 0 if nothing
    asks for one."""
    along = sum(weight * gain * axis.dot(wanted) for wanted, gain, weight in shifts)
    square = sum(weight * gain * gain for _, gain, weight in shifts)
    return along / square if square > 0.0 else 0.0


def nearest_turn(angle: float, lower: float, upper: float) -> float:
    """`angle` plus whole turns, brought into [lower, upper]; outside it the end that is nearer on the
    circle."""
    middle = 0.5 * (lower + upper)
    unwrapped = middle + math.remainder(angle - middle, FULL_TURN)
    return min(max(unwrapped, lower), upper)
