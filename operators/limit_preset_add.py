# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the limit of the active bone as a preset, or remove one."""

from typing import Any

import bpy
from bl_operators.presets import AddPresetBase
from bpy.props import BoolProperty

from ..ccd_rig.blender.limit_sources import own_presets
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_limit_preset_add(AddPresetBase, bpy.types.Operator):
    bl_idname = "ccd_rig.limit_preset_add"
    bl_label = "Add Limit Preset"
    bl_description = "Keep the limit of the active bone under a name, for other bones and files"

    remove_name: BoolProperty(
        name="Remove", description="Remove the preset of this name", options={"HIDDEN", "SKIP_SAVE"}
    )
    remove_active: BoolProperty(
        name="Remove Chosen", description="Remove the preset that is chosen", options={"HIDDEN", "SKIP_SAVE"}
    )
    preset_menu = own_presets.MENU
    preset_subdir = own_presets.FOLDER
    preset_values = own_presets.VALUES

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_pose_bone(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        name, bone = self.name.strip(), context.active_pose_bone
        removes = self.remove_active or self.remove_name
        if not removes:
            if not name:
                tell(self, {"ERROR"}, "The preset needs a name: type one")
                return {"CANCELLED"}
            if bone.ccd_rig.limit.kind == "NONE":
                tell(self, {"ERROR"}, f"Bone '{bone.name}' has no limit to keep: choose one first")
                return {"CANCELLED"}
        done: Any = super().execute(context)  # a set, of which the stubs do not know
        if "FINISHED" in done:
            words = "The preset is removed" if removes else f"Limit of '{bone.name}' kept as '{name}'"
            tell(self, {"INFO"}, words)
        return done
