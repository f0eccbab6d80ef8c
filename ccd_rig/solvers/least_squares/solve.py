"""Least squares inside limits for many poses of one skeleton at once.

Levenberg's and Marquardt's method with the damping, the active limits and the stop of each pose its own: the
damping follows the square error (Sugihara 2011, "Solvability-unconcerned inverse kinematics by the
Levenberg-Marquardt method"). With reference poses the result is, of the poses that meet the goals, one as
near to its reference as a descent leads; the part of the departure that one step takes back follows the
curvature (Barzilai & Borwein 1988, "Two-point step size gradient methods"). Poses that cannot meet their
goals end where nothing nearer exists, by Newton's method.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from ...maths.batch import TINY, Array, Indices, Mask, at_least_two, select
from ..stepping import result_of
from .held import Active, refreshed
from .metric import Metric
from .problem import LeastSquaresProblem, Residual
from .reach import beyond_reach
from .state import Given, State, rebuilt
from .step import Step, limited_step, linearise
from .tracked import DAMPING, DAMPING_DOWN, DAMPING_GROWTH, DAMPING_UP, LOOSE, Best, Tracked
from .trials import POOR, Trials

ENOUGH = 0.1
"""Part of the tolerances at which to stop: single precision, in which poses are kept, fits into the rest."""
HOPELESS = 1e4
"""Damping times the square error at which even the smallest steps fail."""
PATIENCE = 6
"""So many steps, failed ones too, that together win next to nothing end the search."""
GAIN = 1e-3
"""Next to nothing: this part of the square error."""
HURRIED_GAIN = 0.1
"""Next to nothing where a dead end is soon given up, since there are other poses to start from."""
PATIENT_GAIN = 1e-6
"""Next to nothing for what no start brings to its goals."""
AT_REST = 2e-3
"""Radians, and parts of the reach: after a shorter step a pose is as near to its reference as can be, since
what is left falls with the square of the step."""
AT_BORDER = 0.25
"""The same at the border of a ball joint: times as long, since how that bends is not known."""
SETTLED = 6
"""Steps that meet the goals after which a pose stays where it is."""
REFUSED = 4
"""Steps back to the reference in a row that may fail until a pose that meets its goals stays where it is."""
ARRIVALS = 3
"""Times that a pose comes near its goals until it does not leave them again."""
RETURNS = 4
"""Times that a pose which met its goals without its reference goes back to that."""
WAITING, LAST = 4, 8
"""Steps near its goals after which a pose that does not meet them goes on without its reference, and how many
more it gets."""
RAMP = 2.0
"""Farther away the way back is taken by 1 less this times the part of the first error that is left."""
SLOW, LEAST_PULL = 0.7, 0.02
"""Where more than this part of the square error is left by a step, less of the way back is taken; the least
part of it that is."""
PENALTY = 10.0
"""Weight of the square error in the merit of steps near the goals."""
HURRIED = 0.05
"""Least gain of a search that ends where little is won: others go on there with Newton's steps."""
STILL = 5e-3
"""Radians of a step above which a pose with a reference goes on, though next to nothing is won: how a chain
points at a target out of reach wins little."""
NEARER = 0.03
"""Part of the square error that a step near the goals leaves at most to count without a look at its merit."""
CLOSE = 1e-2
"""Radians: shorter steps that meet the goals count without a look at their merit."""


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Attributes:
        position: (B,) tolerance of positions and balance, model units.
        angle: tolerance of orientations, directions and poles, radians.
        iterations: most steps of a pose.
        gain: a pose stalls when its square error falls by less than this part in `PATIENCE` steps.
        rest: see `AT_REST`. settled: see `SETTLED`.
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
    return result_of(batch_steps(problem, given, start, limits))


def batch_steps(
    problem: LeastSquaresProblem, given: Given, start: State, limits: Limits
) -> Generator[Indices, None, Solved]:
    """Like `solve_batch`; an item before each step, which may be the last that is asked for: the places of
    the poses that have not ended."""
    search = _Search(problem, given, confined(problem, given, start), limits)
    while len(search.poses.places):
        yield search.poses.places
        search.iterate()
    return search.result()


def confined(problem: LeastSquaresProblem, given: Given, state: State) -> State:
    """The state with its ball joints inside their limits; the very same where they are."""
    layout = problem.layout
    pushed = given.limits.balls.project(state.rotations[:, layout.ball_rows])
    if pushed is None:
        return state
    return rebuilt(layout, given, state, pushed[0], state.angles, state.slides)


