"""One step of every pose: the shortest way to the goals inside the limits, and back to the reference pose.

With r the residuals, J their slope, W the mobility and e the departure from the reference pose, the step is

    d = -W J^T (J W J^T + damping)^-1 r - p (e - W J^T (J W J^T)^-1 J e)

in its dual form, a system as small as the residual is: the damped least squares step of Levenberg and
Marquardt, and the part p of the departure that the goals leave room for. What the step would take outside a
limit is held at the border and the rest is worked out again (the primal-dual active set method,
Hintermueller, Ito & Kunisch 2002). A ball joint is held along the outward normals of its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    length,
    logarithm,
    multiply,
    select,
)
from .ball_limits import BallLimits
from .problem import LeastSquaresProblem, Metric, Residual
from .residuals import Bending, Now
from .state import State, ball_vectors, stepped_balls

LEAST_DAMPING = 1e-12
"""Damping that always remains, so that singular poses and goals that contradict each other have a step."""
LONGEST, LONGEST_NEAR = 1.2, 0.3
"""Longest rotation of a joint in one step, radians: farther away the linear picture means little. With a
reference pose steps are shorter, so that no joint passes straight by a step and bends the other way."""
INNER = 8
"""Most conjugate gradients of one step."""
LEAST_WAY = 5e-5
"""Radians: shorter ways back are none."""
NEAR = 1e-3
"""Part of the squared gradient at which they stop."""
LEAST_CURVATURE = 1e-2
"""Least curvature of the departure, beside 1 of joints without goals, at which Newton's step is taken."""
LONGEST_BACK = 0.5
"""Longest rotation of a joint back to the reference in one step: farther away it would leave the goals."""
ROUNDS = 3
"""How often a step is worked out for limits that it would leave."""
FACES = 3
"""At so many borders of its limit a ball joint is held at once; a twist of one angle comes on top."""
SAME_FACE = 0.05
"""Part of a push out of the limit that is new beside the borders that hold already."""


@dataclass
class Active:
    """The limits that hold, per pose.

    Attributes:
        held: (k, B) hinges and slides at a bound.
        fixed: (k, B) the step of those.
        normals: (FACES, 3, L, B) outward unit normals in the frames of the L limited ball joints; 0: none.
        gaps: (FACES, L, B) rotation along the normal that is left to the border, radians.
    """

    held: Mask
    fixed: Array
    normals: Array
    gaps: Array

    @classmethod
    def none(cls, columns: int, balls: int, size: int) -> Active:
        """Nothing holds."""
        return cls(
            np.zeros((columns, size), dtype=np.bool_),
            np.zeros((columns, size)),
            np.zeros((FACES, 3, balls, size)),
            np.zeros((FACES, balls, size)),
        )

    def copy(self) -> Active:
        """The same once more."""
        return Active(self.held.copy(), self.fixed.copy(), self.normals.copy(), self.gaps.copy())

    def let_go(self, some: Mask) -> None:
        """Let go of the borders of some poses' ball joints; at those of the others the joints now are."""
        self.normals[..., some] = 0.0
        self.gaps[:] = 0.0

    def at(self, some: Mask | Indices) -> Active:
        """Those of some of the poses."""
        return Active(
            select(self.held, some),
            select(self.fixed, some),
            select(self.normals, some),
            select(self.gaps, some),
        )

    def put(self, some: Mask | Indices, other: Active) -> None:
        """Take over those of some of the poses."""
        self.held[:, some], self.fixed[:, some] = other.held, other.fixed
        self.normals[..., some], self.gaps[..., some] = other.normals, other.gaps


@dataclass
class Step:
    """A step of every pose.

    Attributes:
        columns: (k, B).
        balls: (4, balls, B) ball joints after it, inside their limits.
        shortened: (B,) whether a joint wanted to rotate farther than it may in one step.
        weighted: (m, k, B) the slope of what is free, in the metric of the mobilities.
        back: what of it leads back to the reference; None without one.
    """

    columns: Array
    balls: Array
    shortened: Mask
    weighted: Array
    back: _Back | None

    def put(self, some: Mask | Indices, other: Step) -> None:
        """Take over those of some of the poses."""
        self.columns[:, some], self.balls[..., some] = other.columns, other.balls
        self.shortened[some], self.weighted[..., some] = other.shortened, other.weighted
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
        )


