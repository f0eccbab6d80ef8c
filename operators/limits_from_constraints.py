# SPDX-License-Identifier: GPL-3.0-or-later
"""Take over the ranges of Limit Rotation constraints."""

from collections.abc import Sequence

import bpy

from ..ccd_rig.blender.limit_sources import limit_rotation
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator


class CCD_RIG_OT_limits_from_constraints(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limits_from_constraints"
    bl_label = "Limits from Limit Rotation"
    bl_description = (
        "Take over the ranges of the Limit Rotation constraints of the selected bones. The constraints stay"
    )

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        return limit_rotation.take_over(pose_bones)
