# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes of joint limits, each with all its answers, and the nearest allowed rotation.

A limit speaks about a joint's rotation relative to rest, in the joint's own frame (the bone along +Y): what a
pose bone holds in its rotation channels. All angles are radians. Limits are values: made once, checked when
made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import asin, ceil, copysign, hypot, pi, radians, sqrt
from random import Random
from typing import Any, Self, TypeAlias

import numpy as np
from mathutils import Euler, Quaternion, Vector
from numpy.typing import NDArray

from ..defaults import TOLERANCE
from ..errors import InvalidInput
from ..kernel import LIMIT_WIDTH, cos, nearest_of_many, project_rotation, sin
from ..maths.batch import Array, Mask, angles_between
from ..maths.rotations import (
    FULL_TURN,
    NOISE,
    angle_between,
    angle_of,
    exp,
    log,
    nearest_turn,
    swing_twist,
    twist_angle,
    wrapped,
)
from ..maths.validation import (
    ROUNDING,
    Triple,
    angle,
    coordinate,
    numbers,
    require_order,
    shown,
    store,
    unit,
    within,
)
from .outlines import Dial, Rim, bend_dial, rim_margin, roll_dial


@dataclass(frozen=True)
class Slide:
    """A range of shifts along one direction: a prismatic joint, beside the rotation.

    Attributes:
        axis: the direction in the joint's frame at rest; stored with length 1.
        lower: smallest shift from rest along `axis`, in the model's unit.
        upper: largest shift.

    Raises:
        InvalidInput: a zero axis, a bound beyond +-1e15, lower above upper.
    """

    axis: Triple
    lower: float
    upper: float

    def __post_init__(self) -> None:
        store(self, "axis", unit("Slide.axis", self.axis))
        store(self, "lower", coordinate("Slide.lower", self.lower))
        store(self, "upper", coordinate("Slide.upper", self.upper))
        require_order("Slide", self.lower, self.upper, "the model's unit")


class Limit(ABC):
    """The allowed rotations of a joint: their row in the kernel, and how they are drawn, set and mirrored.

    A shape over it is listed in `LIMITS`, and has its case in `kernel/limits`.

    Attributes:
        row: of the kernel, see `kernel/limits.py`; shared, not to be changed.
    """

    row: Row

    @abstractmethod
    def sample(self, random: Random) -> Quaternion:
        """A random rotation inside, drawn from `random` alone; see `sample`."""

    @abstractmethod
    def outside_of(self, limit: Self) -> str | None:
        """Say in words which rotations are outside a limit of the same shape; None if there are none."""

    def turned(self, turn: Quaternion) -> Limit:
        """The limit that allows turn @ q @ turn^-1 for each q that this one allows.

        Raises:
            InvalidInput: the limit would come to lie askew to the axes of its joint.
        """
        return self.carried(nearest_exchange(turn) or turn)

    @abstractmethod
    def carried(self, turn: Quaternion) -> Limit:
        """`turned` by this very rotation."""

    @property
    def is_free(self) -> bool:
        """Whether every rotation is allowed."""
        return False

    def dials(self, _rotation: Quaternion) -> tuple[Dial, ...]:
        """The arcs of the ranges of angles, for a joint with this rotation relative to rest."""
        return ()

    def rim(self, _rotation: Quaternion) -> Rim | None:
        """The border of the swing, for a joint with this rotation; None where the swing is free."""
        return None

    def with_bound_at(self, _rotation: Quaternion, _is_upper: bool) -> Self:
        """The limit with the lower or the upper bounds of its angles at those of a rotation.

        A bound that would pass the other end of its range takes it along.
        """
        raise NotImplementedError  # no range of an angle

    def with_rim_at(self, _rotation: Quaternion) -> Self:
        """The limit with the border of its swing at the swing of a rotation.

        A cone gets that radius. Of an ellipse the side to which the rotation swings most is moved. The side
        at right angles to it stays, unless the swing is past half of its square.

        Raises:
            InvalidInput: the rotation does not swing to a side.
        """
        raise NotImplementedError  # no border of a swing


