"""Limits over a batch: the nearest, held against allowed rotations made from angles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from arrays import (
    KINDS,
    ORDERS,
    PI,
    ROUNDED,
    Array,
    Random,
    about,
    dots,
    hard_rotations,
    product,
    random_axis,
    random_limit,
    turns,
    uniform,
)
from seeds import few_and_all

from ccd_rig.limits.shapes import (
    BatchLimits,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    ReversedLimit,
    SwingTwist,
    swing_axes,
)
from ccd_rig.maths.validation import ROUNDING

pytestmark = pytest.mark.usefixtures("no_silent_nan")

EXACT_KINDS = ("hinge", "twist", "cone", "box")


def conjugate(a: Array) -> Array:
    return np.array((a[0], -a[1], -a[2], -a[3]))


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


@pytest.mark.parametrize(("most_swing", "most_excess"), [(30, 0.3), (60, 3.0), (100, 12.0)])
@pytest.mark.parametrize("seeds", few_and_all(10, 60))
def test_an_ellipse_is_within_a_few_degrees_of_the_nearest(
    most_swing: float, most_excess: float, seeds: range
):
    """Nearest in the plane of the rotation vector, not on the sphere: what that costs, in degrees."""
    excess = []
    for seed in seeds:
        rng = np.random.default_rng((99, seed))
        sides = rng.uniform(0.1, 1.2, 4)
        limit = SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), (-0.5, 0.7))
        allowed = composed(limit, rng, 30_000)
        azimuths, swings = rng.uniform(-PI, PI, 8), rng.uniform(0.0, math.radians(most_swing), 8)
        vectors = np.array((np.cos(azimuths), np.zeros(8), np.sin(azimuths))) * swings
        rotations = product(turns(vectors), about((0, 1, 0), rng.uniform(-1.0, 1.2, 8)))
        most = np.minimum(np.abs(allowed.T @ rotations).max(0), 1.0)
        excess += (BatchLimits([limit]).violations(rotations[:, None])[0] - 2.0 * np.arccos(most)).tolist()
    assert max(excess) < math.radians(most_excess)
    assert float(np.median(excess)) < ROUNDED


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
