# SPDX-License-Identifier: GPL-3.0-or-later
"""What the viewport's Pose menu has of the extension."""

import bpy

from ..ccd_rig.blender.convert import convert, restore
from ..ccd_rig.blender.properties.active_rig import active_rig


def draw(self: bpy.types.Menu, context: bpy.types.Context) -> None:
    """Entries that make sense for the armature: Live is ticked while it is on."""
    rig = active_rig(context)
    if rig is None:
        return
    entries = [("ccd_rig.figure_set_up", "OUTLINER_OB_ARMATURE")]
    if next(convert.candidates(rig), None) is not None:
        entries.append(("ccd_rig.ik_convert", "CON_KINEMATIC"))
    if next(restore.candidates(rig), None) is not None:
        entries.append(("ccd_rig.ik_restore", "LOOP_BACK"))
    if len(rig.ccd_rig.constraints):
        entries.append(("ccd_rig.live", "CHECKBOX_HLT" if rig.ccd_rig.live else "CHECKBOX_DEHLT"))
    self.layout.separator()
    for name, icon in entries:
        self.layout.operator(name, icon=icon)
