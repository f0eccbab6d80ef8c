# SPDX-License-Identifier: GPL-3.0-or-later
"""Other ways to goals that a group's rows miss: from other starts, and on along the run of frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...maths.batch import multiply, unit
from ...settings import Solver
from ...skeleton.pose import Pose
from ...solvers.least_squares.problem import MILD_STEP, PRIORITY_STEP, LeastSquaresProblem
from ...solvers.least_squares.reach import unreachable
from ...solvers.least_squares.requests import Search, together
from ...solvers.least_squares.solve import HURRIED_GAIN, Limits
from ...solvers.least_squares.state import Bones, Poses, start_state
from ...solvers.least_squares.windowed import solve_windowed
from ...solvers.restarts import StartSpace, starts
from ...solvers.solve import solve
from ..solve.contact_poses import JointPoses
from ..solve.level_models import level_model
from ..solve.solving import frame_conditions
from .bake_frames import Rows
from .batches import Batch, Group, poses_of
from .group_problem import STEPS, group_problem
from .group_result import GroupResult
from .group_rows import solve_rows

PASSES = 20
"""Most passes of CCD that look for another way to goals that are missed."""
RETRY_EVERY = 16
"""In a run of frames that miss their goals other ways are looked for at the first and so many frames later;
after each that has none the next waits twice as long."""


def restart_group(batch: Batch, group: Group, result: GroupResult, base: JointPoses) -> Search[None]:
    """Look for other ways to goals that are missed, in all runs of frames side by side.

    Targets that are too far away, or too far apart, are left: nothing reaches them.
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
    yield from solve_rows(batch, group, stage, some, found, from_base=False)
    worse = ~found.met[left].all(1)
    batch.rotations[left[worse]] = kept[0][worse]
    batch.translations[left[worse]] = kept[1][worse]
    result.put(left[~worse], found)


def _may_be_met(batch: Batch, group: Group, met: NDArray[np.bool_], base: JointPoses) -> NDArray[np.bool_]:
    """(R,) rows that miss some goal, without those whose targets are too far away, or too far apart."""
    missed = np.flatnonzero(~met.all(1))
    if len(missed):
        asked = group_problem(batch, group, (batch.limits, PRIORITY_STEP), missed, base)
        start = start_state(asked.problem.layout, asked.given, asked.poses)
        far = unreachable(asked.problem, asked.given, start, asked.stop.position, asked.stop.angle)
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
    step = MILD_STEP if asked.is_ranked else PRIORITY_STEP
    problem, size = LeastSquaresProblem(skeleton, row_goals, limits, joints, step), poses.rotations.shape[-1]
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
