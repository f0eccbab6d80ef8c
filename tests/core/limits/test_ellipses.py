"""Ellipses of swing: their axes, their rims and what lies beyond a half turn."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import EXACT, FLOAT32
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Quaternion, Vector
from random_limits import PI, X, Y, hold, random_axis, turn

from ccd_rig.kernel import project_rotation
from ccd_rig.limits.shapes import (
    Cone,
    Ellipse,
    Hinge,
    SwingTwist,
    clamp,
    contains,
    sample,
    swing_axes,
    violation,
)
from ccd_rig.maths.rotations import angle_between, exp


def test_ellipse_with_equal_sides_is_a_cone():
    rng = random.Random(31)
    for _ in range(300):
        radius, twist, axis = rng.uniform(0.05, 3.0), rng.choice([None, (-0.5, 0.8)]), random_axis(rng)
        round_one = SwingTwist(Cone(radius), twist, axis)
        oval = SwingTwist(Ellipse(-radius, radius, -radius, radius), twist, axis)
        rotation = sample(None, rng)
        assert angle_between(clamp(round_one, rotation), clamp(oval, rotation)) < FLOAT32


@pytest.mark.parametrize(
    ("on_x", "on_z", "to_x", "to_z"),
    [
        (1.0, 0.0, 0.6, 0.0),
        (-1.0, 0.0, -0.3, 0.0),
        (0.0, 1.0, 0.0, 0.5),
        (0.0, -1.0, 0.0, -0.2),
        (0.5, 0.0, 0.5, 0.0),
    ],
)
def test_ellipse_sides_are_rotations_about_x_and_z(on_x: float, on_z: float, to_x: float, to_z: float):
    limit = SwingTwist(Ellipse(-0.3, 0.6, -0.2, 0.5))
    assert angle_between(hold(limit, exp(Vector((on_x, 0, on_z)))), exp(Vector((to_x, 0, to_z)))) < EXACT


@pytest.mark.parametrize(
    "axis", [(0, 1, 0), (1, 0, 0), (0, 0, 1), (0, -1, 0), (1, -2, 0.5), (1e-4, -1, 1e-4)]
)
def test_swing_axes_are_x_and_z_carried_along_from_y(axis: tuple[float, float, float]):
    a, b = (Vector(one) for one in swing_axes(axis))
    n = Vector(axis).normalized()
    assert max(abs(a.dot(b)), abs(a.dot(n)), abs(b.dot(n)), abs(a.length - 1), abs(b.length - 1)) < EXACT
    assert (a.cross(n) - b).length < EXACT  # as X x Y = Z
    # The same limit in the carried frame: clamping commutes with the turn that carries Y to the axis.
    carry = (
        Y.rotation_difference(n) if n.dot(Y) > -0.999 else turn(X if axis[0] == 0 else Y.cross(n), Y.angle(n))
    )
    if n.dot(Y) > -0.999:
        assert (carry @ X - a).length < 10 * EXACT
    ellipse = Ellipse(-0.3, 0.6, -0.2, 0.5)
    here, there = SwingTwist(ellipse, (-0.5, 0.2)), SwingTwist(ellipse, (-0.5, 0.2), axis)
    rng = random.Random(3)
    for _ in range(20):
        rotation = exp(Vector([rng.gauss(0, 0.7) for _ in range(3)]))
        moved = Quaternion((rotation.w, *(a * rotation.x + n * rotation.y + b * rotation.z)))
        found = clamp(here, rotation)
        expected = Quaternion((found.w, *(a * found.x + n * found.y + b * found.z)))
        assert angle_between(clamp(there, moved), expected) < FLOAT32


side = st.one_of(st.just(0.0), st.floats(1e-5, PI))


@given(st.floats(-2.2, 2.2), st.floats(-2.2, 2.2), side, side, side, side)
@settings(max_examples=50, deadline=None)
def test_nearest_on_ellipse_beats_every_point_of_the_rim(a, b, a_lower, a_upper, b_lower, b_upper):
    limit = SwingTwist(Ellipse(-a_lower, a_upper, -b_lower, b_upper))
    length = math.hypot(a, b)
    scale = math.sin(0.5 * length) / length if length > 0.0 else 0.5
    rotation = (math.cos(0.5 * length), scale * a, 0.0, scale * b)
    nearest = project_rotation(limit.row, *rotation)
    semi_a, semi_b = a_upper if a >= 0 else a_lower, b_upper if b >= 0 else b_lower
    radius = math.inf
    if semi_a > 0 and semi_b > 0:
        radius = math.hypot(a / semi_a, b / semi_b)
    if radius <= 1.0:
        assert nearest is None
    if nearest is None:
        return
    w, x, y, z = nearest
    sine = math.hypot(x, z)
    angle = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 2.0
    assert abs(y) < EXACT
    angles = np.linspace(-PI, PI, 2000)
    rim_a = np.where(np.cos(angles) >= 0, a_upper, a_lower) * np.cos(angles)
    rim_b = np.where(np.sin(angles) >= 0, b_upper, b_lower) * np.sin(angles)
    # Past a half turn the nearest point is on the other side.
    far = math.hypot(angle * x, angle * z)
    round_trip = angle * (1.0 - 2.0 * PI / far) if far > 0.0 else angle
    distance = min(math.hypot(a - each * x, b - each * z) for each in (angle, round_trip))
    assert distance <= np.hypot(rim_a - a, rim_b - b).min() + 1e-9
    assert contains(limit, Quaternion(nearest))


def test_ellipse_without_any_side_is_a_hinge_about_its_axis():
    limit = SwingTwist(Ellipse(0, 0, 0, 0), (-0.5, 0.5))
    hinge = Hinge((0, 1, 0), -0.5, 0.5)
    rng = random.Random(6)
    for _ in range(200):
        rotation = sample(None, rng)
        assert angle_between(hold(limit, rotation), hold(hinge, rotation)) < EXACT


def test_ellipse_past_a_half_turn_comes_back_the_other_way_when_that_is_nearer():
    limit = SwingTwist(Ellipse(-2.9, 0.0, -0.2, 0.2))
    # 3.0 about +X is 0.38 from -2.9 about X, going on past the half turn.
    assert angle_between(hold(limit, turn(X, 3.0)), turn(X, -2.9)) < EXACT


def test_a_half_turn_about_a_wrong_axis_is_outside():
    # The twist can turn the axis of a half turn by half of itself, here 0.1, and no farther.
    limit = SwingTwist(Ellipse(0, PI, -0.1, 0.1), (-0.2, 0.2))
    for axis in (0.0, 0.05, 0.099, 0.101, 0.4, 1.2, 2.0, 3.0):
        rotation = turn(Vector((math.cos(axis), 0.0, math.sin(axis))), PI)
        assert contains(limit, rotation) == (min(axis, PI - axis) < 0.1), axis
        hold(limit, rotation)
        assert violation(limit, rotation) > 2.0 * (min(axis, PI - axis) - 0.1) - FLOAT32
    # Just short of the half turn, too: seen by exact components.
    for short in (1e-9, 1e-7, 5e-7, 1e-6, 1e-5, 1e-4):
        rotation = turn(Vector((math.cos(1.2), 0.0, math.sin(1.2))), PI - short)
        assert violation(limit, rotation) > 1.0


@given(st.floats(0.0, 1e-5), side, side, side, st.floats(-1.0, 0.0), st.floats(0.0, 1.0))
@settings(max_examples=200, deadline=None)
def test_rotations_of_an_ellipse_beside_the_half_turn_are_inside(short, a, b_lower, b_upper, low, high):
    limit = SwingTwist(Ellipse(-a, PI, -b_lower, b_upper), (low, high))
    for twist in (low, 0.0, 0.5 * high, high):
        swing = turn(X, PI - short)
        hold(limit, swing @ turn(Y, twist))
        assert contains(limit, swing @ turn(Y, twist))


@pytest.mark.parametrize("low", [-PI, 0.0, 0.5])
@pytest.mark.parametrize("turned", [0.0, 0.5, PI])
def test_a_half_turn_whose_twist_rounding_hides_is_inside(low, turned):
    # Seen from the other border of the twist, its swing is at right angles to the only side that is so long.
    limit = SwingTwist(Ellipse(-PI, 0.0, -0.13, 0.0), (low, low + PI))
    x, z = -math.cos(0.5 * (low + turned)), -math.sin(0.5 * (low + turned))
    for size in (0.0, 1e-16, 1e-12, 1e-9, 1e-7):
        for part in range(16):
            w, y = size * math.cos(part * PI / 8.0), size * math.sin(part * PI / 8.0)
            assert project_rotation(limit.row, w, x, y, z) is None, (size, part)
