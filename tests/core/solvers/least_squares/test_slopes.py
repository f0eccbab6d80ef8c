"""Slopes and curvature of residuals against differences."""

from __future__ import annotations

import random

import numpy as np
import pytest
from chains import random_couplings, random_skeleton, random_slides, straight, tip
from mathutils import Quaternion, Vector
from mixtures import _pose

from ccd_rig.goals import BalanceGoal, DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import EulerBox, Hinge, Limit
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers.least_squares.metric import Metric
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.state import (
    Bones,
    Given,
    Poses,
    State,
    moved_state,
    start_state,
    stepped_balls,
)
from ccd_rig.solvers.least_squares.way_back import Curvature

SIZE = 3
STEP = 1e-6
"""Of finite differences, radians and parts of the reach."""


def target_of(goal: Goal) -> np.ndarray:
    return np.array(goal.target[:])[:, None]


class Case:
    """A problem, and states of it inside the limits."""

    def __init__(self, skeleton: Skeleton, goals: list[Goal], rng: random.Random, held: bool = False) -> None:
        self.problem = LeastSquaresProblem(skeleton, goals, [joint.limit for joint in skeleton.joints])
        self.poses = Poses.of([_pose(skeleton, rng) for _ in range(SIZE)])
        reference = Poses.of([_pose(skeleton, rng) for _ in range(SIZE)]) if held else None
        targets = [target_of(goal) for goal in goals]
        self.given: Given = self.problem.given(Bones.of(skeleton), self.poses, targets, reference)
        self.state: State = start_state(self.problem.layout, self.given, self.poses)

    def moved(self, step: np.ndarray) -> State:
        """The state after a step (k, B), limits not applied."""
        layout = self.problem.layout
        balls = stepped_balls(layout, self.state, step)
        return moved_state(layout, self.given, self.state, step, balls)

    def values(self, step: np.ndarray) -> np.ndarray:
        """(m, B) the residuals there."""
        return self.problem.evaluate(self.given, self.moved(step)).values


def goals_of(kind: type, skeleton: Skeleton) -> list[Goal]:
    name, somewhere = tip(skeleton), Vector((0.7, -0.4, 0.9))
    if kind is PositionGoal:
        return [PositionGoal(name, somewhere, Vector((0.1, 0.3, -0.2)), weight=2.0)]
    if kind is OrientationGoal:
        return [OrientationGoal(name, (0.5, 0.5, -0.5, 0.5))]
    if kind is DirectionGoal:
        return [DirectionGoal(name, (0.0, 0.6, 0.8), somewhere)]
    if kind is PoleGoal:
        return [PoleGoal("joint0", name, 5.0 * somewhere)]
    return [BalanceGoal(somewhere, (True, False, True))]


KINDS = (PositionGoal, OrientationGoal, DirectionGoal, PoleGoal, BalanceGoal)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_slopes_are_those_of_differences(kind: type, seed: int) -> None:
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 5)
    skeleton = Skeleton(
        Joint(
            joint.name,
            joint.parent,
            joint.offset,
            joint.rest_rotation,
            joint.length,
            joint.limit,
            mass=rng.uniform(0.1, 1.0),
            slides=random_slides(rng) if i == 2 else (),
            inherit_rotation=joint.inherit_rotation,
        )
        for i, joint in enumerate(skeleton.joints)
    )
    skeleton = random_couplings(skeleton, rng)
    case = Case(skeleton, goals_of(kind, skeleton), rng)
    residual = case.problem.evaluate(case.given, case.state)
    _, slope = case.problem.jacobian(case.given, residual)
    for column in range(case.problem.layout.columns):
        step = np.zeros((case.problem.layout.columns, SIZE))
        step[column] = STEP
        found = (case.values(step) - case.values(-step)) / (2.0 * STEP)
        assert slope[:, column] == pytest.approx(found, abs=2e-6)


@pytest.mark.parametrize("seed", range(8))
def test_slopes_of_points_written_together_are_those_of_each(seed: int) -> None:
    """Positions on several joints, of different weight and priority, in a tree with limits of every kind."""
    rng = random.Random(f"together {seed}")
    skeleton = random_couplings(random_skeleton(rng, 9, tree=True), rng)
    goals = [
        PositionGoal(joint.name, [rng.gauss(0.0, 1.0) for _ in range(3)], weight=0.5 + k, priority=k % 2)
        for k, joint in enumerate(rng.sample(skeleton.joints, 4))
    ]
    case = Case(skeleton, goals, rng)
    problem = case.problem
    residual = problem.evaluate(case.given, case.state)
    now, slope = problem.jacobian(case.given, residual)
    for block, place, target in zip(problem.blocks, problem.places, case.given.targets, strict=True):
        own = np.zeros_like(slope[place])
        block.slope(now, target, residual.values[place], own)
        assert slope[place] == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("kind", [PositionGoal, OrientationGoal, DirectionGoal])
