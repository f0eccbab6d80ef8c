# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch of the live preview."""

import bpy

from ..ccd_rig.blender.live import handlers
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
