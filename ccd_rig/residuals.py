"""What one goal adds to the least squares problem: its residual and its slope, in closed form and double precision.

A residual is a vector whose length is how far off the goal is, times a factor that makes goals of different kinds
comparable. The slope says how it changes with each unknown, given how the unknowns move points and turn frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .goals import POLE_NOISE

Array = NDArray[np.float64]
Measured = tuple[Array, float, float]
"""The residual, the distance in the model's unit, the angle in radians."""


class Columns(NamedTuple):
    """What the unknowns do, per unit of each.

    Attributes:
        ends: (points, 3) where the points are, model space.
        moves: (points, columns, 3) how they move.
        turns: (frames, columns, 3) rotation vectors by which frames turn, model axes.
    """

    ends: Array
    moves: Array
    turns: Array


class Block(Protocol):
    """A goal's part of the residuals; `rows` is its size."""

    rows: int

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        """The residual and how far off the goal is. frames[rows[k]]: model frame (4, 4) of the k-th frame asked for."""

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        """(rows, columns) the derivative of the residual."""


@dataclass
class Position:
    """A point and its target."""

    point: int
    target: Array
    factor: float
    rows: int = 3

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        off = ends[self.point] - self.target
        return self.factor * off, math.sqrt(off @ off), 0.0

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        return self.factor * columns.moves[self.point].T


@dataclass
class Balance:
    """The centre of mass and its target, on the axes that count."""

    first: int
    shares: Array
    target: Array
    axes: NDArray[np.intp]
    factor: float

    @property
    def rows(self) -> int:
        return len(self.axes)

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        centre = self.shares @ ends[self.first : self.first + len(self.shares)]
        off = (centre - self.target)[self.axes]
        return self.factor * off, math.sqrt(off @ off), 0.0

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        moves = columns.moves[self.first : self.first + len(self.shares)]
        return self.factor * np.tensordot(self.shares, moves, 1).T[self.axes]


@dataclass
class Orientation:
    """A frame and its target: the rotation vector from the one to the other, model axes."""

    frame: int
    target: Array
    factor: float
    rows: int = 3

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        x, y, z = rotation_vector(frames[rows[self.frame], :3, :3] @ self.target.T)
        return np.array((self.factor * x, self.factor * y, self.factor * z)), 0.0, math.sqrt(x * x + y * y + z * z)

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        x, y, z = rotation_vector(frames[rows[self.frame], :3, :3] @ self.target.T)
        # The inverse of the left Jacobian of SO(3): 1 - [e]/2 + k [e]^2, k = (1 - (a/2) cot(a/2)) / a^2.
        square = x * x + y * y + z * z
        half = 0.5 * math.sqrt(square)
        # Below 1e-3 radians two terms of the series are exact.
        k = (1.0 - half / math.tan(half)) / square if half > 1e-3 else 1.0 / 12.0 + square / 720.0
        cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
        inverse = k * (cross @ cross) - 0.5 * cross
        inverse[0, 0] += 1.0
        inverse[1, 1] += 1.0
        inverse[2, 2] += 1.0
        return (self.factor * inverse) @ columns.turns[self.frame].T


@dataclass
class Direction:
    """An axis a of a frame and its target b: the tangent at b that points to a, as long as the angle between them."""

    frame: int
    axis: Array
    target: Array
    factor: float
    rows: int = 3

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        a = frames[rows[self.frame], :3, :3] @ self.axis
        across = a - (a @ self.target) * self.target
        sine, cosine = math.sqrt(across @ across), float(a @ self.target)
        angle = math.atan2(sine, cosine)
        if sine < 1e-9 and cosine < 0.0:
            # Opposite: every way is equally long, so any one will do, but always the same.
            return self.factor * angle * _across(self.target), 0.0, angle
        return self.factor * _per_sine(angle, sine) * across, 0.0, angle

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        a, b = frames[rows[self.frame], :3, :3] @ self.axis, self.target
        across = a - (a @ b) * b
        sine, cosine = math.sqrt(across @ across), float(a @ b)
        if sine < 1e-9 and cosine < 0.0:
            # The limit of the case below for the way that was chosen: only turns along it count.
            unit = _across(b)
            return np.outer(self.factor * unit, columns.turns[self.frame] @ np.cross(a, unit))
        angle = math.atan2(sine, cosine)
        ratio = _per_sine(angle, sine)
        # The derivative of angle / sine by the cosine; its series near 0 is -1/3 - 4 sine^2 / 15.
        bend = (cosine * ratio - 1.0) / (sine * sine) if sine > 1e-3 or cosine < 0.0 else -1.0 / 3.0 - sine * sine * 4.0 / 15.0
        moves = np.cross(columns.turns[self.frame], a)
        along = moves @ b
        found = np.outer(bend * along, across) + ratio * (moves - np.outer(along, b))
        return self.factor * found.T