@pytest.mark.parametrize(
    "limit", [None, Hinge((1.0, 0.0, 0.0), -3.0, 3.0), EulerBox("XZY", (-1,) * 3, (1,) * 3)]
)
def test_curvature_is_that_of_differences(kind: type, limit: Limit | None) -> None:
    """Of |departure|^2 / 2 + multipliers.residuals along a curve of one rotation vector per joint.

    An orientation's and a direction's own curvature is approximate away from the target, so these are
    measured at it.
    """
    rng, noise = random.Random(4), np.random.default_rng(4)
    skeleton = straight(4, limit)
    goals = goals_of(kind, skeleton)
    case = Case(skeleton, goals, rng, held=True)
    problem = case.problem
    if kind is not PositionGoal:
        row = problem.layout.row[3]
        frame = case.state.transforms[row, :, :3]
        own = frame if kind is OrientationGoal else np.einsum("ijb,j->ib", frame, np.array((0.0, 0.6, 0.8)))
        case.given = Given(**{**vars(case.given), "targets": (own,)})
    multipliers = noise.normal(size=(problem.rows, SIZE))
    way = noise.normal(size=(problem.layout.columns, SIZE))

    def value(t: float) -> np.ndarray:
        state = case.moved(t * way)
        departure = problem.departure(case.given, state)
        held = 0.5 * Metric(problem.layout, case.given.bends, state).square(departure)
        return held + (multipliers * problem.evaluate(case.given, state).values).sum(0)

    now, _ = problem.jacobian(case.given, problem.evaluate(case.given, case.state))
    metric = Metric(problem.layout, case.given.bends, case.state)
    departure = problem.departure(case.given, case.state)
    found = (way * Curvature(problem, now, departure, multipliers, metric)(way)).sum(0)
    h = 1e-3
    if kind is DirectionGoal:  # the residual has no second derivative across the target: along it only
        multipliers[:] = 0.0
        found = (way * Curvature(problem, now, departure, multipliers, metric)(way)).sum(0)
    expected = (value(h) - 2.0 * value(0.0) + value(-h)) / h**2
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_curvature_of_poles_is_that_of_differences(seed: int) -> None:
    """Of the pole's residual alone, whose chain stands on two joints that a second goal moves."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    pole, end = PoleGoal("joint2", "joint4", (3.0, -2.0, 4.0)), PositionGoal("joint4", (1.0, 2.0, 0.5))
    case = Case(straight(5), [pole, end], rng, held=True)
    problem = case.problem
    assert len(problem.layout.moved) == 5
    way = noise.normal(size=(problem.layout.columns, SIZE))
    h = 1e-3
    expected = (case.values(h * way) - 2.0 * case.values(0.0 * way) + case.values(-h * way))[0] / h**2
    now, _ = problem.jacobian(case.given, problem.evaluate(case.given, case.state))
    metric = Metric(problem.layout, case.given.bends, case.state)
    departure = problem.departure(case.given, case.state)
    multipliers = np.zeros((2, problem.rows, SIZE))
    multipliers[0, 0] = 1.0
    with_pole, without = (
        (way * Curvature(problem, now, departure, each, metric)(way)).sum(0) for each in multipliers
    )
    assert with_pole - without == pytest.approx(expected, rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("seed", range(6))
def test_curvature_is_that_of_differences_in_limbs_bent_at_rest(seed: int) -> None:
    """Their inner joints rotate about the axis of the bend more readily than across it."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    bend = Quaternion((1.0, 0.0, 0.0), rng.uniform(0.2, 1.5))
    limb = [Joint("upper", stiffness=0.2), Joint("lower", 0, (0.0, 1.0, 0.0), bend, stiffness=0.4)]
    skeleton = Skeleton([*limb, Joint("end", 1, (0.1, 0.9, 0.0), bend)])
    case = Case(skeleton, goals_of(PositionGoal, skeleton), rng, held=True)
    problem, layout = case.problem, case.problem.layout
    assert len(layout.bent)
    multipliers = noise.normal(size=(problem.rows, SIZE))
    way = noise.normal(size=(layout.columns, SIZE))

    def value(t: float) -> np.ndarray:
        state = case.moved(t * way)
        held = 0.5 * Metric(layout, case.given.bends, state).square(problem.departure(case.given, state))
        return held + (multipliers * problem.evaluate(case.given, state).values).sum(0)

    now, _ = problem.jacobian(case.given, problem.evaluate(case.given, case.state))
    departure = problem.departure(case.given, case.state)
    curvature = Curvature(problem, now, departure, multipliers, Metric(layout, case.given.bends, case.state))
    h = 1e-3
    expected = (value(h) - 2.0 * value(0.0) + value(-h)) / h**2
    assert (way * curvature(way)).sum(0) == pytest.approx(expected, rel=1e-3, abs=1e-2)
