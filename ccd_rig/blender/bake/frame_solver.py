# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames of a bake solved: as batches where least squares know what is asked for, else by CCD in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...limits.shapes import Limit
from ...maths.batch import Array
from ...settings import SolveResult, SolveStatus
from ...skeleton.pose import Pose
from ..scene.evaluation import FrameSample
from ..solve.solving import (
    FrameSolveSettings,
    Solution,
    departed,
    errors_of,
    frame_conditions,
    solve_active,
)
from ..solve.walking import solve_frame
from .bake_frames import BakeFrames, LedWay
from .batches import Batch, Group
from .group_solving import solve_group

WAITING_AT_MOST = 512
"""Frames that wait at once: what is read of a frame takes memory."""
RETRY_EVERY = 8
"""In a run of frames that CCD does not reach, restarts are tried at the first and at every eighth."""


class Edge(NamedTuple):
    """A solved frame that the next ones go on from: rotations (J, 4) and translations (J, 3)."""

    row: int
    sample: FrameSample
    rotations: Array
    translations: Array


@dataclass
class FrameSolver:
    """Solves the frames of a bake, and keeps the solutions there.

    Attributes:
        bake_frames: its rows are stored before they come here.
        settings: how they are solved.
    """

    bake_frames: BakeFrames
    settings: FrameSolveSettings
    _waiting: list[tuple[int, FrameSample]] = field(default_factory=list)
    _edge: Edge | None = None  # the last of the frames that waited before
    _before: Solution | None = None  # of the frame solved last
    _by_ccd: list[_Solved] = field(default_factory=list)  # of each group, the latest first
    _iterations: int = 0  # of the frame solved last

    def add(self, row: int, sample: FrameSample) -> Iterator[None]:
        """The next frame to solve; an item after each longer piece of work."""
        if self.bake_frames.tracks is not None:
            self._before = solve_frame(sample, self.bake_frames.constraints, self.settings, self._before)
            states = dict(zip(self._before.active, self._before.states, strict=True))
            self.bake_frames.store_solution(row, self._before.pose, states, self._before.contact_state)
            return
        self._waiting.append((row, sample))
        if len(self._waiting) >= WAITING_AT_MOST:
            yield from self.finish()

    def finish(self) -> Iterator[None]:
        """Solves the frames that wait; an item after each longer piece of work."""
        waiting, self._waiting = self._waiting, []
        if self._edge is not None and waiting:
            waiting.insert(0, (self._edge.row, self._edge.sample))
        for run in _runs(self.bake_frames, waiting):
            yield from self._solve_run(run)

    def solution(self, sample: FrameSample) -> Solution:
        """That of the only frame that was added, with how far off each constraint is."""
        assert self._before is not None
        if self._before.result is not None:
            return self._before
        errors = errors_of(sample, self.bake_frames.constraints, self._before.pose)
        states = self.bake_frames.states[0]
        ended = tuple(states[c] for c in self._before.active)
        missed = next((s for s in ended if s != SolveStatus.CONVERGED.name), SolveStatus.CONVERGED.name)
        result = SolveResult(self._before.pose, SolveStatus[missed], self._iterations, errors)
        return replace(self._before, result=result, states=ended)

    def _solve_run(self, run: Sequence[tuple[int, FrameSample]]) -> Iterator[None]:
        """Solve frames in a row that have the same constraints in force and the same limits."""
        ordered = sorted(run, key=lambda each: each[0])
        rows = np.array([row for row, _ in ordered], dtype=np.intp)
        batch = Batch.of(self.bake_frames, rows, [sample for _, sample in ordered], self.settings)
        if self._edge is not None and self._edge.row in rows:
            if len(rows) == 1:
                return
            held = int(np.searchsorted(rows, self._edge.row))
            batch.hold(held, self._edge.rotations, self._edge.translations)
        free = np.flatnonzero(~batch.held)
        states: list[dict[int, str]] = [{} for _ in rows]
        ways: list[list[LedWay]] = [[] for _ in rows]
        descending = len(run) > 1 and run[0][0] > run[-1][0]
        order = (free[::-1] if descending else free).tolist()
        for group in batch.groups():
            if batch.takes(group):
                result = solve_group(batch, group)
                self._iterations = max(self._iterations, batch.iterations)
                for k in np.flatnonzero(result.led & result.met.all(1)).tolist():
                    ways[k].append(LedWay(group.members, float(result.apart[k])))
                for k, reached in enumerate(result.met.tolist()):
                    states[k] |= {
                        c: (SolveStatus.CONVERGED if good else SolveStatus.STALLED).name
                        for c, good in zip(group.members, reached, strict=True)
                    }
                yield
            else:
                for k in order:
                    states[k] |= self._solve_by_ccd(batch, group, k)
                    yield
        free_states = [states[k] for k in free.tolist()]
        self.bake_frames.store_batch(rows[free], batch.rotations[free], batch.translations[free], free_states)
        self.bake_frames.ways.update((int(rows[k]), tuple(ways[k])) for k in free.tolist())
        last = order[-1]
        self._edge = Edge(
            int(rows[last]), batch.samples[last], batch.rotations[last], batch.translations[last]
        )
        self._before = Solution(batch.pose(last), tuple(sorted(states[last])), None, ())

    def _solve_by_ccd(self, batch: Batch, group: Group, k: int) -> dict[int, str]:
        """Solve a group at one row near its reference pose, and keep the pose; how each constraint ended.

        The start is as far from the reference as the row solved before it was from its own: so a chain keeps
        to its side where there are several.
        """
        sample, start = batch.samples[k], batch.pose(k)
        reference = self.settings.reference(sample) or start
        before = next((each for each in self._by_ccd if set(group.members) <= set(each.members)), None)
        if before is not None:
            start = departed(batch.skeleton, start, (before.reference, before.pose), reference, group.joints)
            if before.stays(group.members, sample, start, reference):
                self._keep(batch, group, k, start)
                return dict(zip(group.members, before.states, strict=True))
        missed = 0 if before is None else before.missed
        retry = missed % RETRY_EVERY == 0
        conditions = frame_conditions(sample, self.settings, before is not None, retry)
        constraints = self.bake_frames.constraints
        result, states = solve_active(sample, constraints, group.members, start, conditions)
        self._iterations = max(self._iterations, result.iterations)
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


def _runs(
    bake_frames: BakeFrames, waiting: Sequence[tuple[int, FrameSample]]
) -> Iterator[list[tuple[int, FrameSample]]]:
    """Frames in a row with the same constraints in force, the same limits and the same slides."""
    run: list[tuple[int, FrameSample]] = []
    shared: tuple[tuple[bool, ...], tuple[Limit | None, ...], object] | None = None
    for row, sample in waiting:
        slides = tuple(joint.slides for joint in sample.reading.skeleton.joints)
        present = tuple(i > 0.0 for i in sample.influences), bake_frames.limits[row], slides
        if run and present != shared:
            yield run
            run = []
        run.append((row, sample))
        shared = present
    if run:
        yield run
