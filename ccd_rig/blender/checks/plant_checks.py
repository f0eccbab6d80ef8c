# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a planted bone from carrying the figure, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import bpy

from ...errors import CCDRigError
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...skeleton.rerooting import reroot
from ..properties import constraint_list
from ..properties.body import Body
from ..properties.constraint_values import Constraint, Kind
from ..rig import clamps
from ..scene.influences import PLANTED
from ..solve.planting import different_ends, support_chains
from .problem import Problem


def plant_problems(armature_object: bpy.types.Object, constraint: Any, keeps_body: bool) -> Iterator[Problem]:
    """What is wrong with one constraint of kind PLANT by itself.

    Args:
        armature_object: carries it.
        constraint: as it is stored.
        keeps_body: whether the bone that carries the figure keeps its animation.
    """
    where = f"Constraint '{constraint.name}'"
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if 0.0 < constraint.influence <= PLANTED and not constraint_list.is_animated(
        armature_object, constraint, "influence"
    ):
        message = f"{where}: a bone is planted while influence is above {PLANTED}: raise it"
        yield Problem("WARNING", constraint.name, message)
    if not (constraint.plant_ground or constraint.plant_height or constraint.plant_rotation):
        message = f"{where} holds no part of its bone: switch on Ground, Height or Rotation"
        yield Problem("ERROR", constraint.name, message)
    if not chain:
        return
    root_bone = chain[-1]
    if len(chain) <= constraint_list.limb_length(armature_object, constraint.tip):
        suited = constraint_list.first_root_bone_chain_length(armature_object, constraint.tip)
        above = constraint_list.chain(armature_object, constraint.tip, suited)[-1].name
        message = (
            f"{where}: bone '{root_bone.name}', where its chain ends, is of the limb and carries no figure"
        )
        yield Problem("WARNING", constraint.name, f"{message}: set Chain Length to end at '{above}'")
    yield from _other_root_bones(armature_object, constraint, root_bone)
    if not keeps_body:
        yield from _root_bone_problems(constraint, root_bone)
    for bone in chain:
        if any(bone.ccd_rig.use_slide) and not (keeps_body and bone == root_bone):
            message = (
                f"{where}: bone '{bone.name}' slides, which a bone between a planted one and the one that"
            )
            yield Problem("ERROR", constraint.name, f"{message} carries the figure cannot: switch off Slide")
        if len(bone.ccd_rig.coupled_offsets):
            message = (
                f"{where}: bone '{bone.name}' has a coupled offset, which no bone from a planted one up to "
                "the one that carries the figure may have: remove it"
            )
            yield Problem("ERROR", constraint.name, message)
    between = chain[:-1]
    if between and all(all(bone.lock_rotation) or bone.ccd_rig.stiffness >= 1.0 for bone in between):
        locked = f"{where}: every bone from '{constraint.tip}' up to '{root_bone.name}' is locked, so"
        effect = "it cannot be held" if keeps_body else "the figure stands stiffly on it"
        message = f"{locked} {effect}: unlock a rotation, or lower a stiffness"
        yield Problem("WARNING", constraint.name, message)


def _other_root_bones(
    armature_object: bpy.types.Object, constraint: Any, root_bone: bpy.types.PoseBone
) -> Iterator[Problem]:
    """Other planted bones by which another bone would carry the figure."""
    for other in armature_object.ccd_rig.constraints:
        if other == constraint or other.kind != Kind.PLANT or not other.enabled:
            continue
        ends = constraint_list.chain(armature_object, other.tip, other.chain_length)[-1:]
        if ends and ends[0] != root_bone:
            message = different_ends((constraint.name, other.name), (root_bone.name, ends[0].name))
            yield Problem("ERROR", constraint.name, message)
            return


