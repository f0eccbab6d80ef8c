# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bone follows which: by roles, by names, by hand; and as a file.

A file holds target and source bones by name, or a preset of roles, as JSON:

    {"bones": {"upper_arm.L": "LeftArm", "head": ""}}

Bones of the file come before those that roles find. An empty name lets a bone follow nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy

from ... import json_text
from ...errors import InvalidInput, RigError
from ...motion.retargeting.figure_map import FigureMap, Limb
from ..figures.role import Figure, Part, Role, Side
from ..figures.roles import figure_of
from ..whole_files import read_text

LEGS = (
    (Part.THIGH, Part.SHIN, Part.FOOT, Part.TOE),
    (Part.FRONT_THIGH, Part.FRONT_SHIN, Part.FRONT_FOOT, Part.FRONT_TOE),
)
THIGHS = {parts[0] for parts in LEGS}
ARM = (Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND)
ROWS = {Part.SPINE, Part.NECK, Part.TAIL}
"""Parts of which figures have different numbers of bones: each follows the one as far along."""
FROM_THE_END = {Part.SHOULDER}
"""Parts whose last bones are the same, where there are several."""


@dataclass(frozen=True)
class BoneMap:
    """Target bones with the source bones that they follow.

    Attributes:
        bones: {target bone: source bone}.
        missing: roles that the target has and the source has not, in words.
        unused: roles that the source has and the target has not.
        figure: the target's.
        hips: the target bone that carries the figure; empty where hips of both are to be mapped and are not.
        legless: whether one of the two has no leg as people and beasts have them.
    """

    bones: Mapping[str, str]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    figure: Figure
    hips: str
    legless: bool


def bone_map(
    target: bpy.types.Object, source: bpy.types.Object, by_hand: Mapping[str, str] | None = None
) -> BoneMap:
    """The map of two armatures, by roles, then by equal names; pairs by hand come first.

    Args:
        target: gets the motion.
        source: has it.
        by_hand: {target bone: source bone, or empty for none}.

    Raises:
        RigError: names a bone by hand that one of them does not have.
    """
    given = dict(by_hand or {})
    for ours, theirs in given.items():
        _require_bone(target, ours)
        if theirs:
            _require_bone(source, theirs)
    figure, other = figure_of(target), figure_of(source)
    found = _by_roles(figure, other) or _by_names(target, source)
    found = {**_toes_of_feet(figure, {**found, **given}), **found, **given}
    bones = {ours: theirs for ours, theirs in found.items() if theirs}
    lost = [role for name, role in figure.roles.items() if name not in bones]
    used = set(bones.values())
    extra = [role for name, role in other.roles.items() if name not in used]
    both = (figure, other)
    hips = next((name for name in bones if figure.roles.get(name) == Role(Part.HIPS)), "")
    if not hips and not all(Role(Part.HIPS) in each.roles.values() for each in both):
        hips = next((bone.name for bone in target.data.bones if bone.name in bones), "")
    legless = not all(any(role.part in THIGHS for role in each.roles.values()) for each in both)
    return BoneMap(bones, _words(lost), _words(extra), figure, hips, legless)


def figure_map(found: BoneMap) -> FigureMap:
    """The same as the core takes it, with the limbs that its roles make.

    Raises:
        RigError: hips or a whole leg are missing; says which.
    """
    by_role = {role: name for name, role in found.figure.roles.items() if name in found.bones}
    if not found.bones:
        raise RigError("No bone of the two is alike: choose the source bone for each of the target's by hand")
    if not found.hips:
        raise RigError("The map has no hips: choose the source bone that carries the figure for the target's")
    legs = [
        limb for parts in LEGS for side in (Side.LEFT, Side.RIGHT) if (limb := _limb(by_role, parts, side))
    ]
    if not legs and not found.legless:
        raise RigError(
            "The map has no leg: a thigh, a shin and a foot of one side must each follow a bone of the source"
        )
    arms = [limb for side in (Side.LEFT, Side.RIGHT) if (limb := _limb(by_role, ARM, side))]
    trunk = [name for role, name in sorted(by_role.items()) if role.part is Part.SPINE]
    try:
        return FigureMap(
            found.bones,
            found.hips,
            tuple(legs),
            tuple(arms),
            tuple(trunk),
            by_role.get(Role(Part.HEAD), ""),
            not legs,
        )
    except InvalidInput as error:
        raise RigError(str(error)) from error


