"""Limits over a batch: held against the scalar projection, and against angles and samples made here."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
from mathutils import Quaternion, Vector
from numpy.typing import NDArray

from ccd_rig.limits.batch import (
    BatchLimits,
    cone_twist_constants,
    ellipse_twist_constants,
    euler_box_constants,
    project_cone_twist,
    project_ellipse_twist,
    project_euler_box,
    rotation_vectors_between,
)
from ccd_rig.limits.shapes import (
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    ReversedLimit,
    SwingTwist,
    clamp,
    contains,
    swing_axes,
    violation,
)
from ccd_rig.maths.batch import multiply
from ccd_rig.maths.tolerances import ROUNDING

Array = NDArray[np.float64]
PI = math.pi
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
KINDS = ("hinge", "twist", "cone", "ellipse", "box", "reversed")
EXACT_KINDS = ("hinge", "twist", "cone", "box")
ROUNDED = 1e-9
"""Difference of two results in double precision; radians or parts of a unit quaternion."""
Random = np.random.Generator


@pytest.fixture(autouse=True)
def _no_silent_nan() -> Iterator[None]:
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        yield


# --- rotations as arrays, made here and not in the module under test


def product(a: Array, b: Array) -> Array:
    """Quaternion products of (4, ...) and (4, ...)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        )
    )


def conjugate(a: Array) -> Array:
    return np.array((a[0], -a[1], -a[2], -a[3]))


def turns(vectors: Array) -> Array:
    """Quaternions (4, ...) of rotation vectors (3, ...)."""
    angles = np.sqrt((vectors * vectors).sum(0))
    return np.array((np.cos(0.5 * angles), *(vectors * np.sinc(angles / (2 * PI)) * 0.5)))


def about(axis: tuple[float, float, float], angles: Array) -> Array:
    """Quaternions (4, N) of angles (N,) about one axis."""
    return turns(np.array(axis)[:, None] * angles)


def dots(a: Array, b: Array) -> Array:
    total: Array = (a * b).sum(0)
    return total


def uniform(rng: Random, *shape: int) -> Array:
    quaternions = rng.normal(size=(4, *shape))
    return np.asarray(quaternions / np.sqrt((quaternions * quaternions).sum(0)))


# --- random limits, and rotations that are hard for them


def random_range(rng: Random) -> tuple[float, float]:
    """Narrow, wide, without rest, past a half turn, locked, or a full turn and beyond."""
    kind = rng.integers(8)
    if kind == 0:
        return (float(rng.choice((0.0, PI, -PI / 2, rng.uniform(-4, 4)))),) * 2
    if kind == 1:
        lower = float(rng.choice((-PI, rng.uniform(-5, 0))))
        return lower, lower + float(rng.choice((2 * PI, 2 * PI - 1e-9, rng.uniform(6, 9))))
    if kind == 2:
        return -float(rng.uniform(0, PI)), float(rng.uniform(0, PI))
    lower, upper = sorted(rng.uniform(-4, 4, 2).tolist())
    return lower, upper


def random_axis(rng: Random) -> tuple[float, float, float]:
    if rng.random() < 0.5:
        return ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, -1, 0))[rng.integers(4)]
    x, y, z = rng.normal(size=3).tolist()
    return x, y, z


def random_limit(kind: str, rng: Random) -> Limit:
    if kind == "reversed":
        limit = random_limit(KINDS[rng.integers(5)], rng)
        for _ in range(rng.choice((1, 1, 2))):
            w, x, y, z = rng.normal(size=4).tolist()
            limit = ReversedLimit(limit, (w, x, y, z))
        return limit
    if kind == "hinge":
        return Hinge(random_axis(rng), *random_range(rng))
    if kind == "box":
        lower, upper = zip(*(random_range(rng) for _ in range(3)), strict=True)
        return EulerBox(str(rng.choice(ORDERS)), lower, upper)
    if kind == "twist":
        return SwingTwist(None, random_range(rng), random_axis(rng))
    twist = None if rng.random() < 0.3 else random_range(rng)
    if kind == "cone":
        return SwingTwist(Cone(float(rng.choice((0.0, PI, rng.uniform(0, PI))))), twist, random_axis(rng))
    sides = [float(rng.choice((0.0, PI, *rng.uniform(1e-3, PI, 6)))) for _ in range(4)]
    return SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), twist, random_axis(rng))


