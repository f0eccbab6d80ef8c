# SPDX-License-Identifier: GPL-3.0-or-later
"""Solving of batches of frames, group by group, parents before children.

Chains that miss their targets alone are then solved once more with the body, where Body Helps is on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ...goals import BalanceGoal, Goal, PositionGoal
from ...limits.shapes import BatchLimits, Limit
from ...maths.batch import Array, Mask, alike, angles_between, conjugate, length, multiply, rotate, unit
from ...settings import Solver, SolverSettings, SolveStatus, Sweep
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...solvers.motion import MOST_RAISE, Frames, solve_motion
from ...solvers.motion import Kind as FrameKind
from ...solvers.pose_search import STATUSES, PoseSearch, Solved, Starts, shared_search
from ...solvers.problem_tables import Bones, GoalSettings, reach_of_goals
from ...solvers.springs import Springs, springs
from ..properties.constraint_kinds import KINDS
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetRows
from ..solve.methods import (
    FrameSolveSettings,
    Group,
    SoftLimb,
    SolvedGroup,
    are_solved_at_once,
    body_joints,
    chain_ends,
    chain_joints,
    effectors,
    goal_targets,
    goals,
    goals_of_rows,
    groups,
    has_window,
    is_soft,
    soft_limb,
    solve_once,
    spare_length,
    whole_chain,
    with_body,
)
from ..solve.planting import JointPoses
from .bake_frames import BakeFrames, HelpedRow, Rows, SmoothedGroup
from .body_balance import Balance
from .report import EASED, GAVE_WAY, REACHED


def scales(frames: Array, worlds: NDArray[np.float64]) -> NDArray[np.float64]:
    """World metres per unit of armature space, along the axis that is stretched most.

    A tolerance divided by it is never looser than the tolerance in world metres, whatever the shear.

    Args:
        frames: (R,) of messages.
        worlds: (R, 3, 3) armature space to world.

    Returns:
        (R,) or, where it is constant, (1,).
    """
    if len(worlds) > 1 and (worlds == worlds[:1]).all():
        worlds = worlds[:1]
    sizes = [_largest_stretch(world.tobytes()) for world in worlds]
    for frame, size in zip(frames.tolist(), sizes, strict=False):
        if not 0.0 < size < math.inf:
            raise RigError(f"frame {frame:.7g}: the armature object has a scale of 0: give it another scale")
    return np.array(sizes)


@lru_cache(maxsize=16)
def _largest_stretch(world: bytes) -> float:
    """The spectral norm of a 3x3 matrix; most armature objects keep theirs."""
    return float(np.linalg.norm(np.frombuffer(world).reshape(3, 3), ord=2))


class GroupPart(NamedTuple):
    """The part of a batch that the solve of a group looks at."""

    members: tuple[int, ...]  # that are active
    joints: Rows  # their chains up to the root, all where it balances
    skeleton: Skeleton  # of these joints, in the first row


@dataclass
class Batch:
    """R frames with the same active constraints and the same limits."""

    frames: Array  # (R,) frame numbers
    constraints: Sequence[Constraint]  # all constraints
    active: tuple[int, ...]  # places of the active ones
    skeletons: Sequence[Skeleton]  # of each row where a closed form solves them, else of the first alone
    targets: TargetRows  # of each row and constraint
    worlds: Array  # (R, 3, 3) armature space to world
    limits: tuple[Limit | None, ...]  # of each joint
    bones: Bones  # rest of joints, at each row or once for all
    lengths: Array  # (R, J) of bones
    base: JointPoses  # reference poses
    settings: FrameSolveSettings  # of every solve
    skeleton: Skeleton = field(init=False)  # of the first row
    rotations: Array = field(init=False)  # (R, J, 4) solutions; base poses of groups that are not solved yet
    translations: Array = field(init=False)  # (R, J, 3) likewise
    sharper: float = 1.0  # factor on the tolerances
    iterations: int = 0  # the most iterations of any row
    states: list[dict[int, str]] = field(init=False)  # of each row, constraint -> status
    smoothed: list[list[SmoothedGroup]] = field(init=False)  # of each row, the smoothed groups
    # By row, the movement of the body for chains that miss their targets alone.
    helped: dict[int, HelpedRow] = field(default_factory=dict)
    influences: Array | None = None  # (R, C) of the constraints; None if the body does not help
    # By row and constraint with an influence below 1, the distance that the body leaves, armature space.
    left: dict[int, dict[int, float]] = field(default_factory=dict)
    alone: JointPoses | None = None  # poses without the body's help, while it helps; else None
    _parts: dict[Group, GroupPart] = field(init=False, repr=False)  # see `part_of`

    def __post_init__(self) -> None:
        self.skeleton, self._parts = self.skeletons[0], {}
        self.rotations, self.translations = self.base.at(slice(None))
        self.states, self.smoothed = [{} for _ in self.frames], [[] for _ in self.frames]

    @classmethod
    def of(cls, bake_frames: BakeFrames, rows: Rows, settings: FrameSolveSettings) -> Batch:
        """Rows of a bake's frames, in order of time, at their reference poses."""
        constraints, in_force = bake_frames.constraints, bake_frames.influences[rows[0]] > 0.0
        are_alike = are_solved_at_once(constraints)
        return cls(
            bake_frames.frames[rows],
            constraints,
            tuple(np.flatnonzero(in_force).tolist()),
            [bake_frames.bones.skeleton(row) for row in (rows[:1] if are_alike else rows).tolist()],
            bake_frames.targets.at(rows),
            bake_frames.worlds[rows],
            bake_frames.limits[int(rows[0])],
            bake_frames.bones_at(rows),
            bake_frames.lengths[rows],
            JointPoses(bake_frames.reference_poses, bake_frames.translations).at(rows),
            settings,
            influences=bake_frames.influences[rows],
        )

    @cached_property
    def scales(self) -> Array:
        """World metres per unit of armature space, see `scales`."""
        return scales(self.frames, self.worlds)

    def scales_at(self, rows: Rows | list[int]) -> Array:
        """`scales` of rows, (R or 1,)."""
        return self.scales if len(self.scales) == 1 else self.scales[rows]

    def inputs_of(self, group: Group) -> Hashable:
        """All that a group's solution at the only row depends on."""
        members, joints, skeleton = self.part_of(group)
        poses = *self.bones, self.lengths, self.rotations, self.translations
        numbers = [self.worlds, *(each[:, joints] for each in poses)]
        numbers += [each[:, list(members)] for each in self.targets[:5]]
        constraints = tuple([(self.constraints[c], self.targets.settings(0, c)) for c in members])
        made_with = self.settings.solver, self.settings.error_reduction, self.sharper
        # The shape has limits, slides and all else of joints.
        return group, constraints, made_with, skeleton.shape, *[each.tobytes() for each in numbers]

    def solution_of(self, group: Group) -> SolvedGroup:
        """A group's solution at the only row."""
        members, joints, _ = self.part_of(group)
        states = {c: self.states[0][c] for c in members}
        return self.rotations[0, joints], self.translations[0, joints], states

    def take_over(self, group: Group, solved: SolvedGroup) -> None:
        """Take over a group's solution at the only row."""
        joints = self.part_of(group).joints
        self.rotations[0, joints], self.translations[0, joints], states = solved
        self.states[0].update(states)

    def take_balanced(self, balanced: Batch) -> None:
        """Take over the poses and states of the same rows with a constraint of balance behind all others."""
        count = len(self.constraints)
        self.rotations, self.translations = balanced.rotations, balanced.translations
        self.states = [{c: state for c, state in each.items() if c < count} for each in balanced.states]
        self.smoothed = [
            [each._replace(constraints=tuple(c for c in each.constraints if c < count)) for each in row]
            for row in balanced.smoothed
        ]
        self.iterations = max(self.iterations, balanced.iterations)
        self.left = balanced.left

    def part_of(self, group: Group) -> GroupPart:
        """The part of the batch that the solve of a group looks at."""
        if group not in self._parts:
            skeleton, constraints = self.skeleton, [self.constraints[c] for c in group.members]
            tips = tuple([constraint.tip for constraint in constraints])
            balances = any(constraint.kind.balances for constraint in constraints)

            def joints() -> Rows:
                chains = {j for tip in tips for j in skeleton.chain(tip)}
                return np.arange(len(skeleton)) if balances else np.array(sorted(chains))

            rows = skeleton.original.computed_once(("places", tips, balances), joints)
            members = tuple(c for c in group.members if c in self.active)
            self._parts[group] = GroupPart(members, rows, skeleton.part(rows.tolist()))
        return self._parts[group]

    def pose(self, k: int) -> Pose:
        """The present pose of row `k`."""
        return Pose.of_arrays(self.rotations[k], self.translations[k])


