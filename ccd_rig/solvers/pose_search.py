"""Goals of a skeleton, made ready for the kernel once, and solved for any number of poses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..goals import GOALS, BalanceGoal, Goal, PositionGoal
from ..kernel import Problem, set_search, solve_poses
from ..limits.shapes import Limit
from ..maths.batch import Array, Indices, Mask
from ..maths.validation import shown
from ..settings import Solver, SolverSettings, SolveStatus, Sweep
from ..skeleton.joints import Skeleton
from .problem_tables import (
    chain_links_that_roll,
    problem_tables,
    reach_of_goals,
    serving_joints,
    target_rows,
)

STATUSES = (SolveStatus.CONVERGED, SolveStatus.STALLED, SolveStatus.OPTIMAL, SolveStatus.ITERATION_LIMIT)
"""By the kernel's numbers."""
OUT_OF_REACH = 4
"""The kernel's number of a first solve for which other starts are of no use."""
ORDERS = (
    Sweep.TIP_TO_ROOT,
    Sweep.ROOT_TO_TIP,
    Sweep.ALTERNATING,
    Sweep.BOUNCE_TIP,
    Sweep.BOUNCE_ROOT,
    Sweep.SMART_BOUNCE,
    Sweep.LARGEST_ERROR,
)
"""By the kernel's numbers."""
ENDLESS = 2**31 - 1
"""More steps than any solve takes."""


@dataclass(frozen=True)
class Starts:
    """Other poses to start from.

    Attributes:
        rotations: (K, J, 4). translations: (K, J, 3). Relative to rest.
        is_turn: (K, J) whether the rotation is one from where the solve started.
    """

    rotations: Array
    translations: Array
    is_turn: np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Solved:
    """B solved poses of J joints.

    Attributes:
        rotations: (B, J, 4). translations: (B, J, 3). Relative to rest.
        statuses: (B,) numbers of `STATUSES`. steps: (B,) of all tries.
        distances, angles: (B, G) how far off each goal is, model units and radians.
    """

    rotations: Array
    translations: Array
    statuses: Indices
    steps: Indices
    distances: Array
    angles: Array

    @classmethod
    def begun(cls, rotations: Array, translations: Array, goals: int) -> Solved:
        """Poses that are still to be solved, copied."""
        size = len(rotations)
        return cls(
            np.array(rotations, dtype=np.float64, order="C"),
            np.array(translations, dtype=np.float64, order="C"),
            np.full(size, 1, np.int32),
            np.zeros(size, np.int32),
            np.zeros((size, goals)),
            np.zeros((size, goals)),
        )

    def take(self, which: Mask, other: Solved) -> None:
        """Take over poses of another, but not how they were solved."""
        for name in ("rotations", "translations", "distances", "angles"):
            getattr(self, name)[which] = getattr(other, name)[which]


