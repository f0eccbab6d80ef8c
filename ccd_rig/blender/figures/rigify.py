# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs that Rigify has generated: from the controls back to the metarig's bones, and to FK controls again."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mathutils import Vector

from .role import Part, Point, RestBone, Role
from .skeleton_tree import SkeletonTree

ORIGINAL = "ORG-"
"""How names of the bones begin that are copies of the metarig's."""
IK_FK = "IK_FK"
ROOT = "root"
"""The bone of a generated rig that carries all others."""
"""Property of a limb's parent control: 0 shows the limb as its IK controls have it, 1 as its FK controls."""
TOUCHING = 1e-3
"""Part of a bone's length within which two of its kind meet."""
_TRUNK = {Part.HIPS: "torso", Part.NECK: "neck", Part.HEAD: "head"}
_ENDING = re.compile(r"(\.\d+)?(\.[LR])?$")


def is_generated(armature_data: Any) -> bool:
    """Whether Rigify has generated an armature."""
    return bool(armature_data.get("rig_id"))


def limb_parent(control: str) -> str:
    """Name of the control that has a limb's switches, for the first of its FK controls."""
    return control.replace("_fk", "_parent", 1)


def metarig_bones(bones: Sequence[RestBone]) -> list[RestBone]:
    """The metarig's bones as the generated rig keeps them, under their own names.

    Rigify hangs spines, tails and palms on controls: they are hung back on the bone that they start at.
    """
    tree = SkeletonTree(bones)
    originals = {
        bone.name: bone._replace(name=bone.name.removeprefix(ORIGINAL))
        for bone in bones
        if bone.name.startswith(ORIGINAL)
    }
    found: dict[str, RestBone] = {}
    for name, bone in originals.items():
        above = next((each for each in tree.ancestors(bone.parent) if each in originals), "")
        found[bone.name] = bone._replace(parent=originals[above].name if above else "")
        if "palm" in name:
            found[bone.name] = bone._replace(parent=_limb_at(originals, tree, bone))
    with_fk = {name for name in found if _fk_name(name) in tree.bones}
    _join(found, "tail", with_fk)
    _turn_back(found)
    _join(found, "head", with_fk)
    return list(found.values())


def _join(bones: dict[str, RestBone], end: str, with_fk: Collection[str]) -> None:
    """Hang bones that hang on none on those whose head or tail is where they start; never the main root.

    Bones with an FK control do not hang on others: those are tails that Rigify has reversed.
    """
    main = _main_root(bones)
    for name, bone in bones.items():
        if bone.parent or (end == "head" and name == main):
            continue
        for other in bones.values():
            suits = name not in with_fk or other.name in with_fk
            if (
                suits
                and _meet(getattr(other, end), bone.head, other)
                and not _hangs_on(bones, other.name, name)
            ):
                bones[name] = bone._replace(parent=other.name)
                break


def _turn_back(bones: dict[str, RestBone]) -> None:
    """Rigify reverses some tails, so that they end at the hips: reverse such rows again."""
    main = _main_root(bones)
    hips = bones.get(main)
    if hips is None:
        return
    parents = {bone.parent for bone in bones.values()}
    for last in [each for each in bones.values() if each.name not in parents]:
        if not _meet(last.tail, hips.head, last) or _hangs_on(bones, last.name, main):
            continue
        row = [last]
        while row[-1].parent:
            row.append(bones[row[-1].parent])
        for bone, parent in zip(row, [hips, *row], strict=False):
            bones[bone.name] = bone._replace(head=bone.tail, tail=bone.head, parent=parent.name)


def _main_root(bones: Mapping[str, RestBone]) -> str:
    """Of the bones that hang on none, the one that most bones hang on; empty for no bones."""
    counts: dict[str, int] = {}
    for name in bones:
        while bones[name].parent:
            name = bones[name].parent
        counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name], default="")


def _hangs_on(bones: Mapping[str, RestBone], name: str, above: str) -> bool:
    """Whether a bone is another one, or hangs on it."""
    while name and name != above:
        name = bones[name].parent
    return bool(name)


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


def _meet(one: Point, other: Point, bone: RestBone) -> bool:
    return math.dist(one, other) <= TOUCHING * math.dist(bone.head, bone.tail)


def _limb_at(originals: Mapping[str, RestBone], tree: SkeletonTree, palm: RestBone) -> str:
    """The bone of a limb whose middle is nearest to where a palm starts."""
    head = Vector(palm.head)
    others = [
        (_middle(other) - head, other.name)
        for name, other in originals.items()
        if not any("palm" in above for above in tree.ancestors(name)) and other.name.endswith(palm.name[-2:])
    ]
    return min(others, key=lambda each: each[0].length, default=(head, ""))[1]


def _middle(bone: RestBone) -> Vector:
    return 0.5 * (Vector(bone.head) + Vector(bone.tail))
