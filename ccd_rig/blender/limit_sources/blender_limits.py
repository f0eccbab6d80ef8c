# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits from what Blender itself allows bones: its IK's locks and ranges, and Limit Rotation constraints.

Blender's IK turns a bone by the axes that are not locked, from rest: swing (X and Z) after twist (Y). One
axis is a hinge, one and twist an ellipse whose other sides are 0: both exact. Swing to both sides is there an
ellipse in the sine of half the angle, whose rim is 0.2 degrees away for sides of 90 and 45 degrees, and 0.8
for 120 and 60. Where only one of X and Z has a range, the other side of the ellipse goes to 180 degrees, so
that it narrows with the swing to that side: by 3 % at 45 degrees, by 13 % at 90. Blender lets more through
there, and where Y is locked it does not hold such a range at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import bpy

from ...errors import RigError
from ...limits.shapes import Ellipse, EulerBox, Hinge, Limit, SwingTwist
from ..keys.channels import animated_components
from ..properties.joints import store_limits
from ..properties.names import named
from .chosen_bones import Outcome

Range = tuple[float, float]

FREE: Range = (-math.pi, math.pi)
AXES = "xyz"
_UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def has_ik_limit(pose_bone: bpy.types.PoseBone) -> bool:
    """Whether a bone locks or limits an axis for Blender's IK, or resists it."""
    return any(
        getattr(pose_bone, f"lock_ik_{axis}")
        or getattr(pose_bone, f"use_ik_limit_{axis}")
        or getattr(pose_bone, f"ik_stiffness_{axis}") > 0.0
        for axis in AXES
    )


def ik_limit(pose_bone: bpy.types.PoseBone) -> Limit | None:
    """The limit that a bone has for Blender's IK; None where all rotations are free or all are locked."""
    ranges = _ranges(pose_bone)
    twist = _about_length(pose_bone)
    if all(_is_free(ends) for ends in ranges.values()) or not any(_turns(ends) for ends in ranges.values()):
        return None
    turning = [axis for axis, ends in ranges.items() if _turns(ends)]
    if len(turning) == 1:
        (axis,) = turning
        return Hinge(_UNIT[axis], *ranges[axis])
    x, z = ranges["x"], ranges["z"]
    if _is_free(x) and _is_free(z):
        return SwingTwist(None, twist)
    return SwingTwist(Ellipse(*x, *z), twist)


def from_ik(pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Give bones the limits and the stiffness that they have for Blender's IK.

    Raises:
        RigError: none of them has any. Nothing has changed then.
    """
    found = [bone for bone in pose_bones if has_ik_limit(bone)]
    if not found:
        raise RigError(
            f"no IK limit, lock or stiffness is set in Blender for {named([b.name for b in pose_bones])}: "
            "select bones that have one"
        )
    store_limits({bone: ik_limit(bone) for bone in found})
    for bone in found:
        bone.ccd_rig.stiffness = _stiffness(bone)
    notes = []
    if stretching := [bone.name for bone in found if bone.ik_stretch > 0.0]:
        notes.append(f"IK Stretch of {named(stretching)} is left out: bones keep their length")
    if narrower := [bone.name for bone in found if _has_one_side(bone)]:
        notes.append(
            f"{named(narrower)} limit only one of X and Z: the range narrows as the bone swings about the "
            "other, where Blender's IK lets more through"
        )
    return Outcome(tuple(bone.name for bone in found), tuple(notes))


def _has_one_side(pose_bone: bpy.types.PoseBone) -> bool:
    """Whether a bone swings freely about one axis, and within a range about the other."""
    x, _, z = _ranges(pose_bone).values()
    return _is_free(x) != _is_free(z) and _turns(x) and _turns(z)


def _ranges(pose_bone: bpy.types.PoseBone) -> dict[str, Range]:
    """The angles about each axis that Blender's IK may turn a bone by, radians."""
    ranges = {}
    for axis in AXES:
        ends = FREE
        if getattr(pose_bone, f"lock_ik_{axis}"):
            ends = (0.0, 0.0)
        elif getattr(pose_bone, f"use_ik_limit_{axis}"):
            ends = getattr(pose_bone, f"ik_min_{axis}"), getattr(pose_bone, f"ik_max_{axis}")
        ranges[axis] = ends
    return ranges


def _about_length(pose_bone: bpy.types.PoseBone) -> Range | None:
    ends = _ranges(pose_bone)["y"]
    return None if _is_free(ends) else ends


def _is_free(ends: Range) -> bool:
    return ends[1] - ends[0] >= 2.0 * math.pi - 1e-5


def _turns(ends: Range) -> bool:
    return ends[1] > ends[0]


def _stiffness(pose_bone: bpy.types.PoseBone) -> float:
    """The mean over the axes that can turn; 1 where none can."""
    turning = [axis for axis, ends in _ranges(pose_bone).items() if _turns(ends)]
    if not turning:
        return 1.0
    return float(sum(getattr(pose_bone, f"ik_stiffness_{axis}") for axis in turning)) / len(turning)


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


def from_limit_rotation(pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
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
