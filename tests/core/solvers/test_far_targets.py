"""Targets far from where the reference has them: of poses that meet them, the nearer, and evenly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.maths.batch import angles_between
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.pose_search import PoseSearch
from ccd_rig.solvers.problem_tables import Bones
from ccd_rig.solvers.solve import solve

PLACES = ((-1.292, 2.018), (-0.998, 1.235), (-1.178, 0.248), (-1.261, 0.108), (-1.17, -0.05))
"""Joints of a cat's front leg, shoulder to tip of the paw: forward and up."""
STEP = 0.05
PAST = 44
"""Steps after which the paw is above the shoulder, by more than the lengths of hand and paw."""


def leg() -> Skeleton:
    joints: list[Joint] = []
    turned = 0.0
    for i in range(4):
        (y, z), (to_y, to_z) = PLACES[i : i + 2]
        angle = math.atan2(to_z - z, to_y - y)
        rest = Quaternion((1.0, 0.0, 0.0), angle - turned)
        turned = angle
        above = joints[-1].length if joints else 0.0
        length = math.hypot(to_y - y, to_z - z)
        joints.append(Joint(f"bone{i}", i - 1, (0.0, above, 0.0), rest, length))
    return Skeleton(joints)


def test_a_paw_that_is_pulled_past_its_shoulder_moves_evenly() -> None:
    """Upper arm and forearm are about 1 long: a step turns each by a twentieth radian, the elbow by both."""
    skeleton, steps = leg(), 59
    paw = forward_kinematics(skeleton, Pose.rest(skeleton))[3]
    goals = [
        PositionGoal("bone3", paw.translation, Vector((0.0, 0.0, 0.0))),
        OrientationGoal("bone3", paw.rotation),
    ]
    up = np.outer(STEP * np.arange(steps), (0.0, 0.0, 1.0))
    rest, shifts = np.zeros((steps, 4, 4)), np.zeros((steps, 4, 3))
    rest[..., 0] = 1.0
    search = PoseSearch(skeleton, goals, SolverSettings(restarts=0, position_tolerance=1e-3))
    targets = [np.array(paw.translation) + up, np.array([paw.rotation[:]])]
    solved = search.solve(rest, shifts, targets, (rest, shifts))
    assert (solved.statuses == 0).all()
    turns = np.degrees(angles_between(solved.rotations[1:], solved.rotations[:-1], axis=-1).max(1))
    assert turns[PAST:].max() < math.degrees(2.0 * STEP) * 1.05


@pytest.mark.parametrize("size", [2.0**-14, 1.0, 2.0**14])
def test_a_chain_points_at_a_target_out_of_reach_in_one_step(size: float) -> None:
    joints = [Joint(f"bone{i}", i - 1, (0.0, size if i else 0.0, 0.0), length=size) for i in range(4)]
    skeleton = Skeleton(joints)
    bent = Pose.rest(skeleton).with_rotations({i: Quaternion((0.0, 0.0, 1.0), 0.5) for i in range(4)})
    goal = PositionGoal("bone3", size * Vector((4.0, -3.0, 2.0)))
    result = solve(skeleton, bent, [goal], SolverSettings(position_tolerance=1e-3 * size))
    assert (result.status, result.iterations) == (SolveStatus.OPTIMAL, 1)
    assert result.errors[0].distance == pytest.approx(goal.target.length - 4.0 * size, abs=1e-6 * size)


def test_poses_of_bones_that_turn_at_rest_are_solved_for_each() -> None:
    """The last bone's rest differs from pose to pose: each is as if it was solved alone."""
    skeleton = leg()
    rests = [skeleton, skeleton.replace({"bone3": {"rest_rotation": Quaternion((0.6, 0.0, 0.0, 0.8))}})]
    target = np.array([[0.1, 0.8, -0.9]])
    rotations, shifts = np.zeros((2, 4, 4)), np.zeros((2, 4, 3))
    rotations[..., 0] = 1.0
    goals, settings = [PositionGoal("bone3", target[0])], SolverSettings(restarts=0)
    bones = Bones(*(np.concatenate(each) for each in zip(*map(Bones.of, rests), strict=True)))
    both = PoseSearch(skeleton, goals, settings).solve(rotations, shifts, [target], bones=bones)
    for i, each in enumerate(rests):
        alone = PoseSearch(each, goals, settings).solve(rotations[:1], shifts[:1], [target])
        assert both.rotations[i].tolist() == alone.rotations[0].tolist()
        assert both.statuses[i] == alone.statuses[0] == 0
