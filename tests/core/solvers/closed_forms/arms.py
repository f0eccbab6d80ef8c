"""Arms of two bones and how they are bent, for the tests of the single-pass solvers."""

from __future__ import annotations

import math

from chains import FLOAT32, Z
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import violation
from ccd_rig.settings import SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.closed_forms import TwoBoneOptions, two_bone
from ccd_rig.solvers.problem_tables import measure

CONVERGED, STALLED = SolveStatus.CONVERGED, SolveStatus.STALLED
X, Y = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0))


def arm(move=(0.0, 0.0, 0.0), turn=None, limits=(None, None), lengths=(1.0, 1.0)):
    """ozz's two bones: start at the origin, middle at (0, 1, 0) bent 90 degrees about Z, end at (1, 1, 0).

    `move` and `turn` place a locked root joint below, and so everything, elsewhere in model space.
    """
    joints = [
        Joint("root", -1, move, turn or Quaternion(), 0.0, stiffness=1.0),
        Joint("start", 0, (0.0, 0.0, 0.0), Quaternion(), lengths[0], limits[0]),
        Joint("middle", 1, (0.0, lengths[0], 0.0), Quaternion(), lengths[1], limits[1]),
    ]
    skeleton = Skeleton(joints)
    return skeleton, Pose.rest(skeleton).with_rotations({2: Quaternion(Z, -math.pi / 2)})


def checked(skeleton, pose, goal, result, tolerance=1e-4):
    """Holds what is reported against forward kinematics, and every limit."""
    places = forward_kinematics(skeleton, result.pose)
    assert measure(goal, skeleton, places) == result.errors[0]
    assert (result.errors[0].distance <= tolerance) == (result.status is CONVERGED)
    chain = skeleton.chain(goal.joint, goal.chain_length)
    for i, joint in enumerate(skeleton.joints):
        assert all(math.isfinite(part) for part in result.pose.rotations[i])
        if i in chain and joint.limit is not None and not joint.locked:
            assert violation(joint.limit, result.pose.rotations[i]) <= FLOAT32
        if i not in chain or joint.locked:
            assert result.pose.rotations[i] == pose.rotations[i]
    assert result.pose.translations == pose.translations
    assert result.iterations == 1
    return result


def bend(skeleton, pose, target, **fields):
    goal = PositionGoal("middle", target)
    tolerance = fields.pop("position_tolerance", 1e-4)
    options = TwoBoneOptions(**fields)
    result = two_bone(skeleton, pose, goal, options, position_tolerance=tolerance)
    return checked(skeleton, pose, goal, result, tolerance)
