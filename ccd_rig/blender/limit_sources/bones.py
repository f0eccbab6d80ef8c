# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that get limits; limits copied, mirrored, and bounded at the present pose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from ...errors import InvalidInput, RigError
from ...limits.shapes import Limit, mirror_turn
from ..figures.recognition import figure_of, partner_in
from ..keys.channels import is_bone_selected
from ..properties import constraint_list
from ..properties.limits import copy_limit, limit_kind, limit_of, store_limits
from ..properties.names import named
from ..rig.bone_space import rest_rotation
from ..viewport.limits import bone_axes


@dataclass(frozen=True)
class Outcome:
    """Result of storing limits."""

    done: tuple[str, ...]  # names of the bones whose limits were stored
    # Sentences about bones that kept their limits, or whose limit differs from its source.
    notes: tuple[str, ...] = ()
    source: str = ""  # sentence on the source of the numbers; empty if they are the file's


def chosen(armature_object: bpy.types.Object, scope: str) -> tuple[bpy.types.PoseBone, ...]:
    """Return the bones of a scope, in the order of the armature.

    Args:
        scope: "ACTIVE", "SELECTED" (the active bone if none is selected), "CHAIN" of the active constraint,
            or "ALL".

    Raises:
        RigError: there is none.
    """
    bones = armature_object.pose.bones
    if scope == "ALL":
        return tuple(bones)
    if scope == "CHAIN":
        row = constraint_list.active(armature_object)
        names = {b.name for b in constraint_list.chain_of(armature_object, row)} if row else ()
        if not names:
            raise RigError(
                f"armature '{armature_object.name}' has no active constraint with a chain: choose one in the "
                "list, or choose Selected Bones"
            )
        return tuple(bone for bone in bones if bone.name in names)
    selected = tuple(bone for bone in bones if is_bone_selected(bone))
    if scope == "SELECTED" and selected:
        return selected
    active = armature_object.data.bones.active
    if active is None:
        raise RigError(f"no bone of '{armature_object.name}' is selected: select some in Pose Mode")
    return (bones[active.name],)


# Limits of other bones --------------------------------------------------------------------------------------


