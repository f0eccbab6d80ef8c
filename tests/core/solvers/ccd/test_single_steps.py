"""Steps of one joint in a working pose."""

from __future__ import annotations

import math
import random

import pytest
from chains import FLOAT32, legal_pose, random_couplings, random_skeleton, straight, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import PoleGoal, PositionGoal
from ccd_rig.limits.shapes import Hinge, Slide
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.ccd.working_pose import WorkingPose


def test_a_rotation_that_makes_things_worse_is_halved():
    """Turned to 1.3 radians for a target at 0.6: half of that is nearer than none."""
    hinge = Hinge((1.0, 0.0, 0.0), -3.0, 3.0)
    skeleton = Skeleton([Joint("bone", length=1.0, limit=hinge)])
    target = Vector((0.0, math.cos(0.6), math.sin(0.6)))
    working = WorkingPose(skeleton, Pose.rest(skeleton), [PositionGoal("bone", target)])
    working.set_limits([hinge], [0.0])
    before, pairs = working.rotations[0].copy(), []
    working.effectors[0].vector_pairs(working, 0, pairs)
    moved = working._turn_to(0, Quaternion((1.0, 0.0, 0.0), 1.3))
    assert working._not_worse(0, before, pairs, moved) > 0.0
    angle = 2.0 * math.atan2(working.rotations[0].x, working.rotations[0].w)
    assert angle == pytest.approx(0.65, abs=1e-5)


def test_a_pole_sees_what_joints_below_its_root_have_turned():
    rng = random.Random(8)
    for _ in range(20):
        skeleton = random_skeleton(rng, 4)
        names = [joint.name for joint in skeleton.joints]
        goal = PositionGoal(names[3], tail(skeleton, legal_pose(skeleton, rng)))
        pole = PoleGoal(names[0], names[3], Vector((rng.uniform(-3, 3), rng.uniform(-3, 3), 2.0)))
        working = WorkingPose(skeleton, legal_pose(skeleton, rng), [goal, pole])
        for i in (3, 2):
            working.step(i, 0.8)
        seen, anew = [], []
        working.effectors[1].vector_pairs(working, 0, seen)
        fresh = WorkingPose(skeleton, working.pose(working.rotations, working.slides), [goal, pole])
        fresh.effectors[1].vector_pairs(fresh, 0, anew)
        assert len(seen) == len(anew)
        for (bend, aim, weight), (other, there, much) in zip(seen, anew, strict=True):
            assert (bend - other).length < 1e-5 and (aim - there).length < 1e-5
            assert weight == pytest.approx(much, rel=1e-4)


def test_a_slide_that_starts_beyond_its_range_is_brought_inside():
    slide = Slide((0.0, 1.0, 0.0), -0.5, 0.5)
    skeleton = straight(3).replace({"joint1": {"slides": (slide,)}, "joint2": {"slides": (slide,)}})
    start = Pose(Pose.rest(skeleton).rotations, (Vector(), Vector((0.0, 2.0, 0.0)), Vector((0.0, 0.3, 0.0))))
    working = WorkingPose(skeleton, start, [PositionGoal("joint2", (0.0, 9.0, 0.0))])
    working.set_limits([None] * 3, [0.0] * 3)
    assert [list(slides) for slides in working.slides] == [[], [0.5], [pytest.approx(0.3)]]
    assert working.effectors[0].position.y == pytest.approx(3.0 + 0.5 + 0.3)


def test_a_joint_that_no_goal_asks_for_anything_wants_no_turn():
    """A pole of a straight chain without a side; and one that is bent, by the angle to the pole."""
    skeleton = straight(2)
    pole = PoleGoal("joint0", "joint1", (3.0, 1.0, 0.0))
    assert WorkingPose(skeleton, Pose.rest(skeleton), [pole]).desired_angle(0) == 0.0
    bent = Pose.rest(skeleton).with_rotations(
        {0: Quaternion((1.0, 0.0, 0.0), 0.6), 1: Quaternion((1.0, 0.0, 0.0), -1.2)}
    )
    working = WorkingPose(skeleton, bent, [pole])
    working.set_limits([None] * 2, [0.0] * 2)
    assert working.desired_angle(0) == pytest.approx(0.5 * math.pi, abs=1e-4)


def test_a_pose_that_is_taken_over_moves_coupled_offsets_along():
    """The effector is where forward kinematics has it, of each pose after the other."""
    rng = random.Random(4)
    for _ in range(10):
        skeleton = random_couplings(random_skeleton(rng, 5), rng)
        name = skeleton.joints[4].name
        working = WorkingPose(skeleton, legal_pose(skeleton, rng), [PositionGoal(name, (0.0, 0.0, 0.0))])
        for _ in range(3):
            pose = legal_pose(skeleton, rng)
            working.set_pose(pose)
            assert (working.effectors[0].position - tail(skeleton, pose)).length < FLOAT32
