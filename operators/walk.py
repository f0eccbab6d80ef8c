# SPDX-License-Identifier: GPL-3.0-or-later
"""Walk along a curve."""

import bpy

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.walk import chosen, report
from ..ccd_rig.blender.walk.walk import walk_along
from . import command
from .command import Command


def no_curve(context: bpy.types.Context) -> str:
    """There is no armature, or no curve is chosen for it."""
    if reason := command.no_armature(context):
        return reason
    return "" if active_rig(context).ccd_rig.walk.curve is not None else "Choose the curve to walk along"


class CCD_RIG_OT_walk_along(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.walk_along"
    bl_label = "Walk Along"
    bl_description = (
        "Bake the cycle along the curve to a new action: steps planted on the ground by arc length, legs "
        "solved, from standing to standing. The action with the cycle stays in the file"
    )

    why_grey = staticmethod(no_curve)

    def run(self, context: bpy.types.Context) -> None:
        rig = active_rig(context)
        group = rig.ccd_rig.walk
        plays = rig.animation_data.action if rig.animation_data is not None else None
        done = walk_along(context.scene, rig, group.curve, chosen.choice_of(rig))
        if group.cycle is None:
            group.cycle = plays  # done again, the cycle is walked, not the walk
        told = report.lines(done)
        group.report = "\n".join(told)
        self.tell("INFO", told[0])
        end, last = context.scene.frame_end, done.frames[-1]
        if last > end:
            self.tell("WARNING", f"The scene ends at frame {end}, the walk at {last:g}: set the scene's End")
        for warning in report.warnings(done):
            self.tell("WARNING", warning)
