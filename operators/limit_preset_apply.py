# SPDX-License-Identifier: GPL-3.0-or-later
"""Give bones the limit of a preset that a user has kept."""

from collections.abc import Sequence

import bpy
from bpy.props import StringProperty

from ..ccd_rig.blender.limit_sources import own_presets
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator


class CCD_RIG_OT_limit_preset_apply(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limit_preset_apply"
    bl_label = "Apply Limit Preset"
    bl_description = "Give the active bone and the selected ones the limit that this preset keeps"

    filepath: StringProperty(
        name="File", description="The file of the preset", subtype="FILE_PATH", options={"SKIP_SAVE"}
    )
    menu_idname: StringProperty(
        name="Menu", description="The menu that it was chosen in", options={"HIDDEN", "SKIP_SAVE"}
    )

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        return own_presets.apply_own(context.active_pose_bone, pose_bones, self.filepath)
