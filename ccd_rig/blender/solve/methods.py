# SPDX-License-Identifier: GPL-3.0-or-later
"""Solving of one frame: goals of constraints, groups of them, closed forms, and Softness.

Goals are in armature space. Softness eases targets, so that limbs ease into straight.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mathutils import Vector

from ...errors import InvalidInput, RigError
from ...goals import Goal, PoleGoal, PositionGoal, TargetKind
from ...kernel import ease_limbs
from ...maths.batch import Array, Mask, length, rotate, unit
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics, placed_joints
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ...solvers.closed_forms import (
    TwoBoneOptions,
    eased_target,
    target_triangle,
    turning_joints,
    two_bone,
)
from ...solvers.problem_tables import GoalSettings, measure_goals
from ..properties.constraint_kinds import SINGLE_PASS, effector
from ..properties.constraint_values import Constraint, TargetSample
from ..scene.evaluation import Samples
from ..scene.targets import TargetRows


def chain_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint moves, root first; without the body that may help."""
    tip, length = constraint.tip, constraint.chain_length

    def joints() -> tuple[int, ...]:
        return tuple([j for j in skeleton.chain(tip, length) if j not in skeleton.locked])

    return skeleton.original.computed_once(("chain", tip, length), joints)


def body_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints above the chain that help where it misses its target, root first."""
    if not constraint.body_length:
        return ()

    def body() -> tuple[int, ...]:
        chain = skeleton.chain(constraint.tip, constraint.body_length)
        alone = skeleton.chain(constraint.tip, constraint.chain_length)
        above, joints = chain[: len(chain) - len(alone)], skeleton.joints
        return tuple(j for j in above if not joints[j].locked and joints[j].name not in constraint.body_still)

    key = constraint.tip, constraint.chain_length, constraint.body_length, constraint.body_still
    return skeleton.original.computed_once(("body", *key), body)


def whole_chain(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint may move, root first: its chain and the body."""
    return body_joints(skeleton, constraint) + chain_joints(skeleton, constraint)


def with_body(skeleton: Skeleton, constraint: Constraint, goal: Goal) -> Goal:
    """The goal with the body above its chain; its reach window stays that of the chain alone."""
    if not constraint.body_length:
        return goal
    chain = len(skeleton.chain(constraint.tip, constraint.chain_length))
    body = len(skeleton.chain(constraint.tip, constraint.body_length)) - chain
    return goal.with_longer_chain(skeleton, body, chain)


GOAL_TARGETS: Mapping[TargetKind, str] = MappingProxyType(
    {TargetKind.POINT: "points", TargetKind.ROTATION: "rotations", TargetKind.DIRECTION: "directions"}
)
"""Field of target rows with the target of a goal; a pole is another point of the same constraint."""


def goal_targets(goal: Goal, targets: TargetRows, c: int) -> Array:
    """(R, 3), or (R, 4) for an orientation: targets of a goal of constraint `c`, armature space."""
    field = "poles" if isinstance(goal, PoleGoal) else GOAL_TARGETS[goal.target_kind]
    values: Array = getattr(targets, field)[:, c]
    return unit(values, axis=-1) if goal.target_kind.has_length_one else values


