# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints of Blender that show a pose without touching channels or keys.

A clamp is a Limit Rotation or Limit Location in the bone's own axes whose lower and upper bounds are equal.
It stands first in the stack, so that the rig's own constraints act on top, as they do on keys. Clamps never
get into a file. While they are muted nothing may make new ones.

A clamp is known by all that it is, its name among them: a constraint of the user's may have the same name,
and Blender then gives the clamp a number.

A transform by the pointer keeps references to the constraints of the bones that it moves. What is not needed
meanwhile therefore loses its influence; only the end of a preview removes clamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import bpy
from mathutils import Quaternion

ROTATION, LOCATION = "CCD Rig Live", "CCD Rig Live Location"
"""Names of the constraints; the second begins as the first does."""
TYPES = {"LIMIT_ROTATION": ROTATION, "LIMIT_LOCATION": LOCATION}
SWITCHES = {
    ROTATION: tuple(f"use_limit_{axis}" for axis in "xyz"),
    LOCATION: tuple(f"use_{end}_{axis}" for end in ("min", "max") for axis in "xyz"),
}
BOUNDS = tuple((f"min_{axis}", f"max_{axis}") for axis in "xyz")

Place = tuple[str, str]
"""A clamp: name of its bone, and `ROTATION` or `LOCATION`."""
Values = tuple[float, ...]
"""What a clamp holds on X, Y and Z, single precision."""

_suspensions: list[object] = []  # one entry for each block of `suspended` that runs


def user_constraints(pose_bone: Any) -> Iterator[Any]:
    """The constraints of a bone that are not clamps."""
    return (each for each in pose_bone.constraints if not kind_of(each))


def clamps_of(armature_object: Any) -> Iterator[tuple[Any, Any]]:
    """All clamps of an armature, each with its pose bone."""
    for pose_bone in armature_object.pose.bones:
        for constraint in pose_bone.constraints:
            if kind_of(constraint):
                yield pose_bone, constraint


def kind_of(constraint: Any) -> str:
    """`ROTATION` or `LOCATION` for a clamp; empty for another constraint."""
    if not constraint.name.startswith(ROTATION):
        return ""
    name = TYPES.get(constraint.type, "")
    is_clamp = (
        name
        and constraint.name.startswith(name)
        and constraint.owner_space == "LOCAL"
        and all(getattr(constraint, switch) for switch in SWITCHES[name])
        and all(getattr(constraint, lower) == getattr(constraint, upper) for lower, upper in BOUNDS)
    )
    return name if is_clamp else ""


def rotation_clamp(rotation: Quaternion) -> Values:
    """What shows a bone in this rotation relative to rest."""
    return tuple(rotation.to_euler("XYZ"))


def show(armature_object: Any, wanted: Mapping[Place, Values], before: Iterable[Place]) -> bool:
    """Show a pose.

    Args:
        armature_object: the original object.
        wanted: what the clamps of bones hold: radians of `rotation_clamp`, or what a location channel would.
        before: clamps that may stand there; of these, those that are not wanted stay without influence.

    Returns:
        Whether anything has changed.
    """
    pose_bones, changed = armature_object.pose.bones, False
    for (bone, name), values in wanted.items():
        changed |= _clamp(pose_bones[bone], name, values)
    for bone, name in before:
        if (bone, name) not in wanted and bone in pose_bones:
            constraint = _there(pose_bones[bone], name)
            if constraint is not None and constraint.influence != 0.0:
                constraint.influence, changed = 0.0, True
    return changed


def remove(armature_object: Any) -> None:
    """Take all clamps off an armature."""
    for pose_bone, constraint in list(clamps_of(armature_object)):
        pose_bone.constraints.remove(constraint)


def mute_all(mute: bool) -> None:
    """Mute or unmute the clamps of all armatures in the file."""
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE":
            for _, constraint in clamps_of(thing):
                constraint.mute = mute


@contextmanager
def suspended() -> Iterator[None]:
    """Within the block all armatures show their channels, and no clamps are made."""
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


def _there(pose_bone: Any, name: str) -> Any:
    """A bone's clamp, if it has one."""
    return next((each for each in pose_bone.constraints if kind_of(each) == name), None)


def _clamp(pose_bone: Any, name: str, values: Values) -> bool:
    """Let a bone's clamp hold values; whether they are new."""
    constraint, changed = _there(pose_bone, name), False
    if constraint is None:
        constraint, changed = _new(pose_bone, name), True
    elif constraint.influence != 1.0:
        constraint.influence, changed = 1.0, True
    for value, (lower, upper) in zip(values, BOUNDS, strict=True):
        if getattr(constraint, lower) != value or getattr(constraint, upper) != value:
            setattr(constraint, lower, value)
            setattr(constraint, upper, value)
            changed = True
    return changed


def _new(pose_bone: Any, name: str) -> Any:
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
