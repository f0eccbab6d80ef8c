"""The best rotation of a ball joint, turn of a hinge and shift of a slide for some pairs of vectors: closed
forms.

A joint that should stay near a reference has that as one more set of pairs, with a weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mathutils import Quaternion, Vector

from .batch import Array
from .rotations import angle_between, between, slerp
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
    profile = _profile(pairs)
    scale = max(map(abs, profile))
    if scale == 0.0:
        return Quaternion((1.0, 0.0, 0.0, 0.0))
    davenport = _davenport([each / scale for each in profile])
    davenport[0, 0] += inertia  # as much for the rotation that turns nothing
    return _largest(davenport)


def best_rotation_near(pairs: Sequence[Pair], reference: Quaternion, weight: float) -> Quaternion:
    """The rotation that minimises `sum w |R a - b|^2 + weight sum |R f - g|^2`, g = `reference` f.

    The second sum is over three axes f at right angles. It adds `4 weight d d^T` to Davenport's matrix, where
    d is the quaternion of `reference`. Beside a single pair the best rotation has a closed form. Of all
    rotations that take a to b let u be the nearest to the reference, at the angle p from it. The best one
    lies on the way from u to the reference, at the angle `atan2(c sin p, 1 + c cos p)` from u. There
    c = 2 weight / (w |a| |b|).

    Args:
        pairs: what the rotation has to bring together.
        reference: the rotation to stay near to, model axes.
        weight: of each of the three axes, in the unit of `w |a| |b|`; 0 or more.
    """
    if not pairs:
        return reference.copy()
    if len(pairs) == 1:
        a, b, own = pairs[0]
        strength = own * a.length * b.length
        if strength <= 0.0:
            return reference.copy()
        nearest = between(reference @ a, b) @ reference
        ratio = 2.0 * weight / strength
        angle = angle_between(nearest, reference)
        if angle == 0.0:
            return nearest
        way = math.atan2(ratio * math.sin(angle), 1.0 + ratio * math.cos(angle))
        return slerp(nearest, reference, way / angle)
    quaternion = np.array(reference)
    return _largest(_davenport(_profile(pairs)) + 4.0 * weight * np.outer(quaternion, quaternion))


def _profile(pairs: Sequence[Pair]) -> list[float]:
    """The rows of `sum w b a^T`, one after the other."""
    xx = xy = xz = yx = yy = yz = zx = zy = zz = 0.0
    for a, b, weight in pairs:
        ax, ay, az = a.x, a.y, a.z
        bx, by, bz = b.x, b.y, b.z
        xx += weight * (bx * ax)
        xy += weight * (bx * ay)
        xz += weight * (bx * az)
        yx += weight * (by * ax)
        yy += weight * (by * ay)
        yz += weight * (by * az)
        zx += weight * (bz * ax)
        zy += weight * (bz * ay)
        zz += weight * (bz * az)
    return [xx, xy, xz, yx, yy, yz, zx, zy, zz]


def _davenport(profile: Sequence[float]) -> Array:
    """(4, 4): Davenport's matrix, whose largest eigenvector is the best quaternion (w, x, y, z)."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = profile
    trace = xx + yy + zz
    x, y, z = zy - yz, xz - zx, yx - xy
    return np.array(
        (
            (trace, x, y, z),
            (x, xx + xx - trace, xy + yx, xz + zx),
            (y, yx + xy, yy + yy - trace, yz + zy),
            (z, zx + xz, zy + yz, zz + zz - trace),
        )
    )


def _largest(davenport: Array) -> Quaternion:
    """The unit eigenvector of the largest eigenvalue, with w >= 0."""
    w, x, y, z = np.linalg.eigh(davenport)[1][:, -1].tolist()
    return Quaternion((w, x, y, z) if w >= 0.0 else (-w, -x, -y, -z))


def best_hinge_turn(
    axis: Vector, pairs: Sequence[Pair], reference: float = 0.0, weight: float = 0.0
) -> float:
    """The turn about the unit `axis` (radians, -pi..pi) that minimises `sum w |R a - b|^2`.

    It is `atan2(sum w n.(a x b), sum w (a.b - (a.n)(b.n)))`; 0 where every turn is equally good (all pairs
    on the axis).

    With a `weight` three more pairs ask for the turn `reference`: they add 2 weight (sin, cos) of it.
    """
    sine = cosine = lever = 0.0
    for a, b, own in pairs:
        across: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
        sine += own * axis.dot(across)
        cosine += own * (a.dot(b) - a.dot(axis) * b.dot(axis))
        lever += own * a.length * b.length
    if weight > 0.0:
        sine += 2.0 * weight * math.sin(reference)
        cosine += 2.0 * weight * math.cos(reference)
        lever += 2.0 * weight
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
    return min(max(wrapped(angle, 0.5 * (lower + upper)), lower), upper)


def wrapped(angle: float, middle: float) -> float:
    """`angle` plus the whole turns that bring it within half a turn of `middle`."""
    return middle + math.remainder(angle - middle, FULL_TURN)
