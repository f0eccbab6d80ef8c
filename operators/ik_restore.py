# SPDX-License-Identifier: GPL-3.0-or-later
"""Give up what Convert IK has made."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.convert import restore
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_ik_restore(bpy.types.Operator):
    bl_idname = "ccd_rig.ik_restore"
    bl_label = "Restore IK"
    bl_description = (
        "Remove the CCD constraints that Convert IK has made, with the targets made for them, and let "
        "Blender's own constraints act again"
    )
    bl_options = {"REGISTER", "UNDO"}

    only_selected: BoolProperty(
        name="Only Selected Bones",
        description="Restore constraints of selected bones alone",
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_armature(context)
        if not reason and next(restore.candidates(active_rig(context)), None) is None:
            reason = f"No CCD constraint of '{active_rig(context).name}' comes from Convert IK"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        bones = poll_reasons.selected_bones(context, rig) if self.only_selected else None
        try:
            done = restore.restore(rig, bones)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        count = f"{done.originals} constraint{'' if done.originals == 1 else 's'}"
        tell(self, {"INFO"}, f"Restored {count} of Blender; removed {', '.join(done.rows)}")
        for name in done.kept:
            tell(self, {"WARNING"}, f"Constraint '{name}' stays: Blender's own behind it is gone or renamed")
        return {"FINISHED"}