UNCHANGED = 1e-4
"""Radians of smoothing that are not reported."""


def solve_batches(batches: Sequence[Batch], period: int = 0) -> Generator[float, None, None]:
    """Solve batches of the same constraints as one motion, in place; yields counts of solved rows.

    Args:
        batches: with distinct rows, in any order of time.
        period: rows of a loop, after which the first row comes again; 0 for no loop.
    """
    first = batches[0]
    active = sorted({c for batch in batches for c in batch.active})
    parents_first = groups(first.skeleton, first.constraints, active)
    every = np.sort(np.concatenate([batch.frames for batch in batches]))
    memory = first.settings.memory if len(every) == 1 else None
    for group in parents_first:
        inputs = None if memory is None else first.inputs_of(group)
        known = None if memory is None else memory.solution(inputs)
        if known is not None:
            first.take_over(group, known)
        else:
            for count in _solve_alone(group, batches, every, period):
                yield count / len(parents_first)
        if memory is not None:
            memory.note(inputs, first.solution_of(group))
    yield from let_body_help(batches, every, period)


def _solve_alone(
    group: Group, batches: Sequence[Batch], every: Array, period: int
) -> Generator[int, None, None]:
    """Solve a group without the body's help: at once, or by a closed form; yields counts of solved rows."""
    at_once: list[Batch] = []
    for batch in batches:
        present = batch.part_of(group).members
        if are_solved_at_once([batch.constraints[c] for c in present]):
            at_once += [batch] if present else []
        else:
            yield from _solve_one_by_one(group, batch)
    if at_once:
        yield from _solve_group(group, at_once, every, period)


