# SPDX-License-Identifier: GPL-3.0-or-later
"""From a rig to the target of a constraint, and back."""

from typing import Any

import bpy

from ..ccd_rig.blender.keys import channels
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_target_select(bpy.types.Operator):
    bl_idname = "ccd_rig.target_select"
    bl_label = "Select Target"
    bl_description = "Select the target of the active constraint, to move it or key it"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_constraint(context)
        if not reason:
            constraint = constraint_list.active(active_rig(context))
            if constraint is None:
                reason = "Choose a constraint in the list"
            elif constraint.target is None:
                reason = f"Constraint '{constraint.name}' has no target"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        constraint = constraint_list.active(active_rig(context))
        done = _select(self, context, constraint.target, constraint.target_bone)
        return {"FINISHED"} if done else {"CANCELLED"}


class CCD_RIG_OT_rig_select(bpy.types.Operator):
    bl_idname = "ccd_rig.rig_select"
    bl_label = "Back to Rig"
    bl_description = "Select the rig that reaches for this target, in Pose Mode, with the bone that reaches"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        rig = active_rig(context)
        reason = "" if rig is not None else "Select a target"
        if not reason and rig == context.object:
            reason = "The rig is selected"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig, target = active_rig(context), context.object
        rows = rig.ccd_rig.constraints
        index = next(i for i, row in enumerate(rows) if target in (row.target, row.pole_target))
        if not _select(self, context, rig, rows[index].tip):
            return {"CANCELLED"}
        rig.ccd_rig.active_index = index
        return {"FINISHED"}


def _select(operator: bpy.types.Operator, context: bpy.types.Context, thing: Any, bone: str) -> bool:
    """Make an object, or a bone of an armature, the only selected one; whether it could be."""
    if not thing.visible_get(view_layer=context.view_layer):
        tell(operator, {"ERROR"}, f"'{thing.name}' is hidden or not in this view layer: show it first")
        return False
    if context.object is not None and context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.object.select_all(action="DESELECT")
    thing.select_set(True)
    context.view_layer.objects.active = thing
    if bone and thing.pose is not None and bone in thing.pose.bones:
        bpy.ops.object.mode_set(mode="POSE")
        for each in thing.pose.bones:
            channels.select_bone(each, each.name == bone)
        thing.data.bones.active = thing.data.bones[bone]
    return True
