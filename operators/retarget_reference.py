# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a frame of the source as its reference pose."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import chosen
from ..ccd_rig.blender.retarget.retarget import ReferenceFrame
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell

FRAMES = (
    (ReferenceFrame.FIRST.value, "First Frame", "The first frame of the source", 0),
    (ReferenceFrame.CURRENT.value, "This Frame", "The frame at which the scene is", 1),
    (
        ReferenceFrame.STRAIGHTEST.value,
        "Straightest Frame",
        "The frame in which legs stand straight and arms are stretched, most like a T pose",
        2,
    ),
)


class CCD_RIG_OT_retarget_reference(bpy.types.Operator):
    bl_idname = "ccd_rig.retarget_reference"
    bl_label = "Use Frame as Reference"
    bl_description = "Bring a frame of the source in line with this armature's rest pose"
    bl_options = {"REGISTER", "UNDO"}

    frame: bpy.props.EnumProperty(name="Frame", description="Which frame", items=FRAMES)

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_source(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            frame = chosen.use_frame(context.scene, active_rig(context), ReferenceFrame(self.frame))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        tell(self, {"INFO"}, f"Frame {frame:g} of the source is the reference")
        return {"FINISHED"}