def hard_rotations(limits: list[Limit], rng: Random, count: int) -> Array:
    """(4, n, 6 count): uniform, at borders, near borders, few parts, near few parts, in single precision."""
    even = uniform(rng, len(limits), count)
    borders = BatchLimits(limits).project(even)[0]
    sizes = 10.0 ** rng.uniform(-8, 0, (len(limits), count))
    near_borders = product(borders, turns(rng.normal(size=(3, len(limits), count)) * sizes))
    # Half and quarter turns: the swing is a half turn, or an Euler angle is at gimbal lock.
    lattice = rng.choice((-1.0, -0.5, 0.0, 0.5, 1.0), (4, len(limits), count))
    lattice[0] += (lattice == 0.0).all(0)
    lattice /= np.sqrt((lattice * lattice).sum(0))
    near_lattice = product(lattice, turns(rng.normal(size=(3, len(limits), count)) * sizes))
    single = borders.astype(np.float32).astype(np.float64)
    return np.concatenate((even, borders, near_borders, lattice, near_lattice, single), axis=2)


# --- the same as one by one


@pytest.mark.parametrize("kind", KINDS)
def test_same_as_the_scalar_projection(kind: str):
    rng = np.random.default_rng(KINDS.index(kind))
    total = equally_near = 0
    for _ in range(10):
        limits = [random_limit(kind, rng) for _ in range(60)]
        rotations = hard_rotations(limits, rng, 7)
        projected, outside = BatchLimits(limits).project(rotations)
        assert outside is not None
        assert np.isfinite(projected).all()
        assert np.abs(dots(projected, projected) - 1.0).max() < 1e-6
        assert (dots(projected, rotations) >= -ROUNDING).all()
        assert np.array_equal(projected[:, ~outside], rotations[:, ~outside])
        again = BatchLimits(limits).project(projected)
        assert again[0] is projected
        assert again[1] is None
        for n, limit in enumerate(limits):
            for b in range(rotations.shape[2]):
                given, ours = rotations[:, n, b], projected[:, n, b]
                theirs = limit.project(*given.tolist())
                if (theirs is not None) != outside[n, b]:
                    other = ours if theirs is None else np.array(theirs)
                    assert 2.0 * np.linalg.norm(other - given) == pytest.approx(ROUNDING, rel=1e-3)
                    continue
                total += 1
                if theirs is not None and np.abs(ours - theirs).max() > ROUNDED:
                    assert dots(ours, given) == pytest.approx(dots(np.array(theirs), given), abs=1e-12), (
                        limit,
                        given,
                    )
                    equally_near += 1
    # At gimbal lock a whole curve can be equally near, and rounding chooses.
    assert equally_near <= (0.01 * total if kind in ("box", "reversed") else 0), (equally_near, total)


@pytest.mark.parametrize("kind", KINDS)
def test_a_skeleton_is_the_same_as_its_joints(kind: str):
    rng = np.random.default_rng(3)
    limits: list[Limit | None] = [random_limit(k, rng) for k in (kind, *KINDS, kind)]
    limits.insert(2, None)
    rotations = uniform(rng, len(limits), 200)
    projected, outside = BatchLimits(limits).project(rotations)
    assert outside is not None
    for i, limit in enumerate(limits):
        alone, mask = BatchLimits([limit]).project(rotations[:, i : i + 1])
        assert np.abs(alone[:, 0] - projected[:, i]).max() < ROUNDED
        assert np.array_equal(outside[i], np.zeros(200, bool) if mask is None else mask[0])
    # Alike for q and -q.
    assert np.abs(BatchLimits(limits).project(-rotations)[0] + projected).max() < ROUNDED
    # Any layout in memory.
    turned = np.ascontiguousarray(rotations.transpose(2, 0, 1)).transpose(1, 2, 0)
    assert np.array_equal(BatchLimits(limits).project(turned)[0], projected)


