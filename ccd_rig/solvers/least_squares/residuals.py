"""What each goal adds to the least squares problem, over all poses at once: its residual and its slope.

A residual is a vector whose length is how far off the goal is, times a factor that makes goals of different
kinds comparable. The slope says how it changes with each column of the layout. In the shapes below m counts
the numbers of one residual, k the columns, B the poses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...maths.batch import TINY, Array, Indices, cross, dot, length, matrix_logarithm
from ..pole_bend import PoleBends, pole_bending, pole_bends, pole_slopes
from .bending import Bending, Composite, Now, Path, swinging
from .layout import Layout


class Misses(NamedTuple):
    """How far off a goal is in each pose, (B,) each: `distance` in model units, `angle` in radians."""

    distance: Array
    angle: Array


class PointSum:
    """A weighted sum of points, and how the columns move it.

    A turn about joint j moves the sum by u x (sum of w_p (a_pj - h_j)) over the points p that j carries,
    where a_pj is what the turn swings: the point itself, or the head of a joint on the way to it that does
    not inherit rotation.
    """

    def __init__(self, layout: Layout, points: Sequence[tuple[int, int]], weights: Sequence[float]) -> None:
        """`points` are (number of the point in `Now.ends`, its joint), -1 for the joint's own head."""
        self.layout = layout
        self.points, self.weights = list(points), list(weights)
        rows, count = layout.row, len(layout.rows)
        self.tips = [(number, rows[joint]) for number, joint in points]
        moved = sorted({rows[j] for _, joint in points for j in layout.path(joint) if j in layout.limits})
        shares = np.zeros((len(moved), count))
        ends: list[dict[int, float]] = [{} for _ in moved]
        totals = np.zeros(len(moved))
        place = {row: at for at, row in enumerate(moved)}
        slid = np.zeros(len(layout.slides))
        coupled = np.zeros(len(layout.coupled))
        for (number, joint), weight in zip(points, weights, strict=True):
            for j, pivot in layout.path(joint).items():
                for s, (i, _) in enumerate(layout.slides):
                    slid[s] += weight * (i == j)
                for c, each in enumerate(layout.coupled):
                    coupled[c] += weight * (each.row == rows[j])
                if rows[j] not in place or (number == -1 and j == joint):
                    continue
                at = place[rows[j]]
                totals[at] += weight
                if pivot != -1:
                    shares[at, rows[pivot]] += weight
                elif number == -1:
                    shares[at, rows[joint]] += weight
                else:
                    ends[at][number] = ends[at].get(number, 0.0) + weight
        self._tables(moved, shares, ends, totals)
        # Where ways part no rotation is above all others.
        chain = {rows[j] for j in layout.path(max(joint for _, joint in points))}
        turned = chain.issuperset(moved) and bool(shares.any() or self.of_ends.any())
        self.path = Path(layout, moved) if turned else None
        self.slides = np.flatnonzero(slid)
        self.slid = slid[self.slides]
        self.coupled = [
            (c, each.column, share)
            for c, (each, share) in enumerate(zip(layout.coupled, coupled.tolist(), strict=True))
            if each.column != -1 and share != 0.0
        ]

    def _tables(self, moved: list[int], shares: Array, ends: list[dict[int, float]], totals: Array) -> None:
        layout = self.layout
        place = {row: at for at, row in enumerate(moved)}
        self.rows = np.array(moved, dtype=np.intp)
        self.single = len(self.points) == 1 and self.weights[0] == 1.0 and self.points[0][0] != -1
        self.single = self.single and not shares.any()
        numbers = sorted({number for each in ends for number in each})
        self.numbers = np.array(numbers, dtype=np.intp)
        of_ends = np.array([[each.get(number, 0.0) for number in numbers] for each in ends])
        self.of_ends = of_ends.reshape(len(moved), len(numbers))
        self.of_heads, self.totals = shares, totals
        self.balls = np.array(
            [n for n, r in enumerate(layout.ball_rows.tolist()) if r in place], dtype=np.intp
        )
        self.hinges = np.array([n for n, r in enumerate(layout.hinge_rows.tolist()) if r in place], np.intp)
        self.ball_at = np.array([place[int(layout.ball_rows[n])] for n in self.balls], dtype=np.intp)
        self.hinge_at = np.array([place[int(layout.hinge_rows[n])] for n in self.hinges], dtype=np.intp)
        self.all_balls = len(self.balls) == len(layout.balls)

    def value(self, now: Now) -> Array:
        """(3, B)."""
        heads = now.state.transforms
        terms = [
            weight * (heads[row, :, 3] if number == -1 else now.ends[number])
            for (number, row), weight in zip(self.tips, self.weights, strict=True)
        ]
        return np.asarray(sum(terms[1:], terms[0]))

    def levers(self, now: Now) -> Array:
        """(rows, 3, B) what a turn about each joint's head swings."""
        heads = now.state.transforms[:, :, 3]
        if self.single:
            return np.asarray(now.ends[self.points[0][0]] - heads[self.rows])
        size = now.state.size
        found = (self.of_heads @ heads.reshape(len(heads), -1)).reshape(-1, 3, size)
        if len(self.numbers):
            ends = now.ends[self.numbers].reshape(len(self.numbers), -1)
            found += (self.of_ends @ ends).reshape(-1, 3, size)
        found -= self.totals[:, None, None] * heads[self.rows]
        return np.asarray(found)

    def bending(self, now: Now, force: Array) -> list[Bending | Composite]:
        """The second derivative of force.sum, with a force (3, B)."""
        if self.path is None:
            return []
        return [Bending(self.path, swinging(self.levers(now)[self.path.arms], force))]

    def slope(self, now: Now, factor: float, into: Array) -> None:
        """Write how the sum moves, times `factor`, into (3, k, B), which is zero."""
        layout, size = self.layout, now.state.size
        levers = factor * self.levers(now)
        if len(self.balls):
            balls = into[:, layout.first_ball : layout.first_slide].reshape(3, -1, 3, size)
            arms = levers[self.ball_at]
            some: slice | Indices = slice(None) if self.all_balls else self.balls
            # d x arm, for d along each axis of model space.
            balls[0, some, 1], balls[0, some, 2] = arms[:, 2], -arms[:, 1]
            balls[1, some, 0], balls[1, some, 2] = -arms[:, 2], arms[:, 0]
            balls[2, some, 0], balls[2, some, 1] = arms[:, 1], -arms[:, 0]
        if len(self.hinges):
            assert now.axes is not None
            u, arms = now.axes[self.hinges], levers[self.hinge_at]
            into[0, self.hinges] = u[:, 1] * arms[:, 2] - u[:, 2] * arms[:, 1]
            into[1, self.hinges] = u[:, 2] * arms[:, 0] - u[:, 0] * arms[:, 2]
            into[2, self.hinges] = u[:, 0] * arms[:, 1] - u[:, 1] * arms[:, 0]
        if len(self.slides):
            assert now.slide_axes is not None
            moves = factor * self.slid[:, None, None] * now.slide_axes[self.slides]
            into[:, layout.first_slide + self.slides] = moves.transpose(1, 0, 2)
        for c, column, share in self.coupled:
            assert now.coupled_rates is not None
            into[:, column] += factor * share * now.coupled_rates[c]


