# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes of joint limits, the nearest allowed rotation, and the angle by which a rotation is outside.

A limit speaks about a joint's rotation relative to rest, in the joint's own frame (the bone along +Y): what a
pose bone holds in its rotation channels. All angles are radians. Limits are values: made once, checked when
made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import atan2, pi, sqrt
from typing import TypeAlias

from mathutils import Quaternion

from ..errors import InvalidInput
from ..kernel import project_rotation
from ..maths.alignment import nearest_turn
from ..maths.rotations import NOISE, ROUNDING, angle_between
from ..maths.validation import Triple, angle, finite, numbers, require_order, shown, store, unit, within
from .rows import (
    Components,
    Row,
    box_row,
    cone_row,
    ellipse_row,
    free_row,
    hinge_row,
    reversed_row,
    row_hinge,
)


@dataclass(frozen=True)
class Slide:
    """A range of shifts along one direction: a prismatic joint, beside the rotation.

    Attributes:
        axis: the direction in the joint's frame at rest; stored with length 1.
        lower: smallest shift from rest along `axis`, in the model's unit.
        upper: largest shift.

    Raises:
        InvalidInput: a zero axis, a bound that is not finite, lower above upper.
    """

    axis: Triple
    lower: float
    upper: float

    def __post_init__(self) -> None:
        store(self, "axis", unit("Slide.axis", self.axis))
        store(self, "lower", finite("Slide.lower", self.lower))
        store(self, "upper", finite("Slide.upper", self.upper))
        require_order("Slide", self.lower, self.upper, "the model's unit")


# The axes in the order in which they turn, and whether that order is even (1) or odd (-1).
ORDERS = {
    "XYZ": (0, 1, 2, 1.0),
    "YZX": (1, 2, 0, 1.0),
    "ZXY": (2, 0, 1, 1.0),
    "XZY": (0, 2, 1, -1.0),
    "YXZ": (1, 0, 2, -1.0),
    "ZYX": (2, 1, 0, -1.0),
}


@dataclass(frozen=True)
class Hinge:
    """Rotation about one axis only, by lower..upper radians from rest.

    The bounds may pass a half turn (2.6 to 3.7), exclude rest (a knee that never straightens: 0.1 to 2.5), or
    span a full turn or more, which leaves the angle free.

    Attributes:
        axis: the direction of the axis in the joint's frame; stored with length 1.
        lower: smallest angle, radians.
        upper: largest angle, radians.

    Raises:
        InvalidInput: a zero axis, a bound that is not finite or beyond 100 radians, lower above upper.
    """

    axis: Triple
    lower: float
    upper: float
    row: Row = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        store(self, "axis", unit("Hinge.axis", self.axis))
        store(self, "lower", angle("Hinge.lower", self.lower))
        store(self, "upper", angle("Hinge.upper", self.upper))
        require_order("Hinge", self.lower, self.upper)
        store(self, "row", hinge_row(self.axis, self.lower, self.upper))


@dataclass(frozen=True)
class Cone:
    """Swing by up to `radius` radians in every direction; 0 allows none, pi all.

    Raises:
        InvalidInput: a radius outside 0..pi.
    """

    radius: float

    def __post_init__(self) -> None:
        store(self, "radius", within("Cone.radius", self.radius, 0.0, pi))


@dataclass(frozen=True)
class Ellipse:
    """Swing limited by four quarter ellipses in the plane of the swing's rotation vector.

    x and z are the components, in radians, of that vector on the two swing axes: the frame's X and Z axes
    when the limit's axis is +Y; for any other axis see `swing_axes`. Rest is always inside; a side may be 0.

    Raises:
        InvalidInput: a lower side outside -pi..0 or an upper side outside 0..pi.
    """

    x_lower: float
    x_upper: float
    z_lower: float
    z_upper: float

    def __post_init__(self) -> None:
        for name in ("x_lower", "z_lower"):
            store(self, name, within(f"Ellipse.{name}", getattr(self, name), -pi, 0.0))
        for name in ("x_upper", "z_upper"):
            store(self, name, within(f"Ellipse.{name}", getattr(self, name), 0.0, pi))


