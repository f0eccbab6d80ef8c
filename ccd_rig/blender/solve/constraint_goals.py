# SPDX-License-Identifier: GPL-3.0-or-later
"""The goals of a constraint at one frame, in armature space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from mathutils import Vector

from ...errors import RigError
from ...goals import BalanceGoal, DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal
from ...maths.batch import Array, Mask, unit
from ...skeleton.joints import Skeleton
from ...solvers.problem_tables import GoalSettings
from ..properties.constraint_values import Constraint, Kind
from ..scene.targets import AXES, TargetRows, TargetSample


def chain_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint moves, root first; without the body that may help."""
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    return tuple(j for j in chain if not skeleton.joints[j].locked)


def body_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints above the chain that help where it misses its target, root first."""
    if not constraint.body_length:
        return ()
    chain = skeleton.chain(constraint.tip, constraint.body_length)
    alone = skeleton.chain(constraint.tip, constraint.chain_length)
    return tuple(j for j in chain[: len(chain) - len(alone)] if not skeleton.joints[j].locked)


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


GOAL_TARGETS: Mapping[type, str] = MappingProxyType(
    {
        PositionGoal: "points",
        BalanceGoal: "points",
        OrientationGoal: "rotations",
        DirectionGoal: "directions",
        PoleGoal: "poles",
    }
)
"""Field of target rows with the target of a goal."""


def goal_targets(goal: Goal, targets: TargetRows, c: int) -> Array:
    """(R, 3), or (R, 4) for an orientation: targets of a goal of constraint `c`, armature space."""
    values: Array = getattr(targets, GOAL_TARGETS[type(goal)])[:, c]
    return unit(values, axis=-1) if goal.target_kind.has_length_one else values


def goals(skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
    """The goals of a constraint, at least one.

    Priorities are doubled, so that a pole stands between its own position and what is served after that.

    Raises:
        RigError: there is no bend for a pole; names the constraint.
    """
    return GOALS[constraint.kind](skeleton, target.settings_of(constraint), target)


def goals_of_rows(
    skeleton: Skeleton, constraint: Constraint, targets: TargetRows, c: int
) -> tuple[list[Goal], GoalSettings]:
    """The goals of a constraint at the first of R frames, and their settings at each of them.

    It has a reach window at all of them or none (`has_window`). Settings are one row where none is keyed.

    Args:
        skeleton: the joints.
        constraint: whose goals they are.
        targets: at the frames.
        c: its place in these.

    Raises:
        RigError: see `goals`.
    """
    first = goals(skeleton, constraint, targets.sample(0, c))
    if c not in targets.keyed:
        return first, GoalSettings.of([first])
    keyed = [targets.settings(k, c) for k in range(len(targets.points))]
    known = {each: goals(skeleton, constraint, targets.sample(k, c)) for k, each in enumerate(keyed)}
    return first, GoalSettings.of([known[each] for each in keyed])


def has_window(constraint: Constraint, targets: TargetRows, c: int) -> Mask:
    """(R,) mask of frames at which constraint `c` has a reach window."""
    most = targets.keyed.get(c, {}).get("max_extension", constraint.max_extension)
    return np.broadcast_to(np.asarray(most) < 1.0, len(targets.points))


def _balance_goals(_skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
    axes, priority = constraint.balance_axes, 2 * constraint.priority
    return [BalanceGoal(target.point, axes, constraint.weight, priority)]


def _reach_goals(skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
    joint, length, weight = constraint.tip, constraint.chain_length, constraint.weight
    priority = 2 * constraint.priority
    wanted: list[Goal] = []
    if constraint.use_position:
        end = _offset(skeleton, constraint)
        window = (constraint.max_extension, constraint.extension_joints, constraint.method == "TWO_BONE_TIP")
        wanted.append(PositionGoal(joint, target.point, end, weight, priority, length, *window))
    weight *= constraint.rotation_weight
    if target.rotation is not None or target.direction is not None:
        joint, length = rotation_chain(skeleton, constraint)
    if target.rotation is not None:
        wanted.append(OrientationGoal(joint, target.rotation, weight, priority, length))
    if target.direction is not None:
        axis = AXES[constraint.bone_axis]
        wanted.append(DirectionGoal(joint, axis, target.direction, weight, priority, length))
    if target.pole is not None:
        wanted.append(pole_goal(skeleton, constraint, target.pole))
    return wanted


GOALS: Mapping[Kind, Callable[[Skeleton, Constraint, TargetSample], list[Goal]]] = MappingProxyType(
    {Kind.REACH: _reach_goals, Kind.BALANCE: _balance_goals, Kind.PLANT: _reach_goals}
)
"""The goals of a constraint of a kind. A planted bone reaches for where it is held."""


def effector(skeleton: Skeleton, constraint: Constraint) -> Vector:
    """The effector in the tip's frame."""
    end = skeleton.joints[skeleton.index(constraint.tip)].length if constraint.use_tail else 0.0
    return Vector((0.0, end, 0.0)) + Vector(constraint.effector_offset)


def rotation_chain(skeleton: Skeleton, constraint: Constraint) -> tuple[str, int]:
    """The joint of `rotation`, and the count of joints of the constraint's chain that turn it (0: all).

    Raises:
        RigError: the joint is not in the constraint's chain; names both.
    """
    name, length = constraint.rotation_bone or constraint.tip, constraint.chain_length
    names = [skeleton.joints[j].name for j in skeleton.chain(constraint.tip, length)]
    if name not in names:
        raise RigError(
            f"Constraint '{constraint.name}': rotation bone '{name}' is not in its chain, which goes from "
            f"'{names[0]}' to '{names[-1]}': choose one of its bones, or clear it"
        )
    return name, names.index(name) + 1 if length else 0


def pole_goal(skeleton: Skeleton, constraint: Constraint, target: Vector) -> PoleGoal:
    """The goal that bends the chain to a pole.

    The chain goes from the first joint that can turn to the effector. A joint with a rotation goal cannot
    turn for the bend, so the chain ends at its head.

    Raises:
        RigError: the chain has less than two joints, so that there is no bend; names the constraint.
    """
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    whole = constraint.use_tail or any(constraint.effector_offset)
    fixed = None if whole else constraint.tip  # the head of this joint is the end
    if constraint.rotation != "NONE":
        fixed = rotation_chain(skeleton, constraint)[0]
    if fixed is not None:
        chain = chain[: chain.index(skeleton.index(fixed))]
    first = next((j for j in chain if not skeleton.joints[j].locked), chain[0] if chain else -1)
    if not chain or first == chain[-1]:
        bones = "two bones that can turn" if fixed is None else f"two bones that can turn before '{fixed}'"
        raise RigError(
            f"Constraint '{constraint.name}': a pole needs a chain of {bones}: make the chain longer, or "
            "clear the pole target"
        )
    end = _offset(skeleton, constraint) if fixed is None else skeleton.joints[skeleton.index(fixed)].offset
    root, last = skeleton.joints[first].name, skeleton.joints[chain[-1]].name
    priority = 2 * constraint.priority + 1
    return PoleGoal(root, last, target, constraint.weight, priority, end, constraint.pole_angle)


def _offset(skeleton: Skeleton, constraint: Constraint) -> Vector | None:
    """`effector` for goals, where None is the tail."""
    plain = constraint.use_tail and not any(constraint.effector_offset)
    return None if plain else effector(skeleton, constraint)
