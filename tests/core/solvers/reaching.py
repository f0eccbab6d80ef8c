"""Chains that reach for a point, for the tests of the loop."""

from __future__ import annotations

from chains import SOLVE, tip

from ccd_rig.goals import PositionGoal
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve

CONVERGED, OPTIMAL, ITERATION_LIMIT = SolveStatus.CONVERGED, SolveStatus.OPTIMAL, SolveStatus.ITERATION_LIMIT


def reach_for(skeleton, target, start=None, goal=None, **fields):
    """Solves for the last bone's tail and holds what is reported against forward kinematics."""
    start = start or Pose.rest(skeleton)
    goals = [PositionGoal(tip(skeleton), target)] if goal is None else goal
    fields.setdefault("position_tolerance", SOLVE)
    chosen = SolverSettings(**fields)
    result = solve(skeleton, start, goals, chosen)
    transforms = forward_kinematics(skeleton, result.pose)
    for each, error in zip(goals, result.errors, strict=True):
        assert measure(each, skeleton, transforms).distance == error.distance
    met = all(error.distance <= chosen.position_tolerance for error in result.errors)
    assert met == (result.status is CONVERGED)
    return result