def goals(skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
    """The goals of a constraint, at least one.

    Priorities are doubled, so that a pole stands between its own position and what is served after that.

    Raises:
        RigError: there is no bend for a pole; names the constraint.
    """
    return constraint.kind.goals(skeleton, target.settings_of(constraint), target)


def goals_of_rows(
    skeleton: Skeleton, constraint: Constraint, targets: TargetRows, c: int
) -> tuple[list[Goal], GoalSettings]:
    """The goals of a constraint, with targets of any frame, and their settings at each of R frames.

    It has a reach window at all of them or none (`has_window`). Settings are one row where none is keyed; the
    goals of such a constraint are made once.

    Args:
        targets: at the frames.

    Raises:
        RigError: see `goals`.
    """
    if c in targets.keyed:
        keyed = [targets.settings(k, c) for k in range(len(targets.points))]
        known = {each: goals(skeleton, constraint, targets.sample(k, c)) for k, each in enumerate(keyed)}
        return known[keyed[0]], GoalSettings.of([known[each] for each in keyed])

    def made() -> tuple[list[Goal], GoalSettings]:
        first = goals(skeleton, constraint, targets.sample(0, c))
        return first, GoalSettings.of([first])

    axis = targets.directions[0, c].tobytes() if constraint.kind.balances else b""
    return skeleton.shape.computed_once(("goals", constraint, axis), made)


def has_window(constraint: Constraint, targets: TargetRows, c: int) -> Mask:
    """(R,) mask of frames at which constraint `c` has a reach window."""
    most = targets.keyed.get(c, {}).get("max_extension", constraint.max_extension)
    return np.broadcast_to(np.asarray(most) < 1.0, len(targets.points))


# Closed forms -----------------------------------------------------------------------------------------------


def solve_once(
    skeleton: Skeleton, pose: Pose, constraint: Constraint, target: TargetSample, settings: SolverSettings
) -> SolveResult:
    """Solve a constraint by a closed form; the errors are in the order of its goals.

    Args:
        pose: the start, whose bends keep their side.
        constraint: its method is one of `SINGLE_PASS`.
        settings: the tolerances.

    Raises:
        RigError: the chain does not fit.
    """
    constraint = target.settings_of(constraint)
    all_goals = goals(skeleton, constraint, target)
    position = next(goal for goal in all_goals if isinstance(goal, PositionGoal))
    try:
        if constraint.method == "TWO_BONE":
            options = TwoBoneOptions(pole=target.pole, pole_angle=constraint.pole_angle, soft=constraint.soft)
            result = two_bone(skeleton, pose, position, options)
        else:
            result = target_triangle(skeleton, pose, position)
    except InvalidInput as error:
        raise RigError(f"Constraint '{constraint.name}': {panel_words(error)}") from error
    errors = measure_goals(skeleton, all_goals, *placed_joints(skeleton, result.pose))
    met = all(settings.in_tolerances(error) <= 1.0 for error in errors)
    status = SolveStatus.CONVERGED if met else SolveStatus.STALLED
    return replace(result, status=status, errors=errors)


def eased_point(skeleton: Skeleton, pose: Pose, constraint: Constraint, target: TargetSample) -> Vector:
    """The target that Softness eases to the present end of the chain.

    Raises:
        RigError: the chain does not fit.
    """
    constraint = target.settings_of(constraint)
    position = next(g for g in goals(skeleton, constraint, target) if isinstance(g, PositionGoal))
    try:
        return eased_target(skeleton, pose, position, constraint.soft)
    except InvalidInput as error:
        raise RigError(f"Constraint '{constraint.name}': {panel_words(error)}") from error


def spare_length(skeleton: Skeleton, pose: Pose, constraint: Constraint) -> float:
    """The length that the last two turning bones gain from a pose when straight."""
    position = PositionGoal(constraint.tip, Vector(), effector(skeleton, constraint))
    position = replace(position, chain_length=constraint.chain_length)
    root, middle = turning_joints(skeleton, pose, position, constraint.name, 2)[-2:]
    transforms = forward_kinematics(skeleton, pose)
    start, bend = (transforms[j].translation for j in (root, middle))
    end = transforms[skeleton.index(constraint.tip)].point(position.effector(skeleton))
    return float((bend - start).length + (end - bend).length - (end - start).length)


def panel_words(error: InvalidInput) -> str:
    """The core's message in the words of the panel."""
    words = str(error)
    for core, panel in (
        ("joints that can turn", "bones that can turn"),
        ("unlock a joint (stiffness below 1, max_step above 0)", "unlock a bone"),
        ("make chain_length larger", "raise Chain Length"),
        ("joint '", "bone '"),
        (": use solve", ""),
    ):
        words = words.replace(core, panel)
    return words


# Groups -----------------------------------------------------------------------------------------------------


class Group(NamedTuple):
    """Constraints that are solved together, by index, and the joints that they involve."""

    joints: frozenset[int]
    members: tuple[int, ...]


def groups(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int]) -> list[Group]:
    """Groups of constraints with joints in common, parents first.

    Chains are paths, so of two groups without a common joint at most one carries the other. A balance
    involves all joints that carry mass.
    """
    key = "groups", tuple(constraints), tuple(active)
    return skeleton.original.computed_once(key, lambda: _groups(skeleton, constraints, active))


