# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints in the viewport: their reach, and sketches of chains, targets and planted bones."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from itertools import pairwise
from math import cos, pi, sin
from typing import Any, NamedTuple

import bpy
from mathutils import Vector

from ..properties import constraint_list
from ..properties.constraint_kinds import kind_of
from ..properties.constraint_values import PLANT, PLANTED
from ..scene.targets import FAR
from .sketch import Sketch

SLACK = 1e-4  # fraction of a chain's length by which a target may be too far and still counts as reachable


class Reach(NamedTuple):
    """Effector and target of a constraint, world space.

    Attributes:
        end: the effector.
        target: the point to reach.
        gap: metres by which the target is out of reach of the chain; 0 within reach, and if the length of the
            chain or the place of its root may change.
    """

    end: Vector
    target: Vector
    gap: float

    @property
    def deviation(self) -> float:
        """Distance from the effector to the target, metres."""
        return (self.end - self.target).length


def reach_of(armature_object: bpy.types.Object, constraint: Any) -> Reach | None:
    """Return the present reach of a constraint; None without an effector or a target."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if not kind_of(constraint).reaches or not constraint.use_position or not chain:
        return None
    target = target_point(constraint)
    if target is None:
        return None
    world: Any = armature_object.matrix_world
    tip = chain[0]
    start = tip.tail if constraint.use_tail else tip.head
    end = start + tip.matrix.to_quaternion() @ Vector(constraint.effector_offset)
    if not all(abs(value) < FAR for value in (*target, *(world @ end))):  # false for NaN
        return None
    gap = 0.0
    if not _is_open(armature_object, chain):
        root = chain[-1].head
        local_target = world.inverted_safe() @ target
        longest = _longest(chain, end, constraint)
        distance = (local_target - root).length
        if distance > longest * (1.0 + SLACK):
            nearest = root + (local_target - root) * (longest / distance)
            gap = (world @ nearest - target).length
    return Reach(world @ end, target, gap)


def target_point(constraint: Any) -> Vector | None:
    """Return the point of a constraint's target, offset included, world space; None without one."""
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
    """Whether a constraint plants its bone now."""
    return constraint.kind == PLANT and constraint.enabled and constraint.influence > PLANTED


def _is_open(armature_object: bpy.types.Object, chain: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether bones of a chain can shift, or the chain includes the root bone of planted bones."""
    if any(any(bone.ccd_rig.use_slide) or len(bone.ccd_rig.coupled_offsets) for bone in chain):
        return True
    plants = [row for row in armature_object.ccd_rig.constraints if row.kind == PLANT and row.enabled]
    return any(
        root_bone in chain
        for row in plants
        for root_bone in constraint_list.chain(armature_object, row.tip, row.chain_length)[-1:]
    )


def _longest(chain: Sequence[bpy.types.PoseBone], end: Vector, constraint: Any) -> float:
    """Return the reach of a chain, tip first, from its root to `end`, without limits; armature units."""
    joints = [end, *(bone.head for bone in chain)]
    lengths = [(a - b).length for a, b in pairwise(joints)]
    count = constraint.extension_joints or len(lengths)
    return constraint.max_extension * sum(lengths[:count]) + sum(lengths[count:])


CHAIN, LINE, RING = 7.0, 2.0, 3.0  # [pixels]
RING_SIZE = 0.35  # radius of the mark of a planted bone, as a fraction of the bone's length
DASH = 0.08  # length of a dash, as a fraction of the tip's length
ACTIVE, PASSIVE = 1.0, 0.4  # alpha of the active constraint, and of the others


def sketch_rows(
    sketch: Sketch,
    armature_object: bpy.types.Object,
    shown: Container[str],
    in_words: Callable[[float], str],
    missed: Container[int] = (),
) -> None:
    """Draw the enabled constraints of an armature.

    Args:
        sketch: to draw on.
        armature_object: the armature.
        shown: names of the visible bones.
        in_words: formats a length in metres in the scene's units.
        missed: indices of the constraints that miss their goals in the present pose.
    """
    active = constraint_list.active(armature_object)
    if active is not None:
        _sketch_chain(sketch, armature_object, active, shown)
    tolerance = armature_object.ccd_rig.solver.position_tolerance
    for place, row in enumerate(armature_object.ccd_rig.constraints):
        tip = armature_object.pose.bones.get(row.tip)
        if not row.enabled or tip is None or tip.name not in shown:
            continue
        alpha = ACTIVE if row == active else PASSIVE
        if row.kind == PLANT:
            _sketch_plant(sketch, tip, is_planted(row), alpha)
        reach = reach_of(armature_object, row)
        if reach is not None:
            words = ""
            if reach.gap > 0.0:
                words = f"{in_words(reach.gap)} out of reach"
            elif place in missed and reach.deviation > tolerance:
                words = f"{in_words(reach.deviation)} off"
            _sketch_reach(sketch, reach, DASH * _length(tip), alpha, words)


def _sketch_chain(sketch: Sketch, armature_object: bpy.types.Object, row: Any, shown: Container[str]) -> None:
    world: Any = armature_object.matrix_world
    colour = (*sketch.palette.chain, 0.4 if row.enabled else 0.15)
    for bone in constraint_list.chain(armature_object, row.tip, row.chain_length):
        if bone.name in shown:
            sketch.path((world @ bone.head, world @ bone.tail), colour, CHAIN)


def _sketch_reach(sketch: Sketch, reach: Reach, dash: float, alpha: float, words: str) -> None:
    warning = sketch.palette.warning
    sketch.dotted(
        (reach.end, reach.target), dash, (*(warning if words else sketch.palette.chain), alpha), LINE
    )
    if words:
        sketch.label(reach.target, reach.end, words, (*warning, 1.0))


def _sketch_plant(sketch: Sketch, tip: bpy.types.PoseBone, is_planted: bool, alpha: float) -> None:
    """Draw a level ring around the head of a bone: with a cross while it is planted, else thin."""
    head, planted = tip.id_data.matrix_world @ tip.head, sketch.palette.planted
    radius = RING_SIZE * _length(tip)
    ring = [
        head + Vector((cos(angle), sin(angle), 0.0)) * radius
        for angle in (2.0 * pi * i / 32 for i in range(33))
    ]
    if not is_planted:
        sketch.path(ring, (*planted, 0.5 * alpha), 1.0)
        return
    colour = (*planted, alpha)
    sketch.path(ring, colour, RING)
    sketch.path((ring[4], ring[20]), colour, RING)
    sketch.path((ring[12], ring[28]), colour, RING)
    sketch.fan(head, ring, (*planted, 0.25 * alpha))


def _length(bone: bpy.types.PoseBone) -> float:
    """Return the length of a bone in the world, metres."""
    world: Any = bone.id_data.matrix_world
    return (world @ bone.tail - world @ bone.head).length