def read_map(path: Path) -> dict[str, str]:
    """Pairs of a file.

    Raises:
        RigError: it cannot be read, or does not hold {"bones": {"target": "source"}}.
    """
    try:
        content = json_text.parse(read_text(path))
    except (RigError, json_text.NotJson) as error:
        raise RigError(f"cannot read the map {path}: {error}") from None
    bones = content.get("bones") if isinstance(content, dict) else None
    if not isinstance(bones, dict) or not all(isinstance(value, str) for value in bones.values()):
        raise RigError(f'the map {path} must hold {{"bones": {{"target bone": "source bone"}}}}')
    return bones


def map_as_text(bones: Mapping[str, str]) -> str:
    """What a file of a map holds."""
    return json.dumps({"bones": dict(bones)}, indent=2, ensure_ascii=False) + "\n"


def _require_bone(armature_object: bpy.types.Object, name: str) -> None:
    if name not in armature_object.data.bones:
        raise RigError(
            f"armature '{armature_object.name}' has no bone '{json_text.shown(name)}', which the map names"
        )


def _by_roles(figure: Figure, other: Figure) -> dict[str, str]:
    """{target bone: source bone} of the same role."""
    found: dict[str, str] = {}
    groups = {(role.part, role.side, role.number) for role in figure.roles.values()}
    for part, side, number in sorted(groups):
        ours, theirs = figure.bones(part, side, number), other.bones(part, side, number)
        if not theirs:
            continue
        if part in ROWS:
            found.update(_along(ours, theirs))
        elif part in FROM_THE_END:
            found.update(zip(reversed(ours), reversed(theirs), strict=False))
        else:
            found.update(zip(ours, theirs, strict=False))
    return found


def _along(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """The last bone follows the last; those before it whichever is as far along."""
    step = len(theirs) / len(ours)
    return {name: theirs[min(len(theirs), max(1, round((i + 1) * step))) - 1] for i, name in enumerate(ours)}


def _toes_of_feet(figure: Figure, found: Mapping[str, str]) -> dict[str, str]:
    """{target bone: source bone} of toes that the source has not: they follow its foot, and so stay flat on
    the ground as its heel rises."""
    by_role = {role: name for name, role in figure.roles.items()}
    pairs = [
        (by_role.get(Role(foot, side)), by_role.get(Role(toe, side)))
        for *_, foot, toe in LEGS
        for side in Side
    ]
    return {toe: found[foot] for foot, toe in pairs if foot and toe and found.get(foot)}


def _by_names(target: bpy.types.Object, source: bpy.types.Object) -> dict[str, str]:
    names = {bone.name for bone in source.data.bones}
    return {bone.name: bone.name for bone in target.data.bones if bone.name in names}


def _limb(by_role: Mapping[Role, str], parts: Sequence[Part], side: Side) -> Limb | None:
    names = [by_role.get(Role(part, side), "") for part in parts]
    if not all(names[:3]):
        return None
    kind = {Part.THIGH: "leg", Part.FRONT_THIGH: "front leg", Part.UPPER_ARM: "arm"}[parts[0]]
    is_right = side is not Side.LEFT
    girdle = "front" if parts[0] is Part.FRONT_THIGH else ""
    tip = names[3] if len(names) > 3 else ""
    upper, middle, end = names[:3]
    return Limb(f"{'right' if is_right else 'left'} {kind}", upper, middle, end, tip, girdle, is_right)


def _words(roles: Sequence[Role]) -> tuple[str, ...]:
    return tuple(role.words() for role in sorted(roles))