class FrameTurns:
    """How the columns turn the frame of a joint."""

    def __init__(self, layout: Layout, joint: int) -> None:
        self.layout = layout
        self.row = layout.row[joint]
        turning = {layout.row[j] for j, pivot in layout.path(joint).items() if pivot == -1}
        self.balls = np.array([n for n, r in enumerate(layout.ball_rows.tolist()) if r in turning], np.intp)
        self.hinges = np.array([n for n, r in enumerate(layout.hinge_rows.tolist()) if r in turning], np.intp)
        self.path = Path(layout, sorted(turning))

    def frame(self, now: Now) -> Array:
        """(3, 3, B)."""
        found: Array = now.state.transforms[self.row, :, :3]
        return found

    def bending(self, axis: Array, force: Array) -> list[Bending | Composite]:
        """The second derivative of force.axis, both (3, B), for an axis that the frame carries."""
        return [Bending(self.path, swinging(axis[None], force))] if self.path.size else []

    def slope(self, now: Now, per_turn: Array, into: Array) -> None:
        """Write (m, 3, B) `per_turn`, what a turn about each axis of model space does, for each column."""
        layout, size = self.layout, now.state.size
        if len(self.balls):
            balls = into[:, layout.first_ball : layout.first_slide].reshape(len(into), -1, 3, size)
            balls[:, self.balls] = per_turn[:, None]
        if len(self.hinges):
            assert now.axes is not None
            u = now.axes[self.hinges]
            found = per_turn[:, None, 0] * u[:, 0]
            found += per_turn[:, None, 1] * u[:, 1]
            found += per_turn[:, None, 2] * u[:, 2]
            into[:, self.hinges] = found


