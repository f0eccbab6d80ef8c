"""The ground below points: a height, or triangles, which may move.

World points are in metres with Z up. `rows` are places of frames, from 0; ground that stands still is the
same in all of them.

Triangles that move are kept near a figure, in blocks of rows. A block has the triangles that get near the
figure in one of its rows. A grid of squares covers all that they pass over in these rows. So triangles below
a point are looked for in one square, and no row needs a search tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from mathutils import Vector
from mathutils.bvhtree import BVHTree
from mathutils.geometry import closest_point_on_tri

from ..errors import InvalidInput
from ..maths import batch
from ..maths.batch import Array, Indices, Mask

ASIDE = 2e-5
"""Metres by which a ray that slips through an edge between triangles is moved to be cast again."""
DOWN = Vector((0.0, 0.0, -1.0))


class Ground(Protocol):
    """The ground below feet."""

    @property
    def moves(self) -> bool:
        """Whether it is another one in another row."""

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        """(P,) heights of the first surface below points (P, 3) at rows (P,), and (P, 3) unit normals with Z
        not below 0; not a number where there is none. Points of infinite height are above all of it."""

    def blocked(self, starts: Array, ends: Array, row: int) -> Mask:
        """(P,) whether anything of the ground is between points (P, 3) and others (P, 3)."""

    def carried(self, point: Array, row: int, rows: Indices) -> tuple[Array, Array]:
        """(R, 3) where a point (3,) of the surface at a row is at rows (R,), and (R, 4) how the surface has
        turned since."""


def seen_below(ground: Ground, points: Array, tops: Array, rows: Indices | None = None) -> Array:
    """(R, ...) heights of the ground below points (R, ..., 3) at rows (R,), seen from heights `tops` that
    broadcast with these; not a number where there is none. Without rows, they are 0 to R.

    A foot that is in the ground is below it, and a ceiling over the figure is none: what is seen from the
    figure's own top counts. Where that sees nothing, all the figure is below the ground: what is uppermost.
    """
    rows = np.arange(len(points)) if rows is None else rows
    each, starts = np.repeat(rows, prod(points.shape[1:-1])), points.reshape(-1, 3).copy()
    starts[:, 2] = np.broadcast_to(tops, points.shape[:-1]).ravel()
    heights, _ = ground.below(starts, each)
    unseen = np.isnan(heights)
    starts[unseen, 2] = np.inf
    heights[unseen], _ = ground.below(starts[unseen], each[unseen])
    return heights.reshape(points.shape[:-1])


def clearing(heights: Array, points: Array, clear: Array | float, most: float) -> Array:
    """(R,) metres up to where no point of a foot is in the ground, and all are as clear of it as animated.

    Args:
        heights: (P, R) of the ground below the foot's points; no numbers over holes.
        points: (P, R) heights of these points.
        clear: (R,) metres of the lowest point above the ground, as animated.
        most: of them that count, metres.
    """
    deep = np.where(np.isfinite(heights), heights - points, -np.inf).max(axis=0)
    return np.asarray(deep + np.clip(clear, 0.0, most))


def grade_of(normal: Array, ahead: Array, left: Array, slopes: tuple[float, float], steepest: float) -> Array:
    """(2,) how much the ground below a foot rises ahead and to its left, for a metre.

    Heel and ball lie on it, else the foot has the slope of the face below its ball.

    Args:
        normal: (3,) of that face.
        ahead, left: (3,) unit directions along the ground.
        slopes: from heel to ball and from its right to its left; steeper ones, and no numbers, do not count.
        steepest: radians up to which it turns.
    """
    most = float(np.tan(steepest))
    up = max(float(normal[2]), 1e-6)
    grade = np.array((-float(normal @ ahead) / up, -float(normal @ left) / up))
    for k, slope in enumerate(slopes):
        if abs(slope) <= most:  # never of what is no number
            grade[k] = slope
    return grade * min(1.0, most / max(float(np.hypot(*grade)), 1e-12))


def plane_of(grade: Array, ahead: Array, left: Array) -> Array:
    """(3,) normal of a plane that rises so; its Z is 1."""
    return np.asarray(np.array((0.0, 0.0, 1.0)) - grade[0] * ahead - grade[1] * left)


class _StillGround:
    """Ground that stands still."""

    moves = False

    def carried(self, point: Array, row: int, rows: Indices) -> tuple[Array, Array]:
        return np.tile(point, (len(rows), 1)), np.tile((1.0, 0.0, 0.0, 0.0), (len(rows), 1))


class LevelGround(_StillGround):
    """A level at one height, metres."""

    def __init__(self, height: float = 0.0) -> None:
        if not np.isfinite(height):
            raise InvalidInput(f"height must be a number of metres, not {height}")
        self.height = float(height)

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        heights = np.where(points[:, 2] >= self.height, self.height, np.nan)
        return heights, np.tile((0.0, 0.0, 1.0), (len(points), 1))

    def blocked(self, starts: Array, ends: Array, row: int) -> Mask:
        return np.zeros(len(starts), np.bool_)


def require_numbers(vertices: Array) -> None:
    """Raise InvalidInput if a vertex, of (V, 3), is not a number."""
    is_number = np.isfinite(vertices)
    if not is_number.all():
        k = int(is_number.all(axis=-1).argmin())
        raise InvalidInput(f"vertex {k} of the ground is not a number: repair or delete it")


class TriangleGround(_StillGround):
    """Triangles that stand still, in a bounding volume tree.

    Args:
        vertices: (V, 3) world metres.
        triangles: (T, 3) indices of their corners, in any order.

    Raises:
        InvalidInput: shapes do not fit, there is no triangle, or a vertex is not a number.
    """

    def __init__(self, vertices: Array, triangles: Indices) -> None:
        self.vertices, self.triangles = np.asarray(vertices, np.float64), np.asarray(triangles, np.int64)
        if not len(self.triangles):
            raise InvalidInput("the ground has no face: give at least one triangle")
        require_numbers(self.vertices)
        corners: Any = self.vertices.tolist()
        self._tree: Any = BVHTree.FromPolygons(corners, self.triangles.tolist(), all_triangles=True)
        self._top = float(self.vertices[:, 2].max()) + 1.0

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        cast, heights, normals = self._tree.ray_cast, [], []
        tops = np.where(points[:, 2] == np.inf, self._top, points[:, 2])
        for x, y, z in zip(points[:, 0].tolist(), points[:, 1].tolist(), tops.tolist(), strict=True):
            for dx, dy in ((0.0, 0.0), (ASIDE, ASIDE), (-ASIDE, ASIDE)):
                place, normal, _, _ = cast((x + dx, y + dy, z), DOWN)
                if place is not None:
                    heights.append(place.z)
                    normals.append((normal if normal.z >= 0.0 else -normal).to_tuple())
                    break
            else:
                heights.append(np.nan)
                normals.append((np.nan, np.nan, np.nan))
        return np.array(heights, np.float64), np.array(normals, np.float64).reshape(-1, 3)

    def blocked(self, starts: Array, ends: Array, row: int) -> Mask:
        hits = np.zeros(len(starts), np.bool_)
        for k, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            way = Vector(end) - Vector(start)
            if way.length > 0.0:
                hits[k] = self._tree.ray_cast(Vector(start), way, way.length)[0] is not None
        return hits


EDGE = 1e-6
"""Part of a triangle by which a point beside its edge counts as inside: none slips through between two."""
MOST_PAIRS = 1_000_000
"""Pairs of points and triangles that are compared at once."""


@dataclass(frozen=True, eq=False)
class GroundBlock:
    """Triangles near a figure in rows that follow each other."""

    vertices: Array  # (R, V, 3) world metres in its rows; float32 will do
    triangles: Indices  # (T, 3) indices of their corners
    faces: Indices  # (T,) which triangles of the ground they are, increasing

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """(T, 2) lowest and (T, 2) highest places that each triangle passes over."""
        lines = [np.ascontiguousarray(self.vertices[..., axis]) for axis in (0, 1)]
        low, high = passed_over(
            [each.min(axis=0) for each in lines], [each.max(axis=0) for each in lines], self.triangles
        )
        return np.column_stack(low), np.column_stack(high)

    @cached_property
    def _grid(self) -> tuple[Array, float, Indices, Indices, Indices]:
        """Its corner, the width of a square, counts (2,) of squares, and for each square the place in the
        last array from which its triangles are there."""
        low, high = self._bounds
        start = low.min(axis=0).astype(np.float64)
        whole = np.maximum(high.max(axis=0) - start, 1e-6)
        # So wide that a triangle is in about four squares, whatever the triangles' sizes.
        sizes = float(np.sqrt(np.square(high - low).mean() * 2.0))
        width = max(float(np.sqrt(whole.prod() / len(low))), sizes, 1e-6)
        counts = np.floor(whole / width).astype(np.intp) + 1
        first, last = (
            np.floor((each - start) / width).astype(np.intp).clip(0, counts - 1) for each in (low, high)
        )
        spans = last - first + 1
        sizes_in = spans[:, 0] * spans[:, 1]
        rows, at = np.repeat(np.arange(len(low)), sizes_in), _counted(sizes_in)
        x, y = np.divmod(at, spans[rows, 1])
        squares = (first[rows, 0] + x) * counts[1] + first[rows, 1] + y
        order = np.argsort(squares, kind="stable")
        starts = np.searchsorted(squares[order], np.arange(int(counts.prod()) + 1))
        return start, width, counts, starts, rows[order]

    @property
    def width(self) -> float:
        """Width of a square of the grid."""
        return self._grid[1]

    def prepare(self) -> None:
        """Make the grid now, and not when something is looked for first."""
        assert self._grid

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        """See `Ground`; rows are those of the block."""
        heights, normals = np.full(len(points), np.nan), np.full((len(points), 3), np.nan)
        start, width, counts, starts, entries = self._grid
        with np.errstate(invalid="ignore"):
            at = np.floor((points[:, :2] - start) / width)
            is_over = ((at >= 0.0) & (at < counts)).all(axis=1)  # never of what is no number
        over = np.flatnonzero(is_over)
        squares = at[over].astype(np.intp) @ np.array((counts[1], 1))
        sizes = starts[squares + 1] - starts[squares]
        cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // MOST_PAIRS)) + 1
        for few in np.split(np.arange(len(over)), cuts):
            pairs = np.repeat(few, sizes[few])
            if not len(pairs):
                continue
            picked = entries[starts[squares[pairs]] + _counted(sizes[few])]
            which = over[pairs]
            a, b, c = (
                self.vertices[rows[which], self.triangles[picked, k]].astype(np.float64) for k in range(3)
            )
            heights_here, normals_here = _under(points[which], a, b, c)
            order = np.lexsort((-heights_here, which))  # no number comes last
            firsts = order[np.flatnonzero(np.diff(which[order], prepend=-1))]
            hit = firsts[np.isfinite(heights_here[firsts])]
            heights[which[hit]], normals[which[hit]] = heights_here[hit], normals_here[hit]
        return heights, normals

    def over(self, low: Array, high: Array) -> Indices:
        """(N,) places of triangles that pass over a box (2,), (2,) seen from above."""
        start, width, counts, starts, entries = self._grid
        if (high < start).any() or (low > start + width * counts).any():
            return np.empty(0, np.intp)
        (x0, y0), (x1, y1) = (
            np.floor((each - start) / width).astype(np.intp).clip(0, counts - 1).tolist()
            for each in (low, high)
        )
        lines = [
            entries[starts[x * counts[1] + y0] : starts[x * counts[1] + y1 + 1]] for x in range(x0, x1 + 1)
        ]
        picked = np.unique(np.concatenate(lines))
        lows, highs = (each[picked] for each in self._bounds)
        return picked[((lows <= high) & (highs >= low)).all(axis=1)]


def passed_over(
    low: Sequence[Array], high: Sequence[Array], triangles: Indices
) -> tuple[list[Array], list[Array]]:
    """(T,) lowest and highest of each axis where triangles (T, 3) are whose vertices are between (V,) values
    of each axis."""
    corners = [np.ascontiguousarray(triangles[:, k]) for k in range(3)]
    bounds: tuple[list[Array], list[Array]] = ([], [])
    for lines, least, kept in zip((low, high), (np.minimum, np.maximum), bounds, strict=True):
        for line in lines:
            a, b, c = (line[corner] for corner in corners)
            kept.append(least(least(a, b), c))
    return bounds


def _counted(sizes: Indices) -> Indices:
    """0, 1, ... up to each size, one after the other."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _under(points: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """(N,) heights of triangles below points (N, 3), no number where they are not, and (N, 3) normals."""
    ab, ac, ap = b - a, c - a, points - a
    whole = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (ap[:, 0] * ac[:, 1] - ap[:, 1] * ac[:, 0]) / whole
        v = (ab[:, 0] * ap[:, 1] - ab[:, 1] * ap[:, 0]) / whole
        heights = a[:, 2] + u * ab[:, 2] + v * ac[:, 2]
        is_below = (u >= -EDGE) & (v >= -EDGE) & (u + v <= 1.0 + EDGE) & (heights <= points[:, 2])
        across = batch.cross(ab, ac, -1)
        normals = across / (np.where(across[:, 2] < 0.0, -1.0, 1.0) * batch.length(across, -1))[:, None]
    return np.where(is_below, heights, np.nan), normals


class MovingGround:
    """Triangles that move.

    Args:
        blocks: of all rows, in order; one at least.

    Raises:
        InvalidInput: a vertex is not a number.
    """

    moves = True

    def __init__(self, blocks: Sequence[GroundBlock]) -> None:
        for state in (state for block in blocks if len(block.triangles) for state in block.vertices):
            require_numbers(state)
        self.blocks = tuple(blocks)
        self._firsts = np.cumsum([0, *(len(block.vertices) for block in blocks)])

    def _parts(self, rows: Indices) -> Iterator[tuple[GroundBlock, Indices, Indices]]:
        """Blocks with the places in `rows` that are theirs, and their own rows there."""
        rows = np.asarray(rows).clip(0, self._firsts[-1] - 1)
        which = np.searchsorted(self._firsts, rows, side="right") - 1
        for k in np.unique(which).tolist():
            picked = np.flatnonzero(which == k)
            yield self.blocks[k], picked, rows[picked] - self._firsts[k]

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        heights, normals = np.full(len(points), np.nan), np.full((len(points), 3), np.nan)
        for block, picked, inside in self._parts(rows):
            if len(block.triangles):
                heights[picked], normals[picked] = block.below(points[picked], inside)
        return heights, normals

    def blocked(self, starts: Array, ends: Array, row: int) -> Mask:
        hits = np.zeros(len(starts), np.bool_)
        for block, _, (inside,) in self._parts(np.array([row])):
            for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
                if len(block.triangles):
                    low, high = np.minimum(start, end)[:2], np.maximum(start, end)[:2]
                    corners = block.vertices[inside][block.triangles[block.over(low, high)]]
                    hits[k] = _meets(start, end, corners.astype(np.float64))
        return hits

    def carried(self, point: Array, row: int, rows: Indices) -> tuple[Array, Array]:
        """See `Ground`.

        Raises:
            InvalidInput: the surface leaves all that is kept of the ground.
        """
        face, corners = self._nearest(point, row)
        every = np.empty((len(rows) + 1, 3, 3))
        every[0] = corners
        for block, picked, inside in self._parts(rows):
            k = int(np.searchsorted(block.faces, face))
            if k == len(block.faces) or block.faces[k] != face:
                raise _carried_away(point)
            every[1 + picked] = block.vertices[inside][:, block.triangles[k]]
        a, b, c = corners
        shares = np.linalg.lstsq(
            np.stack((b - a, c - a, np.cross(b - a, c - a)), axis=1), point - a, rcond=None
        )[0]
        frames = _frames(every)
        edges = np.stack((every[1:, 1] - every[1:, 0], every[1:, 2] - every[1:, 0]), axis=1)
        across = np.cross(edges[:, 0], edges[:, 1])
        places = every[1:, 0] + shares[0] * edges[:, 0] + shares[1] * edges[:, 1] + shares[2] * across
        back = np.tile(frames[:1] * (1.0, -1.0, -1.0, -1.0), (len(rows), 1))
        return np.asarray(places), batch.multiply(frames[1:], back, -1)

    def _nearest(self, point: Array, row: int) -> tuple[int, Array]:
        """The triangle nearest to a point (3,) at a row, and its corners (3, 3)."""
        ((block, _, (inside,)),) = self._parts(np.array([row]))
        seen, beside = Vector(point.tolist()), block.width if len(block.triangles) else np.inf
        while beside < np.inf:
            picked = block.over(point[:2] - beside, point[:2] + beside)
            corners = block.vertices[inside][block.triangles[picked]].astype(np.float64)
            nearest = (closest_point_on_tri(seen, *map(Vector, each)) for each in corners.tolist())
            off = [(each - seen).length for each in nearest]
            if off and (min(off) <= beside or len(picked) == len(block.triangles)):
                k = int(np.argmin(off))
                return int(block.faces[picked[k]]), corners[k]
            beside *= 2.0
        x, y, _ = (np.round(point, 3) + 0.0).tolist()
        raise InvalidInput(
            lambda metres: (
                f"no ground is near ({metres * x:.3g}, {metres * y:.3g}) any more: choose another ground"
            )
        )


def _carried_away(point: Array) -> InvalidInput:
    x, y, _ = (np.round(point, 3) + 0.0).tolist()
    return InvalidInput(
        lambda metres: (
            f"the ground carries what stands on it at ({metres * x:.3g}, {metres * y:.3g}) farther than a "
            "leg reaches: slow it down, or choose another ground"
        )
    )


def _meets(start: Array, end: Array, corners: Array) -> bool:
    """Whether a way (3,) to (3,) meets one of triangles (N, 3, 3), by Möller and Trumbore's test (1997)."""
    way, a = end - start, corners[:, 0]
    ab, ac = corners[:, 1] - a, corners[:, 2] - a
    across = np.cross(way, ac)
    whole = (ab * across).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = ((start - a) * across).sum(axis=1) / whole
        over = np.cross(start - a, ab)
        v = (over @ way) / whole
        t = (ac * over).sum(axis=1) / whole
        return bool(((u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t >= 0.0) & (t <= 1.0)).any())


def _frames(corners: Array) -> Array:
    """(S, 4) rotations of triangles (S, 3, 3): along their first edge and normal."""
    x: Array = corners[:, 1] - corners[:, 0]
    z: Array = np.cross(x, corners[:, 2] - corners[:, 0]).astype(np.float64)
    x, z = batch.directions(x), batch.directions(z)
    axes: Array = np.stack((x, np.cross(z, x), z), axis=-1).astype(np.float64)
    return np.ascontiguousarray(batch.quaternions(np.moveaxis(axes, 0, -1)).T)
