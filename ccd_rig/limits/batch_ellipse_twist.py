"""Many rotations brought to a twist range with an ellipse; see `batch`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..maths.tolerances import ROUNDING
from .batch_parts import SLACK, TINY, Array, Mask, Places, nearest_half_angle, on_the_side_of, sign_of_first
from .shapes import SwingTwist

_ANGLE_SQUARE = (
    9.869603924556747,
    -2.6967048321857146,
    1.3019032797077013,
    -0.7798382360726563,
    0.49274560714110294,
    -0.27429488452139594,
    0.10655630432393082,
    -0.01997142801701557,
)
"""Polynomial in c for angle^2 / (1 - c), with c the cosine of half the angle in 0..1; relative error 5e-8."""
_ELLIPSE_SLACK = 4e-7
"""Excess of the ellipse's sum of squares that the inside test allows. It is 0.63e-6 radians at most."""
_NEWTON_STEPS = 50
"""Bound on Newton's steps to an ellipse; 4 to 6 are usual, 35 where one side is a millionth of the other."""


def ellipse_twist_constants(limit: SwingTwist) -> Array:
    """Constants (25,) of a twist range with an ellipse.

    Those of a cone (11), the two swing axes (6), the sides -a, +a, -b, +b in radians (4), and for the inside
    test 1 / side^2 (4).
    """
    assert limit.ellipse_twist is not None
    cone, axes, sides = limit.ellipse_twist
    return np.array([*cone, *axes, *sides, *(1.0 / max(side, SLACK) ** 2 for side in sides)])


def ellipse_twist_suspects(constants: Array, rotations: Array) -> Mask:
    nx, ny, nz, cm, sm, ch, sh = constants[:7]
    ax, ay, az, bx, by, bz = constants[11:17]
    a_lower, a_upper, b_lower, b_upper = constants[21:25]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    g = x * ax + y * ay + z * az
    k = x * bx + y * by + z * bz
    suspects: Mask = np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh >= SLACK
    # The swing's rotation vector is angle / (s u) (on_a, on_b), and angle^2 / u^2 = polynomial / (1 + s).
    on_a, on_b = g * w + k * p, k * w - g * p
    twist_square = w * w + p * p
    square = g * g + k * k + twist_square
    cosine = np.sqrt(twist_square / square)
    polynomial = np.full(cosine.shape, _ANGLE_SQUARE[-1])
    for coefficient in _ANGLE_SQUARE[-2::-1]:
        polynomial *= cosine
        polynomial += coefficient
    on_a *= on_a * np.where(g * w + k * p >= 0.0, a_upper, a_lower)
    on_b *= on_b * np.where(k * w - g * p >= 0.0, b_upper, b_lower)
    on_a += on_b
    polynomial *= on_a
    cosine += 1.0
    cosine *= square
    cosine *= twist_square
    suspects |= polynomial > (1.0 + _ELLIPSE_SLACK) * cosine
    suspects |= twist_square <= 4.0 * SLACK * SLACK
    return suspects


def nearest_ellipse_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    nx, ny, nz, cm, sm, ch, sh, _, _, rest_e, rest_f = constants[:11]
    ax, ay, az, bx, by, bz = constants[11:17]
    sides = constants[17:21]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    g, k = x * ax + y * ay + z * az, x * bx + y * by + z * bz
    u, s = np.sqrt(g * g + k * k), np.sqrt(w * w + p * p)
    slack = SLACK * np.sqrt(g * g + k * k + w * w + p * p)
    twist_inside = np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh < slack
    e, f, reach = nearest_half_angle(w, p, cm, sm, ch, sh)
    # A half-turn swing: every twist and either direction of the swing's axis are equally near. What (w, p)
    # still says comes first, so that a rotation on the rim stays; then the twist nearest to rest.
    half_turn = s <= slack
    if half_turn.any():
        side = sign_of_first(g, k)
        rest_e, rest_f = side * rest_e, side * rest_f
        silent = s == 0.0
        e, f = np.where(silent, rest_e, e), np.where(silent, rest_f, f)
        reach = np.where(silent, 0.0, reach)
    parts = _SwingParts(g, k, u, sides)
    swing = _SwingToEllipse(e, f, reach, parts)
    to_a, to_b, distance = swing.to_a, swing.to_b, swing.distance
    outside: Mask = ~(twist_inside & swing.is_close)
    # The other side of the quaternion starts 2 pi - angle from rest, and no side is more than pi from rest.
    left = np.flatnonzero(outside & (swing.distance > math.pi - swing.angle))
    for step in range(1, 4):
        if step == 2:
            left = left[half_turn[left]]
        if len(left) == 0:
            break
        if step == 1:
            other_e, other_f, other_reach = -e[left], -f[left], -reach[left]
        else:
            side_e, side_f = rest_e[left], rest_f[left]
            other_e, other_f = (side_e, side_f) if step == 2 else (-side_e, -side_f)
            other_reach = np.zeros(len(left))
        swing = _SwingToEllipse(other_e, other_f, other_reach, parts.at(left))
        nearer = swing.distance < distance[left]
        chosen = left[nearer]
        if len(chosen):
            if step == 1:
                e, f = e.copy(), f.copy()
            e[chosen], f[chosen] = other_e[nearer], other_f[nearer]
            to_a[chosen], to_b[chosen] = swing.to_a[nearer], swing.to_b[nearer]
            distance[chosen] = swing.distance[nearer]
        close = twist_inside[left] & swing.is_close
        outside[left[close]] = False
        left = left[~close & (swing.distance > math.pi - swing.angle)]
    angle = np.sqrt(to_a * to_a + to_b * to_b)
    half = 0.5 * angle
    sine_per_angle = np.where(angle > TINY, np.sin(half) / np.maximum(angle, TINY), 0.5)
    s = np.cos(half)
    to_a, to_b = sine_per_angle * to_a, sine_per_angle * to_b
    g, k, p = to_a * e - to_b * f, to_b * e + to_a * f, s * f
    nearest = np.array((s * e, p * nx + g * ax + k * bx, p * ny + g * ay + k * by, p * nz + g * az + k * bz))
    return on_the_side_of(rotations, nearest), outside


