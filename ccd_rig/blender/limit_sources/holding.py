# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits made wide enough for the pose that bones stand in, and for the motion that they have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import bpy
from mathutils import Quaternion

from ...limits.fitting import FitSettings
from ...limits.shapes import Limit
from ...limits.widening import widened
from ..properties.names_in_words import named
from ..viewport.bone_axes import bone_axes

Rotations = Mapping[bpy.types.PoseBone, Sequence[Quaternion]]


def present_rotations(pose_bones: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, list[Quaternion]]:
    """The rotation that each bone shows now, relative to rest; bones that are nowhere have none."""
    shown = [bone for bone in pose_bones if math.isfinite(sum(map(sum, bone.matrix)))]
    return {bone: [bone_axes(bone).rotation] for bone in shown}


def held(
    limits: Mapping[bpy.types.PoseBone, Limit | None], rotations: Rotations, what: str
) -> tuple[dict[bpy.types.PoseBone, Limit | None], list[str]]:
    """The limits, wider where bones have rotations outside of them; and what was changed, in sentences.

    Args:
        limits: of bones.
        rotations: of these bones, relative to rest.
        what: the rotations in words, such as "the present pose".
    """
    found: dict[bpy.types.PoseBone, Limit | None] = {}
    wider, left_out = [], []
    for bone, limit in limits.items():
        wide = None if limit is None else widened(limit, rotations.get(bone, ()), FitSettings().margin)
        if limit is not None and wide is None:
            left_out.append(bone.name)
            continue
        found[bone] = wide
        if wide != limit:
            wider.append(bone.name)
    notes = [f"Wider than measured, to hold {what}: {named(wider)}"] if wider else []
    if left_out:
        notes.append(f"{named(left_out)} left as before: {what} turns about other axes than the joint's")
    return found, notes
