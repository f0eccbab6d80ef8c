"""A way along the ground by arc length: points, headings, the world bent along it, and the ground below.

The straight line that a cycle walks on is bent along the curve. A foot is placed beside the body as it is in
the middle of its stance: `before` metres ahead of the body and `aside` metres to its left. So a place `along`
metres ahead on the line is at C(s) + before T(s) + aside N(s) with s = along - before, C the curve, T its
tangent and N its normal on the left. What rests on the line rests on the curve, and feet are where their legs
can reach them, whatever the bend: steps on its inside are shorter, and lead back where the foot is beyond its
centre.

A step keeps its time. On stairs it is as long as a tread, or as several of them, so that feet come down on
treads and not on their edges. In a bend the foot that has the longest way steps as far as in the cycle, and
the body goes slower. Elsewhere steps are the cycle's. Their length changes smoothly within a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array, Indices, Mask
from ..ground import Ground
from ..interpolation import bell_means, straight_on
from .cycle import Cycle

FARTHEST = 1e8
"""Metres from the origin up to which points count."""
CORNER = 4.0 * 2.0**0.5
"""Length over which a right angle is rounded, in radii of its bend: the bell of places turns it so."""
WIDER = 1.25
"""Factor from one width of rounding to the next that is tried."""
FINEST = 400_000
"""Points of a resampled way at most."""


@dataclass(frozen=True, eq=False)
class Way:
    """A smooth way in the plane."""

    places: Array  # (P, 2) metres, `spacing` apart
    headings: Array  # (P,) radians from the X axis of the world, continuous
    spacing: float  # metres along the way from one place to the next
    length: float  # metres; beyond it, and before 0, the way goes straight on, or round again if closed
    closed: bool  # whether the end is the start

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


def way_along(points: Array, closed: bool, shortest: float, sharpest: float = np.inf) -> Way:
    """The way through points (P, 2 or 3), seen from above.

    Args:
        points: metres, in order; heights are left out.
        closed: whether the last leads to the first.
        shortest: its length at least, and that over which corners are rounded, metres.
        sharpest: radians by which it turns at most in a metre. Corners up to right angles are rounded as far
            as that needs.

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
    if length < shortest:
        raise InvalidInput(
            lambda metres: (
                f"the curve is {metres * length:.3g} m long, seen from above: shorter than half a leg of "
                f"{metres * shortest:.3g} m"
            )
        )
    count = max(8, min(FINEST, round(length / (0.05 * shortest))))
    even = _resampled(flat, count)
    widest = min(CORNER / sharpest, length)
    rounding = shortest
    while True:
        way = _rounded(even, rounding / (length / count), closed)
        turns = np.abs(np.diff(way.headings)).max(initial=0.0) / way.spacing
        if turns <= sharpest or rounding >= widest:
            return way
        rounding = min(WIDER * rounding, widest)


def height_at(points: Array, closed: bool, part: float) -> float:
    """Height of the line through points (P, 3) at a part of its length, seen from above."""
    points = np.concatenate((points, points[:1])) if closed else points
    lengths = np.concatenate(([0.0], np.cumsum(batch.length(np.diff(points[:, :2], axis=0), -1))))
    return float(np.interp((part % 1.0 if closed else part) * lengths[-1], lengths, points[:, 2]))


def _rounded(even: Array, width: float, closed: bool) -> Way:
    """The way through places (P, 2) at even distances, each the mean of a bell of `width` of them."""
    count, half = len(even) - 1, max(1, round(0.5 * width))
    if closed:
        padded = np.concatenate((even[-half - 1 : -1], even, even[1 : half + 1]))
    else:  # mirrored through the ends, which stay
        before, after = 2.0 * even[0] - even[half:0:-1], 2.0 * even[-1] - even[-2 : -half - 2 : -1]
        padded = np.concatenate((before, even, after))
    smooth = np.stack([bell_means(axis, half) for axis in padded.T], axis=1)
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


# The ground along a way -------------------------------------------------------------------------------------


