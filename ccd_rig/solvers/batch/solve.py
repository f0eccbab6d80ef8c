"""Least squares inside limits for many poses of one skeleton at once.

Levenberg's and Marquardt's method with the damping, the active limits and the stop of each pose its own: the
damping follows the square error (Sugihara 2011, "Solvability-unconcerned inverse kinematics by the
Levenberg-Marquardt method"). With reference poses the result is, of the poses that meet the goals, one as
near to its reference as a descent leads; the part of the departure that one step takes back follows the
curvature (Barzilai & Borwein 1988, "Two-point step size gradient methods").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...maths.batch import Array, Indices, Mask, at_least_two, is_all, select
from .ball_limits import BallLimits
from .problem import LeastSquaresProblem, Metric, Residual
from .state import Given, State, moved_state, rebuilt, stepped_balls
from .step import Active, Step, bounds, limited_step, linearise

ENOUGH = 0.1
"""Part of the tolerances at which to stop: single precision, in which poses are kept, fits into the rest."""
DAMPING = 0.1
"""Damping of the first step, in parts of the square error."""
DAMPING_UP, DAMPING_DOWN, DAMPING_GROWTH = 10.0, 0.5, 3.0
"""Factors of the damping after a step that failed and one that worked; growth from failure to failure
(Nielsen 1999)."""
HOPELESS = 1e4
"""Damping times the square error at which even the smallest steps fail."""
POOR = 0.5
"""A step that leaves more than this part of the square error is tried again in part."""
FRACTIONS: Array = np.linspace(0.02, 1.0, 50)[:, None]
"""The parts of a step that are looked at."""
PATIENCE = 6
"""So many steps, failed ones too, that together win next to nothing end the search."""
GAIN = 1e-3
"""Next to nothing: this part of the square error."""
FIRST_PULL = 1.0
"""Part of the departure that the first step takes back, and the range of later ones."""
AT_REST = 2e-3
"""Radians (and parts of the reach): poses whose joints want back by less are as near as can be."""
FIRST_RATE, LEAST_RATE = 0.4, 0.1
"""What a step is taken to leave of the way back to the reference, before there are two to compare; the least
that is believed."""
PULLED = 12
"""Steps after which a pose that does not meet its goals goes on without its reference."""
PENALTY = 10.0
CLOSE = 1e-2
RAMP = 2.0
SLOW, GIVEN_UP = 0.7, 0.02
WAITING, LAST = 4, 16
"""Steps near its goals after which a pose that does not meet them goes on without its reference, and
how many more it gets."""
SETTLED = 12
"""Steps that meet the goals after which a pose stays where it is."""
REFUSED = 4
"""Steps back to the reference that may fail, until a pose that meets its goals stays where it is."""
LOOSE = 100.0
"""Tolerances by which a pose may miss its goals for a while on its way back to the reference."""


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Attributes:
        position: (B,) tolerance of positions and balance, model units.
        angle: tolerance of orientations, directions and poles, radians.
        iterations: most steps of a pose.
        gain: a pose stalls when its square error falls by less than this part in `PATIENCE` steps.
        rest, settled: see `AT_REST`, `SETTLED`.
    """

    position: Array
    angle: float
    iterations: int
    gain: float = GAIN
    rest: float = AT_REST
    settled: int = SETTLED

    def at(self, some: Mask | Indices) -> Limits:
        """Those of some of the poses."""
        return replace(self, position=self.position[some])


@dataclass(frozen=True)
class Solved:
    """What was found.

    Attributes:
        state: the best of each pose: one that meets its goals and is nearest to the reference, else the
            nearest to the goals.
        excess: (B,) the largest miss in tolerances.
        square: (B,) square error.
        iterations: (B,) steps tried.
        stalled: (B,) whether the search ended because nothing more was won.
    """

    state: State
    excess: Array
    square: Array
    iterations: Indices
    stalled: Mask


def solve_batch(problem: LeastSquaresProblem, given: Given, start: State, limits: Limits) -> Solved:
    """Bring poses to their goals inside the limits.

    Args:
        problem: what all poses share.
        given: what each of them brings.
        start: inside the limits.
        limits: when to stop.
    """
    search = _Search(problem, given, confined(problem, given, start), limits)
    while len(search.places):
        search.iterate()
    return search.result()


