# SPDX-License-Identifier: GPL-3.0-or-later
"""Go to a frame that the last bake's report names."""

import math

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.bake import report
from ..ccd_rig.blender.properties.active_rig import active_rig
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_go_to_frame(bpy.types.Operator):
    bl_idname = "ccd_rig.go_to_frame"
    bl_label = "Go to Frame of Report"
    bl_description = "Go to the frame where this is worst, and show the constraint that it is about"
    bl_options = {"REGISTER", "UNDO"}

    finding: IntProperty(
        name="Finding",
        description="Which line of the report; -1 is the frame that is farthest off its target",
        default=-1,
        min=-1,
        options={"SKIP_SAVE", "HIDDEN"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        active = active_rig(context)
        reason = "" if active is not None else "Select an armature"
        if not reason and not active.ccd_rig.report.words:
            reason = f"'{active.name}' has not been baked yet"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        group = active_rig(context).ccd_rig
        frame, constraint = group.report.worst_frame, group.report.worst_constraint
        if self.finding >= 0:
            found = report.from_json(group.report.findings)
            if self.finding >= len(found):
                tell(self, {"ERROR"}, "The report has no such line: bake again")
                return {"CANCELLED"}
            frame, constraint = found[self.finding].frame, found[self.finding].constraint
        whole = math.floor(frame)
        context.scene.frame_set(whole, subframe=frame - whole)
        index = group.constraints.find(constraint)
        if index >= 0:  # it may have been removed or renamed since
            group.active_index = index
        return {"FINISHED"}
