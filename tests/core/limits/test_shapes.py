"""Limits: what is refused, the nearest allowed rotation against brute force, borders, wraps and samples."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from chains import EXACT, FLOAT32
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Euler, Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.projection import nearest_on_ellipse
from ccd_rig.limits.random_rotations import sample
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
    swing_axes,
    violation,
)
from ccd_rig.maths.rotations import angle_between, angle_of, exp, swing_twist
from ccd_rig.maths.tolerances import ROUNDING

PI = math.pi
X, Y, Z = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))
IDENTITY = Quaternion((1.0, 0.0, 0.0, 0.0))
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
KINDS = ("hinge", "cone", "twist", "ellipse", "box")


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


seeds = st.integers(0, 2**32).map(random.Random)


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


# --- what is refused


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
@settings(max_examples=200, deadline=None)
def test_laws_of_clamp(kind: str, rng: random.Random):
    limit = random_limit(kind, rng)
    hold(limit, random_rotation(limit, rng))


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_thousand_rotations_per_kind(kind: str):
    rng = random.Random(20121)
    for _ in range(500):
        limit = random_limit(kind, rng)
        for _ in range(100):
            rotation = random_rotation(limit, rng)
            clamped = clamp(limit, rotation)
            assert clamp(limit, clamped) is clamped, (limit, rotation)
            assert rotation.dot(clamped) >= -EXACT, (limit, rotation)
            assert abs(clamped.magnitude - 1.0) < FLOAT32, (limit, rotation)  # NaN fails this too


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


def outside(angle: float, low: float, high: float) -> float:
    """Radians by which an angle is outside a range, the short way round the circle."""
    return max(abs(math.remainder(angle - 0.5 * (low + high), 2 * PI)) - 0.5 * (high - low), 0.0)


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


# --- the nearest, held against every rotation of a fine grid


def grid_swing_twist(limit: SwingTwist | Hinge, count: int) -> np.ndarray:
    """(N, 4) allowed rotations, borders included, built as products of exponentials."""
    if isinstance(limit, Hinge):
        low, high = limit.lower, limit.upper
        radii = np.zeros(1)
    else:
        low, high = limit.twist or (-PI, PI)
        radius = limit.swing.radius if isinstance(limit.swing, Cone) else PI
        radii = np.linspace(0.0, radius, count)
    azimuths = np.linspace(-PI, PI, count if len(radii) > 1 else 1, endpoint=False)
    twists = np.linspace(low, high, 8 * count if len(radii) == 1 else count)
    if isinstance(getattr(limit, "swing", None), Ellipse):
        pairs = [
            (r * math.cos(f) * (e.x_upper if math.cos(f) >= 0 else -e.x_lower),
             r * math.sin(f) * (e.z_upper if math.sin(f) >= 0 else -e.z_lower))
            for e in (limit.swing,) for r in np.linspace(0, 1, count) for f in azimuths
        ]  # fmt: skip
    else:
        pairs = [(r * math.cos(f), r * math.sin(f)) for r in radii for f in azimuths]
    a, b = (np.array(one) for one in swing_axes(limit.axis))
    vectors = np.array([x * a + z * b for x, z in pairs])
    angles = np.linalg.norm(vectors, axis=1)
    swings = np.column_stack([np.cos(angles / 2), vectors * (np.sinc(angles / 2 / PI) / 2)[:, None]])
    turns = np.column_stack([np.cos(twists / 2), np.sin(twists / 2)[:, None] * np.array(limit.axis)])
    return products(swings, turns)


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Every left @ every right: (L, 4), (R, 4) -> (L * R, 4)."""
    p, q = left[:, None, :], right[None, :, :]
    w = p[..., 0] * q[..., 0] - (p[..., 1:] * q[..., 1:]).sum(-1)
    v = p[..., :1] * q[..., 1:] + q[..., :1] * p[..., 1:] + np.cross(p[..., 1:], q[..., 1:])
    return np.concatenate([w[..., None], v], axis=-1).reshape(-1, 4)


