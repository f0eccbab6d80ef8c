# SPDX-License-Identifier: GPL-3.0-or-later
"""Coupled offsets of the active bone and the points of their curves."""

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.properties import coupled_offsets
from . import command
from .command import Command


def no_coupled_offset(context: bpy.types.Context) -> str:
    """There is no active bone, or it has no coupled offset."""
    if reason := command.no_pose_bone(context):
        return reason
    if not context.active_pose_bone.ccd_rig.coupled_offsets:
        return f"Bone '{context.active_pose_bone.name}' has no coupled offset: add one"
    return ""


class CCD_RIG_OT_coupled_offset_add(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.coupled_offset_add"
    bl_label = "Add Coupled Offset"
    bl_description = "Let the active bone shift as a hinge turns: its own, or that of a parent"

    why_grey = staticmethod(command.no_pose_bone)

    def run(self, context: bpy.types.Context) -> None:
        coupled_offsets.add(context.active_pose_bone)


class CCD_RIG_OT_coupled_offset_remove(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.coupled_offset_remove"
    bl_label = "Remove Coupled Offset"
    bl_description = "Remove this coupled offset; the bone stays where it is"

    offset: IntProperty(name="Offset", description="Which one, counted from 0", min=0, options={"SKIP_SAVE"})

    why_grey = staticmethod(no_coupled_offset)

    def run(self, context: bpy.types.Context) -> None:
        coupled_offsets.remove(context.active_pose_bone, self.offset)


class CCD_RIG_OT_offset_point_add(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.offset_point_add"
    bl_label = "Add Point"
    bl_description = "Add a point to the curve of this coupled offset, beyond its last one"

    offset: IntProperty(
        name="Offset", description="Of which coupled offset, counted from 0", min=0, options={"SKIP_SAVE"}
    )

    why_grey = staticmethod(no_coupled_offset)

    def run(self, context: bpy.types.Context) -> None:
        coupled_offsets.add_point(context.active_pose_bone, self.offset)


class CCD_RIG_OT_offset_point_remove(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.offset_point_remove"
    bl_label = "Remove Point"
    bl_description = "Remove this point from the curve of the coupled offset, which needs two at least"

    offset: IntProperty(
        name="Offset", description="Of which coupled offset, counted from 0", min=0, options={"SKIP_SAVE"}
    )
    point: IntProperty(name="Point", description="Which point, counted from 0", min=0, options={"SKIP_SAVE"})

    why_grey = staticmethod(no_coupled_offset)

    def run(self, context: bpy.types.Context) -> None:
        coupled_offsets.remove_point(context.active_pose_bone, self.offset, self.point)
