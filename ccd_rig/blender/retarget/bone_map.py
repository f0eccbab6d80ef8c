# SPDX-License-Identifier: GPL-3.0-or-later
"""Map from target bones to source bones: by roles, by names, by hand, and as a file.

A file has target and source bones by name, as JSON:

    {"bones": {"upper_arm.L": "LeftArm", "head": ""}}

Pairs of the file take precedence over roles. A bone with an empty source follows none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import bpy

from ... import json_text
from ...errors import RigError
from ...motion.retargeting.figures import FigureMap, Limb
from ..atomic_write import read
from ..figures.recognition import figure_of
from ..figures.role import Figure, Part, Role, Side
from ..properties.names import named
from . import sampling

LEGS = (
    (Part.THIGH, Part.SHIN, Part.FOOT, Part.TOE),
    (Part.FRONT_THIGH, Part.FRONT_SHIN, Part.FRONT_FOOT, Part.FRONT_TOE),
)
THIGHS = {leg[0] for leg in LEGS}
TOES = {leg[-1] for leg in LEGS}
ARM = (Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND)
ROWS = {Part.SPINE, Part.NECK, Part.TAIL, Part.TRUNK}
"""Parts with different numbers of bones in figures: bones correspond by their fraction of the row."""
FROM_THE_END = {Part.SHOULDER}
"""Parts whose last bones correspond if there are several."""
HANGING = {
    *(Part.LOWER_ARM, Part.HAND, Part.FINGER, Part.SHIN, Part.FOOT, Part.TOE),
    *(Part.FRONT_SHIN, Part.FRONT_FOOT, Part.FRONT_TOE),
}
"""Parts that hang on others of their limb."""


@dataclass(frozen=True)
class BoneMap:
    """Target bones with the source bones that they follow."""

    bones: Mapping[str, str]  # {target bone: source bone}
    missing: tuple[str, ...]  # roles of the target that the source does not have, in words
    unused: tuple[str, ...]  # roles of the source that the target does not have, in words
    figure: Figure  # the target's
    hips: str  # the target bone that carries the figure; empty if both have hips that are not mapped
    pelvis: str  # the target's hips where that is another bone, which carries more than they do; or empty
    legless: bool  # whether one of the two has no leg of thigh, shin and foot
    # By target bone of toes, the bones by which its toes go on: of its role, or of none.
    toes: Mapping[str, tuple[str, ...]]


def bone_map(
    target: bpy.types.Object, source: bpy.types.Object, by_hand: Mapping[str, str] | None = None
) -> BoneMap:
    """Map two armatures by roles, else by equal names; pairs by hand take precedence.

    Args:
        by_hand: {target bone: source bone, or empty for none}.

    Raises:
        RigError: names a bone by hand that its armature does not have.
    """
    chosen = dict(by_hand or {})
    for ours, theirs in chosen.items():
        _require_bone(target, ours)
        if theirs:
            _require_bone(source, theirs)
    figure, other = figure_of(target), figure_of(source)
    names = {bone.name for bone in source.data.bones}
    recognised = _by_roles(figure, other) or {
        bone.name: bone.name for bone in target.data.bones if bone.name in names
    }
    followed = {**recognised, **chosen}
    followed = {**_toes_of_feet(figure, followed), **followed}
    bones = {ours: theirs for ours, theirs in followed.items() if theirs}
    lost = [role for name, role in figure.roles.items() if name not in bones]
    used = set(bones.values())
    extra = [role for name, role in other.roles.items() if name not in used]
    both = (figure, other)
    hips = next((name for name in bones if figure.roles.get(name) == Role(Part.HIPS)), "")
    if not hips and not all(Role(Part.HIPS) in each.roles.values() for each in both):
        hips = next((bone.name for bone in target.data.bones if bone.name in bones), "")
    pelvis, carrier = "", _carrier(target, figure, hips)
    if carrier != hips and followed.get(carrier, bones[hips]):
        # It turns as what carries the source's hips, so that what hangs on it goes along.
        bones.setdefault(carrier, _carrier(source, other, bones[hips]))
        hips, pelvis = carrier, hips
    legless = not all(any(role.part in THIGHS for role in each.roles.values()) for each in both)
    toes = _toes_beyond(target, figure)
    return BoneMap(bones, _words(lost), _words(extra), figure, hips, pelvis, legless, toes)


def figure_map(mapped: BoneMap) -> FigureMap:
    """Convert a bone map to the core's value, with the limbs of its roles.

    Raises:
        RigError: the hips or all complete legs are missing; says which.
    """
    by_role = {role: name for name, role in mapped.figure.roles.items() if name in mapped.bones}
    if not mapped.bones:
        raise RigError("No bone of the two is alike: choose the source bone for each of the target's by hand")
    if not mapped.hips:
        raise RigError("The map has no hips: choose the source bone that carries the figure for the target's")
    legs = [limb for leg in LEGS for side in (Side.LEFT, Side.RIGHT) if (limb := _limb(by_role, leg, side))]
    legs = [replace(limb, toes=mapped.toes.get(limb.tip, ())) for limb in legs]
    if not legs and not mapped.legless:
        raise RigError(
            "The map has no leg: a thigh, a shin and a foot of one side must each follow a bone of the source"
        )
    arms = [limb for side in (Side.LEFT, Side.RIGHT) if (limb := _limb(by_role, ARM, side))]
    trunk = [name for role, name in sorted(by_role.items()) if role.part is Part.SPINE]
    head = by_role.get(Role(Part.HEAD), "")
    return FigureMap(mapped.bones, mapped.hips, tuple(legs), tuple(arms), tuple(trunk), head, mapped.pelvis)


@dataclass(frozen=True)
class _MapFile:
    bones: Mapping[str, str]  # {target bone: source bone}


def read_map(path: Path) -> Mapping[str, str]:
    """Read the pairs {target bone: source bone} of a file; raises RigError, which names the place in it."""
    return read(path, lambda text: json_text.read(text, _MapFile, "the map")).bones


def map_as_text(bones: Mapping[str, str]) -> str:
    """Return the text of a file with a map."""
    return json.dumps({"bones": dict(bones)}, indent=2, ensure_ascii=False) + "\n"


def _require_bone(armature_object: bpy.types.Object, name: str) -> None:
    if name not in armature_object.data.bones:
        raise RigError(
            f"armature '{armature_object.name}' has no bone '{json_text.shown(name)}', which the map names"
        )


def left_behind(armature_object: bpy.types.Object, names: Iterable[str], carrier: str) -> tuple[str, ...]:
    """Return the first bones on which some bones hang that stay where they are as a bone is moved.

    Those that constraints or drivers move, and all below, may be carried along by them.
    """
    bones, moved = armature_object.data.bones, sampling.moved_bones(armature_object)
    above = {bone.name for bone in bones[carrier].parent_recursive}
    left = {}
    for name in names:
        line = [name, *(bone.name for bone in bones[name].parent_recursive)]
        if name not in above and carrier not in line and moved.isdisjoint(line):
            left[next(each for each in reversed(line) if each not in above)] = name
    return tuple(left)


def told_left_behind(left: Sequence[str], hips: str) -> tuple[str, ...]:
    """Return a sentence about bones that hang on other roots than the hips, if there are any."""
    if not left:
        return ()
    return (f"Not carried along with '{hips}': {named(left)}; parent them and it to one bone",)


def _carrier(armature_object: bpy.types.Object, figure: Figure, hips: str) -> str:
    """Return the nearest bone that carries the hips with trunk, head and limbs by parenting; or the hips.

    Legs and spine may hang on a root beside each other, as in many motion files. A part that a constraint or
    driver moves, itself or a bone above it, may be carried by other bones than its parents.
    """
    bones, moved = armature_object.data.bones, sampling.moved_bones(armature_object)

    def line(name: str) -> list[str]:
        above = [name, *(bone.name for bone in bones[name].parent_recursive)]
        return above[: next((k for k, each in enumerate(above) if each in moved), len(above))]

    ways = line(hips) if hips else []
    for name, role in figure.roles.items():
        if not role.index and role.part not in HANGING:
            above = {*line(name)}
            ways = [each for each in ways if each in above] or ways
    return ways[0] if ways else hips


def _by_roles(figure: Figure, other: Figure) -> dict[str, str]:
    """Return {target bone: source bone} of equal roles."""
    bones: dict[str, str] = {}
    groups = {(role.part, role.side, role.number) for role in figure.roles.values()}
    for part, side, number in sorted(groups):
        ours, theirs = figure.bones(part, side, number), other.bones(part, side, number)
        if not theirs:
            continue
        if part in ROWS:
            bones.update(_along(ours, theirs))
        elif part in FROM_THE_END:
            bones.update(zip(reversed(ours), reversed(theirs), strict=False))
        else:
            bones.update(zip(ours, theirs, strict=False))
    return bones


def _along(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Map rows of different length: the last bone follows the last, the rest by their fraction of the row."""
    step = len(theirs) / len(ours)
    return {name: theirs[min(len(theirs), max(1, round((i + 1) * step))) - 1] for i, name in enumerate(ours)}


