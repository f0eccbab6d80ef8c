"""One step of every pose: the shortest way to the goals inside the limits, and back to the reference pose.

With r the residuals, J their slope, W the mobility and e the departure from the reference pose, the step is

    d = -W J^T (J W J^T + damping)^-1 r - p (e - W J^T (J W J^T)^-1 J e)

in its dual form, a system as small as the residual is: the damped least squares step of Levenberg and
Marquardt, and the part p of the departure that the goals leave room for. What the step would take outside a
limit is held at the border and the rest is worked out again (the primal-dual active set method,
Hintermueller, Ito & Kunisch 2002). A ball joint is held along the outward normals of its limit. Where goals
cannot be met `newton` takes the place of the first part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...maths.batch import (
    TINY,
    Array,
    Indices,
    Mask,
    at_least_two,
    conjugate,
    dot,
    is_all,
    logarithm,
    multiply,
    select,
)
from ...maths.small_systems import products, solved
from .bending import Now
from .held import FACES, Active, Held, fixed_steps, hold_borders
from .joint_limits import BallLimits
from .metric import Metric
from .newton import newton_step
from .problem import LeastSquaresProblem, Residual
from .state import Given, State, ball_vectors, stepped_balls
from .way_back import LEAST_DAMPING, LONGEST_BACK, Curvature, Projection, way_back

LONGEST, LONGEST_NEAR = 1.2, 0.3
"""Longest rotation of a joint in one step, radians: farther away the linear picture means little. With a
reference pose steps are shorter, so that no joint passes straight by a step and bends the other way."""
ROUNDS = 3
"""How often a step is worked out for limits that it would leave."""


@dataclass
class Step:
    """A step of every pose.

    Attributes:
        columns: (k, B).
        balls: (4, balls, B) ball joints after it, inside their limits.
        shortened: (B,) whether a joint wanted to rotate farther than it may in one step.
        weighted: (m, k, B) the slope of what is free, in the metric of the mobilities.
        curved: (B,) whether it is Newton's.
        back: what of it leads back to the reference; None without one.
    """

    columns: Array
    balls: Array
    shortened: Mask
    weighted: Array
    curved: Mask
    back: _Back | None

    def put(self, some: Mask | Indices, other: Step) -> None:
        """Take over those of some of the poses."""
        self.columns[:, some], self.balls[..., some] = other.columns, other.balls
        self.shortened[some], self.weighted[..., some] = other.shortened, other.weighted
        self.curved[some] = other.curved
        if self.back is not None and other.back is not None:
            self.back.put(some, other.back)

    def correction(self, values: Array) -> Array:
        """(k, B) the least step that takes residuals (m, B) away in the linear picture of this step."""
        assert self.back is not None
        dual = np.einsum("mnb,nb->mb", self.back.inverse, values)
        return np.asarray(-np.einsum("mkb,mb->kb", self.weighted, dual))


@dataclass
class Linear:
    """The linear picture of some poses.

    Attributes:
        state: where.
        values: (m, B) residuals.
        slope: (m, k, B). serving: (m, k, B) the same without what may not move for a residual.
        damping: (B,).
        departure: (k, B), or None. pull: (B,) part of it to take back.
        down, up: (k, B) steps to the bounds.
        now: the state with the columns' axes. metric: what steps cost there.
        curved: (B,) where Newton's step is asked for. At borders of ball joints none is taken: how those bend
            is not known.
        limits: of ball joints.
    """

    state: State
    values: Array
    slope: Array
    serving: Array
    damping: Array
    departure: Array | None
    pull: Array
    down: Array
    up: Array
    now: Now
    metric: Metric
    curved: Mask
    limits: BallLimits

    def at(self, some: Mask | Indices) -> Linear:
        """Some of the poses."""
        slope = select(self.slope, some)
        return Linear(
            self.state.at(some),
            select(self.values, some),
            slope,
            slope if self.serving is self.slope else select(self.serving, some),
            self.damping[some],
            None if self.departure is None else select(self.departure, some),
            self.pull[some],
            select(self.down, some),
            select(self.up, some),
            self.now.at(some),
            self.metric.at(some),
            self.curved[some],
            self.limits.at(some),
        )


def linearise(
    problem: LeastSquaresProblem,
    given: Given,
    about: tuple[Residual, Now, Array],
    asked: tuple[Array | None, Array, Array],
    curved: Mask,
) -> Linear:
    """The linear picture about residuals, their state with the columns' axes, and their slope.

    `asked` are the departure, the damping and the pull, as `Linear` has them.
    """
    (residual, now, slope), (departure, damping, pull) = about, asked
    state = residual.now.state
    serving = slope if problem.serves is None else slope * problem.serves[..., None]
    down, up = problem.bounds(given, state)
    weight = damping * residual.square + LEAST_DAMPING
    metric = Metric(problem.layout, given.bends, state)
    return Linear(
        state,
        residual.values,
        slope,
        serving,
        weight,
        departure,
        pull,
        down,
        up,
        now,
        metric,
        curved,
        given.limits.balls,
    )


def limited_step(problem: LeastSquaresProblem, linear: Linear, active: Active) -> Step:
    """The step inside the limits; `active` holds what holds from the step before, and after it; in place."""
    active.held &= (linear.down >= 0.0) | (linear.up <= 0.0)
    active.fixed[:] = 0.0
    found, wanted = _step(problem, linear, active)
    changed = _update(problem, linear, active, found, wanted)
    for _ in range(ROUNDS - 1):
        some = at_least_two(np.flatnonzero(changed))
        if not len(some):
            break
        part, holding = linear.at(some), active.at(some)
        again, wanted = _step(problem, part, holding)
        changed = np.zeros_like(changed)
        changed[some] = _update(problem, part, holding, again, wanted)
        active.put(some, holding)
        found.put(some, again)
    found.columns = np.clip(found.columns, linear.down, linear.up)
    return found


def _step(problem: LeastSquaresProblem, linear: Linear, active: Active) -> tuple[Step, Array]:
    """The step while just these limits hold, and what each column would like to do beside the others."""
    layout, metric, limits = problem.layout, linear.metric, linear.limits
    held = Held.of(limits, linear.state, active)
    slope = held.free(linear.slope)
    # Where mobilities differ from axis to axis a force along a border has a part across it.
    weighted = held.free(metric.apply(slope if linear.serving is linear.slope else held.free(linear.serving)))
    system = products(slope, weighted, linear.serving is linear.slope)
    fixed = fixed_steps(limits, linear.state, active)
    missing = linear.values
    if fixed is not None:
        missing = missing + np.einsum("mkb,kb->mb", linear.slope, fixed)
    goal = solved(system, linear.damping, missing, linear.serving is linear.slope)
    step = -np.einsum("mkb,mb->kb", weighted, goal)
    if fixed is not None:
        step += fixed
    wanted = -metric.apply(np.einsum("mkb,mb->kb", linear.serving, goal))
    curved = linear.curved & ~active.at_borders()
    if curved.any():
        _curve(problem, linear, held, (slope, weighted, system, missing), (fixed, curved), (step, wanted))
    back = None
    if linear.departure is not None:
        back = _back(problem, linear, held, (slope, weighted, system, step))
        step += back.step
        wanted += back.wanted
    part = _part(problem, step, LONGEST if back is None else LONGEST_NEAR)
    step *= part
    wanted *= part
    balls = stepped_balls(layout, linear.state, step)
    return Step(step, balls, part < 1.0, weighted, curved, back), wanted


def _curve(
    problem: LeastSquaresProblem,
    linear: Linear,
    held: Held,
    parts: tuple[Array, Array, Array, Array],
    where: tuple[Array | None, Mask],
    found: tuple[Array, Array],
) -> None:
    """Replace steps by Newton's: the step, and what bounded columns that are free want; in place.

    `parts` are the slope of what is free, the same weighted, their product, and the residuals with what held
    joints do; `where` has the steps of those, and (B,) which poses take Newton's step.
    """
    (step, wanted), (fixed, curved) = found, where
    some = at_least_two(np.flatnonzero(curved))
    slope, weighted, system, missing = (select(each, some) for each in parts)
    own = held.at(some)
    columns = newton_step(
        problem,
        (linear.now.at(some), linear.metric.at(some), own),
        (slope, weighted, system),
        (select(linear.values, some), missing),
        linear.damping[some],
    )
    if fixed is not None:
        columns += fixed[:, some]
    free = np.ones_like(columns, dtype=np.bool_) if own.columns is None else ~own.columns
    free[problem.layout.first_ball : problem.layout.first_slide] = False
    step[:, some] = columns
    wanted[:, some] = np.where(free, columns, wanted[:, some])


@dataclass
class _Back:
    """The way back to the reference: its step and what it wants (k, B), multipliers (m, B), and the inverse
    (m, m, B) of the goals' system."""

    step: Array
    wanted: Array
    multipliers: Array
    inverse: Array

    @classmethod
    def none(cls, problem: LeastSquaresProblem, linear: Linear) -> _Back:
        """No pose goes back."""
        columns, size, m = problem.layout.columns, linear.state.size, len(linear.values)
        return cls(
            np.zeros((columns, size)), np.zeros((columns, size)), np.zeros((m, size)), np.zeros((m, m, size))
        )

    def put(self, some: Mask | Indices, other: _Back) -> None:
        """Take over those of some of the poses."""
        self.step[:, some], self.wanted[:, some] = other.step, other.wanted
        self.multipliers[:, some], self.inverse[..., some] = other.multipliers, other.inverse


