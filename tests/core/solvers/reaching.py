"""Chains that reach for a point, for the tests of the loop."""

from __future__ import annotations

from chains import tip
from goal_solves import meet

from ccd_rig.goals import PositionGoal
from ccd_rig.settings import SolveStatus

CONVERGED, STALLED = SolveStatus.CONVERGED, SolveStatus.STALLED
OPTIMAL, ITERATION_LIMIT = SolveStatus.OPTIMAL, SolveStatus.ITERATION_LIMIT


def reach_for(skeleton, target, start=None, goal=None, **fields):
    """Solves for the last bone's tail."""
    goals = [PositionGoal(tip(skeleton), target)] if goal is None else goal
    return meet(skeleton, goals, start, **fields)
