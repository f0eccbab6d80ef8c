# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature that the user works on: the active object, or the rig whose target is active."""

from __future__ import annotations

import bpy


def active_rig(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the active armature; for an active target or pole, the first armature that reaches for it."""
    active = context.object
    if active is None or active.type == "ARMATURE":
        return active
    for obj in context.scene.objects:
        if obj.type == "ARMATURE" and any(
            active in (row.target, row.pole_target) for row in obj.ccd_rig.constraints
        ):
            return obj
    return None


def linked(rig: bpy.types.Object) -> str:
    """Say why a rig cannot be edited (it is linked); empty if it can."""
    if rig.is_editable:
        return ""
    return f"'{rig.name}' is linked from a library: make a library override of it first"
