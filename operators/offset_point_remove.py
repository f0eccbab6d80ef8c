# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove a point of the curve of a coupled offset."""

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.properties import coupled_offsets
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_offset_point_remove(bpy.types.Operator):
    bl_idname = "ccd_rig.offset_point_remove"
    bl_label = "Remove Point"
    bl_description = "Remove this point from the curve of the coupled offset, which needs two at least"
    bl_options = {"REGISTER", "UNDO"}

    offset: IntProperty(
        name="Offset", description="Of which coupled offset, counted from 0", min=0, options={"SKIP_SAVE"}
    )
    point: IntProperty(name="Point", description="Which point, counted from 0", min=0, options={"SKIP_SAVE"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_coupled_offset(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        bone = context.active_pose_bone
        try:
            coupled_offsets.remove_point(bone, self.offset, self.point)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
