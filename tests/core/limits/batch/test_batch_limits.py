"""Limits over a batch: the same as the scalar projection, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from arrays import KINDS, PI, ROUNDED, about, dots, hard_rotations, random_limit, uniform

from ccd_rig.limits.batch import (
    BatchLimits,
    cone_twist_constants,
    ellipse_twist_constants,
    euler_box_constants,
    project_cone_twist,
    project_ellipse_twist,
    project_euler_box,
)
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist
from ccd_rig.maths.tolerances import ROUNDING

pytestmark = pytest.mark.usefixtures("no_silent_nan")


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
