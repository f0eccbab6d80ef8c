# SPDX-License-Identifier: GPL-3.0-or-later
"""One group of constraints solved at all frames of a batch, by least squares.

A frame's pose is, of those that meet its goals inside the limits, the one nearest to its base pose
(`solvers/least_squares/sequence.py`). It does not depend on the frames before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...limits.shapes import Limit
from ...maths.batch import at_least_two
from ...solvers.least_squares.comfort_tolerances import Relaxed, solve_eased
from ...solvers.least_squares.optimality import STATIONARY, steepness
from ...solvers.least_squares.problem import MILD_STEP, PRIORITY_STEP, LeastSquaresProblem
from ...solvers.least_squares.requests import Search
from ...solvers.least_squares.solve import Limits
from ...solvers.least_squares.state import Poses, start_state
from ...solvers.least_squares.windowed import held_at_border, solve_windowed
from ..solve.contact_poses import JointPoses
from .bake_frames import Rows
from .batches import Batch, Group, poses_of
from .group_problem import group_problem
from .group_result import GroupResult
from .group_rows import note_met, solve_rows, store
from .other_ways import restart_group

UNMOVED = 1e-12
"""Components of a quaternion, and model units, that differ by less are the same."""
SHARPENING = 8
"""Most steps in which rows that meet their goals are brought still nearer."""


def solve_group(batch: Batch, group: Group) -> Search[GroupResult]:
    """Solve a group at all rows, as a search.

    Comfort regions are the limits first, and goals served later count nearly as much as those served
    first; what is not there then goes on without. Comfort tolerances: see `comfort_tolerances`.
    """
    stages = [batch.limits]
    if batch.settings.solver.comfort and (regions := batch.regions(group)) != batch.limits:
        stages = [regions, batch.limits]
    base = _base_of(batch, group)
    result = GroupResult.of(batch, group)
    if batch.tolerances(group).any():
        yield from _solve_relaxed(batch, group, stages, base, result)
    else:
        for limits in stages:
            yield from _solve_stage(batch, group, limits, base, result)
        if batch.settings.solver.restarts:
            yield from restart_group(batch, group, result, base)
        if batch.sharper < 1.0:
            yield from _sharpen(batch, group, result.met, base)
    _note_nearest(batch, group, result, base)
    return result


def _solve_stage(
    batch: Batch, group: Group, limits: Sequence[Limit | None], base: JointPoses, result: GroupResult
) -> Search[None]:
    """Solve what is not met yet inside limits."""
    for step in (MILD_STEP, PRIORITY_STEP):
        if result.met.all():
            break
        chosen = np.flatnonzero(~result.met.all(1) | batch.held)
        if not (yield from solve_rows(batch, group, (limits, step), (chosen, base), result)):
            break


def _solve_relaxed(
    batch: Batch,
    group: Group,
    stages: Sequence[Sequence[Limit | None]],
    base: JointPoses,
    result: GroupResult,
) -> Search[None]:
    """Solve a group whose joints have comfort tolerances: first without these, then as far as they let it."""
    done = batch.held.copy()
    for limits in stages:
        chosen = np.flatnonzero(~done)
        if not len(chosen):
            break
        start = batch.rotations[chosen].copy(), batch.translations[chosen].copy()
        yield from _solve_stage(batch, group, limits, base, result)
        ahead = poses_of(batch.rotations[chosen], batch.translations[chosen])
        batch.rotations[chosen], batch.translations[chosen] = start
        done[chosen] = _ease(batch, group, limits, (chosen, base), result.met, ahead)
        result.met[batch.held] = True


def _note_nearest(batch: Batch, group: Group, result: GroupResult, base: JointPoses) -> None:
    """Note which rows miss a goal though nothing nearer exists close by."""
    missed = np.flatnonzero(~result.met.all(1))
    if len(missed):
        asked = group_problem(batch, group, (batch.limits, PRIORITY_STEP), at_least_two(missed), base)
        problem, given = asked.problem, asked.given
        steep = steepness(problem, given, start_state(problem.layout, given, asked.poses), asked.stop)
        result.nearest[missed] = steep[: len(missed)] <= STATIONARY


def _ease(
    batch: Batch,
    group: Group,
    limits: Sequence[Limit | None],
    some: tuple[Rows, JointPoses],
    met: NDArray[np.bool_],
    ahead: Poses,
) -> NDArray[np.bool_]:
    """Solve a group whose joints have comfort tolerances at some of the rows, from where these stand towards
    poses `ahead`.

    `met` (R, members) is brought up to date. Returns which of these rows are done: they meet their goals, or
    all their joints are at ease.
    """
    chosen, base = some
    asked = group_problem(batch, group, (limits, PRIORITY_STEP), chosen, base)
    row_goals = asked.goals
    movable = asked.problem.layout.moved
    relaxed = Relaxed(
        limits,
        movable,
        batch.tolerances(group)[np.searchsorted(sorted(group.joints), movable)],
        lambda joints: LeastSquaresProblem(batch.skeleton, row_goals, limits, joints),
    )
    eased = solve_eased(relaxed, asked.asked, ahead)
    layout, given = asked.problem.layout, asked.asked.given(asked.problem)
    state = start_state(layout, given, eased.poses)
    unmoved = np.abs(eased.poses.rotations - asked.poses.rotations).max((0, 1)) <= UNMOVED
    unmoved &= np.abs(eased.poses.translations - asked.poses.translations).max((0, 1)) <= UNMOVED
    store(batch, asked.problem, state, (chosen, unmoved))
    batch.iterations = max(batch.iterations, int(eased.iterations.max(initial=0)))
    note_met(asked, state, met, chosen)
    return np.asarray(met[chosen].all(1) | eased.at_ease)


def _base_of(batch: Batch, group: Group) -> JointPoses:
    """The poses of all rows with a group's joints at their base poses."""
    rotations, translations = batch.rotations.copy(), batch.translations.copy()
    places = np.ix_(np.flatnonzero(batch.held), sorted(group.joints))
    rotations[places], translations[places] = batch.base.rotations[places], batch.base.translations[places]
    return JointPoses(rotations, translations)


def _sharpen(batch: Batch, group: Group, met: NDArray[np.bool_], base: JointPoses) -> Search[None]:
    """Bring rows that meet their goals, but not to the part of the tolerances that the batch asks for, there
    by the least rotations."""
    chosen = np.flatnonzero(met.all(1) & ~batch.held)
    if not len(chosen):
        return
    asked = group_problem(batch, group, (batch.limits, PRIORITY_STEP), chosen, base)
    problem, stop = asked.problem, asked.stop
    sharp = Limits(batch.sharper * stop.position, batch.sharper * stop.angle, SHARPENING)
    start = start_state(problem.layout, asked.given, asked.poses)
    given = held_at_border(problem, replace(asked.given, reference=None), start, stop)
    some = np.flatnonzero(problem.evaluate(given, start).excess(sharp.position, sharp.angle) > 1.0)
    if len(some):
        solved = yield from solve_windowed(problem, given.at(some), start.at(some), sharp.at(some))
        store(batch, problem, solved.state, (chosen[some], np.zeros(len(some), np.bool_)))
