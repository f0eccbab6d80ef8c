"""Offsets that depend on the angle of a hinge: rolling joints, as a knee.

The table is a cubic spline: shifts at angles, and slopes there. Beyond its ends the spline continues along a
straight line, as OpenSim's SimmSpline does.

A translation is the sum of shifts along axes. A slide's shift is an unknown inside bounds, a coupled offset's
shift a function of a hinge's angle. Both move the bones below the joint along an axis. In the Jacobian a
slide has a column. The slope of a coupled offset, times the slope of its spline, is added to its hinge's
column. The pose holds the free values: rotations, and translations with the slides' shifts. Slides of one
joint are at right angles to each other, so each shift is a projection of the translation. The hinge is the
joint itself or an ancestor, so chains stay the same.

Reach windows, re-rooting and the closed forms of single chains need links of constant length: they refuse
coupled offsets by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from mathutils import Quaternion

from ..errors import InvalidInput
from ..kernel import evaluate_spline
from ..limits.shapes import Hinge
from ..maths.batch import Array, twist_angles
from ..maths.rotations import FULL_TURN, twist_angle, wrapped
from ..maths.validation import Triple, angle, coordinate, numbers, store, unit


@dataclass(frozen=True)
class CoupledOffset:
    """A shift of a joint along one direction, as a function of the angle of a hinge.

    The shift adds to the joint's translation; the pose holds the angle alone.

    Attributes:
        hinge: name of the driving joint: the joint itself or one of its ancestors. Its limit is a `Hinge` of
            less than a full turn.
        axis: direction of the shift in the joint's frame at rest, as `Slide.axis`; stored with length 1.
        angles: of the hinge from rest, radians, rising; two at least.
        shifts: along `axis` at these angles, the model's unit.
        slopes: of the spline at these angles, model units per radian; None: those of the natural cubic
            spline, whose curvature is 0 at both ends (two angles: a straight line).

    Raises:
        InvalidInput: names the field.
    """

    hinge: str
    axis: Triple
    angles: tuple[float, ...]
    shifts: tuple[float, ...]
    slopes: tuple[float, ...] | None = None
    knots: Array = field(init=False, repr=False, compare=False)
    """(3 N) angle, shift and slope of each knot: the kernel's table."""

    def __post_init__(self) -> None:
        if not isinstance(self.hinge, str) or not self.hinge:
            raise InvalidInput(f"CoupledOffset.hinge is {self.hinge!r}; give the name of a joint")
        store(self, "axis", unit("CoupledOffset.axis", self.axis))
        count = len(self.angles) if isinstance(self.angles, tuple | list) else 0
        if count < 2:
            raise InvalidInput(f"CoupledOffset.angles is {self.angles!r}; give two angles at least")
        angles = tuple(
            [angle("CoupledOffset.angles", a) for a in numbers("CoupledOffset.angles", self.angles, count)]
        )
        shifts = numbers("CoupledOffset.shifts", self.shifts, count)
        if any(after <= before for before, after in pairwise(angles)):
            raise InvalidInput("CoupledOffset.angles must rise from each to the next (radians)")
        slopes = natural_slopes(angles, shifts)
        if self.slopes is not None:
            slopes = numbers("CoupledOffset.slopes", self.slopes, count)
            store(self, "slopes", slopes)
        for name, values in (("shifts", shifts), ("slopes", slopes)):
            for value in values:
                coordinate(f"CoupledOffset.{name}", value)
        store(self, "angles", angles)
        store(self, "shifts", shifts)
        store(self, "knots", np.column_stack((angles, shifts, slopes)).reshape(-1))

    def shift(self, angle: float) -> float:
        """The shift at an angle, model units."""
        values, _ = self.evaluate(np.array([angle]))
        return float(values[0])

    def evaluate(self, angles: Array) -> tuple[Array, Array]:
        """Shifts (model units) and slopes (per radian) at angles (B,) in radians."""
        values, slopes = np.empty(len(angles)), np.empty(len(angles))
        evaluate_spline(self.knots, np.ascontiguousarray(angles), values, slopes)
        return values, slopes


def natural_slopes(angles: tuple[float, ...], shifts: tuple[float, ...]) -> tuple[float, ...]:
    """Slopes of the natural cubic spline: twice differentiable, no curvature at the ends.

    The system has three diagonals and is solved by elimination (Thomas): results of LAPACK depend on the
    processor.
    """
    widths = [after - before for before, after in pairwise(angles)]
    chords = [
        (after - before) / width for (before, after), width in zip(pairwise(shifts), widths, strict=True)
    ]
    rows = [(0.0, 2.0, 1.0, 3.0 * chords[0])]  # coefficients of three slopes in turn, and the right side
    for (before, after), (chord, next_chord) in zip(pairwise(widths), pairwise(chords), strict=True):
        rows.append((after, 2.0 * (before + after), before, 3.0 * (after * chord + before * next_chord)))
    rows.append((1.0, 2.0, 0.0, 3.0 * chords[-1]))
    eliminated: list[tuple[float, float]] = []  # a slope is right - upper * (the next slope)
    upper = right = 0.0
    for lower, middle, above, side in rows:
        pivot = middle - lower * upper
        upper, right = above / pivot, (side - lower * right) / pivot
        eliminated.append((upper, right))
    slopes, slope = [], 0.0
    for upper, right in reversed(eliminated):
        slope = right - upper * slope
        slopes.append(slope)
    return tuple(reversed(slopes))


def coupled_angle(hinge: Hinge, rotation: Quaternion) -> float:
    """The twist of a rotation about a hinge's axis, radians, within half a turn of its range's middle."""
    return wrapped(twist_angle(rotation, hinge.axis), 0.5 * (hinge.lower + hinge.upper))


def coupled_angles(hinge: Hinge, rotations: Array) -> Array:
    """(B,) the twists of rotations (4, B), see `coupled_angle`."""
    middle = 0.5 * (hinge.lower + hinge.upper)
    off = twist_angles(rotations, hinge.axis) - middle
    return np.asarray(middle + off - FULL_TURN * np.round(off / FULL_TURN))
