"""What each goal adds to the least squares problem, over all poses at once: its residual and its slope.

A residual is a vector whose length is how far off the goal is, times a factor that makes goals of different
kinds comparable. The slope says how it changes with each column of the layout. In the shapes below m counts
the numbers of one residual, k the columns, B the poses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import fields

import numpy as np
from mathutils import Vector

from ...errors import InvalidInput
from ...goals import BalanceGoal, DirectionGoal, Goal, PoleGoal, PositionGoal
from ...maths.batch import TINY, Array, Indices, cross, dot, length, matrices, matrix_logarithm, unit
from ...skeleton.joints import Skeleton
from ..pole_bend import PoleBends, pole_bending, pole_bends, pole_slopes
from .bending import Bending, Composite, Now
from .columns import FrameTurns, PointSum
from .goal_points import GoalPoints
from .layout import Layout

# Entries of the matrix of e x v, halved and with their signs, and which component of e stands in each.
_HALF_CROSS: Array = 0.5 * np.array([[0, 1, -1, -1, 0, 1, 1, -1, 0]]).T
_CROSS_OF: Indices = np.array([0, 2, 1, 2, 0, 0, 1, 0, 0], dtype=np.intp)


class Block(ABC):
    """A goal's part of the residuals.

    Attributes:
        size: m, how many numbers it has.
        angular: whether it counts radians; else it counts model units.
        factor: residual of a length of the reach, or of one radian: the length of a residual is how far off
            the goal is, times this.
    """

    size = 3
    angular = False
    factor: float

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        """Parts whose sum is the second derivative of multiplier.residual (m, B).

        Left out where it is small or would cost much: then the way back to the reference takes more steps.
        """
        return []

    def framed(self, target: Array) -> Array:
        """A target as the residual takes it, of one as a goal has it."""
        return target

    @abstractmethod
    def achieved(self, now: Now, target: Array) -> Array:
        """The target that the present state meets."""

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

    def achieved(self, now: Now, target: Array) -> Array:
        return self.point.value(now)

    def offset(self, now: Now, target: Array) -> Array:
        """(3, B) from the target to the point."""
        return np.asarray(self.point.value(now) - target)

    def values(self, now: Now, target: Array) -> Array:
        return self.factor / now.reach * self.offset(now, target)

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        self.point.slope(now, self.factor / now.reach, into)

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        return self.point.bending(now, self.factor / now.reach * multiplier)


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

    def achieved(self, now: Now, target: Array) -> Array:
        centre = self.centre.value(now)
        if target.ndim == 2:
            return centre
        axes = np.broadcast_to(target[:, 1:], (3, target.shape[1] - 1, centre.shape[-1]))
        return np.concatenate((centre[:, None], axes), axis=1)

    def values(self, now: Now, target: Array) -> Array:
        if target.ndim == 2:
            return self.factor / now.reach * (self.centre.value(now) - target)[self.axes]
        off = np.einsum("imb,ib->mb", target[:, 1:], self.centre.value(now) - target[:, 0])
        return np.asarray(self.factor / now.reach * off)

    def slope(self, now: Now, target: Array, values: Array, into: Array) -> None:
        whole = np.zeros((3, *into.shape[1:]))
        self.centre.slope(now, self.factor / now.reach, whole)
        into[:] = whole[self.axes] if target.ndim == 2 else np.einsum("imb,ikb->mkb", target[:, 1:], whole)


class Orientation(Block):
    """A frame and its target: the rotation vector from the one to the other, model axes."""

    angular = True

    def __init__(self, turns: FrameTurns, factor: float) -> None:
        self.turns, self.factor = turns, factor

    def framed(self, target: Array) -> Array:
        return matrices(unit(target))

    def achieved(self, now: Now, target: Array) -> Array:
        return self.turns.frame(now)

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

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        path = self.turns.path
        if not path.size:
            return []
        x, y, z = 0.5 * self.factor * multiplier
        none = np.zeros_like(x)
        return [Bending(path, np.array([[[none, -z, y], [z, none, -x], [-y, x, none]]]))]


class Direction(Block):
    """An axis a of a frame and its target b: the tangent at b towards a, as long as the angle between."""

    angular = True

    def __init__(self, turns: FrameTurns, axis: Sequence[float], factor: float) -> None:
        self.turns, self.factor = turns, factor
        self.axis = np.array(axis, dtype=np.float64)
        self.axis /= np.linalg.norm(self.axis)

    def framed(self, target: Array) -> Array:
        return unit(target)

    def achieved(self, now: Now, target: Array) -> Array:
        return np.asarray(np.einsum("ijb,j->ib", self.turns.frame(now), self.axis))

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

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        axis = np.einsum("ijb,j->ib", self.turns.frame(now), self.axis)
        return self.turns.bending(axis, self.factor * multiplier)


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
        axis: tuple[Sequence[float], float, float],
        factor: float,
    ) -> None:
        """`sums`: the root's head, the line from there, and the sum of the heads between from there.

        `links`: rows of the chain's joints, root first. `turns` of the frame that carries the axis of the
        bend; `axis` is that, in the frame, the chain's scale (`BendAxis`) and the goal's angle.
        """
        self.root, self.line, self.between = sums
        self.links, self.turns, self.factor = links, turns, factor
        self._own = np.array((axis[0], (axis[1], 0.0, 0.0)), dtype=np.float64).T
        self.turned = axis[2]

    def framed(self, target: Array) -> Array:
        """(3, 3, B) the target, and the axis and scale of the bend: chains that differ in these are alike."""
        found = np.empty((3, 3, target.shape[-1]))
        found[:, 0], found[:, 1:] = target, self._own[..., None]
        return found

    def achieved(self, now: Now, target: Array) -> Array:
        met = self.root.value(now) + self.bends(now, target).met
        found = np.array(np.broadcast_to(target, (3, 3, met.shape[-1])))
        found[:, 0] = met
        return found

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

    def bending(self, now: Now, target: Array, multiplier: Array) -> list[Bending | Composite]:
        bends, force = self.bends(now, target), self.factor * multiplier[0]
        by = pole_slopes(bends)
        found = self.line.bending(now, force * by.line)
        found += self.between.bending(now, force * by.between)
        found += self.root.bending(now, -force * by.to_target)
        if by.axis.any():
            found += self.turns.bending(bends.axis, force * by.axis)
        return [*found, Composite(self._vector_slopes(now, target), force * pole_bending(bends))]

    def _vector_slopes(self, now: Now, target: Array) -> Array:
        """(12, k, B) how the columns move what `pole_bending` is about."""
        columns, size = self.turns.layout.columns, now.state.size
        found = np.zeros((4, 3, columns, size))
        self.line.slope(now, 1.0, found[0])
        self.between.slope(now, 1.0, found[1])
        self.root.slope(now, -1.0, found[2])
        x, y, z = self._axis(now, target)
        none = np.zeros(size)
        self.turns.slope(now, np.array([[none, z, -y], [-z, none, x], [y, -x, none]]), found[3])
        return found.reshape(12, columns, size)

    def bends(self, now: Now, target: Array) -> PoleBends:
        """The bend of each pose and the side it should be on."""
        heads = now.state.transforms[self.links, :, 3]
        root, end = heads[0], now.ends[self.line.points[0][0]]
        between = (heads - root).sum(0)
        sides = target[:, 0] - root, self._axis(now, target)
        return pole_bends(end - root, between, *sides, target[0, 2], self.turned)

    def _axis(self, now: Now, target: Array) -> Array:
        """(3, B) the axis of the bend, model space."""
        found: Array = np.einsum("ijb,jb->ib", self.turns.frame(now), target[:, 1])
        return found


def tips_of(goal: Goal, skeleton: Skeleton) -> list[int]:
    """The last joints of the chains whose transforms a goal is about."""
    if isinstance(goal, BalanceGoal):
        return [i for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0]
    return [skeleton.index(goal.joint)]


def kind_of(goal: Goal, layout: Layout) -> Hashable:
    """What of a goal its residual is made of, but for what `Given` holds: with joints as rows of a layout."""
    skeleton = layout.skeleton
    found: list[Hashable] = [type(goal).__name__]
    for each in fields(goal):
        value = getattr(goal, each.name)
        if isinstance(value, str):
            joint = skeleton.index(value)
            found.append(layout.row.get(joint, -1 - joint))  # a balance may name a joint that carries no mass
        elif each.name == "offset":
            found.append(value is None)
        elif each.name != "target":
            found.append(tuple(value[:]) if isinstance(value, Vector) else value)
    if isinstance(goal, BalanceGoal):
        found += [joint.mass for joint in skeleton.joints]
    if isinstance(goal, PoleGoal):
        own = goal.bend_axis(skeleton)
        found.append(layout.row[own.joint])
    return tuple(found)


def block_of(goal: Goal, layout: Layout, points: GoalPoints, per_length: float, per_angle: float) -> Block:
    """The goal's part of the residuals; adds the points that it is about.

    Args:
        goal: of the layout's skeleton.
        layout: the columns.
        points: of all goals.
        per_length, per_angle: residual of a length of the reach and of one radian.
    """
    skeleton = layout.skeleton
    if isinstance(goal, PoleGoal):
        return _pole(goal, layout, points, per_angle)
    if isinstance(goal, BalanceGoal):
        massive = [(i, joint) for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0]
        if not massive:
            raise InvalidInput("balance goal: no joint has a mass; give at least one joint a mass above 0")
        total = math.fsum(joint.mass for _, joint in massive)
        middles = [(points.add(i, Vector((0.0, 0.5 * joint.length, 0.0))), i) for i, joint in massive]
        return Balance(
            PointSum(layout, middles, [joint.mass / total for _, joint in massive]), goal.axes, per_length
        )
    joint = skeleton.index(goal.joint)
    if isinstance(goal, PositionGoal):
        return Position(PointSum(layout, [(points.add(joint, goal.offset), joint)], [1.0]), per_length)
    if isinstance(goal, DirectionGoal):
        return Direction(FrameTurns(layout, joint), goal.axis[:], per_angle)
    return Orientation(FrameTurns(layout, joint), per_angle)


def _pole(goal: PoleGoal, layout: Layout, points: GoalPoints, factor: float) -> Pole:
    chain = goal.chain(layout.skeleton)
    end = points.add(chain[-1], goal.offset)
    heads = [(-1, i) for i in chain]
    root = PointSum(layout, heads[:1], [1.0])
    line = PointSum(layout, [(end, chain[-1]), heads[0]], [1.0, -1.0])
    between = PointSum(layout, heads, [-(len(chain) - 1.0), *[1.0] * (len(chain) - 1)])
    links = np.array([layout.row[i] for i in chain], dtype=np.intp)
    own = goal.bend_axis(layout.skeleton)
    turns = FrameTurns(layout, own.joint)
    return Pole((root, line, between), links, turns, (own.axis[:], own.scale, goal.angle), factor)


def _across(vectors: Array) -> Array:
    """Unit vectors (3, B) at right angles to unit vectors, always the same ones."""
    axis = np.zeros(vectors.shape)
    axis[np.argmin(np.abs(vectors), axis=0), np.arange(vectors.shape[1])] = 1.0
    across = axis - dot(axis, vectors) * vectors
    return np.asarray(across / length(across))
