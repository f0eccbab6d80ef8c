# SPDX-License-Identifier: GPL-3.0-or-later
"""Softness of constraints: eased targets, so that limbs ease into straight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...maths.batch import Array, length, rotate, unit
from ...skeleton.joints import Skeleton
from ...solvers.soft_reach import stretched
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetRows

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
    """The easing of a chain at R rows.

    Attributes:
        points: (R, 3) eased targets; the target itself where nothing is eased.
        gaps: (R,) distances from eased targets to targets.
        spare: (R,) lengths that the chain gains when straight.
        extension: (R,) present extension, a part of its bones' lengths.
        soft: (R or 1) part of its length over which it is eased.
        joints: count of bones from the tip for `extension`; 0 if their lengths change, or they end at
            another point.
    """

    points: Array
    gaps: Array
    spare: Array
    extension: Array
    soft: Array
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
        skeleton: the joints.
        constraint: with Softness.
        targets: of all constraints at the rows.
        c: index of the constraint.
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