class _Search:
    """The poses that are not done yet, and the best of all."""

    def __init__(self, problem: LeastSquaresProblem, given: Given, start: State, limits: Limits) -> None:
        size = start.size
        self.problem, self.given, self.limits = problem, given, limits
        self.trials = Trials(problem)
        # Where goals count next to nothing beside others, few conjugate gradients do not find Newton's step.
        ranked = len({goal.priority for goal in problem.goals}) > 1 or bool(problem.windows)
        self.patient = limits.gain < HURRIED and problem.serves is None and not ranked
        self.now = problem.evaluate(given, start)
        off = self.now.excess(limits.position, limits.angle)
        self.departure, departed = self._departed(start)
        self.poses = Tracked.of(off, self.now.square, departed, given.reference is not None)
        if given.reference is not None:  # what is out of reach goes on without it
            far = beyond_reach(problem, given, start, limits.position, limits.angle)
            self.poses.loose[far], self.poses.pull[far] = 1.0, 0.0
        self.active = Active.none(problem.layout.columns, len(given.limits.balls.limited), size)
        self.history: list[Array] = []
        self.count = 0
        self.best = Best(start, off.copy(), self.now.square.copy(), given.reference is not None)
        self.iterations: Indices = np.zeros(size, dtype=np.intp)
        self.stalled = np.zeros(size, dtype=np.bool_)
        done = (off <= 1.0) & (departed == 0.0) | (problem.layout.columns == 0)
        self._leave(done)

    def iterate(self) -> None:
        """One step of all poses that are left."""
        problem, now, poses = self.problem, self.now, self.poses
        self.count += 1
        axes, slope = problem.jacobian(self.given, now)
        ramp = np.clip(1.0 - RAMP * np.sqrt(now.square / np.maximum(poses.first_square, TINY)), 0.0, 1.0)
        pull = np.where(poses.near(), poses.pull, ramp * poses.pull)
        asked = self._curved()
        about = now, axes, slope
        linear = linearise(problem, self.given, about, (self.departure, poses.damping, pull), asked)
        holding = refreshed(self.active, linear.limits, linear.state)
        step = limited_step(problem, linear, holding)
        poses.rotated, poses.curved = np.abs(step.columns).max(0), step.curved
        still = step.curved & (poses.damping <= 1.0) & (poses.rotated <= self.limits.rest)
        tried, cut = self._tried(step, slope)
        off = tried.excess(self.limits.position, self.limits.angle)
        departed = self._departed(tried.now.state)
        accepted = self._accept(tried, off, departed[1], step)
        self.active.put(accepted, holding.at(accepted))
        # How the borders of ball joints bend is not known: Newton's step is for others.
        at_border = holding.at_borders()
        poses.slow = (tried.square > POOR * now.square) & ~at_border
        self._adapt(accepted, tried, off, cut)
        self._take(accepted, tried, off, departed)
        self.iterations[poses.places] += 1
        self.history.append(self.now.square)
        self._leave(self._done(accepted, pull * np.where(at_border, AT_BORDER, 1.0), still))

    def _curved(self) -> Mask:
        """(B,) the poses that take Newton's step: those without a way back that win little."""
        poses = self.poses
        found: Mask = poses.slow & (poses.pull == 0.0) & self.patient
        poses.damping = np.where(found & ~poses.curved, np.minimum(poses.damping, DAMPING), poses.damping)
        return found

    def _tried(self, step: Step, slope: Array) -> tuple[Residual, Mask]:
        """What a step gives, corrected near the goals and shortened far from them; where it was shortened."""
        poses = self.poses
        tried = self.trials.stepped(self.given, self.now, step)
        if step.back is not None:
            off = tried.excess(self.limits.position, self.limits.angle)
            tried = self.trials.corrected(self.given, tried, step, poses.near() & (off > ENOUGH))
        far = poses.off > poses.loose
        return self.trials.shortened(self.given, self.now, tried, (step.columns, slope), far)

    def _accept(self, tried: Residual, off: Array, departed: Array, step: Step) -> Mask:
        """Which steps count.

        Far from the goals those that come nearer. Near them those that lower half of the square departure,
        the multipliers times the residuals and a penalty: the augmented Lagrangian (Hestenes 1969).
        """
        nearer: Mask = tried.square < self.now.square
        if step.back is None:
            return nearer
        multipliers = step.back.multipliers
        weight = PENALTY * (1.0 + np.sqrt((multipliers * multipliers).sum(0)))
        before = 0.5 * self.poses.departed + (multipliers * self.now.values).sum(0) + weight * self.now.square
        after = 0.5 * departed + (multipliers * tried.values).sum(0) + weight * tried.square
        merits = (after < before) | ((off <= 1.0) & (self.poses.rotated <= CLOSE))
        # Where a limb is nearly straight the multipliers tell little: what comes far nearer counts as well.
        merits |= (self.poses.off > ENOUGH) & (tried.square < NEARER * self.now.square)
        # What comes near its goals again and again stays there at last.
        merits &= (off <= LOOSE) | (self.poses.arrivals < ARRIVALS)
        return np.asarray(np.where(self.poses.near(), merits, nearer))

    def _adapt(self, accepted: Mask, tried: Residual, off: Array, cut: Mask) -> None:
        """The damping and the way back of the next steps."""
        poses = self.poses
        near, referred = poses.near(), poses.loose > 1.0
        slow = ~accepted | (tried.square > SLOW * self.now.square)
        # Far from the goals it may be the way back that is in the way: it gives in before the damping grows.
        gives = ~near & slow & (poses.pull > LEAST_PULL)
        calmer = np.where(cut, DAMPING_UP, DAMPING_DOWN)
        damping = np.where(accepted, np.maximum(poses.damping * calmer, 1e-6), poses.damping * poses.growth)
        damping = np.where(gives & ~accepted, poses.damping, damping)
        poses.damping = np.where(near, np.minimum(poses.damping, DAMPING), damping)
        poses.growth = np.where(accepted | near | gives, DAMPING_UP, poses.growth * DAMPING_GROWTH)
        taken = np.where(accepted, np.minimum(2.0 * poses.pull, 1.0), 0.25 * poses.pull)
        pull = np.where(gives, 0.2 * poses.pull, np.where(poses.pull > LEAST_PULL, poses.pull, 0.0))
        arrived = ~near & accepted & referred & (off <= poses.loose)
        poses.arrivals = poses.arrivals + arrived
        poses.pull = np.where(near, taken, np.where(arrived, 1.0, pull))
        poses.refused = np.where(accepted, 0, poses.refused + near)

    def _take(
        self, accepted: Mask, tried: Residual, off: Array, departed: tuple[Array | None, Array]
    ) -> None:
        """Go on from the steps that count."""
        poses = self.poses
        if accepted.all():
            self.now, poses.off = tried, off
            self.departure, poses.departed = departed
        elif accepted.any():
            some = np.flatnonzero(accepted)
            self.now = self.now.joined(some, tried.at(some))
            poses.off = np.where(accepted, off, poses.off)
            poses.departed = np.where(accepted, departed[1], poses.departed)
            if self.departure is not None and departed[0] is not None:
                self.departure = np.where(accepted, departed[0], self.departure)
        poses.met = poses.met + (poses.off <= 1.0)
        # What is near its goals for long and does not meet them is out of reach: its reference has no say.
        near = (poses.off > 1.0) & (poses.off <= LOOSE) & (self.given.reference is not None)
        poses.waiting = np.where(near, poses.waiting + 1, 0)
        alone = poses.waiting >= WAITING
        # What meets them without it goes back to it once more, and then is as near to it as can be.
        again = (poses.loose == 1.0) & (poses.off <= ENOUGH) & (poses.returns < RETURNS)
        again &= self.given.reference is not None
        poses.returns = poses.returns + again
        poses.loose = np.where(alone, 1.0, np.where(again, LOOSE, poses.loose))
        poses.pull = np.where(alone, 0.0, np.where(again, 1.0, poses.pull))
        self.best.note(self.now, poses.off, poses.places)

    def _departed(self, state: State) -> tuple[Array | None, Array]:
        """The departure (k, B) from the reference, None without one, and what it costs (B,)."""
        found = self.problem.departure(self.given, state)
        if found is None:
            return None, np.zeros(state.size)
        return found, Metric(self.problem.layout, self.given.bends, state).square(found)

    def _done(self, accepted: Mask, pull: Array, still: Mask) -> Mask:
        """Which poses are done, after steps with this part of the way back; which of Newton's were short."""
        poses = self.poses
        done = poses.off <= ENOUGH
        if self.given.reference is not None:
            at_rest = poses.rotated <= self.limits.rest * pull
            done &= accepted & (at_rest | (poses.loose == 1.0))
            settled = (poses.refused >= REFUSED) | (poses.met >= self.limits.settled)
            done |= (poses.off <= 1.0) & settled
        stalled = (poses.damping * self.now.square > HOPELESS) | (poses.waiting >= WAITING + LAST)
        if len(self.history) > PATIENCE:
            slow = self.now.square > (1.0 - self.limits.gain) * self.history[-1 - PATIENCE]
            resting = (poses.rotated <= STILL) & (poses.pull == 0.0) | (self.given.reference is None)
            stalled |= slow & resting & (poses.off > poses.loose)
        stalled |= still & (poses.off > poses.loose)
        stalled &= ~done
        self.stalled[poses.places[stalled]] = True
        return np.asarray(done | stalled | (self.count >= self.limits.iterations))

    def _leave(self, done: Mask) -> None:
        """Go on without the poses that are done."""
        if not done.any():
            return
        some = at_least_two(np.flatnonzero(~done))
        self.poses, self.given, self.now = self.poses.at(some), self.given.at(some), self.now.at(some)
        self.active, self.limits = self.active.at(some), self.limits.at(some)
        self.departure = None if self.departure is None else select(self.departure, some)
        self.history = [square[some] for square in self.history[-PATIENCE - 1 :]]

    def result(self) -> Solved:
        """What was found."""
        best = self.best
        return Solved(best.state, best.off, best.square, self.iterations, self.stalled)
