# SPDX-License-Identifier: GPL-3.0-or-later
"""Base class of the tab's panels, and functions that draw lines, sentences and the ground."""

from itertools import groupby
from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import lines_within
from ..ccd_rig.blender.properties.active_rig import active_rig, with_settings
from ..ccd_rig.blender.properties.constraint_values import Line
from ..ccd_rig.blender.properties.names import sentence

MARGIN = 96  # [pixels] width of tabs, panel, box and icon at scale 1
LINE = 0.8  # height of a line of a sentence
LEAST = 40  # [pixels] minimum width of words at scale 1


class Sidebar:
    """A panel in the tab CCD Rig of the sidebar, for an active armature.

    Attributes:
        needs_constraints: whether the armature must have constraints.
    """

    needs_constraints = False

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "CCD Rig"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        rig = active_rig(context)
        if rig is None or not cls.needs_constraints:
            return rig is not None
        return any(len(each.ccd_rig.constraints) > 0 for each in with_settings([rig]))

    def fields(self: Any) -> Any:
        """Prepare the panel's layout for fields with their names beside them."""
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        return self.layout


class Folded(Sidebar):
    """A panel that is closed at first."""

    bl_options = {"DEFAULT_CLOSED"}


class Rows:
    """A list whose class draws a row by `draw_row`."""

    def draw_item(
        self: Any,
        context: bpy.types.Context,
        layout: bpy.types.UILayout,
        data: Any,
        item: Any,
        icon: int,
        active_data: Any,
        active_property: str,
        index: int,
        flt_flag: int,
    ) -> None:
        self.draw_row(context, layout.row(align=True), data, item)


def draw_words(layout: bpy.types.UILayout, context: bpy.types.Context, words: str, icon: str) -> None:
    """Draw a sentence, broken to the sidebar's width."""
    lines = layout.column(align=True)
    lines.scale_y = LINE
    for i, line in enumerate(wrapped(context, words)):
        lines.label(text=line, icon="BLANK1" if i else icon, translate=False)


def draw_report(layout: bpy.types.UILayout, context: bpy.types.Context, report: str) -> None:
    """Draw the lines of a report, if there is one."""
    for i, line in enumerate(report.split("\n") if report else ()):
        draw_words(layout, context, sentence(line), "DOT" if i else "INFO")


def draw_line(layout: bpy.types.UILayout, context: bpy.types.Context, line: Line) -> None:
    """Draw a line of properties, or a sentence."""
    if line.words:
        draw_words(layout, context, line.words, line.icon)
        return
    place = layout.column if line.is_column else layout.row
    whole = place(heading=line.heading, align=True) if line.heading else place(align=True)
    if line.is_wide:
        whole.use_property_split = False
    for is_active, shown in groupby(line.shown, lambda each: each.is_active):
        group = whole
        if not is_active:
            group = whole.column(align=True) if line.is_column else whole.row()
            group.active = False
        for each in shown:
            keywords: dict[str, Any] = {} if each.text is None else {"text": each.text}
            if line.toggle:
                keywords["toggle"] = True
            group.prop(each.group, each.name, **keywords)


def draw_ground(layout: bpy.types.UILayout, group: Any) -> None:
    """Draw the switch and the height of the ground."""
    ground = layout.row(heading="Ground", align=True)
    ground.prop(group, "use_ground", text="")
    height = ground.row()
    height.active = group.use_ground
    height.prop(group, "ground", text="")


def wrapped(context: bpy.types.Context, words: str, aside: float = 0.0) -> list[str]:
    """Translate a sentence, and break it to the sidebar's width in Blender's font.

    Args:
        words: the sentence, in English.
        aside: width beside the words, in pixels at scale 1.
    """
    scale = context.preferences.system.ui_scale
    room = max(context.region.width - (MARGIN + aside) * scale, LEAST * scale)
    return lines_within(context.preferences, words, room)
