# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operators that find contacts have in common: their thresholds, and how they go on."""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties import body
from ..ccd_rig.blender.scene import contact_search
from ..ccd_rig.blender.scene.contact_search import GROUNDS, Contacts
from ..ccd_rig.motion.contacts import ContactThresholds
from . import redo_lines
from .telling import tell


class ContactOptions:
    """Properties of an operator that finds contacts, and its redo panel."""

    frame_start: IntProperty(
        name="Start Frame",
        description="First frame; when not set, that of the scene or its preview range",
        default=1,
        options={"SKIP_SAVE"},
    )
    frame_end: IntProperty(
        name="End Frame",
        description="Last frame; when not set, that of the scene or its preview range",
        default=250,
        options={"SKIP_SAVE"},
    )
    speed: FloatProperty(
        name="Speed",
        description="A contact begins where the bone is slower than this, in lengths of its leg per second",
        default=ContactThresholds.speed,
        min=0.001,
        soft_max=2.0,
    )
    height: FloatProperty(
        name="Height",
        description="A contact begins where the bone is nearer than this to the ground, in lengths of its "
        "leg. From one rise of the foot to the next the ground is at its lowest height",
        default=ContactThresholds.height,
        min=0.001,
        soft_max=1.0,
    )
    release: FloatProperty(
        name="Release",
        translation_context=CONTEXT,
        description="A contact ends at this many times Speed or Height, so that noise does not break it",
        default=ContactThresholds.release,
        min=1.0,
        soft_max=3.0,
    )
    shortest: FloatProperty(
        name="Shortest",
        description="Shorter gaps between contacts are closed, and shorter contacts are left out",
        default=ContactThresholds.shortest,
        min=0.0,
        soft_max=1.0,
        subtype="TIME_ABSOLUTE",
        unit="TIME_ABSOLUTE",
    )
    ground: EnumProperty(name="Ground", description="Whether the ground moves under the feet", items=GROUNDS)
    walk_on: BoolProperty(
        name="Walk On",
        description="Where the ground moves, set Body to Walk On: the bake goes through the world",
        default=True,
    )
    markers: BoolProperty(
        name="Markers", description="Mark in the timeline where each bone comes down and leaves", default=True
    )
    found: StringProperty(description="What was found, a line each", options={"HIDDEN", "SKIP_SAVE"})

    def draw_thresholds(self) -> None:
        """The redo panel: what to look for, and what was found."""
        layout = self.layout
        layout.use_property_split = True
        for name in ("frame_start", "frame_end", "speed", "height", "release", "shortest"):
            layout.prop(self, name)
        for name in ("ground", "walk_on", "markers"):
            layout.prop(self, name)
        redo_lines.draw(layout, self.found)

    def find(self, context: bpy.types.Context, rig: bpy.types.Object, names: list[str]) -> Contacts:
        """Look for contacts; nothing changes."""
        scene = context.scene
        if not self.properties.is_property_set("frame_start"):
            self.frame_start = scene.frame_preview_start if scene.use_preview_range else scene.frame_start
        if not self.properties.is_property_set("frame_end"):
            self.frame_end = scene.frame_preview_end if scene.use_preview_range else scene.frame_end
        thresholds = ContactThresholds(self.speed, self.height, self.release, self.shortest)
        return contact_search.find_contacts(scene, rig, names, self.frames, thresholds, self.ground)

    def keep(self, context: bpy.types.Context, rig: bpy.types.Object, contacts: Contacts) -> None:
        """Key and mark contacts, and say what was found."""
        contact_search.key_contacts(rig, contacts, self.frames)
        if self.markers:
            contact_search.mark_contacts(context.scene, contacts, self.frames)
        lines = list(contacts.words())
        if contacts.ground_moves and self.walk_on and rig.ccd_rig.body != body.WALK_ON:
            rig.ccd_rig.body = body.WALK_ON
            lines.append("Body is set to Walk On")
        self.found = "\n".join(lines)
        for line in lines:
            tell(self, {"INFO"}, line)
        missed = [name for name, phases in contacts.phases.items() if not phases]
        if missed:
            tell(
                self,
                {"WARNING"},
                f"{', '.join(missed)}: never down, so not planted; raise Speed or Height, or for quick steps "
                "lower Shortest",
            )

    @property
    def frames(self) -> range:
        return range(self.frame_start, self.frame_end + 1)
