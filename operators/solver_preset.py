# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the solver's steps to what suits a kind of chain."""

import bpy
from bpy.props import EnumProperty

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.solver_settings import PRESET_WORDS, apply_preset
from ..ccd_rig.settings import PRESETS
from . import poll_reasons

ITEMS = tuple((name, *PRESET_WORDS[name], number) for number, name in enumerate(PRESETS))


class CCD_RIG_OT_solver_preset(bpy.types.Operator):
    bl_idname = "ccd_rig.solver_preset"
    bl_label = "Solver Preset"
    bl_description = "Set the order and the size of the solver's steps to what suits a kind of chain"
    bl_options = {"REGISTER", "UNDO"}

    preset: EnumProperty(name="Preset", description="The kind of chain", items=ITEMS)

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        apply_preset(active_rig(context), self.preset)
        return {"FINISHED"}
