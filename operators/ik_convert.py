# SPDX-License-Identifier: GPL-3.0-or-later
"""Take over Blender's IK, Damped Track and Spline IK constraints."""

import bpy
from bpy.props import BoolProperty, IntProperty

from ..ccd_rig.blender.convert import convert
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from . import new_rigs, poll_reasons, redo_lines
from .telling import tell


class CCD_RIG_OT_ik_convert(bpy.types.Operator):
    bl_idname = "ccd_rig.ik_convert"
    bl_label = "Convert IK"
    bl_description = (
        "Make CCD constraints from Blender's IK, Damped Track and Spline IK constraints, with their poles, "
        "influence, keys and drivers. The originals are muted; Restore IK is the way back"
    )
    bl_options = {"REGISTER", "UNDO"}

    only_selected: BoolProperty(
        name="Only Selected Bones",
        description="Convert constraints of selected bones alone",
        options={"SKIP_SAVE"},
    )
    every: IntProperty(
        name="Spline Every",
        description="How many bones of a Spline IK share a target on its curve",
        default=3,
        min=1,
        soft_max=20,
    )
    limits: BoolProperty(
        name="IK Limits",
        description="Give bones of the chains the limits, locks and stiffness of Blender's IK, where they "
        "have none here",
        default=True,
        options={"SKIP_SAVE"},
    )
    told = ""  # what is not as it was, a line each

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_armature(context)
        if not reason and next(convert.candidates(active_rig(context)), None) is None:
            name = active_rig(context).name
            reason = f"No IK, Damped Track or Spline IK constraint of '{name}' is on"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        bones = poll_reasons.selected_bones(context, rig) if self.only_selected else None
        before = new_rigs.names(rig)
        try:
            done = convert.convert(context, rig, bones, self.every, self.limits)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        new_rigs.give(context, rig, before)
        self.told = "\n".join(done.notes)
        originals = f"{done.originals} constraint{'' if done.originals == 1 else 's'}"
        tell(self, {"INFO"}, f"Converted {originals} of Blender, muted now: {', '.join(done.rows)}")
        for note in done.notes:
            tell(self, {"WARNING"}, note)
        return {"FINISHED"}

    def draw(self, _context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "only_selected")
        layout.prop(self, "every")
        layout.prop(self, "limits")
        if self.told:
            redo_lines.draw(layout, self.told)