def bounds(problem: LeastSquaresProblem, state: State) -> tuple[Array, Array]:
    """(k, B) the steps to the lower and to the upper bounds of hinges and slides."""
    layout = problem.layout
    unit = np.ones(layout.columns)
    unit[layout.first_slide :] = problem.reach
    position = np.zeros((layout.columns, state.size))
    position[: layout.first_ball] = state.angles
    position[layout.first_slide :] = state.slides
    down = (layout.lower[:, None] - position) / unit[:, None]
    up = (layout.upper[:, None] - position) / unit[:, None]
    return down, up


def linearise(
    problem: LeastSquaresProblem,
    about: tuple[Residual, Now, Array],
    departure: Array | None,
    damping: Array,
    pull: Array,
) -> Linear:
    """The linear picture about residuals, their state with the columns' axes, and their slope."""
    residual, now, slope = about
    state = residual.now.state
    serving = slope if problem.serves is None else slope * problem.serves[..., None]
    down, up = bounds(problem, state)
    weight = damping * residual.square + LEAST_DAMPING
    return Linear(state, residual.values, slope, serving, weight, departure, pull, down, up, now)


def limited_step(problem: LeastSquaresProblem, limits: BallLimits, linear: Linear, active: Active) -> Step:
    """The step inside the limits; `active` holds what holds from the step before, and after it; in place."""
    active.held &= (linear.down >= 0.0) | (linear.up <= 0.0)
    active.fixed[:] = 0.0
    found, wanted = _step(problem, limits, linear, active)
    changed = _update(problem, limits, linear, active, found, wanted)
    for _ in range(ROUNDS - 1):
        some = at_least_two(np.flatnonzero(changed))
        if not len(some):
            break
        part, holding = linear.at(some), active.at(some)
        again, wanted = _step(problem, limits, part, holding)
        changed = np.zeros_like(changed)
        changed[some] = _update(problem, limits, part, holding, again, wanted)
        active.put(some, holding)
        found.put(some, again)
    found.columns = np.clip(found.columns, linear.down, linear.up)
    return found


def _step(
    problem: LeastSquaresProblem, limits: BallLimits, linear: Linear, active: Active
) -> tuple[Step, Array]:
    """The step while just these limits hold, and what each column would like to do beside the others."""
    layout = problem.layout
    metric = Metric(layout, linear.state)
    fixed = active.fixed.copy()
    slope, serving = _freed(problem, limits, linear, active, fixed)
    weighted = metric.apply(serving)
    if len(layout.bent):
        weighted = _kept_inside(problem, limits, linear, active, weighted)
    system = products(slope, weighted, linear.serving is linear.slope)
    missing = linear.values + np.einsum("mkb,kb->mb", linear.slope, fixed) if fixed.any() else linear.values
    goal = solved(system, linear.damping, missing)
    step = fixed - np.einsum("mkb,mb->kb", weighted, goal)
    wanted = -metric.apply(np.einsum("mkb,mb->kb", linear.serving, goal))
    back = _Back.none(problem, linear) if linear.departure is not None else None
    if back is not None:
        some = at_least_two(np.flatnonzero(linear.pull > 0.0))
        if is_all(some, linear.state.size):
            back = _back(problem, limits, linear, active, (slope, weighted, system, step))
        elif len(some):
            parts = (select(slope, some), select(weighted, some), select(system, some), select(step, some))
            back.put(some, _back(problem, limits, linear.at(some), active.at(some), parts))
        step += back.step
        wanted += back.wanted
    part = _part(problem, step, LONGEST if back is None else LONGEST_NEAR)
    step *= part
    wanted *= part
    balls = stepped_balls(layout, linear.state, step)
    return Step(step, balls, part < 1.0, weighted, back), wanted


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
    problem: LeastSquaresProblem,
    limits: BallLimits,
    linear: Linear,
    active: Active,
    parts: tuple[Array, Array, Array, Array],
) -> _Back:
    """The way back to the reference beside a step towards the goals.

    `parts` are the slope of what is free, the same weighted, their product, and the step.
    """
    assert linear.departure is not None
    slope, weighted, system, towards = parts
    metric = Metric(problem.layout, linear.state)
    projection = Projection(
        slope, weighted, system, lambda vector: _free_part(problem, limits, linear, active, vector)
    )
    gradient = metric.gradient(linear.departure)
    multipliers = -projection.dual(projection.free(gradient))
    found = _way_back(problem, linear, towards, (gradient, multipliers), projection)
    longest = np.abs(found).max(0)
    found *= linear.pull * np.minimum(1.0, LONGEST_BACK / np.maximum(longest, TINY))
    held = metric.apply(np.einsum("mkb,mb->kb", linear.serving, projection.dual(gradient)))
    wanted = np.minimum(linear.pull, 1.0) * (held - gradient)
    return _Back(found, wanted, multipliers, projection.inverse)


