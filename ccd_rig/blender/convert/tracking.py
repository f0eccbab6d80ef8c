# SPDX-License-Identifier: GPL-3.0-or-later
"""Damped Track as a row: the bone points along an empty at its head, which looks at the target."""

from __future__ import annotations

from typing import Any

import bpy
from mathutils import Matrix, Vector

from ..properties.new_targets import new_target
from .conversion import Conversion, NewRow, require_target

LOOKS = "TRACK_Y"
"""The axis of the empty that looks at the target."""


def conversion(armature_object: bpy.types.Object, bone: bpy.types.PoseBone, constraint: Any) -> Conversion:
    """What becomes of a Damped Track constraint.

    Raises:
        NotConverted: there is no counterpart; says why.
    """
    require_target(armature_object, constraint)
    axis = constraint.track_axis.removeprefix("TRACK_")
    sign, letter = ("NEG", axis[-1]) if axis.startswith("NEGATIVE") else ("POS", axis)
    fields = {
        "use_position": False,
        "rotation": "DIRECTION",
        "bone_axis": f"{sign}_{letter}",
        "target_axis": f"POS_{LOOKS[-1]}",
    }

    def make(context: bpy.types.Context) -> bpy.types.Object:
        return _looking_empty(context, armature_object, bone.name, constraint)

    return Conversion((NewRow(bone.name, 1, fields, make),))


def _looking_empty(
    context: bpy.types.Context, armature_object: bpy.types.Object, name: str, constraint: Any
) -> bpy.types.Object:
    """An empty at the head of a bone that goes with the bone's parent and looks at a constraint's target."""
    bone = armature_object.data.bones[name]
    empty = new_target(context, armature_object, f"Look {name}", name)
    empty.empty_display_type = "SINGLE_ARROW"
    empty.parent, empty.matrix_parent_inverse = armature_object, Matrix.Identity(4)
    empty.location = bone.head_local
    if bone.parent is not None:
        empty.parent_type, empty.parent_bone = "BONE", bone.parent.name
        # The space of what is parented to a bone begins at its tail.
        at: Any = bone.parent.matrix_local.inverted() @ bone.head_local
        empty.location = at - Vector((0.0, bone.parent.length, 0.0))
    looks: Any = empty.constraints.new("DAMPED_TRACK")
    looks.target, looks.subtarget, looks.track_axis = constraint.target, constraint.subtarget, LOOKS
    looks.head_tail, looks.use_bbone_shape = constraint.head_tail, constraint.use_bbone_shape
    return empty
