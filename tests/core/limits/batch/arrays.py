"""Rotations as arrays, made here and not in the module under test, and limits that they are hard for."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ccd_rig.limits.shapes import (
    BatchLimits,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    ReversedLimit,
    SwingTwist,
)

Array = NDArray[np.float64]
PI = math.pi
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
KINDS = ("hinge", "twist", "cone", "ellipse", "box", "reversed")
ROUNDED = 1e-9
"""Difference of two results in double precision; radians or parts of a unit quaternion."""
Random = np.random.Generator


def product(a: Array, b: Array) -> Array:
    """Quaternion products of (4, ...) and (4, ...)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        )
    )


def turns(vectors: Array) -> Array:
    """Quaternions (4, ...) of rotation vectors (3, ...)."""
    angles = np.sqrt((vectors * vectors).sum(0))
    return np.array((np.cos(0.5 * angles), *(vectors * np.sinc(angles / (2 * PI)) * 0.5)))


def about(axis: tuple[float, float, float], angles: Array) -> Array:
    """Quaternions (4, N) of angles (N,) about one axis."""
    return turns(np.array(axis)[:, None] * angles)


def dots(a: Array, b: Array) -> Array:
    total: Array = (a * b).sum(0)
    return total


def uniform(rng: Random, *shape: int) -> Array:
    quaternions = rng.normal(size=(4, *shape))
    return np.asarray(quaternions / np.sqrt((quaternions * quaternions).sum(0)))


def random_range(rng: Random) -> tuple[float, float]:
    """Narrow, wide, without rest, past a half turn, locked, or a full turn and beyond."""
    kind = rng.integers(8)
    if kind == 0:
        return (float(rng.choice((0.0, PI, -PI / 2, rng.uniform(-4, 4)))),) * 2
    if kind == 1:
        lower = float(rng.choice((-PI, rng.uniform(-5, 0))))
        return lower, lower + float(rng.choice((2 * PI, 2 * PI - 1e-9, rng.uniform(6, 9))))
    if kind == 2:
        return -float(rng.uniform(0, PI)), float(rng.uniform(0, PI))
    lower, upper = sorted(rng.uniform(-4, 4, 2).tolist())
    return lower, upper


def random_axis(rng: Random) -> tuple[float, float, float]:
    if rng.random() < 0.5:
        return ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, -1, 0))[rng.integers(4)]
    x, y, z = rng.normal(size=3).tolist()
    return x, y, z


def random_limit(kind: str, rng: Random) -> Limit:
    if kind == "reversed":
        limit = random_limit(KINDS[rng.integers(5)], rng)
        for _ in range(rng.choice((1, 1, 2))):
            w, x, y, z = rng.normal(size=4).tolist()
            limit = ReversedLimit(limit, (w, x, y, z))
        return limit
    if kind == "hinge":
        return Hinge(random_axis(rng), *random_range(rng))
    if kind == "box":
        lower, upper = zip(*(random_range(rng) for _ in range(3)), strict=True)
        return EulerBox(str(rng.choice(ORDERS)), lower, upper)
    if kind == "twist":
        return SwingTwist(None, random_range(rng), random_axis(rng))
    twist = None if rng.random() < 0.3 else random_range(rng)
    if kind == "cone":
        return SwingTwist(Cone(float(rng.choice((0.0, PI, rng.uniform(0, PI))))), twist, random_axis(rng))
    sides = [float(rng.choice((0.0, PI, *rng.uniform(1e-3, PI, 6)))) for _ in range(4)]
    return SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), twist, random_axis(rng))


def hard_rotations(limits: list[Limit], rng: Random, count: int) -> Array:
    """(4, n, 6 count): uniform, at borders, near borders, few parts, near few parts, in single precision."""
    even = uniform(rng, len(limits), count)
    borders = BatchLimits(limits).project(even)[0]
    sizes = 10.0 ** rng.uniform(-8, 0, (len(limits), count))
    near_borders = product(borders, turns(rng.normal(size=(3, len(limits), count)) * sizes))
    # Half and quarter turns: the swing is a half turn, or an Euler angle is at gimbal lock.
    lattice = rng.choice((-1.0, -0.5, 0.0, 0.5, 1.0), (4, len(limits), count))
    lattice[0] += (lattice == 0.0).all(0)
    lattice /= np.sqrt((lattice * lattice).sum(0))
    near_lattice = product(lattice, turns(rng.normal(size=(3, len(limits), count)) * sizes))
    single = borders.astype(np.float32).astype(np.float64)
    return np.concatenate((even, borders, near_borders, lattice, near_lattice, single), axis=2)


def off(angle: Array, lower: float, upper: float) -> Array:
    """Radians by which angles are outside a range, the short way round the circle."""
    beyond = np.abs(np.remainder(angle - 0.5 * (lower + upper) + PI, 2 * PI) - PI) - 0.5 * (upper - lower)
    return np.maximum(beyond, 0.0)
