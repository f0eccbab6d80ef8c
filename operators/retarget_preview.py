# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the present frame of a retargeting."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import chosen
from ..ccd_rig.blender.retarget.retarget import show_frame
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_retarget_preview(bpy.types.Operator):
    bl_idname = "ccd_rig.retarget_preview"
    bl_label = "Show This Frame"
    bl_description = "Pose this armature as the present frame would be retargeted; keys stay as they are"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_source(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        try:
            show_frame(context.scene, rig.ccd_rig.retarget.source, rig, chosen.choice_of(rig))
        except CCDRigError as error:
            chosen.note_refusal(rig, error)
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