def grid_box(limit: EulerBox, count: int) -> np.ndarray:
    turns = {}
    for i, letter in enumerate("XYZ"):
        angles = np.linspace(limit.lower[i], limit.upper[i], count)
        turns[letter] = np.column_stack([np.cos(angles / 2), np.sin(angles / 2)[:, None] * np.eye(3)[i]])
    first, second, third = limit.order
    return products(turns[third], products(turns[second], turns[first]))


@pytest.mark.parametrize(
    ("kind", "cases", "count"), [("hinge", 300, 400), ("cone", 60, 30), ("twist", 60, 30), ("box", 60, 30)]
)
def test_nothing_allowed_is_nearer(kind: str, cases: int, count: int):
    rng = random.Random(4242)
    for _ in range(cases):
        limit = random_limit(kind, rng)
        allowed = grid_box(limit, count) if kind == "box" else grid_swing_twist(limit, count)
        for _ in range(8):
            rotation = sample(None, rng)
            nearest = Quaternion(allowed[np.argmax(np.abs(allowed @ np.array(rotation)))])
            assert violation(limit, rotation) <= angle_between(rotation, nearest) + EXACT, (limit, rotation)


@pytest.mark.parametrize(("most_swing", "most_excess"), [(30, 0.3), (60, 3.0), (100, 12.0)])
def test_an_ellipse_is_within_a_few_degrees_of_the_nearest(most_swing: float, most_excess: float):
    """Nearest in the plane of the rotation vector, not on the sphere: what that costs, in degrees."""
    rng = random.Random(99)
    excess = []
    for _ in range(60):
        sides = [rng.uniform(0.1, 1.2) for _ in range(4)]
        limit = SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), (-0.5, 0.7))
        allowed = grid_swing_twist(limit, 30)
        for _ in range(8):
            azimuth = rng.uniform(-PI, PI)
            swing = exp(
                Vector((math.cos(azimuth), 0.0, math.sin(azimuth)))
                * math.radians(rng.uniform(0.0, most_swing))
            )
            rotation = swing @ turn(Y, rng.uniform(-1.0, 1.2))
            nearest = Quaternion(allowed[np.argmax(np.abs(allowed @ np.array(rotation)))])
            excess.append(violation(limit, rotation) - angle_between(rotation, nearest))
    assert max(excess) < math.radians(most_excess)
    assert float(np.median(excess)) < EXACT


# --- hinge


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


# --- ellipse


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


@given(st.floats(-4.0, 4.0), st.floats(-4.0, 4.0), side, side, side, side)
@settings(max_examples=300, deadline=None)
def test_nearest_on_ellipse_beats_every_point_of_the_rim(a, b, a_lower, a_upper, b_lower, b_upper):
    to_a, to_b = nearest_on_ellipse(a, b, a_lower, a_upper, b_lower, b_upper)
    semi_a, semi_b = a_upper if a >= 0 else a_lower, b_upper if b >= 0 else b_lower
    if semi_a > 0 and semi_b > 0:
        assert math.hypot(to_a / semi_a, to_b / semi_b) <= 1.0 + 1e-6
    else:
        assert abs(to_a) <= semi_a and abs(to_b) <= semi_b
    angles = np.linspace(-PI, PI, 2000)
    rim_a = np.where(np.cos(angles) >= 0, a_upper, a_lower) * np.cos(angles)
    rim_b = np.where(np.sin(angles) >= 0, b_upper, b_lower) * np.sin(angles)
    inside = semi_a > 0 and semi_b > 0 and math.hypot(a / semi_a, b / semi_b) <= 1.0
    if inside:
        assert (to_a, to_b) == (a, b)
    else:
        assert math.hypot(a - to_a, b - to_b) <= np.hypot(rim_a - a, rim_b - b).min() + 1e-9


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


# --- Euler box


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


# --- samples


