"""Solves for goals of any kind, held against forward kinematics."""

from __future__ import annotations

from chains import FLOAT32, SOLVE
from mathutils import Vector

from ccd_rig.limits.shapes import violation
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve

CONVERGED, OPTIMAL = SolveStatus.CONVERGED, SolveStatus.OPTIMAL
UP = Vector((0.0, 0.0, 1.0))


def meet(skeleton, goals, start=None, **fields):
    """Solves, and holds errors and status against forward kinematics."""
    fields.setdefault("position_tolerance", SOLVE)
    fields.setdefault("angle_tolerance", SOLVE)
    chosen = SolverSettings(**fields)
    result = solve(skeleton, start or Pose.rest(skeleton), goals, chosen)
    transforms = forward_kinematics(skeleton, result.pose)
    assert result.errors == tuple(measure(goal, skeleton, transforms) for goal in goals)
    met = all(
        e.distance <= chosen.position_tolerance and e.angle <= chosen.angle_tolerance for e in result.errors
    )
    assert met == (result.status is CONVERGED)
    for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
    return result


def frame_of(skeleton, pose, name):
    return forward_kinematics(skeleton, pose)[skeleton.index(name)].rotation
