# SPDX-License-Identifier: GPL-3.0-or-later
"""The menu "CCD Rig" in the viewport's Pose menu: what can be done with a rig. Search finds it too."""

import bpy

from ..ccd_rig.blender import convert
from ..ccd_rig.blender.properties.active_rig import active_rig
from .constraints import draw_setup


class CCD_RIG_MT_pose(bpy.types.Menu):
    bl_label = "CCD Rig"

    def draw(self, context: bpy.types.Context) -> None:
        layout, rig = self.layout, active_rig(context)
        if rig is None:
            return
        layout.operator("ccd_rig.figure_set_up", icon="OUTLINER_OB_ARMATURE")
        layout.operator("ccd_rig.constraint_add", icon="ADD")
        if convert.is_offered(rig):
            layout.operator("ccd_rig.ik_convert", icon="CON_KINEMATIC")
        if next(convert.converted(rig), None) is not None:
            layout.operator("ccd_rig.ik_restore", icon="LOOP_BACK")
        layout.menu("CCD_RIG_MT_limits")
        layout.separator()
        layout.operator("ccd_rig.drag")
        layout.operator("ccd_rig.pin", icon="PINNED")
        draw_setup(layout, context)
        if not len(rig.ccd_rig.constraints):
            return
        layout.separator()
        layout.operator("ccd_rig.feet_plant")
        layout.operator("ccd_rig.contacts_find")
        layout.operator("ccd_rig.targets_match")
        layout.operator("ccd_rig.targets_from_motion")
        layout.separator()
        layout.operator("ccd_rig.live", icon="CHECKBOX_HLT" if rig.ccd_rig.live else "CHECKBOX_DEHLT")
        layout.operator("ccd_rig.solve")
        layout.operator("ccd_rig.bake", icon="ACTION")
        layout.operator("ccd_rig.bake_all", icon="ARMATURE_DATA")
        layout.operator("ccd_rig.farm", text="Farm...", icon="EXPORT")


def draw(self: bpy.types.Menu, context: bpy.types.Context) -> None:
    """The entry of the Pose menu."""
    if active_rig(context) is not None:
        self.layout.separator()
        self.layout.menu("CCD_RIG_MT_pose")