def _root_bone_problems(constraint: Any, root_bone: bpy.types.PoseBone) -> Iterator[Problem]:
    """What keeps a bone from carrying the figure over a planted one."""
    name = f"bone '{root_bone.name}'"
    does = f"Constraint '{constraint.name}': {name} carries the figure over the planted bone, but"
    cure = "or set Chain Length to end at another bone"
    if root_bone.parent is not None and root_bone.bone.use_connect:
        message = f"{does} it is connected to its parent: switch off Connected in Edit Mode, {cure}"
        yield Problem("ERROR", constraint.name, message)
    if any(root_bone.lock_location):
        yield Problem("ERROR", constraint.name, f"{does} its location is locked: unlock it, {cure}")
    if any(root_bone.lock_rotation) or (root_bone.lock_rotations_4d and root_bone.lock_rotation_w):
        yield Problem("ERROR", constraint.name, f"{does} its rotation is locked: unlock it, {cure}")
    if root_bone.ccd_rig.limit.kind != "NONE":
        message = f"{does} its limit cannot hold there: set the limit's kind to None"
        yield Problem("WARNING", constraint.name, message)


def body_problems(
    armature_object: bpy.types.Object, chosen: Sequence[Any], figure: Body
) -> Iterator[Problem]:
    """What contradicts a body that keeps its animation."""
    stays = f"bone '{figure.bone}', which keeps its animation"
    for row in chosen:
        if row.tip == figure.bone:
            does = "plants" if row.kind == Kind.PLANT else "moves"
            message = f"Constraint '{row.name}' {does} {stays}: disable it, or set Body to Follow Feet"
            yield Problem("ERROR", row.name, message)
        elif row.kind != Kind.PLANT:
            chain = constraint_list.chain(armature_object, row.tip, row.chain_length)
            if any(bone.name == figure.bone for bone in chain):
                message = f"Constraint '{row.name}' goes up to {stays}: only bones below it turn"
                yield Problem("WARNING", row.name, f"{message}; set Body to Follow Feet to let it turn")
    bone = armature_object.pose.bones[figure.bone]
    if figure.walks_on:
        yield from _walking_problems(bone)
    for constraint in clamps.user_constraints(bone):
        if not constraint.mute and constraint.influence > 0.0:
            message = (
                f"Bone '{bone.name}' keeps its animation, but what Blender's constraint "
                f"'{constraint.name}' makes of it is not seen: bake it to keys and mute it, "
                "or set Body to Follow Feet"
            )
            yield Problem("ERROR", bone.name, message)


def _walking_problems(bone: bpy.types.PoseBone) -> Iterator[Problem]:
    """What keeps a body from being carried along the ground."""
    does = f"Bone '{bone.name}' walks on over planted bones, but"
    if bone.parent is not None and bone.bone.use_connect:
        message = f"{does} it is connected to its parent: switch off Connected in Edit Mode"
        yield Problem("ERROR", bone.name, message)
    if any(bone.lock_location):
        message = f"{does} its location is locked: unlock it, or set Body to Keep Animation"
        yield Problem("ERROR", bone.name, message)


def skeleton_problems(
    skeleton: Skeleton, constraints: Sequence[Constraint], keeps_body: bool
) -> Iterator[Problem]:
    """What is wrong with planted bones beside each other."""
    planted = [constraint for constraint in constraints if constraint.kind == Kind.PLANT]
    if not planted:
        return
    try:
        support_chains(skeleton, constraints)
    except CCDRigError as error:
        yield Problem("ERROR", planted[0].name, str(error))
        return
    for coupling in () if keeps_body else skeleton.couplings[:1]:
        message = (
            f"Bone '{skeleton.joints[coupling.joint].name}' has a coupled offset, which no bone of a figure "
            "that follows its planted bones may have: remove it, or set Body to Keep Animation"
        )
        yield Problem("ERROR", planted[0].name, message)
    for constraint in () if keeps_body or skeleton.couplings else planted:
        try:
            reroot(skeleton, Pose.rest(skeleton), constraint.tip)
        except CCDRigError as error:
            yield Problem("ERROR", constraint.name, f"Constraint '{constraint.name}': {error}")


def root_bones(armature_object: bpy.types.Object, chosen: Sequence[Any]) -> list[bpy.types.PoseBone]:
    """The bones that carry the figure for these constraints, each once."""
    bones = [
        constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)[-1]
        for constraint in chosen
        if constraint.kind == Kind.PLANT
    ]
    return list(dict.fromkeys(bones))