# Hinges ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hinge(Limit):
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

    def sample(self, random: Random) -> Quaternion:
        return _swing_and_twist(self.axis, 0.0, 0.0, random.uniform(self.lower, self.upper))

    def outside_of(self, limit: Hinge) -> str | None:
        if not _near(self.axis, limit.axis):
            return f"its axis {_shown(self.axis)} differs from the limit's {_shown(limit.axis)}"
        return _range("angle", self.lower, self.upper, limit.lower, limit.upper)

    def carried(self, turn: Quaternion) -> Hinge:
        return Hinge(image(turn, self.axis), self.lower, self.upper)

    def dials(self, rotation: Quaternion) -> tuple[Dial, ...]:
        axis = Vector(self.axis)
        across = _BONE - axis * axis.dot(_BONE)
        angle = twist_angle(rotation, self.axis)
        if across.length > NOISE:
            return (bend_dial("HINGE", self.lower, self.upper, angle, axis, across.normalized()),)
        return (roll_dial("HINGE", self.lower, self.upper, angle, Quaternion(), axis),)

    def with_bound_at(self, rotation: Quaternion, is_upper: bool) -> Hinge:
        (dial,) = self.dials(rotation)
        lower, upper = _moved(self.lower, self.upper, dial.angle, is_upper)
        return replace(self, lower=lower, upper=upper)


# Swing and twist ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cone:
    """Swing by up to `radius` radians in every direction; 0 allows none, pi all.

    Raises:
        InvalidInput: a radius outside 0..pi.
    """

    radius: float

    def __post_init__(self) -> None:
        store(self, "radius", within("Cone.radius", self.radius, 0.0, pi))

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """The largest swings to the four sides: lower and upper x, lower and upper z; radians, 0 or more."""
        return (self.radius,) * 4

    def sample(self, random: Random) -> tuple[float, float]:
        """The rotation vector of a swing on its two axes; the direction of the swung axis is uniform."""
        # Points spread evenly over a cap have evenly spread heights, and so sin^2 of half the angle.
        angle = 2.0 * asin(sin(0.5 * self.radius) * sqrt(random.random()))
        azimuth = random.uniform(-pi, pi)
        return angle * cos(azimuth), angle * sin(azimuth)


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

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """As in `Cone`."""
        return -self.x_lower, self.x_upper, -self.z_lower, self.z_upper

    def sample(self, random: Random) -> tuple[float, float]:
        """Like `Cone.sample`, by rejection in the rotation vector's plane with density sin(r) / r."""
        while True:
            x = random.uniform(self.x_lower, self.x_upper)
            z = random.uniform(self.z_lower, self.z_upper)
            side_x = self.x_upper if x >= 0.0 else self.x_lower
            side_z = self.z_upper if z >= 0.0 else self.z_lower
            part_x = x / side_x if side_x != 0.0 else 0.0  # a side of 0: x is 0 too
            part_z = z / side_z if side_z != 0.0 else 0.0
            radius = hypot(x, z)
            if part_x * part_x + part_z * part_z <= 1.0 and random.random() * radius <= sin(radius):
                return x, z

    def sides_through(self, x: float, z: float) -> dict[str, float]:
        """The sides, by name, with which the ellipse goes through a point that is not its centre."""
        if hypot(x, z) == 0.0:
            raise InvalidInput("the rotation does not swing")
        names = "x_upper" if x >= 0.0 else "x_lower", "z_upper" if z >= 0.0 else "z_lower"
        swings = abs(x), abs(z)
        most = 0 if swings[0] >= swings[1] else 1
        aside, kept = swings[1 - most], abs(getattr(self, names[1 - most]))
        lengths = {most: swings[most]}
        if aside >= kept * sqrt(0.5) and aside > STRAIGHT:
            lengths = {most: swings[most] * sqrt(2.0), 1 - most: aside * sqrt(2.0)}
        elif aside > STRAIGHT:
            lengths = {most: swings[most] / sqrt(1.0 - (aside / kept) ** 2)}
        return {
            names[k]: min(size, pi) if names[k].endswith("upper") else -min(size, pi)
            for k, size in lengths.items()
        }


