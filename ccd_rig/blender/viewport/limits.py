# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits in the viewport: their frames, sketches and handles."""

from __future__ import annotations

from math import atan2, cos, hypot, isfinite, sin
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Quaternion, Vector

from ...errors import InvalidInput
from ...limits.outlines import FULL_TURN, Dial
from ...limits.shapes import Hinge, Limit
from ...maths.rotations import NOISE
from ..properties.limits import limit_kind, limit_value
from ..rig.bone_space import with_channels
from .palette import EULER_COLOURS
from .sketch import Sketch, placed

SIZE = 0.75
"""Radius of a limit's drawing, as a fraction of the bone's length."""


class BoneAxes(NamedTuple):
    """Frame of a bone's limit."""

    matrix: Matrix  # from the joint's frame at rest, in units of the drawing's size, to world space
    rotation: Quaternion  # evaluated rotation of the bone relative to rest, constraints included


def bone_axes(pose_bone: bpy.types.PoseBone) -> BoneAxes:
    """Return the frame of a bone's limit, from the evaluated matrices of the bone and its parent."""
    axes = with_channels(pose_bone, Matrix()).to_quaternion()
    head: Any = Matrix.LocRotScale(pose_bone.head, axes, None)
    size = Matrix.Scale(SIZE * pose_bone.length, 4)
    rotation = axes.conjugated() @ pose_bone.matrix.to_quaternion()
    return BoneAxes(pose_bone.id_data.matrix_world @ head @ size, rotation)


def drawable_limit(pose_bone: bpy.types.PoseBone, group: Any) -> Limit | None:
    """Return the value of a stored limit of a bone.

    None for a free bone, contradictory bounds, or a bone whose matrix is not finite.
    """
    if not isfinite(sum(map(sum, pose_bone.matrix))):  # finite only if every entry is
        return None
    try:
        return limit_value(group)
    except InvalidInput:  # the checks before a solve report it
        return None


FILL, COMFORT_FILL = 0.13, 0.16  # alpha of faces
COMFORT_SIZE = 0.8  # size relative to the limit's drawing
RIBS = 8  # number of lines from the apex of a cone to its rim
LINE, NEEDLE, THIN = 2.0, 3.0, 1.0  # [pixels]
NEEDLE_LENGTH = 1.08  # relative to the radius of the arc


def sketch_limits(sketch: Sketch, pose_bone: bpy.types.PoseBone) -> None:
    """Draw the limit of a bone and its comfort region, if it has them."""
    group = pose_bone.ccd_rig
    limit, region = drawable_limit(pose_bone, group.limit), drawable_limit(pose_bone, group.comfort.region)
    if limit is None and region is None:
        return
    axes = bone_axes(pose_bone)
    if region is not None:
        smaller = axes.matrix @ Matrix.Scale(COMFORT_SIZE, 4)
        sketch_shape(sketch, smaller, region, axes.rotation, is_comfort=True)
    if limit is not None:
        sketch_shape(sketch, axes.matrix, limit, axes.rotation)
        for dial in limit.dials(axes.rotation):
            end = dial.centre.lerp(dial.point(dial.angle), NEEDLE_LENGTH)
            _needle(sketch, axes.matrix @ dial.centre, axes.matrix @ end, dial.is_at_border)
        border = limit.rim(axes.rotation)
        if border is not None:
            end = axes.matrix @ (border.direction * NEEDLE_LENGTH)
            _needle(sketch, axes.matrix.to_translation(), end, border.is_at_border)


