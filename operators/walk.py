# SPDX-License-Identifier: GPL-3.0-or-later
"""Walk along a curve."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.walk import chosen, report
from ..ccd_rig.blender.walk.walk import walk_along
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_walk_along(bpy.types.Operator):
    bl_idname = "ccd_rig.walk_along"
    bl_label = "Walk Along"
    bl_description = (
        "Bake the cycle along the curve to a new action: steps planted on the ground by arc length, legs "
        "solved, from standing to standing. The action with the cycle stays in the file"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_armature(context)
        if not reason and active_rig(context).ccd_rig.walk.curve is None:
            reason = "Choose the curve to walk along"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        group = rig.ccd_rig.walk
        plays = rig.animation_data.action if rig.animation_data is not None else None
        try:
            done = walk_along(context.scene, rig, group.curve, chosen.choice_of(rig))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        if group.cycle is None:
            group.cycle = plays  # done again, the cycle is walked, not the walk
        told = report.lines(done)
        group.report = "\n".join(told)
        tell(self, {"INFO"}, told[0])
        for warning in report.warnings(done):
            tell(self, {"WARNING"}, warning)
        return {"FINISHED"}
