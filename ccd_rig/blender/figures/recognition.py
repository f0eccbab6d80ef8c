# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition of an armature's bones: hand, foot, third bone of the spine."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import bpy
from mathutils import Matrix, Vector

from ...errors import RigError
from ...json_text import printable, shown
from . import rigify, words
from .control_bones import is_control
from .role import (
    ARM_PARTS,
    FRONT_PARTS,
    LEG_PARTS,
    OTHER_SIDE,
    Figure,
    Kind,
    Part,
    RestBone,
    Role,
    Side,
    SkeletonTree,
    read_role,
)
from .structure import UP, by_structure
from .words import Clue, by_family, by_words

RIGIFY = "Rigify"
_PAWS = re.compile(r"paw$")
OTHER_WAYS_UP = (Vector((0.0, 1.0, 0.0)), Vector((0.0, -1.0, 0.0)))
TOES = (Part.TOE, Part.FRONT_TOE)
FOURS = 0.5
"""Cosine of the angle between back and hind leg at rest below which a figure goes on all fours."""


def rest_bones(armature_object: bpy.types.Object) -> tuple[RestBone, ...]:
    """Return the bones of an armature at rest, parents first, in armature space rotated to Z up.

    Control bones that were made as targets are left out: their names contain those of other bones. Armatures
    from other programs may have another up axis; their objects' rotations then tell it.
    """
    upright = _upright(armature_object.matrix_world)
    bones = []
    for pose_bone in armature_object.pose.bones:
        bone = pose_bone.bone
        if is_control(pose_bone):
            continue
        bones.append(
            RestBone(
                bone.name,
                bone.parent.name if bone.parent else "",
                tuple(upright @ bone.head_local),
                tuple(upright @ bone.tail_local),
                bone.use_deform,
                str(getattr(pose_bone, "rigify_type", "")),
                bone.parent is not None and bone.use_connect,
            )
        )
    return tuple(bones)


def figure_of(armature_object: bpy.types.Object) -> Figure:
    """Recognise the figure of an armature; known for the same bones at rest."""
    return _known(rest_bones(armature_object), rigify.is_generated(armature_object.data))


def roles_of(armature_object: bpy.types.Object) -> Mapping[str, Role]:
    """Return {bone: role} of an armature; bones without a role are left out."""
    return figure_of(armature_object).roles


def side_of(armature_object: bpy.types.Object, name: str) -> Side:
    """Return the side of a bone: by its name, or else by its role."""
    if side := words.read(name).side:
        return side
    role = roles_of(armature_object).get(name)
    return Side.MIDDLE if role is None else role.side


def partner_in(figure: Figure, names: Collection[str], name: str) -> str:
    """Return the bone on the other side: by role, or else by name; empty if missing.

    A bone with a role in the middle is its partner itself. `names`: of all bones of the figure, best a set.
    """
    if partner := figure.partner(name):
        return partner
    other = words.across(name)
    return other if other != name and other in names else ""


@lru_cache(maxsize=16)
def _known(bones: tuple[RestBone, ...], generated: bool) -> Figure:
    return recognise(bones, generated)


def recognise(bones: Sequence[RestBone], generated: bool = False) -> Figure:
    """Recognise a figure.

    Args:
        bones: all of an armature, parents first, in a space whose Z points up.
        generated: whether Rigify has generated them. Then FK controls alone get roles.
    """
    if generated:  # by the copies of the metarig's bones
        figure = recognise(rigify.metarig_bones(bones))
        return Figure(figure.kind, rigify.controls(figure.roles, bones), RIGIFY)
    tree = SkeletonTree(bones)
    wanted = {name for bone in bones if bone.deforms for name in tree.ancestors(bone.name)}
    if wanted:  # bones that deform, and their ancestors
        tree = SkeletonTree(bone for bone in bones if bone.name in wanted)
    structure: tuple[Kind, dict[str, Role]] | None = None
    if not any(_PAWS.search(bone.rigify_type) for bone in bones):
        family, roles = by_family(tree)
        roles = roles or by_words(tree)
        if roles and not _on_all_fours(tree, roles):
            structure = None if family else by_structure(tree)
            if structure is None or not _has_more_limbs(tree, roles, structure[1]):
                return Figure(Kind.HUMAN, roles, family)
    kind, roles = structure or by_structure(tree)
    if kind in (Kind.UNKNOWN, Kind.FISH) or (kind is Kind.BIRD and not _stands(tree, roles)):
        # A human's bones from other programs may point up by another axis, and the object may be unturned.
        for up in OTHER_WAYS_UP:
            other_kind, other_roles = by_structure(_turned(tree, up))
            limbs = {Role(Part.HAND, Side.LEFT), Role(Part.FOOT, Side.LEFT)}
            if other_kind is Kind.HUMAN and limbs.issubset(other_roles.values()):
                return Figure(other_kind, _sided_by_names(other_roles))
    return Figure(kind, _sided_by_names(roles))


