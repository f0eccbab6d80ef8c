# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch solved group by group: by least squares at once, or by CCD in turn where those do not know all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ...settings import SolveStatus
from ...skeleton.pose import Pose
from ...solvers.least_squares.requests import Search, counted, together
from ...solvers.pauses import in_parts
from ...solvers.stepping import Ended, advance
from ...solvers.tally import Count, Tally
from ..scene.evaluation import FrameSample
from ..solve.solving import departed, frame_conditions, solve_active
from .bake_frames import LedWay, Rows
from .batches import Batch, Group
from .group_solving import solve_group

T = TypeVar("T")

RETRY_EVERY = 8
"""In a run of frames that CCD does not reach, restarts are tried at the first and at every eighth."""

LONG = 30
"""Joints of a group from which on CCD may take long: a row is then solved in parts."""

States = list[dict[int, str]]
"""Of each row how its constraints ended."""
Ways = list[list[LedWay]]
"""Of each row the groups that went another way than its base pose alone leads."""


@dataclass
class BatchSolver:
    """Solves batches one after the other; what CCD solves goes on from one to the next.

    Attributes:
        iterations: most of a frame in the batch solved last.
        tally: of the frames that are solved.
    """

    iterations: int = 0
    tally: Tally = field(default_factory=Tally)
    _by_ccd: list[_Solved] = field(default_factory=list)  # of each group, the latest first

    def solve(self, batch: Batch, order: Rows, states: States, ways: Ways) -> Search[None]:
        """Solve all groups of a batch, as a search. Groups that do not carry one another go on side by side.

        Args:
            batch: its poses are replaced, but for rows that are held.
            order: its rows that are not, as CCD takes them.
            states, ways: filled.
        """
        groups = batch.groups()
        for wave in batch.waves(groups):
            counts = [self.tally.count(len(order), len(groups)) for _ in wave]
            searches = [
                self._solve_group(batch, group, (order, states), count)
                for group, count in zip(wave, counts, strict=True)
            ]
            for led in (yield from together(searches)):
                for k, way in led:
                    ways[k].append(way)

    def _solve_group(
        self, batch: Batch, group: Group, some: tuple[Rows, States], count: Count
    ) -> Search[list[tuple[int, LedWay]]]:
        """Solve a group; the rows that went another way than their base poses alone lead. `some` are the rows
        as CCD takes them, and the states of all."""
        order, states = some
        if not batch.takes(group):
            is_long = len(group.joints) >= LONG
            for k in order.tolist():
                solving = partial(self._solve_by_ccd, batch, group, k)
                states[k] |= (yield from _in_parts(solving)) if is_long else solving()
                count.note(1)
                yield ()
            return []
        result = yield from counted(solve_group(batch, group), count)
        self.iterations = max(self.iterations, batch.iterations)
        for state, names in zip(states, result.states(), strict=True):
            state |= zip(group.members, names, strict=True)
        return list(result.led_ways(group))

    def _solve_by_ccd(self, batch: Batch, group: Group, k: int) -> dict[int, str]:
        """Solve a group at one row near its reference pose, and keep the pose; how each constraint ended.

        The start is as far from the reference as the row solved before it was from its own: so a chain keeps
        to its side where there are several.
        """
        sample, start = batch.samples[k], batch.pose(k)
        reference = batch.settings.reference(sample) or start
        before = next((each for each in self._by_ccd if set(group.members) <= set(each.members)), None)
        if before is not None:
            start = departed(batch.skeleton, start, (before.reference, before.pose), reference, group.joints)
            if before.stays(group.members, sample, start, reference):
                self._keep(batch, group, k, start)
                return dict(zip(group.members, before.states, strict=True))
        missed = 0 if before is None else before.missed
        retry = missed % RETRY_EVERY == 0
        conditions = frame_conditions(sample, batch.settings, before is not None, retry)
        result, states = solve_active(
            sample, batch.constraints, group.members, start, conditions, batch.sharper
        )
        self.iterations = max(self.iterations, result.iterations)
        reached = all(state == SolveStatus.CONVERGED.name for state in states)
        self._keep(batch, group, k, result.pose)
        solved = _Solved(group.members, sample, result.pose, reference, states, 0 if reached else missed + 1)
        self._by_ccd = [solved, *(each for each in self._by_ccd if each.members != group.members)]
        return dict(zip(group.members, states, strict=True))

    @staticmethod
    def _keep(batch: Batch, group: Group, k: int, pose: Pose) -> None:
        for j in group.joints:
            batch.rotations[k, j] = pose.rotations[j][:]
            batch.translations[k, j] = pose.translations[j][:]


def _in_parts(work: Callable[[], T]) -> Search[T]:
    """What work returns, as a search that asks for nothing."""
    parts = in_parts(work)
    with closing(parts):
        while not isinstance(part := advance(parts), Ended):
            yield ()
    return part.result


@dataclass(frozen=True)
class _Solved:
    """A group of constraints that CCD solved at the row before.

    Attributes:
        members: the constraints.
        sample: of that row.
        pose: of all joints.
        reference: what the pose was to be near to.
        states: how each constraint ended.
        missed: how many rows in a row have missed a goal.
    """

    members: tuple[int, ...]
    sample: FrameSample
    pose: Pose
    reference: Pose
    states: tuple[str, ...]
    missed: int

    def stays(self, members: Sequence[int], sample: FrameSample, start: Pose, reference: Pose) -> bool:
        """Whether nothing has changed since, so that a chain at rest keeps the very bits of its pose."""
        return (
            self.members == tuple(members)
            and sample.reading.skeleton is self.sample.reading.skeleton
            and sample.matrix_world == self.sample.matrix_world
            and all(sample.targets[c] == self.sample.targets[c] for c in members)
            and start == self.pose
            and reference == self.reference
        )
