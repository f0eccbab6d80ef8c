"""Solve one pose: checks, comfort before limits, other starts, and what the result says.

How a pose is solved stands in `kernel/pose.py`. Comfort regions are taken for the limits first, and left only
if the goals cannot be met in them. What misses its goals is tried from other starts (`restarts`), and then
brought as near as it gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import InvalidInput
from ..goals import Goal
from ..settings import SolveResult, SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose, check_pose
from ..skeleton.pose_library import PoseEntry, check_entry
from .pose_search import ENDLESS, STATUSES, PoseSearch, Starts
from .problem_tables import own_targets
from .restarts import StartSpace, starts


def solve(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
    reference: Pose | None = None,
) -> SolveResult:
    """The pose that meets the goals inside all limits; of all such poses the nearest to `reference`.

    Only joints of the goals' chains are turned; those that start outside their limit are brought inside it
    first. The result is never worse than the start inside its limits: of the goals' weighted square errors,
    summed per priority, the first sum that changes by more than the tolerance becomes smaller (goals within
    their tolerance count 0). Only comfort regions together with comfort tolerances may give some of that up.
    The same input gives the same result to the bit. A target out of reach is a status, never an exception.

    Args:
        skeleton: the joints.
        pose: where to start.
        goals: what to achieve, at least one.
        settings: how; None for `SolverSettings()`.
        poses: a pose library; its nearest entries are the first of `settings.restarts`.
        reference: the pose that joints stay near to, as far as the goals leave them room; CCD alone starts
            from it. None: they turn no further than steps need.

    Raises:
        InvalidInput: names what is wrong with the input.
    """
    return _Request(skeleton, pose, goals, settings, poses, reference).run(ENDLESS)


def iterate(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
    reference: Pose | None = None,
) -> Iterator[SolveResult]:
    """Like `solve`, one item per iteration: to show it, to cancel it, or to spread it over frames.

    Every item holds the best pose so far; the last one equals what `solve` returns. Each item is solved from
    the start, so that an item costs as much as all iterations before it.
    """
    request = _Request(skeleton, pose, goals, settings, poses, reference)
    whole = request.run(ENDLESS)
    for budget in range(1, whole.iterations):
        yield replace(request.run(budget), status=SolveStatus.ITERATION_LIMIT, iterations=budget)
    yield whole


class _Request:
    """The arguments of a solve, checked, as arrays."""

    def __init__(
        self,
        skeleton: Skeleton,
        pose: Pose,
        goals: Sequence[Goal],
        settings: SolverSettings | None,
        poses: Sequence[PoseEntry],
        reference: Pose | None,
    ) -> None:
        if not isinstance(skeleton, Skeleton):
            raise InvalidInput(f"the skeleton must be a Skeleton, not {skeleton!r}")
        if not isinstance(settings, SolverSettings | None):
            raise InvalidInput(f"settings must be SolverSettings or None, not {settings!r}")
        for what, values in (("goals", goals), ("poses", poses)):
            if not isinstance(values, Sequence):
                raise InvalidInput(f"{what} must be a sequence, not {values!r}")
        for entry in poses:
            check_entry(entry, skeleton)
        check_pose(skeleton, pose)
        if reference is not None:
            check_pose(skeleton, reference)
        self.pose, self.poses, self.settings = pose, poses, settings or SolverSettings()
        self.search = PoseSearch(skeleton, goals, self.settings)
        self.reference = None if reference is None else reference.arrays
        self.targets = own_targets(self.search.goals)

    def run(self, budget: int) -> SolveResult:
        """The result of at most so many iterations."""
        search = self.search
        solved = search.solve(
            *self.pose.arrays,
            self.targets,
            self.reference,
            self._starts if self.settings.restarts else None,
            budget,
        )
        # The pose in single precision is what counts; joints that were not turned are those of the start.
        pose = Pose.of_arrays(solved.rotations[0], solved.translations[0])
        errors = search.errors(pose, self.targets)
        status = STATUSES[solved.statuses[0]]
        if all(self.settings.in_tolerances(error) <= 1.0 for error in errors):
            status = SolveStatus.CONVERGED
        elif status is SolveStatus.CONVERGED:
            status = SolveStatus.STALLED
        return SolveResult(pose, status, int(solved.steps[0]), errors)

    def _starts(self) -> Starts:
        """Other poses to start from."""
        search = self.search
        space = StartSpace(search.skeleton, search.goals, search.limits, search.movable, self.poses)
        others = starts(space, self.pose, self.settings.seed, self.settings.restarts)
        return Starts.of(others, np.zeros((len(others), len(search.skeleton)), np.int32))