@dataclass(frozen=True)
class SwingTwist:
    """A limit on where `axis` may point (swing), and independent of it one on the rotation about it (twist).

    The rotation is swing @ twist: first the twist about the axis, then the swing, about an axis at right
    angles to it.

    Attributes:
        swing: Cone or Ellipse; None leaves the swing free. twist: (lower, upper) in radians, with the meaning
        that a Hinge gives them; None leaves the twist free. axis: the direction in the joint's frame; the
        bone, +Y, unless said otherwise; stored with length 1.

    Raises:
        InvalidInput: a zero axis, a twist that is not two finite numbers in order, a swing of another kind.
    """

    swing: Cone | Ellipse | None = None
    twist: tuple[float, float] | None = None
    axis: Triple = (0.0, 1.0, 0.0)
    row: Row = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.swing is None or isinstance(self.swing, (Cone, Ellipse))):
            raise InvalidInput(f"SwingTwist.swing is {shown(self.swing)}; give a Cone, an Ellipse or None")
        store(self, "axis", unit("SwingTwist.axis", self.axis))
        lower, upper = -pi, pi
        if self.twist is not None:
            lower, upper = (
                angle("SwingTwist.twist", each) for each in numbers("SwingTwist.twist", self.twist, 2)
            )
            require_order("SwingTwist.twist", lower, upper)
            store(self, "twist", (lower, upper))
        if isinstance(self.swing, Ellipse):
            swing = self.swing
            sides = (-swing.x_lower, swing.x_upper, -swing.z_lower, swing.z_upper)
            row = ellipse_row(self.axis, lower, upper, swing_axes(self.axis), sides)
        else:
            row = cone_row(self.axis, lower, upper, pi if self.swing is None else self.swing.radius)
        store(self, "row", row)


@dataclass(frozen=True)
class EulerBox:
    """A range for each of three Euler angles, with Blender's meaning of the order ("XYZ": first X, last Z).

    A rotation is inside when one of its Euler representations is: either of the two, plus any whole turns,
    and at gimbal lock any of the endless many. The bounds have the meaning that a Hinge gives them.

    Attributes:
        order: one of XYZ, XZY, YXZ, YZX, ZXY, ZYX.
        lower: smallest angles about X, Y and Z (whatever the order), radians.
        upper: largest angles about X, Y and Z, radians.

    Raises:
        InvalidInput: an unknown order, bounds that are not three finite numbers, a lower bound above the
        upper.
    """

    order: str
    lower: Triple
    upper: Triple
    row: Row = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InvalidInput(
                f"EulerBox.order is {shown(self.order)}; give one of {', '.join(sorted(ORDERS))}"
            )
        store(self, "lower", numbers("EulerBox.lower", self.lower, 3))
        store(self, "upper", numbers("EulerBox.upper", self.upper, 3))
        for name, lower, upper in zip("XYZ", self.lower, self.upper, strict=True):
            angle(f"EulerBox {name}", lower)
            angle(f"EulerBox {name}", upper)
            require_order(f"EulerBox {name}", lower, upper)
        store(self, "row", box_row(ORDERS[self.order], self.lower, self.upper))


@dataclass(frozen=True)
class ReversedLimit:
    """The allowed rotations of a joint seen from its child, as re-rooting needs them.

    Let a joint turn by p in a frame `frame` away from its parent's. Seen from the child it turns the parent
    by frame @ p^-1 @ frame^-1. A rotation q is allowed when (frame^-1 @ q @ frame)^-1 is inside `limit`.
    Inversion and conjugation keep the angle between rotations, so projection is as exact as in `limit`.

    Attributes:
        limit: of the joint as it was. frame: its rest rotation, (w, x, y, z); stored with length 1.

    Raises:
        InvalidInput: a limit of another kind, a frame that is not four finite numbers or is zero.
    """

    limit: Limit
    frame: Components
    row: Row = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.limit, LIMITS):
            raise InvalidInput(f"Reversed.limit is {shown(self.limit)}; give a Hinge, SwingTwist or EulerBox")
        w, x, y, z = numbers("Reversed.frame", self.frame, 4)
        length = sqrt(w * w + x * x + y * y + z * z)
        if length < 1e-30:
            raise InvalidInput("Reversed.frame is zero; give a rotation, such as (1, 0, 0, 0)")
        store(self, "frame", (w / length, x / length, y / length, z / length))
        store(self, "row", reversed_row(self.limit.row, self.frame))


