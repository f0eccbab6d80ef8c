# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins: bones that do not move in a drag. Pose bones store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bpy

from ..figures import rigify
from ..figures.role import Figure, Part
from ..properties.joints import PINS

STANDING = 0.05
"""Largest height of a standing foot above the lowest one, in the figure's height."""
FEET = (Part.FOOT, Part.FRONT_FOOT)

NEXT = {name: PINS[(k + 1) % len(PINS)][0] for k, (name, *_) in enumerate(PINS)}
"""{kind of a pin: kind after the next press of its key}"""


def pins_of(armature_object: bpy.types.Object) -> dict[str, bool]:
    """Return {pinned bone: whether its rotation is pinned too}."""
    kinds = {bone.name: bone.ccd_rig.pin for bone in armature_object.pose.bones}
    return {name: kind == "ROTATION" for name, kind in kinds.items() if kind in ("PLACE", "ROTATION")}


def standing_feet(armature_object: bpy.types.Object, figure: Figure) -> dict[str, bool]:
    """Return pins of feet on the ground in the present pose: the feet least above their rest.

    At rest all feet stand: a paw may begin at the wrist, beside a foot with toes. Feet are pinned with their
    rotations, last bones of many legs by their places alone. On rigs that Rigify has generated they are the
    copies of the metarig's bones, which follow IK or FK controls.
    """
    world, bones = armature_object.matrix_world, armature_object.pose.bones
    feet = {name: True for name, role in figure.roles.items() if role.part in FEET}
    feet |= dict.fromkeys(_last_of_legs(figure), False)
    if rigify.is_generated(armature_object.data):
        feet = {rigify.original_of(name): held for name, held in feet.items()}
    feet = {name: held for name, held in feet.items() if name in bones}
    if not feet:
        return {}
    lifted = {name: _lowest(world, bones[name]) - _lowest(world, bones[name].bone) for name in feet}
    heights = [(world @ end).z for bone in bones for end in (bone.head, bone.tail)]
    reach = STANDING * (max(heights) - min(heights))
    ground = min(lifted.values())
    return {name: held for name, held in feet.items() if lifted[name] <= ground + reach}


def _last_of_legs(figure: Figure) -> list[str]:
    last: dict[tuple[Any, int], tuple[int, str]] = {}
    for name, role in figure.roles.items():
        if role.part is Part.LEG:
            limb = role.side, role.number
            last[limb] = max(last.get(limb, (-1, "")), (role.index, name))
    return [name for _, name in last.values()]


def _lowest(world: Any, bone: bpy.types.PoseBone | bpy.types.Bone) -> float:
    """Height of the lowest end of a bone and its children, world space: posed, or at rest."""
    every = (bone, *bone.children_recursive)
    if isinstance(bone, bpy.types.Bone):
        ends = [end for each in every for end in (each.head_local, each.tail_local)]
    else:
        ends = [end for each in every for end in (each.head, each.tail)]
    return float(min((world @ end).z for end in ends))


def in_words(pins: Mapping[str, bool]) -> str:
    """Return the number of pins as text, for a status line."""
    return f"{len(pins)} pin{'' if len(pins) == 1 else 's'}"
