"""Hinges and cones: borders, wraps and half turns."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from chains import EXACT, FLOAT32
from mathutils import Quaternion, Vector
from random_limits import PI, X, Y, hold, outside, random_rotation, turn

from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist, clamp, sample, violation
from ccd_rig.maths.rotations import angle_between, angle_of, exp, swing_twist


@pytest.mark.parametrize(
    ("low", "high", "angle", "expected"),
    [
        (0.1, 2.5, 0.0, 0.1),  # a knee that never straightens
        (0.1, 2.5, 2.7, 2.5),
        (0.1, 2.5, -0.4, 0.1),
        (math.radians(150), math.radians(210), math.radians(-170), math.radians(-170)),  # past the half turn
        (math.radians(150), math.radians(210), math.radians(140), math.radians(150)),
        (math.radians(150), math.radians(210), math.radians(-140), math.radians(210)),
        (math.radians(150), math.radians(210), math.radians(-10), math.radians(210)),
        (math.radians(150), math.radians(210), math.radians(10), math.radians(150)),
        (-2.0, 2.0, 3.0, 2.0),
        (-2.0, 2.0, -3.0, -2.0),
        (-2.0, 1.0, 2.64, 1.0),  # 2.64159 is half way from 1.0 round to -2.0
        (-2.0, 1.0, 2.65, -2.0),
        (0.3, 0.3, 2.0, 0.3),  # no freedom
        (-4.0, 4.0, 3.1, 3.1),  # more than a full turn: free
        (5.0, 5.5, 5.2, 5.2),
    ],
)
@pytest.mark.parametrize("axis", [X, Vector((1.0, -2.0, 0.5))])
def test_hinge_angles(axis: Vector, low: float, high: float, angle: float, expected: float):
    limit = Hinge(axis, low, high)
    assert angle_between(hold(limit, turn(axis, angle)), turn(axis, expected)) < EXACT
    assert violation(limit, turn(axis, angle)) == pytest.approx(outside(angle, low, high), abs=EXACT)


def test_hinge_takes_the_swing_away_and_keeps_the_angle():
    limit = Hinge((0, 1, 0), -1.0, 1.0)
    rotation = turn(X, 0.8) @ turn(Y, 0.5)
    assert angle_between(hold(limit, rotation), turn(Y, 0.5)) < EXACT
    assert violation(limit, rotation) == pytest.approx(0.8, abs=EXACT)


def test_hinge_half_turn_from_the_middle_takes_the_upper_border():
    limit = Hinge((1, 0, 0), -0.5, 0.5)
    half_turn = Quaternion((0.0, 1.0, 0.0, 0.0))
    for rotation in (half_turn, -half_turn):
        assert angle_between(clamp(limit, rotation), turn(X, 0.5)) < EXACT


@pytest.mark.parametrize(("low", "high", "expected"), [(-1.0, 2.0, 0.0), (0.3, 2.0, 0.3), (-2.0, -0.7, -0.7)])
def test_half_turn_swing_of_a_hinge_takes_the_angle_nearest_to_rest(low: float, high: float, expected: float):
    limit = Hinge((0, 1, 0), low, high)
    for azimuth in (0.0, 0.7, 2.0, -2.5):
        hold(limit, Quaternion((0.0, math.cos(azimuth), 0.0, math.sin(azimuth))))
        for noise in (0.0, 1e-9, -1e-8):
            rotation = Quaternion((noise, math.cos(azimuth), -noise, math.sin(azimuth)))
            assert angle_between(clamp(limit, rotation), turn(Y, expected)) < EXACT


# --- cone


def test_cone_leaves_the_inside_alone_and_brings_the_outside_to_the_rim():
    limit = SwingTwist(Cone(0.6))
    rng = random.Random(8)
    for _ in range(200):
        direction = Vector((rng.gauss(0, 1), 0.0, rng.gauss(0, 1))).normalized()
        twist = turn(Y, rng.uniform(-3, 3))
        inside = turn(direction, rng.uniform(0.0, 0.599)) @ twist
        assert hold(limit, inside) is inside
        angle = rng.uniform(0.602, 3.1)
        found = hold(limit, turn(direction, angle) @ twist)
        assert abs((found @ Y).angle(Y) - 0.6) < 1e-3  # Vector.angle is single precision
        # A free twist is left alone: straight back to the rim.
        assert angle_between(found, turn(direction, 0.6) @ twist) < FLOAT32


def test_cone_of_radius_zero_gives_the_centre():
    limit = SwingTwist(Cone(0.0), (0.0, 0.0))
    rng = random.Random(1)
    for _ in range(100):
        assert angle_of(hold(limit, sample(None, rng))) < EXACT
    free_twist = SwingTwist(Cone(0.0))
    assert angle_between(hold(free_twist, turn(X, 1.0) @ turn(Y, 2.0)), turn(Y, 2.0)) < EXACT


def test_cone_of_a_half_turn_takes_every_swing():
    limit = SwingTwist(Cone(PI))
    rng = random.Random(1)
    for _ in range(100):
        rotation = random_rotation(limit, rng)
        assert clamp(limit, rotation) is rotation


@pytest.mark.parametrize("limit", [SwingTwist(Cone(0.6)), SwingTwist(Cone(0.6), (-0.3, 0.4), (1, 1, 0)),
                                   SwingTwist(Ellipse(-0.3, 0.6, -0.5, 0.2), (-0.3, 0.4)),
                                   EulerBox("ZXY", (-0.3, -0.5, -0.2), (0.4, 0.5, 0.6)),
                                   Hinge((1, 0, 0), -0.4, 0.8)])  # fmt: skip
def test_a_hundred_calls_agree_and_small_moves_stay_small(limit: Limit):
    rng = random.Random(17)
    for _ in range(50):
        rotation = exp(Vector([rng.gauss(0.0, 0.6) for _ in range(3)]))
        first = tuple(clamp(limit, rotation))
        assert all(tuple(clamp(limit, rotation.copy())) == first for _ in range(100))
        moved = rotation @ exp(Vector([rng.uniform(-1e-5, 1e-5) for _ in range(3)]))
        assert angle_between(clamp(limit, moved), Quaternion(first)) < math.radians(1.0)
        # Sharper than one degree: a projection within these swings stretches a move by less than 4.
        assert (
            angle_between(clamp(limit, moved), Quaternion(first))
            < 4.0 * angle_between(moved, rotation) + 4e-6
        )


@pytest.mark.parametrize("kind", ["cone", "ellipse", "box", "hinge"])
def test_crossing_the_rim_in_small_moves_never_jumps(kind: str):
    rng = random.Random(23)
    limits = {
        "cone": SwingTwist(Cone(0.6), (-0.4, 0.3)),
        "ellipse": SwingTwist(Ellipse(-0.2, 0.7, -0.9, 0.4), (-0.4, 0.3)),
        "box": EulerBox("XZY", (-0.3, -0.5, -0.6), (0.7, 0.5, 0.2)),
        "hinge": Hinge((0, 1, 0), -0.5, 0.3),
    }
    limit = limits[kind]
    for _ in range(200):
        start = sample(limit, rng)
        axis = Vector([rng.gauss(0, 1) for _ in range(3)]).normalized()
        path = [start @ turn(axis, 1.2 * step / 14) for step in range(15)]
        found = [clamp(limit, rotation) for rotation in path]
        for before, after in pairwise(found):
            assert angle_between(before, after) < math.radians(15.0)


def test_cone_with_twist_turns_the_swing_by_half_of_what_the_twist_is_turned():
    """The closed form: tan(sigma'/2) = tan(sigma/2) / cos(dtau/2), and the direction turned by dtau/2."""
    sigma, tau, border = 0.5, 1.3, 0.4
    limit = SwingTwist(Cone(1.2), (-1.0, border))
    found = hold(limit, turn(X, sigma) @ turn(Y, tau))
    by = tau - border
    expected_angle = 2.0 * math.atan(math.tan(sigma / 2) / math.cos(by / 2))
    # v.n-free part of q keeps its direction: the swing's axis turns by (tau' - tau) / 2 about the twist axis.
    direction = turn(Y, -0.5 * by) @ X
    assert angle_between(found, turn(direction, expected_angle) @ turn(Y, border)) < EXACT


def test_twist_range_past_the_half_turn_and_its_nearest_border_across_the_wrap():
    limit = SwingTwist(Cone(0.5), (math.radians(100), math.radians(260)))
    inside = turn(Y, math.radians(-170))
    assert hold(limit, inside) is inside
    assert angle_between(hold(limit, turn(Y, math.radians(-80))), turn(Y, math.radians(260))) < EXACT
    assert angle_between(hold(limit, turn(Y, math.radians(60))), turn(Y, math.radians(100))) < EXACT
    lopsided = SwingTwist(Cone(0.5), (-0.2, 2.9))
    # From -2.9 it is 0.4832 across the half turn to 2.9, and 2.7 to -0.2.
    assert angle_between(hold(lopsided, turn(Y, -2.9)), turn(Y, 2.9)) < EXACT


def test_half_turn_swing_of_a_cone_keeps_the_direction_and_takes_the_twist_nearest_to_rest():
    limit = SwingTwist(Cone(1.0), (0.3, 0.8))
    for azimuth in (0.1, 1.4, 2.6, -0.9):
        half_turn = Quaternion((0.0, math.cos(azimuth), 0.0, math.sin(azimuth)))
        found = hold(limit, half_turn)
        _, twist = swing_twist(found, Y)
        assert angle_between(twist, turn(Y, 0.3)) < FLOAT32
        assert angle_between(found, half_turn) == pytest.approx(PI - 1.0, abs=FLOAT32)
