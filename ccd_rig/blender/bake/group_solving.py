# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches solved group by group: parents before children."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...goals import Goal, PositionGoal
from ...limits.batch import BatchLimits
from ...limits.shapes import Limit
from ...maths.batch import Array, Mask, angles_between, conjugate, length, multiply, rotate, unit
from ...maths.rotations import between
from ...settings import Solver, SolveStatus
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import forward_kinematics_of_frames
from ...skeleton.pose import Pose
from ...solvers.motion import Frames, Motion, solve_motion
from ...solvers.motion import Kind as FrameKind
from ...solvers.pose_search import STATUSES, PoseSearch
from ...solvers.problem_tables import Bones, GoalSettings
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from ..scene.targets import AXES, TargetRows
from ..solve.constraint_goals import (
    body_joints,
    chain_joints,
    goal_targets,
    goals_of_rows,
    has_window,
    with_body,
)
from ..solve.frame_settings import FrameSolveSettings
from ..solve.grouping import are_solved_at_once, groups
from ..solve.methods import solve_once, spare_length
from ..solve.planting import JointPoses
from ..solve.soft_limbs import SoftLimb, effectors, is_soft, soft_limb
from .bake_frames import BakeFrames, HelpedRow, Rows, SmoothedGroup
from .report import EASED, GAVE_WAY


def scale(sample: FrameSample) -> float:
    """World metres per unit of armature space, along the axis that is stretched most.

    A tolerance divided by it is never looser than the one in world metres, whatever the scale and shear.
    """
    return _scale(sample.frame, tuple(map(tuple, sample.matrix_world.to_3x3())))


