"""Poses solved inside their reach windows: those that solutions stretch are held, in rounds (`windows`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ...maths.batch import Indices, Mask, at_least_two
from .problem import LeastSquaresProblem
from .sequence import Sequence, solve_sequence
from .solve import Limits, Solved, confined, solve_batch
from .state import Given, State
from .ways import Frames, put
from .windows import SLACK, bent, hold

ROUNDS = 4
"""How often windows are held and let go of."""

Found = TypeVar("Found", Solved, Sequence)


def solve_windowed(problem: LeastSquaresProblem, given: Given, start: State, limits: Limits) -> Solved:
    """`solve_batch` inside the reach windows.

    Windows that are held in `given` are so from the start on. The excess counts how far poses are stretched
    past their windows too.
    """

    def again(found: Solved, given: Given, rows: Indices) -> Solved:
        own = given.at(rows)
        solved = solve_batch(problem, own, entered(problem, own, start.at(rows)), limits.at(rows))
        return put(found, rows, replace(solved, iterations=solved.iterations + found.iterations[rows]))

    everything = np.ones(start.size, np.bool_)
    begin = entered(problem, given, start) if given.windows[1].any() else start
    return _in_rounds(problem, given, (limits, everything), solve_batch(problem, given, begin, limits), again)


def solve_frames(frames: Frames, from_base: bool = True) -> Sequence:
    """`solve_sequence` inside the reach windows; see `solve_windowed`."""
    problem = frames.problem

    def again(found: Sequence, given: Given, rows: Indices) -> Sequence:
        # The others stand as they are solved: those about them choose their ways to fit.
        begin = entered(problem, given.at(rows), frames.base.at(rows))
        base, fixed = found.state.joined(rows, begin), np.ones(found.state.size, np.bool_)
        fixed[rows] = False
        solved = solve_sequence(replace(frames, given=given, base=base, fixed=fixed), from_base)
        excess, kept, iterations = found.excess.copy(), found.kept.copy(), found.iterations.copy()
        excess[rows], kept[rows] = solved.excess[rows], False
        iterations[rows] += solved.iterations[rows]
        return Sequence(found.state.joined(rows, solved.state.at(rows)), excess, kept, iterations)

    found = solve_sequence(frames, from_base)
    return _in_rounds(problem, frames.given, (frames.limits, ~frames.fixed), found, again)


def entered(problem: LeastSquaresProblem, given: Given, state: State) -> State:
    """The state with straight parts bent a little where their windows are held, inside all limits."""
    if not problem.windows or not given.windows[1].any():
        return state
    now, _ = problem.jacobian(given, problem.evaluate(given, state))
    return confined(problem, given, bent(problem.windows, problem.layout, given, state, now))


def held_at_border(problem: LeastSquaresProblem, given: Given, state: State, limits: Limits) -> Given:
    """The same with windows held at which states stand, or past which they are stretched."""
    if not problem.windows:
        return given
    return hold(given, problem.overstretched(given, state) >= -limits.position)


def _in_rounds(
    problem: LeastSquaresProblem,
    given: Given,
    asked: tuple[Limits, Mask],
    found: Found,
    again: Callable[[Found, Given, Indices], Found],
) -> Found:
    """What was found, with what its poses stretch too far solved again until nothing changes.

    `asked` are the limits, and (B,) which poses may be solved again.
    """
    if not problem.windows:
        return found
    limits, free = asked
    size = found.state.size
    held = np.broadcast_to(given.windows[1] > 0.0, (len(problem.windows), size)).copy()
    released = np.zeros_like(held)
    for _ in range(ROUNDS):
        over = problem.overstretched(given, found.state)
        loose = held & ~released & (found.excess > 1.0) & _would_shorten(problem, given, found.state)
        released |= loose
        wanted = (held & ~loose) | (over > SLACK * limits.position)
        changed = (wanted != held).any(0) & free
        if not changed.any():
            break
        held = np.where(free, wanted, held)
        given = hold(given, held)
        found = again(found, given, at_least_two(np.flatnonzero(changed)))
    over = problem.overstretched(given, found.state).max(0)
    return replace(found, excess=np.maximum(found.excess, over / limits.position))


def _would_shorten(problem: LeastSquaresProblem, given: Given, state: State) -> Mask:
    """(w, B) whether the goals come nearer where a held part is stretched less."""
    found = np.zeros((len(problem.windows), state.size), np.bool_)
    if not given.windows[1].any():
        return found
    residual = problem.evaluate(given, state)
    _, slope = problem.jacobian(given, residual)
    goals = problem.rows - len(problem.windows)
    serving = slope if problem.serves is None else slope * problem.serves[..., None]
    uphill = np.einsum("mkb,mb->kb", serving[:goals], residual.values[:goals])
    for k in range(len(found)):
        found[k] = (slope[goals + k] * uphill).sum(0) > 0.0
    return found