def let_body_help(batches: Sequence[Batch], every: Array, period: int) -> Generator[float, None, None]:
    """Solve rows again with the body, where chains miss their targets alone; yields counts of 0.

    The reference is the pose of the chains alone: the body moves no further than it must, and starts to move
    where the first target is missed.

    Args:
        batches: solved, with their states.
        every: (R,) frames of all batches, increasing; frames between them separate the rows on either side.
        period: see `solve_batches`.
    """
    wanted = [_help_of(batch) for batch in batches]
    if not any(map(any, wanted)):
        return
    skeleton, constraints = batches[0].skeleton, batches[0].constraints
    members = sorted({c for batch in batches for c in batch.active})
    joints = {
        j for c in members for part in (chain_joints, body_joints) for j in part(skeleton, constraints[c])
    }
    before = [(batch.rotations.copy(), batch.translations.copy()) for batch in batches]
    for batch, poses in zip(batches, before, strict=True):
        batch.alone = JointPoses(*poses)
    group = Group(frozenset(joints), tuple(members))
    for _ in _solve_group(group, batches, every, period, wanted):
        yield 0.0
    yield from _balance_body(group, batches, every, period, wanted)
    for batch, rows, (rotations, translations) in zip(batches, wanted, before, strict=True):
        for k, chains in enumerate(rows):
            if chains is not None:
                batch.helped[k] = _helped_row(batch, k, chains.constraints, rotations[k], translations[k])


def _balance_body(
    group: Group,
    batches: Sequence[Batch],
    every: Array,
    period: int,
    wanted: Sequence[Sequence[Help | None]],
) -> Generator[float, None, None]:
    """Solve rows again with balance where the body takes it away; yields counts of 0.

    Args:
        group, batches, every, period, wanted: of the solve with the body.
    """
    pairs = [(batch, _balanced(batch, helps)) for batch, helps in zip(batches, wanted, strict=True)]
    again = [(batch, *pair) for batch, pair in pairs if pair is not None]
    if not again:
        return
    members = Group(group.joints, (*group.members, len(batches[0].constraints)))
    _, balanced, leaving = zip(*again, strict=True)
    for _ in _solve_group(members, balanced, every, period, leaving):
        yield 0.0
    for batch, each, _ in again:
        batch.take_balanced(each)


def _balanced(batch: Batch, helps: Sequence[Help | None]) -> tuple[Batch, list[Help | None]] | None:
    """A batch with a constraint of balance behind all others, and the help of rows to be solved with it.

    These rows are at their poses without help. None where all poses keep their balance, no bone of the body
    slides freely, a Balance constraint is there, or every chain asks for help.
    """
    rows = np.array([k for k, each in enumerate(helps) if each is not None], np.intp)
    present = [each for each in helps if each is not None]
    skeleton, constraints, alone = batch.skeleton, batch.constraints, batch.alone
    helped = {c for help in present for c in help.constraints}
    body = {j for c in helped for j in body_joints(skeleton, constraints[c])}
    carriers = [j for j in body if len(skeleton.joints[j].slides) == 3]
    if alone is None or not carriers or any(constraints[c].kind.balances for c in batch.active):
        return None
    chains = {c: chain_joints(skeleton, constraints[c]) for c in batch.active if constraints[c].use_position}
    chains = {c: chain for c, chain in chains.items() if chain}
    pulled = np.array([[c in help.constraints and c not in help.held for c in chains] for help in present])
    if pulled.all(axis=1).any():
        return None
    poses = batch.base.at(rows), alone.at(rows), JointPoses(batch.rotations, batch.translations).at(rows)
    of_chains = [*chains.values()], pulled
    balance = Balance(skeleton, batch.bones.at(rows), batch.worlds[rows], *of_chains, *poses)
    places, leaves = balance.places()
    if not leaves.any():
        return None
    leaving: list[Help | None] = [None] * len(helps)
    for k, help in zip(rows[leaves].tolist(), itertools.compress(present, leaves), strict=True):
        leaving[k] = help._replace(balance=len(constraints))
    keeps = _level_balance(skeleton.joints[min(carriers)].name, min(constraints[c].priority for c in helped))
    influences = batch.influences
    balanced = replace(
        batch,
        constraints=(*constraints, keeps),
        active=(*batch.active, len(constraints)),
        skeletons=[skeleton.with_masses(balance.masses.tolist())],
        targets=batch.targets.with_column(rows, places, balance.verticals),
        influences=None if influences is None else np.pad(influences, ((0, 0), (0, 1)), constant_values=1.0),
    )
    balanced.rotations, balanced.translations = batch.rotations.copy(), batch.translations.copy()
    for mine, theirs in zip((balanced.rotations, balanced.translations), alone, strict=True):
        mine[rows[leaves]] = theirs[rows[leaves]]
    balanced.states = [{**states} for states in batch.states]
    balanced.smoothed = [[*smoothed] for smoothed in batch.smoothed]
    return balanced, leaving


@lru_cache(maxsize=16)
def _level_balance(tip: str, priority: int) -> Constraint:
    """A constraint of balance along both level axes, made once."""
    level = True, True, False
    return Constraint("", tip, kind=KINDS["BALANCE"], balance_axes=level, priority=priority)


class Help(NamedTuple):
    """The constraints that the body helps at a row."""

    missed: tuple[int, ...] = ()  # constraints that miss their targets alone
    # Constraints that reach their targets when straight, and stay short of them by Softness.
    eased: tuple[int, ...] = ()
    # Of both, constraints whose targets are where the base pose has their effectors, such as feet that stand
    # while the head takes their legs along. They are served first.
    held: tuple[int, ...] = ()
    # Constraints without animated targets that left their chains in the base pose, see `_yielding`.
    idle: tuple[int, ...] = ()
    # Constraints whose targets are where their carriers have taken them, see `_yielding`.
    carried: tuple[int, ...] = ()
    balance: int = -1  # the constraint that keeps the body's balance, see `_balanced`; -1 without one

    @property
    def pulled(self) -> tuple[int, ...]:
        """Constraints whose targets pull at the body: missed ones that do not stand."""
        return tuple(c for c in self.missed if c not in self.held)

    @property
    def constraints(self) -> tuple[int, ...]:
        """All helped constraints."""
        return tuple(sorted(self.missed + self.eased))