@dataclass(frozen=True)
class SwingTwist(Limit):
    """A limit on where `axis` may point (swing), and independent of it one on the rotation about it (twist).

    The rotation is swing @ twist: first the twist about the axis, then the swing, about an axis at right
    angles to it.

    Attributes:
        swing: Cone or Ellipse; None leaves the swing free.
        twist: (lower, upper) in radians, with the meaning that a Hinge gives them; None leaves it free.
        axis: the direction in the joint's frame, by default the bone, +Y; stored with length 1.

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
            row = ellipse_row(self.axis, lower, upper, swing_axes(self.axis), self.swing.sides)
        else:
            row = cone_row(self.axis, lower, upper, pi if self.swing is None else self.swing.radius)
        store(self, "row", row)

    def sample(self, random: Random) -> Quaternion:
        lower, upper = (-pi, pi) if self.twist is None else self.twist
        x, z = (self.swing or _FREE_SWING).sample(random)
        return _swing_and_twist(self.axis, x, z, random.uniform(lower, upper))

    def outside_of(self, limit: SwingTwist) -> str | None:
        if not _near(self.axis, limit.axis):
            return f"its axis {_shown(self.axis)} differs from the limit's {_shown(limit.axis)}"
        if limit.swing is not None and min(limit.swing.sides) < pi - SLACK:
            if self.swing is None:
                return "its swing is free while the limit's is not"
            names = ("X min", "X max", "Z min", "Z max")
            for name, largest, side in zip(names, limit.swing.sides, self.swing.sides, strict=True):
                if side > largest + SLACK:
                    return f"its swing ({name}) goes to {side:.4g} rad, the limit's to {largest:.4g}"
        if limit.twist is None or limit.twist[1] - limit.twist[0] >= FULL_TURN - SLACK:
            return None
        if self.twist is None:
            return "its twist is free while the limit's is not"
        return _range("twist", *self.twist, *limit.twist)

    def carried(self, turn: Quaternion) -> SwingTwist:
        axis = image(turn, self.axis)
        along = side_of(axis, self.axis)
        twist = self.twist
        if along != 0.0:  # the same line: a twist about -n is the negative twist about n
            axis = self.axis
            if along < 0.0 and twist is not None:
                twist = -twist[1], -twist[0]
        if not isinstance(self.swing, Ellipse):
            return SwingTwist(self.swing, twist, axis)
        sides = self.swing
        ranges = ((sides.x_lower, sides.x_upper), (sides.z_lower, sides.z_upper))
        mirrored: dict[int, tuple[float, float]] = {}
        for old, bounds in zip(swing_axes(self.axis), ranges, strict=True):
            place = image(turn, old)
            for k, new in enumerate(swing_axes(axis)):
                sign = side_of(place, new)
                if sign != 0.0:
                    mirrored[k] = bounds if sign > 0.0 else (-bounds[1], -bounds[0])
        if len(mirrored) < 2:
            raise InvalidInput("its ellipse would lie askew to the joint's axes; use a cone or a hinge")
        return SwingTwist(Ellipse(*mirrored[0], *mirrored[1]), twist, axis)

    @property
    def is_free(self) -> bool:
        free_twist = self.twist is None or self.twist[1] - self.twist[0] >= FULL_TURN
        return free_twist and (self.swing is None or min(self.swing.sides) >= pi)

    def dials(self, rotation: Quaternion) -> tuple[Dial, ...]:
        """One of the twist's range, which swings along with the bone; none of a free twist."""
        if self.twist is None:
            return ()
        axis = Vector(self.axis)
        swing, _ = swing_twist(rotation, axis)
        return (roll_dial("TWIST", *self.twist, twist_angle(rotation, self.axis), swing, axis),)

    def rim(self, rotation: Quaternion) -> Rim | None:
        if self.swing is None or min(self.swing.sides) >= pi - ROUNDING:
            return None
        axis = Vector(self.axis)
        swing, _ = swing_twist(rotation, axis)
        vector = log(swing)
        a, b = (Vector(each) for each in swing_axes(self.axis))
        margin = rim_margin(vector.dot(a), vector.dot(b), self.swing.sides)
        return Rim(_rim_points(self.axis, self.swing), rotation @ axis, margin)

    def with_bound_at(self, rotation: Quaternion, is_upper: bool) -> SwingTwist:
        (dial,), ends = self.dials(rotation), self.twist
        assert ends is not None
        return replace(self, twist=_moved(*ends, dial.angle, is_upper))

    def with_rim_at(self, rotation: Quaternion) -> SwingTwist:
        swing, _ = swing_twist(rotation, Vector(self.axis))
        if isinstance(self.swing, Cone):
            return replace(self, swing=Cone(min(angle_of(swing), pi)))
        vector = log(swing)
        x, z = (vector.dot(Vector(axis)) for axis in swing_axes(self.axis))
        assert self.swing is not None
        return replace(self, swing=replace(self.swing, **self.swing.sides_through(x, z)))


