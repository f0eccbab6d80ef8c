# SPDX-License-Identifier: GPL-3.0-or-later
"""What all panels of the tab share: where they stand, and words that are wider than the sidebar."""

import blf
import bpy

MARGIN = 86  # [pixels] what tabs, panel, box and icon take of the sidebar's width at scale 1
FONT = 0  # the font of Blender's interface
LINE = 0.8  # height of a line of a sentence
LEAST = 40  # [pixels] of words at scale 1, however narrow the sidebar is


class Sidebar:
    """Where a panel stands."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "CCD Rig"


def draw_words(layout: bpy.types.UILayout, context: bpy.types.Context, words: str, icon: str) -> None:
    """Draw a sentence in as many lines as the sidebar's width asks for."""
    lines = layout.column(align=True)
    lines.scale_y = LINE
    for i, line in enumerate(wrapped(context, words)):
        lines.label(text=line, icon="BLANK1" if i else icon)


def wrapped(context: bpy.types.Context, words: str, aside: float = 0.0) -> list[str]:
    """A sentence in lines that fit into the sidebar, as Blender's interface font is wide.

    Args:
        context: of the sidebar.
        words: the sentence.
        aside: pixels at scale 1 that something beside the words takes.
    """
    preferences = context.preferences
    scale = preferences.system.ui_scale
    blf.size(FONT, preferences.ui_styles[0].widget.points * scale)
    room = max(context.region.width - (MARGIN + aside) * scale, LEAST * scale)
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and blf.dimensions(FONT, longer)[0] <= room:
            lines[-1] = longer
            continue
        while (
            len(word) > 1 and blf.dimensions(FONT, word)[0] > room
        ):  # a bone's name may be longer than a line
            fits = max(n for n in range(1, len(word)) if n == 1 or blf.dimensions(FONT, word[:n])[0] <= room)
            lines.append(word[:fits])
            word = word[fits:]
        lines.append(word)
    return lines
