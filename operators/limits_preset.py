# SPDX-License-Identifier: GPL-3.0-or-later
"""Give bones the limits of a preset."""

from collections.abc import Sequence

import bpy
from bpy.props import EnumProperty

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.limit_sources import presets
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from .limit_bones import LimitOperator

PRESETS = (
    ("HUMAN", "Human", "Bones that are parts of a human: back, neck, arms, hands, fingers, legs, feet"),
    ("QUADRUPED", "Quadruped", "Bones that are parts of an animal on four legs, as a dog's joints go"),
    ("SPINE", "Spine", "Rows of bones as a human's back: each takes an equal share"),
    ("TAIL", "Tail", "Rows of bones that bend evenly to all sides and hardly roll"),
    ("FINGER", "Finger", "Rows of bones as fingers: the last three bones of each"),
)


class CCD_RIG_OT_limits_preset(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limits_preset"
    bl_label = "Limits from Preset"
    bl_description = (
        "Give the selected bones the limits that joints of a body have, less what their rest pose has used up"
    )

    fields = ("bones", "preset")
    preset: EnumProperty(
        name="Preset",
        description="What the bones are",
        items=PRESETS,
        options={"SKIP_SAVE"},
        translation_context=CONTEXT,
    )

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        return presets.apply_preset(pose_bones, self.preset)
