"""Limits from motions of the body: each goes as far as it says, however the bone is rolled or points."""

from __future__ import annotations

import math

import pytest
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.body_motions import ROOM, blend, hinge_limit, swing_limit, turned_toward
from ccd_rig.limits.shapes import contains

FRONT, UP, OUT = Vector((0, -1, 0)), Vector((0, 0, 1)), Vector((1, 0, 0))
DEGREE = math.radians(1.0)
LEG = (FRONT, 120 * DEGREE, 30 * DEGREE), (OUT, 45 * DEGREE, 20 * DEGREE)  # a bone that hangs down
DOWN = Quaternion((1, 0, 0), -math.pi / 2)  # a bone along -Z


def swung(rest, toward, degrees):
    """The bone's own rotation that swings its end so far towards a direction of the body."""
    axis = (rest @ Vector((0, 1, 0))).cross(toward).normalized()
    return rest.conjugated() @ Quaternion(axis, degrees * DEGREE) @ rest


@pytest.mark.parametrize("roll", [0, 90, 180, -90])
def test_each_side_goes_as_far_as_its_motion(roll):
    rest = DOWN @ Quaternion((0, 1, 0), roll * DEGREE)
    limit, is_exact = swing_limit(rest, *LEG, (-0.3, 0.4))
    assert is_exact
    assert limit.twist == (-0.3, 0.4)
    for toward, angle in ((FRONT, 120), (-FRONT, 30), (OUT, 45), (-OUT, 20)):
        assert contains(limit, swung(rest, toward, angle - 0.1))
        assert not contains(limit, swung(rest, toward, angle + 0.1))


@pytest.mark.parametrize("roll", [-20, 10, 25])
def test_a_bone_rolled_a_little_has_the_same_sides(roll):
    straight, _ = swing_limit(DOWN, *LEG, None)
    rolled, is_exact = swing_limit(DOWN @ Quaternion((0, 1, 0), roll * DEGREE), *LEG, None)
    assert is_exact
    assert rolled == straight


@pytest.mark.parametrize("roll", [35, 45, 55])
def test_a_bone_rolled_between_its_motions_has_sides_between_them(roll):
    """Rolled, +X swings the bone backward and then outward, +Z inward and then backward."""
    limit, is_exact = swing_limit(DOWN @ Quaternion((0, 1, 0), roll * DEGREE), *LEG, None)
    assert not is_exact
    swing = limit.swing
    sides = [each / DEGREE for each in (-swing.x_lower, swing.x_upper, -swing.z_lower, swing.z_upper)]
    part = math.sin(roll * DEGREE) ** 2
    motions = (120, 20), (30, 45), (45, 120), (20, 30)
    assert sides == pytest.approx([one * (1.0 - part) + other * part for one, other in motions])


def test_no_side_is_more_than_a_half_turn():
    limit, _ = swing_limit(DOWN, (FRONT, 200 * DEGREE, 30 * DEGREE), LEG[1], None)
    assert limit.swing.x_lower == -math.pi


def test_a_motion_that_rest_is_past_leaves_some_room_on_its_side():
    """Such a rest is not the pose that the range counts from."""
    limit, _ = swing_limit(DOWN, (FRONT, -0.2, 30 * DEGREE), LEG[1], None)
    assert contains(limit, Quaternion())
    assert contains(limit, swung(DOWN, FRONT, ROOM / DEGREE - 0.1))
    assert not contains(limit, swung(DOWN, FRONT, ROOM / DEGREE + 0.1))


def test_a_motion_along_the_bone_is_refused():
    with pytest.raises(InvalidInput, match="along one of its own motions"):
        swing_limit(DOWN, (UP, 1.0, 1.0), LEG[1], None)


def test_a_hinge_turns_about_an_axis_of_the_body():
    limit = hinge_limit(DOWN, 3.0 * OUT, -0.2, 2.0)
    for angle, inside in ((1.9, True), (2.1, False), (-0.1, True), (-0.3, False)):
        turn = DOWN.conjugated() @ Quaternion(OUT, angle) @ DOWN
        assert contains(limit, turn) is inside


def test_angles_of_directions():
    assert turned_toward(Vector((1, 0, -1)).normalized(), -UP, OUT) == pytest.approx(math.pi / 4)
    assert turned_toward(Vector((-1, 0, -1)).normalized(), -UP, OUT) == pytest.approx(-math.pi / 4)
    aside = (OUT + UP).normalized()  # only its part across the reference counts
    assert turned_toward(Vector((1, 0, -1)).normalized(), -UP, aside) == pytest.approx(math.pi / 4)
    assert [blend(2.0, 6.0, part) for part in (-1.0, 0.0, 0.5, 1.0, 2.0)] == pytest.approx([2, 2, 4, 6, 6])
