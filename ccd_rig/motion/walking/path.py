"""A way along the ground by arc length: points, headings, and the world bent along it.

The straight line that a cycle walks on is bent along the curve. A foot is placed beside the body as it is in
the middle of its stance: `before` metres ahead of the body and `aside` metres to its left. So a place `along`
metres ahead on the line is at C(s) + before T(s) + aside N(s) with s = along - before, C the curve, T its
tangent and N its normal on the left. What rests on the line rests on the curve, and feet are where their legs
can reach them, whatever the bend: steps on its inside are shorter, and lead back where the foot is beyond its
centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array
from ..interpolation import straight_on

FARTHEST = 1e8
"""Metres from the origin up to which points count."""
FINEST = 400_000
"""Points of a resampled way at most."""


@dataclass(frozen=True, eq=False)
class Way:
    """A smooth way in the plane.

    Attributes:
        places: (P, 2) metres, `spacing` apart.
        headings: (P,) radians from the X axis of the world, continuous.
        spacing: metres along the way from one place to the next.
        length: metres; beyond it, and before 0, the way goes straight on, or round again if closed.
        closed: whether the end is the start.
    """

    places: Array
    headings: Array
    spacing: float
    length: float
    closed: bool

    def at(self, along: Array) -> tuple[Array, Array]:
        """(..., 2) places and (...,) headings at metres (...,)."""
        turns = np.floor(along / self.length) if self.closed else np.zeros_like(along)
        inside = along - turns * self.length if self.closed else np.clip(along, 0.0, self.length)
        grid = np.minimum(np.arange(len(self.places)) * self.spacing, self.length)
        places = np.stack([np.interp(inside, grid, axis) for axis in self.places.T], axis=-1)
        whole = self.headings[-1] - self.headings[0]
        headings = np.interp(inside, grid, self.headings) + turns * whole
        beyond = along - turns * self.length - inside
        straight = np.stack((np.cos(headings), np.sin(headings)), axis=-1)
        return places + beyond[..., None] * straight, headings

    def bent(self, along: Array, aside: Array, before: float) -> tuple[Array, Array]:
        """(..., 2) places and (...,) headings of places (...,) of the straight line, for a foot that is
        `before` metres ahead of the body in the middle of its stances."""
        places, headings = self.at(along - before)
        ahead = np.stack((np.cos(headings), np.sin(headings)), axis=-1)
        left = np.stack((-ahead[..., 1], ahead[..., 0]), axis=-1)
        return places + before * ahead + aside[..., None] * left, headings

    def largest_turn(self, length: float) -> float:
        """Radians by which it turns at most over a length in metres."""
        count = min(max(1, round(length / self.spacing)), len(self.headings) - 1)
        return float(np.abs(self.headings[count:] - self.headings[:-count]).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Strides:
    """Places (P,) of the way for places (P,) of the cycle's straight line, metres, both increasing.

    The body is at 0 of the line as the walk begins. Beyond both ends steps stay as long as there.
    """

    line: Array
    along: Array

    @classmethod
    def even(cls, offset: float) -> Strides:
        """Steps as in the cycle, from metres along the way on."""
        return cls(np.array((0.0, 1.0)), np.array((offset, offset + 1.0)))

    @property
    def shortest(self) -> float:
        """Length of the shortest step, in those of the cycle."""
        return float((np.diff(self.along) / np.diff(self.line)).min())

    def along_at(self, line: Array) -> Array:
        """(...,) metres of the way at metres of the line."""
        return straight_on(line, self.line, self.along)

    def line_at(self, along: Array) -> Array:
        """(...,) metres of the line at metres of the way."""
        return straight_on(along, self.along, self.line)


def way_along(points: Array, closed: bool, rounding: float) -> Way:
    """The way through points (P, 2 or 3), seen from above.

    Args:
        points: metres, in order; heights are left out.
        closed: whether the last leads to the first.
        rounding: metres over which corners are rounded.

    Raises:
        InvalidInput: fewer than two points, one that is not a number, or no length.
    """
    points = np.asarray(points, np.float64)
    if points.ndim != 2 or len(points) < 2:
        raise InvalidInput("the curve needs two points or more")
    if not np.abs(points).max() <= FARTHEST:
        raise InvalidInput(
            "a point of the curve is not a number, or farther than a walk goes: repair or delete it"
        )
    flat = points[:, :2]
    flat = np.concatenate((flat, flat[:1])) if closed else flat
    steps = batch.length(np.diff(flat, axis=0), -1)
    flat = flat[np.concatenate(([True], steps > 1e-9))]
    length = float(steps.sum())
    if not length > 1e-6 or len(flat) < 2:
        raise InvalidInput("the curve has no length, seen from above: move its points apart")
    if length < rounding:
        raise InvalidInput(
            f"the curve is {length:.3g} m long, seen from above: shorter than half a step of {rounding:.3g} m"
        )
    count = max(8, min(FINEST, round(length / (0.05 * rounding))))
    even = _resampled(flat, count)
    half = max(1, round(0.5 * rounding / (length / count)))
    bell = np.hanning(2 * half + 3)[1:-1]
    bell /= bell.sum()
    if closed:
        padded = np.concatenate((even[-half - 1 : -1], even, even[1 : half + 1]))
    else:  # mirrored through the ends, which stay
        before, after = 2.0 * even[0] - even[half:0:-1], 2.0 * even[-1] - even[-2 : -half - 2 : -1]
        padded = np.concatenate((before, even, after))
    smooth = np.stack([np.convolve(axis, bell, mode="valid") for axis in padded.T], axis=1)
    places = _resampled(smooth, count)
    length = float(batch.length(np.diff(smooth, axis=0), -1).sum())
    ways = np.gradient(places, axis=0)
    if closed:
        ways[0] = ways[-1] = places[1] - places[-2]
    headings = np.asarray(np.unwrap(batch.arctan2(ways[:, 1], ways[:, 0])), dtype=np.float64)
    return Way(places, headings, length / count, length, closed)


def _resampled(points: Array, count: int) -> Array:
    """(count + 1, 2) points at even distances along (P, 2)."""
    lengths = np.concatenate(([0.0], np.cumsum(batch.length(np.diff(points, axis=0), -1))))
    wanted = np.linspace(0.0, lengths[-1], count + 1)
    return np.stack([np.interp(wanted, lengths, axis) for axis in points.T], axis=1)
