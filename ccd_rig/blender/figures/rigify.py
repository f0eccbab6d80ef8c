# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs that Rigify has generated: from the controls back to the metarig's bones, and to FK controls again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mathutils import Vector

from .role import Part, Point, RestBone, Role
from .skeleton_tree import SkeletonTree

ORIGINAL = "ORG-"
"""How names of the bones begin that are copies of the metarig's."""
SPINE, TAIL = "spines.basic_spine", "spines.basic_tail"
TOUCHING = 1e-3
"""Part of a bone's length within which two of its kind meet."""
_TRUNK = {Part.HIPS: "torso", Part.NECK: "neck", Part.HEAD: "head"}
_ENDING = re.compile(r"(\.\d+)?(\.[LR])?$")


def is_generated(armature_data: Any) -> bool:
    """Whether Rigify has generated an armature."""
    return bool(armature_data.get("rig_id"))


def metarig_bones(bones: Sequence[RestBone]) -> list[RestBone]:
    """The metarig's bones as the generated rig keeps them, under their own names.

    Rigify hangs spines, tails and palms on controls: they are hung back on the bone that they start at.
    """
    tree = SkeletonTree(bones)
    originals = {bone.name: bone for bone in bones if bone.name.startswith(ORIGINAL)}
    found: dict[str, RestBone] = {}
    for name, bone in originals.items():
        parent = next((above for above in tree.ancestors(bone.parent) if above in originals), "")
        if "palm" in name:
            parent = _nearest(originals, tree, bone)
        elif not parent and bone.rigify_type != SPINE:
            parent = _touching(originals, tree, bone)
        own = name.removeprefix(ORIGINAL)
        found[own] = bone._replace(name=own, parent=parent.removeprefix(ORIGINAL))
    for bone in [each for each in found.values() if each.rigify_type == TAIL]:
        _turn_back(found, bone)
    return list(found.values())


def _turn_back(bones: dict[str, RestBone], first: RestBone) -> None:
    """Rigify reverses some tails: let each bone of such a row hang on the one nearer to the body again."""
    hips = next((b for b in bones.values() if b.rigify_type == SPINE and _meet(first.tail, b.head, b)), None)
    if hips is None:
        return
    row = [first]
    while row[-1].parent:
        row.append(bones[row[-1].parent])
    for bone, parent in zip(row, [hips, *row], strict=False):
        bones[bone.name] = bone._replace(head=bone.tail, tail=bone.head, parent=parent.name)


def controls(roles: Mapping[str, Role], bones: Sequence[RestBone]) -> dict[str, Role]:
    """Roles of the FK controls, from those of the metarig's bones."""
    names = {bone.name for bone in bones}
    found: dict[str, Role] = {}
    for name, role in sorted(roles.items(), key=lambda each: each[1]):
        control = _TRUNK.get(role.part) or _fk_name(name)
        control = control if control in names else name
        if control in names and control not in found:
            found[control] = role
    return found


def _fk_name(name: str) -> str:
    """As Rigify names the FK control: "thigh.L" has "thigh_fk.L", "spine.001" has "spine_fk.001"."""
    place = _ENDING.search(name)
    start = place.start() if place else len(name)
    return f"{name[:start]}_fk{name[start:]}"


def _touching(originals: Mapping[str, RestBone], tree: SkeletonTree, bone: RestBone) -> str:
    """The bone that ends where this one starts; else one that starts there too."""
    for end in ("tail", "head"):
        for other in originals.values():
            if _meet(getattr(other, end), bone.head, other) and not tree.is_below(other.name, bone.name):
                return other.name
    return ""


def _meet(one: Point, other: Point, bone: RestBone) -> bool:
    length = (Vector(bone.tail) - Vector(bone.head)).length
    return (Vector(one) - Vector(other)).length <= TOUCHING * length


def _nearest(originals: Mapping[str, RestBone], tree: SkeletonTree, bone: RestBone) -> str:
    """The bone of the limb whose middle is nearest to where a palm starts."""
    head = Vector(bone.head)
    others = [
        other
        for other in originals.values()
        if "palm" not in other.name and not tree.is_below(other.name, bone.name) and _in_limb(tree, other)
    ]
    return min(
        others,
        key=lambda other: (0.5 * (Vector(other.head) + Vector(other.tail)) - head).length,
        default=bone,
    ).name


def _in_limb(tree: SkeletonTree, bone: RestBone) -> bool:
    """Whether a bone hangs on one that begins a limb of Rigify's."""
    return any(
        tree.bones[name].rigify_type.startswith("limbs.") for name in tree.ancestors(bone.name)
    ) and not any("palm" in name for name in tree.ancestors(bone.name))