def _groups(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int]) -> list[Group]:
    group_of: dict[int, tuple[set[int], list[int]]] = {}  # by joint
    for c in active:
        joints = _moved(skeleton, constraints, active, c)
        met = {id(group_of[j]): group_of[j] for j in joints if j in group_of}
        # The largest takes the others in, so that no joint changes its group often.
        largest, *others = sorted((*met.values(), (joints, [c])), key=lambda group: -len(group[0]))
        for other_joints, members in others:
            largest[0].update(other_joints)
            largest[1].extend(members)
            group_of.update(dict.fromkeys(other_joints, largest))
        group_of.update(dict.fromkeys(joints, largest))
    distinct = {id(group): group for group in group_of.values()}.values()
    parents_first = sorted(distinct, key=lambda group: min(group[0]))
    return [Group(frozenset(joints), tuple(sorted(members))) for joints, members in parents_first]


def _moved(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int], c: int) -> set[int]:
    """Joints that constraint `c` involves."""
    constraint = constraints[c]
    joints = set(chain_joints(skeleton, constraint))
    if constraint.kind.balances:
        heavy = {j for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0 for j in skeleton.chain(i)}
        joints |= {j for a in active for j in chain_joints(skeleton, constraints[a]) if j in heavy}
    return joints or set(skeleton.chain(constraint.tip, constraint.chain_length))


def are_solved_at_once(group: Iterable[Constraint]) -> bool:
    """Whether no constraint of a group has a closed form."""
    return all(each.kind.balances or each.method not in SINGLE_PASS for each in group)


# Settings of every frame ------------------------------------------------------------------------------------


Reference: TypeAlias = Callable[[Samples], Array]
"""Gives the reference poses of R frames: (R, J, 4) rotations."""


SolvedGroup: TypeAlias = tuple[Array, Array, dict[int, str]]
"""Rotations and translations of the joints that a group looks at, and the status of its constraints."""


class SolveMemory:
    """Solutions of the groups of the last frame by all that they depend on, for those of the next.

    A group whose inputs are equal to the bit is not solved again: in a drag only groups that the target moves
    are.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._before: dict[Hashable, SolvedGroup] = {}
        self._present: dict[Hashable, SolvedGroup] = {}

    def begin_frame(self) -> None:
        """Forget the frame before the last."""
        self._before, self._present = self._present, {}

    def note(self, inputs: Hashable, solved: SolvedGroup) -> None:
        """Note the solution of a group of the present frame."""
        self._present[inputs] = solved

    def solution(self, inputs: Hashable) -> SolvedGroup | None:
        """The solution of a group with these inputs in the last frame."""
        return self._before.get(inputs)


@dataclass(frozen=True)
class FrameSolveSettings:
    """Settings of the solves of all frames."""

    solver: SolverSettings  # position tolerance in world metres
    error_reduction: float | None  # `SolverSettings.error_reduction` of each solve; None for full steps
    poses: Sequence[PoseEntry] = ()  # the pose library; entries for other bones are left out
    reference: Reference | None = None  # gives reference poses
    smoothness: float = 0.0  # weight of changes between frames, see `solvers.motion`
    memory: SolveMemory | None = None  # of Live, which solves the present frame again and again


# Softness ---------------------------------------------------------------------------------------------------


EASED_METHODS = ("CCD", "TWO_BONE_TIP")
"""Methods whose targets are eased before the solve; Two Bones eases by itself."""


def is_soft(constraint: Constraint) -> bool:
    """Whether Softness has an effect on a constraint, keyed or not."""
    return constraint.kind.reaches and constraint.use_position and constraint.method in EASED_METHODS


def effectors(constraint: Constraint, lengths: Array) -> Array:
    """(R, 3) effectors in the frame of a tip with lengths (R,)."""
    points = np.tile(np.array(constraint.effector_offset, np.float64), (len(lengths), 1))
    points[:, 1] += lengths * constraint.use_tail
    return points


def chain_ends(
    skeleton: Skeleton, constraint: Constraint, lengths: Array, heads: Array, turns: Array
) -> Array:
    """(R, 3) ends of a constraint's chain in poses of all joints.

    Args:
        lengths: (R, J) of bones.
        heads, turns: (R, J, 3) and (R, J, 4) of the joints.
    """
    tip = skeleton.index(constraint.tip)
    return heads[:, tip] + rotate(turns[:, tip], effectors(constraint, lengths[:, tip]), axis=-1)


@dataclass(frozen=True)
class SoftLimb:
    """The easing of a chain at R rows."""

    points: Array  # (R, 3) eased targets; the target itself where nothing is eased
    gaps: Array  # (R,) distances from eased targets to targets
    spare: Array  # (R,) lengths that the chain gains when straight
    present: Array  # (R,) distances from the chain's root to its end
    heads: Array  # (R, K, 3) of its bones
    reach: Array  # (R, 3) effector in the frame of the tip
    soft: Array  # (R,) part of its length over which it is eased
    # Count of bones from the tip for `extension`; 0 if their lengths change, or they end at another point.
    joints: int

    def extension(self) -> Array:
        """(R,) present extension, a part of its bones' lengths."""
        extent = length(np.diff(self.heads, axis=1), axis=-1).sum(axis=1) + length(self.reach, axis=-1)
        return self.present / np.maximum(extent, 1e-30)