def _back(
    problem: LeastSquaresProblem, linear: Linear, held: Held, parts: tuple[Array, Array, Array, Array]
) -> _Back:
    """The way back to the reference beside a step towards the goals, of the poses that are to take one.

    `parts` are the slope of what is free, the same weighted, their product, and the step.
    """
    some = at_least_two(np.flatnonzero(linear.pull > 0.0))
    if is_all(some, linear.state.size):
        return _all_back(problem, linear, held, parts)
    found = _Back.none(problem, linear)
    if len(some):
        slope, weighted, system, step = (select(each, some) for each in parts)
        found.put(some, _all_back(problem, linear.at(some), held.at(some), (slope, weighted, system, step)))
    return found


def _all_back(
    problem: LeastSquaresProblem, linear: Linear, held: Held, parts: tuple[Array, Array, Array, Array]
) -> _Back:
    assert linear.departure is not None
    slope, weighted, system, towards = parts
    metric = linear.metric
    projection = Projection((slope, weighted, system), held, linear.serving is linear.slope)
    gradient = metric.gradient(linear.departure)
    multipliers = -projection.dual(projection.free(gradient))
    bend = Curvature(problem, linear.now, linear.departure, multipliers, metric)
    found = way_back(bend, metric, towards, gradient, projection)
    longest = np.abs(found).max(0)
    found *= linear.pull * np.minimum(1.0, LONGEST_BACK / np.maximum(longest, TINY))
    among = metric.apply(np.einsum("mkb,mb->kb", linear.serving, projection.dual(gradient)))
    wanted = np.minimum(linear.pull, 1.0) * (among - gradient)
    return _Back(found, wanted, multipliers, projection.inverse)


