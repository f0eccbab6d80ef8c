# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the active constraint one of another kind."""

import bpy
from bpy.props import EnumProperty

from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_group import KINDS
from ..ccd_rig.blender.properties.constraint_values import Kind
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_constraint_kind(bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_kind"
    bl_label = "Kind of CCD Constraint"
    bl_description = (
        "Change what the constraint is about. Its chain then goes up to the bone that suits the kind; a bone "
        "that becomes planted is held where it is, without a target"
    )
    bl_options = {"REGISTER", "UNDO"}

    kind: EnumProperty(name="Kind", description="What the constraint is about", items=KINDS)

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_constraint(context)
        if not reason and constraint_list.active(active_rig(context)) is None:
            reason = "Choose a constraint in the list"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        constraint = constraint_list.active(active_rig(context))
        target = constraint.target
        constraint_list.set_kind(constraint, Kind(self.kind))
        chain = constraint_list.chain(active_rig(context), constraint.tip, constraint.chain_length)
        if chain:
            cleared = (
                "" if target is None or constraint.target else f"; its target '{target.name}' is cleared"
            )
            words = f"Constraint '{constraint.name}': its chain goes up to '{chain[-1].name}'{cleared}"
            tell(self, {"INFO"}, words)
        return {"FINISHED"}
