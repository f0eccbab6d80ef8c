"""Targets far from where the reference has them: of poses that meet them, the nearer, and evenly."""

from __future__ import annotations

import math

import numpy as np
from mathutils import Quaternion, Vector

from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.maths.batch import angles_between
from ccd_rig.settings import SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.pose_search import PoseSearch

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
