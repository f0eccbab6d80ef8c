"""One run of the batched solver over many poses, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..goals import Goal
from ..limits.shapes import Limit
from ..maths.batch import Array, Indices, Mask, at_least_two, select
from .least_squares.achieved import achieved
from .least_squares.comfort_tolerances import Asked, Relaxed, solve_eased
from .least_squares.feasible import beside
from .least_squares.optimality import steepness
from .least_squares.problem import MILD_STEP, PRIORITY_STEP, LeastSquaresProblem, Residual
from .least_squares.reach import unreachable
from .least_squares.requests import settled
from .least_squares.solve import GAIN, Limits, confined
from .least_squares.state import Bones, Given, Poses, State, rebuilt, start_state, stepped_balls, to_poses
from .least_squares.windowed import held_at_border, solve_windowed
from .many_input import ManyInput

RUN = 2048
"""Poses that are solved in one go: few calls, and arrays that stay near the processor."""
LEAST_PRIORITY = 1e-12
"""Least weight of a squared residual, beside 1 of the goals that are served first."""


@dataclass
class Found:
    """Poses, and how far off their goals are.

    Attributes:
        poses: all joints.
        excess: (B,) the largest miss in tolerances: up to 1 all goals are met.
        square: (B,) the weighted square error.
        score: (ranks, B) squares of the goals that are not met, those served first before the others.
        iterations: (B,) steps tried.
        late: (B,) whether the steps ran out.
    """

    poses: Poses
    excess: Array
    square: Array
    score: Array
    iterations: Indices
    late: Mask

    @property
    def missed(self) -> Indices:
        """Indices of the poses that do not meet all goals."""
        return np.flatnonzero(self.excess > 1.0)

    def put(self, some: Indices, other: Found, which: Mask) -> None:
        """Take over `which` (K,) of others, for poses `some` (K,); iterations are left alone."""
        to, source = some[which], np.flatnonzero(which)
        self.poses.rotations[..., to] = select(other.poses.rotations, source)
        self.poses.translations[..., to] = select(other.poses.translations, source)
        self.excess[to], self.square[to] = other.excess[source], other.square[source]
        self.score[:, to], self.late[to] = other.score[:, source], other.late[source]

    def at(self, some: Indices) -> Found:
        """Some of the poses, copied."""
        return Found(
            self.poses.at(some),
            self.excess[some],
            self.square[some],
            select(self.score, some),
            self.iterations[some],
            self.late[some],
        )


def gains(new: Array, old: Array, tolerance: float) -> Mask:
    """(B,) whether scores (ranks, B) are less by more than the tolerance, in the first rank that differs."""
    found, open_ = np.zeros(new.shape[1], np.bool_), np.ones(new.shape[1], np.bool_)
    for own, before in zip(new, old, strict=True):
        won = np.sqrt(before) - np.sqrt(own)
        differs = open_ & ((np.abs(won) > tolerance) | ((own == 0.0) != (before == 0.0)))
        found |= differs & (won > 0.0)
        open_ &= ~differs
    return found


class Stage:
    """Goals and limits under which poses are solved; indices `some` (K,) name poses of the input.

    Attributes:
        problem: what all poses share.
        tolerance: of scores, residual units.
    """

    def __init__(
        self,
        given: ManyInput,
        limits: Sequence[Limit | None],
        chosen: Sequence[int] | None = None,
        priority_step: float = PRIORITY_STEP,
    ) -> None:
        """`chosen`: numbers of the goals; None for all. `priority_step`: see `LeastSquaresProblem`."""
        self.input, self.priority_step = given, priority_step
        numbers = range(len(given.goals)) if chosen is None else chosen
        self.goals: tuple[Goal, ...] = tuple(given.goals[k] for k in numbers)
        self.targets = [given.targets[k] for k in numbers]
        self.limits = list(limits)
        self.problem = self._problem(given.movable)
        self.bones = Bones.of(given.skeleton)
        self.tolerance = given.settings.position_tolerance / float(self.problem.reach[0])
        self.ranks = sorted({goal.priority for goal in given.goals})

    def _problem(self, movable: Sequence[int]) -> LeastSquaresProblem:
        return LeastSquaresProblem(self.input.skeleton, self.goals, self.limits, movable, self.priority_step)

    def mild(self) -> Stage:
        """The same, but goals served later count nearly as much: where there is room for all goals, steps
        need not creep along those served first. The very same where no goal is served later."""
        one = len(self.ranks) < 2
        return self if one else Stage(self.input, self.limits, priority_step=MILD_STEP)

    def ease(self, some: Indices, start: Poses, ahead: Poses) -> tuple[Found, Mask]:
        """Bring poses `some` nearer to poses `ahead`, as far as comfort tolerances let joints; (K,) which of
        them have all joints at ease."""
        pair = at_least_two(np.arange(len(some)))
        relaxed = Relaxed(self.limits, self.input.movable, self.input.tolerances, self._problem)
        settings, held = self.input.settings, self.input.reference
        limits = self._limits(len(pair), settings.max_iterations)
        reference = None if held is None else held.at(some[pair])
        asked = Asked(self.bones, start.at(pair), self._targets(some[pair]), reference, limits)
        eased = solve_eased(relaxed, asked, ahead.at(pair))
        given = asked.at(np.arange(len(pair)), eased.poses).given(self.problem)
        state = start_state(self.problem.layout, given, eased.poses)
        found = self._found(given, eased.poses, state, eased.iterations)
        return found.at(np.arange(len(some))), eased.at_ease[: len(some)]

    def solve(
        self,
        some: Indices,
        start: Poses,
        gain: float = GAIN,
        most: int = 1000,
        frozen: int = 0,
        again: bool = False,
    ) -> Found:
        """Bring poses `some` from their starts to the goals.

        Args:
            some: (K,) which poses of the input they are.
            start: K poses.
            gain: see `Limits`.
            most: steps, beside those of the settings.
            frozen: of so many ranks, goals that are missed at the start stay as they are there.
            again: whether the start has been solved before: reach windows at their borders are then held.
        """
        steps = min(most, self.input.settings.max_iterations)
        parts = []
        for first in range(0, len(some), RUN):
            part = at_least_two(np.arange(first, min(first + RUN, len(some))))
            given = self._given(some[part], start.at(part))
            limits = replace(self._limits(len(part), steps), gain=gain)
            own = start.at(part)
            state = start_state(self.problem.layout, given, own)
            if frozen:
                given = self._frozen(given, confined(self.problem, given, state), limits, frozen)
            if again:
                given = held_at_border(self.problem, given, state, limits)
            solved = settled(solve_windowed(self.problem, given, state, limits))
            found = self._found(given, own, solved.state, solved.iterations)
            found.late = (found.iterations >= steps) & (found.excess > 1.0)
            parts.append(found if part[0] != part[-1] else found.at(np.array([0])))
        return parts[0] if len(parts) == 1 else _joined(parts)

    def measure(self, some: Indices, poses: Poses) -> Found:
        """Poses `some`, brought inside the limits."""
        parts = []
        for first in range(0, len(some), RUN):
            part = at_least_two(np.arange(first, min(first + RUN, len(some))))
            given, own = self._given(some[part], poses.at(part)), poses.at(part)
            state = confined(self.problem, given, start_state(self.problem.layout, given, own))
            found = self._found(given, own, state, np.zeros(len(part), np.intp))
            parts.append(found if part[0] != part[-1] else found.at(np.array([0])))
        return parts[0] if len(parts) == 1 else _joined(parts)

    def misses(self, some: Indices, poses: Poses) -> tuple[Array, Array, Array]:
        """(K, goals) distances and angles, and (K,) the largest miss in tolerances."""
        pair = at_least_two(some)
        own = poses if len(pair) == len(some) else poses.at(np.array([0, 0]))
        given = self._given(pair, own)
        residual = self.problem.evaluate(given, start_state(self.problem.layout, given, own))
        distances = np.where(residual.angular, 0.0, residual.misses).T
        angles = np.where(residual.angular, residual.misses, 0.0).T
        excess = np.maximum(self._excess(residual), self._over(given, residual) / self._position)
        return distances[: len(some)], angles[: len(some)], excess[: len(some)]

    def steepness(self, some: Indices, poses: Poses) -> Array:
        """(K,) see `optimality.steepness`."""
        pair = at_least_two(some)
        own = poses if len(pair) == len(some) else poses.at(np.array([0, 0]))
        given = self._given(pair, own)
        state = start_state(self.problem.layout, given, own)
        return steepness(self.problem, given, state, self._limits(len(pair), 0))[: len(some)]

    def nudged(self, some: Indices, poses: Poses, nudges: Array) -> Found:
        """The nearest of poses after small steps (columns, nudges) inside the limits.

        Of the steps that is taken which leaves the residuals alone to first order, since a saddle is left
        along the curvature: a straight chain bends without its tip going aside.
        """
        pair = at_least_two(np.arange(len(some)))
        own = poses.at(pair)
        given = self._given(some[pair], own)
        layout = self.problem.layout
        state = start_state(layout, given, own)
        best: Found | None = None
        _, slope = self.problem.jacobian(given, self.problem.evaluate(given, state))
        for nudge in nudges.T:
            step = beside(slope, np.repeat(nudge[:, None], len(pair), axis=1))
            angles = state.angles + step[: layout.first_ball]
            slides = state.slides + given.reach * step[layout.first_slide :]
            balls = stepped_balls(layout, state, step)
            moved = confined(self.problem, given, rebuilt(layout, given, state, balls, angles, slides))
            found = self._found(given, own, moved, np.zeros(len(pair), np.intp))
            if best is None:
                best = found
            else:
                best.put(np.arange(len(pair)), found, found.square < best.square)
        assert best is not None
        return best.at(np.arange(len(some)))

    def unreachable(self, poses: Poses) -> Mask:
        """(B,) see `reach.unreachable`."""
        pair = at_least_two(np.arange(self.input.size))
        given, own = self._given(pair, poses.at(pair)), poses.at(pair)
        state = start_state(self.problem.layout, given, own)
        limits = self._limits(len(pair), 0)
        return unreachable(self.problem, given, state, limits.position, limits.angle)[: self.input.size]

    def _given(self, some: Indices, poses: Poses) -> Given:
        held = self.input.reference
        reference = None if held is None else held.at(some)
        return self.problem.given(self.bones, poses, self._targets(some), reference)

    def _targets(self, some: Indices) -> list[Array]:
        return [each if each.shape[-1] == 1 else select(each, some) for each in self.targets]

    @property
    def _position(self) -> float:
        return self.input.settings.position_tolerance

    def _over(self, given: Given, residual: Residual) -> Array:
        """(B,) by how much more than the tolerance reach windows are stretched, model units; 0 inside."""
        if not self.problem.windows:
            return np.zeros(len(residual.square))
        over = self.problem.overstretched(given, residual.now.state).max(0)
        return np.asarray(np.where(over > self._position, over, 0.0))

    def _frozen(self, given: Given, state: State, limits: Limits, ranks: int) -> Given:
        """The same with what is achieved as the target of goals of the first ranks that are missed."""
        residual = self.problem.evaluate(given, state)
        own = achieved(self.problem.blocks, given.targets, residual, limits)
        targets = [
            reached if goal.priority in self.ranks[:ranks] else target
            for goal, reached, target in zip(self.goals, own, given.targets, strict=True)
        ]
        return replace(given, targets=tuple(targets))

    def _limits(self, size: int, iterations: int) -> Limits:
        settings = self.input.settings
        return Limits(np.full(size, settings.position_tolerance), settings.angle_tolerance, iterations)

    def _excess(self, residual: Residual) -> Array:
        settings = self.input.settings
        size = np.full(len(residual.square), settings.position_tolerance)
        return residual.excess(size, settings.angle_tolerance)

    def _found(self, given: Given, own: Poses, state: State, iterations: Indices) -> Found:
        """Poses of a state, whose joints that do not matter are those of `own`."""
        residual, poses = self.problem.evaluate(given, state), to_poses(self.problem.layout, state, own)
        over = self._over(given, residual)
        excess = np.maximum(self._excess(residual), over / self._position)
        late = np.zeros(len(excess), np.bool_)
        stretched = (over / given.reach) ** 2 / self.priority_step  # before all goals
        score = _scores(self, residual)
        score[0] += stretched
        return Found(poses, excess, residual.square + stretched, score, iterations.copy(), late)


def _scores(stage: Stage, residual: Residual) -> Array:
    """(ranks, B) squares of the goals that are not met."""
    settings = stage.input.settings
    found = np.zeros((len(stage.ranks), len(residual.square)))
    own = sorted({goal.priority for goal in stage.goals})
    missed = residual.missed(settings.position_tolerance, settings.angle_tolerance)
    for goal, place, each in zip(stage.goals, stage.problem.places, missed, strict=True):
        weight = max(stage.priority_step ** own.index(goal.priority), LEAST_PRIORITY)
        square = (residual.values[place] ** 2).sum(0) / weight
        found[stage.ranks.index(goal.priority)] += np.where(each, square, 0.0)
    return found


def _joined(parts: Sequence[Found]) -> Found:
    """Found in several runs, one after the other."""
    rotations = np.concatenate([part.poses.rotations for part in parts], axis=-1)
    translations = np.concatenate([part.poses.translations for part in parts], axis=-1)
    return Found(
        Poses(rotations, translations),
        np.concatenate([part.excess for part in parts]),
        np.concatenate([part.square for part in parts]),
        np.concatenate([part.score for part in parts], axis=-1),
        np.concatenate([part.iterations for part in parts]),
        np.concatenate([part.late for part in parts]),
    )
