# SPDX-License-Identifier: GPL-3.0-or-later
"""The goals of a constraint at one frame, in armature space."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ...goals import Goal, PoleGoal, TargetKind
from ...maths.batch import Array, Mask, unit
from ...skeleton.joints import Skeleton
from ...solvers.problem_tables import GoalSettings
from ..properties.constraint_values import Constraint, TargetSample
from ..scene.targets import TargetRows


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
