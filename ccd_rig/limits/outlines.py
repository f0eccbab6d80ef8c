# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlines of limits for drawing, and bounds set by a pointer or a rotation.

Coordinates are those of the joint's frame at rest: the joint at the origin, the bone along +Y. Lengths are
parts of the size of the drawing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import asin, atan2, cos, hypot, inf, pi, radians, remainder, sin, sqrt
from typing import Any

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..maths.alignment import FULL_TURN, wrapped
from ..maths.rotations import NOISE, ROUNDING, angle_of, exp, log, perpendicular, swing_twist
from .shapes import ORDERS, Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist, swing_axes, swing_sides

NEAR = radians(0.5)
"""Radians from a border at which a rotation counts as being there."""

ARC_STEP = radians(5.0)  # from one point of an arc to the next, at most
RIM_POINTS = 72
TWIST_PLACE, TWIST_RADIUS = 0.7, 0.45  # of the arc of a rotation about the bone: along the bone, and its size
_BONE = Vector((0.0, 1.0, 0.0)).freeze()


@dataclass(frozen=True)
class Dial:
    """A range of one angle, as an arc about a centre.

    Attributes:
        name: "HINGE", "TWIST", or the Euler angle: "X", "Y" or "Z".
        centre: of the arc.
        axis: unit; angles count about it, right-handed.
        zero: unit, at right angles to `axis`; where angle 0 points.
        radius: of the arc.
        lower: smallest angle, radians.
        upper: largest angle; a full turn or more above `lower` leaves the angle free.
        angle: the present one, radians, on the turn that is nearest to the range.
    """

    name: str
    centre: Vector
    axis: Vector
    zero: Vector
    radius: float
    lower: float
    upper: float
    angle: float

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
    """The border of a swing on the unit sphere: the outermost directions of the limit's axis.

    Attributes:
        points: unit, from +X on round the axis; the last is the first.
        direction: unit, of the axis in the present pose.
        margin: radians from there to the rim, away from rest; below 0 outside.
    """

    points: tuple[Vector, ...]
    direction: Vector
    margin: float

    @property
    def is_at_border(self) -> bool:
        """Whether the axis points to the rim or outside."""
        return self.margin < NEAR


def dials(limit: Limit, rotation: Quaternion) -> tuple[Dial, ...]:
    """The arcs of a limit whose joint has this rotation, relative to rest.

    A hinge has one. A twist range has one that swings along with the bone. An Euler box has one for each
    angle, carried by the angles that turn after it. A free twist and a ReversedLimit have none.
    """
    if isinstance(limit, Hinge):
        return (_hinge_dial(limit, rotation),)
    if isinstance(limit, SwingTwist) and limit.twist is not None:
        axis = Vector(limit.axis)
        swing, _ = swing_twist(rotation, axis)
        return (_roll_dial("TWIST", *limit.twist, _twist_angle(axis, rotation), swing, axis),)
    if isinstance(limit, EulerBox):
        return _euler_dials(limit, rotation)
    return ()


def rim(limit: Limit, rotation: Quaternion) -> Rim | None:
    """The border of a limit's swing for a joint with this rotation; None where the swing is free."""
    if not isinstance(limit, SwingTwist) or limit.swing is None:
        return None
    sides = swing_sides(limit.swing)
    if min(sides) >= pi - ROUNDING:
        return None
    axis = Vector(limit.axis)
    swing, _ = swing_twist(rotation, axis)
    vector = log(swing)
    a, b = (Vector(each) for each in swing_axes(limit.axis))
    return Rim(_rim_points(limit), rotation @ axis, _margin(vector.dot(a), vector.dot(b), sides))


@lru_cache(maxsize=256)
def _rim_points(limit: SwingTwist) -> tuple[Vector, ...]:
    assert limit.swing is not None
    x_lower, x_upper, z_lower, z_upper = swing_sides(limit.swing)
    axis = Vector(limit.axis)
    a, b = (Vector(each) for each in swing_axes(limit.axis))
    points = []
    for i in range(RIM_POINTS):
        x, z = cos(FULL_TURN * i / RIM_POINTS), sin(FULL_TURN * i / RIM_POINTS)
        on_a, on_b = x * (x_upper if x >= 0.0 else x_lower), z * (z_upper if z >= 0.0 else z_lower)
        points.append((exp(a * on_a + b * on_b) @ axis).freeze())
    return (*points, points[0])


def _margin(on_a: float, on_b: float, sides: tuple[float, float, float, float]) -> float:
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


def _hinge_dial(limit: Hinge, rotation: Quaternion) -> Dial:
    axis = Vector(limit.axis)
    across = _BONE - axis * axis.dot(_BONE)
    if across.length > NOISE:
        return _dial(
            "HINGE", limit.lower, limit.upper, _twist_angle(axis, rotation), axis, across.normalized()
        )
    return _roll_dial("HINGE", limit.lower, limit.upper, _twist_angle(axis, rotation), Quaternion(), axis)


def _euler_dials(limit: EulerBox, rotation: Quaternion) -> tuple[Dial, ...]:
    angles = _euler_angles(limit, rotation)
    arcs = []
    carried = Quaternion()
    i, j, k, _ = ORDERS[limit.order]
    for component in (k, j, i):  # the last to turn carries the others
        axis = Vector([float(component == each) for each in range(3)])
        name, bounds = "XYZ"[component], (limit.lower[component], limit.upper[component])
        if component == 1:
            arcs.append(_roll_dial(name, *bounds, angles[component], carried, axis))
        else:
            arcs.append(_dial(name, *bounds, angles[component], carried @ axis, carried @ _BONE))
        carried = carried @ exp(axis * angles[component])
    return tuple(arcs)


