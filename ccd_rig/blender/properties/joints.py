# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored limits, comfort regions and settings of joints, and their conversion to and from the core's values.

Angles are stored in radians and shown in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import bpy

from ...errors import InvalidInput, RigError
from ...limits.shapes import Comfort, Cone, Ellipse, EulerBox, Hinge, Limit, Slide, SwingTwist
from ...skeleton.joints import Joint
from ..languages.translation import CONTEXT
from ..registration import STORED
from . import overrides
from .coupled_offsets import CCD_RIG_PG_coupled_offset, coupled_offsets

TURN = 2.0 * math.pi  # the widest bound of a hinge or Euler angle that the panel offers, radians


def _angle(label: str, description: str, default: float, lower: float, upper: float) -> Any:
    return STORED.number(label, description, default=default, min=lower, max=upper, subtype="ANGLE")


# Files store the numbers: an item keeps its number for good.
LIMIT_KINDS = (
    ("NONE", "None", "The bone turns freely", 0),
    ("HINGE", "Hinge", "The bone turns about one axis, as a knee or an elbow does", 1),
    ("CONE", "Cone", "The bone swings by the same angle to all sides", 2),
    (
        "ELLIPSE",
        "Ellipse",
        "The bone swings by another angle to each of four sides, as a shoulder or a hip does",
        3,
    ),
    ("TWIST", "Twist", "The bone swings freely and rolls about its own length within a range", 5),
    ("EULER", "Euler Angles", "Each Euler angle has a range of its own", 4),
)
EULER_ORDERS = tuple(
    (order, order, f"Euler order {order}") for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
)


PINS = (
    ("NONE", "Free", "A drag may move the bone", 0),
    ("PLACE", "Place", "The end of the bone stays where it is while others are dragged", 1),
    ("ROTATION", "Place and Rotation", "The bone stays where it is, and turned as it is", 2),
)


class CCD_RIG_PG_limit(bpy.types.PropertyGroup):
    """Range of rotations relative to rest, in the bone's axes: a limit, or a comfort region."""

    kind: STORED.enum("Limit", "Which shape the range of rotations has", items=LIMIT_KINDS)
    axis: STORED.vector(
        "Hinge Axis",
        "The hinge's axis in the bone's own axes at rest; Y points along the bone",
        size=3,
        default=(1.0, 0.0, 0.0),
        subtype="XYZ",
    )
    hinge_lower: _angle(
        "Min",
        "Smallest angle about the axis; above zero, the joint never straightens",
        -math.pi / 2,
        -TURN,
        TURN,
    )
    hinge_upper: _angle("Max", "Largest angle about the axis", math.pi / 2, -TURN, TURN)
    cone_radius: _angle("Radius", "Largest swing away from the rest direction", math.pi / 4, 0.0, math.pi)
    x_lower: _angle("X Min", "Largest swing about the bone's X axis, backwards", -math.pi / 4, -math.pi, 0.0)
    x_upper: _angle("X Max", "Largest swing about the bone's X axis, forwards", math.pi / 4, 0.0, math.pi)
    z_lower: _angle("Z Min", "Largest swing about the bone's Z axis, backwards", -math.pi / 4, -math.pi, 0.0)
    z_upper: _angle("Z Max", "Largest swing about the bone's Z axis, forwards", math.pi / 4, 0.0, math.pi)
    use_twist: STORED.boolean("Limit Twist", "Limit how far the bone rolls about its own length")
    twist_lower: _angle("Min", "Smallest roll about the bone's length", -math.pi / 4, -math.pi, math.pi)
    twist_upper: _angle("Max", "Largest roll about the bone's length", math.pi / 4, -math.pi, math.pi)
    euler_order: STORED.enum("Euler Order", "Order in which the three angles are applied", items=EULER_ORDERS)
    euler_lower: STORED.vector(
        "Min",
        "Smallest Euler angles",
        size=3,
        default=(-math.pi / 4,) * 3,
        min=-TURN,
        max=TURN,
        subtype="EULER",
    )
    euler_upper: STORED.vector(
        "Max",
        "Largest Euler angles",
        size=3,
        default=(math.pi / 4,) * 3,
        min=-TURN,
        max=TURN,
        subtype="EULER",
    )