class _SwingParts(NamedTuple):
    """What is the same of a rotation (K,) whichever twist and side it is seen with.

    Attributes:
        g, k: parts of the quaternion on the swing axes a and b.
        u: length of (g, k).
        sides: (4, K) half axes of the ellipse.
    """

    g: Array
    k: Array
    u: Array
    sides: Array

    def at(self, some: Places) -> _SwingParts:
        """Those of some of the rotations."""
        return _SwingParts(self.g[some], self.k[some], self.u[some], self.sides[:, some])


class _SwingToEllipse:
    """Rotation vectors of swings (K,), and their nearest points in the ellipses.

    Attributes:
        angle: of the swing, radians, from 0 to 2 pi.
        to_a, to_b: the nearest point in the ellipse, radians on the swing axes.
        distance: from the rotation vector to that point, radians.
        is_close: whether the swing is no more than `ROUNDING` outside.
    """

    def __init__(self, e: Array, f: Array, reach: Array, parts: _SwingParts) -> None:
        g, k, u, sides = parts
        # Turned by half the twist about n, for which n x a = -b, n x b = a. With reach < 0 it is the vector
        # longer than pi that goes round the other way.
        self.angle = angle = 2.0 * np.arctan2(u, reach)
        per_sine = np.where(u > TINY, angle / np.maximum(u, TINY), 2.0)
        on_a, on_b = per_sine * (g * e + k * f), per_sine * (k * e - g * f)
        self.to_a, self.to_b = _nearest_in_ellipse(on_a, on_b, sides)
        off_a, off_b = on_a - self.to_a, on_b - self.to_b
        square = off_a * off_a + off_b * off_b
        self.distance = np.sqrt(square)
        # How far the axis n itself has to move: an arc `across` the way from rest is as long as on the sphere
        # of its directions. No way across leads inside where the angle is wider than all sides.
        sine = np.abs(np.sin(angle))
        radial = (off_a * on_a + off_b * on_b) * sine
        across = (off_a * on_b - off_b * on_a) * angle
        self.is_close: Mask = square * angle * sine <= ROUNDING * np.sqrt(radial * radial + across * across)
        self.is_close &= angle <= sides.max(0) + ROUNDING


def _nearest_in_ellipse(a: Array, b: Array, sides: Array) -> tuple[Array, Array]:
    """Points (K,), (K,) nearest to (a, b) in shapes of four quarter ellipses with half axes `sides` (4, K).

    As in `projection.nearest_on_ellipse`, with Newton's method on 1 / sqrt(sum) - 1. That is nearly linear
    and concave: its steps from the left never pass the root either, and fewer are needed.
    """
    semi_a, semi_b = np.where(a >= 0.0, sides[1], sides[0]), np.where(b >= 0.0, sides[3], sides[2])
    to_a, to_b = np.clip(a, -semi_a, semi_a), np.clip(b, -semi_b, semi_b)
    full = (semi_a > 0.0) & (semi_b > 0.0)
    if full.any():
        square_a, square_b = semi_a * semi_a, semi_b * semi_b
        beyond = a * a * square_b + b * b * square_a > square_a * square_b
        np.copyto(to_a, a, where=full & ~beyond)
        np.copyto(to_b, b, where=full & ~beyond)
        left = np.flatnonzero(full & beyond)
        a, b, square_a, square_b = a[left], b[left], square_a[left], square_b[left]
        t = _ellipse_root(np.abs(a) * semi_a[left], np.abs(b) * semi_b[left], square_a, square_b)
        to_a[left], to_b[left] = a * square_a / (t + square_a), b * square_b / (t + square_b)
    return to_a, to_b


def _ellipse_root(scaled_a: Array, scaled_b: Array, square_a: Array, square_b: Array) -> Array:
    """Roots t (K,) of (scaled_a / (t + square_a))^2 + (scaled_b / (t + square_b))^2 = 1; t is 0 or more."""
    roots: Array = np.maximum(np.maximum(scaled_a - square_a, scaled_b - square_b), 0.0)  # left of the root
    places: Places = np.arange(len(roots))
    t, resolution = roots.copy(), 1e-15 * (square_a + square_b)
    for _ in range(_NEWTON_STEPS):
        over_a, over_b = t + square_a, t + square_b
        part_a, part_b = scaled_a / over_a, scaled_b / over_b
        part_a *= part_a
        part_b *= part_b
        total = part_a + part_b
        # sqrt(total) - 1 without cancellation.
        step = total * (total - 1.0) / ((np.sqrt(total) + 1.0) * (part_a / over_a + part_b / over_b))
        moving = step > 1e-15 * t + resolution
        count = np.count_nonzero(moving)
        if count == 0:
            break
        t += np.where(moving, step, 0.0)
        if 4 * count < len(t):
            roots[places] = t
            t, places, resolution = t[moving], places[moving], resolution[moving]
            scaled_a, scaled_b = scaled_a[moving], scaled_b[moving]
            square_a, square_b = square_a[moving], square_b[moving]
    roots[places] = t
    return roots
