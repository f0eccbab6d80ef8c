"""Outward normals of limits: what they say of small turns is what clamping does."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from arrays import KINDS, PI, Array, Random, product, random_limit, turns, uniform
from seeds import few_and_all

from ccd_rig.kernel import borders_at, project_rotation
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist, limit_row

STEP = 3e-4
"""Length of a turn, radians."""
CLOSE = 0.02
"""What a step's second order, and rotations that count as inside, may make of it; a part of the step."""


def nearest(limit: Limit, q: Array) -> Array:
    return np.array(project_rotation(limit.row, *q.tolist()) or q)


def violation(limit: Limit, q: Array) -> float:
    return 4.0 * math.asin(min(0.5 * float(np.linalg.norm(nearest(limit, q) - q)), 1.0))


def normals_at(limit: Limit, q: Array, margin: float = 1e-6) -> tuple[Array, Array]:
    """Normals of equalities (m, 3) and of other borders (n, 3)."""
    written = np.zeros(9)
    mask, count = divmod(borders_at(limit.row, q, margin, written), 8)
    held = mask.bit_length()
    assert mask == 2**held - 1
    normals = written[: 3 * count].reshape(-1, 3)
    assert np.abs(np.linalg.norm(normals, axis=1) - 1.0).max(initial=0.0) < 1e-12
    return normals[:held], normals[held:]


def outward(d: Array, equal: Array, unequal: Array) -> Array:
    """What has to be taken from a turn so that it keeps to all normals: the nearest of such turns is left."""
    for size in range(len(unequal) + 1):
        for chosen in itertools.combinations(range(len(unequal)), size):
            active = np.concatenate((equal, unequal[list(chosen)])).T
            weights = np.linalg.lstsq(active, d, rcond=1e-9)[0] if active.size else np.zeros(0)
            taken = active @ weights if active.size else np.zeros(3)
            if (weights[len(equal) :] >= -1e-12).all() and (unequal @ (d - taken) <= 1e-9).all():
                return np.asarray(taken)
    raise AssertionError("no turn keeps to the normals")


def hold_normals(limit: Limit, q: Array, rng: Random) -> bool:
    """Whether the normals at an allowed rotation tell which turns leave the limit, and how far."""
    equal, unequal = normals_at(limit, q)
    for _ in range(4):
        d = rng.normal(size=3)
        d *= STEP / np.linalg.norm(d)
        taken = outward(d, equal, unequal)
        off = violation(limit, product(turns(d), q)) - float(np.linalg.norm(taken))
        if violation(limit, product(turns(d - taken), q)) > CLOSE * STEP or off < -CLOSE * STEP:
            return False
        if not _has_ellipse(limit) and off > CLOSE * STEP:
            return False
    return True


def _has_ellipse(limit: Limit) -> bool:
    """Whether clamping may go farther than to the nearest rotation."""
    if isinstance(limit, ReversedLimit):
        return _has_ellipse(limit.limit)
    return isinstance(limit, SwingTwist) and isinstance(limit.swing, Ellipse)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cases", few_and_all(20, 60))
def test_normals_tell_which_turns_leave(kind: str, cases: range):
    rng = np.random.default_rng(40 + cases[0])
    total = kept = numbers = 0
    for _ in cases:
        limit = random_limit(kind, rng)
        for q in uniform(rng, 3).T:
            inside = nearest(limit, q)
            total += 1
            kept += hold_normals(limit, inside / np.linalg.norm(inside), rng)
            numbers += sum(len(each) for each in normals_at(limit, inside)) > 0
    # Beside sides of a half turn and at the tips of thin ellipses a border turns within a step.
    assert kept >= (0.97 if kind in ("ellipse", "reversed") else 0.99) * total, (kept, total)
    assert numbers > 0.3 * total


@pytest.mark.parametrize(
    ("limit", "rotation", "equal", "unequal"),
    [
        (Hinge((0, 0, 1), -0.5, 0.2), (0, 0, 0.2), 2, [(0, 0, 1)]),
        (Hinge((0, 0, 1), -0.5, 0.2), (0, 0, -0.5), 2, [(0, 0, -1)]),
        (Hinge((0, 0, 1), -0.5, 0.2), (0, 0, 0.1), 2, []),
        (Hinge((0, 0, 1), 0.2, 0.2), (0, 0, 0.2), 3, []),
        (ReversedLimit(Hinge((0, 0, 1), -0.5, 0.2), (1, 0, 0, 0)), (0, 0, -0.2), 2, [(0, 0, -1)]),
        (SwingTwist(Cone(0.4)), (0.4, 0, 0), 0, [(1, 0, 0)]),
        (SwingTwist(Cone(0.4)), (0.39, 0, 0), 0, []),
        (SwingTwist(None, (-0.3, 0.3)), (0, 0.3, 0), 0, [(0, 1, 0)]),
        (SwingTwist(Cone(0.4), (0, 0)), (0, 0, 0), 1, []),
        (SwingTwist(Cone(0.4), (0, 0)), (0.4, 0, 0), 1, [(1, 0, 0)]),
        (SwingTwist(Ellipse(-0.3, 0.6, -0.2, 0.5)), (0, 0, -0.2), 0, [(0, 0, -1)]),
        (SwingTwist(Ellipse(0, 0, -0.2, 0.5)), (0, 0, 0.1), 1, []),
        (SwingTwist(Ellipse(0, 1, -0.2, 0.5)), (0, 0, 0), 0, [(-1, 0, 0)]),
        (SwingTwist(Ellipse(-PI, PI, -PI, PI)), (PI - 1e-7, 0, 0), 0, []),
        (EulerBox("XYZ", (-1, -1, -1), (1, 1, 0.3)), (0, 0, 0.3), 0, [(0, 0, 1)]),
        (EulerBox("XYZ", (-1, 0, -1), (1, 0, 1)), (0, 0, 0), 1, []),
        (EulerBox("XYZ", (-4, -PI / 2, -4), (4, PI / 2, 4)), (0, PI / 2, 0), 0, []),
        (EulerBox("XYZ", (0, -1, -0.5), (0, PI / 2, 0.5)), (0, PI / 2, 0), 1, [(0, 1, 0)]),
    ],
)
def test_known_normals(limit, rotation, equal, unequal):
    q = turns(np.array(rotation, dtype=np.float64))
    held, others = normals_at(limit, q)
    assert len(held) == equal
    assert others == pytest.approx(np.array(unequal, dtype=np.float64).reshape(-1, 3), abs=1e-9)