STEP_UP = 0.8
"""Leg lengths above the ground so far from which the next is looked for."""
WALL = 0.6
"""Leg lengths up to which ground may step up or down at once, and height at which walls are looked for."""
GRAIN = 0.1
"""Leg lengths between places of the way whose ground is looked at."""
NARROW = 0.5
"""Leg lengths of the widest hole that a body goes over."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Heights (P,) of the ground at metres (P,) of the way, and (P,) their mean over a stride."""

    along: Array
    heights: Array
    means: Array

    def height(self, along: Array) -> Array:
        """Height of the ground at metres of the path, coarsely."""
        return np.asarray(np.interp(along, self.along, self.heights))


def profile_along(
    cycle: Cycle, way: Way, height: float, ground: Ground, along: Array, strides: Strides
) -> Profile:
    """The ground along a way, from a stride before its first place to a stride beyond its last.

    Args:
        height: of the curve at the first place, metres.
        ground: looked for below that, else above, then near the height so far.
        along: (F,) metres at which the figure is in each row.
        strides: how long steps are; the mean is over one of these.

    Raises:
        InvalidInput: there is none at the start, a hole that is too wide, a wall or a cliff.
    """
    leg, stride = cycle.leg, cycle.stride
    far = max(abs(foot.before) for foot in cycle.feet.values())
    ends = along[0] - stride - far, along[-1] + stride + far
    count = int(np.ceil((ends[1] - ends[0]) / (GRAIN * leg))) + 1
    grid = np.linspace(*ends, count)
    places, _ = way.at(grid)
    rows = np.searchsorted(along, grid).clip(0, len(along) - 1)
    heights = heights_along(way, height, ground, grid, rows, int(np.searchsorted(grid, along[0])), leg)
    inside = (grid >= along[0] - 1e-9) & (grid <= along[-1] + 1e-9)
    _require_ground(heights, grid, inside, leg)
    _require_no_wall(ground, places, heights, grid, rows, inside, leg)
    known = np.isfinite(heights)
    heights = np.interp(grid, grid[known], heights[known])
    return Profile(grid, heights, _means(cycle, grid, heights, strides))


def means_beside(
    cycle: Cycle, way: Way, ground: Ground, along: Array, strides: Strides, profile: Profile, aside: float
) -> Array:
    """(P,) mean heights of the ground over a stride at the places of a profile, metres to the left of them.

    Where there is none near, that on the way counts. Arguments are as in `profile_along`.
    """
    places, headings = way.at(profile.along)
    left = np.stack((-np.sin(headings), np.cos(headings)), axis=-1)
    tops = profile.heights + STEP_UP * cycle.leg
    rows = np.searchsorted(along, profile.along).clip(0, len(along) - 1)
    heights, _ = ground.below(np.column_stack((places + aside * left, tops)), rows)
    is_near = np.abs(heights - profile.heights) < STEP_UP * cycle.leg  # never of what is no number
    return _means(cycle, profile.along, np.where(is_near, heights, profile.heights), strides)


def _means(cycle: Cycle, grid: Array, heights: Array, strides: Strides) -> Array:
    """(P,) means of heights (P,) over a stride."""
    edges = strides.line_at(grid[[0, -1]])
    count = max(len(grid), int(np.ceil((edges[1] - edges[0]) / (GRAIN * cycle.leg))) + 1)
    line: Array = np.linspace(float(edges[0]), float(edges[1]), count, dtype=np.float64)
    over = np.interp(strides.along_at(line), grid, heights)
    half = max(1, round(0.5 * cycle.stride / (line[1] - line[0])))
    # Straight on beyond the ends, so that a slope stays one.
    before = 2.0 * over[0] - over[half:0:-1]
    after = 2.0 * over[-1] - over[-2 : -half - 2 : -1]
    means = bell_means(np.concatenate((before, over, after)), half)
    return np.interp(strides.line_at(grid), line, means)


