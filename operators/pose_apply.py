# SPDX-License-Identifier: GPL-3.0-or-later
"""Pose the bones as the chosen pose of the library has them."""

import bpy

from ..ccd_rig.blender.keys import auto_keys
from ..ccd_rig.blender.properties import pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.rig.rotation_modes import rotation_channel
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_pose_apply(bpy.types.Operator):
    bl_idname = "ccd_rig.pose_apply"
    bl_label = "Apply Pose"
    bl_description = (
        "Rotate the bones as the chosen pose has them; limits are not applied, keys are set only with Auto "
        "Keying"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_pose(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        owner = active_rig(context)
        try:
            entry = pose_library.entries(owner)[owner.ccd_rig.active_pose]
            pose_library.apply(owner, entry)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        posed = [owner.pose.bones[bone] for bone in entry.rotations if bone in owner.pose.bones]
        if refusal := auto_keys.insert(context, [(bone, rotation_channel(bone)[0]) for bone in posed]):
            tell(self, {"WARNING"}, refusal)
        if strangers := pose_library.strangers(owner, entry):
            tell(self, {"WARNING"}, strangers)
        return {"FINISHED"}
