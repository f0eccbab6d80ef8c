# SPDX-License-Identifier: GPL-3.0-or-later
"""Set-up of a rig: as a recognised figure, from Blender's IK, or from a file."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import bpy
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ..ccd_rig.blender.figures.choices import RANGES, Choices, Group, Ranges
from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.names import named
from ..ccd_rig.blender.registration import HIDDEN, LAST, ONCE
from ..ccd_rig.errors import RigError
from . import command
from .command import Command, Dialog, JsonFile, draw_lines, selected_bones
from .constraints import apply_choices, copy_changed, new_rig_choices

OF_GROUPS = {"turn_hands": Group.HANDS, "plant": Group.FEET}
"""Options that mean nothing to a figure without such a group."""


CONFIRM = 0.4 if sys.platform == "win32" else 0.9
"""Place of the pointer in a new dialog, from its left edge, as a part of its width: on its button OK.

Blender has OK at the right except on Windows (wm_block_dialog_create)."""
TALL = 700  # height of a window, at interface scale 1, that has room for a dialog with a long list [pixels]


class CCD_RIG_PG_figure_role(bpy.types.PropertyGroup):
    role: LAST.text(
        "Role",
        "What this bone is to the figure, such as left hand, spine 2, or 3rd left leg, bone 2; "
        "empty for nothing",
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


class CCD_RIG_OT_figure_set_up(Command, bpy.types.Operator):
    bl_label = "Set Up Figure"
    bl_description = (
        "Recognise hands, feet, head, hips, tail, trunk and wings by the names of bones or by how they lie "
        "at rest, and give each a target. If names do not tell all roles, a dialog lists them first, so that "
        "they can be changed. Generated Rigify rigs are moved by their FK controls"
    )

    hands: ONCE.boolean("Hands", "A target for each hand", default=True)
    feet: ONCE.boolean(
        "Feet",
        "A target for each foot, which also turns it where it has a sole",
        default=True,
        translation_context=CONTEXT,
    )
    head: ONCE.boolean(
        "Head",
        "A target for the head, which spine and neck follow",
        default=True,
        translation_context=CONTEXT,
    )
    hips: ONCE.boolean(
        "Hips",
        "A target for the bone that carries the figure: it shifts and turns with it. Left out where "
        "that bone is animated",
        default=True,
    )
    tail: ONCE.boolean("Tail", "A target for the end of the tail", default=True, translation_context=CONTEXT)
    trunk: ONCE.boolean("Trunk", "A target for the end of an elephant's trunk", default=True)
    wings: ONCE.boolean("Wings", "A target for the end of each wing or fin", default=True)
    poles: ONCE.of(Choices, "poles")
    turn_hands: ONCE.of(Choices, "turn_hands")
    ranges: ONCE.of(Choices, "ranges", name="Joints", items=RANGES)
    plant: ONCE.of(Choices, "plant", name="Plant Feet")
    control_bones: ONCE.of(Choices, "control_bones")
    follow_motion: ONCE.of(Choices, "follow_motion")
    roles: ONCE.rows(
        "Roles",
        "Roles of bones instead of those that are recognised, as a name and a role each",
        type=CCD_RIG_PG_figure_role,
    )
    active_role: HIDDEN.integer("Selected Role", "The row of the list of roles that is selected")
    figure: HIDDEN.text("", "Name of the armature object whose bones are listed")
    recognised: tuple[str, ...] = ()  # groups of the figure
    listed: Mapping[str, str] = {}  # {bone: recognised role}; roles that differ from it are the user's
    messages = ""  # a line each
    asks = False  # whether the dialog is open, before anything is made

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        from ..ccd_rig.blender import set_up

        choices = new_rig_choices(context)
        if choices is not None:
            copy_changed(choices.figure, self.properties)
        rig = active_rig(context)
        guess = set_up.guess(rig)
        if bpy.app.background or not guess.unsure:
            return self.execute(context)
        self.recognised, self.messages, self.asks = tuple(guess.groups), guess.words(), True
        self._list({name: (role, role) for name, role in guess.roles.items()}, rig)
        self.check(context)
        place = None if context.area is None else _beside(context, rig)
        return self.ask(context) if place is None else self.ask_at(context, event, place)

    def check(self, context: bpy.types.Context) -> bool:
        """Show the present roles of the dialog in the viewport, and boxes of their parts, at each change."""
        from ..ccd_rig.blender import set_up
        from ..ccd_rig.blender.figures.role_words import in_english
        from ..ccd_rig.blender.viewport.sketch import dialog_roles

        if self.asks:
            dialog_roles[self.figure] = {item.name: in_english(item.role) for item in self.roles}
            with suppress(RigError):  # a role that is none yet: boxes stay, and OK says what is wrong
                changes = _changed(self.roles, self.listed)
                self.recognised = set_up.groups_with(active_rig(context), changes)
            command.redraw_views(context)
        return True

    def cancel(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.viewport.sketch import dialog_roles

        dialog_roles.pop(self.figure, None)
        command.redraw_views(context)

    def _list(self, roles: Mapping[str, tuple[str, str]], rig: bpy.types.Object) -> None:
        """List roles in the interface's language, each beside the recognised one."""
        from ..ccd_rig.blender.figures.role_words import in_language

        self.roles.clear()
        self.figure = rig.name
        self.listed = {name: in_language(recognised) for name, (_, recognised) in roles.items()}
        for name, (role, _) in roles.items():
            item = self.roles.add()
            item.name, item.role = name, in_language(role)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import set_up
        from ..ccd_rig.blender.viewport.sketch import dialog_roles, left_roles

        rig = active_rig(context)
        dialog_roles.pop(rig.name, None)
        left_roles.discard(rig.name)
        command.redraw_views(context)
        self.asks = False
        chosen = [group for group in Group if getattr(self, group)]
        before: set[str] = set(rig.ccd_rig.constraints.keys())
        choices = Choices(
            chosen,
            self.poles,
            self.turn_hands,
            Ranges(self.ranges),
            self.plant,
            roles=_changed(self.roles, self.listed),
            control_bones=self.control_bones,
        )
        result = set_up.set_up(context, rig, choices)
        apply_choices(context, rig, before)
        self._list(result.roles, rig)
        if self.follow_motion:
            set_up.follow(context, rig, result)
        self.recognised = tuple(result.available)
        self.messages = "\n".join([result.words(), *result.messages()])
        self.tell("INFO", result.words())
        if result.following:
            self.tell("INFO", result.following)
        for note in result.notes:
            self.tell("WARNING", note)

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        if self.asks:
            self._draw_roles(layout, context)
        boxes = layout.column(heading="Set Up")
        for group in self.recognised:
            boxes.prop(self, group)
        for name in ("poles", "turn_hands", "ranges", "plant", "control_bones", "follow_motion"):
            if name not in OF_GROUPS or OF_GROUPS[name] in self.recognised:
                boxes.prop(self, name)
        if not self.asks:
            self._draw_roles(layout, context)

    def _draw_roles(self, layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
        layout.label(text="Roles")
        window = context.window
        is_tall = window is None or window.height >= TALL * context.preferences.system.ui_scale
        rows = 10 if self.asks and is_tall else 6
        layout.template_list("CCD_RIG_UL_figure_roles", "", self, "roles", self, "active_role", rows=rows)
        draw_lines(layout, context, self.messages)


def _changed(roles: Iterable[Any], listed: Mapping[str, str]) -> dict[str, str]:
    """Roles in a list that are not the recognised ones, by bone, in English."""
    from ..ccd_rig.blender.figures.role_words import in_english

    return {item.name: in_english(item.role) for item in roles if item.role != listed.get(item.name)}


def _beside(context: bpy.types.Context, rig: bpy.types.Object) -> tuple[int, int] | None:
    """Place for a dialog at the side of a 3D view that has more room beside a figure; None elsewhere."""
    from ..ccd_rig.blender.viewport.constraints import places_on_screen

    area: Any = context.area
    region = next((each for each in area.regions if each.type == "WINDOW"), None)
    if area.type != "VIEW_3D" or region is None:
        return None
    points = [rig.matrix_world @ bone.head for bone in rig.pose.bones]
    view = area.spaces.active.region_3d.perspective_matrix
    across = places_on_screen(points, view, (region.width, region.height))[:, 0]
    shown = across[(across >= 0.0) & (across <= region.width)]
    width = command.DIALOG * context.preferences.system.ui_scale
    is_left = not len(shown) or shown.min() > region.width - shown.max()
    edge = region.x if is_left else region.x + region.width - width
    return round(edge + CONFIRM * width), region.y + region.height // 2


class CCD_RIG_OT_ik_convert(Dialog, bpy.types.Operator):
    bl_label = "Convert IK"
    bl_description = (
        "Make CCD constraints from Blender's IK, Damped Track and Spline IK constraints, with their poles, "
        "influence, keys and drivers. The originals are muted; Restore IK is the way back"
    )

    only_selected: ONCE.boolean("Only Selected Bones", "Convert constraints of selected bones alone")
    every: LAST.integer(
        "Spline Every",
        "How many bones of a Spline IK share a target on its curve",
        default=3,
        min=1,
        soft_max=20,
    )
    limits: ONCE.boolean(
        "IK Limits",
        "Give bones of the chains the limits, locks and stiffness of Blender's IK, where they have none here",
        default=True,
    )
    fields = ("only_selected", "every", "limits")

    @staticmethod
    @command.after(command.no_armature)
    def why_grey(context: bpy.types.Context) -> str:
        from ..ccd_rig.blender import convert

        if next(convert.candidates(active_rig(context)), None) is not None:
            return ""
        return f"No IK, Damped Track or Spline IK constraint of '{active_rig(context).name}' is on"

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import convert

        rig = active_rig(context)
        bones = selected_bones(context, rig) if self.only_selected else None
        before: set[str] = set(rig.ccd_rig.constraints.keys())
        result = convert.convert(context, rig, bones, self.every, self.limits)
        apply_choices(context, rig, before)
        self.messages = "\n".join(result.notes)
        originals = f"{result.originals} constraint{'' if result.originals == 1 else 's'}"
        words = f"Converted {originals} of Blender, muted now: {', '.join(result.rows)}"
        self.tell_done(words, result.notes)


class CCD_RIG_OT_ik_restore(Command, bpy.types.Operator):
    bl_label = "Restore IK"
    bl_description = (
        "Remove the CCD constraints that Convert IK has made, with the targets made for them, and let "
        "Blender's own constraints act again"
    )

    only_selected: ONCE.boolean("Only Selected Bones", "Restore constraints of selected bones alone")

    @staticmethod
    @command.after(command.no_armature)
    def why_grey(context: bpy.types.Context) -> str:
        from ..ccd_rig.blender import convert

        if next(convert.converted(active_rig(context)), None) is not None:
            return ""
        return f"No CCD constraint of '{active_rig(context).name}' comes from Convert IK"

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import convert

        rig = active_rig(context)
        bones = selected_bones(context, rig) if self.only_selected else None
        result = convert.restore(rig, bones)
        count = f"{result.originals} constraint{'' if result.originals == 1 else 's'}"
        self.tell("INFO", f"Restored {count} of Blender; removed {', '.join(result.rows)}")
        for name in result.kept:
            self.tell("WARNING", f"Constraint '{name}' stays: Blender's own behind it is gone or renamed")
        if result.actions:
            self.tell("WARNING", constraint_list.order_kept_in(result.actions))


class CCD_RIG_OT_setup_save(JsonFile, bpy.types.Operator, ExportHelper):
    bl_label = "Save Set-Up"
    bl_description = (
        "Write all constraints, limits and solver settings of the armature to a JSON file, for this rig "
        "generated anew and for others"
    )
    bl_options = {"REGISTER"}

    def invoke(self: Any, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if not self.filepath:
            name = f"{bpy.path.clean_name(active_rig(context).name)}{self.filename_ext}"
            self.filepath = str(Path(bpy.data.filepath).parent / name) if bpy.data.filepath else name
        helper: Any = ExportHelper  # its types differ between versions
        answer: set[str] = helper.invoke(self, context, event)
        return answer

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import setup_files

        owner = active_rig(context)
        setup = setup_files.with_roles(owner, setup_files.setup_of(owner))
        setup_files.save(self.path, setup)
        bones = [bone for bone in setup.bones.values() if bone.joint is not None]
        counts = {"bone": len(bones), "constraint": len(setup.constraints)}
        words = " and ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())
        self.tell("INFO", f"Wrote {words} to {self.path}")
        if driven := setup_files.driven(owner):
            where = f"The driver of Influence of {named(driven)}"
            self.tell("WARNING", f"{where} is not in the file: make it anew on the other rig")
        for setting, names in setup_files.left_out(owner).items():
            where = f"What moves '{setting}' of {named(names)}, keys or a driver,"
            self.tell("WARNING", f"{where} is not in the file: make it anew on the other rig")


class CCD_RIG_OT_setup_load(JsonFile, bpy.types.Operator, ImportHelper):
    bl_label = "Load Set-Up"
    bl_description = (
        "Give the armature the constraints, limits and solver settings of a JSON file. Bones are found by "
        "name, else by the part of the body that they are; constraints of the same name are replaced"
    )

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import setup_files

        applied = setup_files.apply(active_rig(context), setup_files.load(self.path))
        self.tell_done(applied.words(), applied.warnings())


class CCD_RIG_OT_setup_restore(Command, bpy.types.Operator):
    bl_label = "Restore Set-Up from Metarig"
    bl_description = (
        "Bring back the constraints and limits that a rig generated by Rigify had when it was last generated "
        "anew or saved: its metarig keeps them"
    )

    @staticmethod
    @command.after(command.no_armature)
    def why_grey(context: bpy.types.Context) -> str:
        from ..ccd_rig.blender.figures.rigify import is_generated

        if is_generated(active_rig(context).data):
            return ""
        return f"'{active_rig(context).name}' was not generated by Rigify"

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import setup_files

        applied = setup_files.restore(active_rig(context))
        self.tell_done(applied.words(), applied.warnings())