def _toes_of_feet(figure: Figure, followed: Mapping[str, str]) -> dict[str, str]:
    """{target bone: source bone} of toes that follow the source's foot, which has no toes.

    So they stay flat on the ground as its heel rises.
    """
    by_role = {role: name for name, role in figure.roles.items()}
    pairs = [
        (by_role.get(Role(foot, side)), by_role.get(Role(toe, side)))
        for *_, foot, toe in LEGS
        for side in Side
    ]
    return {toe: followed[foot] for foot, toe in pairs if foot and toe and followed.get(foot)}


def _toes_beyond(target: bpy.types.Object, figure: Figure) -> dict[str, tuple[str, ...]]:
    """{first bone of the toes on a foot: those by which they go on}; toes beside them are none of these."""
    beyond = {}
    for name, role in figure.roles.items():
        if role.part not in TOES or role.index or role.number:
            continue
        line = {name}
        for bone in target.data.bones[name].children_recursive:  # parents first
            other = figure.roles.get(bone.name)
            if bone.parent.name in line and (other is None or role.goes_on_as(other)):
                line.add(bone.name)
        beyond[name] = tuple(
            bone.name for bone in target.data.bones if bone.name in line and bone.name != name
        )
    return beyond


def _limb(by_role: Mapping[Role, str], bones: Sequence[Part], side: Side) -> Limb | None:
    names = [by_role.get(Role(part, side), "") for part in bones]
    if not all(names[:3]):
        return None
    kind = {Part.THIGH: "leg", Part.FRONT_THIGH: "front leg", Part.UPPER_ARM: "arm"}[bones[0]]
    is_right = side is not Side.LEFT
    girdle = "front" if bones[0] is Part.FRONT_THIGH else ""
    tip = names[3] if len(names) > 3 else ""
    upper, middle, end = names[:3]
    return Limb(f"{'right' if is_right else 'left'} {kind}", upper, middle, end, tip, girdle, is_right)


def _words(roles: Sequence[Role]) -> tuple[str, ...]:
    return tuple(role.words() for role in sorted(roles))
