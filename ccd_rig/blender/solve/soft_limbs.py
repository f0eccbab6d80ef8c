# SPDX-License-Identifier: GPL-3.0-or-later
"""Softness of a constraint: where its target counts as, so that the limb eases into straight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...maths.batch import Array, length, rotate, unit
from ...skeleton.joints import Skeleton
from ...solvers.soft_reach import stretched
from ..properties.constraint_values import Constraint, Kind
from ..scene.targets import TargetRows

EASED_METHODS = ("CCD", "TWO_BONE_TIP")
"""Methods whose targets are eased before they are solved; Two Bones eases by itself."""


def is_soft(constraint: Constraint) -> bool:
    """Whether Softness may count for a constraint, keyed or not."""
    return constraint.kind is Kind.REACH and constraint.use_position and constraint.method in EASED_METHODS


def effectors(constraint: Constraint, lengths: Array) -> Array:
    """(R, 3) the point that is brought to the target, in the frame of a tip of these lengths (R,)."""
    points = np.tile(np.array(constraint.effector_offset, np.float64), (len(lengths), 1))
    points[:, 1] += lengths * constraint.use_tail
    return points


@dataclass(frozen=True)
class SoftLimb:
    """A chain at R rows, and how far it goes to its target.

    Attributes:
        points: (R, 3) where the target counts as; where nothing is eased, the target itself.
        gaps: (R,) from there to the target.
        spare: (R,) by how much longer the chain were, straight.
        extension: (R,) how far it is stretched now, a part of its bones' lengths.
        soft: (R or 1) part of its length over which it is eased.
        joints: how many bones, counted from the tip, `extension` is about; 0 where these do not keep their
            lengths, or end at another point.
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
    """How a constraint is eased at R rows; None where it is not.

    A chain whose root is carried along by the same solve is not, nor one that is shifted, as its reach is not
    known before.

    Args:
        skeleton: the joints.
        constraint: eased by its Softness.
        targets: of all constraints at the rows.
        c: its place in these.
        heads, frames: (R, J, 3) and (R, J, 4) of the base poses, on parents as they are solved.
        lengths: (R, J) of bones.
        moving: joints that are solved together.
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
    # A bone that is turned as its target is has no part in reaching: its head is to go to a place of its own.
    turned = constraint.rotation == "ORIENTATION" and constraint.rotation_bone in ("", constraint.tip)
    carried = turned and bool(reach.any())
    if carried:
        wanted = wanted - rotate(unit(targets.rotations[:, c], axis=-1), reach, axis=-1)
        ends = heads[:, tip]
        turning = [j for j in turning if j != tip]
    else:
        ends = heads[:, tip] + rotate(frames[:, tip], reach, axis=-1)
    places = [*(heads[:, j] for j in turning), ends]
    parts = [length(b - a, axis=-1) for a, b in pairwise(places)]
    if sum(bool((part > 0.0).all()) for part in parts) < 2:
        return None
    whole = np.sum(parts, axis=0)
    if constraint.extension_joints == 0:
        whole = whole * targets.keyed.get(c, {}).get("max_extension", constraint.max_extension)
    ways, now = wanted - places[0], length(ends - places[0], axis=-1)
    distances = length(ways, axis=-1)
    goes = stretched(distances, whole, soft, now, length(wanted - ends, axis=-1))
    is_eased = (goes < distances) & (soft > 0.0)
    share = np.where(is_eased, goes / np.maximum(distances, 1e-30), 1.0)
    moved = ways * (share - 1.0)[:, None]
    points = np.where(is_eased[:, None], targets.points[:, c] + moved, targets.points[:, c])
    rolls = any(skeleton.joints[j].coupled_offsets for j in chain)
    own = [j for j in chain if j >= turning[0]]
    links = length(np.diff(heads[:, own], axis=1), axis=-1).sum(axis=1) + length(reach, axis=-1)
    return SoftLimb(
        points,
        np.where(is_eased, distances - goes, 0.0),
        whole - np.where(is_eased, goes, now),
        now / np.maximum(links, 1e-30),
        np.atleast_1d(soft),
        0 if rolls or carried else len(own),
    )