def test_a_joint_without_a_limit_has_no_normals():
    assert borders_at(limit_row(None), np.array((0.8, 0.0, 0.6, 0.0)), 1e-6, np.zeros(9)) == 0


@pytest.mark.parametrize(("turn", "ends"), [(0.5, [1.0]), (0.4, []), (0.0, []), (-0.2, [-1.0]), (-0.1, [])])
def test_ends_of_the_only_turn_that_gimbal_lock_leaves(turn, ends):
    """X is held and Y at its end, a quarter turn: X then turns about Z, whose range has the ends."""
    limit = EulerBox("XYZ", (0, -1, -0.2), (0, PI / 2, 0.5))
    y, z = np.array((0.0, PI / 2, 0.0)), np.array((0.0, 0.0, turn))
    held, others = normals_at(limit, product(turns(z), turns(y)))
    assert len(held) == 1
    past_y = (-math.sin(turn), math.cos(turn), 0.0)
    expected = np.array([past_y, *((0.0, 0.0, end) for end in ends)])
    assert others == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("order", ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"])
@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("held", ["first", "middle", "last", "outer"])
def test_normals_in_gimbal_lock_tell_which_turns_leave(order: str, side: float, held: str) -> None:
    """The middle angle is a quarter turn, an end of its range or all of it; outer angles are at ends too.

    With both outer angles free the lock is the tip of a wedge, which has no normals.
    """
    rng, kept, total = np.random.default_rng(907), 0, 0
    for _ in range(2):
        ranges = np.sort(rng.uniform(-1.2, 1.2, (3, 2)), axis=1)
        ranges[1] = np.sort((side * PI / 2, side * rng.uniform(0.2, 1.0)))
        for number, words in enumerate((("first", "outer"), ("middle",), ("last", "outer"))):
            if held in words:
                ranges[number] = ranges[number, int(side > 0.0)]
        lower, upper = ranges[[order.index(axis) for axis in "XYZ"]].T.tolist()
        limit = EulerBox(order, lower, upper)
        for shares in itertools.product((0.0, 0.4, 1.0), repeat=2):
            angles = [ranges[0] @ (1.0 - shares[0], shares[0]), side * PI / 2]
            angles.append(ranges[2] @ (1.0 - shares[1], shares[1]))
            q = np.array((1.0, 0.0, 0.0, 0.0))
            for axis, angle in zip(order, angles, strict=True):
                q = product(turns(angle * np.eye(3)["XYZ".index(axis)]), q)
            total += 1
            kept += hold_normals(limit, q, rng)
    assert kept == total, (kept, total)


def test_a_corner_has_the_normals_of_all_its_borders():
    limit = EulerBox("ZYX", (-0.5, -0.4, -0.3), (0.6, 0.7, 0.8))
    x, z = turns(np.array((0.6, 0.0, 0.0))), turns(np.array((0.0, 0.0, -0.3)))
    corner = product(product(x, turns(np.array((0.0, 0.7, 0.0)))), z)
    equal, unequal = normals_at(limit, corner)
    assert (len(equal), len(unequal)) == (0, 3)
    assert hold_normals(limit, corner, np.random.default_rng(0))
    equal, unequal = normals_at(SwingTwist(Ellipse(0, 1, 0, 1), (-0.2, 0)), np.array((1.0, 0.0, 0.0, 0.0)))
    assert unequal == pytest.approx(np.array(((-1, 0, 0), (0, 0, -1), (0, 1, 0))), abs=1e-9)


def test_a_margin_brings_borders_nearer():
    limit = SwingTwist(Cone(0.5), (-0.3, 0.3))
    q = product(turns(np.array((0.49, 0.0, 0.0))), turns(np.array((0.0, 0.295, 0.0))))
    assert [len(normals_at(limit, q, margin)[1]) for margin in (1e-6, 6e-3, 2e-2)] == [0, 1, 2]
    # Both ends of a range at once.
    equal, unequal = normals_at(SwingTwist(None, (-1e-3, 1e-3)), np.array((1.0, 0.0, 0.0, 0.0)), 2e-3)
    assert (len(equal), len(unequal)) == (1, 0)
