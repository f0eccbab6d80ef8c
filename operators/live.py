# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch the live preview of an armature on or off."""

import bpy

from ..ccd_rig.blender.checks import setup
from ..ccd_rig.blender.live import handlers
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from ..ccd_rig.solvers.stepping import result_of
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_live(bpy.types.Operator):
    bl_idname = "ccd_rig.live"
    bl_label = "CCD Live"
    bl_description = (
        "The rig follows its targets while they are dragged, typed, scrubbed or played. "
        "Keys and channels stay as they are, and files keep nothing of it"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        rig = active_rig(context)
        is_on = rig is not None and handlers.preview_of(rig) is not None
        return is_on or poll_reasons.poll(cls, poll_reasons.none_enabled(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        if rig.ccd_rig.live:
            handlers.switch(rig, False)
            return {"FINISHED"}
        try:
            result_of(setup.require(rig, context.scene))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        handlers.switch(rig, True)
        return {"FINISHED"}