def test_samples_without_a_limit_are_uniform():
    rng = random.Random(0)
    rotations = np.array([sample(None, rng) for _ in range(20000)])
    assert np.abs(np.linalg.norm(rotations, axis=1) - 1.0).max() < EXACT
    # The second moments of a uniform quaternion are 1/4 each, the mixed ones 0; 5 standard errors.
    assert np.abs(rotations.T @ rotations / 20000 - np.eye(4) / 4).max() < 5 * 0.25 / math.sqrt(20000)
    # The angle of a uniform rotation has the distribution (angle - sin angle) / pi.
    angles = np.sort([angle_of(Quaternion(r)) for r in rotations])
    assert np.abs((angles - np.sin(angles)) / PI - np.arange(20000) / 20000).max() < 1.95 / math.sqrt(20000)


def uniform_inside(limit: Limit, rng: random.Random, count: int) -> Iterator[Quaternion]:
    """By rejection from all rotations: uniform, slow, and free of what `sample` does."""
    while count:
        rotation = sample(None, rng)
        if contains(limit, rotation):
            count -= 1
            yield rotation


@pytest.mark.parametrize(
    "limit",
    [
        SwingTwist(Cone(2.0), (-1.0, 2.0)),
        SwingTwist(Ellipse(-1.5, 2.5, -0.9, 3.0), (-2.0, 1.5), (1, 1, 0)),
        SwingTwist(None, (0.5, 2.5)),
        EulerBox("ZXY", (-1.0, -2.0, -0.5), (1.4, 1.0, 3.0)),
        EulerBox("XYZ", (-2.0, 0.5, -2.0), (1.0, 2.6, 3.0)),
    ],
)
def test_samples_are_spread_as_evenly_as_by_rejection(limit: Limit):
    rng = random.Random(11)
    count = 4000
    drawn = np.array([tuple(sample(limit, rng)) for _ in range(count)])
    even = np.array([tuple(rotation) for rotation in uniform_inside(limit, rng, count)])
    # Second moments are free of signs; 5 standard errors of a difference of means of numbers within +-1.
    assert np.abs(drawn.T @ drawn - even.T @ even).max() / count < 5 * 0.35 * math.sqrt(2 / count)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.5), (-1.2, 1.2), (0.5, 2.6), (PI / 2, PI / 2)])
def test_samples_of_a_box_weigh_the_middle_angle_by_its_cosine(low: float, high: float):
    rng = random.Random(9)
    count = 4000
    limit = EulerBox("XYZ", (-1.0, low, -1.0), (1.0, high, 1.0))
    sines = np.array([-sample(limit, rng).to_matrix()[2][0] for _ in range(count)])
    # Even in the measure of rotations is even in the sine of the middle angle; past the pole it comes down
    # again.
    rising, falling = math.sin(min(high, PI / 2)) - math.sin(low), max(1.0 - math.sin(high), 0.0)
    falling = falling if high > PI / 2 else 0.0
    if rising + falling < EXACT:
        assert np.abs(sines - math.sin(low)).max() < EXACT
        return
    middle_of = (math.sin(low) + math.sin(min(high, PI / 2))) / 2, (1.0 + math.sin(high)) / 2
    mean = (rising * middle_of[0] + falling * middle_of[1]) / (rising + falling)
    assert abs(float(sines.mean()) - mean) < 5 * float(sines.std()) / math.sqrt(count)


def test_samples_of_a_hinge_fill_its_range():
    rng = random.Random(4)
    drawn = [sample(Hinge((1, 0, 0), 0.2, 1.2), rng) for _ in range(4000)]
    angles = [math.remainder(2 * math.atan2(q.x, q.w), 2 * PI) for q in drawn]
    assert 0.2 - EXACT < min(angles) < 0.21
    assert 1.19 < max(angles) < 1.2 + EXACT
    assert abs(float(np.mean(angles)) - 0.7) < 5 * 0.29 / math.sqrt(4000)
