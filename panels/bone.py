# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels of the active bone: limit and comfort, slides, mass, coupled offsets; menus of limits."""

from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.limit_sources import preset_files
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.limits import limit_kind
from .sidebar import Folded, Sidebar, draw_line, draw_words


class CCD_RIG_PT_bone(Sidebar, bpy.types.Panel):
    bl_label = "Bone"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return active_rig(context) is not None and context.active_pose_bone is not None

    def draw(self, context: bpy.types.Context) -> None:
        bone = context.active_pose_bone
        layout = self.fields()
        layout.label(text=bone.name, icon="BONE_DATA", translate=False)
        line = layout.row(align=True)
        line.prop(bone.ccd_rig.limit, "kind", text="Limit")
        line.menu("CCD_RIG_MT_limits", text="", icon="DOWNARROW_HLT")
        for bounds in limit_kind(bone.ccd_rig.limit).lines(bone.ccd_rig.limit):
            draw_line(layout, context, bounds)
        lines = layout.column()
        lines.prop(bone.ccd_rig, "pin")
        lines.prop(bone.ccd_rig, "stiffness")
        lines.prop(bone.ccd_rig, "max_step")


class CCD_RIG_PT_comfort(Folded, bpy.types.Panel):
    bl_label = "Comfort"
    bl_parent_id = "CCD_RIG_PT_bone"

    def draw(self, context: bpy.types.Context) -> None:
        comfort = context.active_pose_bone.ccd_rig.comfort
        layout = self.fields()
        layout.active = context.active_pose_bone.id_data.ccd_rig.solver.comfort
        layout.prop(comfort, "tolerance", text="Tolerance")
        layout.prop(comfort.region, "kind", text="Region")
        for bounds in limit_kind(comfort.region).lines(comfort.region):
            draw_line(layout, context, bounds)


class CCD_RIG_PT_slide(Folded, bpy.types.Panel):
    bl_label = "Slide"
    bl_parent_id = "CCD_RIG_PT_bone"

    def draw(self, context: bpy.types.Context) -> None:
        bone = context.active_pose_bone
        layout = self.fields()
        if any(bone.ccd_rig.use_slide) and bone.parent is not None and bone.bone.use_connect:
            draw_words(layout, context, "The bone is connected to its parent, so it cannot slide", "CANCEL")
        layout.row(heading="Along", align=True).prop(bone.ccd_rig, "use_slide", text="", toggle=True)
        for k, name in enumerate("XYZ"):
            if bone.ccd_rig.use_slide[k]:
                lines = layout.column(align=True)
                lines.prop(bone.ccd_rig, "slide_lower", index=k, text=translated(f"{name} Min"))
                lines.prop(bone.ccd_rig, "slide_upper", index=k, text=translated(f"{name} Max"))


BOUNDS = (("MIN", "Min"), ("MAX", "Max"), ("SWING", "Swing"))


class CCD_RIG_MT_limit_presets(bpy.types.Menu):
    bl_label = "Own Presets"
    preset_subdir = preset_files.FOLDER
    preset_operator = "ccd_rig.limit_preset_apply"

    def draw(self, context: bpy.types.Context) -> None:
        layout, names = self.layout, preset_files.file_names()
        if names:
            self.draw_preset(context)
            layout.separator()
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator("ccd_rig.limit_preset_add", text="Add Limit of Active Bone...", icon="ADD")
        if names:
            layout.menu("CCD_RIG_MT_limit_presets_remove", icon="REMOVE")


class CCD_RIG_MT_limit_presets_remove(bpy.types.Menu):
    bl_label = "Remove"

    def draw(self, _context: bpy.types.Context) -> None:
        for name in preset_files.file_names():
            words = bpy.path.display_name(name)
            remove = self.layout.operator("ccd_rig.limit_preset_add", text=words, translate=False)
            remove.name, remove.remove_name = name, True


class CCD_RIG_MT_limits(bpy.types.Menu):
    bl_label = "Limits"
    bl_description = "Limits from the pose, from Blender's own limits or an action; copied and mirrored"

    def draw(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.limit_sources.bones import has_bound

        layout = self.layout
        bone = context.active_pose_bone
        for bound, name in BOUNDS:
            if bone is None or has_bound(bone, bound):
                words = translated(f"{name} from Pose")
                layout.operator("ccd_rig.limit_from_pose", text=words).bound = bound
        layout.separator()
        layout.operator_menu_enum("ccd_rig.limits_preset", "preset", text="Preset")
        layout.menu("CCD_RIG_MT_limit_presets", text="Own Presets")
        layout.separator()
        layout.operator("ccd_rig.limits_from_ik", text="From Blender's IK")
        layout.operator("ccd_rig.limits_from_constraints", text="From Limit Rotation")
        layout.operator("ccd_rig.limits_from_action", text="From Action...").source = "ACTION"
        layout.operator("ccd_rig.limits_from_action", text="From All Actions...").source = "ALL"
        layout.separator()
        layout.operator("ccd_rig.limits_copy", text="Copy to Selected").bones = "SELECTED"
        layout.operator("ccd_rig.limits_copy", text="Copy to Chain").bones = "CHAIN"
        layout.operator("ccd_rig.limits_mirror", text="Mirror to Other Side")


class CCD_RIG_PT_coupled_offsets(Folded, bpy.types.Panel):
    bl_label = "Coupled Offsets"
    bl_parent_id = "CCD_RIG_PT_bone"

    def draw(self, context: bpy.types.Context) -> None:
        bone = context.active_pose_bone
        layout = self.layout
        layout.use_property_decorate = False
        rows = bone.ccd_rig.coupled_offsets
        if len(rows) and bone.parent is not None and bone.bone.use_connect:
            draw_words(layout, context, "The bone is connected to its parent, so it cannot shift", "CANCEL")
        for index, row in enumerate(rows):
            _draw_offset(layout.box(), bone, row, index)
        layout.operator("ccd_rig.coupled_offset_add", icon="ADD")


def _draw_offset(layout: bpy.types.UILayout, bone: bpy.types.PoseBone, row: Any, index: int) -> None:
    line = layout.row(align=True)
    line.prop_search(row, "driver", bone.id_data.pose, "bones", text="Driver")
    line.operator("ccd_rig.coupled_offset_remove", text="", icon="X").offset = index
    layout.row().prop(row, "axis", text="")
    layout.prop(row, "use_slopes")
    lines = layout.column(align=True)
    for k, point in enumerate(row.points):
        line = lines.row(align=True)
        line.prop(point, "angle", text="")
        line.prop(point, "shift", text="")
        if row.use_slopes:
            line.prop(point, "slope", text="")
        remove = line.operator("ccd_rig.offset_point_remove", text="", icon="REMOVE")
        remove.offset, remove.point = index, k
    layout.operator("ccd_rig.offset_point_add", icon="ADD").offset = index


class CCD_RIG_PT_mass(Folded, bpy.types.Panel):
    bl_label = "Mass"
    bl_parent_id = "CCD_RIG_PT_bone"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.fields()
        layout.prop(context.active_pose_bone.ccd_rig, "mass")
