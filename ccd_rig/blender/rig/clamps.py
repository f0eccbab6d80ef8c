# SPDX-License-Identifier: GPL-3.0-or-later
"""Clamps: Blender constraints that show a pose without changing channels or keys.

A clamp is a Limit Rotation or Limit Location in local space whose lower and upper bounds are equal. It is
first in the stack. The rig's constraints therefore act on top of it, as on keys. Clamps are never saved in a
file, and none are added while clamps are suspended.

A clamp is recognised by all its settings and the start of its name: Blender adds a number if a constraint of
the user has the same name.

Blender's transform operators keep pointers to the constraints of the bones that they move. A clamp that is
not needed during a preview therefore gets influence 0; only the end of a preview removes clamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import bpy
from mathutils import Euler, Quaternion

ROTATION, LOCATION = "CCD Rig Live", "CCD Rig Live Location"
"""Names of the constraints; the second begins as the first does."""
TYPES = {"LIMIT_ROTATION": ROTATION, "LIMIT_LOCATION": LOCATION}
SWITCHES = {
    ROTATION: tuple(f"use_limit_{axis}" for axis in "xyz"),
    LOCATION: tuple(f"use_{end}_{axis}" for end in ("min", "max") for axis in "xyz"),
}
BOUNDS = tuple((f"min_{axis}", f"max_{axis}") for axis in "xyz")
_LOWER, _UPPER = (attrgetter(*names) for names in zip(*BOUNDS, strict=True))
_SWITCHED = {name: attrgetter(*switches) for name, switches in SWITCHES.items()}

Place = tuple[str, str]
"""Address of a clamp: name of its bone, and `ROTATION` or `LOCATION`."""
Values = tuple[float, ...]
"""Bounds of a clamp on X, Y and Z, single precision."""

_suspensions: list[object] = []  # one entry for each running block of `suspended`


def user_constraints(pose_bone: Any) -> Iterator[Any]:
    """Yield the constraints of a bone that are not clamps."""
    return (constraint for constraint in pose_bone.constraints if not kind_of(constraint))


def acting_constraints(pose_bone: Any) -> Iterator[Any]:
    """Yield the user's constraints of a bone that are in force."""
    return (each for each in user_constraints(pose_bone) if not each.mute and each.influence > 0.0)


def clamps_of(armature_object: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the clamps of an armature: pose bone and constraint."""
    for pose_bone in armature_object.pose.bones:
        for constraint in pose_bone.constraints:
            if kind_of(constraint):
                yield pose_bone, constraint


def kind_of(constraint: Any) -> str:
    """Return `ROTATION` or `LOCATION` for a clamp, empty for any other constraint."""
    name = TYPES.get(constraint.type, "")
    is_clamp = (
        name
        and constraint.name.startswith(name)
        and constraint.owner_space == "LOCAL"
        and all(_SWITCHED[name](constraint))
        and _LOWER(constraint) == _UPPER(constraint)
    )
    return name if is_clamp else ""


def rotation_clamp(rotation: Quaternion) -> Values:
    """Return the bounds of a clamp that shows a rotation relative to rest, radians."""
    return tuple(rotation.to_euler("XYZ"))


def shown_rotations(armature_object: Any) -> dict[str, Quaternion]:
    """Return the rotations relative to rest that clamps show, by bone."""
    return {
        bone.name: Euler(_LOWER(clamp), "XYZ").to_quaternion()
        for bone, clamp in clamps_of(armature_object)
        if kind_of(clamp) == ROTATION and clamp.influence > 0.0
    }


def show(armature_object: Any, pose: Mapping[Place, Values], before: Iterable[Place]) -> bool:
    """Show a pose.

    Args:
        pose: bounds of clamps: those of `rotation_clamp`, or values of a location channel.
        before: clamps that may exist; clamps that are not in `pose` get influence 0.

    Returns:
        Whether a constraint has changed.
    """
    pose_bones, changed = armature_object.pose.bones, False
    for (bone, name), values in pose.items():
        changed |= _clamp(pose_bones[bone], name, values)
    for bone, name in before:
        if (bone, name) not in pose and bone in pose_bones:
            constraint = _find(pose_bones[bone], name)
            if constraint is not None and constraint.influence != 0.0:
                constraint.influence, changed = 0.0, True
    return changed


def remove(armature_object: Any) -> None:
    """Remove all clamps of an armature."""
    for pose_bone, constraint in list(clamps_of(armature_object)):
        pose_bone.constraints.remove(constraint)


def mute_all(mute: bool) -> None:
    """Mute or unmute the clamps of all armatures in the file."""
    for obj in bpy.data.objects:
        if obj.type == "ARMATURE":
            for _, constraint in clamps_of(obj):
                constraint.mute = mute


@contextmanager
def suspended() -> Iterator[None]:
    """Mute the clamps of all armatures for the block, in which no clamps are added."""
    mark = object()
    _suspensions.append(mark)
    mute_all(True)
    try:
        yield
    finally:
        _suspensions.remove(mark)
        if not _suspensions:
            mute_all(False)


def is_suspended() -> bool:
    """Whether a block of `suspended` runs."""
    return bool(_suspensions)


def _find(pose_bone: Any, name: str) -> Any:
    """Return the clamp of a bone, or None."""
    return next((constraint for constraint in pose_bone.constraints if kind_of(constraint) == name), None)


def _clamp(pose_bone: Any, name: str, values: Values) -> bool:
    """Set the bounds of a bone's clamp, adding it if needed; whether that changed anything."""
    constraint, changed = _find(pose_bone, name), False
    if constraint is None:
        constraint, changed = _add(pose_bone, name), True
    elif constraint.influence != 1.0:
        constraint.influence, changed = 1.0, True
    for bounds, present, value in zip(BOUNDS, _LOWER(constraint), values, strict=True):
        if present != value:  # both bounds of a clamp are equal
            for bound in bounds:
                setattr(constraint, bound, value)
            changed = True
    return changed


def _add(pose_bone: Any, name: str) -> Any:
    constraint = pose_bone.constraints.new("LIMIT_ROTATION" if name == ROTATION else "LIMIT_LOCATION")
    constraint.name = name
    constraint.owner_space = "LOCAL"
    constraint.use_transform_limit = False
    if name == ROTATION:
        constraint.euler_order = "XYZ"
    for switch in SWITCHES[name]:
        setattr(constraint, switch, True)
    pose_bone.constraints.move(len(pose_bone.constraints) - 1, 0)
    return constraint
