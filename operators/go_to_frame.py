# SPDX-License-Identifier: GPL-3.0-or-later
"""Go to the frame that the last bake left farthest off."""

import math

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from . import poll_reasons


class CCD_RIG_OT_go_to_frame(bpy.types.Operator):
    bl_idname = "ccd_rig.go_to_frame"
    bl_label = "Go to Worst Frame"
    bl_description = (
        "Go to the frame that the last bake left farthest off its target, and show that constraint"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        active = active_rig(context)
        reason = "" if active is not None else "Select an armature"
        if not reason and not active.ccd_rig.report.words:
            reason = f"'{active.name}' has not been baked yet"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        group = active_rig(context).ccd_rig
        whole = math.floor(group.report.worst_frame)
        context.scene.frame_set(whole, subframe=group.report.worst_frame - whole)
        index = group.constraints.find(group.report.worst_constraint)
        if index >= 0:  # it may have been removed or renamed since
            group.active_index = index
        return {"FINISHED"}
