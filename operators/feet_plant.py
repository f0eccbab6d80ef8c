# SPDX-License-Identifier: GPL-3.0-or-later
"""Plant the selected bones, and find when they are down."""

import bpy
from bpy.props import BoolProperty

from ..ccd_rig.blender.properties import planted_rows
from ..ccd_rig.blender.properties.constraint_values import Holds
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .contact_options import ContactOptions
from .telling import tell


class CCD_RIG_OT_feet_plant(ContactOptions, bpy.types.Operator):
    bl_idname = "ccd_rig.feet_plant"
    bl_label = "Plant Selected Feet"
    bl_description = (
        "Plant the selected bones, carried by the bone that carries the whole figure, and key when they rest "
        "on the ground. A constraint that a bone has already becomes a Plant"
    )
    bl_options = {"REGISTER", "UNDO"}

    hold_ground: BoolProperty(
        name="Hold Ground", description="Planted bones keep their place along the ground", default=True
    )
    hold_height: BoolProperty(
        name="Hold Height",
        description="Planted bones keep their height; when off, they rise and sink as they are animated. "
        "When not set, on where no contact is found",
    )
    hold_rotation: BoolProperty(
        name="Hold Rotation",
        description="Planted bones keep their rotation; when off, they turn as they are animated, so that "
        "feet roll",
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_armature(context)
        if not reason and context.mode != "POSE":
            reason = "Go to Pose Mode and select the feet"
        if not reason and not poll_reasons.selected_bones(context, context.object):
            reason = "Select the feet: the bones that rest on the ground, such as feet or balls of feet"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = context.object
        holds = Holds(self.hold_ground, self.hold_height, self.hold_rotation)
        if not any(holds):
            tell(self, {"ERROR"}, "Nothing of the feet is held: switch on Ground, Height or Rotation")
            return {"CANCELLED"}
        try:
            planted = planted_rows.plant(rig, poll_reasons.selected_bones(context, context.object), holds)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        words = f"'{planted.root_bone}' carries the figure over {', '.join(planted.names)}"
        if planted.switched:
            words += f"; now planted, without their targets: {', '.join(planted.switched)}"
        if planted.moved:
            words += f"; carried by it too: {', '.join(planted.moved)}"
        if planted.stopped:
            words += f"; Slide switched off, as planted feet shift it: {', '.join(planted.stopped)}"
        tell(self, {"INFO"}, words)
        try:
            contacts = self.find(context, rig, list(planted.names))
        except CCDRigError as error:
            # Feet that never step keep their height too: they would go into the ground with hips that sink.
            if not self.properties.is_property_set("hold_height"):
                self.hold_height = True
                planted_rows.hold_height(rig, planted.fresh)
            self.found = f"Planted all the time. {error}"
            tell(self, {"WARNING"}, self.found)
            return {"FINISHED"}
        self.keep(context, rig, contacts)
        return {"FINISHED"}

    def draw(self, _context: bpy.types.Context) -> None:
        self.draw_thresholds()
        parts = self.layout.column(heading="Hold")
        parts.prop(self, "hold_ground", text="Ground")
        parts.prop(self, "hold_height", text="Height")
        parts.prop(self, "hold_rotation", text="Rotation")
