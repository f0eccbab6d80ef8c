"""Solves near a reference pose: CCD alone starts from it, least squares find the nearest pose to it."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_rotation, random_skeleton, straight, tail, tip
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, Slide, SwingTwist, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve

CCD = SolverSettings(solver=Solver.CCD, restarts=0)
SHARED = SolverSettings(error_reduction=0.95, restarts=0, position_tolerance=1e-4)


def wave(count: int, time: float) -> Pose:
    """A wave that runs along a chain."""
    size = 6.0 / count
    bends = [
        (size * math.sin(time - 9.0 * i / count), 0.6 * size * math.cos(1.5 * time)) for i in range(count)
    ]
    return Pose(
        tuple(Quaternion((1.0, 0.5 * x, 0.0, 0.5 * z)).normalized() for x, z in bends),
        tuple(Vector() for _ in bends),
    )


def departure(pose: Pose, reference: Pose) -> float:
    """Root of the sum of squared angles, radians."""
    angles = map(angle_between, pose.rotations, reference.rotations)
    return math.sqrt(sum(angle * angle for angle in angles))


def test_the_nearest_pose_to_a_moving_reference():
    """Where joints are nearest: the way from the reference is square to all ways that leave the effector.

    Held by small turns of the joints that leave the effector where it is, from a Jacobian of differences.
    """
    skeleton = straight(8)
    settings = SolverSettings(restarts=0, position_tolerance=1e-5)
    pose = wave(8, 0.0)
    for frame in range(25):
        reference = wave(8, 0.15 * frame)
        goal = PositionGoal("joint7", tail(skeleton, reference) + Vector((0.0, 0.0, 0.24)))
        result = solve(skeleton, pose, [goal], settings, reference=reference)
        assert result.status is SolveStatus.CONVERGED
        pose = result.pose
        least = departure(pose, reference)
        columns = np.array([tail(skeleton, turned(pose, k, 1e-2)) for k in range(24)])
        columns -= np.array([tail(skeleton, turned(pose, k, -1e-2)) for k in range(24)])
        slope = columns.T / 2e-2
        rng = np.random.default_rng(frame)
        for _ in range(10):
            way = rng.normal(size=24)
            way -= np.linalg.pinv(slope) @ (slope @ way)
            way *= 0.3 * least / np.linalg.norm(way)
            other = pose
            for k, angle in enumerate(way):
                other = turned(other, k, angle)
            back = solve(skeleton, other, [goal], settings).pose
            assert departure(back, reference) >= least - 1e-3


def test_the_departure_is_a_sum_of_the_goals_slopes():
    """Multipliers of Lagrange: where a long chain is nearest, its departure is J^T times one number per row.

    Turns in model axes: a joint moves the end by turn x arm, and turns it by itself.
    """
    skeleton, settings = straight(20), SolverSettings(restarts=0, position_tolerance=1e-5)
    for time in (0.0, 1.0, 2.0):
        reference = wave(20, time)
        end = forward_kinematics(skeleton, reference)[19].rotation @ Quaternion((1.0, 0.0, 0.0), 0.6)
        place = 0.8 * tail(skeleton, reference) + Vector((0.0, 0.3, 0.5))
        goals = [PositionGoal("joint19", place), OrientationGoal("joint19", end)]
        result = solve(skeleton, reference, goals, settings, reference=reference)
        assert result.status is SolveStatus.CONVERGED
        placed, rows, departed = forward_kinematics(skeleton, result.pose), [], []
        for i, (one, other) in enumerate(zip(result.pose.rotations, reference.rotations, strict=True)):
            turn = (one @ other.inverted()).to_exponential_map()
            departed.append(placed[i - 1].rotation @ turn if i else turn)
            arm = tail(skeleton, result.pose) - placed[i].translation
            rows += [(*axis.cross(arm), *axis) for axis in map(Vector, np.eye(3))]
        slope, gradient = np.array(rows), np.array(departed).ravel()
        forces = np.linalg.lstsq(slope, gradient, rcond=None)[0]
        assert np.abs(slope @ forces - gradient).max() < 1e-4 < np.abs(gradient).max()


def turned(pose: Pose, column: int, angle: float) -> Pose:
    """The pose with one joint turned about one of its axes; three columns a joint."""
    i, axis = divmod(column, 3)
    turn = Quaternion([float(axis == k) for k in range(3)], angle)
    return pose.with_rotations({i: (pose.rotations[i] @ turn).normalized()})


def test_a_reference_pose_that_meets_the_goals_is_returned():
    rng = random.Random(3)
    for _ in range(20):
        skeleton = random_skeleton(rng, 6)
        free = {"stiffness": 0.0, "max_step": math.pi}
        skeleton = skeleton.replace({joint.name: free for joint in skeleton.joints})
        reference = legal_pose(skeleton, rng)
        goal = PositionGoal("joint5", tail(skeleton, reference))
        start = legal_pose(skeleton, rng)
        result = solve(skeleton, start, [goal], CCD, reference=reference)
        assert result.status is SolveStatus.CONVERGED and result.iterations == 0
        assert max(map(angle_between, result.pose.rotations, reference.rotations)) <= FLOAT32


@pytest.mark.parametrize("solver", Solver)
def test_where_a_solve_starts_does_not_matter(solver):
    """The loop of a target closes: the pose depends on the target, not on the way there."""
    skeleton, reference = straight(6), wave(6, 0.5)
    settings = replace(CCD, solver=solver)
    goal = PositionGoal("joint5", Vector((2.0, 3.0, 1.0)))
    rng = random.Random(1)
    near = solve(skeleton, reference, [goal], settings, reference=reference).pose
    for _ in range(5):
        start = Pose(
            tuple(
                (q @ Quaternion((1.0, *(rng.gauss(0.0, 0.05) for _ in range(3))))).normalized()
                for q in near.rotations
            ),
            near.translations,
        )
        pose = solve(skeleton, start, [goal], settings, reference=reference).pose
        assert max(map(angle_between, pose.rotations, near.rotations)) < math.radians(2.0)


def test_goals_of_every_kind_are_met_within_limits():
    elbow, wrist = Hinge((1.0, 0.0, 0.0), 0.0, 2.6), SwingTwist(Cone(0.8), (-1.0, 1.0))
    arm = Skeleton(
        [
            Joint("upper", -1, (0.0, 0.0, 0.0), length=1.0),
            Joint("fore", 0, (0.0, 1.0, 0.0), length=1.0, limit=elbow),
            Joint("hand", 1, (0.0, 1.0, 0.0), length=0.3, limit=wrist),
        ]
    )
    reference = Pose.rest(arm).with_rotations({1: Quaternion((1.0, 0.0, 0.0), 0.9)})
    reached = reference.with_rotations(
        {
            0: Quaternion((0.0, 0.0, 1.0), 0.2),
            1: Quaternion((1.0, 0.0, 0.0), 1.2),
            2: Quaternion((0.0, 0.0, 1.0), 0.3),
        }
    )
    at = forward_kinematics(arm, reached)[2]
    goals = [PositionGoal("hand", tail(arm, reached)), OrientationGoal("hand", at.rotation)]
    result = solve(arm, reference, goals, CCD, reference=reference)
    assert result.status is SolveStatus.CONVERGED
    for joint, rotation in zip(arm.joints, result.pose.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
    assert departure(result.pose, reference) <= 1.1 * departure(reached, reference)


def test_a_slide_goes_back_to_its_reference():
    skeleton = straight(3).replace({"joint1": {"slides": (Slide((0.0, 1.0, 0.0), -0.5, 0.5),)}})
    reference = Pose.rest(skeleton).with_rotations({1: Quaternion((1.0, 0.0, 0.0), 0.8)})
    start = Pose(reference.rotations, (Vector(), Vector((0.0, 0.4, 0.0)), Vector()))
    goal = PositionGoal("joint2", tail(skeleton, reference) + Vector((0.0, 0.05, 0.05)))
    result = solve(skeleton, start, [goal], CCD, reference=reference)
    assert result.status is SolveStatus.CONVERGED
    assert abs(result.pose.translations[1].y) < 0.1


def test_out_of_reach_the_chain_is_straight_whatever_pose_came_before():
    skeleton, reference = straight(5), wave(5, 0.3)
    goal = PositionGoal("joint4", Vector((3.0, 8.0, 0.0)))
    rng = random.Random(2)
    ends = [
        solve(skeleton, start, [goal], CCD, reference=reference)
        for start in (reference, legal_pose(skeleton, rng))
    ]
    assert ends[0].pose == ends[1].pose
    assert ends[0].errors[0].distance == pytest.approx(math.hypot(3.0, 8.0) - 5.0, abs=1e-3)


def laps(skeleton: Skeleton, count: int, reference: Pose | None) -> list[Pose]:
    """The pose at the end of each lap of a target that goes round the root."""
    pose, ends = Pose.rest(skeleton), []
    for _ in range(count):
        for step in range(1, 25):
            angle = 2.0 * math.pi * step / 24
            target = Vector((3.0 * math.cos(angle), 1.5 + 0.5 * math.sin(2.0 * angle), 3.0 * math.sin(angle)))
            goal = PositionGoal(tip(skeleton), target)
            result = solve(skeleton, pose, [goal], SHARED, reference=reference)
            assert result.status is SolveStatus.CONVERGED
            pose = result.pose
        ends.append(pose)
    return ends


def largest_turn(one: Pose, other: Pose) -> float:
    return max(map(angle_between, one.rotations, other.rotations))


def bent(count: int) -> Pose:
    """A pose that says which way a chain bends."""
    turn = Quaternion(Vector((1.0, 0.0, 0.0)), 0.4)
    return Pose((turn,) * count, Pose.rest(straight(count)).translations)


def test_with_a_reference_the_pose_depends_on_the_target_and_not_on_the_laps_before():
    skeleton = straight(6)
    with_reference = laps(skeleton, 8, bent(6))
    without = laps(skeleton, 8, None)
    assert largest_turn(with_reference[-2], with_reference[-1]) < 0.01
    assert largest_turn(without[-2], without[-1]) > 0.1


def test_joints_go_back_to_their_reference_and_rest_there():
    """Also when the target has been away and comes back; without a reference they do not."""
    skeleton, reference = straight(5), bent(5)
    at = tail(skeleton, reference)
    goal = PositionGoal("joint4", at)
    start = solve(skeleton, Pose.rest(skeleton), [goal], SHARED).pose
    again = solve(skeleton, start, [goal], SHARED, reference=reference).pose
    assert largest_turn(again, reference) < 1e-2
    assert solve(skeleton, again, [goal], SHARED, reference=reference).pose == again
    ends = []
    for place in (reference, None):
        pose = start
        for step in range(401):
            swing = math.sin(math.pi * step / 50.0) * Vector((1.0, 0.0, 0.0))
            pose = solve(skeleton, pose, [PositionGoal("joint4", at + swing)], SHARED, reference=place).pose
        ends.append(largest_turn(pose, reference))
    assert ends[0] < 0.05 and ends[1] > 0.1, ends


def test_a_reference_outside_the_limits_pulls_no_joint_out_of_them():
    limit = SwingTwist(Cone(0.6), (-0.2, 0.2))
    skeleton = straight(6, limit)
    rng = random.Random(9)
    reference = Pose(tuple(random_rotation(rng) for _ in range(6)), Pose.rest(skeleton).translations)
    pose = Pose.rest(skeleton)
    for step in range(60):
        target = Vector((2.0 * math.sin(step / 9.0), 4.5, 2.0 * math.cos(step / 7.0)))
        result = solve(skeleton, pose, [PositionGoal("joint5", target)], SHARED, reference=reference)
        pose = result.pose
        assert result.status is SolveStatus.CONVERGED
        assert all(violation(limit, rotation) <= FLOAT32 for rotation in pose.rotations)


def test_another_skeletons_reference_is_refused():
    skeleton = straight(6)
    reference = legal_pose(skeleton, random.Random(1))
    goals = [PositionGoal("joint5", (3.0, 2.0, 1.0))]
    result = solve(skeleton, Pose.rest(skeleton), goals, SHARED, reference=reference)
    assert result.pose != solve(skeleton, Pose.rest(skeleton), goals, SHARED).pose
    with pytest.raises(InvalidInput):
        solve(skeleton, Pose.rest(skeleton), goals, SHARED, reference=Pose.rest(straight(3)))