_FREE_SWING = Cone(pi)
STRAIGHT = 1e-4
"""Radians to the side below which a swing goes along one axis: rounding of single precision."""
RIM_POINTS = 72


@lru_cache(maxsize=256)
def _rim_points(limit_axis: Triple, swing: Cone | Ellipse) -> tuple[Vector, ...]:
    x_lower, x_upper, z_lower, z_upper = swing.sides
    axis = Vector(limit_axis)
    a, b = (Vector(each) for each in swing_axes(limit_axis))
    points = []
    for i in range(RIM_POINTS):
        x, z = cos(FULL_TURN * i / RIM_POINTS), sin(FULL_TURN * i / RIM_POINTS)
        on_a, on_b = x * (x_upper if x >= 0.0 else x_lower), z * (z_upper if z >= 0.0 else z_lower)
        points.append((exp(a * on_a + b * on_b) @ axis).freeze())
    return (*points, points[0])


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


def _swing_and_twist(axis: Triple, x: float, z: float, twist: float) -> Quaternion:
    """A twist about an axis, and then a swing by the rotation vector (x, z) on the swing axes."""
    (ax, ay, az), (bx, by, bz) = swing_axes(axis)
    angle = hypot(x, z)
    share = sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    x, z = share * x, share * z
    swing = cos(0.5 * angle), x * ax + z * bx, x * ay + z * by, x * az + z * bz
    nx, ny, nz = (sin(0.5 * twist) * each for each in axis)
    return Quaternion(product(swing, (cos(0.5 * twist), nx, ny, nz)))


