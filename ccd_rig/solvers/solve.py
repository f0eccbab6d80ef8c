"""Solve one pose, at once or iteration by iteration.

`pose_search` runs the solve, `kernel/pose.py` holds its steps. Comfort regions stand for the limits first;
the pose leaves them only if its goals are missed inside. Missed goals are retried from other starts
(`restarts`), and then their errors are minimised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..goals import Goal, GoalError
from ..kernel import LEVER
from ..settings import PRESETS, SolveResult, SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose, check_pose
from ..skeleton.pose_library import PoseEntry, check_entry
from .pose_search import ENDLESS, STATUSES, Starts, check_call, shared_search
from .problem_tables import GoalSettings, reach_of_goals, stored_targets
from .restarts import StartSpace, starts


def solve(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
    reference: Pose | None = None,
) -> SolveResult:
    """Find the pose that meets the goals inside all limits; of all such poses the nearest to `reference`.

    Only joints of the goals' chains move. Joints that start outside their limit are clamped first. The result
    is never worse than the clamped start. Compare first by how far reach windows are exceeded. Then compare
    the goals' square errors, summed per priority by weights in parts of the largest, with goals inside their
    tolerance as 0: the first sum that changes by more than the tolerance falls. Only comfort regions together
    with comfort tolerances may raise it. The same input gives the same result to the bit. A target out of
    reach is a status, never an exception.

    Args:
        skeleton: the joints.
        pose: the start.
        goals: at least one.
        settings: None for `SolverSettings()`.
        poses: a pose library; its nearest entries are the first of `settings.restarts`.
        reference: joints stay as near to this pose as the goals allow; CCD alone starts from it. None: they
            turn no further than the steps need.

    Raises:
        InvalidInput: names the wrong argument.
    """
    return _Solve(skeleton, pose, goals, settings, poses, reference).run(ENDLESS)


def iterate(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
    reference: Pose | None = None,
) -> Iterator[SolveResult]:
    """Like `solve`, with an item per iteration: to show it, to cancel it, or to spread it over frames.

    The last item equals the result of `solve`; every other one holds the best pose so far. Each iteration is
    solved anew from the start, so it costs as much as all iterations before it.
    """
    request = _Solve(skeleton, pose, goals, settings, poses, reference)
    last, best, least = request.run(ENDLESS), None, [math.inf]
    for budget in range(1, last.iterations):
        result = request.run(budget)
        errors = request.errors_by_priority(result)
        order = request.order(errors, least)
        if order <= 0:
            best = result
            least = errors if order < 0 else list(map(min, errors, least))
        yield replace(best or result, status=SolveStatus.ITERATION_LIMIT, iterations=budget)
    yield last


class _Solve:
    """Checked arguments of a solve, as arrays."""

    def __init__(
        self,
        skeleton: Skeleton,
        pose: Pose,
        goals: Sequence[Goal],
        settings: SolverSettings | None,
        poses: Sequence[PoseEntry],
        reference: Pose | None,
    ) -> None:
        check_call(skeleton, settings, goals=goals, poses=poses)
        for entry in poses:
            check_entry(entry, skeleton)
        check_pose(skeleton, pose)
        if reference is not None:
            check_pose(skeleton, reference)
        self.pose, self.poses, self.settings = pose, poses, settings or PRESETS["DEFAULT"]
        self.goals = tuple(goals)
        self.search = shared_search(skeleton, self.goals, self.settings)
        self.targets, self.goal_settings = stored_targets(self.goals), GoalSettings.of([self.goals])
        self.reference = None if reference is None else reference.arrays

    def run(self, budget: int) -> SolveResult:
        """Solve in at most `budget` iterations."""
        search = self.search
        solved = search.solve(
            *self.pose.arrays,
            self.targets,
            self.reference,
            self._starts if self.settings.restarts else None,
            budget,
            goal_settings=self.goal_settings,
            rounds=True,
        )
        pose = Pose.of_rounded(solved.rotations[0], solved.translations[0])
        errors = tuple(map(GoalError, solved.distances[0].tolist(), solved.angles[0].tolist()))
        status = STATUSES[solved.statuses[0]]
        if all(self.settings.in_tolerances(error) <= 1.0 for error in errors):
            status = SolveStatus.CONVERGED
        elif status is SolveStatus.CONVERGED:
            status = SolveStatus.STALLED
        return SolveResult(pose, status, int(solved.steps[0]), errors)

    def errors_by_priority(self, result: SolveResult) -> list[float]:
        """Per priority, the root of the sum of the weighted square errors of goals that are missed."""
        settings, goals = self.settings, self.goals
        lever = LEVER * reach_of_goals(self.search.skeleton, goals)
        heaviest: dict[int, float] = {}
        for goal in goals:
            heaviest[goal.priority] = max(goal.weight, heaviest.get(goal.priority, 0.0))
        sums = dict.fromkeys(sorted(heaviest), 0.0)
        for goal, error in zip(goals, result.errors, strict=True):
            if settings.in_tolerances(error) > 1.0:
                square = error.distance**2 + (lever * error.angle) ** 2
                sums[goal.priority] += goal.weight / heaviest[goal.priority] * square
        return [math.sqrt(total) for total in sums.values()]

    def order(self, errors: Sequence[float], others: Sequence[float]) -> int:
        """-1 where the first of `errors_by_priority` to differ by more than the tolerance fell, 1: rose."""
        for error, other in zip(errors, others, strict=False):
            if (error == 0.0) != (other == 0.0) or abs(error - other) > self.settings.position_tolerance:
                return -1 if error < other else 1
        return 0

    def _starts(self) -> Starts:
        search = self.search
        space = StartSpace(search.skeleton, self.goals, search.limits, search.movable, self.poses)
        others = starts(space, self.pose, self.settings.seed, self.settings.restarts)
        return Starts.of(others, np.zeros((len(others), len(search.skeleton)), np.int32))
