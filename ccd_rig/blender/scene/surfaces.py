# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves the points of a mesh, curve or lattice: modifiers, shape keys, data, and simulations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bpy

SIMULATIONS = {"CLOTH": "cloth", "SOFT_BODY": "soft body", "FLUID": "fluid"}
"""Modifiers that move points by what was before: kind of modifier -> word for it."""


def shapers(thing: bpy.types.Object) -> Iterator[tuple[bpy.types.ID, str]]:
    """What an object's surface is deformed by: objects, each with the name of a bone or none, and data-blocks
    whose keys and drivers move points (a curve with its evaluation time, shape keys)."""
    data: Any = thing.data
    if data is None or thing.type == "ARMATURE":
        return
    if isinstance(data, bpy.types.Curve):
        yield data, ""
    if getattr(data, "shape_keys", None) is not None:
        yield data.shape_keys, ""
    for modifier in thing.modifiers:
        subtarget = getattr(modifier, "subtarget", "")
        for prop in modifier.bl_rna.properties:
            value = getattr(modifier, prop.identifier) if prop.type == "POINTER" else None
            if not isinstance(value, bpy.types.Object):
                continue
            bones: list[str] = []
            if value.pose is not None:
                bones = [subtarget] if subtarget else [bone.name for bone in value.pose.bones]
                bones = bones if modifier.type == "ARMATURE" or subtarget else []
            yield from ((value, bone) for bone in bones or [""])


def simulation(thing: bpy.types.Object) -> str:
    """The simulation that moves an object's surface, in words, and has no baked cache; or nothing."""
    for modifier in thing.modifiers:
        if modifier.type in SIMULATIONS:
            cache = getattr(modifier, "point_cache", None)
            if cache is None or not cache.is_baked:
                return f"the {SIMULATIONS[modifier.type]} '{modifier.name}'"
    return ""
