"""Checks of numbers, vectors and rotations from outside; the message names the field."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import field, fields
from math import hypot, isfinite, nan
from numbers import Integral, Real
from typing import Any

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..json_text import LONGEST

Triple = tuple[float, float, float]

ROUNDING = 1e-6
"""Radians by which a rotation may be outside a limit and still count as inside.

A rotation rounded to single precision turns by up to 1.2e-7, and again in each product.
"""


def ranged(default: Any, least: float, most: float = math.inf, may_be_pair: bool = False) -> Any:
    """Declare a number of a dataclass of settings with its range, whole if the default is.

    `require_ranges` checks it, and a property that stores it has the same range.
    """
    return field(default=default, metadata={"range": (least, most), "may_be_pair": may_be_pair})


def require_ranges(settings: Any) -> None:
    """Raise InvalidInput, which names the field, unless the fields declared by `ranged` are in range."""
    for each in fields(settings):
        if "range" not in each.metadata:
            continue
        name, (least, most) = each.name, each.metadata["range"]
        value = getattr(settings, name)
        if value is None and each.default is None:
            continue
        needs_whole, may_be_pair = isinstance(each.default, int), each.metadata["may_be_pair"]
        values = value if may_be_pair and isinstance(value, tuple) and len(value) == 2 else (value,)
        is_kind = is_whole if needs_whole else is_number
        if not all(is_kind(number) and least <= number <= most for number in values):
            allowed = f"{least:.7g} to {most:.7g}" if most < math.inf else f"{least:.7g} or more"
            if needs_whole:
                allowed = f"a whole number, {allowed}" if least > -math.inf else "a whole number"
            if may_be_pair:
                allowed += ", or a pair of these for left and right"
            raise InvalidInput(f"{name} must be {allowed}, not {shown(value)}")


def single(value: float) -> float:
    """Return a number in single precision, as properties and keys store it."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def is_whole(value: object) -> bool:
    """Whether `value` is a whole number, of Python or NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def store(value: object, name: str, content: object) -> None:
    """Set a field of a frozen value, in its `__post_init__`."""
    object.__setattr__(value, name, content)


def finite(name: str, value: object) -> float:
    """`value` as a finite float; InvalidInput names the field."""
    try:
        number = float(value) if not isinstance(value, str) else nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = nan
    if not isfinite(number):
        raise InvalidInput(f"{name} is {shown(value)}; give a finite number")
    return number


def within(name: str, value: object, lowest: float, highest: float) -> float:
    """`value` as radians from `lowest` to `highest`; InvalidInput names the field."""
    number = finite(name, value)
    # Blender's properties are single precision, where pi is rounded up: a bound may be missed by that much.
    if not lowest - ROUNDING <= number <= highest + ROUNDING:
        raise InvalidInput(f"{name} is {number:g}; give radians from {lowest:.4g} to {highest:.4g}")
    return min(max(number, lowest), highest)


def angle(name: str, value: object) -> float:
    """`value` as radians that keep their precision; InvalidInput names the field."""
    number = finite(name, value)
    if abs(number) > MOST_TURNED:
        raise InvalidInput(f"{name} is {number:g}; give radians from -{MOST_TURNED:g} to {MOST_TURNED:g}")
    return number


def coordinate(name: str, value: object) -> float:
    """`value` as a coordinate in the model's unit; InvalidInput names the field."""
    number = finite(name, value)
    if abs(number) > FARTHEST:
        raise InvalidInput(f"{name} is {number:g}; give {-FARTHEST:g} to {FARTHEST:g}")
    return number


def listed(name: str, values: object, what: str) -> list[Any]:
    """`values` as a list; InvalidInput names the field and `what` it must hold."""
    try:
        return [*values]  # type: ignore[misc]  # a mathutils.Vector is no Iterable by type
    except TypeError:
        raise InvalidInput(f"{name} is {shown(values)}; give {what}") from None


def numbers(name: str, values: object, count: int) -> tuple[float, ...]:
    """`values` as `count` finite floats; InvalidInput names the field."""
    checked = tuple(finite(name, value) for value in listed(name, values, f"{count} finite numbers"))
    if len(checked) != count:
        raise InvalidInput(f"{name} has {len(checked)} numbers; give {count}")
    return checked


def require_order(name: str, lower: float, upper: float, unit: str = "radians") -> None:
    """Raise InvalidInput, which names the field, unless `lower` is at most `upper`."""
    if lower > upper:
        raise InvalidInput(f"{name}: lower ({lower:g}) is above upper ({upper:g}); swap them ({unit})")


def unit(name: str, axis: object) -> Triple:
    """`axis` with length 1; InvalidInput names the field."""
    x, y, z = numbers(name, axis, 3)
    length = hypot(x, y, z)
    if length < 1e-30:
        raise InvalidInput(f"{name} is zero; give the direction to turn about, such as (0, 1, 0)")
    return x / length, y / length, z / length


MOST_TURNED = 100.0
"""Largest bound of an angle, radians, some 16 turns: larger ones lose digits of the angle."""

UNIT_TOLERANCE = 1e-3
"""Largest deviation of a quaternion's length from 1; it is normalised."""


FARTHEST = 1e15
"""Largest coordinate: the squares of larger ones leave single precision."""


def frozen_vector(value: Vector | Sequence[float], what: str) -> Vector:
    """`value` as a frozen 3-vector; InvalidInput names `what` unless it is three finite numbers."""
    numbers = _numbers(value, f"{what} must be three finite numbers")
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise InvalidInput(f"{what} must be three finite numbers, not {_shown(numbers)}")
    if max(map(abs, numbers)) > FARTHEST:
        raise InvalidInput(f"{what} must not be farther away than {FARTHEST:g}, but is {_shown(numbers)}")
    return Vector(numbers).freeze()


def frozen_rotation(value: Quaternion | Sequence[float], what: str) -> Quaternion:
    """`value` as a frozen unit quaternion (w, x, y, z); InvalidInput names `what` if it is none."""
    numbers = _numbers(value, f"{what} must be four finite numbers (w, x, y, z)")
    if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers):
        raise InvalidInput(f"{what} must be four finite numbers (w, x, y, z), not {_shown(numbers)}")
    length = math.sqrt(sum(number * number for number in numbers))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise InvalidInput(f"{what} must be a unit quaternion, but its length is {length:.6g}")
    rotation = Quaternion(numbers)
    # A quaternion that is unit to float32 is kept bit for bit: normalising it again could move its last bit.
    if abs(length - 1.0) > 1e-6:
        rotation.normalize()
    return rotation.freeze()


def _numbers(value: object, must: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in value[:])  # type: ignore[index]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{must}, not {shown(value)}") from None


SIZES = 1e-30, FARTHEST
"""Smallest and largest size (length, mass, tolerance): squares and quotients stay in double precision."""


def is_size(value: object) -> bool:
    """Whether `value` is a number within `SIZES`."""
    return is_number(value) and SIZES[0] <= value <= SIZES[1]  # type: ignore[operator]


def is_number(value: object) -> bool:
    """Whether `value` is a finite real number, of Python or NumPy."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an int beyond all floats
        return False


def shown(value: object) -> str:
    """A refused value for a message, cut where it is long."""
    try:
        words = repr(value)
    except ValueError:  # an int of too many digits
        return "a number of too many digits"
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}..."


def _shown(numbers: Sequence[float]) -> str:
    return "(" + ", ".join(f"{number:.6g}" for number in numbers) + ")"
