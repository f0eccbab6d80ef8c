"""Limits of a bone from anatomical ranges of motion: upward, forward, outward, backward."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, hypot, pi, radians, remainder
from typing import Any

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..maths.validation import Triple
from .shapes import Ellipse, Hinge, SwingTwist

ALIGNED = radians(30.0)
"""Radians within which a motion counts as one about the bone's X or Z axis."""

ROOM = radians(20.0)
"""Radians of motion left to a side whose end the joint has passed at rest.

The rest of such a rig is not the pose from which the range counts, so the end tells little.
"""

_BONE = Vector((0.0, 1.0, 0.0)).freeze()


Swing = tuple[Any, float, float]
"""A direction of a bone's tail in model space, with the radians of its swing there and the opposite way.

Its part along the bone does not count. Radians are below 0 where rest is already past the end of the motion.
"""


def swing_limit(
    rest: Quaternion, one: Swing, other: Swing, twist: tuple[float, float] | None
) -> tuple[SwingTwist, bool]:
    """The ellipse with these motions to its sides, and whether it is exact.

    It is exact where each motion turns about the bone's X or Z axis, within `ALIGNED`. On a bone with another
    roll each side is interpolated between the two motions beside it.

    Args:
        rest: orientation of the bone at rest in model space.
        one, other: at right angles to each other or nearly so.
        twist: range about the bone, radians.

    Raises:
        InvalidInput: a motion goes along the bone.
    """
    around = sorted(
        (_azimuth(rest, sign * toward), beyond_rest(angle))
        for toward, *angles in (one, other)
        for sign, angle in zip((1.0, -1.0), angles, strict=True)
    )
    sides, is_exact = [], True
    for azimuth in (pi, 0.0, -0.5 * pi, 0.5 * pi):
        nearest = min(around, key=lambda each: abs(remainder(each[0] - azimuth, 2.0 * pi)))
        if abs(remainder(nearest[0] - azimuth, 2.0 * pi)) <= ALIGNED:
            sides.append(nearest[1])
        else:
            sides.append(_between(around, azimuth))
            is_exact = False
    x_lower, x_upper, z_lower, z_upper = (min(side, pi) for side in sides)
    return SwingTwist(Ellipse(-x_lower, x_upper, -z_lower, z_upper), twist), is_exact


def hinge_limit(rest: Quaternion, axis: Vector, lower: float, upper: float) -> Hinge:
    """The hinge about an axis in model space.

    Args:
        rest: orientation of the bone at rest in model space.
        axis: right-handed; angles count about it.
        lower: radians from rest.
        upper: radians from rest.
    """
    x, y, z = (rest.conjugated() @ axis.normalized())[:]
    local: Triple = (x, y, z)
    return Hinge(local, lower, upper)


def _azimuth(rest: Quaternion, toward: Vector) -> float:
    """The angle in the bone's XZ plane of the axis of the swing towards a direction."""
    axis: Any = _BONE.cross(rest.conjugated() @ toward.normalized())
    if hypot(axis.x, axis.z) < 0.1:
        raise InvalidInput("it points along one of its own motions")
    return atan2(axis.z, axis.x)


def _between(around: Sequence[tuple[float, float]], azimuth: float) -> float:
    """The range of a swing about an axis between those of two motions, interpolated between theirs."""
    after = min(around, key=lambda each: (each[0] - azimuth) % (2.0 * pi))
    before = min(around, key=lambda each: (azimuth - each[0]) % (2.0 * pi))
    to_after, to_before = (after[0] - azimuth) % (2.0 * pi), (azimuth - before[0]) % (2.0 * pi)
    share = cos(0.5 * pi * to_before / (to_before + to_after)) ** 2
    return before[1] * share + after[1] * (1.0 - share)


def beyond_rest(angle: float) -> float:
    """The range to a side from rest: `angle`, or `ROOM` where rest is past the end."""
    return angle if angle >= 0.0 else ROOM


def turned_toward(bone: Vector, reference: Vector, front: Vector) -> float:
    """The angle in radians by which `bone` is turned from `reference` towards `front`."""
    side: Any = front - reference * front.dot(reference)
    return atan2(bone.dot(side.normalized()), bone.dot(reference))


def blend(low: float, high: float, part: float) -> float:
    """Interpolate along a cosine, from `low` at 0 to `high` at 1."""
    return low + (high - low) * 0.5 * (1.0 - cos(pi * min(max(part, 0.0), 1.0)))