class Block(ABC):
    """A goal's part of the residuals; `size` is m."""

    size = 3

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        """Parts whose sum is the second derivative of multiplier.residual (m, B).

        Left out where it is small or would cost much: then the way back to the reference takes more steps.
        """
        return []

    @abstractmethod
    def measure(self, now: Now, target: Array) -> tuple[Array, Misses]:
        """The residual (m, B), and how far off the goal is."""

    @abstractmethod
    def slope(self, now: Now, target: Array, into: Array) -> None:
        """Write the derivative of the residual into (m, k, B), which is zero."""


class Position(Block):
    """A point and its target."""

    def __init__(self, point: PointSum, factor: float) -> None:
        self.point, self.factor = point, factor

    def offset(self, now: Now, target: Array) -> Array:
        """(3, B) from the target to the point."""
        return np.asarray(self.point.value(now) - target)

    def measure(self, now: Now, target: Array) -> tuple[Array, Misses]:
        off = self.offset(now, target)
        return self.factor * off, Misses(length(off), np.zeros(off.shape[1]))

    def slope(self, now: Now, target: Array, into: Array) -> None:
        self.point.slope(now, self.factor, into)

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        return self.point.bending(now, self.factor * multiplier)


class Balance(Block):
    """The centre of mass and its target, on the axes that count.

    A target is (3, B), and its axes are the model's; or (3, 1 + m, B), a point and the m unit axes that count
    in each pose, model space.
    """

    def __init__(self, centre: PointSum, axes: Sequence[bool], factor: float) -> None:
        self.centre, self.factor = centre, factor
        self.axes = [axis for axis in range(3) if axes[axis]]
        self.size = len(self.axes)

    def offset(self, now: Now, target: Array) -> Array:
        """(3, B) from the target to the centre of mass, along the axes that count."""
        if target.ndim == 2:
            found: Array = np.zeros((3, now.state.size))
            found[self.axes] = (self.centre.value(now) - target)[self.axes]
            return found
        axes = target[:, 1:]
        return np.asarray(np.einsum("imb,jmb,jb->ib", axes, axes, self.centre.value(now) - target[:, 0]))

    def measure(self, now: Now, target: Array) -> tuple[Array, Misses]:
        if target.ndim == 2:
            off = (self.centre.value(now) - target)[self.axes]
        else:
            off = np.einsum("imb,ib->mb", target[:, 1:], self.centre.value(now) - target[:, 0])
        return self.factor * off, Misses(np.sqrt((off * off).sum(0)), np.zeros(off.shape[1]))

    def slope(self, now: Now, target: Array, into: Array) -> None:
        whole = np.zeros((3, *into.shape[1:]))
        self.centre.slope(now, self.factor, whole)
        into[:] = whole[self.axes] if target.ndim == 2 else np.einsum("imb,ikb->mkb", target[:, 1:], whole)


