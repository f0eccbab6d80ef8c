# SPDX-License-Identifier: GPL-3.0-or-later
"""One group of constraints solved at all frames of a batch, by least squares.

A frame's pose is, of those that meet its goals inside the limits, the one nearest to its base pose
(`solvers/least_squares/sequence.py`). It does not depend on the frames before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...limits.shapes import Limit
from ...maths.batch import Array, multiply, unit
from ...settings import Solver
from ...skeleton.pose import Pose
from ...solvers.least_squares.problem import MILD_STEP, PRIORITY_STEP, LeastSquaresProblem
from ...solvers.least_squares.reach import beyond_reach
from ...solvers.least_squares.sequence import Sequence as SolvedFrames
from ...solvers.least_squares.sequence import solve_sequence
from ...solvers.least_squares.solve import Limits, solve_batch
from ...solvers.least_squares.state import Bones, Given, Poses, start_state
from ...solvers.least_squares.ways import Frames
from ...solvers.many_search import HURRIED_GAIN
from ...solvers.restarts import StartSpace, starts
from ...solvers.solve import solve
from ..solve.constraint_goals import goal_targets, goals
from ..solve.solving import frame_conditions, scales
from .bake_frames import Rows
from .batches import Batch, Group, poses_of

Base = tuple[Array, Array]
"""The poses that a group starts from: (R, J, 4) rotations and (R, J, 3) translations."""
Stage = tuple[Sequence[Limit | None], float]
"""What limits hold, and what goals count beside those served before them."""

STEPS = 40
"""Most steps of a frame."""
GAIN, RANKED_GAIN = 0.005, 1e-3
"""A frame stalls when its square error falls by less than this part in several steps; where goals are served
before others, which then count next to nothing."""
PASSES = 20
"""Most passes of CCD that look for another way to goals that are missed."""
RETRY_EVERY = 16
"""In a run of frames that miss their goals other ways are looked for at the first and so many frames later;
after each that has none the next waits twice as long."""


@dataclass(frozen=True)
class GroupProblem:
    """A group's goals at some frames, for least squares.

    Attributes:
        problem: what the frames share.
        given: what each brings.
        poses: as they stand.
        stop: when to stop.
        places: of each goal the place of its constraint in the group.
        is_ranked: whether some goals are served before others.
    """

    problem: LeastSquaresProblem
    given: Given
    poses: Poses
    stop: Limits
    places: list[int]
    is_ranked: bool


def solve_group(batch: Batch, group: Group) -> NDArray[np.bool_]:
    """Solve a group at all rows; (R, members) which constraints are met.

    Comfort regions are the limits first, and goals served later count nearly as much as those served
    first; what is not there then goes on without.
    """
    stages = [batch.limits]
    if batch.settings.solver.comfort and (regions := batch.regions(group)) != batch.limits:
        stages = [regions, batch.limits]
    base = _base_of(batch, group)
    met = np.zeros((len(batch.rows), len(group.members)), np.bool_)
    met[batch.held] = True
    for limits in stages:
        for step in (MILD_STEP, PRIORITY_STEP):
            if met.all():
                break
            chosen = np.flatnonzero(~met.all(1) | batch.held)
            if not _solve_some(batch, group, (limits, step), (chosen, base), met):
                break
    if batch.settings.solver.restarts:
        _restart(batch, group, met, base)
    return met


def _base_of(batch: Batch, group: Group) -> Base:
    """The poses of all rows with a group's joints at their base poses."""
    rotations, translations = batch.rotations.copy(), batch.translations.copy()
    rows, joints = np.flatnonzero(batch.held), sorted(group.joints)
    places = np.ix_(batch.rows[rows], joints)
    rotations[np.ix_(rows, joints)] = batch.bake_frames.base[places]
    translations[np.ix_(rows, joints)] = batch.bake_frames.translations[places]
    return rotations, translations


