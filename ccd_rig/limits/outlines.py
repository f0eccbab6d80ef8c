# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlines of limits for drawing, and values that follow a pointer; each limit makes its own (`shapes`).

Coordinates are those of the joint's frame at rest: the joint at the origin, the bone along +Y. Lengths are
parts of the size of the drawing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import asin, atan2, cos, hypot, inf, pi, radians, remainder, sin
from typing import Any

from mathutils import Quaternion, Vector

from ..maths.rotations import FULL_TURN, perpendicular, wrapped

NEAR = radians(0.5)
"""Radians from a border at which a rotation counts as being there."""

ARC_STEP = radians(5.0)  # from one point of an arc to the next, at most
TWIST_PLACE, TWIST_RADIUS = 0.7, 0.45  # of the arc of a rotation about the bone: along the bone, and its size


@dataclass(frozen=True)
class Dial:
    """A range of one angle, as an arc about a centre."""

    name: str  # "HINGE", "TWIST", or the Euler angle: "X", "Y" or "Z"
    centre: Vector  # of the arc
    axis: Vector  # unit; angles count about it, right-handed
    zero: Vector  # unit, at right angles to `axis`; where angle 0 points
    radius: float  # of the arc
    lower: float  # smallest angle, radians
    upper: float  # largest angle; a full turn or more above `lower` leaves the angle free
    angle: float  # the present one, radians, on the turn that is nearest to the range

    def point(self, angle: float) -> Vector:
        """The point of the arc at an angle in radians."""
        side: Any = self.axis.cross(self.zero)
        point: Vector = self.centre + (self.zero * cos(angle) + side * sin(angle)) * self.radius
        return point

    def arc(self) -> list[Vector]:
        """Points from the lower to the upper bound; one full circle where the angle is free."""
        span = min(self.upper - self.lower, FULL_TURN)
        count = max(1, round(span / ARC_STEP))
        return [self.point(self.lower + span * i / count) for i in range(count + 1)]

    @property
    def is_at_border(self) -> bool:
        """Whether the present angle is at a bound or outside; of a range that is a point, only outside."""
        if self.upper - self.lower >= FULL_TURN:
            return False
        margin = min(self.angle - self.lower, self.upper - self.angle)
        return margin < (NEAR if self.upper - self.lower > 2.0 * NEAR else -NEAR)


@dataclass(frozen=True)
class Rim:
    """The border of a swing on the unit sphere: the outermost directions of the limit's axis."""

    points: tuple[Vector, ...]  # unit, from +X on round the axis; the last is the first
    direction: Vector  # unit, of the axis in the present pose
    margin: float  # radians from there to the rim, away from rest; below 0 outside

    @property
    def is_at_border(self) -> bool:
        """Whether the axis points to the rim or outside."""
        return self.margin < NEAR


def rim_margin(on_a: float, on_b: float, sides: tuple[float, float, float, float]) -> float:
    """Radians from a swing's rotation vector to the rim, along the line from rest; see `Rim.margin`."""
    x_lower, x_upper, z_lower, z_upper = sides
    reach = 0.0
    for part, side in (
        (on_a, x_upper if on_a >= 0.0 else x_lower),
        (on_b, z_upper if on_b >= 0.0 else z_lower),
    ):
        if side > NEAR:
            reach = hypot(reach, part / side)
        elif abs(part) > side + NEAR:
            return side - abs(part)
    # A side of length 0 has no border: at rest the nearest of the other sides counts.
    angle = hypot(on_a, on_b)
    if reach == 0.0 or angle == 0.0:
        return min((side for side in sides if side > NEAR), default=inf)
    return angle / reach - angle


def bend_dial(name: str, lower: float, upper: float, angle: float, axis: Vector, zero: Vector) -> Dial:
    """An arc about the joint, of the size of the drawing; see `Dial`."""
    return Dial(name, Vector(), axis, zero, 1.0, lower, upper, wrapped(angle, 0.5 * (lower + upper)))


def roll_dial(name: str, lower: float, upper: float, angle: float, swing: Quaternion, axis: Vector) -> Dial:
    """An arc about the bone's length, beside the bone and smaller; it starts at +X for a bone along +Y."""
    along = swing @ axis
    near = wrapped(angle, 0.5 * (lower + upper))
    zero = swing @ perpendicular(axis)
    return Dial(name, along * TWIST_PLACE, along, zero, TWIST_RADIUS, lower, upper, near)


EDGE_ON = 0.15
"""Sine of the angle between ray and dial below which their crossing is too uncertain."""


def angle_on(dial: Dial, origin: Vector, direction: Vector, near: float) -> float | None:
    """The angle in radians at which a ray meets the dial's plane; None at the dial's centre.

    A dial seen edge-on is a line to the eye. Two of its points then lie where the ray passes: the angle
    nearer to `near` is taken.

    Args:
        direction: of the ray, any length but 0.
        near: the angle before, radians.
    """
    ray = direction.normalized()
    side: Any = dial.axis.cross(dial.zero)
    from_centre: Any = origin - dial.centre
    slope = ray.dot(dial.axis)
    if abs(slope) > EDGE_ON:
        crossing: Any = from_centre - ray * (from_centre.dot(dial.axis) / slope)
        x, y = crossing.dot(dial.zero), crossing.dot(side)
        return None if max(abs(x), abs(y)) < 1e-6 * dial.radius else atan2(y, x)
    to_eye: Any = dial.axis * slope - ray
    facing = atan2(to_eye.dot(side), to_eye.dot(dial.zero))
    line: Any = dial.axis.cross(to_eye)
    across = from_centre.dot(line.normalized()) / dial.radius
    swing = asin(min(max(across, -1.0), 1.0))
    return min(
        (facing + swing, facing + pi - swing), key=lambda angle: abs(remainder(angle - near, FULL_TURN))
    )


class Drag:
    """A value that follows the pointer round a dial, also past a half turn.

    `value` is the value without bounds and snapping, `angle` the pointer's last angle; both in radians.
    """

    def __init__(self, value: float, angle: float) -> None:
        """Start with the present value and the pointer's angle, radians."""
        self.value = value
        self.angle = angle

    def follow(self, angle: float, is_precise: bool) -> None:
        """Take the pointer's next angle, radians; a precise drag moves by a tenth of the change."""
        self.value += remainder(angle - self.angle, FULL_TURN) * (0.1 if is_precise else 1.0)
        self.angle = angle

    def bounded(self, lower: float, upper: float, step: float = 0.0) -> float:
        """The value rounded to whole steps, if `step` is not 0, and clamped to the bounds."""
        value = round(self.value / step) * step if step else self.value
        return min(max(value, lower), upper)
