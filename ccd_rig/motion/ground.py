"""The ground below points: a height, or triangles; those that move are in `moving_ground`.

World points are in metres with Z up. `rows` are places of frames, from 0; ground that stands still is the
same in all of them.
"""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
from mathutils import Vector
from mathutils.bvhtree import BVHTree

from ..errors import InvalidInput
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
        """See `Ground`."""
        return np.tile(point, (len(rows), 1)), np.tile((1.0, 0.0, 0.0, 0.0), (len(rows), 1))


class LevelGround(_StillGround):
    """A level at one height, metres."""

    def __init__(self, height: float = 0.0) -> None:
        if not np.isfinite(height):
            raise InvalidInput(f"height must be a number of metres, not {height}")
        self.height = float(height)

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        """See `Ground`."""
        heights = np.where(points[:, 2] >= self.height, self.height, np.nan)
        return heights, np.tile((0.0, 0.0, 1.0), (len(points), 1))

    def blocked(self, starts: Array, ends: Array, row: int) -> Mask:
        """See `Ground`."""
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
        require_triangles(self.vertices, self.triangles)
        corners: Any = self.vertices.tolist()
        self._tree: Any = BVHTree.FromPolygons(corners, self.triangles.tolist(), all_triangles=True)
        self._top = float(self.vertices[:, 2].max()) + 1.0

    def below(self, points: Array, rows: Indices) -> tuple[Array, Array]:
        """See `Ground`."""
        heights, normals = np.full(len(points), np.nan), np.full((len(points), 3), np.nan)
        cast = self._tree.ray_cast
        for k, (x, y, z) in enumerate(points.tolist()):
            z = self._top if z == np.inf else z
            for dx, dy in ((0.0, 0.0), (ASIDE, ASIDE), (-ASIDE, ASIDE)):
                place, normal, _, _ = cast(Vector((x + dx, y + dy, z)), DOWN)
                if place is not None and normal is not None:
                    heights[k] = place[2]
                    normals[k] = normal if normal[2] >= 0.0 else -normal
                    break
        return heights, normals

    def blocked(self, starts: Array, ends: Array, row: int) -> Mask:
        """See `Ground`."""
        hits = np.zeros(len(starts), np.bool_)
        for k, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            way = Vector(end) - Vector(start)
            if way.length > 0.0:
                hits[k] = self._tree.ray_cast(Vector(start), way, way.length)[0] is not None
        return hits


def require_triangles(vertices: Array, triangles: Indices) -> None:
    """Raise InvalidInput if vertices are not (V, 3) numbers, or triangles not (T, 3) of their indices."""
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InvalidInput(f"vertices must be (V, 3), not {vertices.shape}")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or not len(triangles):
        raise InvalidInput("the ground has no face: give at least one triangle")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise InvalidInput("triangles must hold indices of vertices")
    require_numbers(vertices)
