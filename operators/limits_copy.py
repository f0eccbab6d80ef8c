# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy the active bone's limit to other bones."""

from collections.abc import Sequence

import bpy

from ..ccd_rig.blender.limit_sources import copies
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator


class CCD_RIG_OT_limits_copy(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limits_copy"
    bl_label = "Copy Limit"
    bl_description = "Give other bones the limit of the active bone, in their own axes"

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        return copies.copy(context.active_pose_bone, pose_bones)
