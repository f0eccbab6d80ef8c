"""Bounds of a limit, put where a rotation is."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, pi, sqrt

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..maths.rotations import angle_of, log, swing_twist
from .outlines import dials
from .shapes import Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist, swing_axes

STRAIGHT = 1e-4
"""Radians to the side below which a swing goes along one axis: what single precision leaves of it."""


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
    """`limit` with the border of its swing where a rotation swings to.

    A cone gets that radius. Of an ellipse the side to which the rotation swings most goes there, and the side
    at right angles to it stays, unless the swing is past half of its square.

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
    parts = abs(x), abs(z)
    most = 0 if parts[0] >= parts[1] else 1
    aside, kept = parts[1 - most], abs(getattr(ellipse, names[1 - most]))
    lengths = {most: parts[most]}
    if aside >= kept * sqrt(0.5) and aside > STRAIGHT:
        lengths = {most: parts[most] * sqrt(2.0), 1 - most: aside * sqrt(2.0)}
    elif aside > STRAIGHT:
        lengths = {most: parts[most] / sqrt(1.0 - (aside / kept) ** 2)}
    return {
        names[k]: min(size, pi) if names[k].endswith("upper") else -min(size, pi)
        for k, size in lengths.items()
    }