def scales(frames: Iterable[float], worlds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R,) the same at R frames, or (1,) for all, with (R, 3, 3) from armature space to the world."""
    if (worlds == worlds[:1]).all():
        worlds = worlds[:1]
    return np.array(
        [
            _scale(frame, tuple(map(tuple, world)))
            for frame, world in zip(frames, worlds.tolist(), strict=False)
        ]
    )


def _scale(frame: float, rows: tuple[tuple[float, ...], ...]) -> float:
    largest = _largest_stretch(rows)
    if not (np.isfinite(largest) and largest > 0.0):
        raise RigError(f"frame {frame:g}: the armature object has a scale of 0: give it another scale")
    return largest


@lru_cache(maxsize=16)
def _largest_stretch(rows: tuple[tuple[float, ...], ...]) -> float:
    """The spectral norm of a 3x3 matrix; most armature objects keep theirs."""
    return float(np.linalg.norm(np.array(rows), ord=2))


STRAIGHT = 1e-7
"""Radians: model and world agree, but for float32."""


def level(matrix_world: Any, axes: Sequence[bool]) -> Quaternion:
    """The turn of the model after which the world's `axes` of a centre of mass are right if the model's are.

    With one axis that counts, the points that are right make a plane, with two a line; `matrix_world` (from
    armature space to the world; it may scale, shear and mirror) takes it from there to here. A plane or a
    line is turned to where `BalanceGoal` has it. With all three there is one point, and nothing to turn.
    """
    if all(axes):
        return Quaternion()
    linear = matrix_world.to_3x3()
    if sum(axes) == 1:
        k = axes.index(True)
        world_axis = linear.transposed() @ AXES[f"POS_{'XYZ'[k]}"]  # the plane's normal
    else:
        k = axes.index(False)
        world_axis = linear.inverted() @ AXES[f"POS_{'XYZ'[k]}"]  # along the line
    model_axis = AXES[f"POS_{'XYZ'[k]}"]
    side = world_axis if world_axis.dot(model_axis) >= 0.0 else -world_axis
    turn = between(side.normalized(), model_axis)
    return turn if Vector(turn[1:]).length > STRAIGHT else Quaternion()


def group_level(matrix_world: Matrix, constraints: Iterable[Constraint]) -> Quaternion:
    """The rotation of the model after which all balances of a group count along its axes (`level`)."""
    balances = [constraint for constraint in constraints if constraint.kind is Kind.BALANCE]
    if not balances:
        return Quaternion()
    rotation = level(matrix_world, balances[0].balance_axes)
    for other in balances[1:]:
        if level(matrix_world, other.balance_axes) != rotation:
            raise RigError(
                f"Constraint '{other.name}' balances along other axes than '{balances[0].name}', while "
                "the armature object is turned: give both the same axes, or clear the object's rotation"
            )
    return rotation


def rotate_skeleton(skeleton: Skeleton, turn: Quaternion) -> Skeleton:
    """The same skeleton in a model that is turned about its origin."""
    joints = []
    for joint in skeleton.joints:
        if joint.parent == -1:
            rest = (turn @ joint.rest_rotation).normalized()
            joint = replace(joint, offset=turn @ joint.offset, rest_rotation=rest)
        elif not joint.inherit_rotation:
            undo = _undo_rotation(joint, turn)
            slides = tuple(replace(each, axis=tuple(undo @ Vector(each.axis))) for each in joint.slides)
            offsets = tuple(
                replace(each, axis=tuple(undo @ Vector(each.axis))) for each in joint.coupled_offsets
            )
            rest = (turn @ joint.rest_rotation).normalized()
            joint = replace(joint, rest_rotation=rest, slides=slides, coupled_offsets=offsets)
        joints.append(joint)
    return Skeleton(joints)


def _undo_rotation(joint: Joint, turn: Quaternion) -> Quaternion:
    """What undoes the turn in the rest axes of a joint whose rest, but not whose shift, is the model's.

    With R_p' = T R_p and rest' = T rest, T R_p rest t = R_p' rest' t' for t' = rest^-1 T^-1 rest t.
    """
    rest = joint.rest_rotation
    return rest.inverted() @ turn.inverted() @ rest


@dataclass
class Batch:
    """R frames with the same constraints in force and the same limits.

    Attributes:
        frames: (R,) frame numbers.
        constraints: all of them; what a group asks for.
        active: places of those in force.
        samples: what was evaluated: of each row where CCD solves frames one by one, else of the first alone.
        targets: of each row and constraint, what they ask for.
        worlds: (R, 3, 3) from armature space to the world.
        limits: of each joint.
        bones: where joints are at rest, at each row or all.
        lengths: (R, J) of the joints' bones.
        base: the poses that joints are to stay near to.
        settings: how frames are solved.
        rotations: (R, J, 4), solved as far as groups are.
        translations: (R, J, 3) likewise.
        sharper: part of the tolerances to which rows are solved.
        iterations: most steps of a row.
        states: of each row how its constraints ended.
        smoothed: of each row the groups that rows beside it have moved.
        helped: of each row what the body did for chains that miss their targets alone.
        idle: constraints that left their chains as they were, see `_given_way`.
        influences: (R, C) of the constraints; None where the body does not help.
        left: of each row and constraint with an influence below 1 how much of what its chain misses the body
            leaves, armature space.
    """

    frames: Array
    constraints: Sequence[Constraint]
    active: tuple[int, ...]
    samples: Sequence[FrameSample]
    targets: TargetRows
    worlds: Array
    limits: tuple[Limit | None, ...]
    bones: Bones
    lengths: Array
    base: JointPoses
    settings: FrameSolveSettings
    rotations: Array = field(init=False)
    translations: Array = field(init=False)
    sharper: float = 1.0
    iterations: int = 0
    states: list[dict[int, str]] = field(init=False)
    smoothed: list[list[SmoothedGroup]] = field(init=False)
    helped: dict[int, HelpedRow] = field(default_factory=dict)
    idle: frozenset[int] = frozenset()
    influences: Array | None = None
    left: dict[int, dict[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rotations, self.translations = self.base.at(slice(None))
        self.states, self.smoothed = [{} for _ in self.frames], [[] for _ in self.frames]

    @classmethod
    def of(
        cls,
        bake_frames: BakeFrames,
        rows: Rows,
        samples: Sequence[FrameSample],
        settings: FrameSolveSettings,
    ) -> Batch:
        """Rows of a bake's frames, in order of time, that stand at their reference poses."""
        return cls(
            bake_frames.frames[rows],
            bake_frames.constraints,
            samples[0].active,
            samples,
            bake_frames.targets.at(rows),
            bake_frames.worlds[rows],
            bake_frames.limits[int(rows[0])],
            bones_of(bake_frames, rows),
            bake_frames.lengths[rows],
            JointPoses(bake_frames.reference_poses, bake_frames.translations).at(rows),
            settings,
            influences=bake_frames.influences[rows],
        )

    @property
    def skeleton(self) -> Skeleton:
        """Of the first row."""
        return self.samples[0].reading.skeleton

    @cached_property
    def in_force(self) -> frozenset[int]:
        """The constraints of `active`."""
        return frozenset(self.active)

    def pose(self, k: int) -> Pose:
        """Row `k` of the batch as it stands now."""
        return Pose.of_arrays(self.rotations[k], self.translations[k])