def _euler_angles(limit: EulerBox, rotation: Quaternion) -> tuple[float, float, float]:
    """The Euler angles nearest to the ranges, of the two triples that stand for a rotation."""
    order: Any = limit.order
    euler = rotation.to_euler(order)
    first = [euler.x, euler.y, euler.z]
    i, j, k, _ = ORDERS[limit.order]
    second = [0.0, 0.0, 0.0]
    second[i], second[j], second[k] = first[i] + pi, pi - first[j], first[k] + pi
    candidates = []
    for angles in (first, second):
        bounds = list(zip(limit.lower, limit.upper, strict=True))
        x, y, z = (wrapped(angle, 0.5 * sum(ends)) for angle, ends in zip(angles, bounds, strict=True))
        outside = sum(
            max(lower - angle, angle - upper, 0.0)
            for angle, (lower, upper) in zip((x, y, z), bounds, strict=True)
            if upper - lower < FULL_TURN
        )
        candidates.append((round(outside, 5), abs(x) + abs(y) + abs(z), (x, y, z)))
    return min(candidates)[2]


def _twist_angle(axis: Vector, rotation: Quaternion) -> float:
    return 2.0 * atan2(axis.dot(Vector((rotation.x, rotation.y, rotation.z))), rotation.w)


def _dial(name: str, lower: float, upper: float, angle: float, axis: Vector, zero: Vector) -> Dial:
    return Dial(name, Vector(), axis, zero, 1.0, lower, upper, wrapped(angle, 0.5 * (lower + upper)))


def _roll_dial(name: str, lower: float, upper: float, angle: float, swing: Quaternion, axis: Vector) -> Dial:
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
        dial: in its own frame.
        origin: of the ray.
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


STRAIGHT = 1e-4
"""Radians to the side below which a swing goes along one axis: rounding of single precision."""


def with_bound_at(limit: Limit, rotation: Quaternion, is_upper: bool) -> Limit:
    """`limit` with the lower or the upper bounds of its angles at those of a rotation.

    The angles are a hinge's, a twist's, or all three of an Euler box. A bound that would pass the other end
    of its range takes it along.

    Raises:
        InvalidInput: the limit has no range of an angle.
    """
    angles = {dial.name: dial.angle for dial in dials(limit, rotation)}
    if isinstance(limit, Hinge):
        lower, upper = _moved(limit.lower, limit.upper, angles["HINGE"], is_upper)
        return replace(limit, lower=lower, upper=upper)
    if isinstance(limit, SwingTwist) and limit.twist is not None:
        return replace(limit, twist=_moved(*limit.twist, angles["TWIST"], is_upper))
    if isinstance(limit, EulerBox):
        x, y, z = (
            _moved(lower, upper, angles[name], is_upper)
            for name, lower, upper in zip("XYZ", limit.lower, limit.upper, strict=True)
        )
        return replace(limit, lower=(x[0], y[0], z[0]), upper=(x[1], y[1], z[1]))
    raise InvalidInput("the limit has no smallest and largest angle")


def _moved(lower: float, upper: float, angle: float, is_upper: bool) -> tuple[float, float]:
    return (min(lower, angle), angle) if is_upper else (angle, max(upper, angle))


def with_rim_at(limit: Limit, rotation: Quaternion) -> Limit:
    """`limit` with the border of its swing at the swing of a rotation.

    A cone gets that radius. Of an ellipse the side to which the rotation swings most is moved. The side at
    right angles to it stays, unless the swing is past half of its square.

    Raises:
        InvalidInput: the limit has no border of a swing.
    """
    if not isinstance(limit, SwingTwist) or limit.swing is None:
        raise InvalidInput("the limit has no border of a swing")
    swing, _ = swing_twist(rotation, Vector(limit.axis))
    if isinstance(limit.swing, Cone):
        return replace(limit, swing=Cone(min(angle_of(swing), pi)))
    vector = log(swing)
    x, z = (vector.dot(Vector(axis)) for axis in swing_axes(limit.axis))
    sides = _sides_through(limit.swing, x, z)
    return replace(limit, swing=replace(limit.swing, **sides))


def _sides_through(ellipse: Ellipse, x: float, z: float) -> dict[str, float]:
    """The sides, by name, with which an ellipse goes through a point that is not its centre."""
    if hypot(x, z) == 0.0:
        raise InvalidInput("the rotation does not swing")
    names = "x_upper" if x >= 0.0 else "x_lower", "z_upper" if z >= 0.0 else "z_lower"
    swings = abs(x), abs(z)
    most = 0 if swings[0] >= swings[1] else 1
    aside, kept = swings[1 - most], abs(getattr(ellipse, names[1 - most]))
    lengths = {most: swings[most]}
    if aside >= kept * sqrt(0.5) and aside > STRAIGHT:
        lengths = {most: swings[most] * sqrt(2.0), 1 - most: aside * sqrt(2.0)}
    elif aside > STRAIGHT:
        lengths = {most: swings[most] / sqrt(1.0 - (aside / kept) ** 2)}
    return {
        names[k]: min(size, pi) if names[k].endswith("upper") else -min(size, pi)
        for k, size in lengths.items()
    }
