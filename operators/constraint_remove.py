# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove the constraint that the list shows."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.new_targets import is_left_over
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_constraint_remove(bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_remove"
    bl_label = "Remove CCD Constraint"
    bl_description = "Remove the active constraint; its bones and its target stay as they are"
    bl_options = {"REGISTER", "UNDO"}

    with_target: BoolProperty(
        name="Remove Target Too",
        description="Remove the target as well, if Add has made it and nothing else uses it",
        default=False,
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_constraint(context)
        if not reason and constraint_list.active(active_rig(context)) is None:
            reason = "Choose a constraint in the list"
        if not reason and constraint_list.is_from_library(
            active_rig(context), active_rig(context).ccd_rig.active_index
        ):
            reason = "This constraint comes from the library's file: disable it here, or remove it there"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        target = constraint_list.active(active_rig(context)).target
        try:
            constraint_list.remove(active_rig(context), active_rig(context).ccd_rig.active_index)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        if target is not None and is_left_over(target):
            if self.with_target:
                bpy.data.objects.remove(target)
            else:
                tell(self, {"INFO"}, f"Its target '{target.name}' stays: see Remove Target Too")
        return {"FINISHED"}
