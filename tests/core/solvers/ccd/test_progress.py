"""Which pose of a solve counts as the best, and how many passes it still takes."""

from __future__ import annotations

import math

import pytest
from mathutils import Quaternion

from ccd_rig.goals import DirectionGoal, GoalError
from ccd_rig.settings import SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.ccd import loop, stages
from ccd_rig.solvers.ccd.progress import Progress
from ccd_rig.solvers.ccd.working_pose import WorkingPose

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def working_pose(first: float, second: float) -> WorkingPose:
    """Two joints that are to point along Z and are so far off it, radians; the second has weight 4."""
    skeleton = Skeleton([Joint("a"), Joint("b")])
    goals = [DirectionGoal("a", Z, Z), DirectionGoal("b", Z, Z, weight=4.0)]
    rotations = tuple(Quaternion(X, angle) for angle in (first, second))
    return WorkingPose(skeleton, Pose(rotations, Pose.rest(skeleton).translations), goals)


def test_a_pose_that_meets_its_goals_counts_before_one_with_a_smaller_sum():
    settings = SolverSettings(angle_tolerance=1e-3)
    near, met = working_pose(1.2e-3, 0.1e-3), working_pose(0.9e-3, 0.9e-3)
    found = Progress(near)
    assert not found.meets(near, found.note(near, (0, 1)), settings)
    assert found.rotations == list(near.rotations)
    before = found.error
    assert found.meets(met, found.note(met, (0, 1)), settings)
    assert found.rotations == list(met.rotations)
    assert found.error > before


def test_passes_that_are_left_at_a_rate():
    """A distance that each pass halves, from 8 tolerances: after three more it is met."""
    tolerance = 1e-3
    now, before = (8.0 * tolerance) ** 2, (16.0 * tolerance) ** 2
    assert loop._passes_left(now, before, tolerance) == pytest.approx(3.0)
    assert loop._passes_left(tolerance**2, before, tolerance) == 0.0
    assert (
        loop._passes_left(before, before, tolerance) == loop._passes_left(before, now, tolerance) == math.inf
    )


def test_goals_served_first_are_kept_while_they_weigh_more_than_they_ask_for():
    working = working_pose(0.1, 0.2)
    found = Progress(working)
    found.caps = {1: GoalError(angle=0.2)}
    for weight, kept in ((1.0, False), (stages.FIRST, True), (1.0, False)):
        working.weigh(found.caps, weight)
        assert loop._kept(working, found) is kept