def bones_of(bake_frames: BakeFrames, rows: Rows) -> Bones:
    """The bones at rows of a bake's frames, in order of time; one row where all are the same."""
    if bake_frames.same_bones(int(rows[0]), int(rows[-1])):
        rows = rows[:1]
    return Bones(bake_frames.offsets[rows], unit(bake_frames.rests[rows], axis=-1))


UNCHANGED = 1e-4
"""Radians up to which a pose is the one that its frame alone leads to."""


@dataclass(frozen=True)
class Group:
    """Constraints that are solved together, and the joints that they move."""

    joints: frozenset[int]
    members: tuple[int, ...]

    def active_in(self, batch: Batch) -> tuple[int, ...]:
        """Its members that are in force in a batch."""
        return tuple(c for c in self.members if c in batch.in_force)


def solve_batches(batches: Sequence[Batch], period: int = 0) -> Generator[float, None, None]:
    """Solve batches of the same constraints as one motion; gives the number of solved rows now and then.

    Poses, states and what is smoothed are put in the batches.

    Args:
        batches: each with rows of its own, in any order of time.
        period: after how many rows of all the first one comes again; 0: they are no loop.
    """
    constraints = batches[0].constraints
    active = sorted({c for batch in batches for c in batch.active})
    members_by_joints = groups(batches[0].skeleton, constraints, active)
    every = np.sort(np.concatenate([batch.frames for batch in batches]))
    for joints, members in members_by_joints:
        group = Group(frozenset(joints), tuple(members))
        at_once: list[Batch] = []
        for batch in batches:
            present = group.active_in(batch)
            if are_solved_at_once([constraints[c] for c in present]):
                at_once += [batch] if present else []
            else:
                for count in _solve_one_by_one(group, batch):
                    yield count / len(members_by_joints)
        if at_once:
            for count in _solve_group(group, at_once, every, period):
                yield count / len(members_by_joints)
    yield from _let_body_help(batches, every, period)


def _let_body_help(batches: Sequence[Batch], every: Array, period: int) -> Generator[float, None, None]:
    """Let the body go along where chains miss their targets, from where they came to alone.

    Of the poses that meet all targets it is the one nearest to that of the chains alone, so that the body
    goes no further than it must, and begins to go where the first target is missed.
    """
    constraints = batches[0].constraints
    whole = [c for c, each in enumerate(constraints) if each.body_length]
    wanted = [[Help.at(states, whole) for states in batch.states] for batch in batches]
    if not any(map(any, wanted)):
        return
    skeleton = batches[0].skeleton
    members = sorted({c for batch in batches for c in batch.active})
    joints = {
        j for c in members for part in (chain_joints, body_joints) for j in part(skeleton, constraints[c])
    }
    before = [(batch.rotations.copy(), batch.translations.copy()) for batch in batches]
    idle = frozenset(c for c in members if not any(_is_moved(batch, c) for batch in batches))
    for batch in batches:
        batch.idle = idle
    group = Group(frozenset(joints), tuple(members))
    for _ in _solve_group(group, batches, every, period, wanted):
        yield 0.0
    for batch, rows, (rotations, translations) in zip(batches, wanted, before, strict=True):
        for k, chains in enumerate(rows):
            if chains is not None:
                batch.helped[k] = _helped_row(batch, k, chains.all, rotations[k], translations[k])


def _is_moved(batch: Batch, c: int) -> bool:
    """Whether a constraint has moved joints of its chain from their base poses, at any row."""
    joints = list(chain_joints(batch.skeleton, batch.constraints[c]))
    apart = angles_between(batch.base.rotations[:, joints], batch.rotations[:, joints], axis=-1)
    return bool(apart.max(initial=0.0) > MOVED)


MOVED = 0.01
"""Radians by which a chain departs from its base pose that is more than the tolerance of its target."""


class Help(NamedTuple):
    """Which constraints the body helps at a row.

    Attributes:
        missed: those that miss their targets alone.
        eased: those that would get there, and stay behind by their Softness.
    """

    missed: tuple[int, ...] = ()
    eased: tuple[int, ...] = ()

    @classmethod
    def at(cls, states: Mapping[int, str], whole: Sequence[int]) -> Help | None:
        """By how the constraints that have a body ended; None where it helps none."""
        reached = SolveStatus.CONVERGED.name
        off = [c for c in whole if states.get(c, reached) != reached]
        eased = tuple(c for c in off if states[c] == EASED)
        return cls(tuple(c for c in off if c not in eased), eased) if off else None

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(sorted(self.missed + self.eased))


