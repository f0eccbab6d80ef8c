# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch solved group by group: by least squares at once, or by CCD in turn where those do not know all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from ...settings import SolveStatus
from ...skeleton.pose import Pose
from ...solvers.pauses import in_parts
from ..scene.evaluation import FrameSample
from ..solve.solving import departed, frame_conditions, solve_active
from .bake_frames import LedWay, Rows
from .batches import Batch, Group
from .group_solving import solve_group

RETRY_EVERY = 8
"""In a run of frames that CCD does not reach, restarts are tried at the first and at every eighth."""

MANY, LONG = 8, 30
"""Rows of a batch, and joints of a group, from which on a solve may take long: it is then made in parts."""

States = list[dict[int, str]]
"""Of each row how its constraints ended."""
Ways = list[list[LedWay]]
"""Of each row the groups that went another way than its base pose alone leads."""


@dataclass
class BatchSolver:
    """Solves batches one after the other; what CCD solves goes on from one to the next.

    Attributes:
        iterations: most of a frame in the batch solved last.
    """

    iterations: int = 0
    _by_ccd: list[_Solved] = field(default_factory=list)  # of each group, the latest first

    def solve(self, batch: Batch, order: Rows, states: States, ways: Ways) -> Iterator[None]:
        """Solve all groups of a batch; an item after each longer piece of work.

        Args:
            batch: its poses are replaced, but for rows that are held.
            order: its rows that are not, as CCD takes them.
            states, ways: filled.
        """
        groups = batch.groups()
        if batch.warm_start is not None:
            groups, still = batch.going_on(batch.warm_start)
            for state in states:
                state |= still
        for group in groups:
            # What goes on from a pose that is shown has a budget of its own.
            is_long = batch.warm_start is None and (len(order) >= MANY or len(group.joints) >= LONG)
            if batch.takes(group):
                if is_long:
                    result = yield from in_parts(partial(solve_group, batch, group))
                else:
                    result = solve_group(batch, group)
                self.iterations = max(self.iterations, batch.iterations)
                for state, names in zip(states, result.states(), strict=True):
                    state |= zip(group.members, names, strict=True)
                for k, way in result.led_ways(group):
                    ways[k].append(way)
                yield
            else:
                for k in order.tolist():
                    if is_long and len(group.joints) >= LONG:
                        states[k] |= yield from in_parts(partial(self._solve_by_ccd, batch, group, k))
                    else:
                        states[k] |= self._solve_by_ccd(batch, group, k)
                    yield

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
