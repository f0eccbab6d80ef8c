"""The frames of a shot, each for itself: of the poses that meet a frame's goals the one nearest to its base.

Frames whose base pose meets the goals keep it to the bit. Of the others key poses are solved from their base
poses, all at once; the departures from the base between two of them are interpolated, and every frame is
brought to its goals from there. No frame depends on the one before it but where there are several ways to
meet its goals: there the key poses choose the ways that fit together best. A sudden change that the goals do
not ask for is spread over the frames about it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...maths.batch import Array, Indices, Mask
from .alone import Alone, where_bases_lead
from .departures import departed_state, departures, interpolated
from .easing import eased
from .frames import Frames, put, solved_at
from .requests import Search, solving
from .solve import Solved
from .state import Given, State
from .ways import choose_key_ways, mend_jumps

STRIDE = 16
"""Frames from one key pose to the next."""
CLOSE, MOST = 0.1, 0.75
"""Residual up to which a base pose is near its goals, and the part of the frames that has to be: then all
start from their base poses, without key poses."""
RUN, ROOM = 128, 8192
"""Fewest frames that are solved in one go, and about how many columns of all of them together: few calls, and
arrays that stay near the processor."""
KEY_AT_REST = 1e-3
"""Radians by which the joints of a key pose may still want back to the base: see `solve.AT_REST`."""


@dataclass(frozen=True)
class Sequence:
    """What the frames ended as.

    Attributes:
        state: of all frames.
        excess: (F,) the largest miss in tolerances: up to 1 all goals are met.
        kept: (F,) whether the base pose was left as it was.
        iterations: (F,) steps tried.
        led: (F,) whether a frame meets its goals, but not in the way that its base pose alone leads: the
            frames beside it have decided, or a sudden change is spread over it.
        apart: (F,) radians of the largest rotation of a joint from a frame that is led to where its base
            pose alone leads, if goals are met there as well; else 0.
    """

    state: State
    excess: Array
    kept: Mask
    iterations: Indices
    led: Mask
    apart: Array

    @classmethod
    def each_alone(cls, solved: Solved, kept: Mask) -> Sequence:
        """Frames that were solved without regard to one another."""
        none = np.zeros(len(kept), dtype=np.bool_)
        return cls(solved.state, solved.excess, kept, solved.iterations, none, np.zeros(len(kept)))

    def at(self, some: Indices) -> Sequence:
        """Some of them."""
        return Sequence(
            self.state.at(some),
            self.excess[some],
            self.kept[some],
            self.iterations[some],
            self.led[some],
            self.apart[some],
        )


def solve_sequence(frames: Frames, from_base: bool = True) -> Search[Sequence]:
    """Solve frames in order of time, the base pose of each being its reference.

    Key poses stand at multiples of `STRIDE` and at the ends of what is solved, so that a frame between two
    of them ends alike in any range that holds both and their neighbours. Where most base poses are near
    their goals none are needed, unless some frames are fixed, whose ways lead on from one key pose to the
    next.

    Args:
        frames: what is solved; what is fixed stands as its base state says, others choose their ways to fit.
        from_base: whether frames start from their base poses; else the base states are where each starts,
            none is kept, and all that meet their goals count as led.
    """
    first = _first_of_its_kind(frames.given, frames.base)
    if not first.all():
        once = yield from solve_sequence(frames.at(first), from_base)
        once = once.at(np.cumsum(first) - 1)
        return replace(once, iterations=once.iterations * first)
    problem, given, base, limits = frames.problem, frames.given, frames.base, frames.limits
    residual = problem.evaluate(given, base)
    excess = residual.excess(limits.position, limits.angle)
    kept = (excess <= 1.0) & ~frames.fixed & from_base
    found = Solved(
        base, excess, residual.square, np.zeros(base.size, dtype=np.intp), np.zeros(base.size, dtype=np.bool_)
    )
    rows = np.flatnonzero(~kept & ~frames.fixed)
    if not len(rows) or not problem.layout.columns:
        return Sequence.each_alone(found, kept)
    start, alone = base.at(rows), Alone(kept, found)
    keys = _key_rows(kept | frames.fixed, frames.times)
    is_close = (residual.square[rows] <= CLOSE * CLOSE).mean() >= MOST and not frames.fixed.any()
    is_keyed = from_base and not is_close and len(keys) < len(rows)
    if is_keyed:
        places = np.union1d(keys, np.flatnonzero(frames.fixed))
        chosen, own = yield from _solve_keys(frames.at(places))
        found, alone = put(found, places, chosen), alone.noted(places, own)
        start = _interpolated(frames, found.state, _anchors(kept, keys), rows)
    steps = found.iterations
    found = yield from _brought_to_goals(frames, found, rows, start)
    if from_base and not is_keyed:
        alone = alone.noted(rows, solved_at(found, rows))
    frames = replace(frames, fixed=kept | frames.fixed)
    found, alone = yield from mend_jumps(frames, found, alone)
    calm = yield from eased(frames, found)
    led: Mask = ~frames.fixed & (calm.excess <= 1.0)
    apart: Array = np.zeros(base.size)
    if from_base:
        alone = yield from where_bases_lead(frames, found, alone)
        # Others ended where they would alone, until sudden changes were spread.
        others = np.flatnonzero(~alone.known)
        led, apart = alone.noted(others, solved_at(found, others)).led(frames, calm)
    return Sequence(calm.state, calm.excess, kept, calm.iterations + steps, led, apart)


def _brought_to_goals(frames: Frames, found: Solved, rows: Indices, start: State) -> Search[Solved]:
    """What was found, with some frames solved from where they start."""
    count = max(RUN, ROOM // frames.problem.layout.columns)
    for run in range(0, len(rows), count):
        part = np.arange(run, min(run + count, len(rows)))
        some = rows[part]
        given, limits = frames.given.at(some), frames.limits.at(some)
        found = put(
            found, some, (yield from solving(frames.problem, given, start.at(part), limits, is_first=True))
        )
    return found


def _first_of_its_kind(given: Given, base: State) -> Mask:
    """(F,) frames that differ from the one before them: while nothing changes a chain rests."""
    arrays = [given.rests, given.shifts, given.points, given.slide_axes, *given.targets, base.rotations]
    arrays += [base.slides, *(given.reference or ())]
    found = np.zeros(base.size, dtype=np.bool_)
    found[0] = True
    for values in arrays:
        if values.shape[-1] > 1 and values.size:
            found[1:] |= (values[..., 1:] != values[..., :-1]).reshape(-1, base.size - 1).any(0)
    return found


def _key_rows(kept: Mask, times: Array) -> Indices:
    """Frames that are solved first: the ends of each run that is solved, and one of each `STRIDE` frames."""
    cells = np.floor(times / STRIDE)
    first = np.concatenate(([True], cells[1:] != cells[:-1]))
    before, after = np.concatenate(([True], kept[:-1])), np.concatenate((kept[1:], [True]))
    return np.flatnonzero(~kept & (first | before | after))


def _anchors(kept: Mask, keys: Indices) -> Indices:
    """Frames between which departures are interpolated: key poses, and what is kept beside them."""
    beside = np.concatenate((keys - 1, keys + 1))
    beside = beside[(beside >= 0) & (beside < len(kept))]
    return np.unique(np.concatenate((keys, beside[kept[beside]])))


def _solve_keys(frames: Frames) -> Search[tuple[Solved, Solved]]:
    """Key poses, where neighbours leap in the ways that fit best; and where their base poses alone lead."""
    problem, limits = frames.problem, replace(frames.limits, rest=KEY_AT_REST)
    free = np.flatnonzero(~frames.fixed)
    solved = yield from solving(problem, frames.given.at(free), frames.base.at(free), limits.at(free))
    if len(free) < frames.base.size:
        residual = problem.evaluate(frames.given, frames.base)
        none = np.zeros(frames.base.size, dtype=np.intp)
        excess = residual.excess(limits.position, limits.angle)
        solved = put(Solved(frames.base, excess, residual.square, none, none > 0), free, solved)
    near = np.diff(frames.times) < 2 * STRIDE
    return (yield from choose_key_ways(replace(frames, limits=limits), solved, near)), solved


# Starts ---------------------------------------------------------------------------------------------


def _interpolated(frames: Frames, solved: State, anchors: Indices, rows: Indices) -> State:
    """Where frames start: their base poses with departures on smooth curves through those of the anchors."""
    layout, given, base, times = frames.problem.layout, frames.given, frames.base, frames.times
    whole = replace(given, reference=(base.rotations[:, layout.ball_rows], base.angles, base.slides))
    departed = departures(layout, whole.at(anchors), solved.at(anchors))
    between = interpolated(times[anchors], departed, times[rows])
    return departed_state(layout, given.at(rows), base.at(rows), between)
