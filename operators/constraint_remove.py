# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove the constraint that the list shows."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.figures import control_bones
from ..ccd_rig.blender.properties import constraint_list, new_targets
from ..ccd_rig.blender.properties.active_rig import active_rig
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
        description="Remove its target and pole as well, if they were made for it and nothing else uses them",
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
        rig = active_rig(context)
        targets = new_targets.of_row(constraint_list.active(rig))
        made = [each for each in targets if each.bone and control_bones.is_made(each.thing, each.bone)]
        try:
            if self.with_target and made:
                control_bones.require_editable(context, made[0].thing)
            constraint_list.remove(rig, rig.ccd_rig.active_index)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        for each in targets:  # the pole first: it may hang on the target
            if not new_targets.is_left_over(each):
                continue
            if not self.with_target:
                target = each.bone or each.thing.name
                tell(self, {"INFO"}, f"Its target '{target}' stays: see Remove Target Too")
            elif each.bone:
                control_bones.remove(context, each.thing, [each.bone])
            else:
                new_targets.remove_empty(each.thing)
        return {"FINISHED"}
