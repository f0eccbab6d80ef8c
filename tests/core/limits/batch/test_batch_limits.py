"""Limits over a batch: the same as the scalar projection, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from arrays import KINDS, ROUNDED, dots, hard_rotations, random_limit, uniform

from ccd_rig.kernel import project_rotation
from ccd_rig.limits.shapes import BatchLimits, EulerBox, Hinge, Limit, SwingTwist
from ccd_rig.maths.validation import ROUNDING

pytestmark = pytest.mark.usefixtures("no_silent_nan")


@pytest.mark.parametrize("kind", KINDS)
def test_same_as_one_by_one(kind: str):
    rng = np.random.default_rng(KINDS.index(kind))
    limits = [random_limit(kind, rng) for _ in range(60)]
    rotations = hard_rotations(limits, rng, 3)
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
            nearest = project_rotation(limit.row, *rotations[:, n, b].tolist())
            assert (nearest is not None) == outside[n, b]
            assert nearest is None or np.array_equal(projected[:, n, b], nearest)


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


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_are_no_rotation_come_to_an_end(kind: str):
    rng = np.random.default_rng(9)
    for limit in [random_limit(kind, rng) for _ in range(20)]:
        for bad in (math.nan, math.inf, -math.inf, 1e200, 1e-200):
            for place in range(4):
                q = [0.5, -0.5, 0.5, 0.5]
                q[place] = bad
                project_rotation(limit.row, *q)


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
