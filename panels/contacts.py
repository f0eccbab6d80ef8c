# SPDX-License-Identifier: GPL-3.0-or-later
"""When planted bones are down: found by a button, shown as ranges of frames."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_group import CCD_RIG_PG_constraint
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.blender.properties.influence_keys import has_keys, planted_spans
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
            draw_words(layout, context, f"{row.name}: {when_planted(row)}", "PINNED")


def when_planted(row: CCD_RIG_PG_constraint) -> str:
    """Frames in which a planted bone stands, in words."""
    if spans := planted_spans(row):
        return ", ".join(f"{first}–{'' if last is None else last}" for first, last in spans)
    return "in all frames" if row.influence > 0.5 and not has_keys(row) else "in no frame"