def test_functions_broadcast_constants():
    rng = np.random.default_rng(8)
    rotations = uniform(rng, 3, 50)
    for kind, constants_of, project in (
        ("hinge", cone_twist_constants, project_cone_twist),
        ("ellipse", ellipse_twist_constants, project_ellipse_twist),
        ("box", euler_box_constants, project_euler_box),
    ):
        limits = [random_limit(kind, rng) for _ in range(3)]
        columns = np.stack([constants_of(limit) for limit in limits], axis=1)
        expected, mask = BatchLimits(limits).project(rotations)
        for constants in (columns[:, :, None], np.repeat(columns[:, :, None], 50, axis=2)):
            projected, outside = project(constants, rotations)
            assert np.array_equal(projected, expected)
            assert np.array_equal(outside, np.zeros((3, 50), bool) if mask is None else mask)
        projected, _ = project(columns[:, 1], rotations[:, 1, :1])
        assert np.abs(projected[:, 0] - expected[:, 1, 0]).max() < ROUNDED
        projected, _ = project(columns, rotations[:, 1, :1])
        assert projected.shape == (4, 3)
        assert np.abs(projected[:, 1] - expected[:, 1, 0]).max() < ROUNDED


def test_nothing_to_do_gives_the_same_array():
    rng = np.random.default_rng(0)
    rotations = uniform(rng, 3, 20)
    limits: list[Limit | None] = [None, SwingTwist(), EulerBox("XYZ", (-4, -4, -4), (4, 4, 4))]
    for some in (limits, [None, None, None]):
        projected, outside = BatchLimits(some).project(rotations)
        assert projected is rotations
        assert outside is None
        assert BatchLimits(some).contains(rotations).all()
    for empty in (np.zeros((4, 3, 0)), np.zeros((4, 0, 5))):
        batch = BatchLimits(limits[: empty.shape[1]])
        assert batch.project(empty)[0] is empty
        assert batch.contains(empty).shape == empty.shape[1:]
    # The input stays as it is.
    before = rotations.copy()
    BatchLimits([Hinge((1, 0, 0), 0, 1)] * 3).project(rotations)
    assert np.array_equal(rotations, before)


def test_ties():
    # A half turn from the middle of a range: the upper border. From a locked hinge: the one angle there is.
    half_turn = about((1, 0, 0), np.array((PI,)))[:, None]
    half_turn[0] = 0.0
    (nearest,) = BatchLimits([Hinge((1, 0, 0), -0.5, 0.5)]).project(half_turn)[0][:, 0].T
    assert nearest == pytest.approx(about((1, 0, 0), np.array((0.5,)))[:, 0], abs=ROUNDED)
    (nearest,) = BatchLimits([Hinge((1, 0, 0), 0, 0)]).project(half_turn)[0][:, 0].T
    assert np.abs(nearest) == pytest.approx((1, 0, 0, 0), abs=ROUNDED)
    # A half-turn swing says nothing about the twist: the allowed one nearest to 0.
    for swing in (Cone(1.0), Ellipse(-1, 1, -1, 1)):
        (nearest,) = BatchLimits([SwingTwist(swing, (0.2, 0.9))]).project(half_turn)[0][:, 0].T
        assert abs(nearest[2] / nearest[0]) == pytest.approx(math.tan(0.1), abs=ROUNDED)
        assert math.hypot(nearest[1], nearest[3]) == pytest.approx(math.sin(0.5), abs=ROUNDED)


# --- the nearest, held against allowed rotations made from angles


