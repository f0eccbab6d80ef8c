"""A least squares problem: goals, limits and what may move, the same for every pose of a batch.

Residuals have no unit: lengths are in parts of the reach of the longest chain, angles in radians times
`LEVER`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from mathutils import Vector

from ...errors import InvalidInput
from ...goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
    reach_of,
    served,
)
from ...limits.shapes import Limit
from ...maths.batch import (
    Array,
    Indices,
    Mask,
    conjugate,
    cross,
    is_all,
    logarithm,
    matrices,
    multiply,
    select,
    unit,
)
from ...skeleton.joints import Skeleton
from .bending import Now
from .layout import Layout
from .residuals import (
    Balance,
    Block,
    Direction,
    FrameTurns,
    Misses,
    Orientation,
    PointSum,
    Pole,
    Position,
)
from .state import Bones, Given, Poses, State, geometry, start_state, to_model
from .windows import longest_extents, measured_windows, past_windows, windows_of, write_window_slopes

LEVER = 0.3
"""Part of the reach that stands for one radian: what an orientation counts beside a position."""
PRIORITY_STEP = 1e-6
"""What the square error of a goal counts beside one that is served before it."""
MILD_STEP = 0.1
"""The same while there may be room for both: steps that serve one need not creep along the other."""


ACROSS = 0.1
"""Mobility of a limb's inner joint across its rest bend, beside 1 about the bend's axis."""


class Residual(NamedTuple):
    """How far off the goals are in each pose.

    Attributes:
        now: where.
        values: (m, B) what is to become 0.
        square: (B,) their sum of squares.
        misses: per goal.
        stretched: (w, B) how far parts are from the extents at which their reach windows hold them, model
            units; 0 where windows are not held.
    """

    now: Now
    values: Array
    square: Array
    misses: tuple[Misses, ...]
    stretched: Array

    def excess(self, position_tolerance: Array, angle_tolerance: float) -> Array:
        """(B,) the largest miss in parts of its tolerance: up to 1 all goals are met."""
        found = np.zeros(len(self.square))
        for miss in self.misses:
            np.maximum(found, miss.distance / position_tolerance, out=found)
            np.maximum(found, miss.angle / angle_tolerance, out=found)
        for stretched in self.stretched:
            np.maximum(found, stretched / position_tolerance, out=found)
        return found

    def at(self, some: Mask | Indices) -> Residual:
        """Those of some of the poses."""
        return Residual(
            replace(self.now, state=self.now.state.at(some), ends=select(self.now.ends, some)),
            select(self.values, some),
            self.square[some],
            tuple(type(miss)(miss.distance[some], miss.angle[some]) for miss in self.misses),
            select(self.stretched, some),
        )

    def joined(self, some: Indices, other: Residual) -> Residual:
        """The same with others in place of some of the poses."""
        if not len(some):
            return self
        if is_all(some, self.now.state.size):
            return other
        ends, values, square = self.now.ends.copy(), self.values.copy(), self.square.copy()
        ends[..., some], values[:, some], square[some] = other.now.ends, other.values, other.square
        misses = []
        for miss, theirs in zip(self.misses, other.misses, strict=True):
            distance, angle = miss.distance.copy(), miss.angle.copy()
            distance[some], angle[some] = theirs.distance, theirs.angle
            misses.append(type(miss)(distance, angle))
        state = self.now.state.joined(some, other.now.state)
        stretched = self.stretched.copy()
        stretched[:, some] = other.stretched
        return Residual(replace(self.now, state=state, ends=ends), values, square, tuple(misses), stretched)


class LeastSquaresProblem:
    """What does not change from pose to pose.

    Attributes:
        layout: the unknowns.
        blocks: the residual of each goal.
        places: where each block stands among the residuals.
        windows: reach windows; each has one residual after those of the goals, with `window_weight`.
        rows: how many residuals there are.
        reach: length of the longest chain, model units: what lengths are divided by.
        serves: (rows, columns) 1 where a column may move for a residual; None where all may.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Sequence[Goal],
        limits: Sequence[Limit | None],
        movable: Sequence[int] | None = None,
        priority_step: float = PRIORITY_STEP,
    ) -> None:
        if not goals:
            raise InvalidInput("there is nothing to solve: give at least one goal")
        if len(limits) != len(skeleton):
            raise InvalidInput(
                f"give a limit or None for each of {len(skeleton)} joints, not {len(limits)} limits"
            )
        self.skeleton, self.goals = skeleton, tuple(goals)
        serving = _serving(goals, skeleton)
        wanted = set(movable) if movable is not None else set().union(*serving)
        self._points: list[tuple[int, Vector | None]] = []
        self.layout = Layout(skeleton, [i for goal in goals for i in _tips(goal, skeleton)], limits, wanted)
        self.reach = max((reach_of(skeleton, goal) for goal in goals), default=0.0) or 1.0
        ranks = sorted({goal.priority for goal in goals})
        self.blocks = [
            self._block(
                goal, math.sqrt(goal.weight * max(priority_step ** ranks.index(goal.priority), 1e-12))
            )
            for goal in goals
        ]
        first = math.sqrt(1.0 / max(priority_step, 1e-12)) / self.reach  # windows are served before goals
        self.windows = windows_of(self.layout, self.goals, self.blocks, first)
        self.window_weight = (first * self.reach) ** 2
        self.point_rows = np.array([self.layout.row[i] for i, _ in self._points], dtype=np.intp)
        sizes = np.cumsum([0, *(block.size for block in self.blocks)]).tolist()
        self.places = [slice(a, b) for a, b in pairwise(sizes)]
        self.rows = sizes[-1] + len(self.windows)
        serves = np.zeros((self.rows, self.layout.columns))
        serves[sizes[-1] :] = 1.0
        for place, joints in zip(self.places, serving, strict=True):
            serves[place] = [float(owner in joints) for owner in self.layout.owners]
        self.serves = None if serves.all() else serves

    def _block(self, goal: Goal, factor: float) -> Block:
        skeleton, layout = self.skeleton, self.layout
        per_length, per_angle = factor / self.reach, factor * LEVER
        if isinstance(goal, PositionGoal):
            number = self._point(skeleton.index(goal.joint), goal.offset)
            return Position(PointSum(layout, [(number, skeleton.index(goal.joint))], [1.0]), per_length)
        if isinstance(goal, OrientationGoal):
            return Orientation(FrameTurns(layout, skeleton.index(goal.joint)), per_angle)
        if isinstance(goal, DirectionGoal):
            return Direction(FrameTurns(layout, skeleton.index(goal.joint)), goal.axis[:], per_angle)
        if isinstance(goal, PoleGoal):
            return self._pole(goal, per_angle)
        massive = [(i, joint) for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0]
        if not massive:
            raise InvalidInput("balance goal: no joint has a mass; give at least one joint a mass above 0")
        total = math.fsum(joint.mass for _, joint in massive)
        points = [(self._point(i, Vector((0.0, 0.5 * joint.length, 0.0))), i) for i, joint in massive]
        centre = PointSum(layout, points, [joint.mass / total for _, joint in massive])
        return Balance(centre, goal.axes, per_length)

    def _pole(self, goal: PoleGoal, factor: float) -> Pole:
        layout, chain = self.layout, goal.chain(self.skeleton)
        end = self._point(chain[-1], goal.offset)
        heads = [(-1, i) for i in chain]
        root = PointSum(layout, heads[:1], [1.0])
        line = PointSum(layout, [(end, chain[-1]), heads[0]], [1.0, -1.0])
        between = PointSum(layout, heads, [-(len(chain) - 1.0), *[1.0] * (len(chain) - 1)])
        links = np.array([layout.row[i] for i in chain], dtype=np.intp)
        own = goal.bend_axis(self.skeleton)
        turns = FrameTurns(layout, own.joint)
        return Pole((root, line, between), links, turns, (own.axis[:], own.scale), factor)

    def _point(self, joint: int, at: Vector | None) -> int:
        """The number of a new point of a joint's bone; None: its tail."""
        self._points.append((joint, at))
        return len(self._points) - 1

    def own_targets(self) -> list[Array]:
        """The goals' own targets, as `given` takes them, the same for all poses."""
        return [np.array(goal.target[:], dtype=np.float64)[:, None] for goal in self.goals]

    def given(
        self, bones: Bones, poses: Poses, targets: Sequence[Array], reference: Poses | None = None
    ) -> Given:
        """What each pose brings.

        Args:
            bones: of all joints.
            poses: where translations are taken from.
            targets: per goal (3, B or 1) a point or direction, (4, B or 1) a rotation, or of a balance also
                (3, 1 + m, B or 1) a point and the m axes that count.
            reference: the poses to stay near to; None: the least rotations from where each pose starts.
        """
        layout = self.layout
        rests, shifts, slide_axes = geometry(layout, bones, poses)
        points = self._goal_points(bones.lengths)
        windows = longest_extents(self.windows, bones, poses, points)
        given = Given(rests, shifts, points, framed(self.goals, targets), slide_axes, windows, None)
        if reference is None:
            return given
        there = start_state(layout, given, reference)
        held = (there.rotations[:, layout.ball_rows], there.angles, there.slides)
        return replace(given, reference=held)

    def _goal_points(self, lengths: Array) -> Array:
        """(3, P, B or 1) the goals' points in their joints' frames, for bones (N, B or 1) that long."""
        size = lengths.shape[-1] if any(at is None for _, at in self._points) else 1
        points = np.zeros((3, len(self._points), size))
        for number, (joint, at) in enumerate(self._points):
            if at is None:
                points[1, number] = lengths[joint]
            else:
                points[:, number] = np.array(at[:])[:, None]
        return points

    def misses(self, transforms: Array, lengths: Array, targets: Sequence[Array]) -> tuple[Misses, ...]:
        """How far off the goals are where joints are anywhere at all.

        Args:
            transforms: (N, 3, 4, B) of all joints in model space: frames, and heads in the last column.
            lengths: (N, B or 1) of the bones, model units.
            targets: as `given` takes them.
        """
        none = np.empty((0, transforms.shape[-1]))
        state = State(np.empty((4, 0, transforms.shape[-1])), none, none, transforms[self.layout.rows])
        now = Now(state, self._ends(self._goal_points(lengths), state))
        blocks = zip(self.blocks, framed(self.goals, targets), strict=True)
        return tuple(block.measure(now, target)[1] for block, target in blocks)

    def _ends(self, points: Array, state: State) -> Array:
        """(P, 3, B) the goals' points in model space."""
        transforms = state.transforms[self.point_rows]
        ends = transforms[:, :, 3].copy()
        for k in range(3):
            if points[k].any():
                ends += transforms[:, :, k] * points[k][:, None]
        return ends

    def evaluate(self, given: Given, state: State) -> Residual:
        """How far off the goals are."""
        now = Now(state, self._ends(given.points, state))
        values = np.empty((self.rows, state.size))
        misses = []
        for block, place, target in zip(self.blocks, self.places, given.targets, strict=True):
            values[place], miss = block.measure(now, target)
            misses.append(miss)
        values[self.rows - len(self.windows) :], stretched = measured_windows(self.windows, given, now)
        return Residual(now, values, np.einsum("mb,mb->b", values, values), tuple(misses), stretched)

    def overstretched(self, given: Given, state: State) -> Array:
        """(w, B) by how much poses stretch parts past their reach windows, held or not; below 0 inside."""
        return past_windows(self.windows, given, Now(state, self._ends(given.points, state)))

    def jacobian(self, given: Given, residual: Residual) -> tuple[Now, Array]:
        """(m, k, B) how the residuals change with each column, after the state with the columns' axes."""
        layout, state = self.layout, residual.now.state
        slide_axes = self.reach * _slide_axes(layout, given, state) if layout.slides else None
        hinge_axes = _hinge_axes(layout, state) if layout.first_ball else None
        rates = [each.rate(state.rotations, given.rests, state.transforms) for each in layout.coupled]
        coupled = np.stack(rates) if rates else None
        now = Now(state, residual.now.ends, hinge_axes, slide_axes, coupled, given.targets)
        found = np.zeros((self.rows, layout.columns, state.size))
        for block, place, target in zip(self.blocks, self.places, given.targets, strict=True):
            block.slope(now, target, found[place])
        write_window_slopes(self.windows, given, now, found[self.rows - len(self.windows) :])
        return now, found

    def departure(self, given: Given, state: State) -> Array | None:
        """(k, B) how far each column is from the reference; None without one."""
        if given.reference is None:
            return None
        layout = self.layout
        balls, angles, slides = given.reference
        found = np.empty((layout.columns, state.size))
        if layout.first_ball:
            off = state.angles - angles
            endless = ~np.isfinite(layout.upper[: layout.first_ball])
            off[endless] -= 2.0 * math.pi * np.round(off[endless] / (2.0 * math.pi))
            found[: layout.first_ball] = off
        own = logarithm(multiply(conjugate(balls), state.rotations[:, layout.ball_rows]))
        found[layout.first_ball : layout.first_slide] = to_model(layout, state, own).reshape(-1, state.size)
        if layout.slides:
            found[layout.first_slide :] = (state.slides - slides) / self.reach
        return found


