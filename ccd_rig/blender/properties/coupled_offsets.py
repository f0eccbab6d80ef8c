# SPDX-License-Identifier: GPL-3.0-or-later
"""Coupled offsets as a pose bone stores them, and the way from there to the core's values.

Axes and shifts are those of the bone's location channel. Angles are radians, shown in degrees.
"""

import math
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    FloatProperty,
    FloatVectorProperty,
    StringProperty,
)

from ...errors import InvalidInput, RigError
from ...skeleton.coupled_offset import CoupledOffset
from ..languages.translation import CONTEXT
from . import overrides
from .solver_settings import OVERRIDE

WIDEST = 2.0 * math.pi
"""Radians of the widest angle that the panel offers."""
STEP = math.pi / 6
"""Radians by which a new point lies beyond the last one."""


class CCD_RIG_PG_offset_point(bpy.types.PropertyGroup):
    """One point of the curve: the shift at an angle."""

    # Not animated, like all that is in rows that may be removed.
    name: StringProperty(
        name="Name", description="What the point is called in overrides", override=OVERRIDE, options=set()
    )
    angle: FloatProperty(
        name="Angle",
        description="Angle of the driver bone's hinge from rest",
        min=-WIDEST,
        max=WIDEST,
        subtype="ANGLE",
        override=OVERRIDE,
        options=set(),
    )
    shift: FloatProperty(
        name="Shift",
        translation_context=CONTEXT,
        description="Shift along the axis at this angle, as the bone's location shows it",
        soft_min=-10.0,
        soft_max=10.0,
        precision=4,
        unit="LENGTH",
        override=OVERRIDE,
        options=set(),
    )
    slope: FloatProperty(
        name="Slope",
        description="Steepness of the curve at this angle: shift per radian",
        soft_min=-10.0,
        soft_max=10.0,
        precision=4,
        unit="LENGTH",
        override=OVERRIDE,
        options=set(),
    )


class CCD_RIG_PG_coupled_offset(bpy.types.PropertyGroup):
    """A shift of the bone that is a function of a hinge's angle."""

    name: StringProperty(
        name="Name", description="What the offset is called in overrides", override=OVERRIDE, options=set()
    )
    driver: StringProperty(
        name="Driver Bone",
        description="The bone whose hinge angle gives the shift: one of the bone's parents; empty for the "
        "bone itself",
        override=OVERRIDE,
        options=set(),
    )
    axis: FloatVectorProperty(
        name="Axis",
        description="Direction of the shift in the axes of the bone's location; Y points along the bone",
        size=3,
        default=(0.0, 1.0, 0.0),
        subtype="XYZ",
        override=OVERRIDE,
        options=set(),
    )
    points: CollectionProperty(
        name="Points",
        description="Points of the curve from angles to shifts, in any order; beyond its ends it is straight",
        type=CCD_RIG_PG_offset_point,
        override=OVERRIDE | {"USE_INSERTION"},
    )
    use_slopes: BoolProperty(
        name="Own Slopes",
        description="Give the curve its slope at each point; off: the smoothest curve through the points",
        override=OVERRIDE,
        options=set(),
    )


# Rows -------------------------------------------------------------------------------------------------------


def add(pose_bone: bpy.types.PoseBone) -> Any:
    """Append a coupled offset without a shift, from rest to a right angle of the bone's own hinge."""
    row = pose_bone.ccd_rig.coupled_offsets.add()
    row.points.add()
    row.points.add().angle = math.pi / 2
    name_rows(pose_bone)
    overrides.keep(pose_bone.id_data)
    return row


def remove(pose_bone: bpy.types.PoseBone, index: int) -> None:
    """Take a coupled offset away.

    Raises:
        RigError: there is none of this number, or it comes from the library of an override.
    """
    _require_row(pose_bone, index)
    if index < len(from_library(pose_bone)):
        raise RigError("This coupled offset comes from the library's file: remove it there")
    pose_bone.ccd_rig.coupled_offsets.remove(index)


def remove_point(pose_bone: bpy.types.PoseBone, index: int, point: int) -> None:
    """Take a point of a coupled offset's curve away.

    Raises:
        RigError: there is no such point, the curve has but two, or the point comes from the library of an
            override.
    """
    points, library = _require_row(pose_bone, index).points, from_library(pose_bone)
    if point >= len(points):
        raise RigError(f"Bone '{pose_bone.name}' has no point {point + 1} in its coupled offset {index + 1}")
    if len(points) <= 2:
        raise RigError("A curve needs two points: move one of them, or remove the coupled offset")
    if index < len(library) and point < library[index]:
        raise RigError("This point comes from the library's file: remove it there")
    points.remove(point)