def composed(limit: Limit, rng: Random, count: int, shrink: float = 1.0) -> Array:
    """(4, count) allowed rotations, borders included; with `shrink` < 1 nearer to the middle."""
    if isinstance(limit, ReversedLimit):
        frame = np.array(limit.frame)[:, None]
        inner = composed(limit.limit, rng, count, shrink)
        return product(product(frame, conjugate(inner)), conjugate(frame))
    if isinstance(limit, EulerBox):
        found = np.array([[1.0], [0.0], [0.0], [0.0]])
        for letter in limit.order:
            i = "XYZ".index(letter)
            x, y, z = np.eye(3)[i].tolist()
            turn = about((x, y, z), angles_in(limit.lower[i], limit.upper[i], rng, count, shrink))
            found = product(turn, found)
        return found
    if isinstance(limit, Hinge):
        return about(limit.axis, angles_in(limit.lower, limit.upper, rng, count, shrink))
    twist = about(limit.axis, angles_in(*(limit.twist or (-PI, PI)), rng, count, shrink))
    azimuth, share = rng.uniform(-PI, PI, count), shrink * np.minimum(rng.uniform(0, 1.3, count), 1.0)
    on_a, on_b = np.cos(azimuth), np.sin(azimuth)
    if isinstance(limit.swing, Ellipse):
        on_a = on_a * np.where(on_a >= 0, limit.swing.x_upper, -limit.swing.x_lower)
        on_b = on_b * np.where(on_b >= 0, limit.swing.z_upper, -limit.swing.z_lower)
    else:
        radius = limit.swing.radius if isinstance(limit.swing, Cone) else PI
        on_a, on_b = radius * on_a, radius * on_b
    a, b = (np.array(axis)[:, None] for axis in swing_axes(limit.axis))
    return product(turns((on_a * a + on_b * b) * share), twist)


def angles_in(lower: float, upper: float, rng: Random, count: int, shrink: float) -> Array:
    share = shrink * np.clip(rng.uniform(-1.3, 1.3, count), -1.0, 1.0)
    return np.asarray(0.5 * (lower + upper) + 0.5 * (upper - lower) * share)


@pytest.mark.parametrize("kind", KINDS)
def test_composed_rotations_are_inside(kind: str):
    rng = np.random.default_rng(21)
    limits = [random_limit(kind, rng) for _ in range(150)]
    rotations = np.stack([composed(limit, rng, 100) for limit in limits], axis=1)
    assert BatchLimits(limits).project(rotations)[0] is rotations
    assert BatchLimits(limits).contains(rotations).all()


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_nothing_allowed_is_nearer(kind: str):
    rng = np.random.default_rng(22)
    limits = [random_limit(kind, rng) for _ in range(60)]
    rotations = hard_rotations(limits, rng, 8)
    rotations /= np.sqrt(dots(rotations, rotations))
    projected, _ = BatchLimits(limits).project(rotations)
    for n, limit in enumerate(limits):
        allowed = composed(limit, rng, 3000)
        most = np.abs(allowed.T @ rotations[:, n]).max(0)
        near = dots(projected[:, n], rotations[:, n])
        # A rotation outside by up to ROUNDING stays: something may be nearer by 2e-13 in the dot product.
        # What less than ROUNDING says about the twist does not count.
        slack = np.full(len(near), 2e-13)
        if not isinstance(limit, (EulerBox, ReversedLimit)):
            along = dots(np.array(limit.axis)[:, None], rotations[1:, n])
            slack[np.hypot(rotations[0, n], along) < ROUNDING] = ROUNDING
        assert (most <= near + slack).all(), (limit, float((most - near).max()))


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_projection_is_as_near_as_a_fine_sample(kind: str):
    """The other bound: the projection is an allowed rotation, so a sample around it comes as near."""
    rng = np.random.default_rng(23)
    for _ in range(20):
        limit = random_limit(kind, rng)
        rotations = uniform(rng, 1, 5)
        projected, _ = BatchLimits([limit]).project(rotations)
        allowed = composed(limit, rng, 200_000)
        most = np.abs(allowed.T @ projected[:, 0]).max(0)
        assert (2.0 * np.arccos(np.minimum(most, 1.0)) < 0.25).all(), limit


def off(angle: Array, lower: float, upper: float) -> Array:
    """Radians by which angles are outside a range, the short way round the circle."""
    beyond = np.abs(np.remainder(angle - 0.5 * (lower + upper) + PI, 2 * PI) - PI) - 0.5 * (upper - lower)
    return np.maximum(beyond, 0.0)


