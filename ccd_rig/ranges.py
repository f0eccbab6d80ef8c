"""The numbers of limits, checked by the name of their field; and the simplest range, that of a slide."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, isfinite, nan

from .errors import InvalidInput
from .nearest import ROUNDING

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Slide:
    """A range of shifts along one direction: what a prismatic joint may do besides turning.

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


def store(value: object, name: str, content: object) -> None:
    """Sets a field of a frozen value: for its `__post_init__` alone."""
    object.__setattr__(value, name, content)


def finite(name: str, value: object) -> float:
    """`value` as a finite float; InvalidInput names the field."""
    try:
        number = float(value) if not isinstance(value, str) else nan  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise InvalidInput(f"{name} is {value!r}; give a finite number")
    return number


def within(name: str, value: object, lowest: float, highest: float) -> float:
    """`value` as radians from `lowest` to `highest`; InvalidInput names the field."""
    number = finite(name, value)
    # Blender's properties are single precision, where pi is rounded up: a bound may be missed by that much.
    if not lowest - ROUNDING <= number <= highest + ROUNDING:
        raise InvalidInput(f"{name} is {number:g}; give radians from {lowest:.4g} to {highest:.4g}")
    return min(max(number, lowest), highest)


def numbers(name: str, values: object, count: int) -> tuple[float, ...]:
    """`values` as so many finite floats; InvalidInput names the field."""
    try:
        listed = list(values)  # type: ignore[call-overload]  # a mathutils.Vector is no Iterable by type
    except TypeError:
        raise InvalidInput(f"{name} is {values!r}; give {count} finite numbers") from None
    found = tuple(finite(name, value) for value in listed)
    if len(found) != count:
        raise InvalidInput(f"{name} has {len(found)} numbers; give {count}")
    return found


def require_order(name: str, lower: float, upper: float, unit: str = "radians") -> None:
    """Raises InvalidInput, which names the field, unless `lower` is at most `upper`."""
    if lower > upper:
        raise InvalidInput(f"{name}: lower ({lower:g}) is above upper ({upper:g}); swap them ({unit})")


def unit(name: str, axis: object) -> Triple:
    """`axis` with length 1; InvalidInput names the field."""
    x, y, z = numbers(name, axis, 3)
    length = hypot(x, y, z)
    if length < 1e-30:
        raise InvalidInput(f"{name} is zero; give the direction to turn about, such as (0, 1, 0)")
    return x / length, y / length, z / length