# Euler angles ---------------------------------------------------------------------------------------

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
class EulerBox(Limit):
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

    def sample(self, random: Random) -> Quaternion:
        """Uniform first and last angles; the middle one weighted by |cos|, as volume is."""
        angles = [random.uniform(lower, upper) for lower, upper in zip(self.lower, self.upper, strict=True)]
        middle = ORDERS[self.order][1]
        lower, upper = self.lower[middle], self.upper[middle]
        height = random.uniform(_cos_integral(lower), _cos_integral(upper))
        half_turns = round(0.5 * height)
        angle = half_turns * pi + asin(min(max(height - 2.0 * half_turns, -1.0), 1.0))
        angles[middle] = min(max(angle, lower), upper)
        return Euler(angles, self.order).to_quaternion()

    def outside_of(self, limit: EulerBox) -> str | None:
        if self.order != limit.order:
            return f"its Euler order {self.order} differs from the limit's {limit.order}"
        for name, *bounds in zip("XYZ", self.lower, self.upper, limit.lower, limit.upper, strict=True):
            reason = _range(name, *bounds)
            if reason:
                return reason
        return None

    def carried(self, turn: Quaternion) -> EulerBox:
        places, lower, upper = [0, 0, 0], [0.0] * 3, [0.0] * 3
        for old in range(3):
            place = image(turn, UNITS[old])
            signs = [side_of(place, each) for each in UNITS]
            if not any(signs):
                raise InvalidInput(
                    "its Euler angles would lie askew to the joint's axes; use a cone or a hinge"
                )
            new = next(k for k in range(3) if signs[k])
            places[old] = new
            bounds = self.lower[old], self.upper[old]
            lower[new], upper[new] = bounds if signs[new] > 0.0 else (-bounds[1], -bounds[0])
        order = "".join("XYZ"[places["XYZ".index(name)]] for name in self.order)
        assert order in ORDERS
        return EulerBox(order, (lower[0], lower[1], lower[2]), (upper[0], upper[1], upper[2]))

    @property
    def is_free(self) -> bool:
        i, j, k, _ = ORDERS[self.order]
        if any(self.upper[each] - self.lower[each] < FULL_TURN for each in (i, k)):
            return False
        # Half a turn of the middle angle, from pole to pole, gives all rotations.
        pole = pi * ceil(self.lower[j] / pi - 0.5) + 0.5 * pi
        return self.upper[j] >= pole + pi

    def dials(self, rotation: Quaternion) -> tuple[Dial, ...]:
        """One of each angle, carried by the angles that turn after it."""
        angles = self._angles(rotation)
        arcs = []
        carried = Quaternion()
        i, j, k, _ = ORDERS[self.order]
        for component in (k, j, i):  # the last to turn carries the others
            axis = Vector([float(component == each) for each in range(3)])
            name, bounds = "XYZ"[component], (self.lower[component], self.upper[component])
            if component == 1:
                arcs.append(roll_dial(name, *bounds, angles[component], carried, axis))
            else:
                arcs.append(bend_dial(name, *bounds, angles[component], carried @ axis, carried @ _BONE))
            carried = carried @ exp(axis * angles[component])
        return tuple(arcs)

    def _angles(self, rotation: Quaternion) -> tuple[float, float, float]:
        """The Euler angles nearest to the ranges, of the two triples that stand for a rotation."""
        order: Any = self.order
        euler = rotation.to_euler(order)
        first = [euler.x, euler.y, euler.z]
        i, j, k, _ = ORDERS[self.order]
        second = [0.0, 0.0, 0.0]
        second[i], second[j], second[k] = first[i] + pi, pi - first[j], first[k] + pi
        candidates = []
        for angles in (first, second):
            bounds = list(zip(self.lower, self.upper, strict=True))
            x, y, z = (wrapped(angle, 0.5 * sum(ends)) for angle, ends in zip(angles, bounds, strict=True))
            outside = sum(
                max(lower - angle, angle - upper, 0.0)
                for angle, (lower, upper) in zip((x, y, z), bounds, strict=True)
                if upper - lower < FULL_TURN
            )
            candidates.append((round(outside, 5), abs(x) + abs(y) + abs(z), (x, y, z)))
        return min(candidates)[2]

    def with_bound_at(self, rotation: Quaternion, is_upper: bool) -> EulerBox:
        angles = {dial.name: dial.angle for dial in self.dials(rotation)}
        x, y, z = (
            _moved(lower, upper, angles[name], is_upper)
            for name, lower, upper in zip("XYZ", self.lower, self.upper, strict=True)
        )
        return replace(self, lower=(x[0], y[0], z[0]), upper=(x[1], y[1], z[1]))


def _cos_integral(angle: float) -> float:
    """The integral of |cos| from 0 to `angle`."""
    half_turns = round(angle / pi)
    return 2.0 * half_turns + sin(angle - half_turns * pi)


# Reversed limits ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReversedLimit(Limit):
    """The allowed rotations of a joint seen from its child, as re-rooting needs them.

    Let a joint turn by p in a frame `frame` away from its parent's. Seen from the child it turns the parent
    by frame @ p^-1 @ frame^-1. A rotation q is allowed when (frame^-1 @ q @ frame)^-1 is inside `limit`.
    Inversion and conjugation keep the angle between rotations, so projection is as exact as in `limit`.
    """

    limit: Limit  # of the joint as it was
    frame: Components  # its rest rotation, (w, x, y, z); stored with length 1
    row: Row = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        w, x, y, z = self.frame
        length = sqrt(w * w + x * x + y * y + z * z)
        store(self, "frame", (w / length, x / length, y / length, z / length))
        store(self, "row", reversed_row(self.limit.row, self.frame))

    def sample(self, random: Random) -> Quaternion:
        inner = self.limit.sample(random)
        return Quaternion((inner.w, *rotated(self.frame, (-inner.x, -inner.y, -inner.z))))

    def outside_of(self, limit: ReversedLimit) -> str | None:
        if not _near(self.frame, limit.frame):
            return "its frame differs from the limit's"
        return outside(self.limit, limit.limit)

    def carried(self, turn: Quaternion) -> ReversedLimit:
        w, x, y, z = (turn @ Quaternion(self.frame))[:]
        return ReversedLimit(self.limit, (w, x, y, z))

    @property
    def is_free(self) -> bool:
        return self.limit.is_free


