"""The closing phase: its derivatives, and that it ends nearer, with little motion."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_skeleton, shifted, straight, tail, tip
from closing_cases import KINDS, goal_of, is_met, limits_of, varied, weighted
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import BalanceGoal, DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal, measure
from ccd_rig.limits.shapes import Cone, SwingTwist, violation
from ccd_rig.maths.batch import matrix_logarithm
from ccd_rig.maths.rotations import angle_between
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.closing import Descent, refine, refined
from ccd_rig.solvers.least_squares.pose_problem import PoseProblem
from ccd_rig.solvers.least_squares.state import moved_state, stepped_balls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_slope_is_the_finite_difference(kind: str, seed: int) -> None:
    """Central differences of the residual agree with the slope, whatever the tree."""
    rng = random.Random(f"{kind} {seed}")
    skeleton = varied(rng, rng.randrange(3, 9))
    while kind == "pole" and len(skeleton.chain(len(skeleton) - 1)) < 2:
        skeleton = varied(rng, 6)
    goals = [goal_of(kind, skeleton, rng), goal_of("position", skeleton, rng)]
    problem = PoseProblem(skeleton, goals, limits_of(skeleton))
    given, state = problem.arrays(shifted(skeleton, legal_pose(skeleton, rng), rng))
    _, slope = problem.jacobian(given, problem.evaluate(given, state))
    assert slope.shape[1] == problem.layout.columns
    small = 1e-6

    def values(step: np.ndarray) -> np.ndarray:
        balls = stepped_balls(problem.layout, state, step)
        return problem.evaluate(given, moved_state(problem.layout, given, state, step, balls)).values

    for column in range(problem.layout.columns):
        step = np.zeros((problem.layout.columns, 1))
        step[column] = small
        difference = (values(step) - values(-step)) / (2.0 * small)
        np.testing.assert_allclose(difference, slope[:, column], rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_misses_are_what_the_goals_measure(kind: str) -> None:
    for seed in range(40):
        rng = random.Random(f"{kind} {seed}")
        skeleton = varied(rng, 6)
        pose = shifted(skeleton, legal_pose(skeleton, rng), rng)
        goal = goal_of(kind, skeleton, rng)
        problem = PoseProblem(skeleton, [goal], limits_of(skeleton))
        error = measure(goal, skeleton, forward_kinematics(skeleton, pose))
        for residual in (problem.evaluate(*problem.arrays(pose)), problem.residual(pose)):
            if residual.angular[0, 0]:
                # Single precision cannot tell small angles of a pole's bend.
                assert residual.misses[0, 0] == pytest.approx(error.angle, abs=1e-4)
                assert error.distance == 0.0
            else:
                assert residual.misses[0, 0] == pytest.approx(error.distance, abs=FLOAT32 * 10.0)
                assert error.angle == 0.0


def test_random_skeletons_never_worse_and_inside_limits() -> None:
    """Reachable and unreachable goals of every kind: nearer or the same, no limit broken, every number
    finite."""
    met = 0
    for seed in range(250):
        rng = random.Random(seed)
        skeleton = varied(rng, rng.randrange(2, 9))
        wanted = shifted(skeleton, legal_pose(skeleton, rng), rng)
        kinds = [k for k in KINDS if k != "pole" or len(skeleton.chain(len(skeleton) - 1)) > 1]
        goals = [goal_of(rng.choice(kinds), skeleton, rng, wanted) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.3:
            goals.append(PositionGoal(skeleton.joints[-1].name, Vector((30.0, 20.0, 10.0))))
        limits = limits_of(skeleton)
        problem = PoseProblem(skeleton, goals, limits)
        start = problem.clamped(shifted(skeleton, legal_pose(skeleton, rng), rng))
        before = weighted(skeleton, start, goals, float(problem.reach[0]))
        found = refined(problem, start, Descent(1e-4, 1e-3, 60))
        after = weighted(skeleton, found.pose, goals, float(problem.reach[0]))
        assert after <= before + FLOAT32 * max(1.0, before), seed
        met += is_met(skeleton, found.pose, goals, 1e-4, 1e-3)
        for i, joint in enumerate(skeleton.joints):
            rotation = found.pose.rotations[i]
            assert all(math.isfinite(part) for part in (*rotation, *found.pose.translations[i]))
            if i not in problem.layout.moved:
                assert rotation == start.rotations[i]
                continue
            if joint.limit is not None:
                assert violation(joint.limit, rotation) <= FLOAT32
            for slide in joint.slides:
                along = Vector(slide.axis).dot(found.pose.translations[i])
                assert slide.lower - FLOAT32 <= along <= slide.upper + FLOAT32
    assert met > 60


def test_pole_and_priority_together() -> None:
    """A pole turns the chain while its end stays on the target; a goal served later does not pull it away."""
    skeleton = straight(4)
    target = Vector((1.0, 1.5, 0.5))
    pole = PoleGoal("joint0", "joint3", Vector((3.0, 1.0, -6.0)))
    reach = PositionGoal("joint3", target)
    start = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.4) for i in range(4)})
    found = refine(skeleton, start, [reach, pole], [None] * 4, Descent(1e-4, 1e-3, 100))
    transforms = forward_kinematics(skeleton, found)
    assert measure(reach, skeleton, transforms).distance <= 1e-4
    assert measure(pole, skeleton, transforms).angle <= 1e-3
    away = PositionGoal("joint3", Vector((-2.0, 0.0, 1.0)), priority=1)
    found = refine(skeleton, start, [away, reach], [None] * 4, Descent(1e-4, 1e-3, 100))
    assert (tail(skeleton, found) - target).length <= 1e-3


def test_met_goal_leaves_the_pose_alone() -> None:
    rng = random.Random(1)
    skeleton = random_skeleton(rng, 6)
    pose = PoseProblem(skeleton, [goal_of("position", skeleton, rng)], limits_of(skeleton)).clamped(
        legal_pose(skeleton, rng)
    )
    goal = PositionGoal(tip(skeleton), tail(skeleton, pose))
    assert refine(skeleton, pose, [goal], limits_of(skeleton), Descent(1e-4, 1e-3, 50)) is pose


@pytest.mark.parametrize("twist", [None, (-0.3, 0.3)])
def test_fifty_joints_inside_cones(twist: tuple[float, float] | None) -> None:
    """Where sweeps creep: every random legal target is met to 1e-5 of the reach, after rounding to single
    precision."""
    cone = SwingTwist(Cone(math.radians(15.0)), twist)
    skeleton = straight(50, cone)
    rng = random.Random(5)
    for _ in range(12):
        goal = PositionGoal("joint49", tail(skeleton, legal_pose(skeleton, rng)))
        found = refine(skeleton, Pose.rest(skeleton), [goal], [cone] * 50, Descent(50e-5, 1e-3, 60))
        assert (tail(skeleton, found) - goal.target).length <= 50e-5
        assert max(violation(cone, rotation) for rotation in found.rotations) <= FLOAT32


@pytest.mark.parametrize("count", [3, 10, 100])
def test_tolerance_survives_rounding(count: int) -> None:
    """1e-5 of the reach, held against forward kinematics in single precision."""
    skeleton = straight(count)
    rng = random.Random(count)
    for _ in range(10):
        wanted = legal_pose(skeleton, rng)
        goal = PositionGoal(tip(skeleton), tail(skeleton, wanted))
        frame = OrientationGoal(tip(skeleton), forward_kinematics(skeleton, wanted)[-1].rotation)
        found = refine(
            skeleton, Pose.rest(skeleton), [goal, frame], [None] * count, Descent(1e-5 * count, 1e-5, 100)
        )
        transforms = forward_kinematics(skeleton, found)
        assert measure(goal, skeleton, transforms).distance <= 1e-5 * count
        assert measure(frame, skeleton, transforms).angle <= 1e-5


def test_small_motion_of_the_target_moves_joints_little() -> None:
    """A target moved by 1e-3 turns no joint by more than a few times that, along a path inside and at the
    limits."""
    cone = SwingTwist(Cone(math.radians(20.0)), (-0.2, 0.2))
    skeleton = straight(10, cone)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.1) for i in range(10)})
    largest = 0.0
    for frame in range(400):
        angle = 2.5e-3 * frame
        target = Vector((7.5 * math.sin(angle), 7.5 * math.cos(angle), 0.4 * math.sin(3.0 * angle)))
        goal = PositionGoal("joint9", target)
        found = refine(skeleton, pose, [goal], [cone] * 10, Descent(1e-4, 1e-3, 60))
        assert (tail(skeleton, found) - target).length <= 1e-4
        if frame:
            turns = [angle_between(a, b) for a, b in zip(pose.rotations, found.rotations, strict=True)]
            largest = max(largest, *turns)
        pose = found
    # The target moves by 0.02 a frame: at least 0.0025 radians over the whole reach.
    assert largest < 0.02


def test_straight_chain_and_target_on_its_line() -> None:
    """Singular: every joint moves the end across, none along. No motion is lost and nothing is not finite."""
    skeleton = straight(5)
    bent = Pose.rest(skeleton).with_rotations({2: Quaternion((1.0, 0.0, 0.0), 1e-4)})
    for target in ((0.0, 3.0, 0.0), (0.0, 5.0, 0.0), (0.0, 50.0, 0.0), (0.0, 0.0, 0.0), (0.0, -50.0, 0.0)):
        goal = PositionGoal("joint4", Vector(target))
        for start in (Pose.rest(skeleton), bent):
            before = (tail(skeleton, start) - goal.target).length
            found = refine(skeleton, start, [goal], [None] * 5, Descent(1e-4, 1e-3, 100))
            assert all(math.isfinite(part) for rotation in found.rotations for part in rotation)
            assert (tail(skeleton, found) - goal.target).length <= before + FLOAT32


def test_target_out_of_reach_is_pointed_at() -> None:
    skeleton = straight(5)
    bent = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.2, 0.1), 0.3) for i in range(5)})
    target = Vector((20.0, 10.0, -5.0))
    found = refine(skeleton, bent, [PositionGoal("joint4", target)], [None] * 5, Descent(1e-4, 1e-3, 200))
    assert (tail(skeleton, found) - target).length == pytest.approx(target.length - 5.0, rel=1e-3)


@pytest.mark.parametrize("kind", ["orientation", "direction"])
def test_opposite_target(kind: str) -> None:
    """A half turn away every way is equally long: one is taken, and the goal is met."""
    skeleton = straight(3)
    goal: Goal = OrientationGoal("joint2", Quaternion((0.0, 1.0, 0.0, 0.0)))
    if kind == "direction":
        goal = DirectionGoal("joint2", Vector((0.0, 1.0, 0.0)), Vector((0.0, -1.0, 0.0)))
    found = refine(skeleton, Pose.rest(skeleton), [goal], [None] * 3, Descent(1e-4, 1e-3, 60))
    assert measure(goal, skeleton, forward_kinematics(skeleton, found)).angle <= 1e-3


def test_same_input_same_bits() -> None:
    rng = random.Random(11)
    skeleton = varied(rng, 8)
    goals = [goal_of("position", skeleton, rng), goal_of("orientation", skeleton, rng)]
    start = legal_pose(skeleton, rng)
    first, second = (
        refine(skeleton, start, goals, limits_of(skeleton), Descent(1e-5, 1e-4, 50)) for _ in range(2)
    )
    assert first == second


def test_rotation_vector_of_any_turn() -> None:
    rng = random.Random(3)
    for angle in (0.0, 1e-9, 1e-5, 0.5, 2.0, 3.1, math.pi - 1e-4, math.pi - 1e-8, math.pi):
        axis = np.array([rng.gauss(0.0, 1.0) for _ in range(3)])
        axis /= np.linalg.norm(axis)
        cross = np.array(((0.0, -axis[2], axis[1]), (axis[2], 0.0, -axis[0]), (-axis[1], axis[0], 0.0)))
        matrix = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * (cross @ cross)
        found = matrix_logarithm(matrix[..., None])[:, 0]
        if angle == math.pi and found @ axis < 0.0:
            found = -found
        np.testing.assert_allclose(found, angle * axis, atol=1e-7)


def test_bad_input_is_refused() -> None:
    skeleton = straight(2)
    goal = PositionGoal("joint1", Vector((1.0, 0.0, 0.0)))
    with pytest.raises(InvalidInput, match="at least one goal"):
        refine(skeleton, Pose.rest(skeleton), [], [None] * 2, Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="2 joints, not 1"):
        refine(skeleton, Pose.rest(skeleton), [goal], [None], Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="3 joints"):
        refine(skeleton, Pose.rest(straight(3)), [goal], [None] * 2, Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="mass"):
        refine(skeleton, Pose.rest(skeleton), [BalanceGoal(Vector())], [None] * 2, Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="'other'"):
        refine(
            skeleton,
            Pose.rest(skeleton),
            [PositionGoal("other", Vector())],
            [None] * 2,
            Descent(1e-4, 1e-3, 10),
        )
