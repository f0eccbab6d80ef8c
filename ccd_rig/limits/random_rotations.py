"""Random rotations inside limits."""

from __future__ import annotations

from math import asin, cos, hypot, pi, sin, sqrt
from random import Random

from mathutils import Euler, Quaternion

from .rows import product, rotated
from .shapes import ORDERS, Cone, Ellipse, EulerBox, Hinge, Limit, ReversedLimit, swing_axes


def sample(limit: Limit | None, random: Random) -> Quaternion:
    """A random rotation inside `limit` (None: any rotation), drawn from `random` alone.

    The draw is uniform among the rotations inside. A limit without volume (a hinge, a radius or a side of 0)
    is drawn uniformly in the angles that it leaves.
    """
    if limit is None:
        # Uniform over all rotations (Shoemake 1992, "Uniform random rotations").
        share, first, second = random.random(), random.uniform(-pi, pi), random.uniform(-pi, pi)
        a, b = sqrt(1.0 - share), sqrt(share)
        return Quaternion((b * cos(second), a * sin(first), a * cos(first), b * sin(second)))
    if isinstance(limit, ReversedLimit):
        inner = sample(limit.limit, random)
        return Quaternion((inner.w, *rotated(limit.frame, (-inner.x, -inner.y, -inner.z))))
    if isinstance(limit, EulerBox):
        return _sample_box(limit, random)
    x = z = 0.0
    if isinstance(limit, Hinge):
        lower, upper = limit.lower, limit.upper
    else:
        lower, upper = (-pi, pi) if limit.twist is None else limit.twist
        x, z = _sample_swing(limit.swing, random)
    twist = random.uniform(lower, upper)
    (ax, ay, az), (bx, by, bz) = swing_axes(limit.axis)
    angle = hypot(x, z)
    share = sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    x, z = share * x, share * z
    swing = cos(0.5 * angle), x * ax + z * bx, x * ay + z * by, x * az + z * bz
    nx, ny, nz = (sin(0.5 * twist) * each for each in limit.axis)
    return Quaternion(product(swing, (cos(0.5 * twist), nx, ny, nz)))


def _sample_swing(swing: Cone | Ellipse | None, random: Random) -> tuple[float, float]:
    """The rotation vector of a swing on its two axes; the direction of the swung axis is uniform."""
    if isinstance(swing, Ellipse):
        return _sample_ellipse(swing, random)
    # Points spread evenly over a cap have evenly spread heights, and so sin^2 of half the angle.
    radius = pi if swing is None else swing.radius
    angle = 2.0 * asin(sin(0.5 * radius) * sqrt(random.random()))
    azimuth = random.uniform(-pi, pi)
    return angle * cos(azimuth), angle * sin(azimuth)


def _sample_ellipse(ellipse: Ellipse, random: Random) -> tuple[float, float]:
    """Like `_sample_swing`, by rejection in the rotation vector's plane with density sin(r) / r."""
    while True:
        x = random.uniform(ellipse.x_lower, ellipse.x_upper)
        z = random.uniform(ellipse.z_lower, ellipse.z_upper)
        side_x = ellipse.x_upper if x >= 0.0 else ellipse.x_lower
        side_z = ellipse.z_upper if z >= 0.0 else ellipse.z_lower
        part_x = x / side_x if side_x != 0.0 else 0.0  # a side of 0: x is 0 too
        part_z = z / side_z if side_z != 0.0 else 0.0
        radius = hypot(x, z)
        if part_x * part_x + part_z * part_z <= 1.0 and random.random() * radius <= sin(radius):
            return x, z


def _sample_box(box: EulerBox, random: Random) -> Quaternion:
    """Uniform first and last angles; the middle one weighted by |cos|, as volume is."""
    angles = [random.uniform(lower, upper) for lower, upper in zip(box.lower, box.upper, strict=True)]
    middle = ORDERS[box.order][1]
    lower, upper = box.lower[middle], box.upper[middle]
    height = random.uniform(_cos_integral(lower), _cos_integral(upper))
    half_turns = round(0.5 * height)
    angle = half_turns * pi + asin(min(max(height - 2.0 * half_turns, -1.0), 1.0))
    angles[middle] = min(max(angle, lower), upper)
    return Euler(angles, box.order).to_quaternion()


def _cos_integral(angle: float) -> float:
    """The integral of |cos| from 0 to `angle`."""
    half_turns = round(angle / pi)
    return 2.0 * half_turns + sin(angle - half_turns * pi)
