"""What is drawn of a limit lies on its border: held against containment, by rotations made here."""

from __future__ import annotations

import math
import random

import pytest
from chains import FLOAT32
from mathutils import Euler, Quaternion, Vector

from ccd_rig.limits.outlines import Dial
from ccd_rig.limits.shapes import (
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    ReversedLimit,
    SwingTwist,
    contains,
    sample,
    violation,
)

PI = math.pi
X, Y, Z = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))
AXES = {"X": X, "Y": Y, "Z": Z}
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
BESIDE = 0.02  # radians to either side of a border
ON = 2e-3  # radians: what single precision leaves of a direction near the far side of the sphere
REST = Quaternion()
SEEDS = range(30)


def random_range(rng: random.Random, most: float) -> tuple[float, float]:
    lower, upper = sorted(rng.uniform(-most, most) for _ in range(2))
    return lower, max(upper, lower + 4.0 * BESIDE)


def turned(rotation: Quaternion, by: float) -> Quaternion:
    """A rotation about its own axis by that much more."""
    axis, angle = rotation.to_axis_angle()
    return Quaternion(axis, angle + by)


def angle_seen(dial: Dial, point: Vector) -> float:
    """The angle of a point of an arc about the dial's axis, 0 to 2 pi."""
    arm = point - dial.centre
    return math.atan2(dial.axis.dot(dial.zero.cross(arm)), dial.zero.dot(arm)) % (2.0 * PI)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hinges_arc_ends_at_its_bounds(seed):
    rng = random.Random(seed)
    axis = Vector([rng.gauss(0, 1) for _ in range(3)]).normalized()
    lower, upper = random_range(rng, 2.9)
    limit = Hinge(tuple(axis), lower, upper)
    (dial,) = limit.dials(REST)
    arc = dial.arc()
    for point in arc:
        seen = Quaternion(axis, angle_seen(dial, point))
        assert (seen @ dial.zero - point).length < FLOAT32 * 10
        assert contains(limit, seen, FLOAT32 * 10)
    for end, outwards in ((arc[0], -BESIDE), (arc[-1], BESIDE)):
        angle = angle_seen(dial, end)
        assert contains(limit, Quaternion(axis, angle - outwards))
        assert violation(limit, Quaternion(axis, angle + outwards)) == pytest.approx(BESIDE, abs=1e-4)


def test_a_hinge_counts_from_the_bone():
    (dial,) = Hinge((1.0, 0.0, 0.0), 0.0, 2.0).dials(Quaternion(X, 0.7))
    assert (dial.zero - Y).length < FLOAT32
    assert dial.angle == pytest.approx(0.7, abs=FLOAT32)
    assert (dial.point(dial.angle) - Quaternion(X, 0.7) @ Y).length < FLOAT32


def test_a_hinge_along_the_bone_turns_beside_it():
    for axis, zero in ((Y, X), (-Y, -X)):
        (dial,) = Hinge(tuple(axis), -0.5, 1.0).dials(REST)
        assert dial.centre.length > 0.0
        assert (dial.arc()[-1] - dial.centre).normalized().dot(Quaternion(axis, 1.0) @ zero) > 1.0 - FLOAT32


def test_a_range_past_the_half_turn_keeps_its_turn():
    limit = Hinge((1.0, 0.0, 0.0), 2.6, 3.7)
    (dial,) = limit.dials(Quaternion(X, -2.9))
    assert dial.angle == pytest.approx(2.0 * PI - 2.9, abs=FLOAT32 * 10)
    assert not dial.is_at_border
    (dial,) = Hinge((1.0, 0.0, 0.0), -4.0, 4.0).dials(Quaternion(X, 3.0))
    assert len(dial.arc()) == 73 and (dial.arc()[0] - dial.arc()[-1]).length < FLOAT32 * 10
    assert not dial.is_at_border


def random_swing(rng: random.Random) -> SwingTwist:
    twist = rng.choice([None, random_range(rng, 2.5)])
    if rng.random() < 0.5:
        return SwingTwist(Cone(rng.uniform(0.1, 2.9)), twist)
    a, b, c, d = (rng.uniform(0.1, 2.9) for _ in range(4))
    return SwingTwist(Ellipse(-a, b, -c, d), twist)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rim_is_the_border_of_the_swing(seed):
    rng = random.Random(seed)
    limit = random_swing(rng)
    roll = Quaternion(Y, 0.5 * sum(limit.twist)) if limit.twist else REST
    border = limit.rim(REST)
    assert border.points[0] == border.points[-1]
    for point in border.points:
        assert abs(point.length - 1.0) < FLOAT32 * 10
        swing = Y.rotation_difference(point)
        if swing.angle > 3.0:  # near the half turn a direction does not tell the swing in single precision
            continue
        assert contains(limit, swing @ roll, ON)
        assert contains(limit, turned(swing, -BESIDE) @ roll)
        assert not contains(limit, turned(swing, BESIDE) @ roll)