def _require_row(pose_bone: bpy.types.PoseBone, index: int) -> Any:
    rows = pose_bone.ccd_rig.coupled_offsets
    if index >= len(rows):
        raise RigError(f"Bone '{pose_bone.name}' has no coupled offset {index + 1}")
    return rows[index]


def add_point(pose_bone: bpy.types.PoseBone, index: int) -> Any:
    """Append a point to a coupled offset: beyond the last one, with the same shift.

    Raises:
        RigError: there is none of this number.
    """
    points = _require_row(pose_bone, index).points
    last = max(points, key=lambda point: point.angle, default=None)
    angle, shift = (0.0, 0.0) if last is None else (last.angle + STEP, last.shift)
    point = points.add()
    point.angle, point.shift = angle, shift
    name_rows(pose_bone)
    overrides.keep(pose_bone.id_data)
    return point


def name_rows(pose_bone: bpy.types.PoseBone) -> None:
    """Name the rows that have no name: Blender tells the rows of an override apart by their names.

    Rows beside rows of a library that have none stay without: there it counts them.
    """
    library, rows = from_library(pose_bone), pose_bone.ccd_rig.coupled_offsets
    _name("Offset", rows, len(library))
    for index, row in enumerate(rows):
        _name("Point", row.points, library[index] if index < len(library) else 0)


def from_library(pose_bone: bpy.types.PoseBone) -> list[int]:
    """How many points each coupled offset has that comes from the library of an override.

    Blender keeps these, and puts rows that are added to an override after them.
    """
    owner: Any = pose_bone.id_data
    override = owner.override_library
    if override is None or override.reference is None:
        return []
    reference = override.reference.pose.bones.get(pose_bone.name)
    return [] if reference is None else [len(row.points) for row in reference.ccd_rig.coupled_offsets]


def _name(stem: str, rows: Any, library: int) -> None:
    if not all(row.name for row in rows[:library]):
        return
    taken = {row.name for row in rows}
    free = (name for k in range(1, 2 * len(rows) + 1) if (name := f"{stem} {k}") not in taken)
    for row in rows:
        if not row.name:
            row.name = next(free)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def name_all(*_arguments: object) -> None:
    """Before a file is saved: rows that scripts have added get names."""
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE" and thing.library is None:
            for bone in thing.pose.bones:
                if bone.is_property_set("ccd_rig") and len(bone.ccd_rig.coupled_offsets):
                    name_rows(bone)


def register() -> None:
    """Listen to saving."""
    bpy.app.handlers.save_pre.append(name_all)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.save_pre.remove(name_all)


# Values -----------------------------------------------------------------------------------------------------


def coupled_offsets(pose_bone: bpy.types.PoseBone) -> tuple[CoupledOffset, ...]:
    """The coupled offsets of a bone in the axes and the unit of its location channel.

    Raises:
        RigError: names the bone, the offset and what makes no sense.
    """
    rows = enumerate(pose_bone.ccd_rig.coupled_offsets, start=1)
    return tuple(_value(pose_bone.name, number, row) for number, row in rows)


def followers(armature_object: bpy.types.Object, chains: Collection[str]) -> list[str]:
    """Bones outside of the chains with an offset whose driver is a bone of the chains: kneecaps."""
    return [
        bone.name
        for bone in armature_object.pose.bones
        if bone.name not in chains
        and bone.is_property_set("ccd_rig")  # reading it would make it
        and any(row.driver in chains for row in bone.ccd_rig.coupled_offsets if row.driver)
    ]


def _value(bone: str, number: int, row: Any) -> CoupledOffset:
    where = f"bone '{bone}', coupled offset {number}"
    points = [(point.angle, point.shift, point.slope) for point in row.points]
    if len(points) < 2:
        raise RigError(f"{where}: its curve has {len(points)} points: give it two at least, or remove it")
    if not all(math.isfinite(value) for point in points for value in point):
        raise RigError(f"{where}: a point of its curve is not a number: set its angle, shift and slope")
    if not any(row.axis):
        raise RigError(f"{where}: its axis is zero: give the direction of the shift, such as (0, 1, 0)")
    points.sort()
    for (angle, *_), (after, *_) in pairwise(points):
        if angle == after:
            raise RigError(
                f"{where}: two points of its curve are at {math.degrees(angle):.4g}°: move or remove one"
            )
    angles, shifts, slopes = zip(*points, strict=True)
    try:
        return CoupledOffset(
            row.driver or bone, tuple(row.axis), angles, shifts, slopes if row.use_slopes else None
        )
    except InvalidInput as error:
        raise RigError(f"{where}: {error}") from error
