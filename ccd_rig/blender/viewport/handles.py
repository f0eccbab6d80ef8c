# SPDX-License-Identifier: GPL-3.0-or-later
"""The stored values of a limit that can be dragged: on which dial each turns, and how far."""

from __future__ import annotations

from math import atan2, cos, hypot, sin
from typing import Any, NamedTuple

from mathutils import Quaternion, Vector

from ...limits.outlines import FULL_TURN, Dial, dials
from ...limits.shapes import Limit, SwingTwist
from ...maths.tolerances import NOISE

_X, _Y, _Z = (Vector([float(i == k) for i in range(3)]).freeze() for k in range(3))


class Handle(NamedTuple):
    """A value that can be dragged.

    Attributes:
        field: name of the limit's property.
        component: of a vector; -1 for a number, and where the whole vector is turned.
        dial: on which the value is an angle, in the joint's frame at rest.
        value: the present one, radians.
        lower: smallest value, radians: the property's own, or that of the other end of its range.
        upper: largest value, radians.
    """

    field: str
    component: int
    dial: Dial
    value: float
    lower: float
    upper: float

    @property
    def point(self) -> Vector:
        """Where the handle stands, in the joint's frame at rest."""
        return self.dial.point(self.value)


def handles(group: Any, limit: Limit, rotation: Quaternion) -> list[Handle]:
    """What can be dragged of a limit; nothing of one that has no bounds.

    Args:
        group: the limit as it is stored.
        limit: its value.
        rotation: of the joint, relative to rest.
    """
    found = [_swing_handle(group, *each) for each in _SWINGS.get(group.kind, ())]
    if group.kind == "HINGE":
        (dial,) = dials(limit, rotation)
        found += _range_handles(group, dial, ("hinge_lower", "hinge_upper"), -1)
        found += _axis_handles(group)
    elif group.kind == "EULER":
        for dial in dials(limit, rotation):
            found += _range_handles(group, dial, ("euler_lower", "euler_upper"), "XYZ".index(dial.name))
    elif isinstance(limit, SwingTwist):
        for dial in dials(limit, rotation):
            found += _range_handles(group, dial, ("twist_lower", "twist_upper"), -1)
    return found


def drag_to(group: Any, handle: Handle, value: float) -> None:
    """Store a handle's value in radians; it has to lie inside the handle's bounds."""
    if handle.field == "axis":
        x, y, z = group.axis
        group.axis = (hypot(x, z) * cos(value), y, -hypot(x, z) * sin(value))
    elif handle.component >= 0:
        getattr(group, handle.field)[handle.component] = value
    else:
        setattr(group, handle.field, value)


def stored(group: Any, handle: Handle) -> tuple[float, ...]:
    """All that a handle's property holds, to bring it back exactly."""
    value = getattr(group, handle.field)
    return (value,) if isinstance(value, float) else tuple(value)


def restore(group: Any, handle: Handle, value: tuple[float, ...]) -> None:
    """Give a handle's property what `stored` has found in it."""
    setattr(group, handle.field, value if len(value) > 1 else value[0])


# Of a swing: the property, and the axis about which it turns the bone.
_SWINGS = {
    "CONE": (("cone_radius", _X),),
    "ELLIPSE": (("x_lower", _X), ("x_upper", _X), ("z_lower", _Z), ("z_upper", _Z)),
}


def _swing_handle(group: Any, field: str, axis: Vector) -> Handle:
    prop, value = group.bl_rna.properties[field], getattr(group, field)
    dial = Dial("SWING", Vector(), axis, _Y, 1.0, prop.hard_min, prop.hard_max, value)
    return Handle(field, -1, dial, value, prop.hard_min, prop.hard_max)


def _range_handles(group: Any, dial: Dial, fields: tuple[str, str], component: int) -> list[Handle]:
    """The two ends of a range; neither is dragged past the other."""
    lower, upper = (group.bl_rna.properties[field] for field in fields)
    return [
        Handle(fields[0], component, dial, dial.lower, lower.hard_min, dial.upper),
        Handle(fields[1], component, dial, dial.upper, dial.lower, upper.hard_max),
    ]


def _axis_handles(group: Any) -> list[Handle]:
    """The end of a hinge's axis, that is turned round the bone; none for an axis along the bone."""
    axis = Vector(group.axis).normalized()
    across = hypot(axis.x, axis.z)
    if across < NOISE:
        return []
    angle = atan2(-axis.z, axis.x)
    dial = Dial("AXIS", _Y * axis.y, _Y, _X, across, 0.0, FULL_TURN, angle)
    return [Handle("axis", -1, dial, angle, -2.0 * FULL_TURN, 2.0 * FULL_TURN)]
