"""Mirror a limit for the joint on the other side of a skeleton.

Let B_L and B_R be the rest orientations of the two joints in model space. A rotation q of the left joint is
mirrored in the plane x = 0 by C q C^-1, with C = B_R^T diag(-1, 1, 1) B_L. C reflects. -C turns, and does the
same to q: a mirrored limit is the limit itself, turned into other axes.
"""

from __future__ import annotations

from math import copysign, cos, radians

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..maths.rotations import angle_between
from ..maths.validation import Triple
from .shapes import ORDERS, Ellipse, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist, swing_axes

SKEW = radians(2.0)
"""Radians by which joints may rest off their mirror image and still take over ranges about single axes."""

NEAR = radians(0.01)
"""Radians below which axes count as parallel: rounding of exact mirror images in single precision."""

_UNIT: tuple[Triple, Triple, Triple] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def mirror_turn(rest: Quaternion, other_rest: Quaternion) -> Quaternion:
    """-C: the rotation that turns the limit of a joint into that of its mirror image.

    Args:
        rest: orientation of the joint at rest, in model space, whose plane x = 0 mirrors.
        other_rest: orientation of the joint on the other side.
    """
    half_turn = Quaternion((0.0, 1.0, 0.0, 0.0))  # -diag(-1, 1, 1)
    return other_rest.conjugated() @ half_turn @ rest


def turned(limit: Limit, turn: Quaternion) -> Limit:
    """The limit that allows turn @ q @ turn^-1 for each q that `limit` allows.

    Raises:
        InvalidInput: an ellipse or an Euler box would come to lie askew to the axes of its joint.
    """
    turn = _nearest_exchange(turn, NEAR) or turn
    if isinstance(limit, Hinge):
        return Hinge(_image(turn, limit.axis), limit.lower, limit.upper)
    if isinstance(limit, ReversedLimit):
        w, x, y, z = (turn @ Quaternion(limit.frame))[:]
        return ReversedLimit(limit.limit, (w, x, y, z))
    if isinstance(limit, EulerBox):
        return _turned_box(limit, turn)
    return _turned_swing(limit, turn)


def _turned_swing(limit: SwingTwist, turn: Quaternion) -> SwingTwist:
    axis = _image(turn, limit.axis)
    along = _sign(axis, limit.axis)
    twist = limit.twist
    if along != 0.0:  # the same line: a twist about -n is the negative twist about n
        axis = limit.axis
        if along < 0.0 and twist is not None:
            twist = -twist[1], -twist[0]
    if not isinstance(limit.swing, Ellipse):
        return SwingTwist(limit.swing, twist, axis)
    sides = limit.swing
    ranges = ((sides.x_lower, sides.x_upper), (sides.z_lower, sides.z_upper))
    mirrored: dict[int, tuple[float, float]] = {}
    for old, bounds in zip(swing_axes(limit.axis), ranges, strict=True):
        image = _image(turn, old)
        for k, new in enumerate(swing_axes(axis)):
            sign = _sign(image, new)
            if sign != 0.0:
                mirrored[k] = bounds if sign > 0.0 else (-bounds[1], -bounds[0])
    if len(mirrored) < 2:
        raise InvalidInput("its ellipse would lie askew to the joint's axes; use a cone or a hinge")
    return SwingTwist(Ellipse(*mirrored[0], *mirrored[1]), twist, axis)


def _turned_box(limit: EulerBox, turn: Quaternion) -> EulerBox:
    places, lower, upper = [0, 0, 0], [0.0] * 3, [0.0] * 3
    for old in range(3):
        image = _image(turn, _UNIT[old])
        signs = [_sign(image, unit) for unit in _UNIT]
        if not any(signs):
            raise InvalidInput("its Euler angles would lie askew to the joint's axes; use a cone or a hinge")
        new = next(k for k in range(3) if signs[k])
        places[old] = new
        bounds = limit.lower[old], limit.upper[old]
        lower[new], upper[new] = bounds if signs[new] > 0.0 else (-bounds[1], -bounds[0])
    order = "".join("XYZ"[places["XYZ".index(name)]] for name in limit.order)
    assert order in ORDERS
    return EulerBox(order, (lower[0], lower[1], lower[2]), (upper[0], upper[1], upper[2]))


def _nearest_exchange(turn: Quaternion, tolerance: float) -> Quaternion | None:
    """The rotation that exchanges axes, nearest to `turn`; None if it is farther away than `tolerance`."""
    # Components of the 24 rotations of a cube are 0, 1/2, sqrt(1/2) or 1.
    steps = (0.0, 0.5, 0.5**0.5, 1.0)
    values = turn[:]
    sizes = [min(steps, key=lambda step: abs(abs(value) - step)) for value in values]
    exact = Quaternion([copysign(size, value) for size, value in zip(sizes, values, strict=True)])
    is_near = abs(exact.magnitude - 1.0) < 1e-6 and angle_between(exact, turn) <= tolerance
    return exact if is_near else None


def _image(turn: Quaternion, axis: Triple) -> Triple:
    x, y, z = (turn @ Vector(axis))[:]
    return x, y, z


def _sign(a: Triple, b: Triple) -> float:
    """1 where two unit vectors agree, -1 where they are opposed, within `SKEW`; 0 otherwise."""
    dot = sum(p * q for p, q in zip(a, b, strict=True))
    if abs(dot) < cos(SKEW):
        return 0.0
    return 1.0 if dot > 0.0 else -1.0
