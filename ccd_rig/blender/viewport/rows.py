# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints as the viewport shows them: from where to where each one reaches, and what is planted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import bpy
from mathutils import Vector

from ..properties import constraint_list
from ..properties.constraint_values import Kind
from ..scene.influences import PLANTED
from ..scene.targets import FAR

SLACK = 1e-4  # part of a chain's length by which a target may be out of reach and still is not called so


class Reach(NamedTuple):
    """What a constraint brings to its target, in world space.

    Attributes:
        end: the point of the tip that is to be at the target.
        target: where it is to be.
        gap: metres by which the target is farther away than the chain is long; 0 within reach, and where
            the length of the chain or the place of its root is open.
    """

    end: Vector
    target: Vector
    gap: float

    @property
    def deviation(self) -> float:
        """Metres from the point to its target."""
        return (self.end - self.target).length


def reach_of(armature_object: bpy.types.Object, constraint: Any) -> Reach | None:
    """From where to where a constraint reaches now; None without a point to bring, or a place to bring it."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if constraint.kind != Kind.REACH or not constraint.use_position or not chain:
        return None
    target = target_point(constraint)
    if target is None:
        return None
    world: Any = armature_object.matrix_world
    end = _end_point(chain[0], constraint)
    if not all(abs(part) < FAR for part in (*target, *(world @ end))):  # what is not a number is not below
        return None
    gap = 0.0
    if not _is_open(armature_object, chain):
        root = chain[-1].head
        there = world.inverted_safe() @ target
        longest = _longest(chain, end, constraint)
        distance = (there - root).length
        if distance > longest * (1.0 + SLACK):
            nearest = root + (there - root) * (longest / distance)
            gap = (world @ nearest - target).length
    return Reach(world @ end, target, gap)


def target_point(constraint: Any) -> Vector | None:
    """Where a constraint's target is, offset included, in world space; None without one."""
    target = constraint.target
    if target is None:
        return None
    matrix: Any = target.matrix_world
    if constraint.target_bone:
        bone = target.pose.bones.get(constraint.target_bone) if target.type == "ARMATURE" else None
        if bone is None:
            return None
        matrix = matrix @ bone.matrix
    offset = Vector(constraint.offset)
    if constraint.offset_space == "TARGET":
        point: Vector = matrix @ offset
        return point
    axes: Any = constraint.id_data.matrix_world.to_3x3()
    return matrix.to_translation() + (axes @ offset if constraint.offset_space == "ARMATURE" else offset)


def is_planted(constraint: Any) -> bool:
    """Whether a constraint holds its bone now."""
    return constraint.kind == Kind.PLANT and constraint.enabled and constraint.influence > PLANTED


def _end_point(tip: bpy.types.PoseBone, constraint: Any) -> Vector:
    """The point of the tip that is brought to the target, in armature space."""
    start = tip.tail if constraint.use_tail else tip.head
    return start + tip.matrix.to_quaternion() @ Vector(constraint.effector_offset)


def _is_open(armature_object: bpy.types.Object, chain: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether bones of a chain also shift, or it goes up to the root bone of planted ones."""
    if any(any(bone.ccd_rig.use_slide) or len(bone.ccd_rig.coupled_offsets) for bone in chain):
        return True
    plants = [row for row in armature_object.ccd_rig.constraints if row.kind == Kind.PLANT and row.enabled]
    return any(
        root_bone in chain
        for row in plants
        for root_bone in constraint_list.chain(armature_object, row.tip, row.chain_length)[-1:]
    )


def _longest(chain: Sequence[bpy.types.PoseBone], end: Vector, constraint: Any) -> float:
    """How far from its root a chain, tip first, can bring its end, limits aside; in armature units."""
    joints = [end, *(bone.head for bone in chain)]
    lengths = [(a - b).length for a, b in pairwise(joints)]
    count = constraint.extension_joints or len(lengths)
    return constraint.max_extension * sum(lengths[:count]) + sum(lengths[count:])
