"""Limits over a batch: the same as the scalar projection, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from arrays import KINDS, PI, ROUNDED, about, dots, hard_rotations, random_limit, uniform

from ccd_rig.kernel import LIMIT_WIDTH, nearest_of_many, project_rotation
from ccd_rig.limits.shapes import BatchLimits, Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist
from ccd_rig.maths.rotations import ROUNDING

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


def test_arrays_that_do_not_fit_are_refused():
    row = np.array(Hinge((1, 0, 0), 0, 1).row)
    numbers = np.zeros(1, dtype=np.intc)

    def run(rows=row, numbers=numbers, rotations=8, nearest=8, outside=2) -> int:
        arrays = np.ones(rotations), np.empty(nearest), np.empty(outside, dtype=np.uint8)
        return nearest_of_many(rows.data, numbers.data, *(each.data for each in arrays))

    assert run() == 2
    assert run(rotations=0, nearest=0, outside=0) == 0
    for arguments in (
        {"rotations": 7},
        {"nearest": 4},
        {"outside": 1},
        {"rows": row[:-1]},
        {"rows": np.where(np.arange(LIMIT_WIDTH) == 7, np.nan, row)},
        {"rows": np.where(np.arange(LIMIT_WIDTH) == 0, 4.0, row)},
        {"numbers": np.zeros(0, dtype=np.intc)},
        {"numbers": np.zeros(3, dtype=np.intc)},
        {"numbers": np.array([-2], dtype=np.intc)},
        {"numbers": np.array([0, 1], dtype=np.intc)},
    ):
        with pytest.raises(ValueError, match=r"limit|rotations"):
            run(**arguments)
    with pytest.raises(ValueError, match="limit"):
        project_rotation(row[:-1], 1.0, 0.0, 0.0, 0.0)


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
