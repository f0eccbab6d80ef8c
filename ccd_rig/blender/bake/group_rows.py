# SPDX-License-Identifier: GPL-3.0-or-later
"""Some of the rows of a group solved in one stage, and taken over into its batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...solvers.least_squares.frames import Frames
from ...solvers.least_squares.problem import MILD_STEP, LeastSquaresProblem
from ...solvers.least_squares.requests import Search
from ...solvers.least_squares.sequence import Sequence as SolvedFrames
from ...solvers.least_squares.state import State, start_state
from ...solvers.least_squares.windowed import held_at_border, solve_frames, solve_windowed
from ..solve.contact_poses import JointPoses
from .bake_frames import Rows
from .batches import Batch, Group
from .group_problem import GroupProblem, Stage, group_problem
from .group_result import GroupResult


def solve_rows(
    batch: Batch,
    group: Group,
    stage: Stage,
    some: tuple[Rows, JointPoses],
    result: GroupResult,
    from_base: bool = True,
) -> Search[bool]:
    """Solve a group at some of the rows; whether some goals are served before others.

    Args:
        batch: its poses are where the rows start; they are replaced.
        group: of its constraints.
        stage: what limits hold, and what goals count beside those served before them.
        some: which rows, and the base poses of all.
        result: its rows are replaced.
        from_base: whether frames start from their base poses; else they start as they stand.
    """
    chosen, base = some
    asked = group_problem(batch, group, stage, chosen, base)
    problem, given, stop = asked.problem, asked.given, asked.stop
    start, held = start_state(problem.layout, given, asked.poses), batch.held[chosen]
    if asked.is_ranked and stage[1] != MILD_STEP:
        # What is served later would give way to the pull to the reference.
        own = held_at_border(problem, replace(given, reference=None), start, stop)
        alone = yield from solve_windowed(problem, own, start, stop)
        solved = SolvedFrames.each_alone(alone, held)
    else:
        frames = Frames(problem, given, start, stop, held, batch.times[chosen])
        solved = yield from solve_frames(frames, from_base)
    store(batch, problem, solved.state, (chosen, solved.kept))
    batch.iterations = max(batch.iterations, int(solved.iterations.max(initial=0)))
    met = result.met
    note_met(asked, solved.state, met, chosen)
    met[batch.held] = True
    result.led[chosen], result.apart[chosen] = solved.led, solved.apart
    return asked.is_ranked


def note_met(asked: GroupProblem, state: State, met: NDArray[np.bool_], chosen: Rows) -> None:
    """Bring (R, members) up to date for some of the rows: which constraints are met, inside their windows."""
    problem, stop, given = asked.problem, asked.stop, asked.given
    met[chosen] = True
    missed = problem.evaluate(given, state).missed(stop.position, stop.angle)
    for place, each in zip(asked.places, missed, strict=True):
        met[chosen, place] &= ~each
    over = problem.overstretched(given, state) if problem.windows else ()
    for window, stretched in zip(problem.windows, over, strict=True):
        met[chosen, asked.places[window.number]] &= stretched <= stop.position


def store(
    batch: Batch, problem: LeastSquaresProblem, state: State, some: tuple[Rows, NDArray[np.bool_]]
) -> None:
    """Take over what was solved. `some` are its rows, and which of them stand as before: to the very bits."""
    chosen, kept = some
    layout, changed = problem.layout, np.flatnonzero(~kept)
    layout_rows = np.unique(np.concatenate((layout.hinge_rows, layout.ball_rows)))
    joints = np.array(layout.rows)[layout_rows]
    rotations = state.rotations[:, layout_rows][..., changed]
    batch.rotations[np.ix_(chosen[changed], joints)] = rotations.transpose(2, 1, 0)
    for k, (j, slide) in enumerate(layout.slides):
        axis = np.array(slide.axis)
        shift = state.slides[k, changed] - batch.translations[chosen[changed], j] @ axis
        batch.translations[chosen[changed], j] += shift[:, None] * axis