def _way_back(
    problem: LeastSquaresProblem,
    linear: Linear,
    towards: Array,
    wish: tuple[Array, Array],
    projection: Projection,
) -> Array:
    """The step (k, B) to the nearest pose to the reference that the goals leave room for.

    Newton's step of the Lagrangian |e|^2 / 2 + y.r in the null space of the slope, by projected conjugate
    gradients (Gould, Hribar & Nocedal 2001, "On the solution of equality constrained quadratic programming
    problems arising in optimization"), as far as the curvature is positive (Steihaug 1983).

    Args:
        problem: what all poses share.
        linear: the linear picture.
        towards: (k, B) the step towards the goals that is taken as well.
        wish: the gradient of the departure as a step (k, B), and the multipliers (m, B).
        projection: on what goals and limits leave free.
    """
    assert linear.departure is not None
    gradient, multipliers = wish
    metric = Metric(problem.layout, linear.state)
    own = projection.free(gradient)
    bend = Curvature(problem, linear.now, linear.departure, multipliers, metric)
    # The gradient is wanted where the step towards the goals leads, not where it starts.
    small = np.abs(towards).max(0) <= LONGEST_BACK
    ahead = projection.apply(own + metric.apply(bend(np.where(small, towards, 0.0))))
    # Residuals are kept in the null space: what the multipliers hold is far larger, and its rounding too.
    residual, rest = metric.invert(ahead), ahead
    found, direction, force = np.zeros_like(rest), -rest, -residual
    size = (residual * rest).sum(0)
    enough = np.maximum(NEAR * size, LEAST_WAY * LEAST_WAY)
    going = size > TINY
    for count in range(INNER):
        turned = bend(direction)
        curve = (direction * turned).sum(0)
        own_size = (direction * force).sum(0)
        down = going & (curve > LEAST_CURVATURE * own_size)
        if count == 0:
            found = np.where(going & ~down, direction, found)
        length = np.where(down, size / np.where(down, curve, 1.0), 0.0)
        found += length * direction
        going = down
        if not going.any() or count == INNER - 1:
            break
        residual = residual + length * turned
        rest = projection.apply(metric.apply(residual))
        residual = metric.invert(rest)
        after = (residual * rest).sum(0)
        going &= after > enough
        part = np.where(going, after / np.maximum(size, TINY), 0.0)
        direction, force = part * direction - rest, part * force - residual
        size = after
    return found


class Projection:
    """What the goals and the limits that hold leave of a step, in the metric of the mobilities."""

    def __init__(
        self,
        slope: Array,
        weighted: Array,
        system: Array,
        free: Callable[[Array], Array],
    ) -> None:
        self.slope, self.weighted, self.free = slope, weighted, free
        whole = np.ascontiguousarray(system.transpose(2, 0, 1))
        scale = np.einsum("bmm->b", whole)
        each = np.arange(whole.shape[1])
        whole[:, each, each] += (1e-9 * scale + LEAST_DAMPING)[:, None]
        self.inverse = np.ascontiguousarray(np.linalg.inv(whole).transpose(1, 2, 0))

    def dual(self, vector: Array) -> Array:
        """(m, B) the multipliers that hold the goals against a step."""
        return np.asarray(np.einsum("mnb,nb->mb", self.inverse, np.einsum("mkb,kb->mb", self.slope, vector)))

    def apply(self, vector: Array) -> Array:
        """What of a step (k, B) is left."""
        own = self.free(vector)
        return np.asarray(own - np.einsum("mkb,mb->kb", self.weighted, self.dual(own)))


