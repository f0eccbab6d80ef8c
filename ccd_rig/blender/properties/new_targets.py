# SPDX-License-Identifier: GPL-3.0-or-later
"""Empties that are made as targets: their size and colour, and the collection that holds those of a rig."""

from __future__ import annotations

import re

import bpy
from mathutils import Vector

EMPTY_SIZE = 0.3  # part of the bone's length
LEAST_SIZE, MOST_SIZE = 0.01, 0.05  # parts of the rig's size between which that is kept
MADE = "ccd_rig_target"  # mark of the targets that are made here, and of their collection
COLOURS = {"L": (0.2, 0.45, 1.0, 1.0), "R": (1.0, 0.25, 0.2, 1.0), "": (1.0, 0.8, 0.1, 1.0)}
"""Object colours by side, as rigs have them: blue, red, yellow in the middle."""


def new_target(context: bpy.types.Context, owner: bpy.types.Object, name: str, tip: str) -> bpy.types.Object:
    """An empty for a bone, sized and coloured to suit it, in the collection of the rig's targets."""
    empty = bpy.data.objects.new(name, None)
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    axis = evaluated.matrix_world.to_3x3() @ Vector(evaluated.pose.bones[tip].vector)
    empty.empty_display_type = "SPHERE"
    size = max(Vector(owner.dimensions).length, 1e-3 / LEAST_SIZE)
    empty.empty_display_size = min(max(EMPTY_SIZE * axis.length, LEAST_SIZE * size), MOST_SIZE * size)
    empty.show_in_front = True
    empty.color[:] = COLOURS[_side(tip)]
    empty[MADE] = True
    _collection(context, owner).objects.link(empty)
    return empty


def is_left_over(target: bpy.types.Object) -> bool:
    """Whether a target was made here, and nothing uses it but the collections that it is in."""
    return bool(target.get(MADE)) and target.users <= len(target.users_collection)


def remove(target: bpy.types.Object) -> None:
    """Remove a target that was made here, and its collection if that is empty then."""
    homes = list(target.users_collection)
    bpy.data.objects.remove(target)
    for home in homes:
        if home.get(MADE) and not home.all_objects and not home.children:
            bpy.data.collections.remove(home)


def _side(name: str) -> str:
    """ "L" or "R" for a bone of one side, by Blender's own rules of names; else empty."""
    if bpy.utils.flip_name(name) == name:
        return ""
    ends = name.lower().replace("left", "l").replace("right", "r")
    words = [word for word in re.split(r"[^a-z]+", ends) if word in ("l", "r")]
    return words[-1].upper() if words else ""


def _collection(context: bpy.types.Context, owner: bpy.types.Object) -> bpy.types.Collection:
    """The collection of a rig's targets, made beside the rig where it has none yet."""
    targets = [row.target for row in owner.ccd_rig.constraints if row.target is not None]
    for known in (each for target in targets for each in target.users_collection):
        if known.get(MADE) and known.is_editable:
            return known
    made = bpy.data.collections.new(f"Targets of {owner.name}")
    made[MADE] = True
    beside = next((each for each in owner.users_collection if each.is_editable), context.scene.collection)
    beside.children.link(made)
    return made
