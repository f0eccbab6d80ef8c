# SPDX-License-Identifier: GPL-3.0-or-later
"""Find which bone follows which."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import chosen
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_retarget_map_fill(bpy.types.Operator):
    bl_idname = "ccd_rig.retarget_map_fill"
    bl_label = "Find Bones"
    bl_description = (
        "Recognise both figures by the names of their bones or by how they lie at rest, and list which bone "
        "follows which. Pairs that were changed by hand are found anew"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_source(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            found = chosen.fill_map(active_rig(context))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        if found.missing:
            tell(self, {"WARNING"}, f"Nothing to follow for: {', '.join(found.missing[:6])}")
        tell(self, {"INFO"}, f"{len(found.bones)} bones follow one of the source")
        return {"FINISHED"}
