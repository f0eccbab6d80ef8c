# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts of feet: plant bones, and key their constraints over contacts."""

import bpy

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties import body, new_rows
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_values import PLANT, Holds
from ..ccd_rig.blender.registration import HIDDEN, LAST
from ..ccd_rig.blender.scene import contact_search
from ..ccd_rig.blender.scene.contact_search import GROUNDS, Contacts
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.motion.contacts import ContactThresholds
from . import command
from .command import FrameRange, draw_lines, selected_bones


class ContactCommand(FrameRange):
    """Properties of an operator that finds contacts, and its redo panel."""

    speed: LAST.number(
        "Speed",
        "A contact begins where the bone is slower than this, in lengths of its leg per second",
        default=ContactThresholds.speed,
        min=0.001,
        soft_max=2.0,
    )
    height: LAST.number(
        "Height",
        "A contact begins where the bone is nearer than this to the ground, in lengths of its "
        "leg. That is the armature's Ground; where it is At Rest, the ground is at the bone's lowest height "
        "from one rise to the next",
        default=ContactThresholds.height,
        min=0.001,
        soft_max=1.0,
    )
    release: LAST.number(
        "Release",
        "A contact ends at this many times Speed or Height, so that noise does not break it",
        translation_context=CONTEXT,
        default=ContactThresholds.release,
        min=1.0,
        soft_max=3.0,
    )
    shortest: LAST.number(
        "Shortest",
        "Shorter gaps between contacts are closed, and shorter contacts are left out",
        default=ContactThresholds.shortest,
        min=0.0,
        soft_max=1.0,
        subtype="TIME_ABSOLUTE",
        unit="TIME_ABSOLUTE",
    )
    ground: LAST.enum("Ground", "Whether the ground moves under the feet", items=GROUNDS)
    walk_on: LAST.boolean(
        "Walk On",
        "Where the ground moves, set Body to Walk On: the bake goes through the world",
        default=True,
    )
    markers: LAST.boolean(
        "Markers", "Mark in the timeline where each bone comes down and leaves", default=True
    )
    found: HIDDEN.text("", "What was found, a line each")

    def draw_thresholds(self) -> None:
        """Draw thresholds and results in the redo panel."""
        layout = self.layout
        layout.use_property_split = True
        for name in ("frame_start", "frame_end", "speed", "height", "release", "shortest"):
            layout.prop(self, name)
        for name in ("ground", "walk_on", "markers"):
            layout.prop(self, name)
        draw_lines(layout, self.found)

    def find(self, context: bpy.types.Context, rig: bpy.types.Object, names: list[str]) -> Contacts:
        """Search for contacts, without changes."""
        scene = context.scene
        self.fill_range(scene)
        thresholds = ContactThresholds(self.speed, self.height, self.release, self.shortest)
        return contact_search.find_contacts(scene, rig, names, self.frames, thresholds, self.ground)

    def keep(self, context: bpy.types.Context, rig: bpy.types.Object, contacts: Contacts) -> None:
        """Key and mark contacts, and report them."""
        contact_search.key_contacts(rig, contacts, self.frames)
        if self.markers:
            contact_search.mark_contacts(context.scene, contacts, self.frames)
        lines = list(contacts.words())
        if contacts.ground_moves and self.walk_on and rig.ccd_rig.body != body.WALK_ON:
            rig.ccd_rig.body = body.WALK_ON
            lines.append("Body is set to Walk On")
        self.found = "\n".join(lines)
        for line in lines:
            self.tell("INFO", line)
        missed = [name for name, phases in contacts.phases.items() if not phases]
        if missed:
            self.tell(
                "WARNING",
                f"{', '.join(missed)}: never down, so not planted; raise Speed or Height, or for quick steps "
                "lower Shortest",
            )

    @property
    def frames(self) -> range:
        return range(self.frame_start, self.frame_end + 1)