LIMITS: tuple[type[Limit], ...] = (Hinge, SwingTwist, EulerBox, ReversedLimit)
"""The shapes of limits."""


# Functions of all limits ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Comfort:
    """The preferred part of a joint's allowed rotations.

    Attributes:
        tolerance: radians, seen from the joint, by which a goal may be missed for the sake of comfort.
        region: a limit that lies inside the joint's own; None: no preference among the allowed rotations.

    Raises:
        InvalidInput: a tolerance outside 0..pi, a region that is not a limit.
    """

    tolerance: float = TOLERANCE
    region: Limit | None = None

    def __post_init__(self) -> None:
        store(self, "tolerance", within("Comfort.tolerance", self.tolerance, 0.0, pi))
        if not (self.region is None or isinstance(self.region, LIMITS)):
            raise InvalidInput(f"Comfort.region is {shown(self.region)}; give a limit or None")


def limit_row(limit: Limit | None) -> Row:
    """The row of the kernel that stands for `limit`; shared, not to be changed."""
    return _FREE if limit is None else limit.row


def clamp(limit: Limit, rotation: Quaternion) -> Quaternion:
    """The allowed rotation nearest to `rotation`; inside the limit (within `ROUNDING`) that very object.

    Distance is the angle between the two. The result is exact for a Hinge, an EulerBox and a SwingTwist
    without an Ellipse. With an Ellipse the nearest twist is taken first. Then follows the nearest point in
    the plane of the swing's rotation vector. For swings up to 60 degrees this is at most about 2 degrees
    farther than the nearest rotation. Alike for q and -q, and on the side of `rotation` (dot product >= 0).
    Clamping again changes no bit.

    Of two equally near borders of a twist or hinge range the upper one is taken. A swing by a half turn says
    nothing about the twist: the allowed twist nearest to 0 is taken. A zero quaternion counts as identity.
    NaN is not checked for.

    Raises:
        InvalidInput: `limit` is none, such as a swing outside a SwingTwist.
    """
    _require_limit(limit)
    nearest = project_rotation(limit.row, rotation.w, rotation.x, rotation.y, rotation.z)
    return rotation if nearest is None else Quaternion(nearest)


def _require_limit(limit: object) -> None:
    if not isinstance(limit, Limit):
        raise InvalidInput(f"the limit must be a SwingTwist, Hinge or EulerBox, not {shown(limit)}")


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


def sample(limit: Limit | None, random: Random) -> Quaternion:
    """A random rotation inside `limit` (None: any rotation), drawn from `random` alone.

    The draw is uniform among the rotations inside. A limit without volume (a hinge, a radius or a side of 0)
    is drawn uniformly in the angles that it leaves.

    Raises:
        InvalidInput: `limit` is none, such as a swing outside a SwingTwist.
    """
    if limit is not None:
        _require_limit(limit)
        return limit.sample(random)
    # Uniform over all rotations (Shoemake 1992, "Uniform random rotations").
    share, first, second = random.random(), random.uniform(-pi, pi), random.uniform(-pi, pi)
    a, b = sqrt(1.0 - share), sqrt(share)
    return Quaternion((b * cos(second), a * sin(first), a * cos(first), b * sin(second)))


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
    return region.outside_of(limit)


def _moved(lower: float, upper: float, angle: float, is_upper: bool) -> tuple[float, float]:
    return (min(lower, angle), angle) if is_upper else (angle, max(upper, angle))


_BONE = Vector((0.0, 1.0, 0.0)).freeze()


def _range(motion: str, lower: float, upper: float, least: float, most: float) -> str | None:
    """Say in words how a range of angles leaves that of a limit, but for whole turns."""
    if most - least >= FULL_TURN - SLACK:
        return None
    turns = wrapped(0.5 * (lower + upper), 0.5 * (least + most)) - 0.5 * (lower + upper)
    if lower + turns < least - SLACK or upper + turns > most + SLACK:
        return (
            f"its {motion} range, {lower:.4g} to {upper:.4g} rad, "
            f"leaves the limit's {least:.4g} to {most:.4g}"
        )
    return None


