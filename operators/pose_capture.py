# SPDX-License-Identifier: GPL-3.0-or-later
"""Capture poses for the pose library."""

import bpy
from bpy.props import EnumProperty, IntProperty, StringProperty

from ..ccd_rig.blender.properties import pose_capture, pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell

SOURCES = (
    ("POSE", "Current Pose", "The pose as it stands now"),
    ("ACTION", "Action", "Frames of the armature's present action, read without going to them"),
    ("ASSET", "Pose Asset", "An action of one frame that is marked as an asset"),
)
BONES = (
    ("CHAINS", "Chains", "The bones of all constraints' chains"),
    ("SELECTED", "Selected Bones", "The bones that are selected in Pose Mode"),
)


class CCD_RIG_OT_pose_capture(bpy.types.Operator):
    bl_idname = "ccd_rig.pose_capture"
    bl_label = "Capture Pose"
    bl_description = (
        "Add poses to the pose library: where targets are not reached, solves start again from the nearest"
    )
    bl_options = {"REGISTER", "UNDO"}

    source: EnumProperty(
        name="From", description="Where the pose is taken from", items=SOURCES, options={"SKIP_SAVE"}
    )
    bones: EnumProperty(name="Bones", description="Whose rotations are captured", items=BONES)
    name: StringProperty(
        name="Name",
        description="What the library calls the pose",
        default=pose_library.DEFAULT_NAME,
        options={"SKIP_SAVE"},
    )
    step: IntProperty(
        name="Every Nth Frame",
        description="Frames from one captured pose to the next; the last frame is always captured",
        default=10,
        min=1,
        soft_max=100,
    )
    asset: StringProperty(
        name="Pose Asset", description="Name of the action that is the pose asset", options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        if self.source == "POSE" or bpy.app.background:
            return self.execute(context)
        answer: set[str] = set(context.window_manager.invoke_props_dialog(self))
        return answer

    def draw(self, _context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "bones")
        if self.source == "POSE":
            layout.prop(self, "name")
        elif self.source == "ACTION":
            layout.prop(self, "step")
        else:
            layout.prop_search(self, "asset", bpy.data, "actions")

    def execute(self, context: bpy.types.Context) -> set[str]:
        owner = active_rig(context)
        try:
            bones = (pose_capture.chain_bones if self.bones == "CHAINS" else pose_capture.selected_bones)(
                owner
            )
            if self.source == "ACTION":
                entries = pose_capture.from_action(owner, bones, self.step)
            elif self.source == "ASSET":
                entries = (pose_capture.from_asset(owner, bones, self.asset),)
            else:
                entries = (pose_capture.from_pose(owner, bones, self.name or pose_library.DEFAULT_NAME),)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        pose_library.add(owner, entries)
        poses, turned = len(entries), len(entries[0].rotations)
        words = f"{poses} pose{'' if poses == 1 else 's'} of {turned} bone{'' if turned == 1 else 's'}"
        tell(self, {"INFO"}, f"Captured {words}")
        return {"FINISHED"}