def swing_and_twist(limit: SwingTwist, rotations: Array) -> tuple[Array, Array, Array]:
    """Twists (N,), and the swings' rotation vectors (N,), (N,) on the two swing axes, by plain angles."""
    axis = np.array(limit.axis)[:, None]
    w, p = rotations[0], dots(rotations[1:], axis)
    twists = 2.0 * np.arctan2(p, w)
    swings = product(rotations, conjugate(about(limit.axis, twists)))
    lengths = np.sqrt(dots(swings[1:], swings[1:]))
    vectors = swings[1:] * 2.0 * np.arctan2(lengths, swings[0]) / np.maximum(lengths, 1e-30)
    a, b = (np.array(one)[:, None] for one in swing_axes(limit.axis))
    return twists, dots(vectors, a), dots(vectors, b)


@pytest.mark.parametrize("kind", ["cone", "ellipse", "twist"])
def test_inside_by_plain_swing_and_twist(kind: str):
    rng = np.random.default_rng(24)
    decided = 0
    for _ in range(200):
        limit = random_limit(kind, rng)
        assert isinstance(limit, SwingTwist)
        rotations = uniform(rng, 100)
        twists, on_a, on_b = swing_and_twist(limit, rotations)
        beyond = off(twists, *(limit.twist or (-PI, PI)))
        angle = np.hypot(on_a, on_b)
        if isinstance(limit.swing, Cone):
            beyond = np.maximum(beyond, angle - limit.swing.radius)
        elif isinstance(limit.swing, Ellipse):
            side_a = np.where(on_a >= 0, limit.swing.x_upper, -limit.swing.x_lower)
            side_b = np.where(on_b >= 0, limit.swing.z_upper, -limit.swing.z_lower)
            thin = np.minimum(side_a, side_b) == 0.0
            radius = np.hypot(on_a / np.maximum(side_a, 1e-9), on_b / np.maximum(side_b, 1e-9))
            beyond = np.where(thin, 1.0, np.maximum(beyond, radius - 1.0))
        inside = BatchLimits([limit]).contains(rotations[:, None])[0]
        clear = (beyond == 0.0) | ((beyond > 1e-3) & (angle < 3.1))
        assert np.array_equal(inside[clear], beyond[clear] <= 0.0), limit
        decided += int(clear.sum())
    assert decided > 15_000


@pytest.mark.parametrize("order", ORDERS)
def test_a_small_box_is_around_the_angles_that_made_it(order: str):
    rng = np.random.default_rng(ORDERS.index(order))
    for _ in range(50):
        middle = rng.uniform(-PI, PI, 3)
        widths = rng.uniform(0.01, 0.1, 3)
        limit = EulerBox(order, (middle - widths).tolist(), (middle + widths).tolist())
        assert BatchLimits([limit]).contains(composed(limit, rng, 50)[:, None]).all()
        gimbal = abs(math.cos(middle["XYZ".index(order[1])]))
        for i in range(3):
            shifted = np.zeros(3)
            shifted[i] = 2.5 * widths[i]
            beside = EulerBox(order, (middle + shifted).tolist(), (middle + shifted).tolist())
            assert gimbal < 0.4 or not BatchLimits([limit]).contains(composed(beside, rng, 1)[:, None]).any()


