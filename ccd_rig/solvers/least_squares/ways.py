"""Which of several ways to its goals each pose of a sequence takes.

Poses may meet their goals in several ways, such as the two sides of a limb, or stall where others do not.
A way costs what it departs from the base, far more where it misses its goals, and what it rotates from one
pose to the next. The cheapest sequence is found by dynamic programming (Viterbi 1967).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...maths.batch import Array, Indices, Mask
from .alone import Alone
from .departures import (
    Departures,
    departed_state,
    departures,
    distances,
    joined,
    largest_changes,
    neighbours,
    sizes,
    some_of,
)
from .frames import Frames, put, solved_at
from .reach import beyond_reach
from .requests import Search, solving
from .solve import Solved

LEAP = 0.35
"""Radians by which a joint may go between neighbouring key poses beside its base: more is another way."""
JUMP = 0.15
"""The same between neighbouring frames."""
MISSED = 1e3
"""What a pose that misses its goals costs, beside radians of rotation."""
WORSE = 30.0
"""What its error costs, in parts of the reach."""
NOTABLE = 0.03
"""Such costs below which ways miss their goals alike."""
FAR_KEYS, FAR_FRAMES = 0.3, 0.1
"""What departures of key poses cost beside the rotations between them, and squared ones of frames beside
squared rotations: of ways that fit together about as well the one nearer to the base is taken."""
ASIDE = 8
"""Frames from a jump within which the switch from one way to the other is looked for in one round."""
ROUNDS = 3
"""How often jumps are looked for."""


# Key poses ------------------------------------------------------------------------------------------


def choose_key_ways(frames: Frames, own: Solved, near: Mask) -> Search[Solved]:
    """Key poses by the ways that fit together best, of those found from base poses and from neighbours.

    Args:
        frames: the key poses' frames.
        own: what was found from the base poses.
        near: (K - 1,) whether a key pose and the next are near enough to be compared.
    """
    layout, given = frames.problem.layout, frames.given
    departed = departures(layout, given, own.state)
    steps = largest_changes(*neighbours(departed))
    # What is out of reach has no other way.
    far = beyond_reach(frames.problem, given, frames.base, frames.limits.position, frames.limits.angle)
    missed = (own.excess > 1.0) & ~far
    if not ((near & (steps > LEAP)).any() or (missed.any() and not missed.all())):
        return own
    offers = [own, *(yield from _continued(frames, own, near))]
    others = [departures(layout, given, offer.state) for offer in offers]
    costs = np.array([_miss_cost(offer) for offer in offers])
    costs += FAR_KEYS * np.array([sizes(each) for each in others])
    links = _links(offers, others, distances)
    return _taken(offers, cheapest(costs, np.where(near, links, 0.0)))


def _continued(frames: Frames, own: Solved, near: Mask) -> Search[list[Solved]]:
    """Key poses once forwards and once backwards: where one leaps from its neighbour, solved on from there.

    All leaps go on at once, and each as far as it leads elsewhere.
    """
    problem, given, base, limits = frames.problem, frames.given, frames.base, frames.limits
    count = own.state.size
    found = [own, own]
    fresh = np.ones((2, count), dtype=np.bool_)  # changed since what comes after it was solved
    for _ in range(count):
        rows, starts = [], []
        for way, sign in enumerate((1, -1)):
            here = np.arange(1, count) if sign > 0 else np.arange(count - 1)
            before = _sources(own.excess[here] <= 1.0, found[way].excess <= 1.0, here - sign, sign)
            departed = departures(problem.layout, given, found[way].state)
            steps = largest_changes(some_of(departed, before), some_of(departed, here))
            stuck = (own.excess[here] > 1.0) & (found[way].excess[before] <= 1.0)
            go = near & ~frames.fixed[here] & fresh[way, before] & ((steps > LEAP) | stuck)
            rows.append(here[go])
            starts.append(some_of(departed, before[go]))
            fresh[way] = False
        if not any(len(each) for each in rows):
            break
        every = np.concatenate(rows)
        start = departed_state(problem.layout, given.at(every), base.at(every), joined(starts))
        others = yield from solving(problem, given.at(every), start, limits.at(every))
        first = 0
        for way, each in enumerate(rows):
            mine = np.arange(first, first + len(each))
            first += len(each)
            good = mine[others.excess[mine] <= np.maximum(1.0, own.excess[each])]
            known = departures(problem.layout, given.at(every[good]), found[way].state.at(every[good]))
            other = departures(problem.layout, given.at(every[good]), others.state.at(good))
            fresh[way, every[good]] = largest_changes(known, other) > JUMP
            found[way] = put(found[way], every[good], solved_at(others, good))
    return found


def _sources(own: Mask, met: Mask, before: Indices, sign: int) -> Indices:
    """Where key poses go on from: those before, or beyond a stretch out of reach the last that met goals."""
    places = np.arange(len(met))
    if sign > 0:
        last = np.maximum.accumulate(np.where(met, places, -1))[before]
    else:
        last = np.minimum.accumulate(np.where(met, places, len(met))[::-1])[::-1][before]
    return np.asarray(np.where(own & (last >= 0) & (last < len(met)), last, before))


# Frames ---------------------------------------------------------------------------------------------


def mend_jumps(frames: Frames, found: Solved, alone: Alone) -> Search[tuple[Solved, Alone]]:
    """The frames without the jumps that another way avoids, and what was learned of where bases lead alone.

    The two frames of a jump, and those between which goals begin or end to be missed, are solved from their
    base poses and from each other's departures. Where this leads another way all frames about the jump are,
    and the switch is made where the ways are nearest to each other.
    """
    size, stop = found.state.size, frames.limits
    tried = np.zeros(size, dtype=np.bool_)
    # What is out of reach has no other way.
    far = beyond_reach(frames.problem, frames.given, frames.base, stop.position, stop.angle)
    for _ in range(ROUNDS):
        departed = departures(frames.problem.layout, frames.given, found.state)
        missed = (found.excess > 1.0) & ~far
        jumps = largest_changes(*neighbours(departed)) > JUMP
        marked = frames.together & (jumps | (missed[1:] != missed[:-1]))
        places = np.flatnonzero(marked & ~(tried[1:] & tried[:-1]))
        tried[places] = tried[places + 1] = True
        elsewhere, alone = yield from _leads_elsewhere(frames, found, places, far, alone)
        places = places[elsewhere]
        if not len(places):
            break
        rows = np.unique(np.clip(places[:, None] + np.arange(1 - ASIDE, ASIDE + 1), 0, size - 1))
        free = rows[~frames.fixed[rows]]
        others = [np.clip(free + aside, 0, size - 1) for aside in (-ASIDE, ASIDE)]
        offers = yield from _offers(frames, found, free, others)
        found, alone = _with_best_ways(frames, found, rows, offers), alone.noted(free, offers[0])
    return found, alone


def _leads_elsewhere(
    frames: Frames, found: Solved, places: Indices, far: Mask, alone: Alone
) -> Search[tuple[Mask, Alone]]:
    """(P,) whether there is another way for a frame or the next, from the base or from each other.

    That is one that meets goals which are missed, or goes elsewhere and misses no more. There is none for
    frames out of reach, (F,) `far`. `alone` is returned with what was learned.
    """
    pairs = np.concatenate((places, places + 1))
    partners = np.concatenate((places + 1, places))
    free = np.flatnonzero(~(frames.fixed | far)[pairs])
    elsewhere = np.zeros(len(pairs), dtype=np.bool_)
    if len(free):
        rows = pairs[free]
        own = solved_at(found, rows)
        given, layout = frames.given.at(rows), frames.problem.layout
        mine = departures(layout, given, own.state)
        offers = yield from _offers(frames, found, rows, [partners[free]])
        alone = alone.noted(rows, offers[0])
        for offer in offers:
            changed = largest_changes(mine, departures(layout, given, offer.state)) > JUMP / 2
            cost, now = _miss_cost(offer), _miss_cost(own)
            elsewhere[free] |= (cost < now - NOTABLE) | (changed & (cost <= now + NOTABLE))
    return elsewhere[: len(places)] | elsewhere[len(places) :], alone


def _offers(frames: Frames, found: Solved, rows: Indices, others: Sequence[Indices]) -> Search[list[Solved]]:
    """Frames solved from their base poses, and with the departures of others; all at once."""
    layout = frames.problem.layout
    departed = departures(layout, frames.given, found.state)
    none = some_of(departed, rows)
    none = (np.zeros_like(none[0]), np.zeros_like(none[1]), np.zeros_like(none[2]))
    none[0][0] = 1.0
    parts = [none, *(some_of(departed, other) for other in others)]
    every = np.tile(rows, len(parts))
    given = frames.given.at(every)
    start = departed_state(layout, given, frames.base.at(every), joined(parts))
    solved = yield from solving(frames.problem, given, start, frames.limits.at(every))
    return [solved_at(solved, part) for part in np.split(np.arange(len(every)), len(parts))]


def _with_best_ways(frames: Frames, found: Solved, rows: Indices, offers: Sequence[Solved]) -> Solved:
    """The frames with the best ways of some of them; offers are of those that need not be kept."""
    layout, last = frames.problem.layout, len(frames.fixed) - 1
    free = np.flatnonzero(~frames.fixed[rows])
    own = solved_at(found, rows)
    offers = [own, *(put(own, free, offer) for offer in offers)]
    given = frames.given.at(rows)
    others = [departures(layout, given, offer.state) for offer in offers]
    costs = np.array([_miss_cost(offer) for offer in offers])
    costs += FAR_FRAMES * np.array([sizes(each) ** 2 for each in others])
    joins = (np.diff(rows) == 1) & frames.together[rows[:-1]]
    links = np.where(joins, _links(offers, others, lambda a, b: distances(a, b) ** 2), 0.0)
    # What comes before and after stays as it is.
    for ends, beyond in ((np.append(True, ~joins), rows - 1), (np.append(~joins, True), rows + 1)):
        k = np.flatnonzero(ends & (beyond >= 0) & (beyond <= last))
        k = k[frames.together[np.minimum(rows, beyond)[k]] & (found.excess[beyond[k]] <= 1.0)]
        outside = departures(layout, frames.given.at(beyond[k]), found.state.at(beyond[k]))
        steps = np.array([distances(outside, some_of(each, k)) ** 2 for each in others])
        costs[:, k] += np.where([offer.excess[k] > 1.0 for offer in offers], 0.0, steps)
    return put(found, rows, _taken(offers, cheapest(costs, links)))


# The cheapest sequence ------------------------------------------------------------------------------


def cheapest(costs: Array, links: Array) -> Indices:
    """(K,) the offer to take of each pose.

    Args:
        costs: (C, K) of each offer.
        links: (C, C, K - 1) from an offer (second place) to one of the next pose (first place).
    """
    count = costs.shape[1]
    total, back = costs[:, 0], np.zeros(costs.shape, dtype=np.intp)
    for k in range(1, count):
        ways = total[None] + links[..., k - 1]
        back[:, k] = ways.argmin(1)
        total = ways.min(1) + costs[:, k]
    chosen = np.zeros(count, dtype=np.intp)
    chosen[-1] = int(total.argmin())
    for k in range(count - 1, 0, -1):
        chosen[k - 1] = back[chosen[k], k]
    return chosen


def _links(
    offers: Sequence[Solved], others: Sequence[Departures], cost: Callable[[Departures, Departures], Array]
) -> Array:
    """(C, C, K - 1) what it costs from each offer (second place) to each of the next pose.

    From and to poses that miss their goals it costs nothing: out of reach there is one way only, and a
    stretched limb is as near to one side as to the other.
    """
    before = [neighbours(each)[0] for each in others]
    after = [neighbours(each)[1] for each in others]
    found = np.array([[cost(a, b) for a in before] for b in after])
    missed = np.array([offer.excess > 1.0 for offer in offers])
    return np.where(missed[None, :, :-1] | missed[:, None, 1:], 0.0, found)


def _miss_cost(offer: Solved) -> Array:
    """(K,) what it costs to miss goals."""
    return np.asarray(np.where(offer.excess <= 1.0, 0.0, MISSED + WORSE * np.sqrt(offer.square)))


def _taken(offers: Sequence[Solved], chosen: Indices) -> Solved:
    """The offers that are taken."""
    found = offers[0]
    for number, offer in enumerate(offers[1:], start=1):
        some = np.flatnonzero(chosen == number)
        found = put(found, some, solved_at(offer, some))
    return found
