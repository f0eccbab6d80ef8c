# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove poses from the pose library."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.properties import pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_pose_remove(bpy.types.Operator):
    bl_idname = "ccd_rig.pose_remove"
    bl_label = "Remove Pose"
    bl_description = "Remove the chosen pose, or all poses, from the pose library; bones stay as they are"
    bl_options = {"REGISTER", "UNDO"}

    all: BoolProperty(
        name="All",
        description="Remove all poses but those that come from the library of an override",
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_pose(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        owner = active_rig(context)
        group = owner.ccd_rig
        removable = [i for i in range(len(group.poses)) if not pose_library.is_from_library(owner, i)]
        try:
            pose_library.remove(owner, removable if self.all else [group.active_pose])
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