NO_HELP = Help()


def _helped_row(
    batch: Batch, k: int, chains: tuple[int, ...], rotations: Array, translations: Array
) -> HelpedRow:
    """What the body did at a row, whose joints stood otherwise before."""
    joints = sorted({j for c in chains for j in body_joints(batch.skeleton, batch.constraints[c])})
    angles = angles_between(rotations[joints], batch.rotations[k, joints], axis=-1)
    ways = length(batch.translations[k, joints] - translations[joints], axis=-1)
    farthest, longest = int(np.argmax(angles)), int(np.argmax(ways))
    unit_length = float(scales(batch.frames[[k]], batch.worlds[[k]])[0])
    metres = float(ways[longest]) * unit_length
    left = {c: unit_length * each for c, each in batch.left.get(k, {}).items()}
    return HelpedRow(chains, joints[farthest], float(angles[farthest]), joints[longest], metres, left)


def _solve_one_by_one(group: Group, batch: Batch) -> Generator[int, None, None]:
    """Solve a group that a closed form poses, row by row."""
    members, settings = group.active_in(batch), batch.settings.solver
    constraints = [batch.constraints[c] for c in members]
    if len(constraints) > 1:
        alone = next(each for each in constraints if not are_solved_at_once([each]))
        name, other = alone.name, next(each.name for each in constraints if each is not alone)
        raise RigError(
            f"Constraint '{name}' poses its bones alone, but '{other}' moves them too: shorten a chain, or "
            "set Method to Loop"
        )
    for k, sample in enumerate(batch.samples):
        skeleton, target = sample.reading.skeleton, sample.targets[members[0]]
        solver = replace(settings, position_tolerance=settings.position_tolerance / scale(sample))
        result = solve_once(skeleton, batch.pose(k), constraints[0], target, solver)
        for j in group.joints:
            batch.rotations[k, j] = result.pose.rotations[j][:]
            batch.translations[k, j] = result.pose.translations[j][:]
        state = result.status.name
        if result.status is not SolveStatus.CONVERGED and target.settings_of(constraints[0]).soft > 0.0:
            spare = spare_length(skeleton, result.pose, constraints[0]) + solver.position_tolerance
            others = all(error.angle <= solver.angle_tolerance for error in result.errors)
            state = EASED if others and result.errors[0].distance <= spare else state
        batch.states[k][members[0]] = state
        batch.iterations = max(batch.iterations, result.iterations)
        yield 1


def _solve_group(
    group: Group,
    batches: Sequence[Batch],
    every: Array,
    period: int,
    wanted: Sequence[Sequence[Help | None]] | None = None,
) -> Generator[int, None, None]:
    """Solve a group at all rows of batches in which any of it is in force.

    A row's pose is the nearest to its base pose of those that meet the goals inside the limits, and where
    rows jump, the nearest motion; see `solvers.motion`.

    Args:
        group: what is solved.
        batches: where.
        every: (R,) frames of all batches, increasing.
        period: see `solve_batches`.
        wanted: of each row of each batch what the body helps, or None for one that is left as it is; None:
            it helps nowhere.
    """
    patterns = wanted or [[NO_HELP] * len(batch.frames) for batch in batches]
    shares = [
        _Share.of(group, batch, model)
        for batch, each in zip(batches, patterns, strict=True)
        for model in _models(batch, group, each)
    ]
    sizes = [len(share.model.rows) for share in shares]
    order = np.argsort(np.concatenate([share.batch.frames[share.model.rows] for share in shares]))
    for share in shares:
        share.hold_unmoved()
    poses = [share.poses() for share in shares]
    numbers, before, after, closes = _neighbours(every, period, shares, order)
    frames = Frames(
        tuple(share.kind for share in shares),
        np.repeat(np.arange(len(shares)), sizes)[order],
        np.concatenate([np.arange(size) for size in sizes])[order],
        np.concatenate([rotations for rotations, _ in poses])[order],
        np.concatenate([translations for _, translations in poses])[order],
        numbers,
        before,
        after,
        closes,
    )
    motion = yield from solve_motion(frames, batches[0].settings.smoothness)
    places = np.split(np.argsort(order), np.cumsum(sizes)[:-1])
    for share, rows in zip(shares, places, strict=True):
        share.store(motion, rows)


