"""Comfort tolerances in least squares: joints at ease, and what others do for them, beside CCD's meaning."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from chains import Z, desired_turn, legal_pose, random_skeleton, straight, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Comfort, Cone, Hinge, SwingTwist, contains
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.comfort_tolerances import EASE
from ccd_rig.solvers.least_squares.desired_angles import DesiredAngles
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.state import Bones, Poses, start_state
from ccd_rig.solvers.many import solve_many
from ccd_rig.solvers.solve import solve

SETTINGS = SolverSettings(position_tolerance=1e-3)
LIMITS = {"free": None, "cones": SwingTwist(Cone(0.9), (-0.5, 0.5)), "hinges": Hinge(Z, -1.5, 1.5)}
START = {i: Quaternion(Z, 0.3 * (-1) ** i) for i in range(5)}


def relaxed(limit: object, tolerances: Sequence[float], region: object = None) -> Skeleton:
    """A chain of five with comfort tolerances."""
    changes = {f"joint{i}": {"comfort": Comfort(each, region)} for i, each in enumerate(tolerances) if each}
    return straight(5, limit).replace(changes)


def angles(skeleton: Skeleton, pose: Pose, target: Vector) -> list[float]:
    """By how much joints would turn."""
    return [desired_turn(skeleton, pose, i, target) for i in range(5)]


def at_limit(skeleton: Skeleton, pose: Pose, i: int) -> bool:
    """Whether a joint stands at a border of its limit: some small turn is clamped."""
    limit = skeleton.joints[i].limit
    ways = [Quaternion(axis, angle) for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)) for angle in (-0.01, 0.01)]
    if isinstance(limit, Hinge):
        ways = [Quaternion(limit.axis, angle) for angle in (-0.01, 0.01)]
    return limit is not None and not all(contains(limit, pose.rotations[i] @ way, 1e-4) for way in ways)


@pytest.mark.parametrize("seed", range(20))
def test_desired_angles_are_those_between_what_a_joint_carries_and_its_target(seed: int) -> None:
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 6)
    skeleton = skeleton.replace(
        {j.name: {"inherit_rotation": True, "stiffness": 0.0} for j in skeleton.joints}
    )
    pose, target = legal_pose(skeleton, rng), tail(skeleton, legal_pose(skeleton, rng))
    limits = [joint.limit for joint in skeleton.joints]
    problem = LeastSquaresProblem(skeleton, [PositionGoal("joint5", target)], limits, range(6))
    poses = Poses.of([pose, pose])
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets())
    state = start_state(problem.layout, given, poses)
    angles = DesiredAngles(problem, limits, range(6))(given, state)[:, 0]
    assert angles == pytest.approx([desired_turn(skeleton, pose, i, target) for i in range(6)], abs=1e-4)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e5])
@pytest.mark.parametrize("limit", [None, Hinge(Z, -3.0, 3.0)])
@pytest.mark.parametrize("wanted", [0.0, 1e-3, 0.7, -2.5])
def test_a_bone_wants_to_turn_by_the_angle_to_its_target_at_any_size(
    size: float, limit: Hinge | None, wanted: float
) -> None:
    skeleton = Skeleton([Joint("bone", -1, (0.0, 0.0, 0.0), Quaternion(), size, limit)])
    way = Quaternion(Z, wanted) @ Vector((0.0, 1.0, 0.0))
    goals = [PositionGoal("bone", 1.3 * size * way)]
    problem = LeastSquaresProblem(skeleton, goals, [limit], [0])
    poses = Poses.of([Pose.rest(skeleton)] * 2)
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets())
    state = start_state(problem.layout, given, poses)
    found = DesiredAngles(problem, [limit], [0])(given, state)
    assert found[0].tolist() == pytest.approx([abs(wanted)] * 2, abs=1e-5)


@pytest.mark.parametrize("name", LIMITS)
def test_with_tolerances_alone_every_joint_ends_at_ease(name: str) -> None:
    """Joints that see their target outside their tolerance stand at their limits."""
    skeleton, rng = relaxed(LIMITS[name], [0.3] * 5), random.Random(2)
    start = Pose.rest(skeleton).with_rotations(START)
    wanted = [tail(skeleton, legal_pose(skeleton, rng)) for _ in range(40)]
    goal = PositionGoal("joint4", (0.0, 1.0, 0.0))
    many = solve_many(skeleton, [start] * 40, [goal], SETTINGS, targets=[[t[:] for t in wanted]])
    restless = 0
    for k, target in enumerate(wanted):
        assert many.statuses[k] is not SolveStatus.CONVERGED
        turns = angles(skeleton, many.pose(k), target)
        restless += any(
            turns[i] > 0.3 + 2.0 * EASE for i in range(5) if not at_limit(skeleton, many.pose(k), i)
        )
    assert restless <= 1


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("tolerances", [(0.3, 0.3, 0.0, 0.3, 0.0), (0.2, 0.0, 0.0, 0.0, 0.0)])
def test_joints_without_a_tolerance_bring_the_target_as_near_as_ccd(
    name: str, tolerances: Sequence[float]
) -> None:
    skeleton, rng = relaxed(LIMITS[name], tolerances), random.Random(3)
    start = Pose.rest(skeleton).with_rotations(START)
    wanted = [tail(skeleton, legal_pose(skeleton, rng)) for _ in range(30)]
    goal = PositionGoal("joint4", (0.0, 1.0, 0.0))
    many = solve_many(skeleton, [start] * 30, [goal], SETTINGS, targets=[[t[:] for t in wanted]])
    once = [solve(skeleton, start, [PositionGoal("joint4", target)], SETTINGS) for target in wanted]
    met = sum(each is SolveStatus.CONVERGED for each in many.statuses)
    assert met >= sum(each.status is SolveStatus.CONVERGED for each in once) - 1
    for k in range(30):
        if many.statuses[k] is not SolveStatus.CONVERGED:
            near = angles(skeleton, many.pose(k), wanted[k])
            free = [i for i in range(5) if tolerances[i] and not at_limit(skeleton, many.pose(k), i)]
            assert all(near[i] <= tolerances[i] + 2 * EASE for i in free), k


def test_a_joint_that_sees_its_target_within_its_tolerance_keeps_still() -> None:
    """The same as in `solve`: those without a tolerance do it; with tolerances alone nothing moves."""
    target = Vector((0.7, 4.4, 0.0))
    some = relaxed(None, (0.5, 0.0, 0.0, 0.0, 0.0))
    start = Pose.rest(some).with_rotations(START)
    assert angles(some, start, target)[0] < 0.5
    goal = PositionGoal("joint4", target)
    many, once = solve_many(some, [start], [goal], SETTINGS), solve(some, start, [goal], SETTINGS)
    assert many.statuses[0] is once.status is SolveStatus.CONVERGED
    for pose in (many.pose(0), once.pose):
        assert angle_between(pose.rotations[0], start.rotations[0]) < 1e-6
    every = relaxed(None, [max(angles(some, start, target)) + 0.01] * 5)
    assert solve(every, start, [goal], SETTINGS).pose == start
    assert np.array_equal(solve_many(every, [start], [goal], SETTINGS).rotations[0][0], start.rotations[0][:])
    off = SolverSettings(position_tolerance=1e-3, comfort=False)
    assert solve_many(every, [start], [goal], off).statuses[0] is SolveStatus.CONVERGED


def test_joints_at_ease_stay_in_their_comfort_regions() -> None:
    region = SwingTwist(Cone(0.4), (-0.2, 0.2))
    skeleton, rng = relaxed(SwingTwist(Cone(1.2), (-0.8, 0.8)), [0.35] * 5, region), random.Random(5)
    start = Pose.rest(skeleton)
    wanted = [
        Vector((rng.uniform(-1.5, 1.5), rng.uniform(3.0, 4.7), rng.uniform(-1.5, 1.5))) for _ in range(30)
    ]
    goal = PositionGoal("joint4", (0.0, 1.0, 0.0))
    many = solve_many(skeleton, [start] * 30, [goal], SETTINGS, targets=[[t[:] for t in wanted]])
    stayed = 0
    for k, target in enumerate(wanted):
        inside = all(contains(region, q, 1e-4) for q in many.pose(k).rotations)
        turns = angles(skeleton, many.pose(k), target)
        free = [i for i in range(5) if not at_limit(skeleton, many.pose(k), i)]
        assert all(turns[i] <= 0.35 + 2.0 * EASE for i in free)
        stayed += inside
        once = solve(skeleton, start, [PositionGoal("joint4", target)], SETTINGS)
        if max(angles(skeleton, once.pose, target)) <= 0.35 + EASE and all(
            contains(region, q, 1e-4) for q in once.pose.rotations
        ):
            assert inside, k
    assert stayed >= 10


def test_eased_poses_do_not_depend_on_other_poses() -> None:
    skeleton, rng = relaxed(LIMITS["cones"], (0.3, 0.0, 0.3, 0.3, 0.0)), random.Random(7)
    wanted = [tail(skeleton, legal_pose(skeleton, rng))[:] for _ in range(12)]
    start = [Pose.rest(skeleton).with_rotations(START)] * 12
    goal = PositionGoal("joint4", (0.0, 1.0, 0.0))
    many = solve_many(skeleton, start, [goal], SETTINGS, targets=[wanted])
    for k in (0, 5, 11):
        one = solve_many(skeleton, start[:1], [goal], SETTINGS, targets=[wanted[k : k + 1]])
        assert np.array_equal(one.rotations[0], many.rotations[k])
