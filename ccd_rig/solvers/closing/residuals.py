"""What one goal adds to the least squares problem: its residual and its slope, in closed form.

A residual is a vector (double precision) whose length is how far off the goal is, times a factor that makes
goals of different kinds comparable. The slope says how it changes with each unknown, given how the unknowns
move points and turn frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...goals import POLE_NOISE, BalanceGoal, DirectionGoal, Goal, PoleGoal, PositionGoal
from ...maths.arrays import matrix, per_sine, rotation_vector
from ...skeleton.joints import Skeleton

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
    """A goal's part of the residuals."""

    @property
    def rows(self) -> int:
        """How many numbers it adds."""

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        """The residual and how far off the goal is. frames[rows[k]]: model frame (4, 4) of frame k."""

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
        moves: Array = columns.moves[self.point]
        return self.factor * moves.T


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
        return self.factor * (moves.T @ self.shares)[self.axes]


@dataclass
class Orientation:
    """A frame and its target: the rotation vector from the one to the other, model axes."""

    frame: int
    target: Array
    factor: float
    rows: int = 3

    def measure(self, ends: Array, frames: Array, rows: list[int]) -> Measured:
        x, y, z = rotation_vector(frames[rows[self.frame], :3, :3] @ self.target.T)
        angle = math.sqrt(x * x + y * y + z * z)
        return np.array((self.factor * x, self.factor * y, self.factor * z)), 0.0, angle

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        x, y, z = rotation_vector(frames[rows[self.frame], :3, :3] @ self.target.T)
        # The inverse of the left Jacobian of SO(3): 1 - [e]/2 + k [e]^2, k = (1 - (a/2) cot(a/2)) / a^2.
        square = x * x + y * y + z * z
        half = 0.5 * math.sqrt(square)
        # Below 1e-3 radians two terms of the series are exact.
        k = (1.0 - half / math.tan(half)) / square if half > 1e-3 else 1.0 / 12.0 + square / 720.0
        cross: Array = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
        inverse: Array = k * (cross @ cross) - 0.5 * cross
        inverse[0, 0] += 1.0
        inverse[1, 1] += 1.0
        inverse[2, 2] += 1.0
        turns: Array = columns.turns[self.frame]
        return (self.factor * inverse) @ turns.T


@dataclass
class Direction:
    """An axis a of a frame and its target b: the tangent at b towards a, as long as the angle between."""

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
        return self.factor * per_sine(angle, sine) * across, 0.0, angle

    def slope(self, columns: Columns, frames: Array, rows: list[int]) -> Array:
        a, b = frames[rows[self.frame], :3, :3] @ self.axis, self.target
        turns: Array = columns.turns[self.frame]
        across = a - (a @ b) * b
        sine, cosine = math.sqrt(across @ across), float(a @ b)
        if sine < 1e-9 and cosine < 0.0:
            # The limit of the case below for the way that was chosen: only turns along it count.
            unit = _across(b)
            along_unit: Array = turns @ np.cross(a, unit)
            return self.factor * unit[:, None] * along_unit
        angle = math.atan2(sine, cosine)
        ratio = per_sine(angle, sine)
        # The derivative of angle / sine by the cosine; its series near 0 is -1/3 - 4 sine^2 / 15.
        bend = (
            (cosine * ratio - 1.0) / (sine * sine)
            if sine > 1e-3 or cosine < 0.0
            else -1.0 / 3.0 - sine * sine * 4.0 / 15.0
        )
        moves = np.cross(turns, a)
        along = moves @ b
        found = np.outer(bend * along, across) + ratio * (moves - np.outer(along, b))
        return self.factor * found.T


@dataclass
class Pole:
    """The signed angle, about the chain's line, from its bend to the side of the pole target.

    With l the unit line (length |L|), B the sum of the heads from the first, s the target from there, e the
    unit part of a vector v across the line, rho its length and t = l x e, the azimuth of v changes by t.(dv -
    (v.l) dL / |L|) / rho.
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
        root: Array = moves[0]
        line_moves = (moves[-1] - root) / length
        bend_moves = moves[1:-1].sum(0) - (self.count - 1) * root
        of_bend, of_side = np.cross(line, bend), np.cross(line, side)
        turned: Array = (-root - side_along * line_moves) @ (of_side / (of_side @ of_side))
        turned -= (bend_moves - bend_along * line_moves) @ (of_bend / (of_bend @ of_bend))
        return self.factor * turned[None]

    def _parts(self, ends: Array) -> tuple[Array, float, Array, Array, float, float] | None:
        """Unit line, its length, bend and side across it and their parts along it; None: nothing is asked."""
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
        if math.sqrt(bend @ bend) <= POLE_NOISE * reach:
            return None
        if math.sqrt(away @ away) <= POLE_NOISE * math.sqrt(side @ side):
            return None
        return line, length, bend, away, bend_along, side_along


def _across(vector: Array) -> Array:
    """A unit vector at right angles to a unit vector, always the same one."""
    axis = np.zeros(3)
    axis[int(np.argmin(np.abs(vector)))] = 1.0
    across = axis - (axis @ vector) * vector
    return np.asarray(across / np.linalg.norm(across))


def block_of(
    goal: Goal,
    skeleton: Skeleton,
    points: list[tuple[int, Vector]],
    frames: list[int],
    per_length: float,
    per_angle: float,
) -> Block:
    """The goal's part of the residuals; adds the points and frames that it is about."""
    at, of = len(points), len(frames)
    if isinstance(goal, PositionGoal):
        points.append((skeleton.index(goal.joint), goal.effector(skeleton)))
        return Position(at, np.array(goal.target, dtype=float), per_length)
    if isinstance(goal, BalanceGoal):
        massive = [(i, joint) for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0]
        if not massive:
            raise InvalidInput("balance goal: no joint has a mass; give at least one joint a mass above 0")
        points.extend((i, Vector((0.0, 0.5 * joint.length, 0.0))) for i, joint in massive)
        masses = np.array([joint.mass for _, joint in massive])
        counted = np.array([axis for axis in range(3) if goal.axes[axis]], dtype=np.intp)
        return Balance(at, masses / masses.sum(), np.array(goal.target, dtype=float), counted, per_length)
    if isinstance(goal, PoleGoal):
        chain = goal.chain(skeleton)
        points.extend((i, Vector()) for i in chain)
        points.append((chain[-1], Vector((0.0, skeleton.joints[chain[-1]].length, 0.0))))
        return Pole(at, len(chain), np.array(goal.target, dtype=float), per_angle)
    frames.append(skeleton.index(goal.joint))
    if isinstance(goal, DirectionGoal):
        return Direction(of, np.array(goal.axis, dtype=float), np.array(goal.target, dtype=float), per_angle)
    return Orientation(of, matrix(goal.target), per_angle)