class Curvature:
    """The second derivative of |departure|^2 / 2 + multipliers.residuals, applied to steps (k, B)."""

    def __init__(
        self,
        problem: LeastSquaresProblem,
        now: Now,
        departure: Array,
        multipliers: Array,
        metric: Metric,
    ) -> None:
        self.metric, self.now = metric, now
        blocks = zip(problem.blocks, problem.places, strict=True)
        self.bendings = _sums(block.bending(now, multipliers[place]) for block, place in blocks)
        layout = problem.layout
        self.balls = slice(layout.first_ball, layout.first_slide)
        balls = departure[self.balls].reshape(-1, 3, departure.shape[1])
        angle = np.sqrt((balls * balls).sum(1))
        half = np.maximum(0.5 * angle, 1e-4)
        # Along the rotation vector 1, across it (a / 2) cot(a / 2).
        self.across = (half / np.tan(half))[:, None]
        self.axis = balls / np.maximum(angle, TINY)[:, None]

    def __call__(self, step: Array) -> Array:
        found = step.copy()
        balls = step[self.balls].reshape(-1, 3, step.shape[1])
        along = (balls * self.axis).sum(1)[:, None] * self.axis
        found[self.balls] = (self.across * balls + (1.0 - self.across) * along).reshape(-1, step.shape[1])
        found = self.metric.invert(found)
        for bending in self.bendings:
            bending.add(self.now, step, found)
        return found


def _sums(bendings: Iterable[Bending | None]) -> list[Bending]:
    """Those along the same paths as one."""
    found: dict[tuple[int, ...], Bending] = {}
    for bending in bendings:
        if bending is not None:
            rows = bending.path.rows
            other = found.get(rows)
            found[rows] = Bending(
                bending.path, bending.matrices if other is None else other.matrices + bending.matrices
            )
    return list(found.values())


def _freed(
    problem: LeastSquaresProblem, limits: BallLimits, linear: Linear, active: Active, fixed: Array
) -> tuple[Array, Array]:
    """The slope of what is free; the steps of what is held are added to `fixed`."""
    layout = problem.layout
    held = active.held.any()
    faces = _model_faces(limits, linear.state, active)
    if not held and not faces:
        return linear.slope, linear.serving
    slope = np.where(active.held, 0.0, linear.slope) if held else linear.slope.copy()
    place = slice(layout.first_ball, layout.first_slide)
    size = linear.state.size
    blocks = slope[:, place].reshape(len(slope), -1, 3, size)
    fixed_balls = fixed[place].reshape(-1, 3, size)
    for some, normals, gaps in faces:
        part = blocks[:, some]
        along = part[:, :, 0] * normals[:, 0] + part[:, :, 1] * normals[:, 1] + part[:, :, 2] * normals[:, 2]
        blocks[:, some] = part - along[:, :, None] * normals
        if gaps is not None:
            fixed_balls[some] += gaps[:, None] * normals
    if linear.serving is linear.slope:
        return slope, slope
    assert problem.serves is not None
    return slope, slope * problem.serves[..., None]


def _kept_inside(
    problem: LeastSquaresProblem, limits: BallLimits, linear: Linear, active: Active, steps: Array
) -> Array:
    """Steps (m, k, B) without what would leave the limits that hold."""
    faces = _model_faces(limits, linear.state, active)
    if not faces:
        return steps
    layout = problem.layout
    balls = steps[:, layout.first_ball : layout.first_slide].reshape(len(steps), -1, 3, linear.state.size)
    for some, normals, _ in faces:
        part = balls[:, some]
        balls[:, some] = part - (part * normals).sum(2)[:, :, None] * normals
    return steps


def _free_part(
    problem: LeastSquaresProblem, limits: BallLimits, linear: Linear, active: Active, vector: Array
) -> Array:
    """What of (k, B) is along columns and directions that nothing holds."""
    layout = problem.layout
    found = np.where(active.held, 0.0, vector)
    balls = found[layout.first_ball : layout.first_slide].reshape(-1, 3, linear.state.size)
    for some, normals, _ in _model_faces(limits, linear.state, active):
        part = balls[some]
        balls[some] = part - (part * normals).sum(1)[:, None] * normals
    return found