def heights_along(
    way: Way, height: float, ground: Ground, grid: Array, rows: Indices, start: int, leg: float
) -> Array:
    """(P,) heights of the ground at metres (P,) of a way, not a number where there is none near.

    Args:
        height: of the way at the place `start` of the grid; the ground is looked for below that, else above.
        ground: its rows (P,) are `rows`.
        grid: (P,) metres, increasing.
        start: place from which the ground is followed both ways.
        leg: metres; the ground is followed over steps of a part of that.

    Raises:
        InvalidInput: there is none at the start.
    """
    places, _ = way.at(grid)
    heights = np.full(len(grid), np.nan)
    heights[start] = _first_height(ground, places[start], height, leg, int(rows[start]))
    for order in (range(start + 1, len(grid)), range(start - 1, -1, -1)):
        known = float(heights[start])
        for k in order:
            top = np.array([[*places[k], known + STEP_UP * leg]])
            height_below = float(ground.below(top, rows[k : k + 1])[0][0])
            if not np.isfinite(
                height_below
            ):  # below ground that is far above, such as in a wall, or over a hole
                top[0, 2] = np.inf
                heights[k] = float(ground.below(top, rows[k : k + 1])[0][0])
                continue
            known = heights[k] = height_below
    return heights


def _first_height(ground: Ground, place: Array, height: float, leg: float, row: int) -> float:
    rows = np.array([row])
    for top in (height + STEP_UP * leg, np.inf):
        height_below = float(ground.below(np.array([[*place, top]]), rows)[0][0])
        if np.isfinite(height_below):
            return height_below
    x, y = (np.round(place, 3) + 0.0).tolist()
    raise InvalidInput(
        lambda metres: (
            f"there is no ground below the start of the way at ({metres * x:.3g}, {metres * y:.3g}): move "
            "the curve over it, or choose another ground"
        )
    )


def _require_ground(heights: Array, grid: Array, inside: Mask, leg: float) -> None:
    """Raises InvalidInput for holes that are too wide."""
    last = None
    for k in np.flatnonzero(inside):
        if np.isfinite(heights[k]):
            last = None
            continue
        last = k if last is None else last
        if grid[k] - grid[last] > NARROW * leg:
            raise _hole(float(grid[last]))


def _hole(start: float) -> InvalidInput:
    return InvalidInput(
        lambda metres: (
            f"there is no ground at {metres * start:.2f} m along the curve: close the hole, or lead the "
            "curve round it"
        )
    )


def _require_no_wall(
    ground: Ground, places: Array, heights: Array, grid: Array, rows: Indices, inside: Mask, leg: float
) -> None:
    k = np.flatnonzero(inside & np.isfinite(heights))
    if len(k) < 2:
        return
    steps = np.diff(heights[k])
    steep = np.flatnonzero(np.abs(steps) > WALL * leg)
    if len(steep):
        at = int(steep[0])
        word = "rises" if steps[at] > 0.0 else "falls"
        raise InvalidInput(
            lambda metres: (
                f"the ground {word} by {metres * abs(steps[at]):.2f} m at once at {metres * grid[k[at]]:.2f} "
                "m along the curve, more than a leg can step: lead the curve round it"
            )
        )
    tops = np.column_stack((places[k], heights[k] + WALL * leg))
    pairs = enumerate(pairwise(tops[:, None]))
    wall = next((i for i, pair in pairs if ground.blocked(*pair, int(rows[k[i]]))[0]), None)
    if wall is not None:
        start = grid[k[wall]]
        raise InvalidInput(
            lambda metres: (
                f"a wall stands in the way at {metres * start:.2f} m along the curve: lead the curve round it"
            )
        )


RISER = 0.05
"""Leg lengths by which ground rises or falls at an edge from which it is a stair."""
EDGE_SEEN, EDGE_PLACED = 2, 5
"""Times that a way is halved to tell an edge, bevelled or not, from a slope; and to tell where it is."""
HIGHEST = 0.3
"""Leg lengths up to which a step takes several stairs at once."""
FINE = 0.01
"""Steps of the cycle between places where the length of steps is kept."""


