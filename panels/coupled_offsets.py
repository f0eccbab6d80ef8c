# SPDX-License-Identifier: GPL-3.0-or-later
"""How the active bone shifts as a hinge turns."""

from typing import Any

import bpy

from .sidebar import Sidebar, draw_words


class CCD_RIG_PT_coupled_offsets(Sidebar, bpy.types.Panel):
    bl_label = "Coupled Offsets"
    bl_parent_id = "CCD_RIG_PT_bone"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        bone = context.active_pose_bone
        layout = self.layout
        layout.use_property_decorate = False
        rows = bone.ccd_rig.coupled_offsets
        if len(rows) and bone.parent is not None and bone.bone.use_connect:
            draw_words(layout, context, "The bone is connected to its parent, so it cannot shift", "CANCEL")
        for index, row in enumerate(rows):
            _draw_offset(layout.box(), bone, row, index)
        layout.operator("ccd_rig.coupled_offset_add", icon="ADD")


def _draw_offset(layout: bpy.types.UILayout, bone: bpy.types.PoseBone, row: Any, index: int) -> None:
    line = layout.row(align=True)
    line.prop_search(row, "driver", bone.id_data.pose, "bones", text="Driver")
    line.operator("ccd_rig.coupled_offset_remove", text="", icon="X").offset = index
    layout.row().prop(row, "axis", text="")
    layout.prop(row, "use_slopes")
    lines = layout.column(align=True)
    for k, point in enumerate(row.points):
        line = lines.row(align=True)
        line.prop(point, "angle", text="")
        line.prop(point, "shift", text="")
        if row.use_slopes:
            line.prop(point, "slope", text="")
        remove = line.operator("ccd_rig.offset_point_remove", text="", icon="REMOVE")
        remove.offset, remove.point = index, k
    layout.operator("ccd_rig.offset_point_add", icon="ADD").offset = index