def test_ellipse_keeps_the_nearest_twist_and_the_nearest_point_of_the_plane():
    rng = np.random.default_rng(26)
    for _ in range(100):
        sides = rng.uniform(0.05, 1.8, 4)
        twist = (-float(rng.uniform(0, 1)), float(rng.uniform(0, 1)))
        limit = SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), twist, random_axis(rng))
        vectors, twists = rng.uniform(-1.5, 1.5, (2, 40)), rng.uniform(*twist, 40)
        a, b = (np.array(one)[:, None] for one in swing_axes(limit.axis))
        rotations = product(turns(vectors[0] * a + vectors[1] * b), about(limit.axis, twists))
        projected = BatchLimits([limit]).project(rotations[:, None])[0][:, 0]
        found_twists, *found = swing_and_twist(limit, projected)
        assert np.abs(found_twists - twists).max() < ROUNDED  # inside the range: kept
        rim = np.linspace(-PI, PI, 4001)
        rim_a, rim_b = np.cos(rim), np.sin(rim)
        rim_a *= np.where(rim_a >= 0, sides[1], sides[0])
        rim_b *= np.where(rim_b >= 0, sides[3], sides[2])
        least = np.hypot(vectors[0][:, None] - rim_a, vectors[1][:, None] - rim_b).min(1)
        distance = np.hypot(*(vectors - found))
        beyond = distance > 0.0
        assert (distance <= least + ROUNDED).all()
        assert (distance[distance > 1e-6] > least[distance > 1e-6] - 1e-3).all()
        side_a = np.where(found[0] >= 0, sides[1], sides[0])
        side_b = np.where(found[1] >= 0, sides[3], sides[2])
        assert (np.hypot(found[0] / side_a, found[1] / side_b)[beyond] < 1.0 + 1e-5).all()


def test_ellipse_of_equal_sides_is_a_cone():
    rng = np.random.default_rng(27)
    compared = 0
    for radius in (0.0, 0.01, 0.7, 2.0, 3.0):
        axis, twist = random_axis(rng), random_range(rng)
        ellipse = SwingTwist(Ellipse(-radius, radius, -radius, radius), twist, axis)
        cone = SwingTwist(Cone(radius), twist, axis)
        rotations = uniform(rng, 1, 500)
        ours, _ = BatchLimits([ellipse]).project(rotations)
        theirs, _ = BatchLimits([cone]).project(rotations)
        # Towards a half turn the plane of the ellipse goes round the other way, the cone does not.
        _, on_a, on_b = swing_and_twist(cone, rotations[:, 0])
        short = np.hypot(on_a, on_b) < radius + 0.5 * (PI - radius)
        in_range = off(swing_and_twist(cone, rotations[:, 0])[0], *twist) == 0.0
        same = np.abs(ours - theirs)[:, 0, short & in_range]
        assert same.size == 0 or same.max() < ROUNDED
        compared += same.size
    assert compared > 2000


def test_thin_ellipses():
    rng = np.random.default_rng(28)
    for thin in (0.5e-6, 2e-6, 1e-5, 1e-4):
        limits = [
            SwingTwist(Ellipse(-thin, thin, -2.0, 2.0)),
            SwingTwist(Ellipse(-thin, 1.0, -thin, 3.0), (-0.5, 0.5)),
        ]
        rotations = uniform(rng, 2, 300)
        projected, _ = BatchLimits(limits).project(rotations)
        assert BatchLimits(limits).project(projected)[1] is None
        for n, limit in enumerate(limits):
            for given, ours in zip(rotations[:, n].T.tolist(), projected[:, n].T, strict=True):
                assert np.abs(ours - (limit.project(*given) or given)).max() < 1e-7


# --- how far, and which way


def test_rotation_vectors_lead_outside():
    rng = np.random.default_rng(31)
    inside = uniform(rng, 5, 400)
    vectors = rng.normal(size=(3, 5, 400))
    vectors *= 10.0 ** rng.uniform(-14, 0.49, (5, 400)) / np.sqrt(dots(vectors, vectors))  # up to 3.09
    outside = product(inside, turns(vectors))
    for sign in (1.0, -1.0):
        found = rotation_vectors_between(inside, sign * outside)
        assert np.abs(found - vectors).max() < 1e-14
    assert not rotation_vectors_between(inside, inside).any()
    opposite = rotation_vectors_between(
        inside, product(inside, np.array((0.0, 0.6, 0.0, 0.8))[:, None, None])
    )
    assert np.sqrt(dots(opposite, opposite)) == pytest.approx(np.full((5, 400), PI))


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
    projected, outside = batch.project(rotations)
    assert outside is not None
    assert np.array_equal(outside, np.tile((False, False, True, True), (5, 1)))
    normals = rotation_vectors_between(projected, rotations)
    assert normals[2, :4, 3] == pytest.approx(np.full(4, 0.3))
    assert normals[:, 4, 3] == pytest.approx((0.3, 0, 0), abs=1e-12)


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