class PoseSearch:
    """What does not change from pose to pose, and the problems of the kernel that are made of it.

    Attributes:
        movable: indices of the joints that may move, locked ones left out.
        limits: per joint, what it may do.
    """

    def __init__(self, skeleton: Skeleton, goals: Sequence[Goal], settings: SolverSettings) -> None:
        """Raises InvalidInput: names the goal that does not fit the skeleton."""
        self.skeleton, self.goals, self.settings = skeleton, tuple(goals), settings
        check_goals(skeleton, self.goals)
        served = set().union(*serving_joints(skeleton, self.goals))
        self.movable = tuple(sorted(served - skeleton.locked))
        self.limits = [joint.limit for joint in skeleton.joints]
        comforts = [joint.comfort if settings.comfort else None for joint in skeleton.joints]
        self.tolerances = [0.0 if each is None else each.tolerance for each in comforts]
        regions = [None if each is None else each.region for each in comforts]
        self.comforts = regions
        self.regions: list[Limit | None] | None = None
        if any(regions[i] is not None for i in self.movable):
            self.regions = [region or limit for region, limit in zip(regions, self.limits, strict=True)]

    def solve(
        self,
        rotations: Array,
        translations: Array,
        targets: Sequence[Array],
        reference: tuple[Array, Array] | None = None,
        starts: Callable[[], Starts] | None = None,
        budget: int = ENDLESS,
    ) -> Solved:
        """Solve B poses, each by itself.

        Comfort regions are taken for the limits first, and left only where the goals cannot be met in them.

        Args:
            rotations, translations: (B, J, 4) and (B, J, 3), where to start.
            targets: per goal (B or 1, 3) or (B or 1, 4).
            reference: the same as where to start: poses to stay near to.
            starts: gives other starts, for poses that miss their goals; None: there are none.
            budget: steps in which a pose has to be solved.
        """
        rows = target_rows(self.skeleton, self.goals, targets, translations)
        size, joints, goals = len(rotations), len(self.skeleton), len(self.goals)
        solved = Solved.begun(rotations, translations, goals)
        if reference is None:
            reference = np.zeros((0, joints, 4)), np.zeros((0, joints, 3))
        every: Indices = np.arange(size)
        if self.regions is not None:
            start = Solved.begun(rotations, translations, goals)
            half = replace(self.settings, max_iterations=(self.settings.max_iterations + 1) // 2)
            self._run(self.regions, half, solved, every, rows, reference, None, budget)
            solved.take(solved.statuses != 0, start)
            every = np.flatnonzero(solved.statuses != 0)
        self._run(self.limits, self.settings, solved, every, rows, reference, None, budget)
        lost = every[solved.statuses[every] == OUT_OF_REACH]
        missed = every[solved.statuses[every] % OUT_OF_REACH > 0]
        none = _none(joints)
        self._run(self.limits, self.settings, solved, lost, rows, reference, none, budget)
        again = (
            starts is not None and len(self.movable) > 1 and not any(self.tolerances[i] for i in self.movable)
        )
        others = starts() if starts is not None and again and len(missed) else none
        self._run(self.limits, self.settings, solved, missed, rows, reference, others, budget)
        met = (solved.distances <= self.settings.position_tolerance) & (
            solved.angles <= self.settings.angle_tolerance
        )
        solved.statuses[met.all(1)] = 0
        return solved

    def _run(
        self,
        limits: Sequence[Limit | None],
        settings: SolverSettings,
        solved: Solved,
        which: Indices,
        rows: Array,
        reference: tuple[Array, Array],
        starts: Starts | None,
        budget: int,
    ) -> None:
        """Solve some of the poses from where they are; with `starts`, go on with what misses its goals."""
        if not len(which):
            return
        everything = len(which) == len(solved.statuses)
        size, joints, goals = len(which), len(self.skeleton), rows.shape[1] // 4
        turned = np.ascontiguousarray(solved.rotations[which]).reshape(size, -1)
        shifted = np.ascontiguousarray(solved.translations[which]).reshape(size, -1)
        targets = rows if everything or len(rows) == 1 else np.ascontiguousarray(rows[which])
        near = [np.ascontiguousarray(each[which] if len(each) else each) for each in reference]
        near_turned, near_shifted = near[0].reshape(-1, 4 * joints), near[1].reshape(-1, 3 * joints)
        others = starts or _none(joints)
        statuses, steps = solved.statuses[which].astype(np.int32), np.zeros(size, np.int32)
        distances, angles = np.zeros((size, goals)), np.zeros((size, goals))
        idle, problem = self._problem(limits)
        set_search(
            problem,
            ORDERS.index(settings.sweep),
            settings.step_fraction,
            settings.step_feedback,
            settings.error_reduction,
            settings.stall_threshold,
            settings.max_iterations,
            max(budget - int(solved.steps[which].max()), 0),
            settings.solver is Solver.CCD,
            limits is self.regions,
        )
        solve_poses(
            problem,
            turned,
            shifted,
            targets,
            near_turned,
            near_shifted,
            np.ascontiguousarray(others.rotations).reshape(-1, 4 * joints),
            np.ascontiguousarray(others.translations).reshape(-1, 3 * joints),
            others.is_turn,
            statuses,
            steps,
            distances,
            angles,
            starts is not None,
        )
        idle.append(problem)
        solved.rotations[which] = turned.reshape(size, joints, 4)
        solved.translations[which] = shifted.reshape(size, joints, 3)
        solved.statuses[which] = statuses
        solved.steps[which] += steps
        solved.distances[which] = distances[:, : len(self.goals)]
        solved.angles[which] = angles[:, : len(self.goals)]

    def _problem(self, limits: Sequence[Limit | None]) -> tuple[list[Problem], Problem]:
        """A problem that no thread uses, and where it is put back. Problems of equal goals are made once."""
        settings = self.settings
        key = (
            "kernel problem",
            tuple(_without_target(goal) for goal in self.goals),
            limits is self.regions,
            settings.comfort,
            settings.position_tolerance,
            settings.angle_tolerance,
        )
        idle: list[Problem] = self.skeleton.computed_once(key, list)
        if idle:
            return idle, idle.pop()
        regions = None if limits is self.regions else self.comforts
        tables = problem_tables(self.skeleton, self.goals, limits, self.movable, self.tolerances, regions)
        reach = reach_of_goals(self.skeleton, self.goals)
        return idle, Problem(tables, reach, settings.position_tolerance, settings.angle_tolerance)


def _none(joints: int) -> Starts:
    """No other starts."""
    return Starts(np.zeros((0, joints, 4)), np.zeros((0, joints, 3)), np.zeros((0, joints), np.int32))


def _without_target(goal: Goal) -> Hashable:
    """All of a goal but its target."""
    return type(goal), *(value for name, value in goal.__dict__.items() if name != "target")


def check_goals(skeleton: Skeleton, goals: Sequence[object]) -> None:
    """Raises InvalidInput unless there are goals, all of them fit for the skeleton."""
    if not goals:
        raise InvalidInput("there is nothing to solve: give at least one goal")
    for goal in goals:
        if not isinstance(goal, GOALS):
            allowed = ", ".join(kind.__name__ for kind in GOALS)
            raise InvalidInput(f"a goal must be one of {allowed}, not {shown(goal)}")
        if isinstance(goal, BalanceGoal) and not any(joint.mass > 0.0 for joint in skeleton.joints):
            raise InvalidInput("balance goal: no joint has a mass; give at least one joint a mass above 0")
        if isinstance(goal, PositionGoal) and goal.max_extension < 1.0:
            rolling = chain_links_that_roll(skeleton, goal)
            if rolling is not None:
                raise InvalidInput(
                    f"{goal.name}: max_extension is {goal.max_extension:g}, but joint '{rolling}' has "
                    "coupled offsets: set max_extension to 1"
                )
