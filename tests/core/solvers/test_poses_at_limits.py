"""Poses that limits keep from their goals end where nothing nearer is, and soon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mathutils import Quaternion
from seeds import few_and_all

from ccd_rig.goals import PositionGoal
from ccd_rig.kernel import project_rotation
from ccd_rig.limits.shapes import Cone, Ellipse, Hinge, Limit, SwingTwist
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.many import ManyResult, solve_many
from ccd_rig.solvers.solve import solve

CONE = SwingTwist(Cone(0.6), (-0.3, 0.3))
OVAL = SwingTwist(Ellipse(-0.3, 0.7, -0.5, 0.4), (-0.3, 0.3))
KNEE = Hinge((1.0, 0.0, 0.0), 0.0, 2.2)
TIPS = ("l.hand", "r.hand", "l.foot", "r.foot")
COUNT = 60


def figure(ball: Limit) -> Skeleton:
    """A spine of three joints, two arms and two legs of three each."""
    joints = [Joint("hips", length=0.2)]

    def add(names: tuple[str, ...], parent: int, offset: tuple[float, float, float], size: float) -> int:
        for k, name in enumerate(names):
            limit = KNEE if k == 1 and len(names) == 3 and "spine" not in name else ball
            joints.append(Joint(name, parent, offset, length=size, limit=limit))
            parent, offset = len(joints) - 1, (0.0, size, 0.0)
        return parent

    chest = add(("spine0", "spine1", "spine2"), 0, (0.0, 0.1, 0.0), 0.15)
    for side, x in (("l.", 1.0), ("r.", -1.0)):
        add((f"{side}upper", f"{side}fore", f"{side}hand"), chest, (0.2 * x, 0.1, 0.0), 0.28)
        add((f"{side}thigh", f"{side}shin", f"{side}foot"), 0, (0.1 * x, -0.05, 0.0), 0.4)
    return Skeleton(joints)


def random_targets() -> np.ndarray:
    """(tips, COUNT, 3) near the figure: limits keep it off most."""
    random = np.random.default_rng(5)
    return random.uniform((-0.5, -0.6, -0.5), (0.5, 0.8, 0.5), (len(TIPS), COUNT, 3))


def solved(ball: Limit) -> tuple[Skeleton, list[PositionGoal], np.ndarray, ManyResult]:
    skeleton, targets = figure(ball), random_targets()
    goals = [PositionGoal(tip, (0.0, 0.0, 0.0)) for tip in TIPS]
    settings = SolverSettings(restarts=0)
    result = solve_many(skeleton, [Pose.rest(skeleton)] * COUNT, goals, settings, targets=list(targets))
    return skeleton, goals, targets, result


def square(skeleton: Skeleton, goals: list[PositionGoal], pose: Pose, targets: np.ndarray) -> float:
    """Squared distances of all ends, by forward kinematics of its own."""
    heads: list[np.ndarray] = []
    frames: list[Quaternion] = []
    for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True):
        before = frames[joint.parent] if joint.parent >= 0 else Quaternion()
        start = heads[joint.parent] if joint.parent >= 0 else np.zeros(3)
        heads.append(start + np.array(before @ joint.offset))
        frames.append(before @ joint.rest_rotation @ rotation)
    ends = []
    for goal in goals:
        i = skeleton.index(goal.joint)
        ends.append(heads[i] + np.array(frames[i].to_matrix().col[1]) * skeleton.joints[i].length)
    return float(((np.array(ends) - targets) ** 2).sum())


@pytest.mark.parametrize("ball", [CONE, OVAL])
def test_what_limits_keep_off_ends_before_the_most_steps(ball: Limit) -> None:
    """Steps along several borders at once once zigzagged: a fifth of such poses ran to the end."""
    *_, result = solved(ball)
    assert not result.statuses.count(SolveStatus.ITERATION_LIMIT)
    assert result.statuses.count(SolveStatus.OPTIMAL) >= 0.7 * COUNT
    assert np.median(result.iterations) < 100


@pytest.mark.parametrize("ball", [CONE, OVAL])
def test_so_do_single_solves(ball: Limit) -> None:
    skeleton, statuses = figure(ball), []
    for targets in random_targets().swapaxes(0, 1):
        goals = [PositionGoal(tip, target.tolist()) for tip, target in zip(TIPS, targets, strict=True)]
        statuses.append(solve(skeleton, Pose.rest(skeleton), goals, SolverSettings(restarts=0)).status)
    assert not statuses.count(SolveStatus.ITERATION_LIMIT)
    assert statuses.count(SolveStatus.STALLED) <= 0.1 * COUNT


@pytest.mark.parametrize("optima", few_and_all(3, 20))
@pytest.mark.parametrize("ball", [CONE, OVAL])
def test_nothing_nearer_is_found_by_small_random_steps(ball: Limit, optima: range) -> None:
    skeleton, goals, targets, result = solved(ball)
    random = np.random.default_rng(1)
    optimal = np.flatnonzero([status is SolveStatus.OPTIMAL for status in result.statuses])
    for b in optimal[optima].tolist():
        pose = result.pose(b)
        best = square(skeleton, goals, pose, targets[:, b])
        for size in (0.3, 0.1, 0.03, 0.01):
            for _ in range(60):
                rotations = []
                for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True):
                    axis = random.normal(size=3)
                    turned = rotation @ Quaternion(axis.tolist(), size * random.normal())
                    rotations.append(turned if joint.limit is None else inside(joint.limit, turned))
                rotations[0] = pose.rotations[0]
                tried = square(skeleton, goals, Pose(tuple(rotations), pose.translations), targets[:, b])
                assert math.sqrt(tried) > math.sqrt(best) * (1.0 - 2e-3) - 1e-4


def inside(limit: Limit, rotation: Quaternion) -> Quaternion:
    """A rotation inside a limit, in double precision."""
    nearest = project_rotation(limit.row, *rotation)
    return rotation if nearest is None else Quaternion(nearest).normalized()
