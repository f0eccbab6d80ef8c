"""A bound that is dragged on its dial: the pointer's angle there, and the value that follows it.

Lengths and directions are in the frame of the dial.
"""

from __future__ import annotations

from math import atan2, remainder
from typing import Any

from mathutils import Vector

from .outlines import FULL_TURN, Dial

EDGE_ON = 0.05  # sine of the angle between ray and plane below which they have no useful crossing


def angle_on(dial: Dial, origin: Vector, direction: Vector) -> float | None:
    """The angle in radians, -pi to pi, at which a ray meets the dial; None where the ray passes its centre.

    That is where the ray crosses the dial's plane. A ray that is nearly in the plane, or that leaves it
    behind, counts where it is nearest to the centre.

    Args:
        dial: in its own frame.
        origin: of the ray.
        direction: of the ray, any length but 0.
    """
    ray = direction.normalized()
    to_centre = dial.centre - origin
    slope = ray.dot(dial.axis)
    along = to_centre.dot(dial.axis) / slope if abs(slope) > EDGE_ON else to_centre.dot(ray)
    if along < 0.0:
        along = to_centre.dot(ray)
    found: Any = ray * along - to_centre
    x, y = found.dot(dial.zero), found.dot(dial.axis.cross(dial.zero))
    return None if max(abs(x), abs(y)) < 1e-6 * dial.radius else atan2(y, x)


class Drag:
    """A value that follows the pointer round a dial, also past a half turn.

    `value` is where the value would be with no bounds and no snapping, radians.
    """

    def __init__(self, value: float, angle: float) -> None:
        """Start with the value as it is and the pointer's angle, radians."""
        self.value = value
        self._angle = angle

    def follow(self, angle: float, is_precise: bool) -> None:
        """Take the pointer's next angle, radians; precisely a tenth of the way counts."""
        self.value += remainder(angle - self._angle, FULL_TURN) * (0.1 if is_precise else 1.0)
        self._angle = angle

    def bounded(self, lower: float, upper: float, step: float = 0.0) -> float:
        """The value on a whole number of steps, if there is a step, and inside the bounds."""
        value = round(self.value / step) * step if step else self.value
        return min(max(value, lower), upper)
