"""The batched solver's parts: steps out of reach, limits, agreement with one by one."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_skeleton, straight, tail, tip
from mathutils import Quaternion, Vector
from mixtures import _goal

from ccd_rig.goals import BalanceGoal, Goal, OrientationGoal, PositionGoal, measure
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Limit, SwingTwist, violation
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.conjugate_gradients import INNER, least
from ccd_rig.solvers.least_squares.metric import Metric
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.solve import Limits, _Search, solve_batch
from ccd_rig.solvers.least_squares.state import (
    Bones,
    Poses,
    start_state,
)
from ccd_rig.solvers.solve import solve


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("far", [1.0005, 1.02, 1.5])
def test_chains_point_at_targets_out_of_reach_within_a_few_steps(seed: int, far: float) -> None:
    """The nearest that a chain of free joints gets is its whole length towards the target."""
    rng, count, joints = random.Random(seed), 12, 5
    skeleton = straight(joints)
    limits: list[Limit | None] = [None] * joints
    bent = [
        Pose.rest(skeleton).with_rotations(
            {i: Quaternion((1.0, *(rng.gauss(0.0, 0.15) for _ in "xyz"))).normalized() for i in range(joints)}
        )
        for _ in range(count)
    ]
    base = Poses.of(bent)
    ends = [forward_kinematics(skeleton, pose)[-1].point(Vector((0.0, 1.0, 0.0))) for pose in bent]
    length = sum(joint.length for joint in skeleton.joints)
    targets = np.array([far * length * end.normalized() for end in ends]).T
    problem = LeastSquaresProblem(skeleton, [PositionGoal(tip(skeleton), (0.0, 1.0, 0.0))], limits)
    given = problem.given(Bones.of(skeleton), base, [targets], base)
    stop = Limits(np.full(count, 1e-5 * length), 1e-3, 40)
    found = solve_batch(problem, given, start_state(problem.layout, given, base), stop)
    missed = found.excess * stop.position
    assert missed == pytest.approx((far - 1.0) * length, abs=stop.position[0])
    assert found.iterations.max() <= 14


def test_poses_whose_goals_are_in_conflict_are_as_near_as_they_get() -> None:
    """In reach of each of two targets, but not of both: the gradient is gone, within a few steps."""
    rng, count, joints = random.Random(3), 30, 6
    skeleton = straight(joints)
    limits: list[Limit | None] = [None] * joints
    base = Poses.of([legal_pose(skeleton, rng) for _ in range(count)])
    goals: list[Goal] = [
        PositionGoal("joint3", (0.0, 1.0, 0.0)),
        PositionGoal(tip(skeleton), (0.0, 1.0, 0.0)),
    ]
    problem = LeastSquaresProblem(skeleton, goals, limits)
    targets = [np.array([[rng.uniform(-2.0, 2.0) for _ in range(count)] for _ in range(3)]) for _ in goals]
    targets[1] = targets[0] + 3.5 * targets[1] / np.sqrt((targets[1] ** 2).sum(0))
    given = problem.given(Bones.of(skeleton), base, targets, base)
    stop = Limits(np.full(count, 1e-4), 1e-3, 40)
    found = solve_batch(problem, given, start_state(problem.layout, given, base), stop)
    missed = found.excess > 1.0
    assert missed.all()
    residual = problem.evaluate(given, found.state)
    _, slope = problem.jacobian(given, residual)
    falls = np.abs(np.einsum("rcb,rb->cb", slope, residual.values))
    lengths = np.sqrt((slope**2).sum(0).max(0) * residual.square)
    assert (falls <= 1e-3 * lengths).all()
    assert np.median(found.iterations) <= 15


def test_conjugate_gradients_find_the_least_of_a_quadratic() -> None:
    """As a direct solve does; and where the function bends down they leave the saddle."""
    rng, size = np.random.default_rng(0), 4
    half = rng.normal(size=(size, INNER, INNER))
    whole = np.einsum("bij,bkj->bik", half, half) + np.eye(INNER)
    gradient = rng.normal(size=(INNER, size))

    def bend(step: np.ndarray) -> np.ndarray:
        return np.einsum("bij,jb->ib", whole, step)

    found = least((gradient, gradient), bend, lambda force: (force, force), np.zeros(size))
    expected = -np.linalg.solve(whole, gradient.T[..., None])[..., 0].T
    assert found == pytest.approx(expected, rel=1e-6)
    away = least((gradient, gradient), lambda step: -step, lambda force: (force, force), np.zeros(size))
    assert ((away * gradient).sum(0) < 0.0).all()
    assert (np.abs(away).max(0) >= 0.05).all()


@pytest.mark.parametrize("seed", range(12))
def test_limits_hold_in_random_solves(seed: int) -> None:
    """Each kind of limit, goals in reach or not, with a reference and without."""
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 7, tree=seed % 2 == 0)
    transforms = forward_kinematics(skeleton, legal_pose(skeleton, rng))
    goals = [_goal(skeleton, transforms, rng) for _ in range(1 + seed % 3)]
    goals = [goal for goal in goals if not isinstance(goal, BalanceGoal)] or [
        PositionGoal(tip(skeleton), (9.0, 0.0, 0.0))
    ]
    limits = [joint.limit for joint in skeleton.joints]
    problem = LeastSquaresProblem(skeleton, goals, limits)
    starts = Poses.of([legal_pose(skeleton, rng) for _ in range(20)])
    for reference in (None, starts):
        given = problem.given(
            Bones.of(skeleton), starts, [np.array(goal.target[:])[:, None] for goal in goals], reference
        )
        found = solve_batch(
            problem,
            given,
            start_state(problem.layout, given, starts),
            Limits(np.full(20, 1e-3), 1e-3, 40),
        )
        assert np.isfinite(found.state.rotations).all()
        for i in problem.layout.moved:
            for k in range(20):
                rotation = Pose.rest(skeleton).rotations[0].copy()
                rotation[:] = found.state.rotations[:, problem.layout.row[i], k]
                assert limits[i] is None or violation(limits[i], rotation) <= FLOAT32


LIMITS = {
    "free": None,
    "cones": SwingTwist(Cone(math.radians(30.0)), (-0.35, 0.35)),
    "ellipses": SwingTwist(Ellipse(-0.3, 0.6, -0.2, 0.8), (-0.2, 0.4)),
    "boxes": EulerBox("XYZ", (-0.5, -0.4, -0.6), (0.5, 0.7, 0.3)),
}


def test_of_steps_that_meet_the_goals_the_one_nearest_to_the_reference_counts() -> None:
    """Each comes nearer to it."""
    rng, count = random.Random(11), 16
    skeleton = straight(6)
    problem = LeastSquaresProblem(skeleton, [PositionGoal(tip(skeleton), (0.0, 1.0, 0.0))], [None] * 6)
    base = Poses.of([legal_pose(skeleton, rng) for _ in range(count)])
    starts = Poses.of([legal_pose(skeleton, rng) for _ in range(count)])
    targets = np.array([tail(skeleton, legal_pose(skeleton, rng))[:] for _ in range(count)]).T
    given = problem.given(Bones.of(skeleton), base, [targets], base)
    start = start_state(problem.layout, given, starts)
    search = _Search(problem, given, start, Limits(np.full(count, 1e-2), 1e-3, 60))
    nearest, met_again = np.full(count, np.inf), 0
    while len(search.poses.places):
        search.iterate()
        poses = search.poses
        met = poses.off <= 1.0
        places, departed = poses.places[met], poses.departed[met]
        met_again += int(np.isfinite(nearest[places]).sum())
        nearest[places] = np.minimum(nearest[places], departed)
    found = search.result()
    assert met_again > count and (found.excess <= 1.0).all()
    departure = problem.departure(given, found.state)
    assert departure is not None
    departed = Metric(problem.layout, given.bends, found.state).square(departure)
    assert (departed <= 1.01 * nearest + 1e-6).all()


@pytest.mark.parametrize("name", ["cones", "boxes"])
def test_no_step_takes_a_pose_farther_from_its_goal(name: str) -> None:
    """Also where those of others at the same time count: targets in reach and out of it."""
    rng, count = random.Random(7), 24
    skeleton = straight(6, LIMITS[name])
    limits = [joint.limit for joint in skeleton.joints]
    problem = LeastSquaresProblem(skeleton, [PositionGoal(tip(skeleton), (0.0, 1.0, 0.0))], limits)
    poses = Poses.of([legal_pose(skeleton, rng) for _ in range(count)])
    targets = np.array([[rng.uniform(-5.0, 5.0) for _ in range(count)] for _ in range(3)])
    given = problem.given(Bones.of(skeleton), poses, [targets])
    start = start_state(problem.layout, given, poses)
    search = _Search(problem, given, start, Limits(np.full(count, 1e-3), 1e-3, 40))
    squares, mixed = np.full(count, np.inf), 0
    while len(search.poses.places):
        search.iterate()
        places, now = search.poses.places, search.now.square
        assert (now <= squares[places]).all()
        refused = now == squares[places]
        mixed += bool(refused.any() and not refused.all())
        squares[places] = now
    assert mixed >= 3


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("posed", [False, True])
def test_agrees_with_one_by_one(name: str, posed: bool) -> None:
    """About as many random targets are met as by single solves; errors are true."""
    rng, count, tolerance = random.Random(1), 40, 1e-3
    skeleton = straight(8, LIMITS[name])
    last = [forward_kinematics(skeleton, legal_pose(skeleton, rng))[-1] for _ in range(count)]
    ends = [each.point(Vector((0.0, 1.0, 0.0))) for each in last]

    def goals(k: int) -> list[Goal]:
        found: list[Goal] = [PositionGoal(tip(skeleton), ends[k])]
        return [*found, OrientationGoal(tip(skeleton), last[k].rotation)] if posed else found

    limits = [joint.limit for joint in skeleton.joints]
    problem = LeastSquaresProblem(skeleton, goals(0), limits)
    rest = Pose.rest(skeleton)
    start = Pose(tuple(joint.allowed(Quaternion()) for joint in skeleton.joints), rest.translations)
    settings = SolverSettings(position_tolerance=tolerance, angle_tolerance=tolerance, restarts=0)
    targets = [np.array([target[:] for target in ends]).T]
    targets += [np.array([each.rotation[:] for each in last]).T] if posed else []
    poses = Poses.of([start] * count)
    given = problem.given(Bones.of(skeleton), poses, targets)
    found = solve_batch(
        problem,
        given,
        start_state(problem.layout, given, poses),
        Limits(np.full(count, tolerance), tolerance, 60),
    )
    alone = 0
    for k in range(count):
        alone += solve(skeleton, start, goals(k), settings).status is SolveStatus.CONVERGED
        rotations = [start.rotations[0].copy() for _ in skeleton.joints]
        for i, rotation in enumerate(rotations):
            rotation[:] = found.state.rotations[:, problem.layout.row[i], k]
        pose = Pose(tuple(rotations), start.translations)
        errors = [measure(goal, skeleton, forward_kinematics(skeleton, pose)) for goal in goals(k)]
        worst = max(max(error.distance, error.angle) for error in errors)
        assert (worst <= 1.01 * tolerance) == (found.excess[k] <= 1.0)
    assert (found.excess <= 1.0).sum() >= 0.95 * alone
