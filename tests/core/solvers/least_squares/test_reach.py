"""What is called out of reach is met by no pose, and what poses reach is never called so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from chains import tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import OrientationGoal, PositionGoal, measure
from ccd_rig.limits.shapes import Slide
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.reach import beyond_reach, unreachable
from ccd_rig.solvers.least_squares.state import Bones, Poses, start_state

POSITION, ANGLE = 1e-4, 1e-3


def arm(rng: random.Random, count: int = 4) -> Skeleton:
    """A chain of bones of any length on a base that does not move, some of them not on the tail before."""
    joints = [Joint("base", offset=(0.3, -1.0, 2.0), length=0.5)]
    for i in range(count):
        offset = Vector((rng.gauss(0.0, 0.2), rng.uniform(0.2, 1.5), rng.gauss(0.0, 0.2)))
        joints.append(Joint(f"bone{i}", i, offset, rotation(rng), length=rng.uniform(0.2, 1.0)))
    return Skeleton(joints)


def rotation(rng: random.Random) -> Quaternion:
    return Quaternion([rng.gauss(0.0, 1.0) for _ in range(4)]).normalized()


def pose_of(skeleton: Skeleton, rng: random.Random) -> Pose:
    return Pose.rest(skeleton).with_rotations({i: rotation(rng) for i in range(1, len(skeleton))})


def is_beyond(skeleton: Skeleton, goals: list, pose: Pose) -> bool:
    return judged(beyond_reach, skeleton, goals, pose)


def judged(judge: Callable[..., np.ndarray], skeleton: Skeleton, goals: list, pose: Pose) -> bool:
    problem = LeastSquaresProblem(skeleton, goals, [None] * len(skeleton), range(1, len(skeleton)))
    poses = Poses.of([pose])
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets())
    state = start_state(problem.layout, given, poses)
    return bool(judge(problem, given, state, np.array([POSITION]), ANGLE)[0])


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("rotated", [False, True])
def test_what_a_pose_reaches_is_not_beyond(seed, rotated):
    rng = random.Random(seed)
    skeleton = arm(rng)
    tip, reached = len(skeleton) - 1, pose_of(skeleton, rng)
    there = forward_kinematics(skeleton, reached)[tip]
    end = there.translation + there.rotation @ Vector((0.0, skeleton.joints[tip].length, 0.0))
    goals = [PositionGoal(skeleton.joints[tip].name, end)]
    if rotated:
        goals.append(OrientationGoal(skeleton.joints[tip].name, there.rotation))
    assert not is_beyond(skeleton, goals, pose_of(skeleton, rng))


@pytest.mark.parametrize("seed", range(20))
def test_farther_than_the_bones_together_is_beyond(seed):
    rng = random.Random(seed)
    skeleton = arm(rng)
    joints = skeleton.joints
    root = forward_kinematics(skeleton, Pose.rest(skeleton))[1].translation
    longest = sum(joint.offset.length for joint in joints[2:]) + joints[-1].length
    way = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    name = joints[-1].name
    assert is_beyond(skeleton, [PositionGoal(name, root + 1.01 * longest * way)], pose_of(skeleton, rng))
    assert not is_beyond(skeleton, [PositionGoal(name, root + 0.99 * longest * way)], pose_of(skeleton, rng))


def branched(rng: random.Random) -> Skeleton:
    """Two arms of three bones on a neck of two."""
    joints = [Joint("base", offset=(0.3, -1.0, 2.0), length=0.5)]
    for name in ("neck", "left", "right"):
        for k in range(2 if name == "neck" else 3):
            parent = len(joints) - 1 if k or name == "neck" else 2
            offset = Vector((rng.gauss(0.0, 0.2), rng.uniform(0.2, 1.5), rng.gauss(0.0, 0.2)))
            joints.append(Joint(f"{name}{k}", parent, offset, rotation(rng), length=rng.uniform(0.2, 1.0)))
    return Skeleton(joints)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("names", [("left2", "right2"), ("left0", "left2"), ("neck1", "right2")])
def test_targets_of_one_pose_are_not_too_far_apart(seed, names):
    rng = random.Random(seed)
    skeleton = branched(rng)
    reached = pose_of(skeleton, rng)
    goals = [PositionGoal(name, tail(skeleton, reached, name)) for name in names]
    assert not judged(unreachable, skeleton, goals, pose_of(skeleton, rng))


@pytest.mark.parametrize("seed", range(20))
def test_targets_farther_apart_than_what_is_between_are(seed):
    """One tip where a pose has it, the other up to there, or past there, along a line of any direction."""
    rng = random.Random(seed)
    skeleton = branched(rng)
    joints = {joint.name: joint for joint in skeleton.joints}
    between = (joints["left0"].offset - joints["right0"].offset).length
    for side in ("left", "right"):
        between += joints[f"{side}1"].offset.length + joints[f"{side}2"].offset.length
        between += joints[f"{side}2"].length
    way = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    first = tail(skeleton, pose_of(skeleton, rng), "left2")
    for part in (0.99, 1.01):
        goals = [PositionGoal("left2", first), PositionGoal("right2", first + part * between * way)]
        far = is_beyond(skeleton, goals, Pose.rest(skeleton))
        assert judged(unreachable, skeleton, goals, Pose.rest(skeleton)) == (far or part > 1.0)


def test_a_rotation_may_put_a_near_target_out_of_reach():
    skeleton = Skeleton([Joint("base"), *(Joint(f"bone{i}", i, (0.0, 1.0, 0.0)) for i in range(3))])
    target = Vector((0.0, 3.5, 0.0))
    assert not is_beyond(skeleton, [PositionGoal("bone2", target)], Pose.rest(skeleton))
    down = Quaternion(Vector((1.0, 0.0, 0.0)), math.pi)
    goals = [PositionGoal("bone2", target), OrientationGoal("bone2", down)]
    assert is_beyond(skeleton, goals, Pose.rest(skeleton))


@pytest.mark.parametrize("size", [0.1, 1.0, 20.0])
def test_a_reach_window_takes_away_what_its_part_is_not_stretched_to(size):
    """Of four bones the last two may be stretched to 0.8 of their length."""
    joints = [Joint("base"), *(Joint(f"bone{i}", i, (0.0, size, 0.0), length=size) for i in range(4))]
    skeleton, root = Skeleton(joints), Vector((0.0, size, 0.0))
    for far, beyond in ((3.55, False), (3.65, True), (3.95, True)):
        target = root + Vector((0.6, 0.8, 0.0)) * far * size
        goals = [PositionGoal("bone3", target, max_extension=0.8, extension_joints=2)]
        assert is_beyond(skeleton, goals, Pose.rest(skeleton)) == beyond
        assert is_beyond(skeleton, [PositionGoal("bone3", target)], Pose.rest(skeleton)) is False


def test_chains_that_slide_are_not_judged():
    slide = Slide((0.0, 1.0, 0.0), 0.0, 100.0)
    skeleton = Skeleton([Joint("base"), Joint("bone0", 0, (0.0, 1.0, 0.0), slides=(slide,))])
    assert not is_beyond(skeleton, [PositionGoal("bone0", (0.0, 50.0, 0.0))], Pose.rest(skeleton))


@pytest.mark.parametrize("seed", range(10))
def test_misses_are_those_of_the_goals_wherever_joints_are(seed):
    rng = random.Random(seed)
    skeleton = arm(rng)
    name = skeleton.joints[-1].name
    goals = [
        PositionGoal(name, [rng.gauss(0.0, 1.0) for _ in range(3)]),
        OrientationGoal(name, rotation(rng)),
    ]
    poses = [pose_of(skeleton, rng) for _ in range(5)]
    where = [forward_kinematics(skeleton, pose) for pose in poses]
    transforms = np.empty((len(skeleton), 3, 4, len(poses)))
    for b, each in enumerate(where):
        for i in range(len(skeleton)):
            transforms[i, :, :3, b] = each[i].rotation.to_matrix()
            transforms[i, :, 3, b] = each[i].translation
    problem = LeastSquaresProblem(skeleton, goals, [None] * len(skeleton), ())
    lengths = np.array([[joint.length] for joint in skeleton.joints])
    found = problem.measure(transforms, lengths, problem.own_targets())
    assert found.angular.tolist() == [[False], [True]]
    for b, each in enumerate(where):
        errors = [measure(goal, skeleton, each) for goal in goals]
        assert found.misses[0, b] == pytest.approx(errors[0].distance, abs=1e-5)
        assert found.misses[1, b] == pytest.approx(errors[1].angle, abs=2e-3)
