"""Mirror limits for the joints on the other side of a skeleton.

Let B_L and B_R be the rest orientations of the two joints in model space. A rotation q of the left joint is
mirrored in the plane x = 0 by C q C^-1, with C = B_R^T diag(-1, 1, 1) B_L. C reflects. -C turns, and does the
same to q: a mirrored limit is the limit itself, turned into other axes.
"""

from __future__ import annotations

from math import copysign, cos, radians

from mathutils import Quaternion, Vector

from ..maths.rotations import angle_between
from ..maths.validation import Triple

SKEW = radians(2.0)
"""Radians by which joints may rest off their mirror image and still take over ranges about single axes."""

NEAR = radians(0.01)
"""Radians below which axes count as parallel: rounding of exact mirror images in single precision."""

UNITS: tuple[Triple, Triple, Triple] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def mirror_turn(rest: Quaternion, other_rest: Quaternion) -> Quaternion:
    """-C: the rotation that turns the limit of a joint into that of its mirror image.

    Args:
        rest: orientation of the joint at rest, in model space, whose plane x = 0 mirrors.
        other_rest: orientation of the joint on the other side.
    """
    half_turn = Quaternion((0.0, 1.0, 0.0, 0.0))  # -diag(-1, 1, 1)
    return other_rest.conjugated() @ half_turn @ rest


def nearest_exchange(turn: Quaternion, tolerance: float = NEAR) -> Quaternion | None:
    """The rotation that exchanges axes, nearest to `turn`; None if it is farther away than `tolerance`."""
    # Components of the 24 rotations of a cube are 0, 1/2, sqrt(1/2) or 1.
    steps = (0.0, 0.5, 0.5**0.5, 1.0)
    values = turn[:]
    sizes = [min(steps, key=lambda step: abs(abs(value) - step)) for value in values]
    exact = Quaternion([copysign(size, value) for size, value in zip(sizes, values, strict=True)])
    is_near = abs(exact.magnitude - 1.0) < 1e-6 and angle_between(exact, turn) <= tolerance
    return exact if is_near else None


def image(turn: Quaternion, axis: Triple) -> Triple:
    """The axis, turned."""
    x, y, z = (turn @ Vector(axis))[:]
    return x, y, z


def side_of(a: Triple, b: Triple) -> float:
    """1 where two unit vectors agree, -1 where they are opposed, within `SKEW`; 0 otherwise."""
    dot = sum(p * q for p, q in zip(a, b, strict=True))
    if abs(dot) < cos(SKEW):
        return 0.0
    return 1.0 if dot > 0.0 else -1.0
