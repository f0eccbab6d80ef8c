"""Limits as rows of the kernel; `kernel/limits.py` lists the numbers of a row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import cos, pi, sin
from typing import TypeAlias

from ..kernel import LIMIT_WIDTH
from ..maths.alignment import nearest_turn
from ..maths.rotations import ROUNDING
from ..maths.validation import Triple

Components = tuple[float, float, float, float]
Row: TypeAlias = "array[float]"
"""`LIMIT_WIDTH` doubles."""

_IDENTITY = (1.0, 1.0, 0.0, 0.0, 0.0)  # not reversed, and the frame


def free_row() -> Row:
    """The row of no limit."""
    return kind_row(0.0, ())


def hinge_row(axis: Triple, lower: float, upper: float) -> Row:
    """The row of one angle in lower..upper radians about a unit vector."""
    return cone_row(axis, lower, upper, 0.0)


def cone_row(axis: Triple, lower: float, upper: float, radius: float) -> Row:
    """The row of a twist of lower..upper about a unit vector with a swing of up to `radius`."""
    return kind_row(1.0, (*axis, *_twist(lower, upper), *_radius(radius), *_rest(lower, upper), lower, upper))


def ellipse_row(
    axis: Triple, lower: float, upper: float, swing_axes: tuple[Triple, Triple], sides: Components
) -> Row:
    """The row of a twist of lower..upper about a unit vector with a swing in an ellipse.

    Args:
        swing_axes: the axes of the swing's rotation vector.
        sides: half axes towards -a, +a, -b, +b in radians, none negative.
    """
    # Sides thinner than rounding are zero: their curvature would overflow.
    full = (side if side > ROUNDING else 0.0 for side in sides)
    a, b = swing_axes
    cone = (*axis, *_twist(lower, upper), *_radius(pi), *_rest(lower, upper), lower, upper)
    return kind_row(2.0, (*cone, *a, *b, *full))


def box_row(order: tuple[int, int, int, float], lower: Triple, upper: Triple) -> Row:
    """The row of an Euler box; a hinge's where it leaves one angle.

    Args:
        order: the axes in the order in which they turn, and the sign of that order.
        lower, upper: bounds of the angles about X, Y and Z, radians.
    """
    turning = [axis for axis in range(3) if lower[axis] != 0.0 or upper[axis] != 0.0] or [0]
    if len(turning) == 1:
        axis = [0.0, 0.0, 0.0]
        axis[turning[0]] = 1.0
        return hinge_row((axis[0], axis[1], axis[2]), lower[turning[0]], upper[turning[0]])
    i, j, k, sign = order
    third = (lower[k], upper[k]) if sign > 0.0 else (-upper[k], -lower[k])
    return kind_row(3.0, (i, j, k, sign, lower[i], upper[i], lower[j], upper[j], *third))


def reversed_row(row: Row, frame: Components) -> Row:
    """The row of a limit seen from the joint's child; see `shapes.ReversedLimit`."""
    hinge = row_hinge(row)
    if hinge is not None:
        axis, lower, upper = hinge
        return hinge_row(rotated(frame, axis), -upper, -lower)
    outer = row[:]
    # (F^-1 q F)^-1 of an inner frame F' is F'^-1 (F^-1 q F)^-1 F': frames multiply, inversions cancel.
    outer[1] = -row[1]
    outer[2:6] = array("d", product(frame, (row[2], row[3], row[4], row[5])))
    return outer


def row_hinge(row: Row) -> tuple[Triple, float, float] | None:
    """Axis and bounds of a limit that leaves one angle about a fixed axis; None of others."""
    if row[0] != 1.0 or row[14] != 0.0:
        return None
    return (row[6], row[7], row[8]), row[17], row[18]


def product(a: Components, b: Components) -> Components:
    """The rotation by the quaternion `b`, then by `a`."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def rotated(frame: Components, vector: Triple) -> Triple:
    """A vector turned by a unit quaternion."""
    w, x, y, z = frame
    _, *turned = product(product(frame, (0.0, *vector)), (w, -x, -y, -z))
    return turned[0], turned[1], turned[2]


def kind_row(kind: float, numbers: Iterable[float]) -> Row:
    """The row of a kind with its numbers from place 6 on; see `kernel/limits.py`."""
    row = array("d", (kind, *_IDENTITY, *numbers))
    row.extend([0.0] * (LIMIT_WIDTH - len(row)))
    return row


def _twist(lower: float, upper: float) -> Components:
    """Cosine and sine of half a range's middle, and of half its half-width.

    Half angles, as quaternions have them. From a width of a full turn on everything is inside: (.., 0, 1).
    """
    middle, half_width = 0.5 * (lower + upper), 0.5 * (upper - lower)
    if half_width >= pi:
        return cos(0.5 * middle), sin(0.5 * middle), 0.0, 1.0
    return cos(0.5 * middle), sin(0.5 * middle), cos(0.5 * half_width), sin(0.5 * half_width)


def _radius(radius: float) -> tuple[float, float]:
    return (cos(0.5 * radius), sin(0.5 * radius)) if radius < pi else (0.0, 1.0)


def _rest(lower: float, upper: float) -> tuple[float, float]:
    """Cosine and sine of half the angle of a range that is nearest to zero on the circle."""
    rest = 0.5 * nearest_turn(0.0, lower, upper)
    return cos(rest), sin(rest)
