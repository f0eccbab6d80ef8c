# SPDX-License-Identifier: GPL-3.0-or-later
"""A figure at rest, in armature space: which way its bones point, and where its front and its left are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import bpy
from mathutils import Quaternion, Vector

from ...errors import InvalidInput, RigError
from ..figures.role import Figure, Kind, Part, Role, Side
from ..figures.roles import figure_of
from ..rig.bone_space import nearest_rotation

STRAY = 0.9
"""Cosine of the angle between a bone and the part that it stands for, below which its swing says nothing."""

NEAR_AXIS = 0.85
"""Cosine of the angle between what a figure says of up and left, and the armature's axis that is meant."""

SMALL = 1e-6
_MIDDLE = (Part.HIPS, Part.SPINE, Part.NECK, Part.HEAD)
_BONE = Vector((0.0, 1.0, 0.0)).freeze()
_NEXT = {
    Part.UPPER_ARM: Part.LOWER_ARM,
    Part.LOWER_ARM: Part.HAND,
    Part.THIGH: Part.SHIN,
    Part.SHIN: Part.FOOT,
    Part.FRONT_THIGH: Part.FRONT_SHIN,
    Part.FRONT_SHIN: Part.FRONT_FOOT,
    Part.FOOT: Part.TOE,
    Part.FRONT_FOOT: Part.FRONT_TOE,
}


@dataclass(frozen=True)
class Body:
    """A recognised figure at rest.

    Attributes:
        armature_object: the rig.
        figure: its roles.
        cranial: unit, from the hips to the head.
        ventral: unit, where the belly is: to the front of a human, down below an animal on four legs.
        left: unit, to the figure's own left.
    """

    armature_object: bpy.types.Object
    figure: Figure
    cranial: Vector
    ventral: Vector
    left: Vector

    def rest(self, name: str) -> Quaternion:
        """Orientation of a bone at rest."""
        return rest_of(self.armature_object.pose.bones[name])

    def head(self, name: str) -> Vector:
        """Where a bone starts."""
        return Vector(self.armature_object.data.bones[name].head_local)

    def bone(self, part: Part, side: Side, number: int = 0) -> str:
        """The first bone of a part; empty for none."""
        return next(iter(self.figure.bones(part, side, number)), "")

    def along(self, name: str) -> Vector:
        """The direction of the limb that a bone stands for: to the next part, else as the bone points."""
        role = self.figure.roles.get(name)
        beyond = ""
        if role is not None and role.part in _NEXT:
            beyond = self.bone(_NEXT[role.part], role.side, role.number)
        way: Any = self.head(beyond) - self.head(name) if beyond else Vector()
        return way.normalized() if way.length > SMALL else self.rest(name) @ _BONE

    def outward(self, role: Role) -> Vector:
        """Away from the middle, on the side of a role."""
        return self.left if role.side is Side.LEFT else -self.left

    def require_along(self, name: str) -> None:
        """Raises InvalidInput where a bone does not point along its limb, as after imports."""
        if (self.rest(name) @ _BONE).dot(self.along(name)) < STRAY:
            raise InvalidInput("its Y axis does not run along the limb: reorient the bone in Edit Mode")


def rest_of(pose_bone: bpy.types.PoseBone) -> Quaternion:
    """Orientation of a bone at rest, in armature space."""
    found: Quaternion = nearest_rotation(pose_bone.bone.matrix_local.to_3x3())
    return found


def body_of(armature_object: bpy.types.Object) -> Body:
    """The figure that an armature is.

    Raises:
        RigError: it has no two sides, or nothing between hips and head.
    """
    figure = figure_of(armature_object)
    heads = {name: Vector(bone.head_local) for name, bone in armature_object.data.bones.items()}
    across: Any = Vector()
    for name, role in figure.roles.items():
        other = figure.partner(name)
        if role.side is Side.LEFT and other:
            across += heads[name] - heads[other]
    row = [heads[name] for part in _MIDDLE for name in figure.bones(part)]
    feet = [heads[name] for name, role in figure.roles.items() if role.part in (Part.FOOT, Part.FRONT_FOOT)]
    if across.length < SMALL or len(row) < 2 or not (feet or figure.kind is Kind.HUMAN):
        raise RigError(
            f"armature '{armature_object.name}' is no figure that is known: no bones of hips, back, feet and "
            "two sides were found. Choose Spine, Tail or Finger for selected bones"
        )
    back: Any = row[-1] - row[0]
    left = _snapped(across)
    if figure.kind is Kind.HUMAN:
        cranial = _snapped(back)
    else:
        up: Any = _snapped(row[0] - sum(feet, Vector()) / len(feet))
        cranial = (back - left * back.dot(left) - up * back.dot(up)).normalized()
    return Body(armature_object, figure, cranial, left.cross(cranial), left)


def _snapped(way: Any) -> Any:
    """A direction as the axis of the armature that it is near to, else as it is; unit."""
    way = way.normalized()
    axis = max(range(3), key=lambda k: abs(way[k]))
    if abs(way[axis]) < NEAR_AXIS:
        return way
    return Vector([math.copysign(1.0, way[axis]) if k == axis else 0.0 for k in range(3)])
