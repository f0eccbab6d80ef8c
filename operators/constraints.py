# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints: add for selected bones, move in the list, change the kind, remove."""

from collections.abc import Sequence
from typing import Any

import bpy
from mathutils import Vector

from .. import __package__ as ROOT  # noqa: N812  (Blender's name of the extension)
from ..ccd_rig.blender.figures import control_bones
from ..ccd_rig.blender.properties import constraint_list, joints, new_rows, new_targets, overrides
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_group import KIND_ITEMS
from ..ccd_rig.blender.properties.constraint_kinds import KINDS, set_kind
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.blender.registration import HIDDEN, LAST, ONCE
from ..ccd_rig.blender.rig import armature
from ..ccd_rig.blender.scene import dependence
from ..ccd_rig.errors import RigError
from . import command
from .command import Command, selected_bones

SELECTED = (
    ("EACH", "Each Reaches", "Each selected bone gets a constraint and a target of its own"),
    ("TARGET", "Other Is Target", "The active bone reaches for the other selected bone"),
)


class CCD_RIG_OT_constraint_add(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_add"
    bl_label = "Add CCD Constraint"
    bl_description = (
        "Let each selected bone reach for a target of its own: a new empty or control bone, or one other "
        "selected object or bone of another armature"
    )

    kind: ONCE.enum("Kind", "What the constraint is about", items=KIND_ITEMS)
    selected: ONCE.enum("Selected Bones", "What several selected bones of one armature are", items=SELECTED)
    chain_length: ONCE.integer(
        "Chain Length",
        "How many bones may turn, counted from the active one, locked ones too; 0 goes up to the "
        "root. At first up to the bone that also carries other limbs, for each bone its own",
        min=0,
        soft_max=255,
    )
    suits: HIDDEN.text("", "Kind that the chain length was chosen for")
    suited: HIDDEN.integer("", "Chain length that was chosen for the active bone", default=-1)
    target_empty: ONCE.boolean(
        "New Target",
        "Where nothing else is selected, make an empty or a control bone as the target: at the "
        "bone's end, or for balance at the centre of mass. A planted bone needs none",
        default=True,
    )
    control_bones: ONCE.boolean(
        "Control Bones",
        "Where a target is made, make it as a bone of the armature instead of an empty",
        default=False,
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        reason = command.no_armature(context)
        if not reason and context.mode != "POSE":
            reason = "Go to Pose Mode and select the bone to move"
        if not reason and context.active_pose_bone is None:
            reason = "Select the bone to move"
        return reason

    def run(self, context: bpy.types.Context) -> None:
        rig, kind = context.object, KINDS[self.kind]
        length = self._chosen_length(context)
        tips = _tips(context, kind, self.selected)
        rows, in_chains = new_rows.new_rows(rig, tips, kind, length)
        target, target_bone = _selected_target(context, rows, self.selected)
        makes = target is None and self.target_empty and kind.needs_target
        if makes and self.control_bones:
            control_bones.require_editable(context, rig)
        before: set[str] = set(rig.ccd_rig.constraints.keys())
        names = []
        for row in rows:
            added = constraint_list.add(rig, row.tip, row.tip)
            added.kind, added.chain_length, added.use_tail = kind, row.chain_length, row.use_tail
            added.target, added.target_bone = target, target_bone
            names.append(added.name)
        if makes:
            targets = [_new_target(context, row, kind.balances) for row in rows]
            created = new_targets.make_targets(context, rig, targets, self.control_bones)
            for name, new_target in zip(names, created, strict=True):
                added = rig.ccd_rig.constraints[name]
                added.target, added.target_bone = new_target
        apply_choices(context, rig, before)
        if kind.reaches:
            for words in new_rows.words(rig, rows, in_chains):
                self.tell("INFO", words)

    def _chosen_length(self, context: bpy.types.Context) -> int | None:
        """Chain length that the user has set; None: the suitable one of each bone.

        The redo panel shows the suitable length of the active bone until the kind is changed.
        """
        if self.suits != self.kind and (self.suits or not self.properties.is_property_set("chain_length")):
            tip = context.active_pose_bone.name
            self.suited = self.chain_length = KINDS[self.kind].chain_length(context.object, tip)
        self.suits = self.kind
        return None if self.chain_length == self.suited else int(self.chain_length)


def _tips(context: bpy.types.Context, kind: Kind, selected: str) -> list[str]:
    """Names of the bones that get a constraint, the active bone last: the last constraint becomes active."""
    active = context.active_pose_bone.name
    if kind.balances or selected == "TARGET":
        return [active]
    return [
        *(bone for bone in selected_bones(context, context.object) if bone != active),
        active,
    ]


def _selected_target(
    context: bpy.types.Context, rows: Sequence[new_rows.NewRow], selected: str
) -> tuple[bpy.types.Object | None, str]:
    """Return the other selected object or bone as (object, bone name); (None, "") without one.

    Objects that follow the armature do not count, such as its skin, which importers select.

    Raises:
        RigError: there are several candidates, or one for several bones, or it moves with the chain.
    """
    owner, tip = context.object, context.active_pose_bone
    bones = [
        bone
        for bone in context.selected_pose_bones
        if bone != tip and (bone.id_data != owner or selected == "TARGET")
    ]
    posed = {owner, *(bone.id_data for bone in context.selected_pose_bones), *context.objects_in_mode}
    objects = [
        selection
        for selection in context.selected_objects
        if selection not in posed and not dependence.follows(selection, owner)
    ]
    names = ", ".join(f"'{each.name}'" for each in (*bones, *objects))
    if len(bones) + len(objects) > 1:
        raise RigError(
            f"More than one target is selected ({names}): select the target first, then the bone to move"
        )
    if names and len(rows) > 1:
        tips = ", ".join(f"'{row.tip}'" for row in rows)
        raise RigError(f"{names} can be the target of one bone, not of {tips}: select it and one of them")
    if objects:
        return objects[0], ""
    if not bones:
        return None, ""
    chain = {bone.name for bone in constraint_list.chain(owner, rows[0].tip, rows[0].chain_length)}
    below = {bone.name for bone in (bones[0], *bones[0].parent_recursive)}
    if bones[0].id_data == owner and chain & below:
        raise RigError(
            f"Bone '{bones[0].name}' moves with the chain of '{tip.name}', so it cannot be its target: "
            "select another bone, or shorten the chain"
        )
    target: Any = bones[0].id_data  # the armature object
    return target, bones[0].name


def _new_target(context: bpy.types.Context, row: new_rows.NewRow, balances: bool) -> new_targets.NewTarget:
    """Describe a target at the evaluated end of a bone, or at the centre of mass."""
    owner = context.object
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    tip = evaluated.pose.bones[row.tip]
    point = tip.tail if row.use_tail else tip.head
    masses = joints.masses(owner) if balances else {}
    if masses:
        bones = [(mass, evaluated.pose.bones[name]) for name, mass in masses.items()]
        middles = [mass * armature.mass_middle(bone) for mass, bone in bones]
        point = sum(middles, Vector()) / sum(masses.values())
    # The bone's name comes last: its ending (.L, .R) stays an ending.
    return new_targets.NewTarget(f"Target {row.tip}", row.tip, evaluated.matrix_world @ point)


def new_rig_choices(context: bpy.types.Context) -> Any:
    """Preferences for new rigs; None in a Blender that runs the extension without having it enabled."""
    addon = context.preferences.addons.get(ROOT)
    return None if addon is None else addon.preferences.new_rigs


def apply_choices(context: bpy.types.Context, rig: bpy.types.Object, before: set[str]) -> None:
    """Apply the changed preferences for new rigs to new constraints, and to a rig that had none before.

    Args:
        context: has the preferences.
        rig: the rig with new constraints.
        before: names of the constraints that it had.
    """
    choices = new_rig_choices(context)
    if choices is None:
        return
    new = [row for row in rig.ccd_rig.constraints if row.name not in before]
    if choices.is_property_set("max_extension"):
        for row in new:
            row.max_extension = choices.max_extension
    if new and not before:
        for group in ("bake", "solver"):
            copy_changed(getattr(choices, group), getattr(rig.ccd_rig, group))
    overrides.keep(rig)


def copy_changed(source: Any, target: Any) -> None:
    """Copy properties that are set in one group to another that has them, unless they are set there."""
    names = [prop.identifier for prop in source.bl_rna.properties if not prop.is_readonly]
    for name in names:
        if source.is_property_set(name) and not target.is_property_set(name):
            setattr(target, name, getattr(source, name))


class CCD_RIG_OT_constraint_remove(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_remove"
    bl_label = "Remove CCD Constraint"
    bl_description = "Remove the active constraint; its bones and its target stay as they are"

    with_target: ONCE.boolean(
        "Remove Target Too",
        "Remove its target and pole as well, if they were made for it and nothing else uses them",
        default=False,
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        reason = command.no_active_constraint(context)
        if not reason and constraint_list.is_from_library(
            active_rig(context), active_rig(context).ccd_rig.active_index
        ):
            reason = "This constraint comes from the library's file: disable it here, or remove it there"
        return reason

    def run(self, context: bpy.types.Context) -> None:
        rig = active_rig(context)
        targets = new_targets.of_row(constraint_list.active(rig))
        created = [row for row in targets if row.bone and control_bones.is_made(row.thing, row.bone)]
        if self.with_target and created:
            control_bones.require_editable(context, created[0].thing)
        constraint_list.remove(rig, rig.ccd_rig.active_index)
        for row in targets:  # the pole first: it may be a child of the target
            if not new_targets.is_left_over(row):
                continue
            if not self.with_target:
                target = row.bone or row.thing.name
                self.tell("INFO", f"Its target '{target}' stays: see Remove Target Too")
            elif row.bone:
                control_bones.remove(context, row.thing, [row.bone])
            else:
                new_targets.remove_empty(row.thing)


class CCD_RIG_OT_constraint_move(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_move"
    bl_label = "Move CCD Constraint"
    bl_description = "Move the active constraint up or down in the list"

    direction: ONCE.enum(
        "Direction",
        "Where the constraint goes in the list",
        items=(("UP", "Up", "Towards the top"), ("DOWN", "Down", "Towards the bottom")),
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        reason = command.no_constraint(context)
        if not reason and len(active_rig(context).ccd_rig.constraints) < 2:
            reason = "There is only one constraint"
        if not reason and constraint_list.active(active_rig(context)) is None:
            reason = "Choose a constraint in the list"
        return reason

    def run(self, context: bpy.types.Context) -> set[str] | None:
        index = active_rig(context).ccd_rig.active_index
        new_index = index + (1 if self.direction == "DOWN" else -1)
        if not 0 <= new_index < len(active_rig(context).ccd_rig.constraints):
            return {"CANCELLED"}  # at the end of the list, as Blender's lists do
        constraint_list.move(active_rig(context), index, new_index)
        return None


class CCD_RIG_OT_constraint_kind(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_kind"
    bl_label = "Kind of CCD Constraint"
    bl_description = (
        "Change what the constraint is about. Its chain then goes up to the bone that suits the kind; a bone "
        "that becomes planted is held where it is, without a target"
    )

    kind: LAST.enum("Kind", "What the constraint is about", items=KIND_ITEMS)

    why_grey = staticmethod(command.no_active_constraint)

    def run(self, context: bpy.types.Context) -> None:
        constraint = constraint_list.active(active_rig(context))
        target = constraint.target
        set_kind(constraint, KINDS[self.kind])
        chain = constraint_list.chain(active_rig(context), constraint.tip, constraint.chain_length)
        if chain:
            cleared = (
                "" if target is None or constraint.target else f"; its target '{target.name}' is cleared"
            )
            words = f"Constraint '{constraint.name}': its chain goes up to '{chain[-1].name}'{cleared}"
            self.tell("INFO", words)
