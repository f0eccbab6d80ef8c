# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets and poles of a figure's constraints."""

from __future__ import annotations

from typing import Any

import bpy
from mathutils import Matrix, Vector

from ..properties import constraint_list
from ..properties.new_targets import COLOURS, new_target
from ..scene.targets import orthonormal
from .planned_rows import PlannedRow

ROOM = 1.0
"""Part of the figure's size by which a bone that carries it may be shifted by its target."""


def add_row(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    evaluated: bpy.types.Object,
    planned: PlannedRow,
    plants: bool,
) -> bpy.types.Object:
    """A constraint with a new target at its bone, turned as the bone is."""
    target = new_target(context, armature_object, f"Target {planned.tip}", planned.tip)
    bone = evaluated.pose.bones[planned.tip]
    end = bone.tail if planned.use_tail else bone.head
    axes: Any = (evaluated.matrix_world @ bone.matrix).to_3x3()
    rotation = orthonormal(axes) if planned.copies_rotation else None
    target.matrix_world = Matrix.LocRotScale(evaluated.matrix_world @ end, rotation, None)
    target.color[:] = COLOURS[planned.role.side]
    if planned.copies_rotation:
        target.empty_display_type = "CUBE"  # shows how it is turned
    row = constraint_list.add(armature_object, planned.tip, planned.tip)
    chain = [each.name for each in constraint_list.chain(armature_object, planned.tip)]
    row.chain_length = chain.index(planned.top) + 1
    row.target = target
    row.use_tail, row.use_position = planned.use_tail, planned.reaches
    if planned.copies_rotation:
        row.rotation = "ORIENTATION"
    if planned.slides and not plants:  # planted feet shift the bone that they carry
        _let_slide(armature_object, planned.tip)
    return target


def _let_slide(armature_object: bpy.types.Object, name: str) -> None:
    """Let a bone be shifted to all sides as far as the figure is large."""
    bone = armature_object.pose.bones[name]
    points = [point for each in armature_object.data.bones for point in (each.head_local, each.tail_local)]
    spans = [max(point[k] for point in points) - min(point[k] for point in points) for k in range(3)]
    room = ROOM * Vector(spans).length
    joint = bone.ccd_rig
    joint.use_slide = (True, True, True)
    joint.slide_lower, joint.slide_upper = (-room,) * 3, (room,) * 3


def add_pole(
    context: bpy.types.Context, armature_object: bpy.types.Object, planned: PlannedRow, place: Vector
) -> bpy.types.Object:
    """A pole for the newest constraint."""
    pole = new_target(context, armature_object, f"Pole {planned.tip}", planned.tip)
    pole.empty_display_type = "PLAIN_AXES"
    pole.color[:] = COLOURS[planned.role.side]
    pole.location = place
    constraint_list.active(armature_object).pole_target = pole
    return pole


def carry(
    armature_object: bpy.types.Object,
    thing: bpy.types.Object,
    carrier: bpy.types.Object | None,
    bone_name: str,
) -> None:
    """Let a target or pole go along with another target, else with a bone; it stays where it is now."""
    if carrier is not None:
        thing.parent = carrier
        thing.matrix_parent_inverse = carrier.matrix_basis.inverted()
    elif bone_name:
        bone = armature_object.pose.bones[bone_name]
        thing.parent, thing.parent_type, thing.parent_bone = armature_object, "BONE", bone.name
        tail = Matrix.Translation((0.0, bone.length, 0.0))
        thing.matrix_parent_inverse = (armature_object.matrix_world @ bone.matrix @ tail).inverted()