NO_HELP = Help()


def _help_of(batch: Batch) -> list[Help | None]:
    """What the body helps at each row, by the status of constraints; None where it helps nothing.

    A carried target that is left where its carrier has it asks for nothing: its constraint gives way.
    """
    constraints = batch.constraints
    helps = batch.influences is not None
    whole = [c for c in batch.active if helps and constraints[c].body_length]
    off = [[c for c in whole if states.get(c, REACHED) != REACHED] for states in batch.states]
    if not any(off):
        return [None] * len(off)
    stays, left = _left_in_place(batch)
    still = {c: _apart_from_base(batch, c) <= MOVED for c in batch.active if not constraints[c].is_animated}
    helped: list[Help | None] = []
    for k, states in enumerate(batch.states):
        given_up = [c for c in off[k] if c in left and left[c][k]]
        asking = [c for c in off[k] if c not in given_up]
        states.update((c, GAVE_WAY) for c in given_up if states[c] != EASED)
        missed = tuple(c for c in asking if states[c] != EASED)
        held = tuple(c for c in asking if stays[c][k])
        eased = tuple(c for c in asking if states[c] == EASED)
        idle = tuple(c for c, where in still.items() if where[k])
        carried = tuple(c for c, where in left.items() if where[k])
        helped.append(Help(missed, eased, held, idle, carried) if asking else None)
    return helped


def _apart_from_base(batch: Batch, c: int) -> Array:
    """(R,) radians by which a constraint has moved joints of its chain from their base poses, at most."""
    joints = list(chain_joints(batch.skeleton, batch.constraints[c]))
    apart = angles_between(batch.base.rotations[:, joints], batch.rotations[:, joints], axis=-1)
    return np.asarray(apart.max(axis=1, initial=0.0))


MOVED = 0.01
"""Radians from its base pose beyond which a chain counts as moved."""


def _left_in_place(batch: Batch) -> tuple[dict[int, Mask], dict[int, Mask]]:
    """(R,) masks of rows at which targets are where the base pose has the effectors of constraints; and of
    those at which carried targets are where the targets of their carriers take that place."""
    constraints, skeleton, bones = batch.constraints, batch.skeleton, batch.bones
    places = {constraint.name: c for c, constraint in enumerate(constraints)}
    heads, frames = bones.transforms(skeleton, *batch.base)
    stays, left = {}, {}
    for c in (c for c in batch.active if constraints[c].kind.reaches or constraints[c].carrier in places):
        ends = chain_ends(skeleton, constraints[c], batch.lengths, heads, frames)
        near = slack(skeleton, constraints[c], batch.lengths)
        stays[c] = length(batch.targets.points[:, c] - ends, axis=-1) <= near
        if constraints[c].carrier in places:
            carried = _taken_by_target(batch, places[constraints[c].carrier], heads, frames, ends)
            left[c] = length(batch.targets.points[:, c] - carried, axis=-1) <= near
    return stays, left


def slack(skeleton: Skeleton, constraint: Constraint, lengths: Array) -> Array:
    """(R,) distances within which a target counts as at its chain's end; `lengths`: (R, J) of bones."""
    chain = list(skeleton.chain(constraint.tip, constraint.chain_length))
    distances: Array = MOVED * lengths[:, chain].sum(axis=1)
    return distances


def _taken_by_target(batch: Batch, c: int, heads: Array, frames: Array, points: Array) -> Array:
    """(R, 3) points of the base poses where the target of a constraint takes them along with its bone.

    Args:
        heads, frames: (R, J, 3) and (R, J, 4) of the base poses.
        points: (R, 3)
    """
    constraint, tip = batch.constraints[c], batch.skeleton.index(batch.constraints[c].tip)
    reach = rotate(frames[:, tip], effectors(constraint, batch.lengths[:, tip]), axis=-1)
    offsets = points - heads[:, tip] - reach
    turned = batch.targets.rotations[:, c]
    if constraint.rotation == "ORIENTATION" and constraint.rotation_bone in ("", constraint.tip):
        offsets = rotate(multiply(unit(turned, axis=-1).T, conjugate(frames[:, tip].T)), offsets.T).T
    starts = batch.targets.points[:, c] if constraint.use_position else heads[:, tip] + reach
    return np.asarray(starts + offsets)


def _helped_row(
    batch: Batch, k: int, chains: tuple[int, ...], rotations: Array, translations: Array
) -> HelpedRow:
    """Movement of the body at a row from the (J, 4) rotations and (J, 3) translations before."""
    joints = sorted({j for c in chains for j in body_joints(batch.skeleton, batch.constraints[c])})
    angles = angles_between(rotations[joints], batch.rotations[k, joints], axis=-1)
    shifts = length(batch.translations[k, joints] - translations[joints], axis=-1)
    farthest, longest = int(np.argmax(angles)), int(np.argmax(shifts))
    unit_length = float(batch.scales_at([k])[0])
    left = {c: unit_length * distance for c, distance in batch.left.get(k, {}).items()}
    shift = unit_length * float(shifts[longest])
    members = tuple(c for c in batch.active if batch.states[k][c] != GAVE_WAY)
    return HelpedRow(chains, joints[farthest], float(angles[farthest]), joints[longest], shift, left, members)


