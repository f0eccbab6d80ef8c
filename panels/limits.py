# SPDX-License-Identifier: GPL-3.0-or-later
"""The menu "Limits" of the active bone: where limits come from, and where they go."""

import bpy

from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.limit_sources import own_presets
from ..ccd_rig.blender.limit_sources.present_pose import has_bound

BOUNDS = (("MIN", "Min"), ("MAX", "Max"), ("SWING", "Swing"))


class CCD_RIG_MT_limit_presets(bpy.types.Menu):
    bl_label = "Own Presets"
    preset_subdir = own_presets.FOLDER
    preset_operator = "ccd_rig.limit_preset_apply"

    def draw(self, context: bpy.types.Context) -> None:
        layout, names = self.layout, own_presets.file_names()
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
        for name in own_presets.file_names():
            words = bpy.path.display_name(name)
            remove = self.layout.operator("ccd_rig.limit_preset_add", text=words, translate=False)
            remove.name, remove.remove_name = name, True


class CCD_RIG_MT_limits(bpy.types.Menu):
    bl_label = "Limits"
    bl_description = "Limits from the pose, from Blender's own limits or an action; copied and mirrored"

    def draw(self, context: bpy.types.Context) -> None:
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