def copy(source: bpy.types.PoseBone, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Copy the limit of a bone to bones, in the axes of each.

    Raises:
        RigError: there is no other bone, or the limit is contradictory. Nothing has changed then.
    """
    others = [bone for bone in pose_bones if bone != source]
    if not others:
        raise RigError(f"no bone but '{source.name}' is there to copy to: select others, or choose the chain")
    limit_of(source.name, "limit", source.ccd_rig.limit)
    for bone in others:
        copy_limit(source, bone)
    return Outcome(tuple(bone.name for bone in others))


def partners(pose_bones: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, bpy.types.PoseBone | None]:
    """Return the partner of each bone on the other side; None for a bone in the middle.

    The role in a figure decides, else the name: "hand.L", "Left Hand".
    """
    armature_object = pose_bones[0].id_data
    bones, figure = armature_object.pose.bones, figure_of(armature_object)
    names = set(bones.keys())
    others = {bone: bones.get(partner_in(figure, names, bone.name)) for bone in pose_bones}
    return {bone: None if other == bone else other for bone, other in others.items()}


def mirror(pose_bones: Sequence[bpy.types.PoseBone], active: bpy.types.PoseBone | None = None) -> Outcome:
    """Mirror the limits of bones to their partners on the other side.

    If both bones of a pair are in `pose_bones`, the one with a limit is mirrored. If both have limits, the
    one on the side of the active bone is.

    Raises:
        RigError: no bone has a partner, the side to mirror is not decided, or a limit is contradictory or
            cannot be mirrored. Nothing has changed then.
    """
    pairs = partners(pose_bones)
    sources = {bone: other for bone, other in pairs.items() if other is not None}
    if not sources:
        names = named([bone.name for bone in pose_bones])
        raise RigError(
            f"no bone on the other side is known of {names}: name bones by their side, such as 'hand.L' and "
            "'hand.R'"
        )
    for bone, other in list(sources.items()):
        if bone in sources and other in sources:
            del sources[_overwritten(bone, other, active)]
    limits: dict[bpy.types.PoseBone, Limit | None] = {}
    for bone, other in sources.items():
        limit = limit_of(bone.name, "limit", bone.ccd_rig.limit)
        try:
            limits[other] = limit and limit.turned(mirror_turn(rest_rotation(bone), rest_rotation(other)))
        except InvalidInput as error:
            raise RigError(
                f"bone '{bone.name}': its limit cannot be mirrored to '{other.name}', which does not rest as "
                f"its mirror image: {error}"
            ) from error
    store_limits(limits)
    unpaired = [
        bone.name for bone, other in pairs.items() if other is None and bone.ccd_rig.limit.kind != "NONE"
    ]
    notes = (f"no bone on the other side of {named(unpaired)} is known",) if unpaired else ()
    return Outcome(tuple(bone.name for bone in limits), notes)


def _overwritten(
    bone: bpy.types.PoseBone, other: bpy.types.PoseBone, active: bpy.types.PoseBone | None
) -> bpy.types.PoseBone:
    """Return the bone of a pair that gets the limit of its partner."""
    pair = (bone, other)
    without = [member for member in pair if member.ccd_rig.limit.kind == "NONE"]
    across = [member for member in pair if active is not None and _side(active) * _side(member) < 0.0]
    if without or across:
        return (without or across)[0]
    raise RigError(
        f"bones '{bone.name}' and '{other.name}' are both selected and both have a limit: select one "
        "side, or make a bone of the side that counts the active one"
    )


def _side(pose_bone: bpy.types.PoseBone) -> float:
    """Return a number with the sign of the bone's side at rest: above 0 on the left, 0 in the middle."""
    middle: float = pose_bone.bone.head_local.x + pose_bone.bone.tail_local.x
    return middle if abs(middle) > 1e-4 * pose_bone.bone.length else 0.0


# Bounds at the present pose ---------------------------------------------------------------------------------


def has_bound(pose_bone: bpy.types.PoseBone, bound: str) -> bool:
    """Whether a bone's limit has a bound: "MIN", "MAX", or the border of a swing ("SWING")."""
    group = pose_bone.ccd_rig.limit
    kind = limit_kind(group)
    return bool(kind.swings) if bound == "SWING" else kind.bounds(group) is not None


def set_bounds(pose_bones: Sequence[bpy.types.PoseBone], bound: str) -> Outcome:
    """Set a bound of limits to the evaluated pose of their bones, constraints included.

    Args:
        pose_bones: of one armature; bones whose limit has no such bound keep it.
        bound: "MIN" or "MAX" of all angles, or "SWING": the border of cones and ellipses.

    Raises:
        RigError: no limit has such a bound, a limit is contradictory, or the matrix of a bone is not finite.
            Nothing has changed then.
    """
    bounded = [bone for bone in pose_bones if has_bound(bone, bound)]
    if not bounded:
        kinds = "a cone or an ellipse" if bound == "SWING" else "a hinge, a twist range or Euler angles"
        raise RigError(
            f"{_subject([bone.name for bone in pose_bones])} no limit with {kinds}: choose one first"
        )
    limits = {}
    for bone in bounded:
        limit = limit_of(bone.name, "limit", bone.ccd_rig.limit)
        if not math.isfinite(sum(map(sum, bone.matrix))):  # finite only if every entry is
            raise RigError(f"bone '{bone.name}' is nowhere: clear its transform and its parents'")
        assert limit is not None
        rotation = bone_axes(bone).rotation
        try:
            if bound == "SWING":
                limits[bone] = limit.with_rim_at(rotation)
            else:
                limits[bone] = limit.with_bound_at(rotation, bound == "MAX")
        except InvalidInput as error:
            raise RigError(f"bone '{bone.name}': {error}; pose it where its limit should end") from error
    store_limits(limits)
    left = [bone.name for bone in pose_bones if bone not in bounded]
    notes = (f"{_subject(left)} no such bound and stay as they are",) if left else ()
    return Outcome(tuple(bone.name for bone in bounded), notes)


def _subject(names: Sequence[str]) -> str:
    return f"bone {named(names)} has" if len(names) == 1 else f"bones {named(names)} have"