@dataclass
class Pole:
    """The signed angle, about the chain's line, from its bend to the side of the pole target.

    With l the unit line (length |L|), B the sum of the heads from the first, s the target from there, e the unit part of a
    vector v across the line, rho its length and t = l x e, the azimuth of v changes by t.(dv - (v.l) dL / |L|) / rho.
    """

    first: int
    count: int
    target: Array
    factor: float
    rows: int = 1

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        parts = self._parts(ends)
        if parts is None:
            return np.zeros(1), 0.0, 0.0
        line, _, bend, side, _, _ = parts
        angle = math.atan2(float(line @ np.cross(bend, side)), float(bend @ side))
        return np.array((self.factor * angle,)), 0.0, abs(angle)

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        parts = self._parts(columns.ends)
        moves = columns.moves[self.first : self.first + self.count + 1]
        if parts is None:
            return np.zeros((1, moves.shape[1]))
        line, length, bend, side, bend_along, side_along = parts
        root = moves[0]
        line_moves = (moves[-1] - root) / length
        bend_moves = moves[1:-1].sum(0) - (self.count - 1) * root
        of_bend, of_side = np.cross(line, bend), np.cross(line, side)
        turned = (-root - side_along * line_moves) @ (of_side / (of_side @ of_side))
        turned -= (bend_moves - bend_along * line_moves) @ (of_bend / (of_bend @ of_bend))
        return self.factor * turned[None]

    def _parts(self, ends: Array) -> tuple[Array, float, Array, Array, float, float] | None:
        """Unit line, its length, bend and side across it, and their parts along it; None: the goal asks for nothing."""
        heads, end = ends[self.first : self.first + self.count], ends[self.first + self.count]
        line = end - heads[0]
        length = math.sqrt(line @ line)
        steps = np.diff(ends[self.first : self.first + self.count + 1], axis=0)
        reach = float(np.sqrt((steps * steps).sum(1)).sum())
        if length <= POLE_NOISE * reach:
            return None
        line = line / length
        whole = (heads - heads[0]).sum(0)
        side = self.target - heads[0]
        bend_along, side_along = float(whole @ line), float(side @ line)
        bend, away = whole - bend_along * line, side - side_along * line
        if math.sqrt(bend @ bend) <= POLE_NOISE * reach or math.sqrt(away @ away) <= POLE_NOISE * math.sqrt(side @ side):
            return None
        return line, length, bend, away, bend_along, side_along


def rotation_vector(matrix: Array) -> tuple[float, float, float]:
    """The rotation vector (radians, length up to pi) of a rotation matrix."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    x, y, z = 0.5 * (h - f), 0.5 * (c - g), 0.5 * (d - b)
    cosine = 0.5 * (a + e + i - 1.0)
    sine = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(sine, cosine)
    if sine > 1e-3 or cosine > 0.0:
        scale = _per_sine(angle, sine)
        return scale * x, scale * y, scale * z
    # Near a half turn the axis stands in the symmetric part, (1 - cos) n n^T + cos; its sign in the other.
    rows = ((a - cosine, 0.5 * (b + d), 0.5 * (c + g)), (0.5 * (b + d), e - cosine, 0.5 * (f + h)))
    rows = (*rows, (0.5 * (c + g), 0.5 * (f + h), i - cosine))
    largest = max(range(3), key=lambda k: rows[k][k])
    nx, ny, nz = rows[largest]
    side = math.copysign(angle / math.sqrt(nx * nx + ny * ny + nz * nz), nx * x + ny * y + nz * z)
    return side * nx, side * ny, side * nz


def _per_sine(angle: float, sine: float) -> float:
    """angle / sine; near 0 its series."""
    return angle / sine if sine > 1e-30 else 1.0


def _across(vector: Array) -> Array:
    """A unit vector at right angles to a unit vector, always the same one."""
    axis = np.zeros(3)
    axis[int(np.argmin(np.abs(vector)))] = 1.0
    across = axis - (axis @ vector) * vector
    return np.asarray(across / np.linalg.norm(across))
