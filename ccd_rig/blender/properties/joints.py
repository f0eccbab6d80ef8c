# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored settings of joints, and their conversion to the core's values.

Angles are stored in radians and shown in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import bpy

from ...errors import RigError
from ...limits.shapes import Comfort, Slide
from ...skeleton.joints import Joint
from ..languages.translation import CONTEXT
from ..registration import STORED
from .coupled_offsets import CCD_RIG_PG_coupled_offset, coupled_offsets
from .limits import CCD_RIG_PG_limit, limit_of, named_value

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
        "Mass of the bone for balance, in any unit; it sits halfway along the bone, or halfway "
        "to its children where an importer has made up the tails",
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


def joint_settings(armature_object: bpy.types.Object, bones: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the keywords of the core's Joint for each bone: {bone: keywords}.

    Raises:
        RigError: names the bone that is missing, or has a contradictory limit.
    """
    return {bone: _joint_keywords(armature_object, bone) for bone in bones}


def masses(armature_object: bpy.types.Object) -> dict[str, float]:
    """Return the masses that are not 0 by bone. They may be invalid: the core refuses these by name."""
    settings = (bone for bone in armature_object.pose.bones if bone.is_property_set("ccd_rig"))
    stored = {bone.name: bone.ccd_rig.mass for bone in settings}
    return {bone: mass for bone, mass in stored.items() if mass != 0.0}


def _joint_keywords(armature_object: bpy.types.Object, bone: str) -> dict[str, Any]:
    pose_bone = armature_object.pose.bones.get(bone)
    if pose_bone is None:
        raise RigError(f"armature '{armature_object.name}' has no bone '{bone}'")
    group = pose_bone.ccd_rig
    limit = limit_of(bone, "limit", group.limit)
    region = limit_of(bone, "comfort region", group.comfort.region)
    tolerance = group.comfort.tolerance
    comfort = (
        named_value(bone, "comfort", lambda: Comfort(tolerance, region)) if tolerance or region else None
    )
    return {
        "limit": limit,
        "comfort": comfort,
        "stiffness": group.stiffness,
        "max_step": max(min(group.max_step, math.pi), -math.pi),
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
        slides.append(named_value(bone, "slide", partial(Slide, axis, lower, upper)))
    return tuple(slides)
