# SPDX-License-Identifier: GPL-3.0-or-later
"""What all panels of the tab share: where they stand, and words that are wider than the sidebar."""

import textwrap

import bpy

CHARACTER = 6.2  # [pixels] mean width of a letter in Blender's interface font at scale 1
MARGIN = 60  # [pixels] what a panel and the icon take of the sidebar's width at scale 1


class Sidebar:
    """Where a panel stands."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "CCD Rig"


def draw_words(layout: bpy.types.UILayout, context: bpy.types.Context, words: str, icon: str) -> None:
    """Draw a sentence in as many lines as the sidebar's width asks for."""
    scale = context.preferences.system.ui_scale
    width = max(20, int((context.region.width / scale - MARGIN) / CHARACTER))
    lines = layout.column(align=True)
    lines.scale_y = 0.8
    for i, line in enumerate(textwrap.wrap(words, width)):
        lines.label(text=line, icon="BLANK1" if i else icon)