def soft_limb(
    skeleton: Skeleton,
    constraint: Constraint,
    targets: TargetRows,
    c: int,
    transforms: Callable[[Sequence[int]], tuple[Array, Array]],
    lengths: Array,
    moving: Collection[int],
) -> SoftLimb | None:
    """The easing of a constraint at R rows; None without easing.

    A chain with slides, or whose root the same solve moves, is not eased: its reach is not known before.

    Args:
        constraint: with Softness.
        targets: of all constraints at the rows.
        transforms: gives heads (R, J, 3) and rotations (R, J, 4) of the base poses, on solved parents, with
            joints at rest.
        lengths: (R, J) of bones.
        moving: joints of the same solve.
    """
    soft = np.asarray(targets.keyed.get(c, {}).get("soft", constraint.soft), np.float64)
    if not is_soft(constraint) or not (soft > 0.0).any():
        return None
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    turning = [j for j in chain if not skeleton.joints[j].locked]
    if len(turning) < 2 or any(skeleton.joints[j].slides for j in chain):
        return None
    if any(j in moving for j in skeleton.chain(constraint.tip) if j < turning[0]):
        return None
    tip = chain[-1]
    reach = effectors(constraint, lengths[:, tip])
    wanted = targets.points[:, c]
    heads, frames = transforms(())
    # A tip that turns with its target does not reach: its head has a goal of its own.
    turned = constraint.rotation == "ORIENTATION" and constraint.rotation_bone in ("", constraint.tip)
    carried = turned and bool(reach.any())
    if carried:
        wanted = wanted - rotate(unit(targets.rotations[:, c], axis=-1), reach, axis=-1)
        turning = [j for j in turning if j != tip]
    ends, rests = (
        at[:, tip] + (0.0 if carried else rotate(turns[:, tip], reach, axis=-1))
        for at, turns in ((heads, frames), transforms(turning))
    )
    factor: Any = 1.0
    if constraint.extension_joints == 0:
        factor = targets.keyed.get(c, {}).get("max_extension", constraint.max_extension)
    size, places = len(ends), np.concatenate((heads[:, turning], ends[:, None]), axis=1)
    points, limb = targets.points[:, c].copy(), np.empty((size, 3))
    softs, factors = (np.full(size, each, np.float64) for each in (soft, factor))
    wanted = np.ascontiguousarray(wanted)
    if ease_limbs(places.reshape(size, -1), rests, wanted, softs, factors, points, limb) < 2:
        return None
    rolls = any(skeleton.joints[j].coupled_offsets for j in chain)
    bones = [j for j in chain if j >= turning[0]]
    joints = 0 if rolls or carried else len(bones)
    return SoftLimb(points, limb[:, 0], limb[:, 1], limb[:, 2], heads[:, bones], reach, softs, joints)
