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
from ...solvers.least_squares.requests import Search, settled
from ...solvers.tally import Tally
from ..scene.evaluation import FrameSample
from ..solve.solving import FrameSolveSettings, Solution, errors_of
from ..solve.walking import solve_frame
from .bake_frames import BakeFrames
from .batch_solver import BatchSolver, Ways
from .batches import Batch
from .keyed_motion import keyed_motion
from .planted_solver import WAITING_AT_MOST, PlantedSolver, one_by_one
from .recorder import FrameRecorder


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
    _batches: BatchSolver = field(default_factory=BatchSolver)
    _planted: PlantedSolver = field(init=False)

    def __post_init__(self) -> None:
        self._planted = PlantedSolver(self.settings, self._batches)

    @property
    def tally(self) -> Tally:
        """How many frames are solved."""
        return self._batches.tally

    def keep(self, row: int, sample: FrameSample) -> bool:
        """Let the next frame wait for others, if nothing has to be solved yet; whether it does."""
        if self._is_one_by_one() or len(self._waiting) + 1 >= WAITING_AT_MOST:
            return False
        self._waiting.append((row, sample))
        return True

    def _is_one_by_one(self) -> bool:
        return self.bake_frames.tracks is not None and one_by_one(self.bake_frames, self.settings)

    def add(self, row: int, sample: FrameSample) -> Search[None]:
        """The next frame to solve, as a search."""
        if self._is_one_by_one():
            self._before = solve_frame(sample, self.bake_frames.constraints, self.settings, self._before)
            states = dict(zip(self._before.active, self._before.states, strict=True))
            self.bake_frames.store_solution(row, self._before.pose, states, self._before.contact_state)
            self.tally.begin(1)
            self.tally.end()
            return
        self._waiting.append((row, sample))
        if len(self._waiting) >= WAITING_AT_MOST:
            yield from self.finish()

    def finish(self) -> Search[None]:
        """Solves the frames that wait, as a search."""
        waiting, self._waiting = self._waiting, []
        self.tally.begin(len(waiting))
        yield from self._solve(waiting)
        self.tally.end()

    def _solve(self, waiting: list[tuple[int, FrameSample]]) -> Search[None]:
        if self.bake_frames.tracks is not None:
            if waiting:
                yield from self._planted.solve(self.bake_frames, waiting)
            return
        if self._edge is not None and waiting:
            waiting.insert(0, (self._edge.row, self._edge.sample))
        for run in _runs(self.bake_frames, waiting):
            yield from self._solve_run(run)

    def go_on_from(self, row: int, sample: FrameSample) -> None:
        """Let the next frame go on from one that was solved elsewhere and stands in the bake's frames."""
        place = int(np.searchsorted(self.bake_frames.solved_frames, self.bake_frames.frames[row]))
        translations = keyed_motion(self.bake_frames).full.translations[row]
        self._edge = Edge(row, sample, self.bake_frames.solved[place], translations)

    def one_more(self, sample: FrameSample) -> BakeFrames:
        """A frame solved after all others, in bake frames of its own; nothing is planted.

        Their last row is that frame. The row before it, if there is one, is what it goes on from.
        """
        edge = self._edge
        samples = [sample] if edge is None else [edge.sample, sample]
        frames = [each.frame for each in samples]
        bake_frames = BakeFrames.empty(sample, self.bake_frames.constraints, frames, frames)
        recorder = FrameRecorder(bake_frames)
        for row, each in enumerate(samples):
            recorder.store(row, each)
        solver = FrameSolver(bake_frames, self.settings, _batches=self._batches)
        if edge is not None:
            solver._edge = edge._replace(row=0)
            bake_frames.store_batch(np.array([0]), edge.rotations[None], edge.translations[None], [{}])
        settled(solver.add(len(samples) - 1, sample))
        settled(solver.finish())
        return bake_frames

    def solution(self, sample: FrameSample) -> Solution:
        """That of the only frame that was added, with how far off each constraint is."""
        assert self._before is not None
        if self._before.result is not None:
            return self._before
        errors = errors_of(sample, self.bake_frames.constraints, self._before.pose)
        states = self.bake_frames.states[0]
        ended = tuple(states[c] for c in self._before.active)
        missed = next((s for s in ended if s != SolveStatus.CONVERGED.name), SolveStatus.CONVERGED.name)
        result = SolveResult(self._before.pose, SolveStatus[missed], self._batches.iterations, errors)
        return replace(self._before, result=result, states=ended)

    def _solve_run(self, run: Sequence[tuple[int, FrameSample]]) -> Search[None]:
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
        ways: Ways = [[] for _ in rows]
        descending = len(run) > 1 and run[0][0] > run[-1][0]
        order = free[::-1] if descending else free
        yield from self._batches.solve(batch, order, states, ways)
        free_states = [states[k] for k in free.tolist()]
        self.bake_frames.store_batch(rows[free], batch.rotations[free], batch.translations[free], free_states)
        self.bake_frames.ways.update((int(rows[k]), tuple(ways[k])) for k in free.tolist())
        last = int(order[-1])
        self._edge = Edge(
            int(rows[last]), batch.samples[last], batch.rotations[last], batch.translations[last]
        )
        self._before = Solution(batch.pose(last), tuple(sorted(states[last])), None, ())


def _runs(
    bake_frames: BakeFrames, waiting: Sequence[tuple[int, FrameSample]]
) -> Iterator[list[tuple[int, FrameSample]]]:
    """Frames in a row with the same constraints in force, the same limits, slides and coupled offsets."""
    run: list[tuple[int, FrameSample]] = []
    shared: tuple[tuple[int, ...], tuple[Limit | None, ...], object] | None = None
    for row, sample in waiting:
        present = sample.active, bake_frames.limits[row], sample.reading.skeleton.shifting
        if run and present != shared:
            yield run
            run = []
        run.append((row, sample))
        shared = present
    if run:
        yield run
