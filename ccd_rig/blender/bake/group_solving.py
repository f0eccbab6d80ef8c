# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch solved group by group: parents before children."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mathutils import Matrix, Quaternion

from ...maths.batch import Array, conjugate, multiply, rotate, unit
from ...settings import Solver, SolveStatus
from ...skeleton.joints import Skeleton
from ...solvers.motion import Frames, solve_motion
from ...solvers.pose_search import STATUSES, PoseSearch
from ...solvers.problem_tables import Bones
from ..properties.constraint_values import Constraint, Kind
from ..scene.targets import TargetSample
from ..solve.balance import rotate_skeleton
from ..solve.constraint_goals import goal_targets, goals
from ..solve.level_models import group_level
from ..solve.solving import frame_conditions, solve_active, with_tolerances
from ..solve.world_scale import scales
from .bake_frames import Rows, SmoothedGroup
from .batches import Batch, Group

UNCHANGED = 1e-4
"""Radians up to which a pose is the one that its frame alone leads to."""

States = list[dict[int, str]]
"""Of each row how its constraints ended."""
Groups = list[list[SmoothedGroup]]
"""Of each row the groups that rows beside it have moved."""


def solve_batch(batch: Batch, states: States, smoothed: Groups) -> Generator[float, None, None]:
    """Solve all groups of a batch; gives the number of rows that are solved now and then.

    Args:
        batch: its poses are replaced.
        states, smoothed: filled.
    """
    groups = batch.groups()
    for group in groups:
        solve = _solve_group if batch.takes(group) else _solve_one_by_one
        for count in solve(batch, group, states, smoothed):
            yield count / len(groups)


def _solve_one_by_one(
    batch: Batch, group: Group, states: States, _smoothed: Groups
) -> Generator[int, None, None]:
    """Solve a group that a closed form poses, row by row."""
    for k, sample in enumerate(batch.samples):
        start, conditions = batch.pose(k), frame_conditions(sample, batch.settings, follows=False)
        result, ended = solve_active(
            sample, batch.constraints, group.members, start, conditions, batch.sharper
        )
        for j in group.joints:
            batch.rotations[k, j] = result.pose.rotations[j][:]
            batch.translations[k, j] = result.pose.translations[j][:]
        states[k].update(zip(group.members, ended, strict=True))
        batch.iterations = max(batch.iterations, result.iterations)
        yield 1


def _solve_group(batch: Batch, group: Group, states: States, smoothed: Groups) -> Generator[int, None, None]:
    """Solve a group at all rows; see `solve_batch`.

    A row's pose is the nearest to its base pose of those that meet the goals inside the limits, and where
    rows jump, the nearest motion; see `solvers.motion`.
    """
    for model in _models(batch, group):
        yield from _solve_rows(batch, group, model, states, smoothed)


@dataclass(frozen=True)
class _Model:
    """Rows of a batch at which bones have the same lengths, and balances count along the same axes.

    Attributes:
        rows: (R,) which.
        joints: (J,) those of the batch's joints that a group has to do with.
        skeleton: of these, but for `bones`, turned so that balances count along its axes (`level`).
        turn: what turned it.
        bones: where its joints are at rest.
    """

    rows: Rows
    joints: Rows
    skeleton: Skeleton
    turn: Quaternion
    bones: Bones

    def seen(self, target: TargetSample) -> TargetSample:
        """A target in the turned model."""
        return target if self.turn == Quaternion() else target.rotated(self.turn)


def _models(batch: Batch, group: Group) -> Iterator[_Model]:
    """The rows of a batch by model: most batches are one."""
    constraints = [batch.constraints[c] for c in group.members]
    turns = [Quaternion()] * len(batch.frames)
    if any(constraint.kind is Kind.BALANCE for constraint in constraints):
        turns = [group_level(Matrix(world), constraints) for world in batch.worlds.tolist()]
    joints, whole = _joints_of(batch.skeleton, constraints)
    lengths = np.ascontiguousarray(batch.lengths[:, joints])
    alike: dict[tuple[object, ...], list[int]] = {}
    for k, turn in enumerate(turns):
        alike.setdefault((turn[:], lengths[k].tobytes()), []).append(k)
    for places in alike.values():
        rows, skeleton, turn = np.array(places), whole, turns[places[0]]
        changed = {
            joint.name: {"length": float(length)}
            for joint, length in zip(skeleton.joints, lengths[places[0]], strict=True)
            if joint.length != length
        }
        if changed:  # animated scale
            skeleton = skeleton.replace(changed)
        bones = batch.bones.at(rows)
        bones = Bones(bones.offsets[:, joints], bones.rests[:, joints])
        if turn != Quaternion():
            skeleton, bones = rotate_skeleton(skeleton, turn), _turned(skeleton, bones, turn)
        yield _Model(rows, joints, skeleton, turn, bones)