class Orientation(Block):
    """A frame and its target: the rotation vector from the one to the other, model axes."""

    def __init__(self, turns: FrameTurns, factor: float) -> None:
        self.turns, self.factor = turns, factor

    def _vector(self, now: Now, target: Array) -> Array:
        frame = self.turns.frame(now)
        return matrix_logarithm(np.einsum("ikb,jkb->ijb", frame, np.broadcast_to(target, frame.shape)))

    def measure(self, now: Now, target: Array) -> tuple[Array, Misses]:
        vector = self._vector(now, target)
        angle = length(vector)
        return self.factor * vector, Misses(np.zeros(len(angle)), angle)

    def slope(self, now: Now, target: Array, into: Array) -> None:
        # The inverse of the left Jacobian of SO(3): 1 - [e]/2 + k [e]^2, k = (1 - (a/2) cot(a/2)) / a^2.
        e = self._vector(now, target)
        square = dot(e, e)
        half = 0.5 * np.sqrt(square)
        safe = np.maximum(half, 1e-3)
        # Below 1e-3 radians two terms of the series are exact.
        exact = (1.0 - safe / np.tan(safe)) / (4.0 * safe * safe)
        k = np.where(half > 1e-3, exact, 1.0 / 12.0 + square / 720.0)
        found = k * e[:, None] * e[None, :]
        own = 1.0 - k * square
        for i in range(3):
            found[i, i] += own
        for i, j, sign in ((0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)):
            half_part = 0.5 * sign * e[3 - i - j]
            found[i, j] += half_part
            found[j, i] -= half_part
        self.turns.slope(now, self.factor * found, into)

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        path = self.turns.path
        if not path.size:
            return []
        x, y, z = 0.5 * self.factor * multiplier
        none = np.zeros_like(x)
        return [Bending(path, np.array([[[none, -z, y], [z, none, -x], [-y, x, none]]]))]


class Direction(Block):
    """An axis a of a frame and its target b: the tangent at b towards a, as long as the angle between."""

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

    def measure(self, now: Now, target: Array) -> tuple[Array, Misses]:
        _, _, way, sine, cosine = self._parts(now, target)
        angle = np.arctan2(sine, cosine)
        return self.factor * angle * way, Misses(np.zeros(len(angle)), angle)

    def slope(self, now: Now, target: Array, into: Array) -> None:
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

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        axis = np.einsum("ijb,j->ib", self.turns.frame(now), self.axis)
        return self.turns.bending(axis, self.factor * multiplier)


class Pole(Block):
    """The angle, about the chain's line, from its bend to the side of the pole target, times its weight.

    See `solvers.pole_bend`.
    """

    size = 1

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

    def measure(self, now: Now, target: Array) -> tuple[Array, Misses]:
        angle = self.bends(now, target).residual
        return self.factor * angle[None], Misses(np.zeros(len(angle)), np.abs(angle))

    def slope(self, now: Now, target: Array, into: Array) -> None:
        by = pole_slopes(self.bends(now, target))
        self.turns.slope(now, self.factor * by.turn[None], into)
        moves = np.zeros((3, *into.shape[1:]))
        for each, weights in ((self.line, by.line), (self.between, by.between), (self.root, -by.to_target)):
            moves[:] = 0.0
            each.slope(now, self.factor, moves)
            into[0] += (weights[:, None] * moves).sum(0)

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        bends, force = self.bends(now, target), self.factor * multiplier[0]
        by = pole_slopes(bends)
        found = self.line.bending(now, force * by.line)
        found += self.between.bending(now, force * by.between)
        found += self.root.bending(now, -force * by.to_target)
        if by.axis.any():
            found += self.turns.bending(bends.axis, force * by.axis)
        return [*found, Composite(self._vector_slopes(now), force * pole_bending(bends))]

    def _vector_slopes(self, now: Now) -> Array:
        """(12, k, B) how the columns move what `pole_bending` is about."""
        columns, size = self.turns.layout.columns, now.state.size
        found = np.zeros((4, 3, columns, size))
        self.line.slope(now, 1.0, found[0])
        self.between.slope(now, 1.0, found[1])
        self.root.slope(now, -1.0, found[2])
        axis = np.einsum("ijb,j->ib", self.turns.frame(now), self.axis)
        x, y, z = axis
        none = np.zeros(size)
        self.turns.slope(now, np.array([[none, z, -y], [-z, none, x], [y, -x, none]]), found[3])
        return found.reshape(12, columns, size)

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


def unit_lever(reach: float) -> float:
    """Residual of one model unit."""
    return 1.0 / reach if reach > 0.0 and math.isfinite(reach) else 1.0
