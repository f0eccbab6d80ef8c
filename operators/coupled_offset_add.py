# SPDX-License-Identifier: GPL-3.0-or-later
"""Add a coupled offset to the active bone."""

import bpy

from ..ccd_rig.blender.properties import coupled_offsets
from . import poll_reasons


class CCD_RIG_OT_coupled_offset_add(bpy.types.Operator):
    bl_idname = "ccd_rig.coupled_offset_add"
    bl_label = "Add Coupled Offset"
    bl_description = "Let the active bone shift as a hinge turns: its own, or that of a parent"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_pose_bone(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        coupled_offsets.add(context.active_pose_bone)
        return {"FINISHED"}
