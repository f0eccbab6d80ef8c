"""A least squares problem: goals, limits and what may move, the same for every pose of a batch.

Residuals have no unit: lengths are in parts of the reach of the longest chain, angles in radians times
`LEVER`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput
from ...goals import Goal, PoleGoal, reach_of, served
from ...limits.shapes import Limit
from ...maths.batch import Array, Indices, Mask, conjugate, is_all, logarithm, multiply, select
from ...skeleton.joints import Skeleton
from .bending import Now
from .columns import SinglePoints
from .goal_points import GoalPoints
from .joint_limits import JointLimits
from .layout import Layout, layout_of
from .residuals import Block, Position, block_of, tips_of
from .state import Bones, Given, Poses, State, geometry, start_state, to_model
from .windows import (
    ReachWindow,
    longest_extents,
    measured_windows,
    past_windows,
    windows_of,
    write_window_slopes,
)

LEVER = 0.3
"""Part of the reach that stands for one radian: what an orientation counts beside a position."""
PRIORITY_STEP = 1e-6
"""What the square error of a goal counts beside one that is served before it."""
MILD_STEP = 0.1
"""The same while there may be room for both: steps that serve one need not creep along the other."""


class Residual(NamedTuple):
    """How far off the goals are in each pose.

    Attributes:
        now: where.
        values: (m, B) what is to become 0.
        square: (B,) their sum of squares.
        misses: (goals, B) how far off each goal is: model units, or radians of an angular one.
        angular: (goals, 1) which goals count radians.
        stretched: (w, B) how far parts are from the extents at which their reach windows hold them, model
            units; 0 where windows are not held.
    """

    now: Now
    values: Array
    square: Array
    misses: Array
    angular: Mask
    stretched: Array

    def excess(self, position_tolerance: float | Array, angle_tolerance: float) -> Array:
        """(B,) the largest miss in parts of its tolerance: up to 1 all goals are met."""
        tolerances = np.where(self.angular, angle_tolerance, position_tolerance)
        found: Array = (self.misses / tolerances).max(0)
        for stretched in self.stretched:
            np.maximum(found, stretched / position_tolerance, out=found)
        return found

    def missed(self, position_tolerance: float | Array, angle_tolerance: float) -> Mask:
        """(goals, B) which goals are not met."""
        found: Mask = self.misses > np.where(self.angular, angle_tolerance, position_tolerance)
        return found

    def at(self, some: Mask | Indices) -> Residual:
        """Those of some of the poses."""
        return Residual(
            self.now._replace(state=self.now.state.at(some), ends=select(self.now.ends, some)),
            select(self.values, some),
            self.square[some],
            select(self.misses, some),
            self.angular,
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
        misses, stretched = self.misses.copy(), self.stretched.copy()
        misses[:, some], stretched[:, some] = other.misses, other.stretched
        now = self.now._replace(state=self.now.state.joined(some, other.now.state), ends=ends)
        return Residual(now, values, square, misses, self.angular, stretched)


class LeastSquaresProblem:
    """What does not change from pose to pose.

    Attributes:
        priority_step: what the square error of a goal counts beside one that is served before it.
        layout: the unknowns.
        blocks: the residual of each goal.
        places: where each block stands among the residuals.
        windows: reach windows; each has one residual after those of the goals, with `window_weight`.
        rows: how many residuals there are.
        reach: (1,) length of the longest chain, model units: what lengths are divided by.
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
        self.skeleton, self.goals, self.priority_step = skeleton, tuple(goals), priority_step
        serving = self.serving()
        wanted = set(movable) if movable is not None else set().union(*serving)
        tips = [i for goal in goals for i in tips_of(goal, skeleton)]
        self.layout = layout = layout_of(skeleton, tips, limits, wanted)
        self.reach = np.array([max(reach_of(skeleton, goal) for goal in goals) or 1.0])
        ranks = sorted({goal.priority for goal in goals})
        self._points, self.blocks = GoalPoints(layout), []
        for goal in goals:
            factor = math.sqrt(goal.weight * max(priority_step ** ranks.index(goal.priority), 1e-12))
            block = block_of(goal, layout, self._points, factor, factor * LEVER)
            self.blocks.append(block)
        self._angular: Mask = np.array([[block.angular] for block in self.blocks])
        sizes = [0, *accumulate(block.size for block in self.blocks)]
        self.places = [slice(a, b) for a, b in pairwise(sizes)]
        first = math.sqrt(1.0 / max(priority_step, 1e-12))  # windows are served before goals
        self.windows, self.window_weight = self.asked_windows(first), first * first
        self.rows = sizes[-1] + len(self.windows)
        self.serves = _serves(layout, self.goals, self.places, serving, self.rows)
        self._joint_limits = JointLimits.of(layout)
        self._gather_points()

    def serving(self) -> list[set[int]]:
        """The joints that move for each goal.

        For a pole that is its root, and what moves together with that for other goals: did the root alone,
        what the pole asks for would not be met by the pose nearest to the reference.
        """
        own = [set(served(goal, self.skeleton)) for goal in self.goals]
        found = []
        for goal, joints in zip(self.goals, own, strict=True):
            beside = [other for other in own if isinstance(goal, PoleGoal) and joints <= other]
            found.append(joints.union(*beside))
        return found

    def asked_windows(self, factor: float) -> list[ReachWindow]:
        """The reach windows that the goals ask for; `factor` is the residual of a length of the reach."""
        return windows_of(self.layout, self.goals, self.blocks, factor)

    def _gather_points(self) -> None:
        """Goals about single points: their slopes are written all at once."""
        parts = list(zip(self.blocks, self.places, strict=True))
        single = {
            k: (block.point, place.start, block.factor)
            for k, (block, place) in enumerate(parts)
            if isinstance(block, Position) and block.point.single
        }
        self._single = SinglePoints(self.layout, list(single.values())) if single else None
        self._others = [k for k in range(len(parts)) if k not in single]

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
        rests, turns, shifts, slide_axes = geometry(layout, bones, poses)
        points, framed = self._points.in_frames(bones.lengths), self._framed(targets)
        windows = longest_extents(self.windows, bones, poses, points)
        rest = slide_axes, self.reach, layout.bends[..., None], windows, self._joint_limits, None
        given = Given(rests, turns, shifts, points, framed, *rest)
        if reference is None:
            return given
        there = start_state(layout, given, reference)
        held = (there.rotations[:, layout.ball_rows], there.angles, there.slides)
        return replace(given, reference=held)

    def _framed(self, targets: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(block.framed(target) for block, target in zip(self.blocks, targets, strict=True))

    def measure(self, transforms: Array, lengths: Array, targets: Sequence[Array]) -> Residual:
        """How far off the goals are where joints are anywhere at all.

        Args:
            transforms: (N, 3, 4, B) of all joints in model space: frames, and heads in the last column.
            lengths: (N, B or 1) of the bones, model units.
            targets: as `given` takes them.
        """
        none = np.empty((0, transforms.shape[-1]))
        state = State(np.empty((4, 0, transforms.shape[-1])), none, none, transforms[self.layout.rows])
        now = Now(state, self._points.in_model(self._points.in_frames(lengths), state), self.reach)
        return self._residual(now, self._framed(targets), np.zeros((2, len(self.windows), 1)))

    def evaluate(self, given: Given, state: State) -> Residual:
        """How far off the goals are."""
        now = self._now(given, state)
        return self._residual(now, given.targets, given.windows)

    def overstretched(self, given: Given, state: State) -> Array:
        """(w, B) by how much poses stretch parts past their reach windows, held or not; below 0 inside."""
        return past_windows(self.windows, given, self._now(given, state))

    def _now(self, given: Given, state: State) -> Now:
        return Now(state, self._points.in_model(given.points, state), given.reach)

    def _residual(self, now: Now, targets: Sequence[Array], extents: Array) -> Residual:
        values = np.empty((self.rows, now.state.size))
        for block, place, target in zip(self.blocks, self.places, targets, strict=True):
            values[place] = block.values(now, target)
        first = self.places[-1].stop
        squares = values[:first] * values[:first]
        if first == 3 * len(self.blocks):
            sums = np.add.reduce(squares.reshape(-1, 3, squares.shape[1]), 1)
        else:
            sums = np.stack([np.add.reduce(squares[place], 0) for place in self.places])
        square, misses = np.add.reduce(sums, 0), np.sqrt(sums) / _factors(self.blocks, self._angular, now)
        stretched = values[first:]
        if self.windows:
            values[first:], stretched = measured_windows(self.windows, extents, now)
            square = square + (values[first:] ** 2).sum(0)
        return Residual(now, values, square, misses, self._angular, stretched)

    def jacobian(self, given: Given, residual: Residual) -> tuple[Now, Array]:
        """(m, k, B) how the residuals change with each column, after the state with the columns' axes."""
        layout, state = self.layout, residual.now.state
        slide_axes = given.reach * _slide_axes(layout, given, state) if layout.slides else None
        hinge_axes = _hinge_axes(layout, given, state) if layout.first_ball else None
        coupled = None
        if layout.coupled:
            coupled = np.stack(
                [each.rate(state.rotations, given.rests, state.transforms) for each in layout.coupled]
            )
        now = Now(state, residual.now.ends, given.reach, hinge_axes, slide_axes, coupled, given.targets)
        found = np.zeros((self.rows, layout.columns, state.size))
        if self._single is not None:
            self._single.slope(now, found)
        for k in self._others:
            place = self.places[k]
            self.blocks[k].slope(now, given.targets[k], residual.values[place], found[place])
        write_window_slopes(self.windows, given, now, found[self.places[-1].stop :])
        return now, found

    def bounds(self, given: Given, state: State) -> tuple[Array, Array]:
        """(k, B) the steps to the lower and to the upper bounds of hinges and slides."""
        layout, (lower, upper) = self.layout, given.limits.bounds
        position = np.zeros((layout.columns, state.size))
        position[: layout.first_ball] = state.angles
        if layout.slides:
            position[layout.first_slide :] = state.slides / given.reach
            units = np.ones((layout.columns, len(given.reach)))
            units[layout.first_slide :] = given.reach
            lower, upper = lower / units, upper / units
        return lower - position, upper - position

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
            found[layout.first_slide :] = (state.slides - slides) / given.reach
        return found


def _factors(blocks: Sequence[Block], angular: Mask, now: Now) -> Array:
    """(goals, B or 1) residuals of one model unit or radian."""
    factors = np.array([[block.factor] for block in blocks])
    return np.asarray(np.where(angular, factors, factors / now.reach))


def _serves(
    layout: Layout, goals: Sequence[Goal], places: Sequence[slice], serving: Sequence[set[int]], rows: int
) -> Array | None:
    """(rows, columns) 1 where a column's joint is among those that serve the goal; None where all are that
    carry it."""
    carrying = [
        {i for tip in tips_of(goal, layout.skeleton) for i in layout.path(tip)} & layout.moved_set
        for goal in goals
    ]
    if all(joints <= own for joints, own in zip(carrying, serving, strict=True)):
        return None
    found = np.ones((rows, layout.columns))
    owners = np.array(layout.owners, dtype=np.intp)
    for place, joints in zip(places, serving, strict=True):
        inside = np.zeros(len(layout.skeleton))
        inside[list(joints)] = 1.0
        found[place] = inside[owners]
    return found


def _hinge_axes(layout: Layout, given: Given, state: State) -> Array:
    """(h, 3, B) in model space. Hinges of an Euler box stand on each other, the last on the joint's frame."""
    own = given.limits.hinge_axes
    if layout.boxes is not None:
        own = np.broadcast_to(own, (*own.shape[:2], state.size)).copy()
        layout.boxes.fill_axes(state.angles[layout.boxes.columns], own[layout.boxes.columns])
    frames = state.transforms.take(layout.hinge_rows, 0)[:, :, :3]
    found: Array = np.einsum("nijb,njb->nib", frames, own)
    return found


def _slide_axes(layout: Layout, given: Given, state: State) -> Array:
    """(s, 3, B) in model space."""
    found = np.empty((len(layout.slides), 3, state.size))
    for k, row in enumerate(layout.slide_rows.tolist()):
        parent = layout.parents[row]
        axis = np.broadcast_to(given.slide_axes[k], (3, state.size))
        found[k] = axis if parent == -1 else np.einsum("ijb,jb->ib", state.transforms[parent, :, :3], axis)
    return found
