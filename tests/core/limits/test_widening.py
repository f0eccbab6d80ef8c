"""Limits made wider: they hold what they are to hold, keep what they held, and do not grow without need."""

from __future__ import annotations

import random
from math import degrees, pi, radians

import pytest
from mathutils import Quaternion, Vector

from ccd_rig.limits.fitting import INSIDE, loosened, widened
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, SwingTwist, contains, violation

MARGIN = radians(5.0)
KNEE = Hinge((1.0, 0.0, 0.0), 0.0, radians(130.0))
SHOULDER = SwingTwist(Ellipse(-0.5, 1.0, -0.7, 0.3), (-0.4, 0.6))
TAIL = SwingTwist(Cone(0.4), (-0.1, 0.1))


def about(axis, angle):
    return Quaternion(axis, radians(angle))


def drawn(count, most, seed):
    rng = random.Random(seed)
    for _ in range(count):
        axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        yield Quaternion(axis, rng.uniform(0.0, most))


@pytest.mark.parametrize("limit", [KNEE, SHOULDER, TAIL], ids=["hinge", "ellipse", "cone"])
def test_what_is_inside_changes_nothing(limit):
    inside = [rotation for rotation in drawn(200, 1.5, 1) if violation(limit, rotation) < INSIDE]
    inside += [Quaternion(), about((1, 0, 0), 25.0)] if limit is KNEE else [Quaternion()]
    assert widened(limit, inside, MARGIN) is limit


@pytest.mark.parametrize("limit", [SHOULDER, TAIL, KNEE], ids=["ellipse", "cone", "hinge"])
@pytest.mark.parametrize("seed", range(5))
def test_all_rotations_are_held_and_none_is_lost(limit, seed):
    rotations = list(drawn(40, 2.0, seed))
    wide = widened(limit, rotations, MARGIN)
    assert wide is not None
    for rotation in rotations:
        assert violation(wide, rotation) < INSIDE + 1e-4
    for rotation in drawn(300, 2.0, seed + 100):
        if violation(limit, rotation) < 1e-6:
            assert violation(wide, rotation) < 1e-3


def test_a_hinge_stays_one_and_only_the_passed_bound_moves():
    wide = widened(KNEE, [about((1, 0, 0), -12.0), about((1, 0, 0), 40.0)], MARGIN)
    assert isinstance(wide, Hinge)
    assert degrees(wide.lower) == pytest.approx(-17.0, abs=1e-3)
    assert wide.upper == KNEE.upper


def test_a_hinge_that_is_turned_to_the_side_gives_way_there():
    off = about((0, 0, 1), 8.0) @ about((1, 0, 0), 50.0)
    wide = widened(KNEE, [off], MARGIN)
    assert isinstance(wide, SwingTwist)
    assert contains(wide, off)
    assert contains(wide, about((1, 0, 0), 120.0))
    assert not contains(wide, about((1, 0, 0), -20.0))
    assert not contains(wide, about((0, 0, 1), 40.0))


def test_a_hinge_along_the_bone_becomes_a_cone_with_its_range_as_twist():
    hinge = Hinge((0.0, -1.0, 0.0), radians(-20.0), radians(100.0))
    wide = widened(hinge, [about((1, 0, 0), 10.0) @ about((0, -1, 0), 60.0)], MARGIN)
    assert isinstance(wide, SwingTwist) and isinstance(wide.swing, Cone)
    assert degrees(wide.swing.radius) == pytest.approx(15.0, abs=0.1)
    assert contains(wide, about((0, -1, 0), 99.0))
    assert not contains(wide, about((0, -1, 0), -30.0))


def test_a_twist_outside_leaves_the_cone():
    turned = widened(TAIL, [about((0.0, 1.0, 0.0), 20.0)], MARGIN)
    assert turned.swing == TAIL.swing
    assert turned.twist == pytest.approx((-0.1, radians(25.0)), abs=1e-6)


def test_a_hinge_between_the_bones_axes_has_no_other_shape():
    hinge = Hinge((1.0, 1.0, 1.0), -1.0, 1.0)
    assert widened(hinge, [about((1, 0, 0), 30.0)], MARGIN) is None
    assert loosened(hinge, 0.2) is None


def test_other_shapes_are_not_widened():
    box = EulerBox("XYZ", (-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))
    assert widened(box, [about((1, 0, 0), 30.0)], MARGIN) is None
    assert widened(box, [Quaternion()], MARGIN) is box


def test_sides_of_an_ellipse_stay_within_a_half_turn():
    wide = widened(SHOULDER, [about((1, 0, 0), 178.0), about((0, 1, 0), 179.0)], MARGIN)
    assert isinstance(wide, SwingTwist) and isinstance(wide.swing, Ellipse)
    assert wide.swing.x_upper <= pi
    assert wide.twist is not None and degrees(wide.twist[1]) == pytest.approx(184.0, abs=0.01)


@pytest.mark.parametrize("turn", [-1, 0, 1])
def test_a_range_past_a_half_turn_is_widened_at_its_nearer_end(turn):
    twist = 2.6 + 2.0 * pi * turn, 3.7 + 2.0 * pi * turn
    limit = SwingTwist(Cone(0.5), twist)
    inside = about((0, 1, 0), degrees(3.6))
    aside = about((1, 0, 0), 60.0) @ about((0, 1, 0), degrees(3.5))
    wide = widened(limit, [aside], MARGIN)
    assert isinstance(wide, SwingTwist) and wide.twist == limit.twist
    assert contains(wide, aside) and contains(wide, inside)
    wide = widened(limit, [about((0, 1, 0), degrees(-2.4))], MARGIN)
    assert isinstance(wide, SwingTwist) and wide.twist is not None
    assert wide.twist == pytest.approx((twist[0], 2.0 * pi * (turn + 1) - 2.4 + MARGIN))
    hinge = Hinge((1.0, 0.0, 0.0), *twist)
    wide = widened(hinge, [about((1, 0, 0), degrees(-2.4))], MARGIN)
    assert isinstance(wide, Hinge) and contains(wide, about((1, 0, 0), degrees(3.7)))
    assert loosened(hinge, 0.2) is None, "no ellipse holds a range past a half turn"
    assert widened(hinge, [aside], MARGIN) is None


@pytest.mark.parametrize(
    ("range_", "held"), [((2.6, 3.7), (0.0, 2.6, 3.7)), ((-4.0, 3.0), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0))]
)
def test_a_hinge_along_the_bone_is_loosened_past_a_half_turn(range_, held):
    loose = loosened(Hinge((0.0, 1.0, 0.0), *range_), 0.2)
    assert loose is not None
    assert all(contains(loose, about((0, 1, 0), degrees(angle)), 1e-5) for angle in held)


def test_a_loosened_hinge_has_its_range_and_a_little_beside_it():
    loose = loosened(Hinge((0.0, 0.0, -1.0), radians(-10.0), radians(90.0)), radians(30.0))
    assert loose is not None
    for axis, angle, is_inside in (
        ((0, 0, -1), 85.0, True),
        ((0, 0, -1), -15.0, False),
        ((1, 0, 0), 25.0, True),
        ((1, 0, 0), 35.0, False),
        ((0, 1, 0), 25.0, True),
        ((0, 1, 0), 35.0, False),
    ):
        assert contains(loose, about(axis, angle)) is is_inside, (axis, angle)
