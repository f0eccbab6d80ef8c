# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored settings of joints, and their conversion to the core's values.

Angles are stored in radians and shown in degrees. Axes and shifts of coupled offsets are in the space of the
bone's location channel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import bpy

from ...defaults import MASS, MAX_STEP, STIFFNESS, TOLERANCE
from ...errors import InvalidInput, RigError
from ..languages.translation import CONTEXT
from ..registration import STORED, UNANIMATED, Handlers
from .active_rig import keep_overrides, linked_reference, with_settings
from .limits import CCD_RIG_PG_limit, limit_of, named_value

if TYPE_CHECKING:
    from ...limits.shapes import Slide
    from ...skeleton.joints import CoupledOffset

WIDEST = 2.0 * math.pi
"""Radians of the widest angle that the panel offers."""
STEP = math.pi / 6
"""Radians by which a new point lies beyond the last one."""


class CCD_RIG_PG_offset_point(bpy.types.PropertyGroup):
    """Point of the curve from angles to shifts."""

    # Not animated: rows may be removed, and F-curves would then address a different row.
    name: UNANIMATED.text("Name", "What the point is called in overrides")
    angle: UNANIMATED.number(
        "Angle", "Angle of the driver bone's hinge from rest", min=-WIDEST, max=WIDEST, subtype="ANGLE"
    )
    shift: UNANIMATED.number(
        "Shift",
        "Shift along the axis at this angle, as the bone's location shows it",
        translation_context=CONTEXT,
        soft_min=-10.0,
        soft_max=10.0,
        precision=4,
        unit="LENGTH",
    )
    slope: UNANIMATED.number(
        "Slope",
        "Steepness of the curve at this angle: shift per radian",
        soft_min=-10.0,
        soft_max=10.0,
        precision=4,
        unit="LENGTH",
    )


class CCD_RIG_PG_coupled_offset(bpy.types.PropertyGroup):
    """Shift of a bone as a function of the angle of a hinge."""

    name: UNANIMATED.text("Name", "What the offset is called in overrides")
    driver: UNANIMATED.text(
        "Driver Bone",
        "The bone whose hinge angle gives the shift: one of the bone's parents; empty for the bone itself",
    )
    axis: UNANIMATED.vector(
        "Axis",
        "Direction of the shift in the axes of the bone's location; Y points along the bone",
        size=3,
        default=(0.0, 1.0, 0.0),
        subtype="XYZ",
    )
    points: STORED.rows(
        "Points",
        "Points of the curve from angles to shifts, in any order; beyond its ends it is straight",
        type=CCD_RIG_PG_offset_point,
    )
    use_slopes: UNANIMATED.boolean(
        "Own Slopes", "Give the curve its slope at each point; off: the smoothest curve through the points"
    )


# Rows -------------------------------------------------------------------------------------------------------


def add(pose_bone: bpy.types.PoseBone) -> Any:
    """Append a coupled offset with zero shift, from rest to a right angle of the hinge of the bone itself."""
    row = pose_bone.ccd_rig.coupled_offsets.add()
    row.points.add()
    row.points.add().angle = math.pi / 2
    name_rows(pose_bone)
    keep_overrides(pose_bone.id_data)
    return row


def remove(pose_bone: bpy.types.PoseBone, index: int) -> None:
    """Remove a coupled offset.

    Raises:
        RigError: there is no such offset, or it comes from the library of an override.
    """
    _require_row(pose_bone, index)
    try:
        pose_bone.ccd_rig.coupled_offsets.remove(index)
    except TypeError:  # Blender keeps it
        raise RigError("This coupled offset comes from the library's file: remove it there") from None


def remove_point(pose_bone: bpy.types.PoseBone, index: int, point: int) -> None:
    """Remove a point from the curve of a coupled offset.

    Raises:
        RigError: there is no such point, the curve has only two, or the point comes from the library of an
            override.
    """
    points = _require_row(pose_bone, index).points
    if point >= len(points):
        raise RigError(f"Bone '{pose_bone.name}' has no point {point + 1} in its coupled offset {index + 1}")
    if len(points) <= 2:
        raise RigError("A curve needs two points: move one of them, or remove the coupled offset")
    try:
        points.remove(point)
    except TypeError:  # Blender keeps it
        raise RigError("This point comes from the library's file: remove it there") from None


def _require_row(pose_bone: bpy.types.PoseBone, index: int) -> Any:
    rows = pose_bone.ccd_rig.coupled_offsets
    if index >= len(rows):
        raise RigError(f"Bone '{pose_bone.name}' has no coupled offset {index + 1}")
    return rows[index]