def _neighbours(
    every: Array, period: int, shares: Sequence[_Share], order: Rows
) -> tuple[Rows, Rows, Rows, bool]:
    """(R,) each, of rows in order of time: their numbers, and the places of the rows before and after each.

    A place of -1 means that there is none: rows in which nothing of a group is in force part those on either
    side. Last, whether the row after a period of others is there, which is the first one once more.
    """
    frames = np.concatenate([share.batch.frames[share.model.rows] for share in shares])[order]
    step = float(np.diff(every).min(initial=np.inf))
    numbers = np.searchsorted(every, frames)
    beside = np.diff(numbers) == 1
    places = np.arange(len(order))
    before, after = places - 1, places + 1
    before[1:][~beside] = after[:-1][~beside] = after[-1:] = -1
    closes = False
    if period > 0:
        again = numbers >= period
        first, last = np.flatnonzero(numbers == 0), np.flatnonzero(numbers == period - 1)
        before[again] = after[again] = after[last] = -1
        if len(first) and len(last):
            before[first], after[last] = last, first
        closes = bool(again.any() and len(first))
    offset = round(every[0] / step) if np.isfinite(step) else 0
    return numbers + offset, before, after, closes


@dataclass(frozen=True)
class _Model:
    """Rows of a batch at which bones have the same lengths, balances count along the same axes, and the same
    constraints have reach windows.

    Attributes:
        rows: (R,) which.
        joints: (J,) those of the batch's joints that a group has to do with.
        skeleton: of these, but for `bones`, turned so that balances count along its axes (`level`).
        turn: what turned it.
        bones: where its joints are at rest.
        help: what the body helps, since chains do not get to their targets alone.
    """

    rows: Rows
    joints: Rows
    skeleton: Skeleton
    turn: Quaternion
    bones: Bones
    help: Help

    @property
    def helped(self) -> tuple[int, ...]:
        """Constraints that the body helps."""
        return self.help.all

    def seen(self, targets: TargetRows) -> TargetRows:
        """Targets in the turned model, armature space as float32 has it."""
        return targets if self.turn == Quaternion() else targets.rotated(np.array(self.turn[:]))

    def shifts(self, batch: Batch, translations: Array, back: bool) -> Array:
        """Translations of a batch's rows in the turned model, or `back` from it; those that inherit rotation
        stay."""
        shifts = translations.copy()
        if self.turn == Quaternion():
            return shifts
        bones, whole = batch.bones.at(self.rows), unit(np.array(self.turn[:]))[:, None]
        rests = bones.rests[:, self.joints]
        for i, joint in enumerate(self.skeleton.joints):
            if joint.parent != -1 and not joint.inherit_rotation:
                rest = np.broadcast_to(rests[:, i].T, (4, len(shifts)))
                turn = np.broadcast_to(whole if back else conjugate(whole), rest.shape)
                moved = rotate(turn, rotate(rest, shifts[:, i].T))
                shifts[:, i] = rotate(conjugate(rest), moved).T
        return shifts


def _models(batch: Batch, group: Group, wanted: Sequence[Help | None]) -> Iterator[_Model]:
    """The rows of a batch by model: most batches are one."""
    members = group.active_in(batch)
    active = [batch.constraints[c] for c in members]
    turns = [Quaternion()] * len(batch.frames)
    balances = any(constraint.kind is Kind.BALANCE for constraint in active)
    if balances:
        turns = [group_level(Matrix(world), active) for world in batch.worlds.tolist()]
    joints, whole = _joints_of(batch.skeleton, [batch.constraints[c] for c in group.members])
    lengths = np.ascontiguousarray(batch.lengths[:, joints])
    placed = Bones(batch.bones.offsets[:, joints], batch.bones.rests[:, joints])
    windows = np.array([has_window(batch.constraints[c], batch.targets, c) for c in members])
    alike: dict[tuple[object, ...], list[int]] = {(): list(range(len(batch.frames)))}
    is_mixed = any(each != NO_HELP for each in wanted)
    if balances or is_mixed or (lengths != lengths[:1]).any() or (windows != windows[:, :1]).any():
        alike.clear()
        for k in range(len(batch.frames)):
            if wanted[k] is not None:
                key = turns[k][:], lengths[k].tobytes(), windows[:, k].tobytes(), wanted[k]
                alike.setdefault(key, []).append(k)
    for places in alike.values():
        rows, skeleton, turn = np.array(places), whole, turns[places[0]]
        changed = {
            joint.name: {"length": float(length)}
            for joint, length in zip(skeleton.joints, lengths[places[0]], strict=True)
            if joint.length != length
        }
        if changed:  # animated scale
            skeleton = skeleton.replace(changed)
        bones = placed.at(rows)
        if turn != Quaternion():
            skeleton, bones = rotate_skeleton(skeleton, turn), _turned(skeleton, bones, turn)
        yield _Model(rows, joints, skeleton, turn, bones, wanted[places[0]] or NO_HELP)


