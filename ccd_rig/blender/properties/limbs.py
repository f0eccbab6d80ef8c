# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a limb begins, seen from one of its bones, and ends that importers have made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import bpy

JOINED = 1e-3
"""Part of a bone's length that its head may be away from its parent's tail where the two are joined."""
LIMB = 0.3
"""Part of the extent of one branch of a bone from which another branch is a limb of its own."""
TWIN = 0.02
"""Part of their length by which the two of a pair, such as arms, differ at most."""
ALIKE = 1e-4
"""Part of its length by which a bone that got it from its parent differs at most."""
END_WORDS = ("leaf", "end", "nub")
"""Words in names of bones that importers and exporters put at the end of a limb."""
GLTF_COLLECTION = "glTF_not_exported"
"""Holds the shape that Blender's importer gives to bones: glTF has joints, and their tails are guessed."""


def limb_length(whole: Sequence[bpy.types.PoseBone]) -> int:
    """How many bones from a tip up to the bone that also carries another limb; 0 where that goes to the root.

    A limb has bones of its own, and is not much shorter than what the tip belongs to: a mane on a neck or
    feathers on a wing are none. The chain also ends below a root that it is not joined to, as game rigs have
    it. An end that is alone so far but joined to its parent (a head on the chest) goes on to the next such
    bone, unless it is one of a pair.

    Args:
        whole: the tip and all bones above it.
    """
    tip = whole[0]
    extents = _extents(tip.id_data.data)
    goes_on = not tip.children and tip.parent is not None and is_joined(tip) and not _has_twin(tip, extents)
    for count, bone in enumerate(whole[1:], 1):
        below = whole[count - 1]
        least = LIMB * extents[below.name]
        carries = any(c != below and c.children and extents[c.name] >= least for c in bone.children)
        stands_apart = bone.parent is None and not is_joined(below)
        if stands_apart or (carries and (count > 1 or not goes_on)):
            return count
    return 0


def is_joined(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone starts where its parent ends."""
    gap = (bone.bone.head_local - bone.parent.bone.tail_local).length
    return bool(bone.bone.use_connect) or gap <= JOINED * bone.bone.length


def has_guessed_tail(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone is an end whose tail was made up by an importer: it points past the limb.

    Such a bone is as long as its parent; its name says that it is an end, it wears the shape of Blender's
    glTF importer, or it does not begin where its parent ends.
    """
    parent = bone.parent
    if bone.children or parent is None:
        return False
    if abs(bone.bone.length - parent.bone.length) > ALIKE * bone.bone.length:
        return False
    words = bone.name.lower().replace(".", "_").replace("-", "_").split("_")
    return bool(set(words) & set(END_WORDS)) or _wears_gltf_shape(bone) or not is_joined(bone)


def _wears_gltf_shape(bone: bpy.types.PoseBone) -> bool:
    shape: Any = bone.custom_shape
    return shape is not None and any(home.name == GLTF_COLLECTION for home in shape.users_collection)


def _has_twin(bone: bpy.types.PoseBone, extents: Mapping[str, float]) -> bool:
    """Whether the parent carries another bone of the same extent."""
    own = extents[bone.name]
    others = (extents[child.name] for child in bone.parent.children if child != bone)
    return any(abs(other - own) <= TWIN * own for other in others)


def _extents(armature: Any) -> dict[str, float]:
    """How long each bone is with what hangs on it, along the longest way, at rest."""
    found = {bone.name: float(bone.length) for bone in armature.bones}
    for bone in reversed(armature.bones):  # an armature lists parents first
        if bone.parent is not None:
            way = (bone.head_local - bone.parent.head_local).length + found[bone.name]
            found[bone.parent.name] = max(found[bone.parent.name], way)
    return found