class CCD_RIG_PG_comfort(bpy.types.PropertyGroup):
    """Rotations that look natural, and the tolerance with which they are preferred."""

    tolerance: STORED.number(
        "Comfort Tolerance",
        "How far off the target, seen from the bone's head, is near enough to keep still",
        default=Comfort.tolerance,
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
    solved: STORED.vector(
        "Solved",
        "How Solve Pose turned the bone over the ground, and from where: a second press turns it no further",
        size=8,
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
        default=Joint.stiffness,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
    )
    max_step: STORED.number(
        "Max Step",
        "Largest turn in one step of the solver; small values spread the bend over bones",
        default=Joint.max_step,
        translation_context=CONTEXT,
        min=0.0,
        max=math.pi,
        subtype="ANGLE",
    )
    mass: STORED.number(
        "Mass",
        "Mass of the bone for balance, in any unit; it sits halfway along the bone",
        default=Joint.mass,
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
    coupled_offsets: STORED.rows(
        "Coupled Offsets",
        "Shifts of the bone that follow the angle of a hinge, as in a knee that rolls",
        type=CCD_RIG_PG_coupled_offset,
    )


def limit_value(group: Any) -> Limit | None:
    """Return the value of a stored limit, None for a free bone; raises InvalidInput on a contradiction."""
    twist = (_radians(group.twist_lower), _radians(group.twist_upper))
    if group.kind == "HINGE":
        return Hinge(tuple(group.axis), group.hinge_lower, group.hinge_upper)
    if group.kind == "CONE":
        return SwingTwist(Cone(_radians(group.cone_radius)), twist if group.use_twist else None)
    if group.kind == "ELLIPSE":
        bounds = (group.x_lower, group.x_upper, group.z_lower, group.z_upper)
        return SwingTwist(Ellipse(*map(_radians, bounds)), twist if group.use_twist else None)
    if group.kind == "TWIST":
        return SwingTwist(None, twist)
    if group.kind == "EULER":
        return EulerBox(group.euler_order, tuple(group.euler_lower), tuple(group.euler_upper))
    return None


def _radians(angle: float) -> float:
    # Properties are float32, whose nearest number to pi is larger than pi. In this order of min and max NaN
    # stays NaN, and the core refuses it.
    return max(min(angle, math.pi), -math.pi)


def joint_settings(armature_object: bpy.types.Object, bones: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the keywords of the core's Joint for each bone: {bone: keywords}.

    Raises:
        RigError: names the bone that is missing, or has a contradictory limit.
    """
    return {bone: _joint_keywords(armature_object, bone) for bone in bones}


def masses(armature_object: bpy.types.Object) -> dict[str, float]:
    """Return the masses that are not 0 by bone. They may be invalid: the core refuses these by name."""
    stored = {bone.name: bone.ccd_rig.mass for bone in armature_object.pose.bones}
    return {bone: mass for bone, mass in stored.items() if mass != 0.0}


def _joint_keywords(armature_object: bpy.types.Object, bone: str) -> dict[str, Any]:
    pose_bone = armature_object.pose.bones.get(bone)
    if pose_bone is None:
        raise RigError(f"armature '{armature_object.name}' has no bone '{bone}'")
    group = pose_bone.ccd_rig
    limit = limit_of(bone, "limit", group.limit)
    region = limit_of(bone, "comfort region", group.comfort.region)
    tolerance = group.comfort.tolerance
    comfort = _named(bone, "comfort", lambda: Comfort(tolerance, region)) if tolerance or region else None
    return {
        "limit": limit,
        "comfort": comfort,
        "stiffness": group.stiffness,
        "max_step": _radians(group.max_step),
        "mass": group.mass,
        "slides": _slides_of(bone, group),
        "coupled_offsets": coupled_offsets(pose_bone),
    }


def _slides_of(bone: str, group: Any) -> tuple[Slide, ...]:
    """Return the slides of a bone in the axes and the unit of its location channel."""
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
        slides.append(_named(bone, "slide", partial(Slide, axis, lower, upper)))
    return tuple(slides)


def limit_of(bone: str, part: str, group: Any) -> Limit | None:
    """Return the value of a bone's stored limit.

    Raises:
        RigError: the limit is contradictory; says so in the panel's labels and degrees.
    """
    if not group.kind:  # the file has a number that is not in the list
        raise RigError(
            f"bone '{bone}', {part}: its kind is not known to this version: choose one, or update CCD Rig"
        )
    for label, lower, upper in _ranges(group):
        if lower > upper:
            raise RigError(
                f"bone '{bone}', {part}: {label}Min ({math.degrees(lower):.4g}°) is above "
                f"{label}Max ({math.degrees(upper):.4g}°): swap them"
            )
    if group.kind == "HINGE" and not any(group.axis):
        raise RigError(f"bone '{bone}', {part}: its axis is zero: let it point along X, as (1, 0, 0)")
    return _named(bone, part, lambda: limit_value(group))


def _ranges(group: Any) -> list[tuple[str, float, float]]:
    """Return the ranges in force whose bounds may be swapped: (label, lower, upper), radians."""
    if group.kind == "HINGE":
        return [("", group.hinge_lower, group.hinge_upper)]
    if group.kind == "EULER":
        ends = zip("XYZ", group.euler_lower, group.euler_upper, strict=True)
        return [(f"{axis} ", lower, upper) for axis, lower, upper in ends]
    if group.kind == "TWIST" or (group.kind in ("CONE", "ELLIPSE") and group.use_twist):
        return [("twist ", group.twist_lower, group.twist_upper)]
    return []


def _named(bone: str, part: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except InvalidInput as error:
        raise RigError(f"bone '{bone}', {part}: {error}") from error


_BONE = (0.0, 1.0, 0.0)
_SLACK = 1e-6  # radians by which float32 properties may exceed their bounds


def store_limits(
    limits: Mapping[bpy.types.PoseBone, Limit | None],
    regions: Mapping[bpy.types.PoseBone, Limit | None] | None = None,
) -> None:
    """Store limits and comfort regions of bones. Fields of the remaining kinds of limit are kept.

    Args:
        limits: by bone.
        regions: comfort regions, by bone.

    Raises:
        RigError: names the bone whose limit cannot be stored. Nothing has changed then.
    """
    stored = {bone: _storable(bone, limit) for bone, limit in limits.items()}
    preferred = {bone: _storable(bone, region) for bone, region in (regions or {}).items()}
    for path, values_of in (("limit", stored), ("comfort.region", preferred)):
        for bone, values in values_of.items():
            group = bone.ccd_rig.path_resolve(path)
            for field, value in values.items():
                setattr(group, field, value)
    for armature_object in {bone.id_data for bone in (*stored, *preferred)}:
        overrides.keep(armature_object)


def _storable(pose_bone: bpy.types.PoseBone, limit: Limit | None) -> dict[str, Any]:
    values = _values(limit)
    if values is None:
        raise RigError(
            f"bone '{pose_bone.name}': a limit about an axis askew to the bone cannot be stored; use a hinge"
        )
    for field, value in values.items():
        prop: Any = CCD_RIG_PG_limit.bl_rna.properties[field]
        if prop.type != "FLOAT":
            continue
        for number in value if prop.is_array else (value,):
            if not prop.hard_min - _SLACK <= number <= prop.hard_max + _SLACK:
                least, most = math.degrees(prop.hard_min), math.degrees(prop.hard_max)
                raise RigError(
                    f"bone '{pose_bone.name}': {prop.name} of {math.degrees(number):.4g}° is outside what a "
                    f"limit can hold, {least:.0f}° to {most:.0f}°"
                )
    return values


def copy_limit(source: bpy.types.PoseBone, target: bpy.types.PoseBone) -> None:
    """Copy the limit of a bone to another bone, with the fields of all kinds of limit."""
    for prop in source.ccd_rig.limit.bl_rna.properties:
        if not prop.is_readonly and prop.identifier != "name":
            value = getattr(source.ccd_rig.limit, prop.identifier)
            setattr(target.ccd_rig.limit, prop.identifier, value)
    overrides.keep(target.id_data)


def _values(limit: Limit | None) -> dict[str, Any] | None:
    """Return the properties of a limit by name; None if its axis cannot be stored."""
    if limit is None:
        return {"kind": "NONE"}
    if isinstance(limit, Hinge):
        lower, upper = _within(limit.lower, limit.upper)
        return {"kind": "HINGE", "axis": limit.axis, "hinge_lower": lower, "hinge_upper": upper}
    if isinstance(limit, EulerBox):
        ends = [_within(*bounds) for bounds in zip(limit.lower, limit.upper, strict=True)]
        values: dict[str, Any] = {"kind": "EULER", "euler_order": limit.order}
        values["euler_lower"], values["euler_upper"] = zip(*ends, strict=True)
        return values
    if isinstance(limit, SwingTwist):
        is_off = max(abs(a - b) for a, b in zip(limit.axis, _BONE, strict=True)) > _SLACK
        return None if is_off else _swing_values(limit)
    return None


def _swing_values(limit: SwingTwist) -> dict[str, Any]:
    swing = limit.swing
    values: dict[str, Any] = {"use_twist": limit.twist is not None}
    if limit.twist is not None:
        values["twist_lower"], values["twist_upper"] = _within(*limit.twist, 0.5 * TURN)
    if swing is None:
        return {**values, "kind": "NONE" if limit.twist is None else "TWIST"}
    if isinstance(swing, Cone):
        return {**values, "kind": "CONE", "cone_radius": swing.radius}
    sides = {name: getattr(swing, name) for name in ("x_lower", "x_upper", "z_lower", "z_upper")}
    return {**values, "kind": "ELLIPSE", **sides}


def _within(lower: float, upper: float, most: float = TURN) -> tuple[float, float]:
    """Return a range of angles. A range that leaves the angle free becomes a full turn about rest."""
    if upper - lower >= TURN and max(-lower, upper) > most:
        return -0.5 * TURN, 0.5 * TURN
    return lower, upper