class CCD_RIG_OT_contacts_find(ContactCommand, bpy.types.Operator):
    bl_idname = "ccd_rig.contacts_find"
    bl_label = "Find Contacts"
    bl_description = (
        "Key Influence of the Plant constraints on where their bones rest on the ground, and off between, "
        "from how they move now"
    )

    only_active: LAST.boolean("Only Active Constraint", "Only of the constraint that is shown below the list")

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        reason = command.no_constraint(context)
        if not reason and not _plants(active_rig(context)):
            reason = "No enabled constraint plants a bone: press Plant Selected Feet, or set a Kind to Plant"
        return reason

    def run(self, context: bpy.types.Context) -> None:
        rig = active_rig(context)
        names = _plants(rig)
        if self.only_active:
            index = rig.ccd_rig.active_index
            active = rig.ccd_rig.constraints[index].name if index < len(rig.ccd_rig.constraints) else ""
            names = [name for name in names if name == active]
            if not names:
                raise RigError(f"'{active}' is no enabled Plant: choose one in the list")
        contacts = self.find(context, rig, names)
        self.keep(context, rig, contacts)

    def draw(self, _context: bpy.types.Context) -> None:
        self.draw_thresholds()
        self.layout.prop(self, "only_active")


def _plants(rig: bpy.types.Object) -> list[str]:
    return [row.name for row in rig.ccd_rig.constraints if row.kind == PLANT and row.enabled]


class CCD_RIG_OT_feet_plant(ContactCommand, bpy.types.Operator):
    bl_idname = "ccd_rig.feet_plant"
    bl_label = "Plant Selected Feet"
    bl_description = (
        "Plant the selected bones, carried by the bone that carries the whole figure, and key when they rest "
        "on the ground. A constraint that a bone has already becomes a Plant"
    )

    hold_ground: LAST.boolean("Hold Ground", "Planted bones keep their place along the ground", default=True)
    hold_height: LAST.boolean(
        "Hold Height",
        "Planted bones keep their height; when off, they rise and sink as they are animated. "
        "When not set, on where no contact is found",
    )
    hold_rotation: LAST.boolean(
        "Hold Rotation",
        "Planted bones keep their rotation; when off, they turn as they are animated, so that feet roll",
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        reason = command.no_armature(context)
        if not reason and context.mode != "POSE":
            reason = "Go to Pose Mode and select the feet"
        if not reason and not selected_bones(context, context.object):
            reason = "Select the feet: the bones that rest on the ground, such as feet or balls of feet"
        return reason

    def run(self, context: bpy.types.Context) -> None:
        rig = context.object
        holds = Holds(self.hold_ground, self.hold_height, self.hold_rotation)
        if not any(holds):
            raise RigError("Nothing of the feet is held: switch on Ground, Height or Rotation")
        planted = new_rows.plant(rig, selected_bones(context, context.object), holds)
        words = f"'{planted.root_bone}' carries the figure over {', '.join(planted.names)}"
        if planted.switched:
            words += f"; now planted, without their targets: {', '.join(planted.switched)}"
        if planted.moved:
            words += f"; carried by it too: {', '.join(planted.moved)}"
        if planted.stopped:
            words += f"; Slide switched off, as planted feet shift it: {', '.join(planted.stopped)}"
        self.tell("INFO", words)
        try:
            contacts = self.find(context, rig, list(planted.names))
        except CCDRigError as error:
            # Feet without contacts keep their height too: with sinking hips they would go into the ground.
            if not self.properties.is_property_set("hold_height"):
                self.hold_height = True
                new_rows.hold_height(rig, planted.fresh)
            self.found = f"Planted all the time. {error}"
            self.tell("WARNING", self.found)
            return
        self.keep(context, rig, contacts)

    def draw(self, _context: bpy.types.Context) -> None:
        self.draw_thresholds()
        holds = self.layout.column(heading="Hold")
        holds.prop(self, "hold_ground", text="Ground")
        holds.prop(self, "hold_height", text="Height")
        holds.prop(self, "hold_rotation", text="Rotation")
