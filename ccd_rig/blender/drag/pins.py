# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins: bones that do not move in a drag. Pose bones store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bpy

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
    """Return pins of feet on the ground in the present pose: of the lowest foot, and others about as low.

    Feet are pinned with their rotations, last bones of many legs by their places alone.
    """
    world, bones = armature_object.matrix_world, armature_object.pose.bones
    feet = {name: True for name, role in figure.roles.items() if role.part in FEET}
    feet |= dict.fromkeys(_last_of_legs(figure), False)
    feet = {name: held for name, held in feet.items() if name in bones}
    if not feet:
        return {}
    heights = {name: _lowest(world, bones[name]) for name in feet}
    every = [_lowest(world, bone) for bone in bones]
    reach = STANDING * (max(every) - min(every))
    ground = min(heights.values())
    return {name: held for name, held in feet.items() if heights[name] <= ground + reach}


def _last_of_legs(figure: Figure) -> list[str]:
    last: dict[tuple[Any, int], tuple[int, str]] = {}
    for name, role in figure.roles.items():
        if role.part is Part.LEG:
            limb = role.side, role.number
            last[limb] = max(last.get(limb, (-1, "")), (role.index, name))
    return [name for _, name in last.values()]


def _lowest(world: Any, bone: bpy.types.PoseBone) -> float:
    """Height of the lower end of a bone, world space."""
    return float(min((world @ bone.head).z, (world @ bone.tail).z))


def in_words(pins: Mapping[str, bool]) -> str:
    """Return the number of pins as text, for a status line."""
    return f"{len(pins)} pin{'' if len(pins) == 1 else 's'}"
