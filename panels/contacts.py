# SPDX-License-Identifier: GPL-3.0-or-later
"""When planted bones are down: found by a button, shown as ranges of frames."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.blender.properties.influence_keys import planted_spans
from .sidebar import Sidebar, draw_words


class CCD_RIG_PT_contacts(Sidebar, bpy.types.Panel):
    bl_label = "Feet and Contacts"
    bl_parent_id = "CCD_RIG_PT_constraints"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return active_rig(context) is not None

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.operator("ccd_rig.feet_plant", icon="PINNED")
        plants = [row for row in active_rig(context).ccd_rig.constraints if row.kind == Kind.PLANT]
        if not plants:
            return
        layout.operator("ccd_rig.contacts_find", icon="VIEWZOOM")
        for row in plants:
            spans = planted_spans(row)
            words = ", ".join(f"{first}–{'' if last is None else last}" for first, last in spans)
            draw_words(layout, context, f"{row.name}: {words or 'no keys'}", "PINNED")
