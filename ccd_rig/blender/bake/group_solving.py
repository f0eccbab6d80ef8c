# SPDX-License-Identifier: GPL-3.0-or-later
"""One group of constraints solved at all frames of a batch, by least squares.

A frame's pose is, of those that meet its goals inside the limits, the one nearest to its base pose
(`solvers/least_squares/sequence.py`). It does not depend on the frames before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...limits.shapes import Limit
from ...maths.batch import at_least_two, multiply, unit
from ...settings import Solver
from ...skeleton.pose import Pose
from ...solvers.least_squares.comfort_tolerances import Relaxed, solve_eased
from ...solvers.least_squares.frames import Frames
from ...solvers.least_squares.optimality import STATIONARY, steepness
from ...solvers.least_squares.problem import MILD_STEP, PRIORITY_STEP, LeastSquaresProblem
from ...solvers.least_squares.reach import beyond_reach
from ...solvers.least_squares.requests import Search, together
from ...solvers.least_squares.sequence import Sequence as SolvedFrames
from ...solvers.least_squares.solve import Limits
from ...solvers.least_squares.state import Bones, Poses, State, start_state
from ...solvers.least_squares.windowed import held_at_border, solve_frames, solve_windowed
from ...solvers.many_search import HURRIED_GAIN
from ...solvers.restarts import StartSpace, starts
from ...solvers.solve import solve
from ..solve.contact_poses import JointPoses
from ..solve.level_models import level_model
from ..solve.solving import frame_conditions
from .bake_frames import Rows
from .batches import Batch, Group, poses_of
from .group_problem import STEPS, GroupProblem, Stage, group_problem
from .group_result import GroupResult

UNMOVED = 1e-12
"""Components of a quaternion, and model units, that differ by less are the same."""
PASSES = 20
"""Most passes of CCD that look for another way to goals that are missed."""
SHARPENING = 8
"""Most steps in which rows that meet their goals are brought still nearer."""
RETRY_EVERY = 16
"""In a run of frames that miss their goals other ways are looked for at the first and so many frames later;
after each that has none the next waits twice as long."""


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
            yield from _restart(batch, group, result, base)
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
        if not (yield from _solve_some(batch, group, (limits, step), (chosen, base), result)):
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
    _store(batch, asked.problem, state, (chosen, unmoved))
    batch.iterations = max(batch.iterations, int(eased.iterations.max(initial=0)))
    _note_met(asked, state, met, chosen)
    return np.asarray(met[chosen].all(1) | eased.at_ease)


def _note_met(asked: GroupProblem, state: State, met: NDArray[np.bool_], chosen: Rows) -> None:
    """Bring (R, members) up to date for some of the rows: which constraints are met, inside their windows."""
    problem, stop, given = asked.problem, asked.stop, asked.given
    met[chosen] = True
    missed = problem.evaluate(given, state).missed(stop.position, stop.angle)
    for place, each in zip(asked.places, missed, strict=True):
        met[chosen, place] &= ~each
    over = problem.overstretched(given, state) if problem.windows else ()
    for window, stretched in zip(problem.windows, over, strict=True):
        met[chosen, asked.places[window.number]] &= stretched <= stop.position


def _base_of(batch: Batch, group: Group) -> JointPoses:
    """The poses of all rows with a group's joints at their base poses."""
    rotations, translations = batch.rotations.copy(), batch.translations.copy()
    places = np.ix_(np.flatnonzero(batch.held), sorted(group.joints))
    rotations[places], translations[places] = batch.base.rotations[places], batch.base.translations[places]
    return JointPoses(rotations, translations)


