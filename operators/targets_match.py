# SPDX-License-Identifier: GPL-3.0-or-later
"""Put targets and poles where the present pose has them."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.bake import switches, target_motion
from ..ccd_rig.blender.checks import setup
from ..ccd_rig.blender.keys import auto_keys
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.solver_settings import solver_settings
from ..ccd_rig.errors import CCDRigError
from ..ccd_rig.solvers.stepping import result_of
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_targets_match(bpy.types.Operator):
    bl_idname = "ccd_rig.targets_match"
    bl_label = "Match Targets"
    bl_description = (
        "Put each target where its bone is at this frame, and each pole on the side of the bend. Keys are "
        "set only with Auto Keying"
    )
    bl_options = {"REGISTER", "UNDO"}

    only_active: BoolProperty(
        name="Only Active", description="Match the active constraint alone", options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.none_enabled(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig, scene = active_rig(context), context.scene
        active = constraint_list.active(rig)
        if self.only_active and active is None:
            tell(self, {"ERROR"}, "No constraint is active: choose one in the list")
            return {"CANCELLED"}
        try:
            ready = result_of(setup.require(rig, scene, (active.name,) if self.only_active else ()))
            solver = solver_settings(rig)
            moved = target_motion.match(context.evaluated_depsgraph_get(), rig, ready.constraints, solver)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        if warning := switches.ik_warning(scene, rig, ready.constraints, [scene.frame_current]):
            tell(self, {"WARNING"}, warning)
        if refusal := auto_keys.insert(context, moved):
            tell(self, {"WARNING"}, refusal)
        count = len({owner for owner, _ in moved})
        tell(self, {"INFO"}, f"Matched {count} target{'' if count == 1 else 's'}")
        return {"FINISHED"}
