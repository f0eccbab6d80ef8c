# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits copied from one bone to others, and mirrored to the other side of a rig."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ...errors import InvalidInput, RigError
from ...limits.mirroring import mirror_turn, turned
from ...limits.shapes import Limit
from ..figures.roles import figure_of, partner_in
from ..properties.joints import copy_limit, limit_of, store_limits
from ..properties.names import named
from ..rig.bone_space import nearest_rotation
from .chosen_bones import Outcome


def copy(source: bpy.types.PoseBone, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Give bones the limit of another one, in their own axes.

    Raises:
        RigError: there is no other bone, or the limit contradicts itself. Nothing has changed then.
    """
    others = [bone for bone in pose_bones if bone != source]
    if not others:
        raise RigError(f"no bone but '{source.name}' is there to copy to: select others, or choose the chain")
    limit_of(source.name, "limit", source.ccd_rig.limit)
    for bone in others:
        copy_limit(source, bone)
    return Outcome(tuple(bone.name for bone in others))


def partners(pose_bones: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, bpy.types.PoseBone | None]:
    """The bone on the other side of each; None for one that has none, as in the middle.

    The part of the body that a bone is says which it is, else its name: "hand.L", "Left Hand".
    """
    armature_object = pose_bones[0].id_data
    bones, figure = armature_object.pose.bones, figure_of(armature_object)
    found = {bone: bones.get(partner_in(figure, bones.keys(), bone.name)) for bone in pose_bones}
    return {bone: None if other == bone else other for bone, other in found.items()}


def mirror(pose_bones: Sequence[bpy.types.PoseBone], active: bpy.types.PoseBone | None = None) -> Outcome:
    """Give the bones on the other side the mirrored limits of these.

    Where both bones of a pair are given, the one with a limit is mirrored; where both have one, that on the
    side of the active bone.

    Args:
        pose_bones: of one armature.
        active: the active bone, or None.

    Raises:
        RigError: no bone has a partner, both sides have limits and it is not clear which counts, or a limit
            contradicts itself or cannot be mirrored. Nothing has changed then.
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
    limits = {other: _mirrored(bone, other) for bone, other in sources.items()}
    store_limits(limits)
    alone = [
        bone.name for bone, other in pairs.items() if other is None and bone.ccd_rig.limit.kind != "NONE"
    ]
    notes = (f"no bone on the other side of {named(alone)} is known",) if alone else ()
    return Outcome(tuple(bone.name for bone in limits), notes)


def _overwritten(
    bone: bpy.types.PoseBone, other: bpy.types.PoseBone, active: bpy.types.PoseBone | None
) -> bpy.types.PoseBone:
    """Of a pair the one that gets the limit of its partner."""
    pair = (bone, other)
    without = [each for each in pair if each.ccd_rig.limit.kind == "NONE"]
    across = [each for each in pair if active is not None and _side(active) * _side(each) < 0.0]
    if without or across:
        return (without or across)[0]
    raise RigError(
        f"bones '{bone.name}' and '{other.name}' are both selected and both have a limit: select one "
        "side, or make a bone of the side that counts the active one"
    )


def _side(pose_bone: bpy.types.PoseBone) -> float:
    """Where a bone rests along the armature's X: above 0 on the left."""
    middle: float = pose_bone.bone.head_local.x + pose_bone.bone.tail_local.x
    return middle if abs(middle) > 1e-4 * pose_bone.bone.length else 0.0


def _mirrored(bone: bpy.types.PoseBone, other: bpy.types.PoseBone) -> Limit | None:
    limit = limit_of(bone.name, "limit", bone.ccd_rig.limit)
    if limit is None:
        return None
    rests = [nearest_rotation(each.bone.matrix_local.to_3x3()) for each in (bone, other)]
    try:
        return turned(limit, mirror_turn(*rests))
    except InvalidInput as error:
        raise RigError(
            f"bone '{bone.name}': its limit cannot be mirrored to '{other.name}', which does not rest as its "
            f"mirror image: {error}"
        ) from error
