"""Sudden changes between frames made gradual, where goals leave room for it.

The nearest pose to the base may change at once, though goals and base change little: a valley of the
departure ends, or a limb is about to be stretched. Such a change is spread over the frames about it. Their
departures are put on a smooth curve; from there they are brought to their goals by the least rotations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...maths.batch import Array, Indices, Mask, conjugate, logarithm, multiply
from ...maths.small_systems import products, solved
from .departures import (
    Departures,
    departed_state,
    departures,
    interpolated,
    joined,
    largest_changes,
    neighbours,
    some_of,
)
from .frames import Frames, put, solved_at
from .metric import Metric
from .requests import Search, solving
from .solve import Solved
from .state import to_model
from .way_back import LEAST_DAMPING

SUDDEN, TIMES = 0.03, 2.0
"""Radians from a frame to the next that goals leave free, and times the median of the changes about it, above
which a change is sudden."""
ABOUT = 8
"""Frames to either side over which it is spread."""
STEPS = 5
"""Most steps of a frame from its curve to its goals: what is much farther away was not to be spread."""
CALMER = 0.9
"""Part of the largest change that may be left for the spread to be taken."""


def eased(frames: Frames, found: Solved) -> Search[Solved]:
    """The frames with sudden changes spread over the frames about them.

    Frames that are fixed, or miss their goals, stay as they are. So does what would not become calmer.
    """
    departed = departures(frames.problem.layout, frames.given, found.state)
    steps = _steps(departed)
    free = ~frames.fixed & (found.excess <= 1.0)
    sudden = _sudden(steps) & frames.together & (free[1:] | free[:-1])
    some = np.flatnonzero(sudden)
    if len(some):
        sudden[some] = _left_free(frames, found, departed, some) > SUDDEN
    spans = _spans(np.flatnonzero(sudden), free, frames.together)
    if not spans:
        return found
    rows = np.concatenate([np.arange(first + 1, last) for first, last in spans])
    others = yield from _brought(frames, rows, joined([_curved(frames, departed, span) for span in spans]))
    offered = departures(frames.problem.layout, frames.given.at(rows), others.state)
    taken, start = [], 0
    for first, last in spans:
        own = np.arange(start, start + last - first - 1)
        start += len(own)
        ends = (some_of(departed, np.array([end])) for end in (first, last))
        after = _steps(joined([next(ends), some_of(offered, own), next(ends)]))
        if (others.excess[own] <= 1.0).all() and after.max() <= CALMER * steps[first:last].max():
            taken.append(own)
    if not taken:
        return found
    every = np.concatenate(taken)
    return put(found, rows[every], solved_at(others, every))


def _steps(departed: Departures) -> Array:
    """(F - 1,) the largest changes from frame to frame."""
    return largest_changes(*neighbours(departed))


def _sudden(steps: Array) -> Mask:
    """(F - 1,) which changes are far larger than those about them."""
    found: Mask = steps > SUDDEN
    some = np.flatnonzero(found)
    whole = (some >= ABOUT) & (some < len(steps) - ABOUT)
    if whole.any():
        about = np.lib.stride_tricks.sliding_window_view(steps, 2 * ABOUT + 1)
        inner = some[whole]
        found[inner] = steps[inner] > TIMES * np.median(about[inner - ABOUT], axis=1)
    for f in some[~whole].tolist():
        found[f] = steps[f] > TIMES * np.median(steps[max(f - ABOUT, 0) : f + ABOUT + 1])
    return found


def _left_free(frames: Frames, found: Solved, departed: Departures, some: Indices) -> Array:
    """(B,) radians, the largest rotation of a joint from frames to the next that goals do not ask for."""
    problem, layout = frames.problem, frames.problem.layout
    given, state = frames.given.at(some), found.state.at(some)
    before, after = some_of(departed, some), some_of(departed, some + 1)
    change = np.zeros((layout.columns, len(some)))
    change[: layout.first_ball] = after[1] - before[1]
    turned = to_model(layout, state, logarithm(multiply(conjugate(before[0]), after[0])))
    change[layout.first_ball : layout.first_slide] = turned.reshape(-1, len(some))
    change[layout.first_slide :] = (after[2] - before[2]) / given.reach
    slope = problem.jacobian(given, problem.evaluate(given, state))[1]
    weighted = Metric(layout, given.bends, state).apply(slope.copy())
    asked = np.einsum("mkb,kb->mb", slope, change)
    multipliers = solved(products(slope, weighted, True), np.full(len(some), LEAST_DAMPING), asked)
    change -= np.einsum("mkb,mb->kb", weighted, multipliers)
    balls = change[layout.first_ball : layout.first_slide].reshape(-1, 3, len(some))
    return np.asarray(
        np.concatenate((np.abs(change[: layout.first_ball]), np.sqrt((balls * balls).sum(1)))).max(0)
    )


def _spans(sudden: Indices, free: Mask, together: Mask) -> list[tuple[int, int]]:
    """First and last frame of each stretch that is to be eased; these two stay, and all between is free."""
    found: list[tuple[int, int]] = []
    for f in sudden.tolist():
        first, last = f, f + 1
        while first > 0 and f - first < ABOUT and free[first] and together[first - 1]:
            first -= 1
        while last < len(free) - 1 and last - f - 1 < ABOUT and free[last] and together[last]:
            last += 1
        if found and first < found[-1][1]:
            first, last = found.pop()[0], last
        if last - first > 1:
            found.append((first, last))
    return found


def _curved(frames: Frames, departed: Departures, span: tuple[int, int]) -> Departures:
    """The departures between the ends of a stretch on smooth curves."""
    first, last = span
    size = len(frames.fixed)
    anchors = [first, last]
    if first > 0 and frames.together[first - 1]:
        anchors.insert(0, first - 1)
    if last < size - 1 and frames.together[last]:
        anchors.append(last + 1)
    at = np.array(anchors)
    times = frames.times
    return interpolated(times[at], some_of(departed, at), times[first + 1 : last])


def _brought(frames: Frames, rows: Indices, departed: Departures) -> Search[Solved]:
    """Frames brought to their goals from poses with these departures, by the least rotations."""
    layout, given = frames.problem.layout, frames.given.at(rows)
    start = departed_state(layout, given, frames.base.at(rows), departed)
    limits = replace(frames.limits.at(rows), iterations=min(STEPS, frames.limits.iterations))
    return solving(frames.problem, replace(given, reference=None), start, limits)
