"""Figures whose legs have reach windows come as near to what they miss as the windows allow."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from chains import legal_pose, straight, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Hinge
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton, Slide
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.pose_search import PoseSearch
from ccd_rig.solvers.problem_tables import stored_targets
from ccd_rig.solvers.solve import solve

FOOT = Vector((0.1, 0.0, 0.0))
LINK = math.hypot(0.05, 0.5)
"""Length of thigh and shin."""
BEYOND = 0.2
"""Distance from the target to the farthest place of the head."""


def figure() -> Skeleton:
    """Hips that slide, a spine with a head, and a leg."""
    slides = tuple(Slide(axis, -9.0, 9.0) for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    return Skeleton(
        (
            Joint("hips", -1, (0.0, 0.0, 1.0), Quaternion(), 0.3, slides=slides),
            Joint("spine", 0, (0.0, 0.0, 0.3), Quaternion(), 0.3),
            Joint("head", 1, (0.0, 0.0, 0.3), Quaternion(), 0.2),
            Joint("thigh", 0, (0.1, 0.0, 0.0), Quaternion(), 0.5),
            Joint("shin", 3, (0.0, 0.05, -0.5), Quaternion(), 0.5),
        )
    )


def goals(extension: float, seed: int) -> tuple[PositionGoal, PositionGoal]:
    """A foot that stays, and a head that is drawn farther than all its links in line."""
    rng = random.Random(seed)
    way = Vector((rng.gauss(0.0, 0.5), rng.gauss(0.0, 0.5), 1.0)).normalized()
    farthest = extension * 2.0 * LINK + math.hypot(0.1, 0.3) + 0.3 + 0.2
    foot = PositionGoal("shin", FOOT, Vector((0.0, -0.05, -0.5)), extension_joints=2, priority=0)
    head = PositionGoal("head", FOOT + way * (farthest + BEYOND), Vector((0.0, 0.0, 0.2)), priority=1)
    return replace(foot, max_extension=extension), head


@pytest.mark.parametrize("extension", [0.7, 0.85, 0.98])
@pytest.mark.parametrize("seed", range(2))
def test_the_head_comes_as_near_as_all_links_in_line_and_the_foot_stays(extension: float, seed: int) -> None:
    skeleton, wanted = figure(), goals(extension, seed)
    rest = Pose.rest(skeleton)
    solved = solve(skeleton, rest, wanted, SolverSettings(), reference=rest)
    foot, head = (each.distance for each in solved.errors)
    frames = forward_kinematics(skeleton, solved.pose)
    thigh = frames[skeleton.index("thigh")].translation
    assert solved.status is SolveStatus.OPTIMAL
    assert foot < 1e-6
    assert head == pytest.approx(BEYOND, abs=1e-6)
    assert (thigh - FOOT).length <= extension * 2.0 * LINK + 1e-5


@pytest.mark.parametrize("extension", [0.7, 0.98])
def test_few_steps_of_newton_find_it(extension: float) -> None:
    skeleton, wanted = figure(), goals(extension, 3)
    search = PoseSearch(skeleton, wanted, SolverSettings())
    start = Pose.rest(skeleton).arrays
    solved = search.solve(*start, stored_targets(wanted), start, settles=True)
    assert solved.distances[0] == pytest.approx([0.0, BEYOND], abs=1e-6)
    assert solved.steps[0] < 60


@pytest.mark.parametrize("seed", [2, 32, 43, 61, 63, 66])
def test_a_window_that_leaves_the_nearest_pose_room_keeps_nothing_from_it(seed: int) -> None:
    """Hinges fall short of a target; of such chains half stay on the other side of a window in between."""
    rng = random.Random(seed)
    count = rng.randrange(3, 6)
    skeleton = Skeleton(
        replace(
            joint,
            limit=Hinge(
                [rng.gauss(0.0, 1.0) for _ in range(3)], -rng.uniform(0.1, 1.2), rng.uniform(0.1, 1.2)
            ),
        )
        for joint in straight(count).joints
    )
    start = legal_pose(skeleton, rng)
    goal = PositionGoal(f"joint{count - 1}", [rng.uniform(-3.0, 3.0) for _ in range(3)])
    settings = SolverSettings(max_iterations=200, restarts=0)
    without = solve(skeleton, start, [goal], settings, reference=start)
    window = 1.001 * tail(skeleton, without.pose).length / count
    assert without.status is SolveStatus.OPTIMAL and tail(skeleton, start).length < window * count
    within = solve(skeleton, start, [replace(goal, max_extension=window)], settings, reference=start)
    assert within.errors[0].distance == pytest.approx(without.errors[0].distance, abs=2e-5)
