"""What a step gives, and what is better than it: a step that is corrected, or a part of it."""

from __future__ import annotations

import numpy as np

from ...maths.batch import Array, Indices, Mask, at_least_two, select
from .problem import LeastSquaresProblem, Residual
from .state import Given, State, moved_state, stepped_balls
from .step import Step

POOR = 0.5
"""A step that leaves more than this part of the square error is tried again in part."""
MORE = 1.5
"""Times as much of the square error must a part of a step win."""
FRACTIONS: Array = np.array([[0.02 * part] for part in range(1, 51)])
"""The parts of a step that are looked at."""


class Trials:
    """Steps of poses, tried.

    Attributes:
        problem: what all poses share.
    """

    def __init__(self, problem: LeastSquaresProblem) -> None:
        self.problem = problem

    def stepped(self, given: Given, now: Residual, step: Step) -> Residual:
        """The residuals after a step."""
        return self.problem.evaluate(given, self._moved(given, now.now.state, step.columns, step.balls))

    def corrected(self, given: Given, tried: Residual, step: Step, where: Mask) -> Residual:
        """Steps on the way back to the reference, brought to the goals again.

        A long one leaves them with the square of its length: the second-order correction of Fletcher 1982.

        Args:
            given: what each pose brings.
            tried: what the step gave.
            step: on the way back.
            where: (B,) which poses to correct.
        """
        some = at_least_two(np.flatnonzero(where))
        if not len(some):
            return tried
        state, given = tried.now.state.at(some), given.at(some)
        columns = np.clip(select(step.correction(tried.values), some), *self.problem.bounds(given, state))
        return self._nearer(given, tried, some, self._moved(given, state, columns))[0]

    def shortened(
        self, given: Given, now: Residual, tried: Residual, step: tuple[Array, Array], where: Mask
    ) -> tuple[Residual, Mask]:
        """What a part of a step gives that won little or nothing, if that is better, and where it is.

        The step's end tells how the residuals bend along it: r(t) = r + t J d + t^2 q, where q is what the
        linear picture J d missed at t = 1. A chain that is nearly stretched needs it most: its length changes
        with the square of its bends.

        Args:
            given: what each pose brings.
            now, tried: residuals before the step and after it.
            step: the step d (k, B) and the slope J (m, k, B).
            where: (B,) in which poses parts are looked at.
        """
        columns, slope = step
        cut = np.zeros(len(tried.square), dtype=np.bool_)
        some = at_least_two(np.flatnonzero((tried.square > POOR * now.square) & where))
        if not len(some):
            return tried, cut
        values = select(now.values, some)
        line = np.einsum("mkb,kb->mb", select(slope, some), select(columns, some))
        squares = squares_along(values, line, select(tried.values, some) - values - line)
        best = squares.argmin(0)
        won = now.square[some] - squares[best, np.arange(len(some))]
        use = (best < len(FRACTIONS) - 1) & (won > MORE * np.maximum(now.square - tried.square, 0.0)[some])
        if not use.any():
            return tried, cut
        use = at_least_two(np.flatnonzero(use))
        some, part = some[use], FRACTIONS[best[use], 0]
        state, given = now.now.state.at(some), given.at(some)
        found, better = self._nearer(
            given, tried, some, self._moved(given, state, select(columns, some) * part)
        )
        cut[better] = True
        return found, cut

    def _nearer(self, given: Given, tried: Residual, some: Indices, state: State) -> tuple[Residual, Indices]:
        """Another state of some poses instead, where it is nearer to the goals, and which poses those are."""
        found = self.problem.evaluate(given, state)
        better = np.flatnonzero(found.square < tried.square[some])
        return tried.joined(some[better], found.at(better)), some[better]

    def _moved(self, given: Given, state: State, columns: Array, balls: Array | None = None) -> State:
        """The state after a step, inside the limits."""
        layout = self.problem.layout
        if balls is None:
            balls = stepped_balls(layout, state, columns)
            pushed = given.limits.balls.project(balls)
            balls = balls if pushed is None else pushed[0]
        return moved_state(layout, given, state, columns, balls)


def squares_along(values: Array, line: Array, bend: Array) -> Array:
    """Square errors (parts, B) of parts of a step, for residuals that are values + t line + t^2 bend."""
    terms = np.array((values, line, bend))
    (a, b, d), (_, c, e), (_, _, f) = np.einsum("imb,jmb->ijb", terms, terms)
    t = FRACTIONS
    squares: Array = a + t * (2.0 * b + t * (c + 2.0 * d + t * (2.0 * e + t * f)))
    return squares