def _solve_one_by_one(group: Group, batch: Batch) -> Generator[int, None, None]:
    """Solve a group with a closed form, row by row."""
    members, settings = batch.part_of(group).members, batch.settings.solver
    constraints = [batch.constraints[c] for c in members]
    if len(constraints) > 1:
        alone = next(each for each in constraints if not are_solved_at_once([each]))
        name, other = alone.name, next(each.name for each in constraints if each is not alone)
        raise RigError(
            f"Constraint '{name}' poses its bones alone, but '{other}' moves them too: shorten a chain, or "
            "set Method to Loop"
        )
    worlds = np.broadcast_to(batch.scales, len(batch.frames)).tolist()
    for k, (skeleton, scale) in enumerate(zip(batch.skeletons, worlds, strict=True)):
        target = batch.targets.sample(k, members[0])
        solver = replace(settings, position_tolerance=settings.position_tolerance / scale)
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
    """Solve a group at all rows of batches in which any of it is active, as the nearest motion.

    Args:
        batches: solved in place.
        every: (R,) frames of all batches, increasing.
        period: see `solve_batches`.
        wanted: of each row of each batch the constraints that the body helps, or None for a row that is left
            alone; None if the body helps nowhere.
    """
    patterns = wanted or [[NO_HELP] * len(batch.frames) for batch in batches]
    shares = [
        share for batch, each in zip(batches, patterns, strict=True) for share in _shares(batch, group, each)
    ]
    sizes = [len(share.rows) for share in shares]
    numbers = [share.batch.frames[share.rows] for share in shares]
    order = None if len(shares) == 1 else np.argsort(np.concatenate(numbers))

    def in_order(blocks: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Blocks of the shares' rows as one array, in order of time."""
        return blocks[0] if order is None else np.concatenate(blocks)[order]

    for share in shares:
        share.hold_unmoved()
    poses = [share.poses() for share in shares]
    frames = Frames(
        tuple(share.kind for share in shares),
        in_order([np.full(size, k) for k, size in enumerate(sizes)]),
        in_order([np.arange(size) for size in sizes]),
        in_order([rotations for rotations, _ in poses]),
        in_order([translations for _, translations in poses]),
        *_neighbours(every, period, in_order(numbers)),
    )
    # Frames beside those that the body helps are not in the motion: it would be smooth, and jump at its ends.
    most_raise = MOST_RAISE if wanted is None else 1.0
    solved, apart = yield from solve_motion(frames, batches[0].settings.smoothness, most_raise)
    if order is None:
        shares[0].store(solved, apart)
        return
    places = np.split(np.argsort(order), np.cumsum(sizes)[:-1])
    for share, rows in zip(shares, places, strict=True):
        share.store(solved.at(rows), apart[rows])


def _neighbours(every: Array, period: int, frames: Array) -> tuple[Rows, Rows, Rows, bool]:
    """Neighbours of R rows at increasing frames.

    Returns:
        (R,) numbers of rows; (R,) places of the rows before; (R,) places of the rows after; whether the row
        that repeats the first of a loop is there. A place of -1 means no neighbour: rows in which the group
        is inactive separate the rows on either side.
    """
    if len(every) == 1:
        none = np.array([-1])
        return np.array([0]), none, none, False
    step = float(np.diff(every).min(initial=np.inf))
    numbers = np.searchsorted(every, frames)
    beside = np.diff(numbers) == 1
    places = np.arange(len(frames))
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


def _shares(batch: Batch, group: Group, wanted: Sequence[Help | None]) -> Iterator[_Share]:
    """The rows of a batch as shares of a group; most batches have one."""
    members, joints, skeleton = batch.part_of(group)
    constraints = batch.constraints
    lengths = np.ascontiguousarray(batch.lengths[:, joints])
    at_rows = [lengths]
    for c in members:
        if constraints[c].kind.balances:
            at_rows.append(np.nan_to_num(batch.targets.directions[:, c]))  # NaN where all three count
        if "max_extension" in batch.targets.keyed.get(c, ()):
            at_rows.append(has_window(constraints[c], batch.targets, c))
    is_mixed = any(each is not NO_HELP for each in wanted)
    is_mixed |= any((each != each[:1]).any() for each in at_rows)
    rows = np.array([k for k, each in enumerate(wanted) if each is not None], np.intp)
    keys = [(wanted[k], *[each[k].tobytes() for each in at_rows]) if is_mixed else () for k in rows.tolist()]
    for places in alike(keys):
        first = int(rows[places[0]])
        scaled = skeleton.with_lengths(lengths[first].tolist())  # animated scale
        yield _Share(group, batch, rows[places], joints, scaled, wanted[first] or NO_HELP)


def _yielding(batch: Batch, members: tuple[int, ...], help: Help, body: set[int]) -> tuple[int, ...]:
    """Constraints that are inactive while the body helps others.

    These are the constraints on bones of the body, and idle ones that share bones with it, as a head with the
    spine. Constraints whose target is where a target of these has taken it are, too.
    """
    if help == NO_HELP:
        return ()
    constraints, others = batch.constraints, [c for c in members if c not in help.constraints]
    places = {c: batch.skeleton.index(constraints[c].tip) for c in others if constraints[c].tip}
    chains = {c: chain_joints(batch.skeleton, constraints[c]) for c in help.idle if c in others}
    yielding = [
        c
        for c in others
        if constraints[c].kind.reaches
        and (places.get(c) in body or (c in chains and not body.isdisjoint(chains[c])))
    ]
    names = {constraints[c].name for c in yielding}
    yielding += [
        c for c in others if c in help.carried and c not in yielding and constraints[c].carrier in names
    ]
    return tuple(sorted(yielding))


LATER = 2
"""Priorities of goals in a level of constraints, by which missed targets come later while the body helps."""
STRETCHED = 1.0 - 1e-9
"""The largest extension of a reach window."""


@dataclass(frozen=True)
class _Plan:
    """The goals of a group at rows of a batch, without their targets."""

    joints: Rows  # (J,) joints of the batch that the group involves
    skeleton: Skeleton  # of these joints
    members: tuple[int, ...]  # active constraints
    gave_way: tuple[int, ...]  # constraints that are inactive while the body helps others
    placed: tuple[tuple[int, Goal], ...]  # goals, each with its constraint
    settings: GoalSettings  # of the goals
    limb_goals: tuple[Goal, ...] | None  # the goals without the body; None where it does not help
    solver: SolverSettings  # tolerances of positions in world metres
    moving: frozenset[int]  # joints of the batch that may move
    chains: frozenset[int]  # joints of the batch in chains of members that plant no bones
    soft: tuple[int, ...]  # members that Softness may ease
    pulls: tuple[int, ...]  # numbers of the goals that pull at the body

    @classmethod
    def of(
        cls, group: Group, batch: Batch, joints: Rows, skeleton: Skeleton, help: Help, wanted: TargetRows
    ) -> _Plan:
        """The plan of rows; without keyed settings it is made once.

        Args:
            wanted: targets of the rows.
        """
        members, settings = batch.part_of(group).members, batch.settings
        constraints = tuple([batch.constraints[c] for c in members])

        def made() -> _Plan:
            return cls._made(group, batch, joints, skeleton, help, wanted)

        if any(c in wanted.keyed for c in members):
            return made()
        axes = tuple(
            [wanted.directions[0, c].tobytes() for c in members if batch.constraints[c].kind.balances]
        )
        made_with = batch.sharper, settings.solver, settings.error_reduction
        return skeleton.computed_once(("plan", group, members, constraints, help, axes, made_with), made)

    @classmethod
    def _made(
        cls, group: Group, batch: Batch, joints: Rows, skeleton: Skeleton, help: Help, wanted: TargetRows
    ) -> _Plan:
        whole, constraints, helped = batch.skeleton, batch.constraints, help.constraints
        body = {j for c in helped for j in body_joints(whole, constraints[c])}
        active = batch.part_of(group).members
        gave_way = _yielding(batch, active, help, body)
        members = tuple(c for c in active if c not in gave_way)
        of_members = {c: goals_of_rows(skeleton, constraints[c], wanted, c) for c in members}
        placed = [(c, goal) for c, (of_one, _) in of_members.items() for goal in of_one]
        solver, error_reduction = batch.settings.solver, batch.settings.error_reduction
        if batch.sharper != 1.0:
            solver = replace(solver, angle_tolerance=batch.sharper * solver.angle_tolerance)
        moving, limb_goals = group.joints, None
        if helped:
            # The bodies of all: what moves must not depend on which chains ask just now.
            moving = frozenset(j for c in members for j in whole_chain(whole, constraints[c]))
            # Missed targets come after met ones of their level: feet stand, whatever a hand reaches for.
            # Balance is between them.
            later = {**dict.fromkeys(help.pulled, LATER), help.balance: LATER - 1}
            limb_goals = tuple(goal for _, goal in placed)
            placed = [(c, with_body(skeleton, constraints[c], goal)) for c, goal in placed]
            placed = [(c, replace(goal, priority=goal.priority + later.get(c, 0))) for c, goal in placed]
        if error_reduction is not None and solver.solver is Solver.CCD:
            # From root to tip, shared steps to a position and a rotation or pole take hundreds of passes.
            only_positions = all(isinstance(goal, PositionGoal) for _, goal in placed)
            if only_positions or solver.sweep is not Sweep.ROOT_TO_TIP:
                solver = replace(solver, error_reduction=error_reduction)
        posed = (constraints[c] for c in members if not constraints[c].kind.plants)
        numbered = enumerate(placed)
        pulls = tuple(k for k, (c, goal) in numbered if c in help.pulled and isinstance(goal, PositionGoal))
        return cls(
            joints,
            skeleton,
            members,
            gave_way,
            tuple(placed),
            reduce(GoalSettings.beside, [values for _, values in of_members.values()]),
            limb_goals,
            solver,
            moving,
            frozenset(j for each in posed for j in chain_joints(whole, each)),
            tuple(c for c in members if is_soft(constraints[c])),
            pulls,
        )

    @cached_property
    def goals(self) -> tuple[Goal, ...]:
        """The goals."""
        return tuple(goal for _, goal in self.placed)

    @cached_property
    def search(self) -> PoseSearch:
        """The search for poses that meet the goals."""
        moved = {place for place, j in enumerate(self.joints.tolist()) if j in self.moving}
        # The unit of length does not change where balance sets in.
        lengths = [goal for goal in self.goals if not isinstance(goal, BalanceGoal)]
        reach = reach_of_goals(self.skeleton, lengths) if self.limb_goals else None
        return shared_search(self.skeleton, self.goals, self.solver, moved, self.limb_goals, reach)

    @cached_property
    def springs(self) -> Springs:
        """The springs of the goals that pull."""
        return springs(self.search, self.pulls)

    def with_windows(self, joints: tuple[tuple[int, int], ...]) -> _Plan:
        """The plan with reach windows of goals, by their numbers and counts of joints; made once.

        Its settings are those without.
        """
        if joints not in self._windowed:
            placed = list(self.placed)
            for k, count in joints:
                c, goal = placed[k]
                placed[k] = c, replace(goal, max_extension=STRETCHED, extension_joints=count)
            self._windowed[joints] = replace(self, placed=tuple(placed))
        return self._windowed[joints]

    @cached_property
    def _windowed(self) -> dict[tuple[tuple[int, int], ...], _Plan]:
        return {}

    @cached_property
    def unmoved(self) -> list[int]:
        """Joints of the chains that serve no goal."""
        return sorted(self.chains.difference(self.joints[list(self.search.movable)].tolist()))


class _Share:
    """Rows of a batch at which one search solves a group.

    Bone lengths, axes of balance, reach windows and helped constraints are equal at these rows.

    Attributes:
        batch: the batch.
        rows: (R,) places in it.
        places: rows and joints as an index of (R, J).
        bones: rest of the joints.
        help: constraints that the body helps.
        plan: the goals.
        tolerances: (R,) of positions, armature space.
        kind: the search with its targets.
        limbs: easing of constraints.
    """

    def __init__(
        self, group: Group, batch: Batch, rows: Rows, joints: Rows, skeleton: Skeleton, help: Help
    ) -> None:
        self.batch, self.rows, self.help = batch, rows, help
        self.places = rows[:, None], joints
        self.bones = Bones(batch.bones.offsets[:, joints], batch.bones.rests[:, joints]).at(rows)
        wanted = batch.targets if len(rows) == len(batch.frames) else batch.targets.at(rows)
        helped, self.plan = help.constraints, _Plan.of(group, batch, joints, skeleton.shape, help, wanted)
        self.limbs = self._soft_limbs(wanted, frozenset() if helped else group.joints)
        settings = self.plan.settings
        if self.limbs and not helped:
            wanted = wanted._replace(points=wanted.points.copy())
            for c, limb in self.limbs.items():
                wanted.points[:, c] = limb.points
        if helped:
            wanted = self._blended_targets(wanted)
            settings = self._add_windows()
        plan = self.plan
        self.tolerances = batch.settings.solver.position_tolerance / batch.scales_at(rows)
        targets = [goal_targets(goal, wanted, c) for c, goal in plan.placed]
        eased, sharp = targets, batch.sharper * self.tolerances
        if plan.pulls:
            eased = plan.springs.eased(self.poses(), targets, self.bones, sharp, settings)
        whole, poses = batch.skeleton, batch.settings.poses
        constraints, search = [(c, batch.constraints[c]) for c in plan.members], plan.search

        def starts() -> Starts:
            """Other start poses; without a reference to the share, which would outlive its solve then."""
            names = {whole.joints[j].name for j in group.joints}
            entries = [entry for entry in poses if names & entry.rotations.keys()]
            of_members = [goals(skeleton, constraint, wanted.sample(0, c)) for c, constraint in constraints]
            return search.templates(entries, [goal for of_one in of_members for goal in of_one], skeleton)

        self.kind = FrameKind(
            search,
            tuple(eased),
            self.bones,
            sharp,
            starts if plan.solver.restarts and not helped else None,
            settings,
            tuple([(k, targets[k]) for k in plan.pulls]),
        )

    # Targets ------------------------------------------------------------------------------------------------

    def _soft_limbs(self, wanted: TargetRows, moving: Collection[int]) -> dict[int, SoftLimb]:
        """The easing of constraints, from the poses in which their parents are solved.

        Args:
            wanted: the targets.
            moving: joints, in the batch's skeleton, that carry none of the chains.
        """
        constraints, plan, soft = self.batch.constraints, self.plan, self.plan.soft
        if not any(constraints[c].soft > 0.0 or "soft" in wanted.keyed.get(c, {}) for c in soft):
            return {}
        carried = {place for place, j in enumerate(plan.joints.tolist()) if j in moving}
        lengths = self.batch.lengths[self.places]
        limbs = {
            c: soft_limb(plan.skeleton, constraints[c], wanted, c, self._transforms, lengths, carried)
            for c in soft
        }
        return {c: limb for c, limb in limbs.items() if limb is not None}

    def _blended_targets(self, wanted: TargetRows) -> TargetRows:
        """Targets of helped constraints, blended by influence from the ends of their chains alone.

        The body itself is at full influence: unblended, a target of influence 0.1 would move it all the way.
        """
        batch, helped = self.batch, self.help.constraints
        influences = batch.influences
        if influences is None or (influences[np.ix_(self.rows, helped)] >= 1.0).all():
            return wanted
        heads, frames = self._transforms()
        wanted = wanted._replace(points=wanted.points.copy())
        for c in helped:
            constraint, shares = batch.constraints[c], influences[self.rows, c]
            ends = chain_ends(self.plan.skeleton, constraint, batch.lengths[self.places], heads, frames)
            offsets = wanted.points[:, c] - ends
            wanted.points[:, c] -= (1.0 - shares)[:, None] * offsets
            left = (1.0 - shares) * length(offsets, axis=-1)
            for place in np.flatnonzero(left).tolist():
                batch.left.setdefault(int(self.rows[place]), {})[c] = float(left[place])
        return wanted

    def _add_windows(self) -> GoalSettings:
        """Add reach windows that keep the extension of limbs while the body moves to their targets.

        A limb that is bent more may be stretched up to the beginning of its easing, as the body carries it.

        Returns:
            The settings of the plan's goals then.
        """
        plan = self.plan
        bent = {
            k: self.limbs[c]
            for k, (c, goal) in enumerate(plan.placed)
            if c in self.limbs and self.limbs[c].joints and isinstance(goal, PositionGoal)
        }
        if not bent:
            return plan.settings
        settings = GoalSettings(*(np.tile(each, (len(self.rows) // len(each), 1)) for each in plan.settings))
        for k, limb in bent.items():
            most = np.minimum(np.maximum(limb.extension(), 1.0 - limb.soft), settings.extensions[:, k])
            settings.extensions[:, k] = np.clip(most, 0.01, STRETCHED)
        self.plan = plan.with_windows(tuple([(k, limb.joints) for k, limb in bent.items()]))
        return settings

    # Poses --------------------------------------------------------------------------------------------------

    def poses(self) -> tuple[Array, Array]:
        """(R, J, 4) rotations and (R, J, 3) translations of the present poses."""
        return self.batch.rotations[self.places], self.batch.translations[self.places]

    def _transforms(self, at_rest: Sequence[int] = ()) -> tuple[Array, Array]:
        """(R, J, 3) heads and (R, J, 4) rotations of the joints in their poses without the body's help.

        Args:
            at_rest: joints whose rotations are those of rest in place of their own.
        """
        batch = self.batch
        alone = JointPoses(batch.rotations, batch.translations) if batch.alone is None else batch.alone
        rotations, translations = (each[self.places] for each in alone)
        rotations[:, at_rest] = 1.0, 0.0, 0.0, 0.0
        return self.bones.transforms(self.plan.skeleton, rotations, translations)

    def hold_unmoved(self) -> None:
        """Bring joints without a goal inside their limits, as chains above them rely on it."""
        batch, unmoved = self.batch, self.plan.unmoved
        if not unmoved:
            return
        places = self.rows[:, None], unmoved
        limits = BatchLimits([batch.limits[j] for j in unmoved])
        inside, _ = limits.project(batch.rotations[places].transpose(2, 1, 0))
        batch.rotations[places] = inside.transpose(2, 1, 0)

    def store(self, solved: Solved, apart: Array) -> None:
        """Store solved rows in the batch; `apart`: (R,) radians by which smoothing has moved them."""
        batch, plan, goals = self.batch, self.plan, len(self.plan.placed)
        batch.rotations[self.places] = solved.rotations
        batch.translations[self.places] = solved.translations
        batch.iterations = max(batch.iterations, *solved.steps.tolist())
        distances = solved.distances[:, :goals].copy()
        for k, whole in self.kind.pulls:
            distances[:, k] += length(self.kind.targets[k] - whole, axis=-1)
        off = distances > self.tolerances[:, None]
        off |= solved.angles[:, :goals] > batch.settings.solver.angle_tolerance
        met = dict.fromkeys(plan.members, REACHED) | dict.fromkeys(plan.gave_way, GAVE_WAY)
        for k in self.rows.tolist():
            batch.states[k].update(met)
            if batch.smoothed[k]:
                batch.smoothed[k] = [each for each in batch.smoothed[k] if each.constraints != plan.members]
        for place in off.any(axis=1).nonzero()[0].tolist():
            ended = STATUSES[solved.statuses[place]]
            if ended is SolveStatus.CONVERGED:  # at an eased target
                ended = SolveStatus.OPTIMAL
            missed = [c for (c, _), is_off in zip(plan.placed, off[place], strict=True) if is_off]
            batch.states[int(self.rows[place])].update(dict.fromkeys(missed, ended.name))
        for c, limb in self.limbs.items():
            self._judge_eased(c, limb, off, distances)
        for place in (apart > UNCHANGED).nonzero()[0].tolist():
            smoothed = SmoothedGroup(plan.members, float(apart[place]))
            batch.smoothed[int(self.rows[place])].append(smoothed)

    def _judge_eased(self, c: int, limb: SoftLimb, off: Mask, distances: Array) -> None:
        """Set the status of an eased limb short of its target: whether it would reach it when straight.

        Args:
            off: (R, G) mask of missed goals.
            distances: (R, G) from the eased goals.
        """
        goals = [k for k, (each, _) in enumerate(self.plan.placed) if each == c]
        place = next(k for k in goals if isinstance(self.plan.goals[k], PositionGoal))
        helped = bool(self.help.constraints)
        others = off[:, [k for k in goals if k != place]].any(axis=1)
        if helped:
            behind = distances[:, place]
            stays = off[:, place] & ~others
        else:
            behind = limb.gaps
            stays = (behind > self.tolerances) & ~off[:, goals].any(axis=1)
        for k in np.flatnonzero(stays).tolist():
            reaches = behind[k] <= limb.spare[k] + self.tolerances[k % len(self.tolerances)]
            state = EASED if reaches else SolveStatus.OPTIMAL.name
            if reaches or not helped:
                self.batch.states[int(self.rows[k])][c] = state
