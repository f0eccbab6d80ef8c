# SPDX-License-Identifier: GPL-3.0-or-later
"""Add a point to the curve of a coupled offset."""

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.properties import coupled_offsets
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_offset_point_add(bpy.types.Operator):
    bl_idname = "ccd_rig.offset_point_add"
    bl_label = "Add Point"
    bl_description = "Add a point to the curve of this coupled offset, beyond its last one"
    bl_options = {"REGISTER", "UNDO"}

    offset: IntProperty(
        name="Offset", description="Of which coupled offset, counted from 0", min=0, options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_coupled_offset(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        bone = context.active_pose_bone
        try:
            coupled_offsets.add_point(bone, self.offset)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
