# SPDX-License-Identifier: GPL-3.0-or-later
"""Which armature the user works on: the active object, or the rig whose target it is."""

from __future__ import annotations

import bpy


def active_rig(context: bpy.types.Context) -> bpy.types.Object | None:
    """The active armature; while a target or a pole is active, the first armature that reaches for it."""
    active = context.object
    if active is None or active.type == "ARMATURE":
        return active
    for other in context.scene.objects:
        if other.type == "ARMATURE" and any(
            active in (row.target, row.pole_target) for row in other.ccd_rig.constraints
        ):
            return other
    return None


def linked(rig: bpy.types.Object) -> str:
    """Why a rig cannot be changed, in words; empty where it can."""
    if rig.is_editable:
        return ""
    return f"'{rig.name}' is linked from a library: make a library override of it first"
