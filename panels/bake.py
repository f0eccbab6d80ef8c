# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve, bake, and what the last bake came to."""

from typing import Any

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from .sidebar import Sidebar


class CCD_RIG_PT_bake(Sidebar, bpy.types.Panel):
    bl_label = "Solve and Bake"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        armature_object = active_rig(context)
        return armature_object is not None and len(armature_object.ccd_rig.constraints) > 0

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.operator("ccd_rig.solve", icon="POSE_HLT")
        layout.separator()
        _draw_options(layout.column(), context.window_manager.operator_properties_last("ccd_rig.bake"))
        scene = context.scene
        if scene.use_preview_range:
            words = f"Bake Preview Range {scene.frame_preview_start}–{scene.frame_preview_end}"
        else:
            words = f"Bake Frames {scene.frame_start}–{scene.frame_end}"
        layout.operator("ccd_rig.bake", text=words, icon="ACTION")
        _draw_report(layout, active_rig(context).ccd_rig.report)


class CCD_RIG_PT_bake_more(Sidebar, bpy.types.Panel):
    bl_label = "More"
    bl_parent_id = "CCD_RIG_PT_bake"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        options = context.window_manager.operator_properties_last("ccd_rig.bake")
        fewer = layout.column()
        fewer.active = options.keys == "EVERY_FRAME"
        fewer.prop(options, "reduce_angle")
        fewer.prop(options, "reduce_error")
        layout.prop(options, "order")
        layout.prop(options, "preroll")
        layout.prop(options, "error_reduction")
        layout.prop(options, "verify")


def _draw_options(layout: bpy.types.UILayout, options: Any) -> None:
    """The operator's own last options: what is set here is what the button takes."""
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(options, "destination")
    layout.prop(options, "start")
    layout.prop(options, "keys")
    if options.keys in ("EVERY_FRAME", "SOLVED_FRAMES"):
        layout.prop(options, "step")
    if options.keys == "REFERENCE_KEYS":
        layout.prop_search(options, "reference_object", bpy.data, "objects")
        reference = bpy.data.objects.get(options.reference_object)
        if reference is not None and reference.pose is not None:
            layout.prop_search(options, "reference_bone", reference.pose, "bones", text="Bone")
    layout.prop(options, "only_selected")


def _icon_of(words: str) -> str:
    """Of a part of the report."""
    if words.startswith("planted"):
        return "PINNED"
    if words.endswith("kept"):
        return "KEYFRAME"
    return "INFO" if " follows planted bones" in words or " so that legs reach" in words else "ERROR"


def _draw_report(layout: bpy.types.UILayout, report: Any) -> None:
    if not report.words:
        return
    lines = layout.box().column(align=True)
    reached, _, rest = report.words.partition("; ")
    worst, *others = rest.split("; ")
    lines.label(text=reached, icon="ERROR" if report.unsolved else "CHECKMARK")
    line = lines.row()
    line.alignment = "LEFT"
    line.operator("ccd_rig.go_to_frame", text=worst[:1].upper() + worst[1:], icon="TIME", emboss=False)
    for words in others:
        lines.label(text=words[:1].upper() + words[1:], icon=_icon_of(words))
    if report.check:
        plays, _, how_far = report.check.partition(": ")
        lines.label(text=plays, icon="ERROR" if report.mismatches else "CHECKMARK")
        if how_far:
            lines.label(text=how_far[:1].upper() + how_far[1:], icon="BLANK1")
