# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the frames in which planted bones are down, and key their influences so."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .contact_options import ContactOptions
from .telling import tell


class CCD_RIG_OT_contacts_find(ContactOptions, bpy.types.Operator):
    bl_idname = "ccd_rig.contacts_find"
    bl_label = "Find Contacts"
    bl_description = (
        "Key Influence of the Plant constraints on where their bones rest on the ground, and off between, "
        "from how they move now"
    )
    bl_options = {"REGISTER", "UNDO"}

    only_active: BoolProperty(
        name="Only Active Constraint", description="Only of the constraint that is shown below the list"
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_constraint(context)
        if not reason and not _plants(active_rig(context)):
            reason = "No enabled constraint plants a bone: press Plant Selected Feet, or set a Kind to Plant"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        names = _plants(rig)
        if self.only_active:
            index = rig.ccd_rig.active_index
            active = rig.ccd_rig.constraints[index].name if index < len(rig.ccd_rig.constraints) else ""
            names = [name for name in names if name == active]
            if not names:
                tell(self, {"ERROR"}, f"'{active}' is no enabled Plant: choose one in the list")
                return {"CANCELLED"}
        try:
            contacts = self.find(context, rig, names)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        self.keep(context, rig, contacts)
        return {"FINISHED"}

    def draw(self, _context: bpy.types.Context) -> None:
        self.draw_thresholds()
        self.layout.prop(self, "only_active")


def _plants(rig: bpy.types.Object) -> list[str]:
    return [row.name for row in rig.ccd_rig.constraints if row.kind == Kind.PLANT and row.enabled]
