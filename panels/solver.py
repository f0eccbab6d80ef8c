# SPDX-License-Identifier: GPL-3.0-or-later
"""How the armature is solved."""

import bpy

from .sidebar import Sidebar, active_armature


class CCD_RIG_PT_solver(Sidebar, bpy.types.Panel):
    bl_label = "Solver"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        armature_object = active_armature(context)
        return armature_object is not None and len(armature_object.ccd_rig.constraints) > 0

    def draw(self, context):
        solver = active_armature(context).ccd_rig.solver
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        lines = layout.column()
        lines.prop(solver, "max_iterations")
        lines.prop(solver, "position_tolerance")
        lines.prop(solver, "angle_tolerance")
        lines.prop(solver, "stall_threshold")
        lines = layout.column()
        lines.prop(solver, "sweep")
        lines.prop(solver, "step_fraction")
        lines.prop(solver, "step_feedback")
        lines.prop(solver, "comfort")
