"""The frames of a shot, each for itself: of the poses that meet a frame's goals the one nearest to its base.

Frames whose base pose meets the goals keep it to the bit. Of the others key poses are solved from their base
poses, all at once; the departures from the base between two of them are interpolated, and every frame is
brought to its goals from there. No frame depends on the one before it but where there are several ways to
meet its goals: there the key poses choose the ways that fit together best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...maths.batch import Array, Indices, Mask, conjugate, logarithm, multiply, unit
from .layout import Layout
from .problem import LeastSquaresProblem
from .solve import Limits, Solved, solve_batch
from .state import Given, State, rebuilt

STRIDE = 16
"""Frames from one key pose to the next."""
SETTLED = 6
"""Steps between key poses after which a pose that meets its goals stays: limits bend the way it takes."""
RUN, ROOM = 128, 8192
"""Fewest frames that are solved in one go, and about how many columns of all of them together: few calls, and
arrays that stay near the processor."""
KEY_AT_REST = 1e-3
"""Radians by which the joints of a key pose may still want back to the base: see `solve.AT_REST`."""
LEAP = 0.35
"""Radians by which a joint may go between neighbouring key poses beside its base: more is another way."""
MISSED = 1e3
"""What a key pose that misses its goals counts beside radians of rotation from one to the next."""


@dataclass(frozen=True)
class Sequence:
    """What the frames ended as.

    Attributes:
        state: of all frames.
        excess: (F,) the largest miss in tolerances: up to 1 all goals are met.
        kept: (F,) whether the base pose was left as it was.
        iterations: (F,) steps tried.
    """

    state: State
    excess: Array
    kept: Mask
    iterations: Indices


def solve_sequence(
    problem: LeastSquaresProblem, given: Given, base: State, limits: Limits, times: Array
) -> Sequence:
    """Solve frames in order of time, the base pose of each being its reference.

    Key poses stand at multiples of `STRIDE` and at the ends of what is solved, so that a frame between two
    of them ends alike in any range that holds both and their neighbours.

    Args:
        problem: what all frames share.
        given: what each brings; its reference is the base pose.
        base: the base poses, inside the limits.
        limits: when to stop.
        times: (F,) frame numbers, increasing.
    """
    first = _first_of_its_kind(given, base)
    if not first.all():
        once = solve_sequence(problem, given.at(first), base.at(first), limits.at(first), times[first])
        which = np.cumsum(first) - 1
        return Sequence(
            once.state.at(which), once.excess[which], once.kept[which], once.iterations[which] * first
        )
    excess = problem.evaluate(given, base).excess(limits.position, limits.angle)
    kept = excess <= 1.0
    iterations = np.zeros(base.size, dtype=np.intp)
    rows = np.flatnonzero(~kept)
    if not len(rows) or not problem.layout.columns:
        return Sequence(base, excess, kept, iterations)
    state = base
    keys = _key_rows(kept, times)
    start = base.at(rows)
    if len(keys) < len(rows):
        found = _solve_keys(problem, given, base, limits, keys)
        excess[keys], iterations[keys] = found.excess, found.iterations
        state = base.joined(keys, found.state)
        start = _interpolated(problem.layout, given.at(rows), base, state, _anchors(kept, keys), rows, times)
    stop = replace(limits, settled=SETTLED)
    count = max(RUN, ROOM // problem.layout.columns)
    for run in range(0, len(rows), count):
        part = slice(run, run + count)
        some = rows[part]
        found = solve_batch(problem, given.at(some), start.at(np.arange(len(rows))[part]), stop.at(some))
        excess[some], state = found.excess, state.joined(some, found.state)
        iterations[some] += found.iterations
    return Sequence(state, excess, kept, iterations)


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


# Key poses ------------------------------------------------------------------------------------------


def _solve_keys(
    problem: LeastSquaresProblem, given: Given, base: State, limits: Limits, keys: Indices
) -> Solved:
    """Key poses from their base poses; where neighbours leap, the ways that fit together best."""
    given, start, limits = given.at(keys), base.at(keys), replace(limits.at(keys), rest=KEY_AT_REST)
    best = solve_batch(problem, given, start, limits)
    near = np.diff(keys) <= STRIDE
    steps = _apart(problem.layout, given, best.state, np.arange(1, len(keys)), np.arange(len(keys) - 1))
    # What is out of reach has no other way.
    missed = (best.excess > 1.0) & ~problem.beyond_reach(given, start, limits.position, limits.angle)
    if not ((near & (steps > LEAP)).any() or (missed.any() and not missed.all())):
        return best
    offers = [
        _continued(problem, given.at(order), start.at(order), limits.at(order), _at(best, order), keys[order])
        for order in (np.arange(len(keys)), np.arange(len(keys))[::-1])
    ]
    offers[1] = _at(offers[1], np.arange(len(keys))[::-1])
    chosen = _choose(problem.layout, given, [best, *offers])
    for number, offer in enumerate(offers, start=1):
        best = _replaced(best, np.flatnonzero(chosen == number), offer)
    return best


def _continued(
    problem: LeastSquaresProblem, given: Given, start: State, limits: Limits, own: Solved, keys: Indices
) -> Solved:
    """Key poses in turn: where one leaps from that before it, the way that goes on from there."""
    layout, found = problem.layout, _at(own, np.arange(len(keys)))
    for k in range(1, len(keys)):
        here, before = np.array([k]), np.array([k - 1])
        if abs(int(keys[k] - keys[k - 1])) > STRIDE:
            continue
        met = own.excess[k] <= 1.0 or found.excess[k - 1] > 1.0
        if met and _apart(layout, given, found.state, here, before)[0] <= LEAP:
            continue
        departed = _departures(layout, given.at(before), found.state.at(before))
        first = _departed_state(layout, given.at(here), start.at(here), departed)
        other = solve_batch(problem, given.at(here), first, limits.at(here))
        if other.excess[0] <= max(1.0, own.excess[k]):
            found = _replaced(
                found, here, replace(other, state=found.state.joined(here, other.state)), whole=False
            )
    return found


def _at(solved: Solved, some: Indices) -> Solved:
    """Those of some of the poses."""
    return Solved(
        solved.state.at(some),
        solved.excess[some],
        solved.square[some],
        solved.iterations[some],
        solved.stalled[some],
    )


def _choose(layout: Layout, given: Given, offers: list[Solved]) -> Indices:
    """(K,) which offer to take at each key pose: the least rotations from one to the next (Viterbi 1967)."""
    count = offers[0].state.size
    cost = np.array([np.where(offer.excess <= 1.0, 0.0, MISSED) for offer in offers])
    far = np.array([_size(_departures(layout, given, offer.state)) for offer in offers])
    cost = cost + 1e-3 * far  # of ways that fit together equally well the one nearer to the base
    departed = [_departures(layout, given, offer.state) for offer in offers]
    total, back = cost[:, 0], np.zeros((len(offers), count), dtype=np.intp)
    for k in range(1, count):
        steps = np.array([[_distance(a, b, k - 1, k) for a in departed] for b in departed])  # [to, from]
        ways = total[None] + steps
        back[:, k] = ways.argmin(1)
        total = ways.min(1) + cost[:, k]
    chosen = np.zeros(count, dtype=np.intp)
    chosen[-1] = int(total.argmin())
    for k in range(count - 1, 0, -1):
        chosen[k - 1] = back[chosen[k], k]
    return chosen


def _replaced(best: Solved, some: Indices, other: Solved, whole: bool = True) -> Solved:
    """Others in place of some of the poses: those at the same places of a whole, or just as many."""
    if not len(some):
        return best
    theirs = some if whole else np.arange(len(some))
    found = _at(best, np.arange(best.state.size))
    state = other.state if other.state.size == best.state.size and not whole else None
    for mine, others in (
        (found.excess, other.excess),
        (found.square, other.square),
        (found.iterations, other.iterations),
        (found.stalled, other.stalled),
    ):
        mine[some] = others[theirs]
    return replace(found, state=state or best.state.joined(some, other.state.at(some)))


# Departures from the base ---------------------------------------------------------------------------

Departures = tuple[Array, Array, Array]
"""(4, balls, B) rotations from the base, (h, B) angles and (s, B) shifts."""


def _departures(layout: Layout, given: Given, state: State) -> Departures:
    assert given.reference is not None
    balls, angles, slides = given.reference
    turned = multiply(conjugate(balls), state.rotations[:, layout.ball_rows])
    return np.where(turned[0] < 0.0, -turned, turned), state.angles - angles, state.slides - slides


def _departed_state(layout: Layout, given: Given, base: State, departed: Departures) -> State:
    """The base poses with these departures, inside the limits of hinges and slides."""
    assert given.reference is not None
    balls, angles, slides = given.reference
    return rebuilt(
        layout, given, base, unit(multiply(balls, departed[0])), angles + departed[1], slides + departed[2]
    )


def _distance(a: Departures, b: Departures, i: int, j: int) -> float:
    """Radians (root of the sum of squares) from a departure to another."""
    balls = logarithm(multiply(conjugate(a[0][..., i]), b[0][..., j]))
    angles = a[1][:, i] - b[1][:, j]
    return float(np.sqrt((balls * balls).sum() + (angles * angles).sum()))


def _size(departed: Departures) -> Array:
    balls = logarithm(departed[0])
    return np.asarray(np.sqrt((balls * balls).sum((0, 1)) + (departed[1] * departed[1]).sum(0)))


def _apart(layout: Layout, given: Given, state: State, here: Indices, there: Indices) -> Array:
    """(K,) the largest rotation of a joint, beside its base, from one pose to another."""
    balls, angles, _ = _departures(layout, given, state)
    found = np.zeros(len(here))
    if len(layout.balls):
        turned = logarithm(multiply(conjugate(balls[..., there]), balls[..., here]))
        found = np.sqrt((turned * turned).sum(0)).max(0)
    if len(angles):
        found = np.maximum(found, np.abs(angles[:, here] - angles[:, there]).max(0))
    return found


def _interpolated(
    layout: Layout,
    given: Given,
    base: State,
    solved: State,
    anchors: Indices,
    rows: Indices,
    times: Array,
) -> State:
    """Where frames start: their base poses with departures on smooth curves through those of the anchors."""
    assert given.reference is not None
    whole = replace(given, reference=(base.rotations[:, layout.ball_rows], base.angles, base.slides))
    balls, angles, slides = _departures(layout, whole, solved)
    balls, angles, slides = (values[..., anchors] for values in (balls, angles, slides))
    found = tuple(_curve(times[anchors], values, times[rows]) for values in (balls, angles, slides))
    return _departed_state(layout, given, base.at(rows), (unit(found[0]), found[1], found[2]))


def _curve(at: Array, values: Array, wanted: Array) -> Array:
    """Cubics through values (..., K) at places, with the slopes of the neighbours (Catmull & Rom 1974)."""
    if len(at) == 1:
        return np.repeat(values, len(wanted), axis=-1)
    spans = np.diff(at)
    chords = np.diff(values, axis=-1) / spans
    slopes = np.empty_like(values)
    slopes[..., 0], slopes[..., -1] = chords[..., 0], chords[..., -1]
    slopes[..., 1:-1] = (chords[..., :-1] * spans[1:] + chords[..., 1:] * spans[:-1]) / (
        spans[:-1] + spans[1:]
    )
    if len(at) > 2:  # at the ends as bent as in the middle of the span
        slopes[..., 0] = 2.0 * chords[..., 0] - slopes[..., 1]
        slopes[..., -1] = 2.0 * chords[..., -1] - slopes[..., -2]
    i = np.clip(np.searchsorted(at, wanted, side="right") - 1, 0, len(spans) - 1)
    span = spans[i]
    t = (wanted - at[i]) / span
    found = values[..., i] + t * span * chords[..., i]
    found += (
        t
        * (1.0 - t)
        * span
        * ((1.0 - t) * (slopes[..., i] - chords[..., i]) - t * (slopes[..., i + 1] - chords[..., i]))
    )
    return np.asarray(found)