Limit: TypeAlias = Hinge | SwingTwist | EulerBox | ReversedLimit
LIMITS = (Hinge, SwingTwist, EulerBox, ReversedLimit)
"""The classes of `Limit`, for isinstance."""


@dataclass(frozen=True)
class Comfort:
    """The preferred part of a joint's allowed rotations.

    Attributes:
        tolerance: radians, seen from the joint, by which a goal may be missed for the sake of comfort.
        region: a limit that lies inside the joint's own; None: no preference among the allowed rotations.

    Raises:
        InvalidInput: a tolerance outside 0..pi, a region that is not a limit.
    """

    tolerance: float = 0.0
    region: Limit | None = None

    def __post_init__(self) -> None:
        store(self, "tolerance", within("Comfort.tolerance", self.tolerance, 0.0, pi))
        if not (self.region is None or isinstance(self.region, LIMITS)):
            raise InvalidInput(f"Comfort.region is {shown(self.region)}; give a limit or None")


def limit_row(limit: Limit | None) -> Row:
    """The row of the kernel that stands for `limit`, see `kernel/limits.py`; shared, not to be changed."""
    return free_row() if limit is None else limit.row


def clamp(limit: Limit, rotation: Quaternion) -> Quaternion:
    """The allowed rotation nearest to `rotation`; inside the limit (within `ROUNDING`) that very object.

    Distance is the angle between the two. The result is exact for a Hinge, an EulerBox and a SwingTwist
    without an Ellipse. With an Ellipse the nearest twist is taken first. Then follows the nearest point in
    the plane of the swing's rotation vector, for swings up to 60 degrees at most about 2 degrees farther than
    the nearest rotation. Alike for q and -q, and on the side of `rotation` (dot product >= 0). Clamping again
    changes no bit.

    Of two equally near borders of a twist or hinge range the upper one is taken. A swing by a half turn says
    nothing about the twist: the allowed twist nearest to 0 is taken. A zero quaternion counts as identity.
    NaN is not checked for.
    """
    nearest = project_rotation(limit.row, rotation.w, rotation.x, rotation.y, rotation.z)
    return rotation if nearest is None else Quaternion(nearest)


def violation(limit: Limit, rotation: Quaternion) -> float:
    """The angle in radians between `rotation` and its `clamp`; 0 inside."""
    clamped = clamp(limit, rotation)
    return 0.0 if clamped is rotation else angle_between(rotation, clamped)


def contains(limit: Limit, rotation: Quaternion, tolerance: float = 0.0) -> bool:
    """Whether `rotation` is outside by no more than `tolerance` radians; up to `ROUNDING` is inside."""
    return violation(limit, rotation) <= tolerance


def as_hinge(limit: Limit | None) -> Hinge | None:
    """`limit` as a hinge, where it leaves one angle about a fixed axis and nothing else; None otherwise."""
    if limit is None or isinstance(limit, Hinge):
        return limit
    hinge = row_hinge(limit.row)
    return None if hinge is None else Hinge(*hinge)


def hinge_turn(limit: Hinge, rotation: Quaternion) -> float:
    """The twist of `rotation` about the hinge's axis, brought into its range; radians."""
    x, y, z = limit.axis
    along = rotation.x * x + rotation.y * y + rotation.z * z
    return nearest_turn(2.0 * atan2(along, rotation.w), limit.lower, limit.upper)


def locks_twist(limit: Limit) -> bool:
    """Whether a cone or an ellipse leaves the twist a single angle."""
    return isinstance(limit, SwingTwist) and limit.row[12] <= 0.5 * ROUNDING


