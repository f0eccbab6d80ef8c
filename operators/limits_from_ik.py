# SPDX-License-Identifier: GPL-3.0-or-later
"""Take over the limits that bones have for Blender's own IK."""

from collections.abc import Sequence

import bpy

from ..ccd_rig.blender.limit_sources import ik_limits
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator


class CCD_RIG_OT_limits_from_ik(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limits_from_ik"
    bl_label = "Limits from Blender's IK"
    bl_description = (
        "Take over what the selected bones allow Blender's own IK: locked axes, ranges, stiffness"
    )

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        return ik_limits.take_over(pose_bones)