def add_point(pose_bone: bpy.types.PoseBone, index: int) -> None:
    """Append a point to a coupled offset, beyond the last one and with the same shift.

    Raises:
        RigError: there is no such offset.
    """
    points = _require_row(pose_bone, index).points
    last = max(points, key=lambda point: point.angle, default=None)
    angle, shift = (0.0, 0.0) if last is None else (last.angle + STEP, last.shift)
    point = points.add()
    point.angle, point.shift = angle, shift
    name_rows(pose_bone)
    keep_overrides(pose_bone.id_data)


def name_rows(pose_bone: bpy.types.PoseBone) -> None:
    """Name the rows that have no name, since Blender identifies the rows of an override by name.

    If rows of the library have no names, the rows beside them get none: Blender then counts them.
    """
    library, rows = from_library(pose_bone), pose_bone.ccd_rig.coupled_offsets
    _name("Offset", rows, len(library))
    for index, row in enumerate(rows):
        _name("Point", row.points, library[index] if index < len(library) else 0)


def from_library(pose_bone: bpy.types.PoseBone) -> list[int]:
    """Return the number of points of each coupled offset that comes from the library of an override.

    Blender keeps these rows, and puts the rows that are added to an override after them.
    """
    reference = linked_reference(pose_bone.id_data)
    linked_bone = None if reference is None else reference.pose.bones.get(pose_bone.name)
    return [] if linked_bone is None else [len(row.points) for row in linked_bone.ccd_rig.coupled_offsets]


def _name(stem: str, rows: Any, library: int) -> None:
    if not all(row.name for row in rows[:library]):
        return
    taken = {row.name for row in rows}
    free = (name for k in range(1, 2 * len(rows) + 1) if (name := f"{stem} {k}") not in taken)
    for row in rows:
        if not row.name:
            row.name = next(free)


_HANDLERS = Handlers()


@_HANDLERS.on("save_pre")
def name_all(*_arguments: object) -> None:
    """Name the rows that scripts have added, before a file is saved."""
    for obj in bpy.data.objects:
        if obj.type == "ARMATURE" and obj.library is None:
            for bone in with_settings(obj.pose.bones):
                if len(bone.ccd_rig.coupled_offsets):
                    name_rows(bone)


register, unregister = _HANDLERS.register, _HANDLERS.unregister


# Values -----------------------------------------------------------------------------------------------------


def coupled_offsets(pose_bone: bpy.types.PoseBone) -> tuple[CoupledOffset, ...]:
    """Return the coupled offsets of a bone as values, in the axes and the unit of its location channel.

    Raises:
        RigError: names the bone, the offset and the contradiction.
    """
    rows = enumerate(pose_bone.ccd_rig.coupled_offsets, start=1)
    return tuple(_value(pose_bone.name, number, row) for number, row in rows)


def followers(armature_object: bpy.types.Object, chains: Collection[str]) -> list[str]:
    """Return the bones outside of chains, such as kneecaps, with an offset that a bone of a chain drives."""
    return [
        bone.name
        for bone in with_settings(armature_object.pose.bones)
        if bone.name not in chains
        and any(row.driver in chains for row in bone.ccd_rig.coupled_offsets if row.driver)
    ]


def _value(bone: str, number: int, row: Any) -> CoupledOffset:
    from ...skeleton.joints import CoupledOffset

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


PINS = (
    ("NONE", "Free", "A drag may move the bone", 0),
    ("PLACE", "Place", "The end of the bone stays where it is while others are dragged", 1),
    ("ROTATION", "Place and Rotation", "The bone stays where it is, and turned as it is", 2),
)


class CCD_RIG_PG_comfort(bpy.types.PropertyGroup):
    """Rotations that look natural, and the tolerance with which they are preferred."""

    tolerance: STORED.number(
        "Comfort Tolerance",
        "How far off the target, seen from the bone's head, is near enough to keep still",
        default=TOLERANCE,
        min=0.0,
        max=math.pi / 2,
        subtype="ANGLE",
    )
    region: STORED.pointer(
        "Preferred Region",
        "The part of the limit that is used as long as the target allows it",
        type=CCD_RIG_PG_limit,
    )


