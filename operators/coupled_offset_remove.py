# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove a coupled offset of the active bone."""

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.properties import coupled_offsets
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_coupled_offset_remove(bpy.types.Operator):
    bl_idname = "ccd_rig.coupled_offset_remove"
    bl_label = "Remove Coupled Offset"
    bl_description = "Remove this coupled offset; the bone stays where it is"
    bl_options = {"REGISTER", "UNDO"}

    offset: IntProperty(name="Offset", description="Which one, counted from 0", min=0, options={"SKIP_SAVE"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_coupled_offset(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        bone = context.active_pose_bone
        try:
            coupled_offsets.remove(bone, self.offset)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