class Metric:
    """What rotations and shifts cost: the square of each over its mobility.

    Across the rest bend of a limb's inner joint they cost 1 / `ACROSS` times as much as about its axis.
    """

    def __init__(self, layout: Layout, state: State) -> None:
        self.layout = layout
        self.mobility = layout.mobility[:, None]
        self.to_steps = self.to_forces = np.empty(0)
        if len(layout.bent):
            frames = state.frames[layout.ball_rows[layout.bent]]
            axes = np.einsum("nijb,nj->nib", frames, layout.bends)
            along = axes[:, :, None] * axes[:, None]
            across = np.eye(3)[..., None] - along
            self.to_steps, self.to_forces = along + ACROSS * across, along + across / ACROSS

    def at(self, some: Mask | Indices) -> Metric:
        """That of some of the poses."""
        found = copy(self)
        if len(self.layout.bent):
            found.to_steps, found.to_forces = select(self.to_steps, some), select(self.to_forces, some)
        return found

    def apply(self, vectors: Array) -> Array:
        """Steps (..., k, B) of forces."""
        return self._scaled(self.mobility * vectors, self.to_steps)

    def invert(self, vectors: Array) -> Array:
        """Forces (..., k, B) of steps."""
        return self._scaled(vectors / self.mobility, self.to_forces)

    def _scaled(self, vectors: Array, scales: Array) -> Array:
        layout = self.layout
        if len(layout.bent):
            shape = (*vectors.shape[:-2], -1, 3, vectors.shape[-1])
            balls = vectors[..., layout.first_ball : layout.first_slide, :].reshape(shape)
            balls[..., layout.bent, :, :] = np.einsum(
                "nijb,...njb->...nib", scales, balls[..., layout.bent, :, :]
            )
        return vectors

    def gradient(self, departure: Array) -> Array:
        """(k, B) the steepest way, as a step, of half of what a departure costs.

        The rotation vector e of a joint changes by J^-1 d with a rotation d after it, J^-1 = 1 + [e]/2 + k
        [e]^2 in the joint's frame. For equal mobilities about all axes the way is e itself.
        """
        layout = self.layout
        if not len(layout.bent):
            return departure
        forces = self.invert(departure.copy())
        balls = (-1, 3, departure.shape[1])
        e = departure[layout.first_ball : layout.first_slide].reshape(balls)[layout.bent].transpose(1, 0, 2)
        f = forces[layout.first_ball : layout.first_slide].reshape(balls)
        own = f[layout.bent].transpose(1, 0, 2)
        square = (e * e).sum(0)
        half = np.maximum(0.5 * np.sqrt(square), 1e-3)
        k = (1.0 - half / np.tan(half)) / (4.0 * half * half)
        turned = cross(e, own)
        f[layout.bent] = (own - 0.5 * turned + k * cross(e, turned)).transpose(1, 0, 2)
        return self.apply(forces)

    def square(self, vectors: Array) -> Array:
        """(B,) what steps (k, B) cost."""
        found: Array = (vectors * self.invert(vectors)).sum(0)
        return found


