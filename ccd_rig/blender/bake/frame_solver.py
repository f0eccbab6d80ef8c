# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames of a bake solved: those with planted bones in runs, all others at once."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..scene.evaluation import FrameSample, Samples
from ..solve.frame_settings import FrameSolveSettings
from ..solve.methods import SINGLE_PASS
from .bake_frames import BakeFrames
from .batches import Batch
from .group_solving import solve_batches
from .planted_solver import WAITING_AT_MOST, PlantedSolver

Parts = Generator[float, None, None]
"""Work that gives the number of frames that are solved now and then."""


class _Run(NamedTuple):
    """Frames in a row with the same constraints in force, the same limits, slides and coupled offsets.

    Attributes:
        shared: what they share.
        rows: of the bake's frames.
        samples: of all of them where those are needed, else of the first.
    """

    shared: tuple[object, ...]
    rows: list[int]
    samples: list[FrameSample]


@dataclass
class FrameSolver:
    """Solves the frames of a bake, and keeps the solutions there.

    Attributes:
        bake_frames: its rows are stored before they come here.
        settings: how they are solved.
        iterations: most steps of a frame.
    """

    bake_frames: BakeFrames
    settings: FrameSolveSettings
    iterations: int = 0
    _runs: list[_Run] = field(default_factory=list)
    _waiting: list[tuple[int, FrameSample]] = field(default_factory=list)  # with planted bones
    _planted: PlantedSolver = field(init=False)

    def __post_init__(self) -> None:
        self._planted = PlantedSolver(self.settings)

    def add_planted(self, row: int, sample: FrameSample) -> Parts:
        """The next frame to solve of those with planted bones: solved now, or with others."""
        tracks = self.bake_frames.tracks
        assert tracks is not None
        self._waiting.append((row, sample))
        keeps_body = tracks.support_chains.keeps_body  # its samples are needed again anyway
        if len(self._waiting) >= WAITING_AT_MOST and not keeps_body:
            yield from self.finish()

    def add(self, row: int, samples: Samples, k: int) -> None:
        """The next frame to solve, frame `k` of samples: solved with others in the end."""
        bake_frames = self.bake_frames
        in_force = (bake_frames.influences[row] > 0.0).tobytes()
        shared = in_force, bake_frames.limits[row], bake_frames.shifting[row]
        is_new = not self._runs or self._runs[-1].shared != shared
        if is_new:
            self._runs.append(_Run(shared, [], []))
        run = self._runs[-1]
        run.rows.append(row)
        if is_new or any(each.method in SINGLE_PASS for each in bake_frames.constraints):
            run.samples.append(samples[k])

    def finish(self) -> Parts:
        """Solve the frames that wait."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            yield from self._planted.solve(self.bake_frames, waiting)
            self.iterations = max(self.iterations, self._planted.iterations)
        if self._runs:
            yield from self.solve_with({})

    def moved_ends(self, beyond: Mapping[int, FrameSolver]) -> tuple[bool, bool]:
        """Whether neighbours have moved the first and the last frame.

        With frames beyond these on a side (-1 before, 1 after; see `solve_with`) it is the outermost of them.
        """
        if not self._runs:
            return False, False
        rows = {-1: self._runs[0].rows[0], 1: self._runs[-1].rows[-1]}
        moved = []
        for way, row in rows.items():
            frames = beyond[way].bake_frames if way in beyond else self.bake_frames
            outermost = row if way not in beyond else (0 if way < 0 else len(frames.frames) - 1)
            moved.append(bool(frames.smoothed.get(outermost)))
        return moved[0], moved[1]

    def solve_with(self, beyond: Mapping[int, FrameSolver]) -> Parts:
        """Solve all runs as one motion, together with frames before (-1) and after (1) them."""
        solvers = [each for each in (beyond.get(-1), self, beyond.get(1)) if each is not None]
        runs = [(solver, run) for solver in solvers for run in solver._runs]
        batches = [solver._batch(run) for solver, run in runs]
        bake_frames, period = self.bake_frames, 0
        if bake_frames.is_loop:
            period = len(bake_frames.solved_frames) - (not bake_frames.repeats_after)
        yield from solve_batches(batches, period)
        for (solver, run), batch in zip(runs, batches, strict=True):
            if solver is self:
                rows = np.array(run.rows, dtype=np.intp)
                bake_frames.store_batch(rows, batch.rotations, batch.translations, batch.states)
                self.iterations = max(self.iterations, batch.iterations)
            solver.bake_frames.smoothed.update(zip(run.rows, map(tuple, batch.smoothed), strict=True))

    def _batch(self, run: _Run) -> Batch:
        """The rows of a run as they are before they are solved."""
        return Batch.of(self.bake_frames, np.array(run.rows, dtype=np.intp), run.samples, self.settings)
