# SPDX-License-Identifier: GPL-3.0-or-later
"""Add a constraint for the active bone."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from mathutils import Vector

from ..ccd_rig.blender.properties import constraint_list, joints
from ..ccd_rig.blender.properties.constraint_group import KINDS
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.blender.properties.new_targets import new_target
from ..ccd_rig.errors import CCDRigError, RigError
from . import poll_reasons


class CCD_RIG_OT_constraint_add(bpy.types.Operator):
    bl_idname = "ccd_rig.constraint_add"
    bl_label = "Add CCD Constraint"
    bl_description = (
        "Let the active bone reach for a target: the other selected bone or object, or a new empty"
    )
    bl_options = {"REGISTER", "UNDO"}

    kind: EnumProperty(
        name="Kind", description="What the constraint is about", items=KINDS, options={"SKIP_SAVE"}
    )
    chain_length: IntProperty(
        name="Chain Length",
        description="How many bones may turn, counted from the active one, locked ones too; 0 goes up to the "
        "root. At first up to the bone that also carries other parts of the rig",
        min=0,
        soft_max=255,
        options={"SKIP_SAVE"},
    )
    suits: StringProperty(
        description="Kind that the chain length was chosen for", options={"HIDDEN", "SKIP_SAVE"}
    )
    target_empty: BoolProperty(
        name="New Empty as Target",
        description="Where nothing else is selected, make an empty as the target: at the bone's tail, or for "
        "balance at the centre of mass. A planted bone needs none",
        default=True,
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
        tip = context.active_pose_bone
        # The redo panel shows what was chosen, and keeps it while the kind stays.
        if self.suits != self.kind and (self.suits or not self.properties.is_property_set("chain_length")):
            self.chain_length = constraint_list.CHAIN_LENGTHS[Kind(self.kind)](context.object, tip.name)
        self.suits = self.kind
        try:
            target, target_bone = _selected_target(context, tip, self.chain_length)
        except CCDRigError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        if target is None and self.target_empty and self.kind != Kind.PLANT:
            target = _new_empty(context, tip, self.kind == Kind.BALANCE)
        constraint = constraint_list.add(context.object, tip.name, tip.name)
        constraint.kind = self.kind
        constraint.chain_length = self.chain_length
        constraint.target = target
        constraint.target_bone = target_bone
        return {"FINISHED"}


def _selected_target(
    context: bpy.types.Context, tip: bpy.types.PoseBone, chain_length: int
) -> tuple[bpy.types.Object | None, str]:
    """The other selected bone or object: (object, bone name), (None, "") if nothing else is selected."""
    owner = context.object
    bones = [bone for bone in context.selected_pose_bones if bone != tip]
    posed = {owner, *(bone.id_data for bone in context.selected_pose_bones), *context.objects_in_mode}
    objects = [each for each in context.selected_objects if each not in posed]
    if len(bones) + len(objects) > 1:
        names = ", ".join(f"'{each.name}'" for each in (*bones, *objects))
        raise RigError(
            f"More than one target is selected ({names}): select the target first, then the bone to move"
        )
    if objects:
        return objects[0], ""
    if not bones:
        return None, ""
    chain = {bone.name for bone in constraint_list.chain(owner, tip.name, chain_length)}
    below = {bone.name for bone in (bones[0], *bones[0].parent_recursive)}
    if bones[0].id_data == owner and chain & below:
        raise RigError(
            f"Bone '{bones[0].name}' moves with the chain of '{tip.name}', so it cannot be its target: "
            "select another bone, or shorten the chain"
        )
    posed_by: Any = bones[0].id_data  # an armature object: only that has pose bones
    return posed_by, bones[0].name


def _new_empty(context: bpy.types.Context, tip: bpy.types.PoseBone, balances: bool) -> bpy.types.Object:
    """An empty at the evaluated tail of a bone, or at the centre of mass, beside the armature."""
    owner = context.object
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    # The bone's name comes last: its ending (.L, .R) stays an ending.
    empty = new_target(context, owner, f"Target {tip.name}", tip.name)
    point = evaluated.pose.bones[tip.name].tail
    masses = joints.masses(owner) if balances else {}
    if masses:
        bones = [(mass, evaluated.pose.bones[name]) for name, mass in masses.items()]
        middles = [mass * 0.5 * (bone.head + bone.tail) for mass, bone in bones]
        point = sum(middles, Vector()) / sum(masses.values())
    empty.location = evaluated.matrix_world @ point
    return empty
