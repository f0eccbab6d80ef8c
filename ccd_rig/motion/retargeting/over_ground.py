"""Feet of a motion over level ground, laid on ground that is not.

    path over level ground -> followed ground -> stances, each turned as one to its slope -> swings -> soles

A stance with its rolls goes as one body from the level to the slope on which its heel and ball lie. A swing
leads from one stance to the next, and is lifted over what lies between. The body goes by the mean of its feet
over a stride.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array, Indices
from ..ground import Ground, clearing, grade_of, plane_of
from ..interpolation import bell_means
from ..walking.path import STEP_UP
from ..walking.steps import BENT, evenly, swing_base
from .alignment import NO_TURN, UP, shortest
from .feet import FootPath, Sole, SolePart, ahead_of, missing_turn, raised_ahead, smooth_envelope
from .figures import product, turned

HALF = 0.04
"""Leg lengths from the middle of a foot to its sides, for its slope across."""
SETTLED = 0.5
"""Seconds beyond the first and the last stance in which a foot goes over to the ground as it is."""
TOES = 0.2
"""Seconds around toes that are raised by the ground, in which they are raised too."""
CLEAREST = 0.03
"""Leg lengths up to which a foot in the air keeps its height over the ground."""
STRIDE = 1.0
"""Seconds of a stride where the feet tell none."""


@dataclass(frozen=True)
class Terrain:
    """Ground that is not level."""

    ground: Ground  # its rows are the frames
    level: float  # world height at which the ground of the level motion is looked for first, metres
    steepest: float  # radians up to which feet are turned to it


@dataclass(frozen=True, eq=False)
class _Stance:
    """Rows in which a foot stands.

    `start` is (3,) of the level ground under its ball, `places` (R, 3) where that comes to, and `turns`
    (R, 4) how what stands on it is turned.
    """

    first: int
    last: int
    start: Array
    places: Array
    turns: Array


def laid(
    terrain: Terrain,
    paths: Mapping[str, FootPath],
    soles: Mapping[str, Sole],
    sizes: Mapping[str, float],
    times: Array,
) -> tuple[dict[str, FootPath], Array]:
    """Paths on the ground, and (F,) metres by which the body is higher there.

    Args:
        paths: by leg, over level ground.
        sizes: by leg, its length in metres.
        times: (F,) seconds.

    Raises:
        InvalidInput: no ground is below a foot that is down.
    """
    done = {
        name: _on_terrain(terrain, name, path, soles[name], sizes[name], times)
        for name, path in paths.items()
    }
    lifts = np.mean([lift for _, lift in done.values()], axis=0)
    return {name: path for name, (path, _) in done.items()}, _over_strides(lifts, paths, times)


def _over_strides(lifts: Array, paths: Mapping[str, FootPath], times: Array) -> Array:
    """(F,) means of (F,) over a stride, straight on beyond both ends."""
    if len(times) < 3:
        return lifts
    firsts = [[rows[0] for rows in _grounded(path)] for path in paths.values()]
    gaps = [float(times[b] - times[a]) for each in firsts for a, b in pairwise(each)]
    seconds = float(np.median(gaps)) if gaps else STRIDE
    half = max(1, min(len(times) - 1, round(0.5 * seconds / float(np.median(np.diff(times))))))
    padded = np.pad(lifts, half, mode="reflect", reflect_type="odd")
    return bell_means(padded, half)


def _grounded(path: FootPath) -> list[tuple[int, int, int]]:
    """First and last row of each stance with its rolls, and the first in which the ball lies."""
    stances = [(hold.first, hold.last, hold.first) for hold in path.holds if hold.part is SolePart.BALL]
    for hold in path.holds:
        if hold.part is not SolePart.BALL and stances:
            gaps = [max(hold.first - last, first - hold.last) for first, last, _ in stances]
            k = int(np.argmin(gaps))
            first, last, ball = stances[k]
            stances[k] = min(first, hold.first), max(last, hold.last), ball
    return stances


def _on_terrain(
    terrain: Terrain, name: str, path: FootPath, sole: Sole, size: float, times: Array
) -> tuple[FootPath, Array]:
    """The path of a foot on the ground, and (F,) metres by which that is higher below it."""
    flat = np.where(np.isfinite(path.ground), path.ground, terrain.level)
    balls, rows = path.ankles + turned(path.feet, sole.ball), np.arange(len(times))
    raw = _followed(terrain, balls[:, :2], size)

    def below(points: Array, at: Indices) -> Array:
        """(R,) heights of the ground under points (R, 3) at rows; minus infinity over holes."""
        tops = np.column_stack((points[:, :2], raw[at] + STEP_UP * size))
        return np.asarray(np.nan_to_num(terrain.ground.below(tops, at)[0], nan=-np.inf))

    stances = []
    for first, last, ball in _grounded(path):
        start = np.array((*balls[ball, :2], flat[ball]))
        height = float(below(start[None], np.array([ball]))[0])
        if not np.isfinite(height):
            spot = np.round(start, 3) + 0.0
            raise InvalidInput(
                f"no ground is below the {name} where it stands at ({spot[0]:.3g}, {spot[1]:.3g}): close "
                "the hole, or choose another Ground"
            )
        place = np.array((*start[:2], height))
        slope = _slope(terrain, path.feet[ball], sole, size, place, ball)
        span = np.arange(first, last + 1)
        places, turns = terrain.ground.carried(place, ball, span)
        stances.append(_Stance(first, last, start, places, product(turns, slope)))
    moved, slopes = balls.copy(), np.tile(NO_TURN, (len(times), 1))
    for each in stances:
        span = np.arange(each.first, each.last + 1)
        moved[span] = each.places + turned(each.turns, balls[span] - each.start)
        slopes[span] = each.turns
    off, rises = moved - balls, balls[:, 2] - flat
    bases = moved[:, 2] - rises
    if not stances:
        bases = _settled(raw, times, rows, None, 0.0)
    for at, (before, after) in _swings(stances, len(times)):
        if before is None or after is None:
            edge = after.first if after is not None else before.last if before is not None else 0
            slopes[at], off[at, :2] = slopes[edge], off[edge, :2]
            bases[at] = _settled(raw, times, at, edge, float(bases[edge]))
            continue
        low, high = before.last, after.first
        u = (times[at] - times[low]) / (times[high] - times[low])
        slopes[at] = batch.slerp(slopes[low], slopes[high], evenly(u), -1)
        off[at, :2] = off[low, :2] + batch.smooth_step(u)[:, None] * (off[high, :2] - off[low, :2])
    xy, feet = balls[:, :2] + off[:, :2], product(slopes, path.feet)
    toes = None if path.toes is None else product(slopes, path.toes)
    for at, (before, after) in _swings(stances, len(times)):
        if before is None or after is None:
            continue
        low, high = before.last, after.first
        u = (times[at] - times[low]) / (times[high] - times[low])
        p, way = u, xy[high] - xy[low]
        if float(way @ way) > (HALF * size) ** 2:
            p = np.clip((xy[at] - xy[low]) @ way / (way @ way), 0.0, 1.0)
        points = [
            point + (0.0, 0.0, 1.0) * rises[at, None]
            for point in sole.points(feet[at], None if toes is None else toes[at])
        ]
        above = np.array([point[:, 2] for point in points])  # the base
        heights = np.array([below(np.column_stack((xy[at], rises[at])) + point, at) for point in points])
        ends = float(bases[low]), float(bases[high])
        plane = ends[0] + (ends[1] - ends[0]) * np.concatenate(([0.0], p, [1.0]))
        needed = clearing(heights, above, above.min(axis=0), CLEAREST * size)
        bases[at] = swing_base(u, p, ends, plane, rises[at], needed)
    placed = np.column_stack((xy, bases + rises))
    if toes is not None and sole.toe is not None:
        ahead = ahead_of(feet, sole.across)
        over = below(placed + turned(toes, sole.toe), rows) - placed[:, 2]
        missing = np.clip(missing_turn(toes, sole.toe, ahead, np.maximum(over, -size)), 0.0, BENT)
        toes = raised_ahead(toes, ahead, np.maximum(missing, smooth_envelope(missing, times, TOES)))
    ankles = placed - turned(feet, sole.ball)
    rested = replace(path, ankles=ankles, feet=feet, toes=toes, ground=bases)
    return cleared(terrain, rested, sole, size, times), bases - flat


def cleared(terrain: Terrain, path: FootPath, sole: Sole, size: float, times: Array) -> FootPath:
    """The path with no point of its sole below the ground; in the air it is lifted smoothly.

    Its ground becomes the level from which the lowest point is as far as the sole is from the ground.
    """
    balls, rows = path.ankles + turned(path.feet, sole.ball), np.arange(len(times))
    points = [balls + point for point in sole.points(path.feet, path.toes)]
    heights = []
    for point in points:
        tops = np.column_stack((point[:, :2], path.ground + STEP_UP * size))
        heights.append(terrain.ground.below(tops, rows)[0])
    above = np.array([point[:, 2] for point in points])
    deep = clearing(np.array(heights), above, 0.0, 0.0)
    lift = np.maximum(deep, 0.0)
    lift = np.maximum(lift, (1.0 - path.weights) * smooth_envelope(lift, times, TOES))
    ground = np.where(np.isfinite(deep), above.min(axis=0) + deep, path.ground)
    return replace(path, ankles=path.ankles + lift[:, None] * UP, ground=ground)


def _followed(terrain: Terrain, xy: Array, size: float) -> Array:
    """(F,) heights of the ground under places (F, 2), each near the one before; over holes between those."""
    heights, known = np.full(len(xy), np.nan), terrain.level
    for row, place in enumerate(xy.tolist()):
        for top in (known + STEP_UP * size, np.inf) if row == 0 else (known + STEP_UP * size,):
            seen = float(terrain.ground.below(np.array([[*place, top]]), np.array([row]))[0][0])
            if np.isfinite(seen):
                known = heights[row] = seen
                break
    known_rows = np.flatnonzero(np.isfinite(heights))
    if not len(known_rows):
        return np.full(len(xy), terrain.level)
    return np.asarray(np.interp(np.arange(len(xy)), known_rows, heights[known_rows]))


def _slope(terrain: Terrain, foot: Array, sole: Sole, size: float, place: Array, row: int) -> Array:
    """(4,) from level to the plane on which heel and ball of a foot (4,) lie, with its ball over a place."""
    if not sole.rolls:
        return NO_TURN
    ahead = ahead_of(foot, sole.across)
    left = np.cross(UP, ahead)
    heel = float(np.linalg.norm(turned(foot, sole.heel)[:2]))
    arms = np.stack((0.0 * ahead, -heel * ahead, HALF * size * left, -HALF * size * left))
    tops = place + arms + (0.0, 0.0, STEP_UP * size)
    heights, normals = terrain.ground.below(tops, np.full(4, row))
    lean = (heights[0] - heights[1]) / heel if heel > 0.0 and not sole.stands_on_toes else np.nan
    slopes = float(lean), float(heights[2] - heights[3]) / (2.0 * HALF * size)
    grade = grade_of(normals[0], ahead, left, slopes, terrain.steepest)
    return shortest(UP, plane_of(grade, ahead, left))


def _swings(
    stances: Sequence[_Stance], count: int
) -> list[tuple[Indices, tuple[_Stance | None, _Stance | None]]]:
    """Rows before, between and after stances, with the stances beside them."""
    if not stances:
        return []
    ends = [None, *stances, None]
    swings: list[tuple[Indices, tuple[_Stance | None, _Stance | None]]] = []
    for before, after in pairwise(ends):
        rows = np.arange(0 if before is None else before.last + 1, count if after is None else after.first)
        if len(rows):
            swings.append((rows, (before, after)))
    return swings


def _settled(raw: Array, times: Array, rows: Indices, edge: int | None, base: float) -> Array:
    """(R,) heights of the ground (F,) at rows, evenly, from the height of a stance at its edge on."""
    even = raw
    if len(times) > 2:
        half = max(1, min(len(times) - 1, round(0.25 * SETTLED / float(np.median(np.diff(times))))))
        even = bell_means(np.pad(raw, half, mode="edge"), half)
    if edge is None:
        return np.asarray(even[rows])
    part = batch.smooth_step(1.0 - np.abs(times[rows] - times[edge]) / SETTLED)
    return np.asarray(even[rows] + part * (base - even[edge]))