def _near(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) <= SLACK


def _shown(vector: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{part:.4g}" for part in vector) + ")"


# Rows of the kernel -----------------------------------------------------------------------------------------


Components = tuple[float, float, float, float]
Row: TypeAlias = "array[float]"
"""`LIMIT_WIDTH` doubles."""

_IDENTITY = (1.0, 1.0, 0.0, 0.0, 0.0)  # not reversed, and the frame


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


_FREE = kind_row(0.0, ())
"""The row of no limit."""


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


# Mirror images ----------------------------------------------------------------------------------------------


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


def nearest_exchange(turn: Quaternion) -> Quaternion | None:
    """The rotation that exchanges axes, nearest to `turn`; None if it is farther away than `NEAR`."""
    # Components of the 24 rotations of a cube are 0, 1/2, sqrt(1/2) or 1.
    steps = (0.0, 0.5, 0.5**0.5, 1.0)
    values = turn[:]
    sizes = [min(steps, key=lambda step: abs(abs(value) - step)) for value in values]
    exact = Quaternion([copysign(size, value) for size, value in zip(sizes, values, strict=True)])
    is_near = abs(exact.magnitude - 1.0) < 1e-6 and angle_between(exact, turn) <= NEAR
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


# Many rotations at once -------------------------------------------------------------------------------------


class BatchLimits:
    """Limits of n joints in B poses, each rotation projected for itself as by `clamp`.

    Rotations are (4, n, B) in double precision: the batch is last.

    Attributes:
        rows: (rows, LIMIT_WIDTH) of the limits.
        numbers: (n, 1) of each joint's row; -1 leaves it free.
    """

    def __init__(self, limits: Sequence[Limit | None]) -> None:
        """Take one limit per joint, the same for every pose; None leaves the joint free."""
        rows = [limit.row for limit in limits if limit is not None]
        limited = np.array([limit is not None for limit in limits], dtype=np.bool_)
        self.rows: Array = np.array(rows, dtype=np.float64).reshape(len(rows), LIMIT_WIDTH)
        self.numbers: NDArray[Any] = np.where(limited, np.cumsum(limited) - 1, -1)[:, None].astype(np.intc)

    def project(self, rotations: Array) -> tuple[Array, Mask | None]:
        """Project rotations (4, n, B) into their limits, see `clamp`.

        Each result is on the side of the rotation it replaces (dot product >= 0). Rotations inside are copied
        unchanged.

        Returns:
            The nearest allowed rotations (4, n, B), and a mask (n, B) of the rotations that were outside by
            more than `ROUNDING`. Where all are inside: `rotations` itself and None.
        """
        if not rotations.size or not len(self.rows):
            return rotations, None
        # Flat memoryviews: the uncompiled kernel reads them several times as fast as arrays.
        contiguous = np.ascontiguousarray(rotations, dtype=np.float64)
        projected, outside = np.empty(contiguous.shape), np.empty(contiguous.shape[1:], dtype=np.uint8)
        count = nearest_of_many(
            self.rows.reshape(-1).data,
            np.ascontiguousarray(self.numbers).reshape(-1).data,
            contiguous.reshape(-1).data,
            projected.reshape(-1).data,
            outside.reshape(-1).data,
        )
        return (projected, outside.view(np.bool_)) if count else (rotations, None)

    def violations(self, rotations: Array) -> Array:
        """Angles (n, B) in radians by which rotations are outside their limits; 0 up to `ROUNDING`."""
        angles = np.zeros(rotations.shape[1:])
        projected, outside = self.project(rotations)
        if outside is not None:
            angles[outside] = angles_between(projected[:, outside], rotations[:, outside])
        return angles

    def contains(self, rotations: Array, tolerance: float = 0.0) -> Mask:
        """A mask (n, B) of rotations outside by at most `tolerance` radians; up to `ROUNDING` is inside."""
        inside: Mask = self.violations(rotations) <= tolerance
        return inside
