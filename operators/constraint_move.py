# SPDX-License-Identifier: GPL-3.0-or-later
"""Move the constraint that the list shows up or down."""

import bpy
from bpy.props import EnumProperty

from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_constraint_move(bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_move"
    bl_label = "Move CCD Constraint"
    bl_description = "Move the active constraint up or down in the list"
    bl_options = {"REGISTER", "UNDO"}

    direction: EnumProperty(
        name="Direction",
        description="Where the constraint goes in the list",
        items=(("UP", "Up", "Towards the top"), ("DOWN", "Down", "Towards the bottom")),
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_constraint(context)
        if not reason and len(active_rig(context).ccd_rig.constraints) < 2:
            reason = "There is only one constraint"
        if not reason and constraint_list.active(active_rig(context)) is None:
            reason = "Choose a constraint in the list"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        index = active_rig(context).ccd_rig.active_index
        new_index = index + (1 if self.direction == "DOWN" else -1)
        if not 0 <= new_index < len(active_rig(context).ccd_rig.constraints):
            return {"CANCELLED"}  # it is at the end already, as a list in Blender takes it
        try:
            constraint_list.move(active_rig(context), index, new_index)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
