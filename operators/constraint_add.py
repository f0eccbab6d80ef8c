# SPDX-License-Identifier: GPL-3.0-or-later
"""Add a constraint for each selected bone."""

from collections.abc import Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from mathutils import Vector

from ..ccd_rig.blender.figures import control_bones
from ..ccd_rig.blender.properties import constraint_list, joints, new_rows, new_targets
from ..ccd_rig.blender.properties.constraint_group import KINDS
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.blender.scene import dependence
from ..ccd_rig.errors import CCDRigError, RigError
from . import new_rigs, poll_reasons
from .telling import tell

SELECTED = (
    ("EACH", "Each Reaches", "Each selected bone gets a constraint and a target of its own"),
    ("TARGET", "Other Is Target", "The active bone reaches for the other selected bone"),
)


class CCD_RIG_OT_constraint_add(bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_add"
    bl_label = "Add CCD Constraint"
    bl_description = (
        "Let each selected bone reach for a target of its own: a new empty or control bone, or one other "
        "selected object or bone of another armature"
    )
    bl_options = {"REGISTER", "UNDO"}

    kind: EnumProperty(
        name="Kind", description="What the constraint is about", items=KINDS, options={"SKIP_SAVE"}
    )
    selected: EnumProperty(
        name="Selected Bones",
        description="What several selected bones of one armature are",
        items=SELECTED,
        options={"SKIP_SAVE"},
    )
    chain_length: IntProperty(
        name="Chain Length",
        description="How many bones may turn, counted from the active one, locked ones too; 0 goes up to the "
        "root. At first up to the bone that also carries other limbs, for each bone its own",
        min=0,
        soft_max=255,
        options={"SKIP_SAVE"},
    )
    suits: StringProperty(
        description="Kind that the chain length was chosen for", options={"HIDDEN", "SKIP_SAVE"}
    )
    suited: IntProperty(
        description="Chain length that was chosen for the active bone",
        default=-1,
        options={"HIDDEN", "SKIP_SAVE"},
    )
    target_empty: BoolProperty(
        name="New Target",
        description="Where nothing else is selected, make an empty or a control bone as the target: at the "
        "bone's end, or for balance at the centre of mass. A planted bone needs none",
        default=True,
        options={"SKIP_SAVE"},
    )
    control_bones: BoolProperty(
        name="Control Bones",
        description="Where a target is made, make it as a bone of the armature instead of an empty",
        default=False,
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = poll_reasons.no_armature(context)
        if not reason and context.mode != "POSE":
            reason = "Go to Pose Mode and select the bone to move"
        if not reason and context.active_pose_bone is None:
            reason = "Select the bone to move"
        return poll_reasons.poll(cls, reason)

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig, kind = context.object, Kind(self.kind)
        length = self._asked_length(context)
        tips = _tips(context, kind, self.selected)
        rows, in_chains = new_rows.new_rows(rig, tips, kind, length)
        try:
            found = _selected_target(context, rows, self.selected)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        target, target_bone = found
        makes = target is None and self.target_empty and kind != Kind.PLANT
        if makes and self.control_bones:
            try:
                control_bones.require_editable(context, rig)
            except CCDRigError as error:
                tell(self, {"ERROR"}, str(error))
                return {"CANCELLED"}
        before, names = new_rigs.names(rig), []
        for row in rows:
            added = constraint_list.add(rig, row.tip, row.tip)
            added.kind, added.chain_length, added.use_tail = kind, row.chain_length, row.use_tail
            added.target, added.target_bone = target, target_bone
            names.append(added.name)
        if makes:
            wanted = [_new_target(context, row, kind == Kind.BALANCE) for row in rows]
            made = new_targets.make_targets(context, rig, wanted, self.control_bones)
            for name, new in zip(names, made, strict=True):
                added = rig.ccd_rig.constraints[name]
                added.target, added.target_bone = new
        new_rigs.give(context, rig, before)
        if kind is Kind.REACH:
            for words in new_rows.words(rig, rows, in_chains):
                tell(self, {"INFO"}, words)
        return {"FINISHED"}

    def _asked_length(self, context: bpy.types.Context) -> int | None:
        """The chain length that the user has asked for; None: what suits each bone.

        The redo panel shows what was chosen for the active bone; it stays until the kind is another.
        """
        if self.suits != self.kind and (self.suits or not self.properties.is_property_set("chain_length")):
            lengths = constraint_list.CHAIN_LENGTHS[Kind(self.kind)]
            self.suited = self.chain_length = lengths(context.object, context.active_pose_bone.name)
        self.suits = self.kind
        return None if self.chain_length == self.suited else int(self.chain_length)


def _tips(context: bpy.types.Context, kind: Kind, selected: str) -> list[str]:
    """Names of the bones that get a constraint, the active one last: it is shown then."""
    active = context.active_pose_bone.name
    if kind is Kind.BALANCE or selected == "TARGET":
        return [active]
    return [
        *(bone for bone in poll_reasons.selected_bones(context, context.object) if bone != active),
        active,
    ]


def _selected_target(
    context: bpy.types.Context, rows: Sequence[new_rows.NewRow], selected: str
) -> tuple[bpy.types.Object | None, str]:
    """The other selected object or bone: (object, bone name), (None, "") if nothing else is selected.

    What follows the armature, such as its skin after an import, is none.

    Raises:
        RigError: there are several, or one for several bones, or it moves with the chain.
    """
    owner, tip = context.object, context.active_pose_bone
    bones = [
        bone
        for bone in context.selected_pose_bones
        if bone != tip and (bone.id_data != owner or selected == "TARGET")
    ]
    posed = {owner, *(bone.id_data for bone in context.selected_pose_bones), *context.objects_in_mode}
    objects = [
        each for each in context.selected_objects if each not in posed and not dependence.follows(each, owner)
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
    posed_by: Any = bones[0].id_data  # an armature object: only that has pose bones
    return posed_by, bones[0].name


def _new_target(context: bpy.types.Context, row: new_rows.NewRow, balances: bool) -> new_targets.NewTarget:
    """A target at the evaluated end of a bone, or at the centre of mass."""
    owner = context.object
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    tip = evaluated.pose.bones[row.tip]
    point = tip.tail if row.use_tail else tip.head
    masses = joints.masses(owner) if balances else {}
    if masses:
        bones = [(mass, evaluated.pose.bones[name]) for name, mass in masses.items()]
        middles = [mass * 0.5 * (bone.head + bone.tail) for mass, bone in bones]
        point = sum(middles, Vector()) / sum(masses.values())
    # The bone's name comes last: its ending (.L, .R) stays an ending.
    return new_targets.NewTarget(f"Target {row.tip}", row.tip, evaluated.matrix_world @ point)
