# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels of the solver settings and the pose library."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import CONTEXT, translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.solver_settings import PRESET_WORDS, present_preset
from ..ccd_rig.settings import SolverSettings
from .sidebar import Folded, Rows, draw_words

MAIN = ("solver", "max_iterations", "position_tolerance", "angle_tolerance", "sweep", "comfort")


class CCD_RIG_PT_solver(Folded, bpy.types.Panel):
    bl_label = "Solver"
    bl_translation_context = CONTEXT

    needs_constraints = True

    def draw(self, context: bpy.types.Context) -> None:
        name = present_preset(active_rig(context))
        label = PRESET_WORDS[name][0] if name else "Custom"
        words = translated(f"Preset: {label}")
        self.layout.operator_menu_enum("ccd_rig.solver_preset", "preset", text=words)
        _draw_fields(self.fields(), active_rig(context).ccd_rig.solver, MAIN)
        self.layout.prop(active_rig(context).ccd_rig, "body_helps")


class CCD_RIG_PT_solver_steps(Folded, bpy.types.Panel):
    bl_label = "Advanced"
    bl_parent_id = "CCD_RIG_PT_solver"

    def draw(self, context: bpy.types.Context) -> None:
        solver = active_rig(context).ccd_rig.solver
        # In the order of the core's settings, of which new ones appear here.
        names = [field.name for field in dataclasses.fields(SolverSettings) if field.name not in MAIN]
        _draw_fields(self.fields(), solver, names)


def _draw_fields(layout: bpy.types.UILayout, solver: Any, names: Sequence[str]) -> None:
    lines = layout.column()
    for name in names:
        lines.prop(solver, name)


class CCD_RIG_UL_poses(Rows, bpy.types.UIList):
    """List of poses: name, number of bones, and a warning where bones are missing."""

    def draw_row(self, context: bpy.types.Context, line: bpy.types.UILayout, data: Any, item: Any) -> None:
        line.prop(item, "name", text="", emboss=False, icon="ARMATURE_DATA")
        bones = item.id_data.pose.bones
        known = sum(rotation.name in bones for rotation in item.rotations)
        count = line.row()
        count.alignment = "RIGHT"
        if known == len(item.rotations) > 0:
            count.label(text=translated(f"{known} bone{'' if known == 1 else 's'}"))
        else:
            words = translated(f"{known} of {len(item.rotations)}")
            count.label(text=words, icon="ERROR" if known else "CANCEL")


class CCD_RIG_MT_poses(bpy.types.Menu):
    bl_label = "Pose Library"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator("ccd_rig.pose_capture", text="Capture Action...", icon="ACTION").source = "ACTION"
        layout.operator(
            "ccd_rig.pose_capture", text="Capture Pose Asset...", icon="ASSET_MANAGER"
        ).source = "ASSET"
        layout.separator()
        layout.operator("ccd_rig.poses_import", text="Import...", icon="IMPORT")
        layout.operator("ccd_rig.poses_export", text="Export...", icon="EXPORT")
        layout.separator()
        layout.operator("ccd_rig.pose_remove", text="Remove All", icon="X").all = True


class CCD_RIG_PT_pose_library(Folded, bpy.types.Panel):
    bl_label = "Pose Library"
    bl_parent_id = "CCD_RIG_PT_solver"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        group = active_rig(context).ccd_rig
        line = layout.row()
        line.template_list(
            "CCD_RIG_UL_poses", "", group, "poses", group, "active_pose", rows=4 if group.poses else 3
        )
        side = line.column(align=True)
        side.operator("ccd_rig.pose_capture", text="", icon="ADD").source = "POSE"
        side.operator("ccd_rig.pose_remove", text="", icon="REMOVE").all = False
        side.separator()
        side.menu("CCD_RIG_MT_poses", text="", icon="DOWNARROW_HLT")
        layout.operator("ccd_rig.pose_apply", icon="POSE_HLT")
        if group.poses and group.solver.restarts == 0:
            words = "Solves do not start from these poses: raise Restarts under Advanced"
            draw_words(layout, context, words, "INFO")
