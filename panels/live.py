# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch of the live preview, in the tab and in the viewport's Pose menu."""

import bpy

from ..ccd_rig.blender.live import handlers
from ..ccd_rig.blender.properties.active_rig import active_rig
from .sidebar import draw_words


def draw_switch(layout: bpy.types.UILayout, armature_object: bpy.types.Object) -> None:
    """A button that stays pressed while the armature is live."""
    on = armature_object.ccd_rig.live
    icon = "RADIOBUT_ON" if on else "RADIOBUT_OFF"
    layout.operator("ccd_rig.live", text="Live", icon=icon, depress=on)


def draw_notes(
    layout: bpy.types.UILayout, context: bpy.types.Context, armature_object: bpy.types.Object
) -> None:
    """What to know about what is shown, if anything."""
    preview = handlers.preview_of(armature_object)
    if preview is None:
        return
    for note in preview.notes():
        draw_words(layout, context, note, "CANCEL" if preview.failure else "INFO")


def draw_in_pose_menu(self: bpy.types.Menu, context: bpy.types.Context) -> None:
    """An entry of the Pose menu, ticked while the armature is live."""
    armature_object = active_rig(context)
    if armature_object is not None and len(armature_object.ccd_rig.constraints):
        self.layout.separator()
        icon = "CHECKBOX_HLT" if armature_object.ccd_rig.live else "CHECKBOX_DEHLT"
        self.layout.operator("ccd_rig.live", icon=icon)