def _serving(goals: Sequence[Goal], skeleton: Skeleton) -> list[set[int]]:
    """The joints that move for each goal.

    For a pole that is its root, and what moves together with that for other goals: did the root alone, what
    the pole asks for would not be met by the pose nearest to the reference.
    """
    own = [set(served(goal, skeleton)) for goal in goals]
    found = []
    for goal, joints in zip(goals, own, strict=True):
        beside = [other for other in own if isinstance(goal, PoleGoal) and joints <= other]
        found.append(joints.union(*beside))
    return found


def framed(goals: Sequence[Goal], targets: Sequence[Array]) -> tuple[Array, ...]:
    """Targets as residuals take them: rotations as matrices (3, 3, B or 1)."""
    return tuple(
        matrices(unit(target)) if isinstance(goal, OrientationGoal) else target
        for goal, target in zip(goals, targets, strict=True)
    )


def _tips(goal: Goal, skeleton: Skeleton) -> list[int]:
    """The last joints of the chains whose transforms a goal is about."""
    if isinstance(goal, BalanceGoal):
        return [i for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0]
    return [skeleton.index(goal.joint)]


def _hinge_axes(layout: Layout, state: State) -> Array:
    """(h, 3, B) in model space. Hinges of an Euler box stand on each other, the last on the joint's frame."""
    frames = state.frames[layout.hinge_rows]
    own = np.broadcast_to(layout.hinge_axes[..., None], (*layout.hinge_axes.shape, state.size))
    if len(layout.box_rows):
        own = own.copy()
        first = layout.singles
        for box, (i, j, k) in enumerate(layout.box_axes.tolist()):
            at = first + 3 * box
            s, c = np.sin(state.angles[at + 1 : at + 3]), np.cos(state.angles[at + 1 : at + 3])
            sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
            # The middle axis seen through the last turn, and the first one through both.
            own[at + 1] = own[at] = 0.0
            own[at + 1, j], own[at + 1, i] = c[1], sign * s[1]
            own[at, i], own[at, j], own[at, k] = c[0] * c[1], -sign * c[0] * s[1], sign * s[0]
    found = frames[:, :, 0] * own[:, None, 0]
    found += frames[:, :, 1] * own[:, None, 1]
    found += frames[:, :, 2] * own[:, None, 2]
    return np.asarray(found)


def _slide_axes(layout: Layout, given: Given, state: State) -> Array:
    """(s, 3, B) in model space."""
    found = np.empty((len(layout.slides), 3, state.size))
    for k, row in enumerate(layout.slide_rows.tolist()):
        parent = layout.parents[row]
        axis = np.broadcast_to(given.slide_axes[k], (3, state.size))
        found[k] = axis if parent == -1 else np.einsum("ijb,jb->ib", state.transforms[parent, :, :3], axis)
    return found
