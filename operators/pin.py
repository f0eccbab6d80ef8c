# SPDX-License-Identifier: GPL-3.0-or-later
"""Pin bones: what stays of them while others are dragged."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.drag.pins import NEXT
from ..ccd_rig.blender.properties.names_in_words import named
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_pin(bpy.types.Operator):
    bl_idname = "ccd_rig.pin"
    bl_label = "Pin Bones"
    bl_description = (
        "Pin the place of the selected bones, again their rotation too, again free them: while others are "
        "dragged, pinned bones stay"
    )
    bl_options = {"REGISTER", "UNDO"}

    pick: BoolProperty(
        name="Bone under Pointer",
        description="Pin the bone under the pointer, and no other",
        options={"SKIP_SAVE", "HIDDEN"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.not_posing(context))

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.pick:
            place = (event.mouse_region_x, event.mouse_region_y)
            if {"CANCELLED"} & set(bpy.ops.view3d.select(location=place)):
                tell(self, {"WARNING"}, "No bone is under the pointer: put it over one to pin it")
                return {"CANCELLED"}
        return self.execute(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        bones = poll_reasons.selected_bones(context, context.object)
        if not bones:
            tell(self, {"ERROR"}, "Select the bones to pin")
            return {"CANCELLED"}
        active = context.active_pose_bone
        leading = active.name if active is not None and active.name in bones else bones[0]
        kind = NEXT[context.object.pose.bones[leading].ccd_rig.pin]
        for name in bones:
            context.object.pose.bones[name].ccd_rig.pin = kind
        names = named(bones)
        told = {
            "NONE": f"Freed: {names}",
            "PLACE": f"Place pinned: {names}",
            "ROTATION": f"Place and rotation pinned: {names}",
        }
        tell(self, {"INFO"}, told[kind])
        return {"FINISHED"}


class CCD_RIG_OT_pins_clear(bpy.types.Operator):
    bl_idname = "ccd_rig.pins_clear"
    bl_label = "Free All Pins"
    bl_description = "Free all pinned bones of the armature"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.not_posing(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        for bone in context.object.pose.bones:
            bone.ccd_rig.property_unset("pin")
        return {"FINISHED"}
