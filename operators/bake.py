# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve a range of frames and key the result."""

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.bake import bake, options
from ..ccd_rig.blender.bake.progress import Steps
from ..ccd_rig.blender.bake.report import BakeReport
from ..ccd_rig.blender.properties.active_rig import active_rig
from . import poll_reasons
from .modal_steps import ModalSteps, shown_range, tell_report


class CCD_RIG_OT_bake(ModalSteps, bpy.types.Operator):
    bl_idname = "ccd_rig.bake"
    bl_label = "Bake to Action"
    bl_description = (
        "Solve each frame of the range and key the chains' rotations. "
        "Nothing is changed before the last frame is solved; Esc cancels"
    )
    bl_options = {"REGISTER", "UNDO"}

    # The armature stores the options: what is left over from a bake of another one must not count.
    __annotations__ = {
        "frame_start": IntProperty(
            name="Start Frame",
            description="First frame; when not set, that of the scene or its preview range",
            default=1,
            options={"SKIP_SAVE"},
        ),
        "frame_end": IntProperty(
            name="End Frame",
            description="Last frame; when not set, that of the scene or its preview range",
            default=250,
            options={"SKIP_SAVE"},
        ),
        **options.properties(options={"SKIP_SAVE"}),
    }

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.none_enabled(context))

    def take_options(self, context: bpy.types.Context) -> None:
        options.take_stored(self.properties, active_rig(context))

    def begin(self, context: bpy.types.Context) -> Steps[BakeReport]:
        scene = context.scene
        first, last = shown_range(scene)
        if not self.properties.is_property_set("frame_start"):
            self.frame_start = first
        if not self.properties.is_property_set("frame_end"):
            self.frame_end = last
        rig = active_rig(context)
        settings = options.bake_settings(self, rig, (self.frame_start, self.frame_end))
        return bake.bake_steps(scene, rig, settings)

    def finish(self, report: BakeReport) -> set[str]:
        tell_report(self, report)
        return {"FINISHED"}
