# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove the constraint that the list shows."""

import bpy

from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons


class CCD_RIG_OT_constraint_remove(bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_remove"
    bl_label = "Remove CCD Constraint"
    bl_description = "Remove the active constraint; its bones and its target stay as they are"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_constraint(context)
        if not reason and constraint_list.active(context.object) is None:
            reason = "Choose a constraint in the list"
        if not reason and constraint_list.is_from_library(
            context.object, context.object.ccd_rig.active_index
        ):
            reason = "This constraint comes from the library's file: disable it here, or remove it there"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            constraint_list.remove(context.object, context.object.ccd_rig.active_index)
        except CCDRigError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
