"""What each goal adds to the least squares problem, over all poses at once: its residual and its slope.

A residual is a vector whose length is how far off the goal is, times a factor that makes goals of different
kinds comparable. The slope says how it changes with each column of the layout. In the shapes below m counts
the numbers of one residual, k the columns, B the poses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ...maths.batch import TINY, Array, Indices, cross, dot, length, matrix_logarithm
from ..pole_bend import PoleBends, pole_bends, pole_slopes
from .columns import Bending, FrameTurns, Now, PointSum, swinging

# Entries of the matrix of e x v, halved and with their signs, and which component of e stands in each.
_HALF_CROSS: Array = 0.5 * np.array([[0, 1, -1, -1, 0, 1, 1, -1, 0]]).T
_CROSS_OF: Indices = np.array([0, 2, 1, 2, 0, 0, 1, 0, 0], dtype=np.intp)


class Block(ABC):
    """A goal's part of the residuals.

    Attributes:
        size: m, how many numbers it has.
        angular: whether it counts radians; else it counts model units.
        factor: residual of one model unit or radian: the length of a residual is how far off the goal is,
            times this.
    """

    size = 3
    angular = False
    factor: float

    def bending(self, now: Now, multiplier: Array) -> Bending | None:
        """The second derivative of multiplier.residual (m, B).

        Left out where it is small or would cost much: then the way back to the reference takes more steps.
        """
        return None

    @abstractmethod
    def values(self, now: Now, target: Array) -> Array:
        """The residual (m, B)."""

    @abstractmethod
    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        """Write the derivative of the residual, which is `values`, into (m, k, B), which is zero."""


class Position(Block):
    """A point and its target."""

    def __init__(self, point: PointSum, factor: float) -> None:
        self.point, self.factor = point, factor

    def values(self, now: Now, target: Array) -> Array:
        return self.factor * (self.point.value(now) - target)

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        self.point.slope(now, self.factor, into)

    def bending(self, now: Now, multiplier: Array) -> Bending | None:
        path = self.point.path
        if path is None or not path.size:
            return None
        return Bending(path, swinging(self.point.levers(now)[path.arms], self.factor * multiplier))


class Balance(Block):
    """The centre of mass and its target, on the axes that count."""

    def __init__(self, centre: PointSum, axes: Sequence[bool], factor: float) -> None:
        self.centre, self.factor = centre, factor
        self.axes = [axis for axis in range(3) if axes[axis]]
        self.size = len(self.axes)

    def values(self, now: Now, target: Array) -> Array:
        return self.factor * (self.centre.value(now) - target)[self.axes]

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        whole = np.zeros((3, *into.shape[1:]))
        self.centre.slope(now, self.factor, whole)
        into[:] = whole[self.axes]


class Orientation(Block):
    """A frame and its target: the rotation vector from the one to the other, model axes."""

    angular = True

    def __init__(self, turns: FrameTurns, factor: float) -> None:
        self.turns, self.factor = turns, factor

    def values(self, now: Now, target: Array) -> Array:
        between = np.einsum("ikb,jkb->ijb", self.turns.frame(now), target)
        return self.factor * matrix_logarithm(between)

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        # The inverse of the left Jacobian of SO(3): 1 - [e]/2 + k [e]^2, k = (1 - (a/2) cot(a/2)) / a^2. At
        # smaller angles than 2e-3 radians k [e]^2 differs by less than rounding.
        square = dot(values, values)
        half = np.maximum((0.5 / self.factor) * np.sqrt(square), 1e-3)
        k = (0.25 / self.factor) * (1.0 / (half * half) - 1.0 / (half * np.tan(half)))
        found = (k * values)[:, None] * values
        entries = found.reshape(9, -1)
        entries[::4] += self.factor - k * square
        entries += _HALF_CROSS * values.take(_CROSS_OF, 0)
        self.turns.slope(now, found, into)

    def bending(self, now: Now, multiplier: Array) -> Bending | None:
        path = self.turns.path
        if not path.size:
            return None
        x, y, z = 0.5 * self.factor * multiplier
        none = np.zeros_like(x)
        return Bending(path, np.array([[[none, -z, y], [z, none, -x], [-y, x, none]]]))


class Direction(Block):
    """An axis a of a frame and its target b: the tangent at b towards a, as long as the angle between."""

    angular = True

    def __init__(self, turns: FrameTurns, axis: Sequence[float], factor: float) -> None:
        self.turns, self.factor = turns, factor
        self.axis = np.array(axis, dtype=np.float64)

    def _parts(self, now: Now, target: Array) -> tuple[Array, Array, Array, Array, Array]:
        """a, b, the unit way across from b to a, sine and cosine between."""
        a = np.einsum("ijb,j->ib", self.turns.frame(now), self.axis)
        b = np.broadcast_to(target, a.shape)
        cosine = dot(a, b)
        across = a - cosine * b
        sine = length(across)
        way = across / np.maximum(sine, TINY)
        alike = sine < 1e-9
        if alike.any():
            # Along one line every way is equally long: any one will do, but always the same.
            way = np.where(alike, _across(b), way)
        return a, b, way, sine, cosine

    def values(self, now: Now, target: Array) -> Array:
        _, _, way, sine, cosine = self._parts(now, target)
        return np.asarray(self.factor * np.arctan2(sine, cosine) * way)

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        # A turn w changes the angle by w.(b x way) and moves the way round b by w.(...) angle / sine.
        a, b, way, sine, cosine = self._parts(now, target)
        angle = np.arctan2(sine, cosine)
        side = cross(b, way)
        near = sine < 1e-6
        ratio = np.where(near, np.where(cosine > 0.0, 1.0, 0.0), angle / np.maximum(sine, 1e-6))
        # d(angle) = (a x way') with way' the tangent at a: a x tangent = b x way.
        found = way[:, None] * side[None, :]
        found += (ratio * side)[:, None] * cross(a, side)[None, :]
        self.turns.slope(now, self.factor * found, into)

    def bending(self, now: Now, multiplier: Array) -> Bending | None:
        path = self.turns.path
        if not path.size:
            return None
        axis = np.einsum("ijb,j->ib", self.turns.frame(now), self.axis)
        return Bending(path, swinging(axis[None], self.factor * multiplier))


class Pole(Block):
    """The angle, about the chain's line, from its bend to the side of the pole target, times its weight.

    See `solvers.pole_bend`.
    """

    size = 1
    angular = True

    def __init__(
        self,
        sums: tuple[PointSum, PointSum, PointSum],
        links: Indices,
        turns: FrameTurns,
        axis: tuple[Sequence[float], float],
        factor: float,
    ) -> None:
        """`sums`: the root's head, the line from there, and the sum of the heads between from there.

        `links`: rows of the chain's joints, root first. `turns` of the frame that carries the axis of the
        bend; `axis` is that, in the frame, and the chain's scale (`goals.BendAxis`).
        """
        self.root, self.line, self.between = sums
        self.links, self.turns, self.factor = links, turns, factor
        self.axis, self.scale = np.array(axis[0], dtype=np.float64), axis[1]

    def values(self, now: Now, target: Array) -> Array:
        return self.factor * self.bends(now, target).residual[None]

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        by = pole_slopes(self.bends(now, target))
        self.turns.slope(now, self.factor * by.turn[None], into)
        moves = np.zeros((3, *into.shape[1:]))
        for each, weights in ((self.line, by.line), (self.between, by.between), (self.root, -by.to_target)):
            moves[:] = 0.0
            each.slope(now, self.factor, moves)
            into[0] += (weights[:, None] * moves).sum(0)

    def bends(self, now: Now, target: Array) -> PoleBends:
        """The bend of each pose and the side it should be on."""
        heads = now.state.transforms[self.links, :, 3]
        root, end = heads[0], now.ends[self.line.points[0][0]]
        axis = np.einsum("ijb,j->ib", self.turns.frame(now), self.axis)
        return pole_bends(end - root, (heads - root).sum(0), target - root, axis, self.scale)


def _across(vectors: Array) -> Array:
    """Unit vectors (3, B) at right angles to unit vectors, always the same ones."""
    axis = np.zeros(vectors.shape)
    axis[np.argmin(np.abs(vectors), axis=0), np.arange(vectors.shape[1])] = 1.0
    across = axis - dot(axis, vectors) * vectors
    return np.asarray(across / length(across))