def test_the_sides_of_an_ellipse_are_where_they_are_said_to_be():
    border = SwingTwist(Ellipse(-0.3, 0.6, -0.9, 1.2)).rim(REST)
    quarter = (len(border.points) - 1) // 4
    expected = (Quaternion(X, 0.6), Quaternion(Z, 1.2), Quaternion(X, -0.3), Quaternion(Z, -0.9))
    for i, rotation in enumerate(expected):
        assert (border.points[i * quarter] - rotation @ Y).length < FLOAT32 * 10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_twist_swings_along_with_the_bone(seed):
    rng = random.Random(seed)
    lower, upper = random_range(rng, 2.9)
    limit = SwingTwist(Cone(1.5), (lower, upper))
    swing = Quaternion(Vector((rng.gauss(0, 1), 0.0, rng.gauss(0, 1))), rng.uniform(0.0, 1.4))
    twist = rng.uniform(lower, upper)
    (dial,) = limit.dials(swing @ Quaternion(Y, twist))
    assert dial.angle == pytest.approx(twist, abs=FLOAT32 * 20)
    for angle, point in ((lower, dial.arc()[0]), (upper, dial.arc()[-1]), (twist, dial.point(dial.angle))):
        rotation = swing @ Quaternion(Y, angle)
        assert (dial.centre.normalized() - rotation @ Y).length < FLOAT32 * 20
        assert ((point - dial.centre).normalized() - rotation @ X).length < FLOAT32 * 20
        assert contains(limit, rotation, FLOAT32 * 20)
    for angle in (lower - BESIDE, upper + BESIDE):
        assert not contains(limit, swing @ Quaternion(Y, angle))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(8))
def test_an_euler_box_has_an_arc_for_each_angle(order, seed):
    rng = random.Random(f"{order}{seed}")
    bounds = [random_range(rng, 1.3) for _ in range(3)]
    limit = EulerBox(order, [lower for lower, _ in bounds], [upper for _, upper in bounds])
    angles = [rng.uniform(lower, upper) for lower, upper in bounds]
    result = limit.dials(Euler(angles, order).to_quaternion())
    assert sorted(dial.name for dial in result) == ["X", "Y", "Z"]
    for dial in result:
        component = "XYZ".index(dial.name)
        assert dial.angle == pytest.approx(angles[component], abs=FLOAT32 * 50)
        carried = Quaternion()
        for name in reversed(order[order.index(dial.name) + 1 :]):
            carried = carried @ Quaternion(AXES[name], angles["XYZ".index(name)])
        start = X if dial.name == "Y" else Y
        for end, bound, outwards in (
            (dial.arc()[0], bounds[component][0], -BESIDE),
            (dial.arc()[-1], bounds[component][1], BESIDE),
        ):
            drawn = (end - dial.centre).normalized()
            assert (drawn - carried @ Quaternion(AXES[dial.name], bound) @ start).length < FLOAT32 * 50
            for offset, is_inside in ((0.0, True), (-outwards, True), (outwards, False)):
                moved = list(angles)
                moved[component] = bound + offset
                inside = contains(limit, Euler(moved, order).to_quaternion(), FLOAT32 * 50)
                assert inside == is_inside


LIMITS = (
    Hinge((1.0, 0.0, 0.0), -0.4, 1.2),
    SwingTwist(Cone(0.8), (-0.5, 0.9)),
    SwingTwist(Ellipse(-0.4, 0.9, -1.3, 0.2), (-0.5, 0.9)),
    SwingTwist(None, (-0.5, 0.9)),
    EulerBox("XZY", (-0.5, -0.2, -1.0), (0.7, 0.9, 0.3)),
)


def is_at_border(limit, rotation) -> bool:
    border = limit.rim(rotation)
    return any(dial.is_at_border for dial in limit.dials(rotation)) or (
        border is not None and border.is_at_border
    )


@pytest.mark.parametrize("limit", LIMITS)
def test_outside_is_at_the_border(limit):
    rng = random.Random(4)
    result = 0
    while result < 200:
        if isinstance(limit, Hinge):
            rotation = Quaternion(limit.axis, rng.uniform(-PI, PI))
        else:
            rotation = Quaternion([rng.gauss(0, 1) for _ in range(4)]).normalized()
        if violation(limit, rotation) > 1e-3:
            assert is_at_border(limit, rotation)
            result += 1


@pytest.mark.parametrize("limit", LIMITS)
def test_well_inside_is_not_at_the_border(limit):
    rng = random.Random(5)
    for _ in range(100):
        rotation = sample(limit, rng)
        around = [
            Quaternion(axis, angle) @ rotation
            for axis in ((X,) if isinstance(limit, Hinge) else AXES.values())
            for angle in (-BESIDE, BESIDE)
        ]
        if all(contains(limit, each) for each in around):
            assert not is_at_border(limit, rotation)


def test_a_side_that_is_a_point_is_no_border():
    flat = SwingTwist(Ellipse(-0.5, 0.5, 0.0, 0.0))
    assert not flat.rim(REST).is_at_border
    assert not flat.rim(Quaternion(X, 0.3)).is_at_border
    assert flat.rim(Quaternion(X, 0.5)).is_at_border
    assert flat.rim(Quaternion(Z, 0.1)).is_at_border
    (dial,) = Hinge((1.0, 0.0, 0.0), 0.3, 0.3).dials(Quaternion(X, 0.3))
    assert not dial.is_at_border
    (dial,) = Hinge((1.0, 0.0, 0.0), 0.3, 0.3).dials(Quaternion(X, 0.4))
    assert dial.is_at_border


def test_what_is_free_has_no_outline():
    assert SwingTwist(Cone(PI)).rim(REST) is None
    assert SwingTwist(None, (-1.0, 1.0)).rim(REST) is None
    assert Hinge((1.0, 0.0, 0.0), 0.0, 1.0).rim(REST) is None
    assert SwingTwist(Cone(1.0)).dials(REST) == ()
    assert ReversedLimit(LIMITS[0], (1.0, 0.0, 0.0, 0.0)).dials(REST) == ()
