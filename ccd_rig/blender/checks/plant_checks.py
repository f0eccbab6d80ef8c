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
from ..properties.constraint_values import Constraint
from ..scene.influences import PLANTED
from ..solve.planting import support_chains


def method_problems(
    armature_object: bpy.types.Object, constraint: Any, keeps_body: bool
) -> Iterator[tuple[str, str]]:
    """What is wrong with one constraint of kind PLANT by itself: (severity, message).

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
        yield "WARNING", f"{where}: a bone is planted while influence is above {PLANTED}: raise it"
    if not chain:
        return
    carrier = chain[-1]
    if not keeps_body:
        yield from _carrier_problems(where, carrier)
    for bone in chain:
        if any(bone.ccd_rig.use_slide) and not (keeps_body and bone == carrier):
            yield (
                "ERROR",
                f"{where}: bone '{bone.name}' slides, which a bone between a planted one and the one that "
                "carries the figure cannot: switch off Slide",
            )
    between = chain[:-1]
    if between and all(all(bone.lock_rotation) or bone.ccd_rig.stiffness >= 1.0 for bone in between):
        locked = f"{where}: every bone from '{constraint.tip}' up to '{carrier.name}' is locked, so"
        effect = "it cannot be held" if keeps_body else "the figure stands stiffly on it"
        yield "WARNING", f"{locked} {effect}: unlock a rotation, or lower a stiffness"


def _carrier_problems(where: str, carrier: bpy.types.PoseBone) -> Iterator[tuple[str, str]]:
    """What keeps a bone from carrying the figure over a planted one."""
    does = f"{where}: bone '{carrier.name}' carries the figure over the planted bone, but"
    if carrier.parent is not None and carrier.bone.use_connect:
        yield (
            "ERROR",
            f"{does} it is connected to its parent: switch off Connected in Edit Mode, or set Chain Length "
            "to end at another bone",
        )
    if any(carrier.lock_location):
        yield "ERROR", f"{does} its location is locked: unlock it, or set Chain Length to end at another bone"
    if any(carrier.lock_rotation) or (carrier.lock_rotations_4d and carrier.lock_rotation_w):
        yield "ERROR", f"{does} its rotation is locked: unlock it, or set Chain Length to end at another bone"
    if carrier.ccd_rig.limit.kind != "NONE":
        yield "WARNING", f"{does} its limit cannot hold there: set the limit's kind to None"


def body_problems(
    armature_object: bpy.types.Object, chosen: Sequence[Any], figure: Body
) -> Iterator[tuple[str, str, str]]:
    """What contradicts a body that keeps its animation: (severity, name, message)."""
    stays = f"bone '{figure.bone}', which keeps its animation"
    for row in chosen:
        if row.tip == figure.bone:
            does = "plants" if row.kind == "PLANT" else "moves"
            message = f"Constraint '{row.name}' {does} {stays}: disable it, or set Body to Follow Feet"
            yield "ERROR", row.name, message
        elif row.kind != "PLANT":
            chain = constraint_list.chain(armature_object, row.tip, row.chain_length)
            if any(bone.name == figure.bone for bone in chain):
                message = f"Constraint '{row.name}' goes up to {stays}: only bones below it turn"
                yield "WARNING", row.name, f"{message}; set Body to Follow Feet to let it turn"
    bone = armature_object.pose.bones[figure.bone]
    for constraint in bone.constraints:
        if not constraint.mute and constraint.influence > 0.0:
            message = (
                f"Bone '{bone.name}' keeps its animation, but what Blender's constraint "
                f"'{constraint.name}' makes of it is not seen"
            )
            yield "ERROR", bone.name, f"{message}: bake it to keys and mute it, or set Body to Follow Feet"


def skeleton_problems(
    skeleton: Skeleton, constraints: Sequence[Constraint], keeps_body: bool
) -> Iterator[tuple[str, str]]:
    """What is wrong with planted bones beside each other: (name of the constraint, message). All errors."""
    planted = [constraint for constraint in constraints if constraint.kind == "PLANT"]
    if not planted:
        return
    try:
        support_chains(skeleton, constraints)
    except CCDRigError as error:
        yield planted[0].name, str(error)
        return
    for constraint in () if keeps_body else planted:
        try:
            reroot(skeleton, Pose.rest(skeleton), constraint.tip)
        except CCDRigError as error:
            yield constraint.name, f"Constraint '{constraint.name}': {error}"


def carriers(armature_object: bpy.types.Object, chosen: Sequence[Any]) -> list[bpy.types.PoseBone]:
    """The bones that carry the figure for these constraints, each once."""
    found = [
        constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)[-1]
        for constraint in chosen
        if constraint.kind == "PLANT"
    ]
    return list(dict.fromkeys(found))
