"""Two bones at the tips of larger chains."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from chains import FLOAT32, SOLVE, Z, legal_pose, straight, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import PoleGoal, PositionGoal
from ccd_rig.limits.shapes import Comfort, Cone, EulerBox, Hinge, SwingTwist, violation
from ccd_rig.maths.rotations import angle_of
from ccd_rig.settings import Solver, SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve

CONVERGED = SolveStatus.CONVERGED
SETTINGS = SolverSettings(position_tolerance=SOLVE)


def body() -> Skeleton:
    """A spine of three inside boxes with an arm of two: a cone for the shoulder, a hinge for the elbow."""
    spine = EulerBox("XYZ", (-0.4, -0.3, -0.4), (0.4, 0.3, 0.4))
    joints = [Joint(f"spine{i}", i - 1, (0, 1 if i else 0, 0), limit=spine) for i in range(3)]
    shoulder = SwingTwist(Cone(1.6), (-1.0, 1.0))
    joints.append(Joint("upper", 2, (0, 1, 0), Quaternion(Z, -1.2), limit=shoulder))
    joints.append(Joint("lower", 3, (0, 1, 0), limit=Hinge(Z, 0.02, 2.6)))
    return Skeleton(joints)


def straight_rest(count: int) -> Pose:
    return Pose.rest(straight(count))


@pytest.mark.parametrize(
    ("elbow", "bends", "nearest"),
    [({}, (0.5, 1.0), 0.1), ({"limit": Hinge(Z, 0.02, 2.6)}, (0.0, 0.5), 0.6)],
)
def test_one_pass_is_enough_where_the_tip_reaches_alone(elbow, bends, nearest):
    """A free elbow, and one that bends about its hinge."""
    skeleton = straight(5).replace({"joint4": elbow})
    bent = Pose.rest(skeleton).with_rotations({3 + k: Quaternion(Z, bend) for k, bend in enumerate(bends)})
    rng = random.Random(1)
    for _ in range(100):
        direction = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        target = Vector((0.0, 3.0, 0.0)) + direction * rng.uniform(nearest, 1.95)
        result = solve(skeleton, bent, [PositionGoal("joint4", target, two_bone_tip=True)], SETTINGS)
        assert result.status is CONVERGED and result.iterations == 1
        assert result.pose.rotations[:3] == bent.rotations[:3]


def test_the_rest_of_the_chain_helps_where_the_tip_does_not_reach():
    skeleton = body()
    rng = random.Random(2)
    reached = {True: 0, False: 0}
    for _ in range(150):
        target = tail(skeleton, legal_pose(skeleton, rng))
        for tip in reached:
            result = solve(
                skeleton, Pose.rest(skeleton), [PositionGoal("lower", target, two_bone_tip=tip)], SETTINGS
            )
            for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
                assert violation(joint.limit, rotation) <= FLOAT32
            reached[tip] += result.status is CONVERGED
    assert reached[True] >= 145


def test_a_tip_with_a_pole_and_from_a_straight_limb():
    skeleton = straight(4)
    goals = [
        PositionGoal("joint3", (0.6, 2.9, 0.4), two_bone_tip=True),
        PoleGoal("joint0", "joint3", (0.0, 0.0, 9.0)),
    ]
    assert solve(skeleton, Pose.rest(skeleton), goals, SETTINGS).status is CONVERGED
    folded = solve(
        skeleton, Pose.rest(skeleton), [PositionGoal("joint3", (0.0, 2.4, 0.0), two_bone_tip=True)], SETTINGS
    )
    assert folded.status is CONVERGED and folded.iterations == 1


@pytest.mark.parametrize("name", ["joint2", "joint3"])
def test_joints_of_a_tip_turn_no_further_in_a_step_than_they_may(name):
    """A pass has three steps of each at most: for the tip before it, its own, for the tip after it."""
    goal = PositionGoal("joint3", (1.5, 2.5, 0.0), two_bone_tip=True)
    start, one_pass = straight_rest(4), replace(SETTINGS, solver=Solver.CCD, max_iterations=1, restarts=0)
    turns = {}
    for changes in ({}, {"max_step": 0.05}, {"stiffness": 0.95}):
        skeleton = straight(4).replace({name: changes})
        result = solve(skeleton, start, [goal], one_pass)
        turns[str(changes)] = angle_of(result.pose.rotations[skeleton.index(name)])
    free, slow, stiff = turns.values()
    assert free > 0.5
    assert slow <= 3.0 * 0.05 + FLOAT32
    assert stiff <= 0.3 * free


@pytest.mark.parametrize("sweep", [Sweep.TIP_TO_ROOT, Sweep.BOUNCE_ROOT, Sweep.SMART_BOUNCE])
def test_joints_of_a_tip_take_no_steps_of_their_own(sweep):
    """A pass bends the tip by the law of cosines and aims it, turns the rest, then does the first again."""
    rng = random.Random(5)
    fields = {"max_iterations": 1, "restarts": 0, "step_fraction": 1.0, "position_tolerance": 1e-6}
    one_pass = SolverSettings(solver=Solver.CCD, sweep=sweep, **fields)
    still, compared = {"stiffness": 1.0}, 0
    for _ in range(30):
        skeleton = straight(3)
        start = legal_pose(skeleton, rng)
        target = tail(skeleton, start) + Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
        if (target - Vector((0.0, 1.0, 0.0))).length < 2.2 or not 0.2 < target.length < 2.8:
            continue
        both = PositionGoal("joint2", target, two_bone_tip=True)
        alone, fixed = PositionGoal("joint2", target), skeleton.replace({"joint0": still})
        pose = solve(fixed, start, [both], one_pass).pose
        pose = solve(skeleton.replace({"joint1": still, "joint2": still}), pose, [alone], one_pass).pose
        pose = solve(fixed, pose, [both], one_pass).pose
        result = solve(skeleton, start, [both], one_pass).pose
        for present, expected in zip(result.rotations, pose.rotations, strict=True):
            assert abs(present.dot(expected)) == pytest.approx(1.0, abs=1e-6)
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize("name", ["joint2", "joint3"])
def test_joints_of_a_tip_keep_their_comfort_tolerances(name):
    """Seen from it the effector is within its tolerance of the target: it keeps still, the others do it."""
    skeleton = straight(4).replace({name: {"comfort": Comfort(tolerance=3.14)}})
    goal = PositionGoal("joint3", (1.5, 2.5, 0.0), two_bone_tip=True)
    result = solve(skeleton, straight_rest(4), [goal], SETTINGS)
    assert result.pose.rotations[skeleton.index(name)] == Quaternion()


def test_knees_open_and_close_about_their_hinge():
    """The middle joint's hinge stands askew to the limb; the distance is met where its range allows."""
    axis = Vector((0.3, 0.2, 1.0)).normalized()
    skeleton = straight(2).replace({"joint1": {"limit": Hinge(axis, 0.05, math.pi)}})
    rng = random.Random(3)
    for _ in range(60):
        target = tail(skeleton, legal_pose(skeleton, rng))
        result = solve(
            skeleton, Pose.rest(skeleton), [PositionGoal("joint1", target, two_bone_tip=True)], SETTINGS
        )
        assert result.status is CONVERGED and result.iterations == 1
