"""Frames to be solved together, and parts of what was found for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...maths.batch import Array, Indices, Mask
from .problem import LeastSquaresProblem
from .solve import Limits, Solved
from .state import Given, State

NEAR = 16
"""Frames that are farther apart are not compared."""


@dataclass(frozen=True)
class Frames:
    """Frames in order of time, to be solved.

    Attributes:
        problem: what all share.
        given: what each brings; its reference is the base pose.
        base: the base poses, inside the limits.
        limits: when to stop.
        fixed: (F,) frames that stay as they are.
        times: (F,) frame numbers, increasing.
    """

    problem: LeastSquaresProblem
    given: Given
    base: State
    limits: Limits
    fixed: Mask
    times: Array

    @property
    def together(self) -> Mask:
        """(F - 1,) whether a frame and the next are near enough to be compared."""
        return np.asarray(np.diff(self.times) <= NEAR)

    def at(self, some: Mask | Indices) -> Frames:
        """Some of them."""
        return Frames(
            self.problem,
            self.given.at(some),
            self.base.at(some),
            self.limits.at(some),
            self.fixed[some],
            self.times[some],
        )


def solved_at(solved: Solved, some: Indices) -> Solved:
    """Those of some of the poses."""
    return Solved(
        solved.state.at(some),
        solved.excess[some],
        solved.square[some],
        solved.iterations[some],
        solved.stalled[some],
    )


def put(solved: Solved, some: Indices, others: Solved) -> Solved:
    """Others in place of some of the poses."""
    if not len(some):
        return solved
    found = solved_at(solved, np.arange(solved.state.size))
    for mine, theirs in (
        (found.excess, others.excess),
        (found.square, others.square),
        (found.iterations, others.iterations),
        (found.stalled, others.stalled),
    ):
        mine[some] = theirs
    return replace(found, state=solved.state.joined(some, others.state))