def _part(problem: LeastSquaresProblem, step: Array, limit: float) -> Array:
    """(B,) the part of a step that turns no joint farther than it may in one step."""
    layout = problem.layout
    most = np.full(step.shape[1], 1.0)
    longest = np.minimum(layout.longest, limit)[:, None]
    if layout.first_ball:
        np.maximum(most, (np.abs(step[: layout.first_ball]) / longest[: layout.first_ball]).max(0), out=most)
    if layout.first_ball < layout.first_slide:
        balls = step[layout.first_ball : layout.first_slide].reshape(-1, 3, step.shape[1])
        angles = np.sqrt((balls * balls).sum(1)) / longest[layout.first_ball : layout.first_slide : 3]
        np.maximum(most, angles.max(0), out=most)
    if layout.first_slide < layout.columns:
        np.maximum(most, np.abs(step[layout.first_slide :]).max(0) / limit, out=most)
    return np.asarray(1.0 / most)


def _update(problem: LeastSquaresProblem, linear: Linear, active: Active, step: Step, wanted: Array) -> Mask:
    """Hold what leaves its limit, release what would come back, project ball joints; (B,) what changed."""
    over, under = wanted > linear.up, wanted < linear.down
    held = over | under
    changed: Mask = (held != active.held).any(0)
    active.held = held
    active.fixed = np.where(over, linear.up, np.where(under, linear.down, 0.0))
    layout, state, limits = problem.layout, linear.state, linear.limits
    if not len(limits.limited):
        return changed
    own = ball_vectors(layout, state, wanted)[:, limits.limited]
    for face in range(FACES):
        normals = active.normals[face]
        back = (dot(normals, own) < active.gaps[face]) & normals.any(0)
        if back.any():
            changed |= back.any(0)
            normals[:, back] = 0.0
            active.gaps[face][back] = 0.0
    pushed = limits.project(step.balls)
    if pushed is None:
        return changed
    step.balls, outside, outward = pushed
    before = state.rotations[:, layout.ball_rows[limits.limited]]
    ball, pose = np.nonzero(outside)
    there = step.balls[:, limits.limited][:, ball, pose]
    allowed = logarithm(multiply(conjugate(before[:, ball, pose]), there))
    new = hold_borders(active, limits, (ball, pose), outward, allowed, before[:, ball, pose])
    changed[pose[new]] = True
    return changed
