# SPDX-License-Identifier: GPL-3.0-or-later
"""From the motion of bones to targets; the way back is a bake."""

import bpy

from .sidebar import Sidebar


class CCD_RIG_PT_fk_ik(Sidebar, bpy.types.Panel):
    bl_label = "FK to IK"
    bl_parent_id = "CCD_RIG_PT_bake"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, _context: bpy.types.Context) -> None:
        lines = self.layout.column(align=True)
        lines.operator("ccd_rig.targets_match", icon="SNAP_ON")
        lines.operator("ccd_rig.targets_from_motion", icon="CON_FOLLOWPATH")