def confined(problem: LeastSquaresProblem, given: Given, state: State) -> State:
    """The state with its ball joints inside their limits; the very same where they are."""
    layout = problem.layout
    pushed = BallLimits(layout).project(state.rotations[:, layout.ball_rows])
    if pushed is None:
        return state
    return rebuilt(layout, given, state, pushed[0], state.angles, state.slides)


class _Search:
    """The poses that are not done yet, and the best of all."""

    def __init__(self, problem: LeastSquaresProblem, given: Given, start: State, limits: Limits) -> None:
        size = start.size
        self.problem, self.given, self.limits = problem, given, limits
        self.balls = BallLimits(problem.layout)
        self.places = np.arange(size)
        self.now = problem.evaluate(given, start)
        self.off = self.now.excess(limits.position, limits.angle)
        self.active = Active.none(problem.layout.columns, len(self.balls.limited), size)
        self.damping, self.growth = np.full(size, DAMPING), np.full(size, DAMPING_UP)
        self.pull = np.full(size, FIRST_PULL if given.reference is not None else 0.0)
        self.rotated = np.zeros(size)
        self.first_square = self.now.square.copy()
        self.loose = np.full(size, LOOSE if given.reference is not None else 1.0)
        self.there = np.zeros(size, dtype=np.intp)
        self.waiting, self.refused = np.zeros(size, dtype=np.intp), np.zeros(size, dtype=np.intp)
        self.history: list[Array] = []
        self.count = 0
        self.departure, self.departed = self._departed(self.now.now.state)
        self.best = start
        self.best_off, self.best_square = self.off.copy(), self.now.square.copy()
        self.iterations = np.zeros(size, dtype=np.intp)
        self.stalled = np.zeros(size, dtype=np.bool_)
        self._leave(self._done(np.zeros(size, np.bool_)))

    def iterate(self) -> None:
        """One step of all poses that are left."""
        problem, now = self.problem, self.now
        self.count += 1
        axes, slope = problem.jacobian(self.given, now)
        done = 1.0 - RAMP * np.sqrt(now.square / np.maximum(self.first_square, 1e-300))
        pull = np.where(self.off <= self.loose, self.pull, np.clip(done, 0.0, 1.0) * self.pull)
        linear = linearise(problem, now, axes, slope, self.departure, self.damping, pull)
        holding = self.active.at(slice(None))  # type: ignore[arg-type]
        holding = Active(*(values.copy() for values in vars(holding).values()))
        step = limited_step(problem, self.balls, linear, holding)
        self.rotated = np.abs(step.columns).max(0)
        tried = problem.evaluate(self.given, self._moved(now.now.state, step))
        tried = self._corrected(tried, step)
        tried = self._shortened(tried, slope, step)
        off = tried.excess(self.limits.position, self.limits.angle)
        accepted = self._accept(tried, off, step)
        clear = step.shortened | (tried.square > 0.25 * now.square)
        holding.normals[..., clear] = 0.0
        holding.gaps[:] = 0.0
        self.active.put(accepted, holding.at(accepted))
        self.active.normals[..., ~accepted] = 0.0
        self._take(accepted, tried, off)
        self.iterations[self.places] += 1
        self.history.append(self.now.square)
        self._leave(self._done(accepted))

    def _moved(self, state: State, step: Step) -> State:
        layout = self.problem.layout
        return moved_state(layout, self.given, state, step.columns, step.balls, self.problem.reach)

    def _corrected(self, tried: Residual, step: Step) -> Residual:
        """Steps on the way back to the reference, brought to the goals again: a long one leaves them with
        the square of its length (the second-order correction of Fletcher 1982)."""
        if step.back is None:
            return tried
        off = tried.excess(self.limits.position, self.limits.angle)
        some = at_least_two(np.flatnonzero((self.off <= self.loose) & (off > ENOUGH)))
        if not len(some):
            return tried
        layout, state = self.problem.layout, tried.now.state.at(some)
        columns = select(step.correction(tried.values), some)
        linear = self._bounds(state)
        columns = np.clip(columns, *linear)
        balls = stepped_balls(layout, state, columns)
        pushed = self.balls.project(balls)
        balls = balls if pushed is None else pushed[0]
        given = self.given.at(some)
        moved = moved_state(layout, given, state, columns, balls, self.problem.reach)
        found = self.problem.evaluate(given, moved)
        better = found.square < tried.square[some]
        return _joined(tried, some[better], _at(found, np.flatnonzero(better)))

    def _bounds(self, state: State) -> tuple[Array, Array]:
        return bounds(self.problem, state)

    def _shortened(self, tried: Residual, slope: Array, step: Step) -> Residual:
        """What a part of a step gives that won little or nothing, if that is better than all of it.

        The step's end tells how the residuals bend along it: r(t) = r + t J d + t^2 q, where q is what the
        linear picture J d missed at t = 1. A chain that is nearly stretched needs it most: its length changes
        with the square of its bends.
        """
        some = at_least_two(np.flatnonzero((tried.square > POOR * self.now.square) & (self.off > self.loose)))
        if not len(some):
            return tried
        values = select(self.now.values, some)
        line = np.einsum("mkb,kb->mb", select(slope, some), select(step.columns, some))
        bend = select(tried.values, some) - values - line
        t = FRACTIONS
        a, b, c = ((x * y).sum(0) for x, y in ((values, values), (values, line), (line, line)))
        d, e, f = ((x * y).sum(0) for x, y in ((values, bend), (line, bend), (bend, bend)))
        squares = a + t * (2.0 * b + t * (c + 2.0 * d + t * (2.0 * e + t * f)))
        best = squares.argmin(0)
        use = (best < len(t) - 1) & (squares[best, np.arange(len(some))] < POOR * tried.square[some])
        if not use.any():
            return tried
        use = at_least_two(np.flatnonzero(use))
        some, part = some[use], t[best[use], 0]
        state, given = self.now.now.state.at(some), self.given.at(some)
        columns = select(step.columns, some) * part
        layout = self.problem.layout
        balls = stepped_balls(layout, state, columns)
        pushed = self.balls.project(balls)
        balls = balls if pushed is None else pushed[0]
        found = self.problem.evaluate(
            given, moved_state(layout, given, state, columns, balls, self.problem.reach)
        )
        better = found.square < tried.square[some]
        return _joined(tried, some[better], _at(found, np.flatnonzero(better)))

    def _accept(self, tried: Residual, off: Array, step: Step) -> Mask:
        """Which steps count: those that come nearer to the goals; and on the way back to the reference those
        that lower half of the square departure, the multipliers times the residuals and a penalty (the
        augmented Lagrangian of Hestenes and Powell, 1969)."""
        nearer = tried.square < self.now.square
        if step.back is None:
            return nearer
        _, departed = self._departed(tried.now.state)
        multipliers = step.back.multipliers
        weight = PENALTY * (1.0 + np.sqrt((multipliers * multipliers).sum(0)))
        before = 0.5 * self.departed + (multipliers * self.now.values).sum(0) + weight * self.now.square
        after = 0.5 * departed + (multipliers * tried.values).sum(0) + weight * tried.square
        back = (after < before) | ((off <= 1.0) & (self.rotated <= CLOSE))
        return np.asarray(np.where(self.off <= self.loose, back, nearer))

    def _take(self, accepted: Mask, tried: Residual, off: Array) -> None:
        """Go on from the steps that count; the damping follows."""
        back = (self.off <= self.loose) & (self.given.reference is not None)
        slow = ~accepted | (tried.square > SLOW * self.now.square)
        # Far from the goals it may be the way back that is in the way: it gives in before the damping grows.
        gives = ~back & slow & (self.pull > GIVEN_UP)
        calmer = np.where(self.growth > DAMPING_UP, DAMPING_UP, DAMPING_DOWN)
        there = np.where(accepted, np.maximum(self.damping * calmer, 1e-6), self.damping * self.growth)
        there = np.where(gives & ~accepted, self.damping, there)
        self.damping = np.where(back, np.minimum(self.damping, DAMPING), there)
        self.growth = np.where(accepted | back | gives, DAMPING_UP, self.growth * DAMPING_GROWTH)
        radius = np.where(accepted, np.minimum(2.0 * self.pull, 1.0), 0.25 * self.pull)
        pull = np.where(gives, 0.2 * self.pull, np.where(self.pull > GIVEN_UP, self.pull, 0.0))
        arrived = ~back & accepted & (off <= self.loose) & (self.given.reference is not None)
        self.pull = np.where(back, radius, np.where(arrived, 1.0, pull))
        self.refused += back & ~accepted
        if accepted.all():
            self.now, self.off = tried, off
        elif accepted.any():
            some = np.flatnonzero(accepted)
            self.now = _joined(self.now, some, _at(tried, some))
            self.off = np.where(accepted, off, self.off)
        # What is near its goals for long and does not meet them is out of reach: its reference has no say.
        self.there += self.off <= 1.0
        near = (self.off > 1.0) & (self.off <= LOOSE) & (self.given.reference is not None)
        self.waiting = np.where(near, self.waiting + 1, 0)
        alone = self.waiting >= WAITING
        self.loose[alone], self.pull[alone] = 1.0, 0.0
        self.departure, self.departed = self._departed(self.now.now.state)
        self._note()

    def _note(self) -> None:
        """Keep what is best."""
        places = self.places
        met, best_met = self.off <= 1.0, self.best_off[places] <= 1.0
        nearer = met | (~best_met & (self.now.square < self.best_square[places]))
        if self.given.reference is None:
            nearer = self.now.square < self.best_square[places]
        some = np.flatnonzero(nearer)
        if not len(some):
            return
        if is_all(places[some], self.best.size):
            self.best = self.now.now.state
        else:
            self.best = self.best.joined(places[some], self.now.now.state.at(some))
        self.best_off[places[some]] = self.off[some]
        self.best_square[places[some]] = self.now.square[some]

    def _departed(self, state: State) -> tuple[Array | None, Array]:
        """The departure (k, B) from the reference, None without one, and its square (B,)."""
        found = self.problem.departure(self.given, state)
        return found, np.zeros(state.size) if found is None else Metric(self.problem.layout, state).square(found)

    def _done(self, accepted: Mask) -> Mask:
        """Which poses are done."""
        enough = 1.0 if self.count == 0 else ENOUGH
        done = self.off <= enough
        if self.given.reference is not None and self.count == 0:
            done &= self.departed == 0.0
        elif self.given.reference is not None:
            done &= accepted & (self.rotated <= self.limits.rest)
            done |= (self.off <= 1.0) & ((self.refused >= REFUSED) | (self.there >= self.limits.settled))
        stalled = (self.damping * self.now.square > HOPELESS) | (self.waiting >= WAITING + LAST)
        if len(self.history) > PATIENCE:
            slow = self.now.square > (1.0 - self.limits.gain) * self.history[-1 - PATIENCE]
            stalled |= slow & (self.off > self.loose)
        stalled &= ~done
        self.stalled[self.places[stalled]] = True
        late = self.count >= self.limits.iterations
        return np.asarray(done | stalled | late | (self.problem.layout.columns == 0))

    def _leave(self, done: Mask) -> None:
        """Go on without the poses that are done."""
        if not done.any():
            return
        some = at_least_two(np.flatnonzero(~done))
        self.places, self.given = self.places[some], self.given.at(some)
        self.now, self.off, self.departed = _at(self.now, some), self.off[some], self.departed[some]
        self.active = self.active.at(some)
        self.damping, self.growth, self.pull = self.damping[some], self.growth[some], self.pull[some]
        self.first_square = self.first_square[some]
        self.loose, self.waiting = self.loose[some], self.waiting[some]
        self.refused, self.there = self.refused[some], self.there[some]
        self.rotated = self.rotated[some]
        self.departure = None if self.departure is None else select(self.departure, some)
        self.history = [square[some] for square in self.history[-PATIENCE - 1 :]]
        self.limits = self.limits.at(some)

    def result(self) -> Solved:
        return Solved(self.best, self.best_off, self.best_square, self.iterations, self.stalled)


def _at(residual: Residual, some: Mask | Indices) -> Residual:
    """Those of some of the poses."""
    now = residual.now
    return Residual(
        replace(now, state=now.state.at(some), ends=select(now.ends, some)),
        select(residual.values, some),
        residual.square[some],
        tuple(type(miss)(miss.distance[some], miss.angle[some]) for miss in residual.misses),
    )


def _joined(residual: Residual, some: Indices, other: Residual) -> Residual:
    """The same with others in place of some of the poses."""
    if not len(some):
        return residual
    if is_all(some, residual.now.state.size):
        return other
    ends, values, square = residual.now.ends.copy(), residual.values.copy(), residual.square.copy()
    ends[..., some], values[:, some], square[some] = other.now.ends, other.values, other.square
    misses = []
    for miss, theirs in zip(residual.misses, other.misses, strict=True):
        distance, angle = miss.distance.copy(), miss.angle.copy()
        distance[some], angle[some] = theirs.distance, theirs.angle
        misses.append(type(miss)(distance, angle))
    state = residual.now.state.joined(some, other.now.state)
    return Residual(replace(residual.now, state=state, ends=ends), values, square, tuple(misses))
