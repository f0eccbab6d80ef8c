# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a whole figure under control."""

from collections.abc import Mapping
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, IntProperty, StringProperty

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.set_up import build, motion
from ..ccd_rig.blender.set_up.made import RANGES, Choices, Made, Ranges
from ..ccd_rig.blender.set_up.planned_rows import Group
from ..ccd_rig.errors import CCDRigError
from . import new_rigs, poll_reasons, redo_lines
from .telling import tell


def _box(name: str, description: str, default: bool = True) -> Any:
    return BoolProperty(name=name, description=description, default=default, options={"SKIP_SAVE"})


class CCD_RIG_PG_figure_role(bpy.types.PropertyGroup):
    role: StringProperty(
        name="Role",
        description="What this bone is to the figure, such as left hand, spine 2, or left leg 3:1 for the "
        "first bone of the third leg; empty for nothing",
    )


class CCD_RIG_UL_figure_roles(bpy.types.UIList):
    def draw_item(
        self,
        _context: bpy.types.Context,
        layout: bpy.types.UILayout,
        _data: Any,
        item: Any,
        _icon: int,
        _active_data: Any,
        _active_property: str,
        _index: int = 0,
        _flags: int = 0,
    ) -> None:
        row = layout.split(factor=0.5)
        row.label(text=item.name, translate=False)
        row.prop(item, "role", text="", emboss=False)


class CCD_RIG_OT_figure_set_up(bpy.types.Operator):
    bl_idname = "ccd_rig.figure_set_up"
    bl_label = "Set Up Figure"
    bl_description = (
        "Recognise hands, feet, head, hips, tail and wings by the names of bones or by how they lie at rest, "
        "and give each a target. Generated Rigify rigs are moved by their FK controls"
    )
    bl_options = {"REGISTER", "UNDO"}

    hands: _box("Hands", "A target for each hand")
    feet: _box("Feet", "A target for each foot, which also turns it where it has a sole")
    head: _box("Head", "A target for the head, which spine and neck follow")
    hips: _box(
        "Hips",
        "A target for the bone that carries the figure: it shifts and turns with it. Left out where "
        "that bone is animated",
    )
    tail: _box("Tail", "A target for the end of the tail")
    wings: _box("Wings", "A target for the end of each wing or fin")
    poles: _box(
        "Poles",
        "Objects that knees and elbows point at, where they bend to now; without it limbs that are straight "
        "get them, since nothing else tells their side",
        Choices.poles,
    )
    turn_hands: _box(
        "Turn Hands",
        "Hands turn as their targets do; else they stay as they are on their forearms",
        Choices.turn_hands,
    )
    ranges: EnumProperty(
        name="Joints",
        description="What joints of its chains that have no range yet get of the preset for such a figure",
        items=RANGES,
        default=Choices.ranges,
        options={"SKIP_SAVE"},
    )
    plant: _box(
        "Plant Feet",
        "Hold feet where they are in the world and let hips follow, instead of targets for feet",
        default=False,
    )
    control_bones: _box(
        "Control Bones",
        "Make targets and poles as bones of the armature, with a bone collection and shapes of their own, "
        "instead of empties",
        Choices.control_bones,
    )
    follow_motion: _box(
        "Follow Motion",
        "Where the figure is animated, key targets along its motion over the scene's range: a bake "
        "then leaves it as it is until a target is moved",
        default=Choices.follow_motion,
    )
    roles: CollectionProperty(
        type=CCD_RIG_PG_figure_role,
        name="Roles",
        description="Roles of bones instead of those that are recognised, as a name and a role each",
        options={"SKIP_SAVE"},
    )
    active_role: IntProperty(
        name="Selected Role",
        description="The row of the list of roles that is selected",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    figure: StringProperty(
        description="Name of the armature object whose bones are listed", options={"HIDDEN", "SKIP_SAVE"}
    )
    recognised: tuple[str, ...] = ()  # groups that the figure has
    listed: Mapping[str, str] = {}  # by bone, the recognised role: what differs from it is a change
    told = ""  # what was made, a line each

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        wanted = new_rigs.chosen(context)
        if wanted is not None:
            new_rigs.copy(wanted.figure, self.properties)
        return self.execute(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        chosen = [group for group in Group if getattr(self, group)]
        before = new_rigs.names(rig)
        try:
            choices = Choices(
                chosen,
                self.poles,
                self.turn_hands,
                Ranges(self.ranges),
                self.plant,
                roles={
                    item.name: item.role for item in self.roles if item.role != self.listed.get(item.name)
                },
                control_bones=self.control_bones,
            )
            made = build.set_up(context, rig, choices)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        new_rigs.give(context, rig, before)
        self.roles.clear()
        self.figure = rig.name
        self.listed = {name: recognised for name, (_, recognised) in made.roles.items()}
        for name, (role, _) in made.roles.items():
            item = self.roles.add()
            item.name, item.role = name, role
        if self.follow_motion:
            motion.follow(context, rig, made)
        self.recognised = tuple(made.available)
        self.told = "\n".join([made.words(), *made.notes])
        tell(self, {"INFO"}, made.words())
        for note in made.notes:
            tell(self, {"WARNING"}, note)
        return {"FINISHED"}

    def draw(self, _context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        boxes = layout.column(heading="Set Up")
        for group in self.recognised:
            boxes.prop(self, group)
        boxes.prop(self, "poles")
        boxes.prop(self, "turn_hands")
        boxes.prop(self, "ranges")
        boxes.prop(self, "plant")
        boxes.prop(self, "control_bones")
        boxes.prop(self, "follow_motion")
        layout.label(text="Roles")
        layout.template_list("CCD_RIG_UL_figure_roles", "", self, "roles", self, "active_role", rows=6)
        redo_lines.draw(layout, self.told)
