# SPDX-License-Identifier: GPL-3.0-or-later
"""Goals of constraints in armature space, and Softness: eased targets, so that limbs ease into straight."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from ...goals import Goal, PoleGoal, TargetKind
from ...maths.batch import Array, Mask, length, rotate, unit
from ...skeleton.joints import Skeleton
from ...solvers.problem_tables import GoalSettings
from ...solvers.soft_reach import stretched
from ..properties.constraint_values import Constraint, TargetSample
from ..scene.targets import TargetRows


def chain_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint moves, root first; without the body that may help."""
    chain, locked = skeleton.chain(constraint.tip, constraint.chain_length), skeleton.locked
    return tuple([j for j in chain if j not in locked])


def body_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints above the chain that help where it misses its target, root first."""
    if not constraint.body_length:
        return ()
    chain = skeleton.chain(constraint.tip, constraint.body_length)
    alone = skeleton.chain(constraint.tip, constraint.chain_length)
    body, joints = chain[: len(chain) - len(alone)], skeleton.joints
    return tuple(j for j in body if not joints[j].locked and joints[j].name not in constraint.body_still)


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
        targets: at the frames.

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


@dataclass(frozen=True)
class SoftLimb:
    """The easing of a chain at R rows."""

    points: Array  # (R, 3) eased targets; the target itself where nothing is eased
    gaps: Array  # (R,) distances from eased targets to targets
    spare: Array  # (R,) lengths that the chain gains when straight
    extension: Array  # (R,) present extension, a part of its bones' lengths
    soft: Array  # (R or 1) part of its length over which it is eased
    # Count of bones from the tip for `extension`; 0 if their lengths change, or they end at another point.
    joints: int


def soft_limb(
    skeleton: Skeleton,
    constraint: Constraint,
    targets: TargetRows,
    c: int,
    heads: Array,
    frames: Array,
    lengths: Array,
    moving: Collection[int],
) -> SoftLimb | None:
    """The easing of a constraint at R rows; None without easing.

    A chain with slides, or whose root the same solve moves, is not eased: its reach is not known before.

    Args:
        constraint: with Softness.
        targets: of all constraints at the rows.
        heads, frames: (R, J, 3) and (R, J, 4) of the base poses, on solved parents.
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
    # A tip that turns with its target does not reach: its head has a goal of its own.
    turned = constraint.rotation == "ORIENTATION" and constraint.rotation_bone in ("", constraint.tip)
    carried = turned and bool(reach.any())
    if carried:
        wanted = wanted - rotate(unit(targets.rotations[:, c], axis=-1), reach, axis=-1)
        ends = heads[:, tip]
        turning = [j for j in turning if j != tip]
    else:
        ends = heads[:, tip] + rotate(frames[:, tip], reach, axis=-1)
    places = [*(heads[:, j] for j in turning), ends]
    links = [length(b - a, axis=-1) for a, b in pairwise(places)]
    if sum(bool((link > 0.0).all()) for link in links) < 2:
        return None
    whole = np.sum(links, axis=0)
    if constraint.extension_joints == 0:
        whole = whole * targets.keyed.get(c, {}).get("max_extension", constraint.max_extension)
    offsets, present = wanted - places[0], length(ends - places[0], axis=-1)
    distances = length(offsets, axis=-1)
    eased = stretched(distances, whole, soft, present, length(wanted - ends, axis=-1))
    is_eased = (eased < distances) & (soft > 0.0)
    share = np.where(is_eased, eased / np.maximum(distances, 1e-30), 1.0)
    moved = offsets * (share - 1.0)[:, None]
    points = np.where(is_eased[:, None], targets.points[:, c] + moved, targets.points[:, c])
    rolls = any(skeleton.joints[j].coupled_offsets for j in chain)
    bones = [j for j in chain if j >= turning[0]]
    extent = length(np.diff(heads[:, bones], axis=1), axis=-1).sum(axis=1) + length(reach, axis=-1)
    return SoftLimb(
        points,
        np.where(is_eased, distances - eased, 0.0),
        whole - np.where(is_eased, eased, present),
        present / np.maximum(extent, 1e-30),
        np.atleast_1d(soft),
        0 if rolls or carried else len(bones),
    )