def _solve_some(
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
    _store(batch, problem, solved.state, (chosen, solved.kept))
    batch.iterations = max(batch.iterations, int(solved.iterations.max(initial=0)))
    met = result.met
    _note_met(asked, solved.state, met, chosen)
    met[batch.held] = True
    result.led[chosen], result.apart[chosen] = solved.led, solved.apart
    return asked.is_ranked


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
        _store(batch, problem, solved.state, (chosen[some], np.zeros(len(some), np.bool_)))


def _store(
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


# Other ways ------------------------------------------------------------------------------------------------


def _restart(batch: Batch, group: Group, result: GroupResult, base: JointPoses) -> Search[None]:
    """Look for other ways to goals that are missed, in all runs of frames side by side.

    Targets farther away than their chains are long are left: nothing reaches them.
    """
    runs = _runs(_may_be_met(batch, group, result.met, base))
    yield from together([_restart_run(batch, group, run, result, base) for run in runs])


def _restart_run(
    batch: Batch, group: Group, run: Rows, result: GroupResult, base: JointPoses
) -> Search[None]:
    """Look for other ways at the first of a run of frames and some of the others; what reaches the goals
    there is where the frames of the run start once more. Until then the tries go on side by side."""
    rest, gap = run, RETRY_EVERY
    while len(rest):
        tries, gaps = _tries(rest, result.met, gap)
        poses = yield from together([_another_way(batch, group, k, base) for k in tries])
        found = next((place for place, pose in enumerate(poses) if pose is not None), None)
        if found is None:
            return
        k, gap = tries[found], gaps[found]
        pose = poses[found]
        assert pose is not None
        left = run[~result.met[run].all(1)]
        yield from _start_once_more(batch, group, (left, base), (k, pose), result)
        rest = rest[np.flatnonzero(rest == k)[0] + RETRY_EVERY :]


def _tries(run: Rows, met: NDArray[np.bool_], gap: int) -> tuple[list[int], list[int]]:
    """Where in a run other ways are looked for as long as there are none, and how long the next waits after
    each of these, `gap` after the first."""
    tries: list[int] = []
    gaps: list[int] = []
    wait = 0
    for k in run.tolist():
        if met[k].all() or wait > 0:
            wait -= 1
            continue
        tries.append(k)
        gaps.append(gap)
        wait, gap = gap - 1, 2 * gap
    return tries, gaps


def _start_once_more(
    batch: Batch, group: Group, some: tuple[Rows, JointPoses], other: tuple[int, Pose], result: GroupResult
) -> Search[None]:
    """Let rows start as far from their base poses as another row is, and keep those that meet their goals.

    `some` are the rows, and the base poses of all; `other` is that row with its pose.
    """
    left, base = some
    kept = batch.rotations[left].copy(), batch.translations[left].copy()
    _depart(batch, group, left, other, base)
    found = result.copy()
    stage = batch.limits, PRIORITY_STEP
    yield from _solve_some(batch, group, stage, some, found, from_base=False)
    worse = ~found.met[left].all(1)
    batch.rotations[left[worse]] = kept[0][worse]
    batch.translations[left[worse]] = kept[1][worse]
    result.put(left[~worse], found)


def _may_be_met(batch: Batch, group: Group, met: NDArray[np.bool_], base: JointPoses) -> NDArray[np.bool_]:
    """(R,) rows that miss some goal, without those whose chains are too short for their targets."""
    missed = np.flatnonzero(~met.all(1))
    if len(missed):
        asked = group_problem(batch, group, (batch.limits, PRIORITY_STEP), missed, base)
        start = start_state(asked.problem.layout, asked.given, asked.poses)
        far = beyond_reach(asked.problem, asked.given, start, asked.stop.position, asked.stop.angle)
        missed = missed[~far]
    marked = np.zeros(len(met), np.bool_)
    marked[missed] = True
    return marked


def _another_way(batch: Batch, group: Group, k: int, base: JointPoses) -> Search[Pose | None]:
    """A pose of a row that meets a group's goals, found from other starts; of several the one nearest to the
    base pose. Where none does, what is nearest to the base does not matter."""
    sample, settings = batch.samples[k], batch.settings
    present, skeleton, joints = batch.pose(k), sample.reading.skeleton, sorted(group.joints)
    limits = [joint.limit for joint in skeleton.joints]
    solver = frame_conditions(sample, settings, False).solver
    passes = replace(solver, solver=Solver.CCD, restarts=0, max_iterations=min(PASSES, solver.max_iterations))
    members = {c: batch.constraints[c] for c in group.members}
    model = level_model(sample, members, group.joints, present)
    first = model.back(solve(model.skeleton, model.pose, model.goals, passes).pose)
    names = {joint.name for joint in skeleton.joints}
    entries = [entry for entry in settings.poses if names & entry.rotations.keys()]
    asked = group_problem(batch, group, (batch.limits, PRIORITY_STEP), np.array([k, k]), base)
    row_goals = asked.goals
    others = starts(
        StartSpace(skeleton, row_goals, limits, joints, entries), present, solver.seed, solver.restarts
    )
    poses = Poses.of([first, *others])
    problem, size = LeastSquaresProblem(skeleton, row_goals, limits, joints), poses.rotations.shape[-1]
    copies = np.full(size, k)
    reference = batch.reference([sample] * size, poses_of(base[0][copies], base[1][copies]))
    targets = [target[..., :1] for target in asked.asked.targets]
    given = problem.given(Bones.of(skeleton), poses, targets, reference)
    tolerances = np.full(size, solver.position_tolerance)
    stop = Limits(tolerances, solver.angle_tolerance, min(STEPS, solver.max_iterations), HURRIED_GAIN)
    start = start_state(problem.layout, given, poses)
    solved = yield from solve_windowed(problem, replace(given, reference=None), start, stop)
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


def _depart(batch: Batch, group: Group, rows: Rows, other: tuple[int, Pose], base: JointPoses) -> None:
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
