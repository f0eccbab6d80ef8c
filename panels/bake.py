# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve, bake, and what the last bake came to; the options of a bake below, folded away."""

import bpy

from ..ccd_rig.blender.bake.bake_all import rigs
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.kernel import why_plain
from .report import draw_report
from .sidebar import Sidebar, draw_ground, draw_words


class CCD_RIG_PT_bake(Sidebar, bpy.types.Panel):
    bl_label = "Solve and Bake"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        armature_object = active_rig(context)
        return armature_object is not None and len(armature_object.ccd_rig.constraints) > 0

    def draw(self, context: bpy.types.Context) -> None:
        buttons = self.layout.column(align=True)
        buttons.operator("ccd_rig.solve", icon="POSE_HLT")
        scene = context.scene
        if scene.use_preview_range:
            words = f"Bake Preview {scene.frame_preview_start}–{scene.frame_preview_end}"
        else:
            words = f"Bake {scene.frame_start}–{scene.frame_end}"
        buttons.operator("ccd_rig.bake", text=translated(words), icon="ACTION")
        if len(rigs(scene)) > 1:
            buttons.operator("ccd_rig.bake_all", icon="ARMATURE_DATA")
        if words := why_plain():
            draw_words(self.layout, context, words, "INFO")
        draw_report(self.layout, context, active_rig(context))


class CCD_RIG_PT_bake_options(Sidebar, bpy.types.Panel):
    bl_label = "Bake Options"
    bl_parent_id = "CCD_RIG_PT_bake"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        options = active_rig(context).ccd_rig.bake
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
        draw_ground(layout, options)


class CCD_RIG_PT_bake_more(Sidebar, bpy.types.Panel):
    bl_label = "More"
    bl_parent_id = "CCD_RIG_PT_bake_options"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        options = active_rig(context).ccd_rig.bake
        fewer = layout.column()
        fewer.active = options.keys == "EVERY_FRAME"
        fewer.label(text="Reduce Keys")  # whole labels would be cut to the same letters in a narrow sidebar
        fewer.prop(options, "reduce_angle", text="Angle")
        fewer.prop(options, "reduce_error", text="Distance")
        layout.prop(options, "smoothness")
        if active_rig(context).ccd_rig.solver.solver == "CCD":
            layout.prop(options, "error_reduction")
        layout.prop(options, "switch_to_fk")
        layout.prop(options, "verify")
