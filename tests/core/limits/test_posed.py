"""Bounds that are put where a rotation is: it lies on the border then, and other bounds stay."""

from __future__ import annotations

import math
import random

import pytest
from mathutils import Euler, Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, SwingTwist, violation
from ccd_rig.maths.rotations import exp

FLOAT32 = 2e-6
AXIS = Vector((0.6, 0.0, 0.8))


def test_a_hinge_ends_at_the_angle():
    limit = Hinge(AXIS, -1.0, 1.0)
    assert limit.with_bound_at(exp(AXIS * 0.4), True).upper == pytest.approx(0.4, abs=FLOAT32)
    assert limit.with_bound_at(exp(AXIS * 0.4), True).lower == -1.0
    assert limit.with_bound_at(exp(AXIS * 2.2), True).upper == pytest.approx(2.2, abs=FLOAT32)
    result = limit.with_bound_at(exp(AXIS * 1.4), False)
    assert (result.lower, result.upper) == pytest.approx((1.4, 1.4), abs=FLOAT32)


def test_a_twist_ends_at_the_roll_of_a_swung_bone():
    rotation = exp(Vector((0.3, 0.0, -0.5))) @ Quaternion((0.0, 1.0, 0.0), 0.7)
    result = SwingTwist(Cone(0.4), (-0.2, 0.2)).with_bound_at(rotation, True)
    assert result.twist == pytest.approx((-0.2, 0.7), abs=FLOAT32)
    assert result.swing == Cone(0.4)


@pytest.mark.parametrize("order", ["XYZ", "ZXY"])
def test_euler_angles_end_at_all_three(order):
    limit = EulerBox(order, (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    angles = (0.3, -0.4, 0.5)
    result = limit.with_bound_at(Euler(angles, order).to_quaternion(), True)
    assert result.upper == pytest.approx(angles, abs=FLOAT32)
    assert result.lower == (-1.0, -1.0, -1.0)


def test_a_cone_ends_at_the_swing():
    rotation = exp(Vector((0.3, 0.0, -0.4))) @ Quaternion((0.0, 1.0, 0.0), 0.2)
    result = SwingTwist(Cone(1.0), (-0.1, 0.1)).with_rim_at(rotation)
    assert result.swing.radius == pytest.approx(0.5, abs=FLOAT32)
    assert result.twist == (-0.1, 0.1)


def test_an_ellipse_goes_through_the_swing():
    rng = random.Random(5)
    for _ in range(200):
        sides = Ellipse(*(sign * rng.uniform(0.0, 1.5) for sign in (-1, 1, -1, 1)))
        x, z = rng.uniform(-1.2, 1.2), rng.uniform(-1.2, 1.2)
        result = SwingTwist(sides).with_rim_at(exp(Vector((x, 0.0, z))))
        for part, is_inside in ((0.99, True), (1.01, False)):
            assert (violation(result, exp(Vector((x, 0.0, z)) * part)) < FLOAT32) is is_inside


def test_a_swing_along_one_axis_moves_one_side():
    sides = Ellipse(-0.5, 0.6, 0.0, 0.8)
    result = SwingTwist(sides).with_rim_at(exp(Vector((-0.9, 0.0, 1e-7)))).swing
    assert result.x_lower == pytest.approx(-0.9, abs=FLOAT32)
    assert (result.x_upper, result.z_lower, result.z_upper) == (0.6, 0.0, 0.8)


def test_at_rest_an_ellipse_has_no_side():
    with pytest.raises(InvalidInput, match="does not swing"):
        SwingTwist(Ellipse(-1, 1, -1, 1)).with_rim_at(Quaternion((0.0, 1.0, 0.0), math.pi / 3))
