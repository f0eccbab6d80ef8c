# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry the motion of another armature over to the active one."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import chosen, report
from ..ccd_rig.blender.retarget.retarget import retarget_motion
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_retarget(bpy.types.Operator):
    bl_idname = "ccd_rig.retarget"
    bl_label = "Retarget"
    bl_description = (
        "Bake the source's motion to a new action of this armature: rotations carried over, hips "
        "scaled, feet locked where they are down. The action that played before stays in the file"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_source(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        group = rig.ccd_rig.retarget
        try:
            done = retarget_motion(context.scene, group.source, rig, chosen.choice_of(rig))
        except CCDRigError as error:
            chosen.note_refusal(rig, error)
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        chosen.note_refusal(rig, None)
        told = report.lines(done)
        group.report = "\n".join(told)
        tell(self, {"INFO"}, told[0])
        for warning in report.warnings(done):
            tell(self, {"WARNING"}, warning)
        return {"FINISHED"}