def _model_faces(
    limits: BallLimits, state: State, active: Active
) -> list[tuple[Indices, Array, Array | None]]:
    """(balls, normals (L, 3, B) about model axes, gaps or None) of all that may hold ball joints."""
    found: list[tuple[Indices, Array, Array | None]] = []
    if len(limits.locked):
        axes = limits.locked_axes(state)
        found.append((limits.locked, axes, None))
    for face in range(FACES):
        normals = active.normals[face]
        if normals.any():
            found.append((limits.limited, limits.in_model(state, normals), active.gaps[face]))
    return found


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


def _update(
    problem: LeastSquaresProblem,
    limits: BallLimits,
    linear: Linear,
    active: Active,
    step: Step,
    wanted: Array,
) -> Mask:
    """Hold what leaves its limit, release what would come back, project ball joints; (B,) what changed."""
    over, under = wanted > linear.up, wanted < linear.down
    held = over | under
    changed: Mask = (held != active.held).any(0)
    active.held = held
    active.fixed = np.where(over, linear.up, np.where(under, linear.down, 0.0))
    if not len(limits.limited):
        return changed
    layout, state = problem.layout, linear.state
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
    new = _hold(active, limits, ball, pose, outward, allowed, before[:, ball, pose])
    changed[pose[new]] = True
    return changed


def _hold(
    active: Active,
    limits: BallLimits,
    ball: Indices,
    pose: Indices,
    outward: Array,
    allowed: Array,
    before: Array,
) -> Mask:
    """Hold ball joints along the outward vectors (3, K) by which a step would leave; (K,) which are new."""
    depth = length(outward)
    rest = outward
    if len(limits.locked):
        axes = limits.locked_axes_of(ball, before)
        rest = rest - dot(axes, rest) * axes
    for face in range(FACES):
        normals = active.normals[face][:, ball, pose]
        rest = rest - dot(normals, rest) * normals
    size = length(rest)
    new: Mask = (size > 1e-9) & (size > SAME_FACE * depth)
    normal = rest / np.maximum(size, TINY)
    gap = dot(normal, allowed)
    left = new.copy()
    for face in range(FACES):
        empty = ~active.normals[face][:, ball, pose].any(0)
        use = left & empty
        active.normals[face][:, ball[use], pose[use]] = normal[:, use]
        active.gaps[face][ball[use], pose[use]] = gap[use]
        left &= ~use
    return new & ~left


# Small systems, one for each pose -------------------------------------------------------------------


def products(slope: Array, weighted: Array, symmetric: bool) -> Array:
    """(m, m, B): J W J^T."""
    m, _, size = slope.shape
    if m > 8 or not symmetric:
        found = np.matmul(
            np.ascontiguousarray(slope.transpose(2, 0, 1)), np.ascontiguousarray(weighted.transpose(2, 1, 0))
        )
        return np.ascontiguousarray(found.transpose(1, 2, 0))
    found = np.empty((m, m, size))
    for i in range(m):
        for j in range(i, m):
            found[i, j] = found[j, i] = np.einsum("kb,kb->b", slope[i], weighted[j])
    return found


def solved(system: Array, damping: Array, wanted: Array) -> Array:
    """(m, B): what a damped system (m, m, B) makes `wanted`."""
    m = len(system)
    if m > 8:
        whole = np.ascontiguousarray(system.transpose(2, 0, 1))
        whole[:, np.arange(m), np.arange(m)] += damping[:, None]
        found = np.linalg.solve(whole, wanted.T[..., None])[..., 0]
        return np.ascontiguousarray(found.T)
    # Gauss elimination, all poses at once: the system is positive definite, or nearly so.
    rows = [[system[i, j] for j in range(m)] for i in range(m)]
    right = [wanted[i] for i in range(m)]
    for i in range(m):
        rows[i][i] = rows[i][i] + damping
    for i in range(m):
        pivot = 1.0 / np.maximum(rows[i][i], damping)  # of a symmetric system all are that large
        for j in range(i + 1, m):
            factor = rows[j][i] * pivot
            for k in range(i + 1, m):
                rows[j][k] = rows[j][k] - factor * rows[i][k]
            right[j] = right[j] - factor * right[i]
        rows[i][i] = pivot
    found = np.empty((m, wanted.shape[1]))
    for i in reversed(range(m)):
        value = right[i]
        for k in range(i + 1, m):
            value = value - rows[i][k] * found[k]
        found[i] = value * rows[i][i]
    return found
