# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion for the active figure: retargeted from another armature, or a walk cycle along a curve."""

from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.motion.settings import PAIRED, SPACES, WEIGHTS
from .sidebar import Folded, Rows, draw_ground, draw_report, draw_words


class CCD_RIG_UL_bone_pairs(Rows, bpy.types.UIList):
    """Target bone on the left, source bone on the right."""

    def draw_row(self, context: bpy.types.Context, row: bpy.types.UILayout, data: Any, item: Any) -> None:
        row.label(text=item.name, translate=False)
        source = row.row(align=True)
        if data.source is None:
            source.label(text=item.source, translate=False)
            return
        source.alert = bool(item.source) and item.source not in data.source.data.bones
        source.prop_search(item, "source", data.source.data, "bones", text="")


class CCD_RIG_PT_retarget(Folded, bpy.types.Panel):
    bl_label = "Retarget"

    def draw(self, context: bpy.types.Context) -> None:
        layout, group = self.fields(), active_rig(context).ccd_rig.retarget
        row = layout.row(align=True)
        row.prop(group, "source")
        row.operator("ccd_rig.retarget_source_import", text="", icon="IMPORT")
        layout.prop(group, "reference")
        if group.reference == "FRAME":
            layout.prop(group, "reference_frame")
        elif group.source is not None and group.no_pose == group.source.name:
            draw_words(layout, context, "The source's rest is no pose of a body: take a frame", "ERROR")
            layout.column(align=True).operator_enum("ccd_rig.retarget_reference", "frame")
        buttons = layout.row(align=True)
        buttons.operator("ccd_rig.retarget", icon="ARMATURE_DATA")
        buttons.operator("ccd_rig.retarget_preview", text="", icon="HIDE_OFF")
        buttons.prop(group, "preview", text="", icon="FILE_REFRESH")
        draw_report(layout, context, group.report)


class CCD_RIG_PT_retarget_map(Folded, bpy.types.Panel):
    bl_label = "Map"
    bl_translation_context = CONTEXT
    bl_parent_id = "CCD_RIG_PT_retarget"

    def draw(self, context: bpy.types.Context) -> None:
        layout, group = self.layout, active_rig(context).ccd_rig.retarget
        row = layout.row(align=True)
        row.operator("ccd_rig.retarget_map_fill", icon="VIEWZOOM")
        row.operator("ccd_rig.retarget_map_load", text="", icon="IMPORT")
        row.operator("ccd_rig.retarget_map_save", text="", icon="EXPORT")
        if not group.pairs:
            draw_words(layout, context, "Bones are found by what they are to the figure", "INFO")
            return
        layout.template_list("CCD_RIG_UL_bone_pairs", "", group, "pairs", group, "active_pair", rows=8)
        missing = [pair.name for pair in group.pairs if not pair.source]
        if missing:
            draw_words(layout, context, f"Follow nothing: {', '.join(missing)}", "ERROR")


LEFT = {"feet": "Feet Left", "hands": "Hands Left", "knees": "Knees Left", "elbows": "Elbows Left"}
"""Labels of weights that are of the left side alone."""


class CCD_RIG_PT_retarget_effectors(Folded, bpy.types.Panel):
    bl_label = "Effectors"
    bl_parent_id = "CCD_RIG_PT_retarget"

    def draw(self, context: bpy.types.Context) -> None:
        layout, group = self.fields(), active_rig(context).ccd_rig.retarget
        for weight, space in zip(WEIGHTS, SPACES, strict=True):
            apart = group.sides_apart and weight in PAIRED
            row = layout.row(align=True)
            row.prop(group, weight, **({"text": LEFT[weight]} if apart else {}))
            if apart:
                layout.prop(group, f"{weight}_right")
            where = row.row(align=True)
            where.active = getattr(group, weight) > 0.0 or (apart and getattr(group, f"{weight}_right") > 0.0)
            where.prop(group, space, text="")
        layout.prop(group, "sides_apart")


class CCD_RIG_PT_retarget_options(Folded, bpy.types.Panel):
    bl_label = "Options"
    bl_parent_id = "CCD_RIG_PT_retarget"

    def draw(self, context: bpy.types.Context) -> None:
        layout, group = self.fields(), active_rig(context).ccd_rig.retarget
        for name in ("source_fps", "scale", "in_place"):
            layout.prop(group, name)
        draw_ground(layout, group)
        layout.prop(group, "contacts")
        locked = layout.column()
        locked.active = group.contacts
        for name in ("speed", "height", "blend", "extension"):
            locked.prop(group, name)


class CCD_RIG_PT_walk(Folded, bpy.types.Panel):
    bl_label = "Walk Along"

    def draw(self, context: bpy.types.Context) -> None:
        layout, rig = self.fields(), active_rig(context)
        group, ground = rig.ccd_rig.walk, rig.ccd_rig.ground
        layout.prop(group, "cycle")
        layout.prop(group, "curve")
        layout.prop(ground, "kind")
        if ground.kind != "REST":
            layout.prop(ground, ground.kind.lower())
        layout.prop(group, "speed")
        layout.prop(group, "stride")
        layout.operator("ccd_rig.walk_along", icon="CURVE_PATH")
        draw_report(layout, context, group.report)


class CCD_RIG_PT_walk_options(Folded, bpy.types.Panel):
    bl_label = "Options"
    bl_parent_id = "CCD_RIG_PT_walk"

    def draw(self, context: bpy.types.Context) -> None:
        layout, group = self.fields(), active_rig(context).ccd_rig.walk
        layout.prop(group, "use_range")
        frames = layout.column(align=True)
        frames.active = group.use_range
        frames.prop(group, "cycle_start")
        frames.prop(group, "cycle_end")
        keys = layout.column(align=True)
        keys.active = group.speed == "CYCLE"
        keys.prop(group, "frame_start")
        last = keys.row(heading="Last Key", align=True)
        last.prop(group, "use_end", text="")
        end = last.row()
        end.active = group.use_end
        end.prop(group, "frame_end", text="")
        for name in ("cycles", "offset"):
            keys.prop(group, name)
        for name in ("start", "stop"):
            layout.prop(group, name)
        stand = layout.column()
        stand.active = group.start or group.stop
        stand.prop(group, "stands")
        if group.stands == "ACTION":
            stand.prop(group, "stand_action")
        ease = stand.column()
        ease.active = group.speed != "CURVE"
        ease.prop(group, "ease")
        for name in ("fit_steps", "steepest", "clearance", "extension"):
            layout.prop(group, name)