_TOLD_BY: Mapping[Part, tuple[frozenset[Part], tuple[Clue, ...]]] = {
    **dict.fromkeys(ARM_PARTS, (frozenset(ARM_PARTS), (Clue.ARM,))),
    **dict.fromkeys(LEG_PARTS, (frozenset(LEG_PARTS), (Clue.LEG,))),
    **dict.fromkeys(FRONT_PARTS, (frozenset(ARM_PARTS + LEG_PARTS), (Clue.ARM, Clue.LEG))),
    Part.HEAD: (frozenset({Part.HEAD, Part.NECK}), (Clue.SKULL, Clue.FACE)),
    Part.TAIL: (frozenset({Part.TAIL}), (Clue.WING,)),  # a shark's ends in a fin
    Part.TRUNK: (frozenset(), (Clue.TRUNK,)),
    Part.WING: (frozenset({Part.WING, *ARM_PARTS}), (Clue.WING, Clue.ARM)),
    Part.LEG: (frozenset(LEG_PARTS + ARM_PARTS), (Clue.LEG, Clue.ARM)),
}
"""By part, which parts and words in the names of a limb's bones agree with it."""
_LIMBS = (
    ARM_PARTS,
    LEG_PARTS,
    FRONT_PARTS,
    (Part.HEAD,),
    (Part.TAIL,),
    (Part.TRUNK,),
    (Part.WING,),
    (Part.LEG,),
)


def untold(figure: Figure, bones: Sequence[RestBone]) -> tuple[str, ...]:
    """Names of bones at which limbs end whose part or side the structure alone tells; none of a sure figure.

    Names of one family, a whole human's, and Rigify's marks are sure, and so is a single row of bones.
    """
    if figure.family or figure.kind is Kind.CHAIN or any(bone.rigify_type for bone in bones):
        return ()
    unsure = []
    for parts in _LIMBS:
        limbs: dict[tuple[Side, int], list[tuple[int, int, str]]] = {}
        for name, role in figure.roles.items():
            if role.part in parts and role.part is not Part.FINGER:
                place = (parts.index(role.part), role.index, name)
                limbs.setdefault((role.side, 0 if role.part in TOES else role.number), []).append(place)
        for (side, _), limb in sorted(limbs.items()):
            names = [name for *_, name in sorted(limb)]
            parts_told, clues = _TOLD_BY[parts[0]]
            if not any(
                (words.read(name).part in parts_told or any(words.says(name, clue) for clue in clues))
                and (side is Side.MIDDLE or words.read(name).side is side)
                for name in names
            ):
                unsure.append(names[-1])
    return tuple(unsure)


def with_roles(figure: Figure, names: Collection[str], changes: Mapping[str, str]) -> Figure:
    """Change roles of a figure's bones. The former bones of these roles lose them; limbs tell the kind.

    Args:
        changes: {bone: words of its role}; empty words remove its role.

    Raises:
        RigError: a bone is missing, words are of no role, or two bones would have the same role.
    """
    wanted: dict[str, Role] = {}
    for name, text in changes.items():
        if name not in names:
            raise RigError(f"roles: there is no bone '{printable(shown(name))}'. Name a bone of the armature")
        role = read_role(text) if text else None
        if text and role is None:
            raise RigError(
                f"roles: '{printable(shown(text))}' of '{name}' is no role. Write one such as 'left hand', "
                "'spine 2' or '3rd left leg, bone 2'"
            )
        if role and role != figure.roles.get(name):
            taken = next((bone for bone, each in wanted.items() if each == role), "")
            if taken:
                raise RigError(f"roles: '{taken}' and '{name}' are both '{text}'. Change one of them")
            wanted[name] = role
    left = {
        name: role
        for name, role in figure.roles.items()
        if role not in wanted.values() and name not in wanted and changes.get(name, role.words())
    }
    roles = left | wanted
    return replace(figure, kind=_kind_by_limbs(figure.kind, roles), roles=roles)