def _joints_of(skeleton: Skeleton, constraints: Sequence[Constraint]) -> tuple[Rows, Skeleton]:
    """The joints that constraints have to do with, in order, and a skeleton of these alone."""
    if any(constraint.kind is Kind.BALANCE for constraint in constraints):
        return np.arange(len(skeleton)), skeleton
    joints = sorted({j for constraint in constraints for j in skeleton.chain(constraint.tip)})
    return np.array(joints), skeleton.part(joints)


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


def _given_way(
    batch: Batch, members: tuple[int, ...], helped: tuple[int, ...], body: set[int]
) -> tuple[int, ...]:
    """Constraints that ask for nothing while the body helps others.

    Those of its own bones; those that move bones of it too, such as a head with the spine, and ask for what
    the base poses have; those whose targets only go along with the target of such a one.
    """
    constraints, others = batch.constraints, [c for c in members if c not in helped]
    places = {c: batch.skeleton.index(constraints[c].tip) for c in others if constraints[c].tip}
    way = [
        c
        for c in others
        if constraints[c].kind is Kind.REACH
        and (places.get(c) in body or (c in batch.idle and _shares(batch, c, body)))
    ]
    names = {constraints[c].name for c in way}
    way += [c for c in others if c not in way and constraints[c].carrier in names]
    return tuple(sorted(way))


def _shares(batch: Batch, c: int, body: set[int]) -> bool:
    """Whether a constraint moves bones of the body too."""
    return not body.isdisjoint(chain_joints(batch.skeleton, batch.constraints[c]))


def _helped_goal(batch: Batch, model: _Model, c: int, goal: Goal) -> Goal:
    """A goal where the body helps chains."""
    goal = with_body(model.skeleton, batch.constraints[c], goal)
    return replace(goal, priority=goal.priority + LATER) if c in model.help.missed else goal


LATER = 2
"""By which targets that are missed give way to those that are met, as priorities are."""


def _soft_limbs(
    batch: Batch, model: _Model, members: Sequence[int], wanted: TargetRows, moving: Collection[int]
) -> dict[int, SoftLimb]:
    """How constraints are eased, from the poses in which their parents are solved.

    Args:
        batch: whose constraints they are.
        model: at which rows.
        members: places of the constraints.
        wanted: the targets at the rows.
        moving: joints, in the batch's skeleton, that carry none of their chains along.
    """
    soft = [c for c in members if is_soft(batch.constraints[c])]
    if not any(batch.constraints[c].soft > 0.0 or "soft" in wanted.keyed.get(c, {}) for c in soft):
        return {}
    places = np.ix_(model.rows, model.joints)
    heads, frames = _placed(batch, model)
    carried = {place for place, j in enumerate(model.joints.tolist()) if j in moving}
    found = {
        c: soft_limb(
            model.skeleton, batch.constraints[c], wanted, c, heads, frames, batch.lengths[places], carried
        )
        for c in soft
    }
    return {c: limb for c, limb in found.items() if limb is not None}


def _as_influences_have_it(batch: Batch, model: _Model, wanted: TargetRows) -> TargetRows:
    """Targets at such a part of the way from where their chains end alone as influences below 1 say.

    The body has the influence of all that it helps: it would go all the way for a target of influence 0.1.
    """
    influences = batch.influences
    if influences is None or (influences[np.ix_(model.rows, model.helped)] >= 1.0).all():
        return wanted
    heads, frames = _placed(batch, model)
    wanted = wanted._replace(points=wanted.points.copy())
    for c in model.helped:
        constraint, parts = batch.constraints[c], influences[model.rows, c]
        tip = model.skeleton.index(constraint.tip)
        reach = effectors(constraint, batch.lengths[model.rows, model.joints[tip]])
        ends = heads[:, tip] + rotate(frames[:, tip], reach, axis=-1)
        ways = wanted.points[:, c] - ends
        wanted.points[:, c] -= (1.0 - parts)[:, None] * ways
        left = (1.0 - parts) * length(ways, axis=-1)
        for place in np.flatnonzero(left).tolist():
            batch.left.setdefault(int(model.rows[place]), {})[c] = float(left[place])
    return wanted