def fitted_strides(
    cycle: Cycle, way: Way, height: float, ground: Ground, offset: float, end: float
) -> Strides:
    """Steps that fit the stairs and bends of a way.

    Args:
        height: of the curve at `offset`, see `plan_walk`.
        offset, end: metres along the way between which there is a walk.

    Raises:
        InvalidInput: there is no ground at the start.
    """
    step = 0.5 * cycle.stride
    before = [foot.before for foot in cycle.feet.values()]
    behind, ahead = min(0.0, *before), max(0.0, *before)
    stairs = _edges(cycle, way, height, ground, offset, (offset + behind, end + ahead + 2.0 * step))
    treads = [
        (near, far, length)
        for (near, rise), (far, next_rise) in pairwise(stairs)
        if rise * next_rise > 0.0
        and (length := _fitting(far - near, max(abs(rise), abs(next_rise)) / cycle.leg, step)) < step
    ]
    grid: Array = np.arange(offset - 2.0 * step, end + 2.0 * step, FINE * step, dtype=np.float64)
    lengths = step / _longest(cycle, way, grid)
    if not treads and (lengths == step).all():
        return Strides.even(offset)
    for near, far, length in treads:  # feet ahead of the body are on it before, feet behind it after
        rows = (grid >= near - ahead - 0.5 * step) & (grid <= far - behind + 0.5 * step)
        lengths[rows] = np.minimum(lengths[rows], length)
    half = round(0.5 / FINE) - 1
    lengths = bell_means(np.pad(lengths, half, mode="edge"), half)
    rates = step / lengths
    line = np.concatenate(([0.0], np.cumsum(0.5 * (rates[1:] + rates[:-1]) * np.diff(grid))))
    return Strides(line - np.interp(offset, grid, line), grid)


def _longest(cycle: Cycle, way: Way, grid: Array) -> Array:
    """(P,) ratios of the longest path of a foot to that of the body, at metres (P,); at least 1.

    A foot is at C + before T + aside N, see `path`. It moves by (1 - aside k) T + before k N for each metre
    of the body, with the curvature k, here the turn within a stride.
    """
    (_, after), (_, earlier) = (way.at(grid + half) for half in (0.5 * cycle.stride, -0.5 * cycle.stride))
    curvature = (after - earlier) / cycle.stride
    longest = np.ones(len(grid))
    for foot in cycle.feet.values():
        longest = np.maximum(longest, np.hypot(1.0 - foot.aside * curvature, foot.before * curvature))
    return longest


def _fitting(tread: float, rise: float, step: float) -> float:
    """Length of steps on a tread: as many stairs at once as a step reaches and climbs, or two steps on one.

    A landing of two steps or more is level ground.
    """
    if tread >= 2.0 * step:
        return step
    if tread > step:
        return 0.5 * tread
    return tread * max(1, min(int(step / tread), int(HIGHEST / rise)))


def _edges(
    cycle: Cycle, way: Way, height: float, ground: Ground, start: float, ends: tuple[float, float]
) -> list[tuple[float, float]]:
    """Metres along the path of each edge between two ends, and its rise; `height` is that at the start."""
    count = int(np.ceil((ends[1] - ends[0]) / (GRAIN * cycle.leg))) + 1
    grid: Array = np.linspace(*ends, count, dtype=np.float64)
    rows = np.zeros(count, np.intp)
    first = int(np.searchsorted(grid, start))
    heights = heights_along(way, height, ground, grid, rows, first, cycle.leg)
    edges: list[tuple[float, float]] = []
    with np.errstate(invalid="ignore"):
        steep = np.flatnonzero(np.abs(np.diff(heights)) > RISER * cycle.leg)
    for k in steep.tolist():
        near, far, low, high = float(grid[k]), float(grid[k + 1]), float(heights[k]), float(heights[k + 1])
        whole, top = high - low, max(low, high) + GRAIN * cycle.leg
        sharp = 0.0
        for halving in range(EDGE_PLACED):
            middle = 0.5 * (near + far)
            place, _ = way.at(np.array([middle]))
            seen = float(ground.below(np.column_stack((place, [top])), rows[:1])[0][0])
            if abs(seen - low) > abs(seen - high):
                far, high = middle, seen
            else:
                near, low = middle, seen
            if halving + 1 == EDGE_SEEN:
                sharp = abs(high - low)
        if sharp <= 0.5 * abs(whole):
            continue
        at = 0.5 * (near + far)
        if edges and at - edges[-1][0] < GRAIN * cycle.leg:  # one edge, not quite upright, in two parts
            before, rise = edges.pop()
            at, whole = 0.5 * (before + at), rise + whole
        edges.append((at, whole))
    return edges
