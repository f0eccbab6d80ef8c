"""Boxes of Euler angles: orders, middle angles and gimbal lock."""

from __future__ import annotations

import math
import random

import pytest
from chains import EXACT, FLOAT32
from mathutils import Euler, Quaternion
from random_limits import ORDERS, PI, X, Y, Z, hold, random_rotation, turn

from ccd_rig.limits.shapes import EulerBox, clamp, contains, sample, violation
from ccd_rig.maths.rotations import angle_between


@pytest.mark.parametrize("order", ORDERS)
def test_euler_order_means_what_blender_means(order: str):
    rng = random.Random(order)
    for _ in range(300):
        angles = [rng.uniform(-PI, PI) for _ in range(3)]
        rotation = Euler(angles, order).to_quaternion()
        around = EulerBox(order, [a - 1e-4 for a in angles], [a + 1e-4 for a in angles])
        assert contains(around, rotation)
        assert contains(around, -rotation)
        exactly = EulerBox(order, angles, angles)
        assert contains(exactly, rotation)
        assert angle_between(clamp(exactly, sample(None, rng)), rotation) < EXACT
        shifted = EulerBox(order, [a - 0.2 for a in angles], [a - 0.1 for a in angles])
        assert violation(shifted, rotation) > 1e-3 or abs(math.cos(angles["XYZ".index(order[1])])) < 0.05


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("letter", "XYZ")
def test_single_axis_turns_are_clamped_on_their_axis(order: str, letter: str):
    limit = EulerBox(order, (-0.3, -0.5, -0.7), (0.4, 0.6, 0.8))
    i = "XYZ".index(letter)
    axis = (X, Y, Z)[i]
    assert angle_between(hold(limit, turn(axis, 1.2)), turn(axis, limit.upper[i])) < EXACT
    assert angle_between(hold(limit, turn(axis, -1.2)), turn(axis, limit.lower[i])) < EXACT
    inside = turn(axis, 0.2)
    assert hold(limit, inside) is inside


@pytest.mark.parametrize("order", ORDERS)
def test_middle_angles_past_ninety_degrees(order: str):
    middle = "XYZ".index(order[1])
    lower, upper = [-0.2, -0.2, -0.2], [0.2, 0.2, 0.2]
    lower[middle], upper[middle] = math.radians(100), math.radians(140)
    limit = EulerBox(order, lower, upper)
    angles = [0.1, -0.1, 0.15]
    for degrees, expected in ((120, 120), (95, 100), (170, 140), (80, 100)):
        angles[middle] = math.radians(degrees)
        rotation = Euler(angles, order).to_quaternion()
        found = hold(limit, rotation)
        angles[middle] = math.radians(expected)
        assert (
            angle_between(rotation, found)
            <= angle_between(rotation, Euler(angles, order).to_quaternion()) + EXACT
        )
        if degrees == 120:
            assert found is rotation


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pole", [PI / 2, -PI / 2])
@pytest.mark.parametrize("near", [0.0, 1e-9, 1e-7, 1e-5, 1e-3])
def test_gimbal_lock_is_inside_when_any_of_its_representations_is(order: str, pole: float, near: float):
    middle = "XYZ".index(order[1])
    rng = random.Random(2)
    for _ in range(100):
        angles = [rng.uniform(-1.5, 1.5) for _ in range(3)]
        angles[middle] = pole - math.copysign(near, pole)
        rotation = Euler(angles, order).to_quaternion()
        # A thin box around the angles that made the rotation; from the rotation alone they cannot be told.
        thin = EulerBox(order, [a - 1e-3 for a in angles], [a + 1e-3 for a in angles])
        assert clamp(thin, rotation) is rotation
        exactly = EulerBox(order, angles, angles)
        assert clamp(exactly, rotation) is rotation
        # A corner of a box: both angles at a border, which rounding pushes over.
        corner = EulerBox(order, angles, [a + 1.0 for a in angles])
        assert clamp(corner, rotation) is rotation
        hold(EulerBox(order, [-0.3] * 3, [0.4] * 3), rotation)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pole", [PI / 2, -PI / 2])
def test_at_gimbal_lock_what_is_beyond_the_range_is_taken_off(order: str, pole: float):
    """One turn is left there, by the sum or difference of the outer angles; it is 0.1 to 0.4 beyond."""
    middle = "XYZ".index(order[1])
    rng = random.Random(5)
    for _ in range(50):
        angles = [rng.uniform(-0.6, 0.6) for _ in range(3)]
        angles[middle] = pole
        lower, upper = [a - 0.2 for a in angles], [a + 0.2 for a in angles]
        beyond, part = rng.choice((-1.0, 1.0)) * rng.uniform(0.1, 0.4), rng.random()
        first, last = ("XYZ".index(order[k]) for k in (0, 2))
        turned = list(angles)
        turned[first] += math.copysign(0.2, beyond) + part * beyond
        # Which of sum and difference is left depends on order and pole: that which is beyond counts.
        found = []
        for sign in (1.0, -1.0):
            turned[last] = angles[last] + sign * (math.copysign(0.2, beyond) + (1.0 - part) * beyond)
            limit, rotation = EulerBox(order, lower, upper), Euler(turned, order).to_quaternion()
            found.append(angle_between(rotation, hold(limit, rotation)))
        assert max(found) == pytest.approx(abs(beyond), abs=1e-3)
        assert min(found) < abs(beyond) - 0.05 or min(found) < 1e-3


def test_free_euler_angles():
    rng = random.Random(12)
    everything = EulerBox("XYZ", (-PI, -PI / 2, -PI), (PI, PI / 2, PI))
    only_middle = EulerBox("YXZ", (-0.2, -4.0, -4.0), (0.3, 4.0, 4.0))
    for _ in range(500):
        rotation = random_rotation(everything, rng)
        assert clamp(everything, rotation) is rotation
        found = hold(only_middle, rotation)
        # Only X is bounded, the middle one: its sine is one entry of the matrix, free of the other two.
        sine = found.to_matrix()[2][1]
        assert math.sin(-0.2) - FLOAT32 < sine < math.sin(0.3) + FLOAT32


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_no_rotation_counts_as_none(order: str):
    """A quaternion of zeros has no direction: the nearest of the box is that to the rest pose."""
    limit = EulerBox(order, (0.2, -0.5, 0.3), (0.4, 0.6, 0.8))
    clamped = clamp(limit, Quaternion((0.0, 0.0, 0.0, 0.0)))
    assert abs(clamped.magnitude - 1.0) < FLOAT32
    assert contains(limit, clamped)
    assert angle_between(clamped, clamp(limit, Quaternion((1.0, 0.0, 0.0, 0.0)))) < EXACT