def _placed(batch: Batch, model: _Model) -> tuple[Array, Array]:
    """(R, J, 3) heads and (R, J, 4) rotations of the model's joints, as they stand now."""
    places = np.ix_(model.rows, model.joints)
    turned, shifted = batch.rotations[places], model.shifts(batch, batch.translations[places], back=False)
    bones = model.bones
    return forward_kinematics_of_frames(
        model.skeleton, bones.offsets, bones.rests, unit(turned, axis=-1), shifted
    )


def _in_windows(
    model: _Model,
    limbs: Mapping[int, SoftLimb],
    placed: Sequence[tuple[int, Goal]],
    goal_settings: GoalSettings,
) -> tuple[list[tuple[int, Goal]], GoalSettings]:
    """Goals of limbs that stay as far stretched as they are alone while the body goes to targets.

    One that is bent more may be stretched up to where easing begins, as the body carries it off.
    """
    rows, in_windows = len(model.rows), list(placed)
    settings = GoalSettings(*(np.tile(each, (rows // len(each), 1)) for each in goal_settings))
    for k, (c, goal) in enumerate(placed):
        limb = limbs.get(c)
        if limb is None or not limb.joints or not isinstance(goal, PositionGoal):
            continue
        most = np.maximum(limb.extension, 1.0 - limb.soft)
        most = np.clip(np.minimum(most, settings.extensions[:, k]), 0.01, STRETCHED)
        settings.extensions[:, k] = most
        in_windows[k] = c, replace(goal, max_extension=float(most[0]), extension_joints=limb.joints)
    return in_windows, settings


STRETCHED = 1.0 - 1e-9
"""The largest extension that is one."""


@dataclass(frozen=True)
class _Share:
    """What of a group's rows one model of one batch has.

    Attributes:
        placed: per goal the constraint that it is of.
        gave_way: constraints of bones that help others: their own targets ask for nothing meanwhile.
        tolerances: (R,) of positions, armature space.
        kind: what is asked for there.
        unmoved: joints of chains, in the batch's skeleton, that the search does not move.
        limbs: of constraints that are eased how they are, see `SoftLimb`.
    """

    batch: Batch
    model: _Model
    members: tuple[int, ...]
    placed: tuple[int, ...]
    gave_way: tuple[int, ...]
    tolerances: Array
    kind: FrameKind
    unmoved: list[int]
    limbs: Mapping[int, SoftLimb]

    @classmethod
    def of(cls, group: Group, batch: Batch, model: _Model) -> _Share:
        rows, settings, members = model.rows, batch.settings, group.active_in(batch)
        body = {j for c in model.helped for j in body_joints(batch.skeleton, batch.constraints[c])}
        gave_way = _given_way(batch, members, model.helped, body)
        members = tuple(c for c in members if c not in gave_way)
        wanted, skeleton = model.seen(batch.targets.at(rows)), model.skeleton
        limbs = _soft_limbs(batch, model, members, wanted, frozenset() if model.helped else group.joints)
        if limbs and not model.helped:
            wanted = wanted._replace(points=wanted.points.copy())
            for c, limb in limbs.items():
                wanted.points[:, c] = limb.points
        if model.helped:
            wanted = _as_influences_have_it(batch, model, wanted)
        of_members = {c: goals_of_rows(model.skeleton, batch.constraints[c], wanted, c) for c in members}
        placed = [(c, goal) for c, (goals, _) in of_members.items() for goal in goals]
        goal_settings = reduce(GoalSettings.beside, [values for _, values in of_members.values()])
        tolerances = settings.solver.position_tolerance / scales(batch.frames[rows], batch.worlds[rows])
        solver = replace(settings.solver, angle_tolerance=batch.sharper * settings.solver.angle_tolerance)
        if settings.error_reduction is not None and solver.solver is Solver.CCD:
            solver = replace(solver, error_reduction=settings.error_reduction)
        moving = group.joints
        if model.helped:
            chains = {j for c in members for j in chain_joints(batch.skeleton, batch.constraints[c])}
            moving = frozenset(chains | body)
        moved = {place for place, j in enumerate(model.joints.tolist()) if j in moving}
        alone = None
        if model.helped:
            # What was missed gives way to what was met: feet stand, whatever a hand reaches for.
            alone = tuple(goal for _, goal in placed)
            placed = [(c, _helped_goal(batch, model, c, goal)) for c, goal in placed]
            if limbs:
                placed, goal_settings = _in_windows(model, limbs, placed, goal_settings)
        goals, targets = [goal for _, goal in placed], [goal_targets(goal, wanted, c) for c, goal in placed]
        search = PoseSearch(skeleton, goals, solver, moved, alone)
        names = {batch.skeleton.joints[j].name for j in group.joints}
        entries = [entry for entry in settings.poses if names & entry.rotations.keys()]
        kind = FrameKind(
            search,
            tuple(targets),
            model.bones,
            batch.sharper * tolerances,
            (lambda: search.templates(entries)) if solver.restarts and not model.helped else None,
            goal_settings,
        )
        active = (batch.constraints[c] for c in members)
        chains = {
            j for each in active if each.kind is not Kind.PLANT for j in chain_joints(batch.skeleton, each)
        }
        unmoved = sorted(chains.difference(model.joints[list(search.movable)].tolist()))
        placed_in = tuple(c for c, _ in placed)
        return cls(batch, model, members, placed_in, gave_way, tolerances, kind, unmoved, limbs)

    def hold_unmoved(self) -> None:
        """Bring joints that serve no goal inside their limits: chains that stand on them count on that."""
        places = np.ix_(self.model.rows, self.unmoved)
        limits = BatchLimits([self.batch.limits[j] for j in self.unmoved])
        inside, _ = limits.project(self.batch.rotations[places].transpose(2, 1, 0))
        self.batch.rotations[places] = inside.transpose(2, 1, 0)

    def poses(self) -> tuple[Array, Array]:
        """The base poses of the rows in the model."""
        places = np.ix_(self.model.rows, self.model.joints)
        return self.batch.rotations[places], self.model.shifts(
            self.batch, self.batch.translations[places], back=False
        )

    def store(self, motion: Motion, rows: Rows) -> None:
        """Put what is solved in the batch; `rows` are those of the motion."""
        batch, solved, places = self.batch, motion.solved, np.ix_(self.model.rows, self.model.joints)
        batch.rotations[places] = solved.rotations[rows]
        batch.translations[places] = self.model.shifts(batch, solved.translations[rows], back=True)
        batch.iterations = max(batch.iterations, int(solved.steps[rows].max(initial=0)))
        goals = len(self.placed)
        off = (solved.distances[rows, :goals] > self.tolerances[:, None]) | (
            solved.angles[rows, :goals] > batch.settings.solver.angle_tolerance
        )
        met = dict.fromkeys(self.members, SolveStatus.CONVERGED.name)
        met.update(dict.fromkeys(self.gave_way, GAVE_WAY))
        for k in self.model.rows.tolist():
            batch.states[k].update(met)
        for place in np.flatnonzero(off.any(axis=1)).tolist():
            ended = STATUSES[solved.statuses[rows[place]]].name
            missed = [c for c, is_off in zip(self.placed, off[place], strict=True) if is_off]
            batch.states[int(self.model.rows[place])].update(dict.fromkeys(missed, ended))
        for c, limb in self.limbs.items():
            self._judge_eased(c, limb, off, solved.distances[rows, :goals])
        moved = motion.apart[rows]
        for place in np.flatnonzero((moved > UNCHANGED) & ~off.any(axis=1)).tolist():
            smoothed = SmoothedGroup(self.members, float(moved[place]))
            batch.smoothed[int(self.model.rows[place])].append(smoothed)

    def _judge_eased(self, c: int, limb: SoftLimb, off: Mask, distances: Array) -> None:
        """Say of a limb that stays behind its target whether, straight, it would get there.

        Args:
            c: its constraint.
            limb: how it is eased.
            off: (R, G) which goals are not met.
            distances: (R, G) from what they were solved for.
        """
        goals = [k for k, each in enumerate(self.placed) if each == c]
        place = next(k for k in goals if isinstance(self.kind.search.goals[k], PositionGoal))
        others = off[:, [k for k in goals if k != place]].any(axis=1)
        if self.model.helped:
            behind = distances[:, place]
            stays = off[:, place] & ~others
        else:
            behind = limb.gaps
            stays = (behind > self.tolerances) & ~off[:, goals].any(axis=1)
        for k in np.flatnonzero(stays).tolist():
            reaches = behind[k] <= limb.spare[k] + self.tolerances[k % len(self.tolerances)]
            state = EASED if reaches else SolveStatus.OPTIMAL.name
            if reaches or not self.model.helped:
                self.batch.states[int(self.model.rows[k])][c] = state
