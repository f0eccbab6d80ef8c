# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounds of limits at the present pose, as the bones show it, constraints included."""

from __future__ import annotations

import math
from collections.abc import Sequence

import bpy

from ...errors import InvalidInput, RigError
from ...limits.outlines import with_bound_at, with_rim_at
from ..properties.joints import limit_of, store_limits
from ..properties.names import named
from ..viewport.limits import bone_axes
from .chosen_bones import Outcome

KINDS = {"MIN": ("HINGE", "TWIST", "EULER"), "MAX": ("HINGE", "TWIST", "EULER"), "SWING": ("CONE", "ELLIPSE")}
"""Of which kinds of limit a bound can be set; a cone and an ellipse that limit twist have a Min and a Max."""


def has_bound(pose_bone: bpy.types.PoseBone, bound: str) -> bool:
    """Whether a bone's limit has a Min and a Max, or the border of a swing (SWING)."""
    group = pose_bone.ccd_rig.limit
    return group.kind in KINDS[bound] or (
        bound != "SWING" and group.kind in KINDS["SWING"] and group.use_twist
    )


def set_bounds(pose_bones: Sequence[bpy.types.PoseBone], bound: str) -> Outcome:
    """Put a bound of the bones' limits where the bones are now.

    Args:
        pose_bones: of one armature; those whose limit has no such bound stay as they are.
        bound: "MIN" or "MAX" of all angles, or "SWING": the border of cones and ellipses.

    Raises:
        RigError: no limit has such a bound, a limit contradicts itself, or a bone shows no rotation. Nothing
            has changed then.
    """
    able = [bone for bone in pose_bones if has_bound(bone, bound)]
    if not able:
        kinds = "a cone or an ellipse" if bound == "SWING" else "a hinge, a twist range or Euler angles"
        raise RigError(
            f"{_subject([bone.name for bone in pose_bones])} no limit with {kinds}: choose one first"
        )
    limits = {}
    for bone in able:
        limit = limit_of(bone.name, "limit", bone.ccd_rig.limit)
        if not math.isfinite(sum(map(sum, bone.matrix))):  # one number that is not makes the sum so
            raise RigError(f"bone '{bone.name}' is nowhere: clear its transform and its parents'")
        assert limit is not None
        rotation = bone_axes(bone).rotation
        try:
            if bound == "SWING":
                limits[bone] = with_rim_at(limit, rotation)
            else:
                limits[bone] = with_bound_at(limit, rotation, bound == "MAX")
        except InvalidInput as error:
            raise RigError(f"bone '{bone.name}': {error}; pose it where its limit should end") from error
    store_limits(limits)
    left = [bone.name for bone in pose_bones if bone not in able]
    notes = (f"{_subject(left)} no such bound and stay as they are",) if left else ()
    return Outcome(tuple(bone.name for bone in able), notes)


def _subject(names: Sequence[str]) -> str:
    return f"bone {named(names)} has" if len(names) == 1 else f"bones {named(names)} have"
