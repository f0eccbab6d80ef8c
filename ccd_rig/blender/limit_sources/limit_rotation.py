# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits from Blender's Limit Rotation constraints: ranges of Euler angles, in the bone's own axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import bpy

from ...errors import RigError
from ...limits.shapes import EulerBox, Limit
from ..keys.channels import animated_components
from ..properties.limit_groups import store_limits
from ..properties.names_in_words import named
from .chosen_bones import Outcome


def constraint_of(pose_bone: bpy.types.PoseBone) -> Any | None:
    """The Limit Rotation constraint that counts: the first that is not muted, else the first."""
    found = [c for c in pose_bone.constraints if c.type == "LIMIT_ROTATION"]
    return next((c for c in found if not c.mute), found[0] if found else None)


def box(pose_bone: bpy.types.PoseBone, constraint: Any) -> EulerBox:
    """What a Limit Rotation constraint allows.

    Raises:
        RigError: it is not about the bone's own axes, it limits nothing, or a bound contradicts another.
    """
    where = f"bone '{pose_bone.name}', constraint '{constraint.name}'"
    if constraint.owner_space != "LOCAL":
        raise RigError(
            f"{where}: its Owner is not Local Space, so it limits no rotation relative to rest: set it to "
            "Local Space, and its ranges to that"
        )
    order = constraint.euler_order
    if order == "AUTO":
        order = pose_bone.rotation_mode if pose_bone.rotation_mode in _ORDERS else "XYZ"
    lower, upper = [], []
    for axis in "xyz":
        used = getattr(constraint, f"use_limit_{axis}")
        ends = (getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}"))
        if used and ends[0] > ends[1]:
            raise RigError(
                f"{where}: {axis.upper()} Min ({math.degrees(ends[0]):.4g}°) is above Max "
                f"({math.degrees(ends[1]):.4g}°): swap them"
            )
        lower.append(ends[0] if used else -math.pi)
        upper.append(ends[1] if used else math.pi)
    if not any(getattr(constraint, f"use_limit_{axis}") for axis in "xyz"):
        raise RigError(f"{where}: it limits no axis: tick one")
    return EulerBox(order, tuple(lower), tuple(upper))


_ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


def take_over(pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Give bones the limits of their Limit Rotation constraints, which stay as they are.

    Bones whose constraint cannot be a limit are left as they are, and named.

    Raises:
        RigError: no bone has such a constraint, or none of them can be a limit. Nothing has changed then.
    """
    found = {bone: constraint for bone in pose_bones if (constraint := constraint_of(bone)) is not None}
    if not found:
        raise RigError(f"no Limit Rotation constraint is on {named([bone.name for bone in pose_bones])}")
    limits: dict[bpy.types.PoseBone, Limit | None] = {}
    notes = []
    for bone, constraint in found.items():
        try:
            limits[bone] = box(bone, constraint)
        except RigError as error:
            notes.append(str(error))
    if not limits:
        raise RigError(notes[0])
    store_limits(limits)
    animated = {path for path, _ in animated_components(pose_bones[0].id_data)}
    for bone in limits:
        notes += _differences(bone, found[bone], animated)
    return Outcome(tuple(bone.name for bone in limits), tuple(notes))


def _differences(pose_bone: bpy.types.PoseBone, constraint: Any, animated: set[str]) -> list[str]:
    """In what a constraint does not do what the limit does, in words."""
    path = constraint.path_from_id()
    moving = sorted(each[len(path) + 1 :] for each in animated if each.startswith(f"{path}."))
    others = [c for c in pose_bone.constraints if c.type == "LIMIT_ROTATION" and c != constraint]
    where = f"bone '{pose_bone.name}', constraint '{constraint.name}'"
    notes = []
    if constraint.mute:
        notes.append(f"{where} is muted; the limit holds nevertheless")
    if constraint.influence < 1.0:
        notes.append(f"{where} has an influence of {constraint.influence:.2g}; the limit holds fully")
    if moving:
        notes.append(f"{where}: {', '.join(moving)} is animated; the limit keeps the present value")
    if others:
        notes.append(f"bone '{pose_bone.name}' has {len(others)} more such; they are left out")
    return notes
