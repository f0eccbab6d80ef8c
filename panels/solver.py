# SPDX-License-Identifier: GPL-3.0-or-later
"""How the armature is solved."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import CONTEXT, translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.solver_settings import PRESET_WORDS, present_preset
from ..ccd_rig.settings import SolverSettings
from .sidebar import Sidebar

MAIN = ("solver", "max_iterations", "position_tolerance", "angle_tolerance", "sweep", "comfort")


class CCD_RIG_PT_solver(Sidebar, bpy.types.Panel):
    bl_label = "Solver"
    bl_translation_context = CONTEXT
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        armature_object = active_rig(context)
        return armature_object is not None and len(armature_object.ccd_rig.constraints) > 0

    def draw(self, context: bpy.types.Context) -> None:
        name = present_preset(active_rig(context))
        label = PRESET_WORDS[name][0] if name else "Custom"
        words = translated(f"Preset: {label}")
        self.layout.operator_menu_enum("ccd_rig.solver_preset", "preset", text=words)
        _draw_fields(self.layout, active_rig(context).ccd_rig.solver, MAIN)
        self.layout.prop(active_rig(context).ccd_rig, "body_helps")


class CCD_RIG_PT_solver_steps(Sidebar, bpy.types.Panel):
    bl_label = "Advanced"
    bl_parent_id = "CCD_RIG_PT_solver"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        solver = active_rig(context).ccd_rig.solver
        # In the order of the core's settings: what is added there shows here.
        names = [field.name for field in dataclasses.fields(SolverSettings) if field.name not in MAIN]
        _draw_fields(self.layout, solver, names)


def _draw_fields(layout: bpy.types.UILayout, solver: Any, names: Sequence[str]) -> None:
    layout.use_property_split = True
    layout.use_property_decorate = False
    lines = layout.column()
    for name in names:
        lines.prop(solver, name)