def sketch_shape(
    sketch: Sketch, matrix: Matrix, limit: Limit, rotation: Quaternion, is_comfort: bool = False
) -> None:
    """Draw the border of a limit.

    Args:
        matrix: from the joint's frame at rest to world space.
        rotation: of the joint relative to rest; dials of a twist and of an Euler box turn with it.
        is_comfort: whether it is a comfort region. Dials of an Euler box that is a limit have the colours of
            the axes.
    """
    palette = sketch.palette
    colour, alpha = (palette.comfort, COMFORT_FILL) if is_comfort else (palette.limit, FILL)
    for dial in limit.dials(rotation):
        dial_colour = colour if is_comfort else EULER_COLOURS.get(dial.name, colour)
        centre, arc = matrix @ dial.centre, placed(matrix, dial.arc())
        sketch.fan(centre, arc, (*dial_colour, alpha))
        sketch.path([centre, *arc, centre], (*dial_colour, 1.0), LINE)
    if isinstance(limit, Hinge) and not is_comfort:
        axis = Vector(limit.axis)
        sketch.path(placed(matrix, (-axis, axis)), (*colour, 0.6), THIN)
    border = limit.rim(rotation)
    if border is not None:
        centre, points = matrix.to_translation(), placed(matrix, border.points)
        sketch.fan(centre, points, (*colour, alpha))
        sketch.path(points, (*colour, 1.0), LINE)
        for rib in points[: -1 : max(1, (len(points) - 1) // RIBS)]:
            sketch.path((centre, rib), (*colour, 0.5), THIN)


def _needle(sketch: Sketch, start: Vector, end: Vector, is_at_border: bool) -> None:
    colour = sketch.palette.warning if is_at_border else sketch.palette.needle
    sketch.path((start, end), (*colour, 1.0), NEEDLE)


_X, _Y = (Vector([float(i == k) for i in range(3)]).freeze() for k in range(2))


class Handle(NamedTuple):
    """Bound of a limit that can be dragged."""

    field: str  # name of the limit's property
    component: int  # of a vector; -1 for a number, and for the axis, which is turned
    dial: Dial  # on which the value is an angle, in the joint's frame at rest
    value: float  # present value, radians
    lower: float  # smallest value, radians: of the property, or the other bound of its range
    upper: float  # largest value, radians

    @property
    def point(self) -> Vector:
        """Position of the handle, in the joint's frame at rest."""
        return self.dial.point(self.value)


def handles(group: Any, limit: Limit, rotation: Quaternion) -> list[Handle]:
    """Return the handles of a limit, one for each bound; neither of a range can be dragged past the other.

    Args:
        rotation: of the joint, relative to rest.
    """
    kind, properties, result = limit_kind(group), group.bl_rna.properties, list[Handle]()
    for field, axis in kind.swings:
        prop, value = properties[field], getattr(group, field)
        dial = Dial("SWING", Vector(), Vector(axis), _Y, 1.0, prop.hard_min, prop.hard_max, value)
        result.append(Handle(field, -1, dial, value, prop.hard_min, prop.hard_max))
    lower, upper = kind.bounds(group) or ("", "")
    for dial in limit.dials(rotation) if lower else ():
        component = "XYZ".index(dial.name) if properties[lower].is_array else -1
        least, most = properties[lower].hard_min, properties[upper].hard_max
        result.append(Handle(lower, component, dial, dial.lower, least, dial.upper))
        result.append(Handle(upper, component, dial, dial.upper, dial.lower, most))
    return result + _axis_handles(group) if kind.axis else result


def drag_to(group: Any, handle: Handle, value: float) -> None:
    """Store a value of a handle, radians; it must be inside the handle's bounds."""
    if handle.field == "axis":
        x, y, z = group.axis
        group.axis = (hypot(x, z) * cos(value), y, -hypot(x, z) * sin(value))
    elif handle.component >= 0:
        getattr(group, handle.field)[handle.component] = value
    else:
        setattr(group, handle.field, value)


def stored(group: Any, handle: Handle) -> tuple[float, ...]:
    """Return the value of a handle's property, for `restore`."""
    value = getattr(group, handle.field)
    return (value,) if isinstance(value, float) else tuple(value)


def restore(group: Any, handle: Handle, value: tuple[float, ...]) -> None:
    """Set a handle's property to a value of `stored`."""
    setattr(group, handle.field, value if len(value) > 1 else value[0])


def _axis_handles(group: Any) -> list[Handle]:
    """Return the handle that turns a hinge's axis about the bone; none for an axis along the bone."""
    axis = Vector(group.axis).normalized()
    across = hypot(axis.x, axis.z)
    if across < NOISE:
        return []
    angle = atan2(-axis.z, axis.x)
    dial = Dial("AXIS", _Y * axis.y, _Y, _X, across, 0.0, FULL_TURN, angle)
    return [Handle("axis", -1, dial, angle, -2.0 * FULL_TURN, 2.0 * FULL_TURN)]
