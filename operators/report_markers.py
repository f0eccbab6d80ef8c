# SPDX-License-Identifier: GPL-3.0-or-later
"""Mark in the timeline what the last bake's report has found."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.bake import report
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from . import poll_reasons
from .telling import tell

PREFIX = "CCD: "
"""What the names of these markers begin with, and so what a later press takes away."""


class CCD_RIG_OT_report_markers(bpy.types.Operator):
    bl_idname = "ccd_rig.report_markers"
    bl_label = "Mark Findings"
    bl_description = "Mark what the report has found in the timeline, in place of such markers of before"
    bl_options = {"REGISTER", "UNDO"}

    clear: BoolProperty(
        name="Clear", description="Only take such markers away", default=False, options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_findings(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        markers = context.scene.timeline_markers
        for marker in [each for each in markers if each.name.startswith(PREFIX)]:
            markers.remove(marker)
        if self.clear:
            return {"FINISHED"}
        found = report.from_json(active_rig(context).ccd_rig.report.findings)
        for each in found:
            upto = "" if each.frame_start == each.frame_end else f" to {each.frame_end:g}"
            words = translated(f"{PREFIX}{each.label()}{upto}")  # each language begins with the same prefix
            markers.new(words, frame=round(each.frame_start))
        tell(self, {"INFO"}, f"{len(found)} marker{'' if len(found) == 1 else 's'} in the timeline")
        return {"FINISHED"}
