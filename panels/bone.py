# SPDX-License-Identifier: GPL-3.0-or-later
"""What the active bone may do."""

from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from .sidebar import Sidebar, draw_words


class CCD_RIG_PT_bone(Sidebar, bpy.types.Panel):
    bl_label = "Bone"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return active_rig(context) is not None and context.active_pose_bone is not None

    def draw(self, context: bpy.types.Context) -> None:
        bone = context.active_pose_bone
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.label(text=bone.name, icon="BONE_DATA", translate=False)
        line = layout.row(align=True)
        line.prop(bone.ccd_rig.limit, "kind", text="Limit")
        line.menu("CCD_RIG_MT_limits", text="", icon="DOWNARROW_HLT")
        _draw_bounds(layout, bone.ccd_rig.limit)
        lines = layout.column()
        lines.prop(bone.ccd_rig, "pin")
        lines.prop(bone.ccd_rig, "stiffness")
        lines.prop(bone.ccd_rig, "max_step")


class CCD_RIG_PT_slide(Sidebar, bpy.types.Panel):
    bl_label = "Slide"
    bl_parent_id = "CCD_RIG_PT_bone"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        bone = context.active_pose_bone
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        if any(bone.ccd_rig.use_slide) and bone.parent is not None and bone.bone.use_connect:
            draw_words(layout, context, "The bone is connected to its parent, so it cannot slide", "CANCEL")
        layout.row(heading="Along", align=True).prop(bone.ccd_rig, "use_slide", text="", toggle=True)
        for k, name in enumerate("XYZ"):
            if bone.ccd_rig.use_slide[k]:
                lines = layout.column(align=True)
                lines.prop(bone.ccd_rig, "slide_lower", index=k, text=translated(f"{name} Min"))
                lines.prop(bone.ccd_rig, "slide_upper", index=k, text=translated(f"{name} Max"))


class CCD_RIG_PT_mass(Sidebar, bpy.types.Panel):
    bl_label = "Mass"
    bl_parent_id = "CCD_RIG_PT_bone"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(context.active_pose_bone.ccd_rig, "mass")


class CCD_RIG_PT_comfort(Sidebar, bpy.types.Panel):
    bl_label = "Comfort"
    bl_parent_id = "CCD_RIG_PT_bone"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        comfort = context.active_pose_bone.ccd_rig.comfort
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.active = context.active_pose_bone.id_data.ccd_rig.solver.comfort
        layout.prop(comfort, "tolerance", text="Tolerance")
        layout.prop(comfort.region, "kind", text="Region")
        _draw_bounds(layout, comfort.region)


def _draw_bounds(layout: bpy.types.UILayout, limit: Any) -> None:
    if limit.kind == "HINGE":
        layout.column().prop(limit, "axis")
        _draw_pair(layout, limit, "hinge_lower", "hinge_upper")
    elif limit.kind == "CONE":
        layout.prop(limit, "cone_radius")
    elif limit.kind == "ELLIPSE":
        _draw_pair(layout, limit, "x_lower", "x_upper")
        _draw_pair(layout, limit, "z_lower", "z_upper")
    elif limit.kind == "EULER":
        layout.prop(limit, "euler_order")
        layout.column().prop(limit, "euler_lower")
        layout.column().prop(limit, "euler_upper")
    if limit.kind == "TWIST":
        _draw_pair(layout, limit, "twist_lower", "twist_upper")
    elif limit.kind in ("CONE", "ELLIPSE"):
        lines = layout.column(heading="Twist", align=True)
        lines.prop(limit, "use_twist", text="Limit")
        pair = lines.column(align=True)
        pair.active = limit.use_twist
        pair.prop(limit, "twist_lower")
        pair.prop(limit, "twist_upper")


def _draw_pair(layout: bpy.types.UILayout, limit: Any, lower: str, upper: str) -> None:
    lines = layout.column(align=True)
    lines.prop(limit, lower)
    lines.prop(limit, upper)
