# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves the bones of a figure already, and what is to be set for its constraints to show."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
from mathutils import Vector

from ..figures import rigify
from ..figures.by_structure import IN_LINE
from ..figures.role import Figure, Part
from ..keys import channels
from ..properties import constraint_list
from ..properties.names_in_words import named
from ..rig import clamps
from .planned_rows import PlannedRow

PIECES = (Part.UPPER_ARM, Part.LOWER_ARM, Part.THIGH, Part.SHIN, Part.FRONT_THIGH, Part.FRONT_SHIN)


def is_turned(armature_object: bpy.types.Object, row: PlannedRow) -> bool:
    """Whether constraints of the rig turn bones of a chain."""
    for bone in constraint_list.chain(armature_object, row.tip):
        if any(not each.mute and each.influence > 0.0 for each in clamps.user_constraints(bone)):
            return True
        if bone.name == row.top:
            break
    return False


def keyed_at_or_above(armature_object: bpy.types.Object, name: str) -> str:
    """The bone, or the next one above it, that has keys in what plays; empty for none."""
    paths = _played_paths(armature_object)
    bone = armature_object.pose.bones[name]
    for each in (bone, *bone.parent_recursive):
        start = each.path_from_id() + "."
        if any(path.startswith(start) for path in paths):
            return str(each.name)
    return ""


def stiffen(armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow]) -> list[str]:
    """Let pieces of one thigh, shin or arm that are in line at rest stay so: Stiffness 1; notes of it."""
    locked = []
    for row in rows:
        following: bpy.types.PoseBone | None = None
        for bone in constraint_list.chain(armature_object, row.tip):
            if following is not None and _is_piece(figure, bone, following):
                bone.ccd_rig.stiffness = 1.0
                locked.append(bone.name)
            if bone.name == row.top:
                break
            following = bone
    return [f"Kept in line with the bone before (Stiffness 1): {named(locked)}"] if locked else []


def _is_piece(figure: Figure, bone: bpy.types.PoseBone, following: bpy.types.PoseBone) -> bool:
    """Whether a bone goes on in line from the one before it, which is the same part of a limb."""
    role = figure.roles.get(bone.name)
    if role is None or role.part not in PIECES or role.index == 0:
        return False
    before = figure.bones(role.part, role.side, role.number)[role.index - 1]
    start = bone.bone.head_local
    way: Vector = start - bone.id_data.data.bones[before].head_local
    return bool(way.angle(following.bone.head_local - start, 0.0) < IN_LINE)


def switch_to_fk(armature_object: bpy.types.Object, rows: Sequence[PlannedRow]) -> list[str]:
    """Set the limbs of a generated rig to FK, so that their FK controls move them; notes of it."""
    switched, animated = [], []
    paths = _played_paths(armature_object) | _driven_paths(armature_object)
    for row in rows:
        switch = armature_object.pose.bones.get(rigify.limb_parent(row.top))
        if switch is None or not isinstance(switch.get(rigify.IK_FK), bool | int | float):
            continue
        path = f'{switch.path_from_id()}["{rigify.IK_FK}"]'
        if path in paths:
            animated.append(switch.name)
        elif switch[rigify.IK_FK] < 1.0:
            switch[rigify.IK_FK] = 1.0
            switched.append(switch.name)
            armature_object.update_tag()  # drivers do not see a custom property otherwise
    notes = [f"{rigify.IK_FK} set to FK on {named(switched)}"] if switched else []
    if animated:
        notes.append(f"{rigify.IK_FK} is animated on {named(animated)}: set it to 1 for the frames to bake")
    return notes


def _played_paths(armature_object: bpy.types.Object) -> set[str]:
    """Data paths that F-curves play on."""
    return {curve.data_path for _, curves in channels.played(armature_object) for curve in curves}


def _driven_paths(armature_object: bpy.types.Object) -> set[str]:
    """Data paths that have drivers."""
    animation = armature_object.animation_data
    return set() if animation is None else {driver.data_path for driver in animation.drivers}
