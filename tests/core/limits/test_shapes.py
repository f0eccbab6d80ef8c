"""Limits of every kind: what is refused, the laws of clamping, and how far a rotation is outside."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from chains import EXACT, FLOAT32
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Quaternion, Vector
from random_limits import IDENTITY, PI, Y, hold, outside, random_limit, random_rotation, turn
from seeds import few_and_all

from ccd_rig.errors import InvalidInput
from ccd_rig.kernel import project_rotation
from ccd_rig.limits.shapes import (
    Comfort,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    SwingTwist,
    clamp,
    contains,
    sample,
    swing_axes,
    violation,
)
from ccd_rig.maths.rotations import angle_between, swing_twist
from ccd_rig.maths.validation import ROUNDING

KINDS = ("hinge", "cone", "twist", "ellipse", "box")
seeds = st.integers(0, 2**32).map(random.Random)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hinge((0, 0, 0), 0, 1), "Hinge.axis is zero"),
        (lambda: Hinge((1, 0), 0, 1), "Hinge.axis has 2 numbers; give 3"),
        (lambda: Hinge((1, math.nan, 0), 0, 1), "Hinge.axis is nan; give a finite number"),
        (lambda: Hinge("xyz", 0, 1), "Hinge.axis is 'x'; give a finite number"),
        (lambda: Hinge(1.0, 0, 1), "Hinge.axis is 1.0; give 3 finite numbers"),
        (lambda: Hinge((1, 0, 0), 1.2, 0.5), r"Hinge: lower \(1.2\) is above upper \(0.5\)"),
        (lambda: Hinge((1, 0, 0), math.nan, 0.5), "Hinge.lower is nan"),
        (lambda: Hinge((1, 0, 0), 0, math.inf), "Hinge.upper is inf"),
        (lambda: Hinge((1, 0, 0), None, 1), "Hinge.lower is None"),
        (lambda: Hinge((1, 0, 0), "1", 2), "Hinge.lower is '1'"),
        (lambda: Cone(-0.1), r"Cone.radius is -0.1; give radians from 0 to 3.142"),
        (lambda: Cone(3.2), "Cone.radius is 3.2"),
        (lambda: Cone(180), "Cone.radius is 180"),
        (lambda: Cone(math.nan), "Cone.radius is nan"),
        (lambda: Ellipse(0.1, 1, -1, 1), r"Ellipse.x_lower is 0.1; give radians from -3.142 to 0"),
        (lambda: Ellipse(-1, -0.1, -1, 1), "Ellipse.x_upper is -0.1"),
        (lambda: Ellipse(-1, 1, 0.2, 1), "Ellipse.z_lower is 0.2"),
        (lambda: Ellipse(-1, 1, -1, 4), "Ellipse.z_upper is 4"),
        (lambda: Ellipse(-1, 1, -1, math.nan), "Ellipse.z_upper is nan"),
        (lambda: SwingTwist(0.5), "SwingTwist.swing is 0.5; give a Cone, an Ellipse or None"),
        (lambda: SwingTwist(Cone(1), (1, 0)), r"SwingTwist.twist: lower \(1\) is above upper \(0\)"),
        (lambda: SwingTwist(Cone(1), (1,)), "SwingTwist.twist has 1 numbers; give 2"),
        (lambda: SwingTwist(Cone(1), 1), "SwingTwist.twist is 1; give 2 finite numbers"),
        (lambda: SwingTwist(Cone(1), (0, math.nan)), "SwingTwist.twist is nan"),
        (lambda: SwingTwist(Cone(1), None, (0, 0, 0)), "SwingTwist.axis is zero"),
        (lambda: EulerBox("XXY", (0, 0, 0), (1, 1, 1)), "EulerBox.order is 'XXY'; give one of XYZ, XZY"),
        (lambda: EulerBox("XYZ", (0, 0), (1, 1, 1)), "EulerBox.lower has 2 numbers; give 3"),
        (lambda: EulerBox("XYZ", (0, 0, 0), (1, -1, 1)), r"EulerBox Y: lower \(0\) is above upper \(-1\)"),
        (lambda: EulerBox("XYZ", (0, 0, 0), (1, 1, math.inf)), "EulerBox.upper is inf"),
        (lambda: Comfort(-0.1), "Comfort.tolerance is -0.1"),
        (lambda: Comfort(math.nan), "Comfort.tolerance is nan"),
        (lambda: Comfort(0.1, Cone(1)), r"Comfort.region is Cone\(radius=1.0\); give a limit"),
        (lambda: swing_axes((0, 0, 0)), "axis is zero"),
    ],
)
def test_contradictions_are_refused_by_the_name_of_the_field(make: Callable[[], object], words: str):
    with pytest.raises(InvalidInput, match=words):
        make()


def test_limits_are_values():
    hinge = Hinge(Vector((0, 3, 0)), 0, 1)
    assert hinge == Hinge((0.0, 1.0, 0.0), 0.0, 1.0)
    assert hash(hinge) == hash(Hinge((0.0, 1.0, 0.0), 0.0, 1.0))
    assert repr(hinge) == "Hinge(axis=(0.0, 1.0, 0.0), lower=0.0, upper=1.0)"
    assert dataclasses.replace(hinge, upper=2.0) == Hinge((0, 1, 0), 0, 2)
    assert contains(dataclasses.replace(hinge, upper=2.0), turn(Y, 1.9))
    assert SwingTwist(Cone(1), (0, 1)) != SwingTwist(Cone(1), (0, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        hinge.lower = 0.5


def test_single_precision_pi_is_taken_as_pi():
    rounded = float(np.float32(PI))
    assert rounded > PI
    assert Cone(rounded).radius == PI
    assert Ellipse(-rounded, rounded, -rounded, rounded) == Ellipse(-PI, PI, -PI, PI)
    assert Comfort(rounded).tolerance == PI


def test_comfort_defaults():
    assert Comfort() == Comfort(0.0, None)
    assert Comfort(0.2, Hinge((1, 0, 0), 0, 1)).region == Hinge((1, 0, 0), 0, 1)


# --- what holds for every limit


@pytest.mark.parametrize("kind", KINDS)
@given(rng=seeds)
@settings(max_examples=100, deadline=None)
def test_laws_of_clamp(kind: str, rng: random.Random):
    limit = random_limit(kind, rng)
    hold(limit, random_rotation(limit, rng))


@pytest.mark.parametrize("seeds", few_and_all(50, 500))
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_rotations_for_each_random_limit(kind: str, seeds: range):
    for seed in seeds:
        rng = random.Random(f"20121 {seed}")
        limit = random_limit(kind, rng)
        for _ in range(100):
            rotation = random_rotation(limit, rng)
            clamped = clamp(limit, rotation)
            assert clamp(limit, clamped) is clamped, (limit, rotation)
            assert rotation.dot(clamped) >= -EXACT, (limit, rotation)
            assert abs(clamped.magnitude - 1.0) < FLOAT32, (limit, rotation)  # NaN fails this too


@pytest.mark.parametrize("limit", [5, Cone(0.5)])
@pytest.mark.parametrize("function", [clamp, contains, violation, sample])
def test_what_is_no_limit_is_refused(function: Callable, limit: object):
    with pytest.raises(InvalidInput, match="the limit must be a SwingTwist, Hinge or EulerBox, not"):
        function(limit, random.Random(1) if function is sample else IDENTITY)


@pytest.mark.parametrize("kind", KINDS)
def test_a_quaternion_of_zeros_counts_as_rest(kind: str):
    rng = random.Random(12)
    for _ in range(100):
        limit = random_limit(kind, rng)
        rest = project_rotation(limit.row, 1.0, 0.0, 0.0, 0.0) or (1.0, 0.0, 0.0, 0.0)
        assert project_rotation(limit.row, 0.0, 0.0, 0.0, 0.0) == rest


@pytest.mark.parametrize("kind", KINDS)
@given(rng=seeds)
@settings(max_examples=100, deadline=None)
def test_samples_are_inside_and_come_from_the_seed(kind: str, rng: random.Random):
    limit = random_limit(kind, rng)
    state = rng.getstate()
    first = [tuple(sample(limit, rng)) for _ in range(10)]
    rng.setstate(state)
    assert [tuple(sample(limit, rng)) for _ in range(10)] == first
    for parts in first:
        assert violation(limit, Quaternion(parts)) == 0.0
        assert independent_excess(limit, Quaternion(parts)) < FLOAT32


@pytest.mark.parametrize("kind", KINDS)
def test_clamped_rotations_keep_the_limit_in_angles_measured_another_way(kind: str):
    rng = random.Random(77)
    for _ in range(300):
        limit = random_limit(kind, rng)
        for _ in range(10):
            clamped = clamp(limit, random_rotation(limit, rng))
            assert independent_excess(limit, clamped) < FLOAT32, (limit, clamped)


def independent_excess(limit: Limit, rotation: Quaternion) -> float:
    """Radians beyond the limit by plain angles, as a text book would compute them.

    An angle is weighted by how much it turns: a twist by the cosine of half the swing, first and last Euler
    angles by the cosine of the middle one.
    """
    if isinstance(limit, EulerBox):
        euler = np.array(rotation.to_matrix().to_euler(limit.order))
        middle = "XYZ".index(limit.order[1])
        flipped = euler + PI
        flipped[middle] = PI - euler[middle]
        weights = np.full(3, abs(math.cos(euler[middle])))
        weights[middle] = 1.0
        if weights.min() < 0.02:
            return (
                0.0  # single-precision Euler angles say nothing this near to gimbal lock; see the tests of it
            )
        bounds = list(zip(limit.lower, limit.upper, strict=True))
        excess = [
            max(w * outside(a, *b) for w, a, b in zip(weights, angles, bounds, strict=True))
            for angles in (euler, flipped)
        ]
        return 0.1 * min(excess)  # to_euler goes through a float32 matrix: ten times coarser
    axis = Vector(limit.axis)
    swing, twist = swing_twist(rotation, axis)
    pointed = rotation @ axis
    swing_angle = math.atan2(pointed.cross(axis).length, pointed.dot(axis))
    twist_angle = 2.0 * math.atan2(Vector(twist[1:]).dot(axis), twist.w)
    if isinstance(limit, Hinge):
        return max(outside(twist_angle, limit.lower, limit.upper), swing_angle)
    weight = math.cos(0.5 * swing_angle)
    excess = 0.0 if limit.twist is None else weight * outside(twist_angle, *limit.twist)
    if isinstance(limit.swing, Cone):
        return max(excess, swing_angle - limit.swing.radius)
    if isinstance(limit.swing, Ellipse) and weight > 0.02:
        a, b = (Vector(one) for one in swing_axes(limit.axis))
        vector = Vector(swing[1:]) * (2.0 * math.atan2(Vector(swing[1:]).length, swing.w))
        vector = vector / max(Vector(swing[1:]).length, 1e-30)
        on_a, on_b = vector.dot(a), vector.dot(b)
        side_a = limit.swing.x_upper if on_a >= 0 else -limit.swing.x_lower
        side_b = limit.swing.z_upper if on_b >= 0 else -limit.swing.z_lower
        if side_a < 1e-3 or side_b < 1e-3:
            beyond = max(abs(on_a) - side_a, abs(on_b) - side_b)
        else:
            beyond = (math.hypot(on_a / side_a, on_b / side_b) - 1.0) * min(side_a, side_b)
        excess = max(excess, beyond * weight)
    return excess


@pytest.mark.parametrize("kind", KINDS)
@given(rng=seeds)
@settings(max_examples=50, deadline=None)
def test_degenerate_quaternions_give_allowed_rotations(kind: str, rng: random.Random):
    limit = random_limit(kind, rng)
    zero = Quaternion((0.0, 0.0, 0.0, 0.0))
    assert angle_between(clamp(limit, zero), clamp(limit, IDENTITY)) < EXACT  # as identity
    rotation = sample(None, rng)
    for scale in (1e-12, 0.5, 1.0 + 1e-4, 1e12):
        if clamp(limit, rotation) is not rotation:
            assert angle_between(clamp(limit, rotation * scale), clamp(limit, rotation)) < 10 * EXACT
        else:
            assert violation(limit, rotation * scale) < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_contains_counts_the_tolerance_from_the_border(kind: str):
    rng = random.Random(5)
    for _ in range(100):
        limit = random_limit(kind, rng)
        rotation = random_rotation(limit, rng)
        beyond = violation(limit, rotation)
        assert contains(limit, rotation, beyond + EXACT)
        assert contains(limit, rotation, beyond - EXACT) == (beyond == 0.0 and beyond - EXACT >= 0.0)