def _kind_by_limbs(kind: Kind, roles: Mapping[str, Role]) -> Kind:
    """Return the kind of a figure on two or four legs by its limbs, and others unchanged."""
    parts = {role.part for role in roles.values()}
    if kind not in (Kind.HUMAN, Kind.BIPED, Kind.BIRD, Kind.QUADRUPED):
        return kind
    if not parts.isdisjoint(FRONT_PARTS):
        return Kind.QUADRUPED
    if parts.isdisjoint(ARM_PARTS[1:4]):  # a wing has a shoulder and fingers too
        return Kind.BIRD if Part.WING in parts else kind
    return kind if kind is Kind.HUMAN else Kind.BIPED


def _turned(tree: SkeletonTree, up: Vector) -> SkeletonTree:
    """Rotate bones so that a direction points up."""
    turn = up.rotation_difference(UP).to_matrix()
    return SkeletonTree(
        bone._replace(head=tuple(turn @ Vector(bone.head)), tail=tuple(turn @ Vector(bone.tail)))
        for bone in tree.bones.values()
    )


def _stands(tree: SkeletonTree, roles: Mapping[str, Role]) -> bool:
    """Whether legs drop more than they run: those of a human who lies run along the ground."""
    legs = [name for name, role in roles.items() if role.part in LEG_PARTS and role.side is Side.LEFT]
    places = [Vector(tree.bones[name].head) for name in legs]
    way = places[-1] - places[0] if places else Vector()
    return way.z < -way.xy.length


def _on_all_fours(tree: SkeletonTree, roles: Mapping[str, Role]) -> bool:
    """Whether bones with a human's names have an animal's rest pose: legs at a right angle to the back."""
    place = {role: Vector(tree.bones[name].head) for name, role in roles.items()}
    thighs, arms = (
        [place[Role(part, side)] for side in (Side.LEFT, Side.RIGHT)] for part in (Part.THIGH, Part.UPPER_ARM)
    )
    leg = place[Role(Part.FOOT, Side.LEFT)] - thighs[0]
    back = 0.5 * (arms[0] + arms[1] - thighs[0] - thighs[1])
    return abs(leg.dot(back)) < FOURS * leg.length * back.length


def _has_more_limbs(tree: SkeletonTree, roles: Mapping[str, Role], by_place: Mapping[str, Role]) -> bool:
    """Whether bones with a human's names have further arms or legs, by names and structure."""
    for name, role in by_place.items():
        limb = [each for each in tree.ancestors(name) if words.read(each).side is not Side.MIDDLE]
        known = any(each in roles for each in limb)
        called = any(words.says(each, clue) for each in limb for clue in (Clue.ARM, Clue.LEG))
        if role.part in (Part.LOWER_ARM, Part.HAND, Part.FOOT, Part.FRONT_FOOT) and called and not known:
            return True
    return False


def _sided_by_names(roles: dict[str, Role]) -> dict[str, Role]:
    """Swap left and right if most names contradict the sides of the structure."""
    votes = 0
    for name, role in roles.items():
        said = words.read(name).side
        if Side.MIDDLE not in (said, role.side):
            votes += 1 if said is role.side else -1
    if votes >= 0:
        return roles
    return {name: replace(role, side=OTHER_SIDE[role.side]) for name, role in roles.items()}


def _upright(matrix_world: Matrix) -> Matrix:
    """Return the rotation of the armature's axis nearest to world Z to Z."""
    rows = matrix_world.to_3x3()
    lengths = [max(rows.col[k].length, 1e-12) for k in range(3)]
    rises = [rows.col[k].z / lengths[k] for k in range(3)]
    axis = max(range(3), key=lambda k: abs(rises[k]) + (1e-3 if k == 2 else 0.0))
    up = Vector((0.0, 0.0, 0.0))
    up[axis] = 1.0 if rises[axis] > 0.0 else -1.0
    return up.rotation_difference(UP).to_matrix()
