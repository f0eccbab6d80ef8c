"""A limit made wide enough for rotations that a joint has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import hypot, pi, radians

from mathutils import Quaternion, Vector

from ..maths.rotations import angle_of, log, swing_twist
from .outlines import dials
from .shapes import Cone, Ellipse, Hinge, Limit, SwingTwist, swing_axes, violation

INSIDE = radians(0.1)
"""Radians by which a rotation may be outside a limit and still counts as inside."""
OFF_AXIS = radians(0.5)
"""Radians up to which a rotation counts as one about a hinge's axis."""
ALONG = 0.86
"""Cosine of the angle between a hinge's axis and one of the bone's axes, within which it is that one."""


def widened(limit: Limit, rotations: Sequence[Quaternion], margin: float) -> Limit | None:
    """The limit with those bounds put further out that rotations pass.

    A hinge about whose axis the joint does not turn alone becomes an ellipse, or a cone if it lies along the
    bone. What is inside already changes nothing.

    Args:
        limit: a hinge, or a swing with or without a twist.
        rotations: relative to rest.
        margin: radians by which a new bound lies beyond the rotations that are outside.

    Returns:
        The limit itself where all are inside; None where it has no shape that can hold them.
    """
    outside = [rotation for rotation in rotations if violation(limit, rotation) > INSIDE]
    if not outside:
        return limit
    if isinstance(limit, Hinge):
        free = Hinge(limit.axis, -pi, pi)
        if all(violation(free, rotation) <= OFF_AXIS for rotation in outside):
            angles = [dials(limit, rotation)[0].angle for rotation in outside]
            lower, upper = _bounds((limit.lower, limit.upper), angles, margin)
            return replace(limit, lower=lower, upper=upper)
        swing = loosened(limit, 0.0)
        return None if swing is None else _wide_swing(swing, outside, margin)
    return _wide_swing(limit, outside, margin) if isinstance(limit, SwingTwist) else None


def _bounds(ends: tuple[float, float], angles: Sequence[float], margin: float) -> tuple[float, float]:
    lower, upper = ends
    least, most = min(angles), max(angles)
    return least - margin if least < lower else lower, most + margin if most > upper else upper


def loosened(hinge: Hinge, aside: float) -> SwingTwist | None:
    """A hinge's range about the bone's own axis that it is nearest to, and a little about the others.

    Args:
        hinge: of a joint.
        aside: radians to all other sides.

    Returns:
        An ellipse, or a cone if the hinge lies along the bone; None if it lies between the bone's axes.
    """
    k = max(range(3), key=lambda index: abs(hinge.axis[index]))
    if abs(hinge.axis[k]) < ALONG:
        return None
    ends = (hinge.lower, hinge.upper) if hinge.axis[k] > 0.0 else (-hinge.upper, -hinge.lower)
    lower, upper = max(min(ends[0], 0.0), -pi), min(max(ends[1], 0.0), pi)
    if k == 1:
        return SwingTwist(Cone(aside), (lower, upper))
    sides = (lower, upper, -aside, aside) if k == 0 else (-aside, aside, lower, upper)
    return SwingTwist(Ellipse(*sides), (-aside, aside))


def _wide_swing(limit: SwingTwist, outside: Sequence[Quaternion], margin: float) -> SwingTwist:
    parts = [swing_twist(rotation, Vector(limit.axis)) for rotation in outside]
    twist = limit.twist
    if twist is not None:
        angles = [_signed(turn, Vector(limit.axis)) for _, turn in parts]
        lower, upper = _bounds(twist, angles, margin)
        twist = max(lower, -pi), min(upper, pi)
    swing = limit.swing
    if isinstance(swing, Cone):
        most = max(angle_of(each) for each, _ in parts)
        swing = Cone(min(most + margin, pi)) if most > swing.radius else swing
    elif isinstance(swing, Ellipse):
        axes = [Vector(axis) for axis in swing_axes(limit.axis)]
        swings = [tuple(log(each).dot(axis) for axis in axes) for each, _ in parts]
        swing = _wide_ellipse(swing, swings, margin)
    return replace(limit, swing=swing, twist=twist)


def _signed(twist: Quaternion, axis: Vector) -> float:
    return float(log(twist).dot(axis))


def _wide_ellipse(ellipse: Ellipse, swings: Sequence[Sequence[float]], margin: float) -> Ellipse:
    """Sides that pass each swing by a margin, then as much more as swings between two sides need."""
    x = _bounds((ellipse.x_lower, ellipse.x_upper), [each[0] for each in swings], margin)
    z = _bounds((ellipse.z_lower, ellipse.z_upper), [each[1] for each in swings], margin)
    factor = 1.0
    for along_x, along_z in swings:
        side_x = x[1] if along_x > 0.0 else -x[0]
        side_z = z[1] if along_z > 0.0 else -z[0]
        factor = max(factor, hypot(along_x / max(side_x, INSIDE), along_z / max(side_z, INSIDE)))
    return Ellipse(
        max(x[0] * factor, -pi),
        min(x[1] * factor, pi),
        max(z[0] * factor, -pi),
        min(z[1] * factor, pi),
    )