def _joints_of(skeleton: Skeleton, constraints: Sequence[Constraint]) -> tuple[Rows, Skeleton]:
    """The joints that constraints have to do with, in order, and a skeleton of these alone."""
    if any(constraint.kind is Kind.BALANCE for constraint in constraints):
        return np.arange(len(skeleton)), skeleton
    joints = sorted({j for constraint in constraints for j in skeleton.chain(constraint.tip)})
    if len(joints) == len(skeleton):
        return np.array(joints), skeleton

    def part() -> Skeleton:
        places = {j: place for place, j in enumerate(joints)} | {-1: -1}
        return Skeleton(replace(skeleton.joints[j], parent=places[skeleton.joints[j].parent]) for j in joints)

    return np.array(joints), skeleton.original.computed_once(("part", tuple(joints)), part)


def _turned(skeleton: Skeleton, bones: Bones, turn: Quaternion) -> Bones:
    """Bones of a model that is turned about its origin."""
    offsets, rests = bones.offsets.copy(), bones.rests.copy()
    whole = unit(np.array(turn[:]))[:, None]
    for i, joint in enumerate(skeleton.joints):
        if joint.parent == -1:
            offsets[:, i] = rotate(np.broadcast_to(whole, (4, len(offsets))), offsets[:, i].T).T
        if joint.parent == -1 or not joint.inherit_rotation:
            rests[:, i] = unit(multiply(whole, rests[:, i].T)).T
    return Bones(offsets, rests)


def _shifts(model: _Model, bones: Bones, translations: Array, back: bool) -> Array:
    """Translations of the turned model, or `back` from it: those of joints that do not inherit rotation."""
    shifts, whole = translations.copy(), unit(np.array(model.turn[:]))[:, None]
    for i, joint in enumerate(model.skeleton.joints):
        if joint.parent != -1 and not joint.inherit_rotation and model.turn != Quaternion():
            rest = np.broadcast_to(bones.rests[:, i].T, (4, len(shifts)))
            turn = np.broadcast_to(whole if back else conjugate(whole), rest.shape)
            moved = rotate(turn, rotate(rest, shifts[:, i].T))
            shifts[:, i] = rotate(conjugate(rest), moved).T
    return shifts


def _solve_rows(
    batch: Batch, group: Group, model: _Model, states: States, smoothed: Groups
) -> Generator[int, None, None]:
    """Solve a group at the rows of a model; see `_solve_group`."""
    rows, settings, places = model.rows, batch.settings, np.ix_(model.rows, model.joints)
    plain = batch.bones.at(rows)
    plain = Bones(plain.offsets[:, model.joints], plain.rests[:, model.joints])
    asked = {c: [model.seen(batch.targets[k][c]) for k in rows.tolist()] for c in group.members}
    placed = [
        (c, goal)
        for c, targets in asked.items()
        for goal in goals(model.skeleton, batch.constraints[c], targets[0])
    ]
    scale = scales(batch.frames[rows], batch.worlds[rows])
    tolerances, angle = settings.solver.position_tolerance / scale, settings.solver.angle_tolerance
    solver = with_tolerances(settings.solver, settings.solver.position_tolerance, batch.sharper * angle)
    if settings.error_reduction is not None and solver.solver is Solver.CCD:
        solver = replace(solver, error_reduction=settings.error_reduction)
    moved = {place for place, j in enumerate(model.joints.tolist()) if j in group.joints}
    search = PoseSearch(model.skeleton, [goal for _, goal in placed], solver, moved)
    names = {batch.skeleton.joints[j].name for j in group.joints}
    entries = [entry for entry in settings.poses if names & entry.rotations.keys()]
    frames = Frames(
        search,
        batch.rotations[places],
        _shifts(model, plain, batch.translations[places], back=False),
        tuple(goal_targets(goal, asked[c]).T for c, goal in placed),
        model.bones,
        batch.sharper * tolerances,
        (lambda: search.templates(entries)) if solver.restarts else None,
        *_neighbours(batch, rows),
        closes=0 < batch.period < len(rows) == len(batch.frames),
    )
    motion, apart = yield from solve_motion(frames, settings.smoothness)
    batch.rotations[places] = motion.rotations
    batch.translations[places] = _shifts(model, plain, motion.translations, back=True)
    batch.iterations = max(batch.iterations, int(motion.steps.max(initial=0)))
    off = (motion.distances > tolerances[:, None]) | (motion.angles > angle)
    for n, k in enumerate(rows.tolist()):
        ended = STATUSES[motion.statuses[n]]
        missed = {c for (c, _), is_off in zip(placed, off[n], strict=True) if is_off}
        for c in group.members:
            states[k][c] = (ended if c in missed else SolveStatus.CONVERGED).name
        if apart[n] > UNCHANGED and not missed:
            smoothed[k].append(SmoothedGroup(group.members, float(apart[n])))


def _neighbours(batch: Batch, rows: Rows) -> tuple[Rows, Rows]:
    """(R,) each: the places among these rows of the row before each, and after it; -1 where there is none."""
    beside = (np.diff(rows) == 1) & (np.diff(batch.runs[rows]) == 0)
    places = np.arange(len(rows))
    before, after = places - 1, places + 1
    before[1:][~beside] = after[:-1][~beside] = after[-1:] = -1
    if batch.period > 0 and len(rows) == len(batch.frames):
        before[0], after[batch.period - 1] = batch.period - 1, 0
        before[batch.period :] = after[batch.period :] = -1
    return before, after
