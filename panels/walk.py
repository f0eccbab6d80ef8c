# SPDX-License-Identifier: GPL-3.0-or-later
"""A cycle along a curve, and the ground."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from .sidebar import Sidebar, draw_words


class CCD_RIG_PT_walk(Sidebar, bpy.types.Panel):
    bl_label = "Walk Along"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return active_rig(context) is not None

    def draw(self, context: bpy.types.Context) -> None:
        layout, rig = self.fields(), active_rig(context)
        group, ground = rig.ccd_rig.walk, rig.ccd_rig.ground
        layout.prop(group, "cycle")
        layout.prop(group, "curve")
        layout.prop(ground, "kind")
        if ground.kind != "REST":
            layout.prop(ground, ground.kind.lower())
        layout.prop(group, "speed")
        layout.prop(group, "stride")
        layout.operator("ccd_rig.walk_along", icon="CURVE_PATH")
        for i, line in enumerate(group.report.split("\n") if group.report else ()):
            draw_words(layout, context, line, "INFO" if i == 0 else "DOT")


class CCD_RIG_PT_walk_options(Sidebar, bpy.types.Panel):
    bl_label = "Options"
    bl_parent_id = "CCD_RIG_PT_walk"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, group = self.fields(), active_rig(context).ccd_rig.walk
        layout.prop(group, "use_range")
        frames = layout.column(align=True)
        frames.active = group.use_range
        frames.prop(group, "cycle_start")
        frames.prop(group, "cycle_end")
        keys = layout.column(align=True)
        keys.active = group.speed == "CYCLE"
        keys.prop(group, "frame_start")
        last = keys.row(heading="Last Key", align=True)
        last.prop(group, "use_end", text="")
        end = last.row()
        end.active = group.use_end
        end.prop(group, "frame_end", text="")
        for name in ("cycles", "offset"):
            keys.prop(group, name)
        for name in ("start", "stop"):
            layout.prop(group, name)
        stand = layout.column()
        stand.active = group.start or group.stop
        stand.prop(group, "stands")
        if group.stands == "ACTION":
            stand.prop(group, "stand_action")
        stand.prop(group, "ease")
        for name in ("fit_steps", "steepest", "clearance", "extension"):
            layout.prop(group, name)