class CCD_RIG_PG_joint(bpy.types.PropertyGroup):
    """Limit and settings of a joint."""

    known_as: STORED.text(
        "Known As",
        "The name by which constraints know the bone: when it is renamed, they follow",
        options={"HIDDEN"},
    )
    pin: STORED.enum(
        "Pin", "What stays of the bone while others are dragged", items=PINS, translation_context=CONTEXT
    )
    limit: STORED.pointer("Limit", "Rotations that are allowed; they are never left", type=CCD_RIG_PG_limit)
    comfort: STORED.pointer("Comfort", "Rotations that are preferred", type=CCD_RIG_PG_comfort)
    stiffness: STORED.number(
        "Stiffness",
        "How much the bone resists turning: 0 turns freely, 1 is locked",
        default=STIFFNESS,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
    )
    max_step: STORED.number(
        "Max Step",
        "Largest turn in one step of the solver; small values spread the bend over bones",
        default=MAX_STEP,
        translation_context=CONTEXT,
        min=0.0,
        max=math.pi,
        subtype="ANGLE",
    )
    mass: STORED.number(
        "Mass",
        "Mass of the bone for balance, in any unit; it sits halfway along the bone, or halfway "
        "to its children where an importer has made up the tails",
        default=MASS,
        min=0.0,
        soft_max=100.0,
    )
    use_slide: STORED.booleans(
        "Slide",
        "Axes of its location along which the bone may also shift, as a piston does",
        size=3,
        subtype="XYZ",
    )
    slide_lower: STORED.vector(
        "Min",
        "Smallest shifts along the axes, as the bone's location shows them",
        size=3,
        default=(-0.1,) * 3,
        soft_min=-10.0,
        soft_max=10.0,
        subtype="XYZ_LENGTH",
        unit="LENGTH",
    )
    slide_upper: STORED.vector(
        "Max",
        "Largest shifts along the axes, as the bone's location shows them",
        size=3,
        default=(0.1,) * 3,
        soft_min=-10.0,
        soft_max=10.0,
        subtype="XYZ_LENGTH",
        unit="LENGTH",
    )
    slide_is_made: STORED.boolean(
        "Slide Is Made",
        "Whether a set-up has made the slide: it goes with the last constraint that may use it",
        options={"HIDDEN"},
    )
    stiffness_made: STORED.number(
        "Stiffness Made",
        "The Stiffness that a set-up has given, 0 for none: it goes with the last constraint that may use it",
        options={"HIDDEN"},
    )
    start_rotation: STORED.vector(
        "Start Rotation",
        "Quaternion from which the bone starts without animation, as Blender's IK had it; zero for rest",
        size=4,
        default=(0.0,) * 4,
        options={"HIDDEN"},
    )
    start_before: STORED.vector(
        "Before Start Rotation",
        "What the rotation of the bone was before it got its Start Rotation",
        size=4,
        default=(0.0,) * 4,
        options={"HIDDEN"},
    )
    coupled_offsets: STORED.rows(
        "Coupled Offsets",
        "Shifts of the bone that follow the angle of a hinge, as in a knee that rolls",
        type=CCD_RIG_PG_coupled_offset,
    )


def joint_settings(armature_object: bpy.types.Object, bones: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the keywords of the core's Joint for each bone: {bone: keywords}.

    Raises:
        RigError: names the bone that is missing, or has a contradictory limit.
    """
    from ...limits.shapes import Comfort

    settings = {}
    for bone in bones:
        pose_bone = armature_object.pose.bones.get(bone)
        if pose_bone is None:
            raise RigError(f"armature '{armature_object.name}' has no bone '{bone}'")
        group = pose_bone.ccd_rig
        limit, comfort = limit_of(bone, "limit", group.limit), None
        tolerance, region = group.comfort.tolerance, limit_of(bone, "comfort region", group.comfort.region)
        if tolerance or region:
            comfort = named_value(bone, "comfort", partial(Comfort, tolerance, region))
        settings[bone] = {
            "limit": limit,
            "comfort": comfort,
            "stiffness": group.stiffness,
            "max_step": max(min(group.max_step, math.pi), -math.pi),
            "mass": group.mass,
            "slides": _slides_of(bone, group),
            "coupled_offsets": coupled_offsets(pose_bone),
        }
    return settings


def masses(armature_object: bpy.types.Object) -> dict[str, float]:
    """Return the masses that are not 0 by bone. They may be invalid: the core refuses these by name."""
    stored = {bone.name: bone.ccd_rig.mass for bone in with_settings(armature_object.pose.bones)}
    return {bone: mass for bone, mass in stored.items() if mass != 0.0}


def _slides_of(bone: str, group: Any) -> tuple[Slide, ...]:
    """Return the slides of a bone in the axes and the unit of its location channel."""
    from ...limits.shapes import Slide

    slides = []
    for k, name in enumerate("XYZ"):
        if not group.use_slide[k]:
            continue
        lower, upper = group.slide_lower[k], group.slide_upper[k]
        if lower > upper:
            raise RigError(
                f"bone '{bone}', slide: {name} Min ({lower:.4g}) is above {name} Max ({upper:.4g}): swap them"
            )
        axis = tuple(float(axis == k) for axis in range(3))
        slides.append(named_value(bone, "slide", partial(Slide, axis, lower, upper)))
    return tuple(slides)
