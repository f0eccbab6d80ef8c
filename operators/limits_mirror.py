# SPDX-License-Identifier: GPL-3.0-or-later
"""Mirror limits to the other side."""

from collections.abc import Sequence

import bpy

from ..ccd_rig.blender.limit_sources import other_side
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator


class CCD_RIG_OT_limits_mirror(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limits_mirror"
    bl_label = "Mirror Limits"
    bl_description = (
        "Give the bones on the other side the mirrored limits of the selected bones. Where both sides are "
        "selected, the side of the active bone counts"
    )

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        return other_side.mirror(pose_bones, context.active_pose_bone)
