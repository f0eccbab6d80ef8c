"""A bound that is dragged on its dial: the pointer's angle there, and the value that follows it.

Lengths and directions are in the frame of the dial.
"""

from __future__ import annotations

from math import asin, atan2, pi, remainder
from typing import Any

from mathutils import Vector

from .outlines import FULL_TURN, Dial

EDGE_ON = 0.15
"""Sine of the angle between ray and dial below which where they cross says too little."""


def angle_on(dial: Dial, origin: Vector, direction: Vector, near: float) -> float | None:
    """The angle in radians at which a ray meets the dial; None where it crosses the dial's centre.

    That is where the ray crosses the dial's plane. A dial that is seen edge-on is a line to the eye: of its
    two points that are seen where the ray passes, the one nearer to `near` counts.

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
        found: Any = from_centre - ray * (from_centre.dot(dial.axis) / slope)
        x, y = found.dot(dial.zero), found.dot(side)
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

    `value` is where the value would be with no bounds and no snapping, `angle` where the pointer was last;
    both in radians.
    """

    def __init__(self, value: float, angle: float) -> None:
        """Start with the value as it is and the pointer's angle, radians."""
        self.value = value
        self.angle = angle

    def follow(self, angle: float, is_precise: bool) -> None:
        """Take the pointer's next angle, radians; precisely a tenth of the way counts."""
        self.value += remainder(angle - self.angle, FULL_TURN) * (0.1 if is_precise else 1.0)
        self.angle = angle

    def bounded(self, lower: float, upper: float, step: float = 0.0) -> float:
        """The value on a whole number of steps, if there is a step, and inside the bounds."""
        value = round(self.value / step) * step if step else self.value
        return min(max(value, lower), upper)