def swing_axes(axis: Sequence[float]) -> tuple[Triple, Triple]:
    """The directions in the joint's frame that an Ellipse's x and z turn about, for a twist about `axis`.

    X and Z carried along by the shortest turn that takes +Y to `axis`: X and Z themselves for +Y. For -Y,
    where every half turn is equally short, the one about X: X and -Z. Both have length 1.

    Raises:
        InvalidInput: a zero axis.
    """
    x, y, z = unit("swing_axes: axis", axis)
    square = x * x + z * z
    if y < 0.0 and square < NOISE * NOISE:
        return (1.0, -x * y, 0.0), (0.0, z * y, -1.0)
    share = 1.0 / (1.0 + y) if y >= 0.0 else (1.0 - y) / square  # the same, without cancellation
    return (1.0 - share * x * x, -x, -share * x * z), (-share * x * z, -z, 1.0 - share * z * z)


SLACK = 1e-6
"""Radians by which a region may exceed its limit: rounding of single precision."""


def outside(region: Limit, limit: Limit) -> str | None:
    """Say in words which part of `region` is outside `limit`; None if there is none.

    A region is of the limit's kind, about the same axis or in the same order: only then ranges compare.
    """
    if type(region) is not type(limit):
        return (
            f"it is a {type(region).__name__} while the limit is a {type(limit).__name__}: use the same kind"
        )
    if isinstance(limit, ReversedLimit) and isinstance(region, ReversedLimit):
        if not _near(region.frame, limit.frame):
            return "its frame differs from the limit's"
        return outside(region.limit, limit.limit)
    if isinstance(limit, Hinge) and isinstance(region, Hinge):
        if not _near(region.axis, limit.axis):
            return f"its axis {_shown(region.axis)} differs from the limit's {_shown(limit.axis)}"
        return _range("angle", region.lower, region.upper, limit.lower, limit.upper)
    if isinstance(limit, EulerBox) and isinstance(region, EulerBox):
        if region.order != limit.order:
            return f"its Euler order {region.order} differs from the limit's {limit.order}"
        for name, *bounds in zip("XYZ", region.lower, region.upper, limit.lower, limit.upper, strict=True):
            excess = _range(name, *bounds)
            if excess:
                return excess
        return None
    assert isinstance(limit, SwingTwist) and isinstance(region, SwingTwist)
    if not _near(region.axis, limit.axis):
        return f"its axis {_shown(region.axis)} differs from the limit's {_shown(limit.axis)}"
    return _swing(region, limit) or _twist(region, limit)


def _swing(region: SwingTwist, limit: SwingTwist) -> str | None:
    if limit.swing is None:
        return None
    if region.swing is None:
        return "its swing is free while the limit's is not"
    allowed, wanted = swing_sides(limit.swing), swing_sides(region.swing)
    for name, largest, side in zip(("X min", "X max", "Z min", "Z max"), allowed, wanted, strict=True):
        if side > largest + SLACK:
            return f"its swing ({name}) goes to {side:.4g} rad, the limit's to {largest:.4g}"
    return None


def swing_sides(swing: Cone | Ellipse) -> tuple[float, float, float, float]:
    """The largest swings to the four sides (lower and upper x, lower and upper z), radians, 0 or more."""
    if isinstance(swing, Cone):
        return (swing.radius,) * 4
    return -swing.x_lower, swing.x_upper, -swing.z_lower, swing.z_upper


def _twist(region: SwingTwist, limit: SwingTwist) -> str | None:
    if limit.twist is None:
        return None
    if region.twist is None:
        return "its twist is free while the limit's is not"
    return _range("twist", *region.twist, *limit.twist)


def _range(motion: str, lower: float, upper: float, least: float, most: float) -> str | None:
    if lower < least - SLACK or upper > most + SLACK:
        return (
            f"its {motion} range, {lower:.4g} to {upper:.4g} rad, "
            f"leaves the limit's {least:.4g} to {most:.4g}"
        )
    return None


def _near(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) <= SLACK


def _shown(vector: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{part:.4g}" for part in vector) + ")"