def _solve_some(
    batch: Batch,
    group: Group,
    stage: Stage,
    some: tuple[Rows, Base],
    met: NDArray[np.bool_],
    from_base: bool = True,
) -> bool:
    """Solve a group at some of the rows; whether some goals are served before others.

    Args:
        batch: its poses are where the rows start; they are replaced.
        group: of its constraints.
        stage: what limits hold, and what goals count beside those served before them.
        some: which rows, and the base poses of all.
        met: (R, members), those of the rows are replaced.
        from_base: whether frames start from their base poses; else they start as they stand.
    """
    chosen, base = some
    asked = _group_problem(batch, group, stage, chosen, base)
    problem, given, stop = asked.problem, asked.given, asked.stop
    start, held = start_state(problem.layout, given, asked.poses), batch.held[chosen]
    if asked.is_ranked and stage[1] != MILD_STEP:
        # What is served later would give way to the pull to the reference.
        alone = solve_batch(problem, replace(given, reference=None), start, stop)
        solved = SolvedFrames(alone.state, alone.excess, held, alone.iterations)
    else:
        times = batch.bake_frames.frames[batch.rows[chosen]]
        solved = solve_sequence(Frames(problem, given, start, stop, held, times), from_base)
    _store(batch, problem, solved, chosen)
    batch.iterations = max(batch.iterations, int(solved.iterations.max(initial=0)))
    met[chosen] = True
    missed = problem.evaluate(given, solved.state).missed(stop.position, stop.angle)
    for place, each in zip(asked.places, missed, strict=True):
        met[chosen, place] &= ~each
    met[batch.held] = True
    return asked.is_ranked


def _group_problem(batch: Batch, group: Group, stage: Stage, chosen: Rows, base: Base) -> GroupProblem:
    """What a group asks for at some of the rows; `base` has the base poses of all."""
    limits, step = stage
    samples, rows = [batch.samples[k] for k in chosen.tolist()], batch.rows[chosen]
    constraints, targets = batch.bake_frames.constraints, batch.bake_frames.targets
    placed = [
        (place, goal)
        for place, c in enumerate(group.members)
        for goal in goals(batch.skeleton, constraints[c], samples[0].targets[c])
    ]
    row_goals = [goal for _, goal in placed]
    problem = LeastSquaresProblem(batch.skeleton, row_goals, limits, sorted(group.joints), step)
    poses = poses_of(batch.rotations[chosen], batch.translations[chosen])
    given = problem.given(
        batch.bones(rows),
        poses,
        [
            goal_targets(goal, [targets[r][group.members[place]] for r in rows.tolist()])
            for place, goal in placed
        ],
        batch.reference(samples, poses_of(base[0][chosen], base[1][chosen])),
    )
    solver, is_ranked = batch.settings.solver, len({goal.priority for goal in row_goals}) > 1
    stop = Limits(
        solver.position_tolerance / scales(samples),
        solver.angle_tolerance,
        min(STEPS, solver.max_iterations),
        RANKED_GAIN if is_ranked and step != MILD_STEP else GAIN,
    )
    return GroupProblem(problem, given, poses, stop, [place for place, _ in placed], is_ranked)


def _store(batch: Batch, problem: LeastSquaresProblem, solved: SolvedFrames, chosen: Rows) -> None:
    """Take over what was solved; base poses that stay keep their very bits."""
    layout, changed = problem.layout, np.flatnonzero(~solved.kept)
    layout_rows = np.unique(np.concatenate((layout.hinge_rows, layout.ball_rows)))
    joints = np.array(layout.rows)[layout_rows]
    rotations = solved.state.rotations[:, layout_rows][..., changed]
    batch.rotations[np.ix_(chosen[changed], joints)] = rotations.transpose(2, 1, 0)
    for k, (j, slide) in enumerate(layout.slides):
        axis = np.array(slide.axis)
        shift = solved.state.slides[k, changed] - batch.translations[chosen[changed], j] @ axis
        batch.translations[chosen[changed], j] += shift[:, None] * axis


# Other ways ------------------------------------------------------------------------------------------------


def _restart(batch: Batch, group: Group, met: NDArray[np.bool_], base: Base) -> None:
    """Look for other ways to goals that are missed, at the first of a run of frames and some of the others;
    what reaches them there is where the frames of the run start once more.

    Targets farther away than their chains are long are left: nothing reaches them.
    """
    for run in _runs(_may_be_met(batch, group, met, base)):
        wait, gap = 0, RETRY_EVERY
        for k in run.tolist():
            if met[k].all() or wait > 0:
                wait -= 1
                continue
            pose = _another_way(batch, group, k, base)
            if pose is None:
                wait, gap = gap - 1, 2 * gap
                continue
            wait = RETRY_EVERY - 1
            left = run[~met[run].all(1)]
            kept = batch.rotations[left].copy(), batch.translations[left].copy()
            _depart(batch, group, left, (k, pose), base)
            met_now = met.copy()
            stage = batch.limits, PRIORITY_STEP
            _solve_some(batch, group, stage, (left, base), met_now, from_base=False)
            worse = ~met_now[left].all(1)
            batch.rotations[left[worse]] = kept[0][worse]
            batch.translations[left[worse]] = kept[1][worse]
            met[left[~worse]] = True


