"""Limits over a batch: how far a rotation is outside, and half turns."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from arrays import KINDS, about, hard_rotations, random_limit
from mathutils import Quaternion, Vector

from ccd_rig.limits.shapes import (
    BatchLimits,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    ReversedLimit,
    SwingTwist,
    clamp,
    contains,
    violation,
)
from ccd_rig.maths.batch import multiply

pytestmark = pytest.mark.usefixtures("no_silent_nan")


@pytest.mark.parametrize("kind", KINDS)
def test_contains_counts_the_tolerance_from_the_border(kind: str):
    rng = np.random.default_rng(32)
    limits = [random_limit(kind, rng) for _ in range(30)]
    batch = BatchLimits(limits)
    rotations = hard_rotations(limits, rng, 5)
    projected, outside = batch.project(rotations)
    assert outside is not None
    assert np.array_equal(batch.contains(rotations), ~outside)
    angles = batch.violations(rotations)
    assert np.array_equal(angles > 0.0, outside)
    half = np.sqrt(((rotations - projected) ** 2).sum(0))  # the chord of half the angle
    assert np.abs(angles - 4.0 * np.arcsin(np.minimum(0.5 * half, 1.0))).max() < 1e-6
    for tolerance in (0.01, 0.5):
        assert np.array_equal(batch.contains(rotations, tolerance), angles <= tolerance)
    assert not batch.contains(rotations, -1.0).any()


def test_a_known_excess():
    limits = [
        Hinge((0, 0, 1), -0.2, 0.5),
        SwingTwist(Cone(0.5)),
        SwingTwist(Ellipse(-0.1, 0.1, -0.3, 0.5)),
        EulerBox("YZX", (0, 0, -0.3), (0, 0, 0.5)),
        ReversedLimit(Hinge((0, 0, 1), -0.5, 0.2), (0.5, 0.5, 0.5, 0.5)),
    ]
    angles = np.array((0.4, 0.5 + 4e-7, 0.5 + 4e-6, 0.8))
    rotations = np.repeat(about((0, 0, 1), angles)[:, None], 5, axis=1)
    rotations[:, 4] = about((1, 0, 0), angles)  # the frame takes Z to X
    batch = BatchLimits(limits)
    assert batch.violations(rotations) == pytest.approx(np.tile((0, 0, 4e-6, 0.3), (5, 1)), abs=1e-12)
    _, outside = batch.project(rotations)
    assert outside is not None
    assert np.array_equal(outside, np.tile((False, False, True, True), (5, 1)))


# Half turns -------------------------------------------------------------------------------------------------


HALF_TURN_ELLIPSES = [
    SwingTwist(Ellipse(-0.52, 0.70, -0.35, 0.44)),
    SwingTwist(Ellipse(-0.52, 0.70, -0.35, 0.44), (math.radians(10), math.radians(30))),
    SwingTwist(Ellipse(-2.9, 3.1, -0.4, 1.2), (-0.5, 0.5)),
    SwingTwist(Ellipse(-1.0, 1.0, 0.0, 2.0), None, (1.0, 2.0, -2.0)),
]


@pytest.mark.parametrize("limit", HALF_TURN_ELLIPSES, ids=range(len(HALF_TURN_ELLIPSES)))
@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-9, 1e-7, 4e-7, 1e-6, 1e-5, 1e-3])
def test_no_ellipse_allows_a_half_turn(limit, off):
    """The axis points straight back, or nearly so: judged by where it points, and by nothing else."""
    rng = random.Random(7)
    axis = np.array(limit.axis)
    axis /= np.linalg.norm(axis)
    swing = limit.swing
    widest = max(-swing.x_lower, swing.x_upper, -swing.z_lower, swing.z_upper)
    for _ in range(100):
        about = np.cross(axis, [rng.gauss(0.0, 1.0) for _ in range(3)])
        about /= np.linalg.norm(about)
        half, twist = 0.5 * (math.pi - off * rng.choice((-1, 1))), rng.choice((0.0, rng.uniform(-3, 3)))
        swung = np.array([math.cos(half), *(math.sin(half) * about)])
        rolled = np.array([math.cos(twist / 2), *(math.sin(twist / 2) * axis)])
        rotation = multiply(swung[:, None], rolled[:, None])[:, 0]
        inside, _ = BatchLimits([limit]).project(rotation.reshape(4, 1, 1))
        for found in (clamp(limit, Quaternion(rotation)), Quaternion(inside[:, 0, 0])):
            pointing = found.to_matrix() @ Vector(axis)
            angle = math.atan2(np.linalg.norm(np.cross(axis, pointing)), axis @ np.array(pointing))
            assert angle <= widest + 1e-5
        assert violation(limit, Quaternion(rotation)) > 0.5 * (math.pi - widest - 1e-3)
        assert not contains(limit, Quaternion(rotation), 1e-3)
