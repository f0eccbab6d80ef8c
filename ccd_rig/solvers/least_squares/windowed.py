"""Poses solved inside their reach windows: those that solutions stretch are held, in rounds (`windows`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ...maths.batch import Indices, Mask, at_least_two
from .frames import Frames, put
from .problem import LeastSquaresProblem
from .requests import Search, solving
from .sequence import Sequence, solve_sequence
from .solve import Limits, Solved, confined
from .state import Given, State
from .windows import SLACK, bent, hold, longer

ROUNDS = 5
"""How often windows are held and let go of."""
MILD_WEIGHT = 100.0
"""Weight of a window's squared residual, beside 1 of goals, up to which a goal may stretch it."""

Found = TypeVar("Found", Solved, Sequence)


def solve_windowed(
    problem: LeastSquaresProblem, given: Given, start: State, limits: Limits
) -> Search[Solved]:
    """`solve_batch` inside the reach windows, as a search.

    Windows that are held in `given` are so from the start on. The excess counts how far poses are stretched
    past their windows too.
    """

    def again(found: Solved, given: Given, rows: Indices, begin: State) -> Search[Solved]:
        solved = yield from solving(problem, given.at(rows), begin, limits.at(rows))
        return put(found, rows, replace(solved, iterations=solved.iterations + found.iterations[rows]))

    everything = np.ones(start.size, np.bool_)
    begin = entered(problem, given, start) if given.windows[1].any() else start
    found = yield from solving(problem, given, begin, limits, is_first=True)
    return (yield from _in_rounds(problem, given, (limits, everything, start), found, again))


def solve_frames(frames: Frames, from_base: bool = True) -> Search[Sequence]:
    """`solve_sequence` inside the reach windows; see `solve_windowed`."""

    def again(found: Sequence, given: Given, rows: Indices, begin: State) -> Search[Sequence]:
        # The others stand as they are solved: those about them choose their ways to fit.
        base, fixed = found.state.joined(rows, begin), np.ones(found.state.size, np.bool_)
        fixed[rows] = False
        solved = yield from solve_sequence(replace(frames, given=given, base=base, fixed=fixed), from_base)
        excess, kept, iterations = found.excess.copy(), found.kept.copy(), found.iterations.copy()
        led, apart = found.led.copy(), found.apart.copy()
        excess[rows], kept[rows] = solved.excess[rows], False
        led[rows], apart[rows] = solved.led[rows], solved.apart[rows]
        iterations[rows] += solved.iterations[rows]
        state = found.state.joined(rows, solved.state.at(rows))
        return Sequence(state, excess, kept, iterations, led, apart)

    found = yield from solve_sequence(frames, from_base)
    asked = frames.limits, ~frames.fixed, frames.base
    return (yield from _in_rounds(frames.problem, frames.given, asked, found, again))


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
    asked: tuple[Limits, Mask, State],
    found: Found,
    again: Callable[[Found, Given, Indices, State], Search[Found]],
) -> Search[Found]:
    """What was found, with what its poses stretch too far solved again until nothing changes.

    Where a held part stays too long, because its limits do not let it bend, it is held as it is: the goals
    are served then. `asked` are the limits, (B,) which poses may be solved again, and where they start.
    """
    if not problem.windows:
        return found
    limits, free, start = asked
    size = found.state.size
    held = np.broadcast_to(given.windows[1] > 0.0, (len(problem.windows), size)).copy()
    released, stuck = np.zeros_like(held), np.zeros_like(held)
    for _ in range(ROUNDS):
        over = problem.overstretched(given, found.state)
        loose = held & ~released & (found.excess > 1.0) & _would_shorten(problem, given, found.state)
        released |= loose
        wanted = (held & ~loose) | (over > SLACK * limits.position)
        late = held & (over > limits.position) & (problem.window_weight > MILD_WEIGHT)
        given = longer(given, np.where(late & stuck, over, 0.0))
        new = ((wanted != held).any(0) | late.any(0)) & free
        if not new.any():
            break
        held = np.where(free, wanted, held)
        given = hold(given, held)
        rows, go_on = at_least_two(np.flatnonzero(new)), np.flatnonzero((late & ~stuck).any(0))
        stuck |= late
        begin = start.joined(go_on, found.state.at(go_on)) if len(go_on) else start
        found = yield from again(found, given, rows, entered(problem, given.at(rows), begin.at(rows)))
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
