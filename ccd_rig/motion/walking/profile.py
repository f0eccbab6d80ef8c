"""The ground along a way: its height, the mean of it over a stride, and what nobody can walk over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InvalidInput
from ...maths.batch import Array, Indices, Mask
from ..ground import Ground
from .cycle import Cycle
from .path import Strides, Way

HIGH = 1e5
"""Metres above a curve from which ground is looked for that is not below it."""
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
        cycle: whose leg and stride count.
        way: looked at.
        height: of its start, metres.
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
    edges = strides.line_at(grid[[0, -1]])
    places_over = max(count, int(np.ceil((edges[1] - edges[0]) / (GRAIN * leg))) + 1)
    line: Array = np.linspace(float(edges[0]), float(edges[1]), places_over, dtype=np.float64)
    over = np.interp(strides.along_at(line), grid, heights)
    half = max(1, round(0.5 * stride / (line[1] - line[0])))
    bell = np.hanning(2 * half + 3)[1:-1]
    # Straight on beyond the ends, so that a slope stays one.
    before = 2.0 * over[0] - over[half:0:-1]
    after = 2.0 * over[-1] - over[-2 : -half - 2 : -1]
    means = np.convolve(np.concatenate((before, over, after)), bell / bell.sum(), mode="valid")
    return Profile(grid, heights, np.interp(strides.line_at(grid), line, means))


def heights_along(
    way: Way, height: float, ground: Ground, grid: Array, rows: Indices, start: int, leg: float
) -> Array:
    """(P,) heights of the ground at metres (P,) of a way, not a number where there is none near.

    Args:
        way: looked at.
        height: of the way at the place `start` of the grid; the ground is looked for below that, else above.
        ground: its rows (P,) are `rows`.
        grid: (P,) metres, increasing.
        rows: (P,)
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
                top[0, 2] = known + HIGH
                heights[k] = float(ground.below(top, rows[k : k + 1])[0][0])
                continue
            known = heights[k] = height_below
    return heights


def _first_height(ground: Ground, place: Array, height: float, leg: float, row: int) -> float:
    rows = np.array([row])
    for top in (height + STEP_UP * leg, height + HIGH):
        height_below = float(ground.below(np.array([[*place, top]]), rows)[0][0])
        if np.isfinite(height_below):
            return height_below
    place = np.round(place, 3) + 0.0
    raise InvalidInput(
        f"there is no ground below the start of the way at ({place[0]:.3g}, {place[1]:.3g}): move the "
        "curve over it, or choose another ground"
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
            raise InvalidInput(
                f"there is no ground at {grid[last]:.2f} m along the curve: close the hole, or lead the "
                "curve round it"
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
            f"the ground {word} by {abs(steps[at]):.2f} m at once at {grid[k[at]]:.2f} m along the curve, "
            "more than a leg can step: lead the curve round it"
        )
    tops = np.column_stack((places[k], heights[k] + WALL * leg))
    for i in range(len(k) - 1):
        if ground.blocked(tops[i : i + 1], tops[i + 1 : i + 2], int(rows[k[i]]))[0]:
            raise InvalidInput(
                f"a wall stands in the way at {grid[k[i]]:.2f} m along the curve: lead the curve round it"
            )
