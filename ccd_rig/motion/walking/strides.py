"""Lengths of steps along a path: fitted to stairs and bends.

A step keeps its time. On stairs it is as long as a tread, or as several of them, so that feet come down on
treads and not on their edges. In a bend the foot that has the longest way steps as far as in the cycle, and
the body goes slower. Elsewhere steps are the cycle's. Their length changes smoothly within a step.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...maths.batch import Array
from ..ground import Ground
from ..interpolation import bell_means
from .cycle import Cycle
from .path import GRAIN, Strides, Way, heights_along

RISER = 0.05
"""Leg lengths by which ground rises or falls at an edge from which it is a stair."""
SHARP, FINEST = 2, 5
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
        cycle: whose leg and step count.
        way: along which.
        height: of the curve at `offset`, see `plan_walk`.
        ground: in its first row.
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
        for halving in range(FINEST):
            middle = 0.5 * (near + far)
            place, _ = way.at(np.array([middle]))
            seen = float(ground.below(np.column_stack((place, [top])), rows[:1])[0][0])
            if abs(seen - low) > abs(seen - high):
                far, high = middle, seen
            else:
                near, low = middle, seen
            if halving + 1 == SHARP:
                sharp = abs(high - low)
        if sharp <= 0.5 * abs(whole):
            continue
        at = 0.5 * (near + far)
        if edges and at - edges[-1][0] < GRAIN * cycle.leg:  # one edge, not quite upright, in two parts
            before, rise = edges.pop()
            at, whole = 0.5 * (before + at), rise + whole
        edges.append((at, whole))
    return edges
