# SPDX-License-Identifier: GPL-3.0-or-later
"""Set a bound of limits from the present pose."""

from collections.abc import Sequence

import bpy
from bpy.props import EnumProperty

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.limit_sources import present_pose
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator

BOUNDS = (
    ("MIN", "Min", "The smallest angle of hinges and twists, and all three of Euler angles"),
    ("MAX", "Max", "The largest angle of hinges and twists, and all three of Euler angles"),
    ("SWING", "Swing", "The border of cones and ellipses, on the side to which the bone swings"),
)


class CCD_RIG_OT_limit_from_pose(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limit_from_pose"
    bl_label = "Limit from Pose"
    bl_description = "Let the limits of the selected bones end where the bones are posed now"

    fields = ("bones", "bound")
    bound: EnumProperty(
        name="Bound",
        description="Which end of the limits is set",
        items=BOUNDS,
        options={"SKIP_SAVE"},
        translation_context=CONTEXT,
    )

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        context.view_layer.update()  # a script may have posed the bones just now
        return present_pose.set_bounds(pose_bones, self.bound)
