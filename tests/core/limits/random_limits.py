"""Limits and rotations drawn by a seed, and checks of clamping, for the tests of limits."""

from __future__ import annotations

import math
import random

import pytest
from chains import EXACT, FLOAT32
from mathutils import Quaternion, Vector

from ccd_rig.limits.shapes import (
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    SwingTwist,
    clamp,
    contains,
    sample,
    violation,
)
from ccd_rig.maths.rotations import angle_between, exp

PI = math.pi
X, Y, Z = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))
IDENTITY = Quaternion((1.0, 0.0, 0.0, 0.0))
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


def turn(axis: Vector, angle: float) -> Quaternion:
    return exp(axis.normalized() * angle)


def random_range(rng: random.Random, most: float = 4.0) -> tuple[float, float]:
    """Narrow, wide, without rest, past a half turn, more than a full turn, or of no width."""
    if rng.random() < 0.1:
        return (rng.uniform(-most, most),) * 2
    low, high = sorted(rng.uniform(-most, most) for _ in range(2))
    return low, high


def random_axis(rng: random.Random) -> tuple[float, float, float]:
    if rng.random() < 0.5:
        return rng.choice([(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, -1, 0)])
    return rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)


def random_limit(kind: str, rng: random.Random) -> Limit:
    if kind == "hinge":
        return Hinge(random_axis(rng), *random_range(rng))
    if kind == "box":
        ranges = [random_range(rng) for _ in range(3)]
        return EulerBox(rng.choice(ORDERS), [low for low, _ in ranges], [high for _, high in ranges])
    twist = rng.choice([None, random_range(rng)])
    if kind == "twist":
        return SwingTwist(None, random_range(rng), random_axis(rng))
    if kind == "cone":
        return SwingTwist(Cone(rng.choice([0.0, PI, rng.uniform(0, PI)])), twist, random_axis(rng))
    sides = [rng.choice([0.0, rng.uniform(0.0, PI), rng.uniform(0.0, PI)]) for _ in range(4)]
    return SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), twist, random_axis(rng))


def random_rotation(limit: Limit, rng: random.Random) -> Quaternion:
    """Anywhere, near the limit, on the lattice of quarter and half turns, or a pure swing or twist."""
    kind = rng.randrange(6)
    if kind == 0:
        lattice = Quaternion([rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0]) for _ in range(4)])
        return lattice.normalized() if lattice.magnitude > 0.0 else IDENTITY.copy()
    if kind == 1:
        return sample(limit, rng) @ exp(
            Vector([rng.gauss(0.0, 10.0 ** rng.uniform(-8, 0)) for _ in range(3)])
        )
    if kind == 2:
        return Quaternion([rng.gauss(0, 1) * 10.0 ** rng.uniform(-8, 0) for _ in range(4)]).normalized()
    return sample(None, rng)


def hold(limit: Limit, rotation: Quaternion) -> Quaternion:
    """What must be true of every limit and rotation; gives the clamped rotation back."""
    clamped = clamp(limit, rotation)
    assert all(math.isfinite(part) for part in clamped)
    assert abs(clamped.magnitude - 1.0) < FLOAT32
    assert clamp(limit, clamped) is clamped, "clamping again moves it"
    assert contains(limit, clamped)
    assert violation(limit, clamped) == 0.0
    assert contains(limit, rotation) == (clamped is rotation)
    assert violation(limit, rotation) == pytest.approx(angle_between(rotation, clamped), abs=EXACT)
    assert rotation.dot(clamped) >= -EXACT, "on the other side"
    other = clamp(limit, -rotation)
    assert angle_between(other, clamped) < EXACT, "q and -q differ"
    assert tuple(clamp(limit, rotation.copy())) == tuple(clamped)
    return clamped


def outside(angle: float, low: float, high: float) -> float:
    """Radians by which an angle is outside a range, the short way round the circle."""
    return max(abs(math.remainder(angle - 0.5 * (low + high), 2 * PI)) - 0.5 * (high - low), 0.0)