def _may_be_met(batch: Batch, group: Group, met: NDArray[np.bool_], base: Base) -> NDArray[np.bool_]:
    """(R,) rows that miss some goal, without those whose chains are too short for their targets."""
    missed = np.flatnonzero(~met.all(1))
    if len(missed):
        asked = _group_problem(batch, group, (batch.limits, PRIORITY_STEP), missed, base)
        start = start_state(asked.problem.layout, asked.given, asked.poses)
        far = beyond_reach(asked.problem, asked.given, start, asked.stop.position, asked.stop.angle)
        missed = missed[~far]
    marked = np.zeros(len(met), np.bool_)
    marked[missed] = True
    return marked


def _another_way(batch: Batch, group: Group, k: int, base: Base) -> Pose | None:
    """A pose of a row that meets a group's goals, found from other starts; of several the one nearest to the
    base pose."""
    sample, settings, constraints = batch.samples[k], batch.settings, batch.bake_frames.constraints
    row_goals = [
        goal for c in group.members for goal in goals(batch.skeleton, constraints[c], sample.targets[c])
    ]
    present, skeleton, joints = batch.pose(k), sample.reading.skeleton, sorted(group.joints)
    limits = [joint.limit for joint in skeleton.joints]
    solver = frame_conditions(sample, settings, False).solver
    passes = replace(solver, solver=Solver.CCD, restarts=0, max_iterations=min(PASSES, solver.max_iterations))
    first = solve(skeleton, present, row_goals, passes).pose
    names = {joint.name for joint in skeleton.joints}
    entries = [entry for entry in settings.poses if names & entry.rotations.keys()]
    others = starts(
        StartSpace(skeleton, row_goals, limits, joints, entries), present, solver.seed, solver.restarts
    )
    poses = Poses.of([first, *others])
    problem, size = LeastSquaresProblem(skeleton, row_goals, limits, joints), poses.rotations.shape[-1]
    copies = np.full(size, k)
    reference = batch.reference([sample] * size, poses_of(base[0][copies], base[1][copies]))
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets(), reference)
    tolerances = np.full(size, solver.position_tolerance)
    solved = solve_batch(
        problem,
        given,
        start_state(problem.layout, given, poses),
        Limits(tolerances, solver.angle_tolerance, min(STEPS, solver.max_iterations), HURRIED_GAIN),
    )
    met = np.flatnonzero(solved.excess <= 1.0)
    if not len(met):
        return None
    rows = np.array(problem.layout.rows)
    cosines = np.abs((solved.state.rotations[..., met] * base[0][k][rows].T[..., None]).sum(0))
    best = met[int(np.argmax(cosines.sum(0)))]
    nearest = {
        j: Quaternion(solved.state.rotations[:, row, best])
        for row, j in enumerate(problem.layout.rows)
        if j in group.joints
    }
    return Pose(
        tuple(nearest.get(j, rotation) for j, rotation in enumerate(present.rotations)), present.translations
    )


def _depart(batch: Batch, group: Group, rows: Rows, other: tuple[int, Pose], base: Base) -> None:
    """Let joints of rows be as far from their base poses as those of another row are."""
    k, pose = other
    for j in group.joints:
        departure = Quaternion(base[0][k, j]).conjugated() @ pose.rotations[j]
        rotated = unit(multiply(base[0][rows, j].T, unit(np.array(departure[:])[:, None])))
        batch.rotations[rows, j] = rotated.T


def _runs(marked: NDArray[np.bool_]) -> list[Rows]:
    """The places of each run of set entries."""
    edges = np.diff(np.concatenate(([False], marked, [False])).astype(np.int8))
    firsts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [np.arange(first, end) for first, end in zip(firsts, ends, strict=True)]
