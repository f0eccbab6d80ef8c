"""How `solve_many` searches: comfort before limits, other starts for what missed, then as near as it gets.

What happens to a pose depends on that pose alone: runs, rounds and chunks only decide what is worked out
together.
"""

from __future__ import annotations

from random import Random

import numpy as np

from ..limits.shapes import Limit
from ..maths.batch import Array, Indices, Mask, multiply, select, unit
from ..skeleton.pose import Pose
from .least_squares.solve import HURRIED_GAIN, PATIENT_GAIN
from .least_squares.state import Poses
from .many_input import ManyInput
from .many_stages import RUN, Found, Stage, gains
from .restarts import StartSpace, is_free, starts

HURRIED_STEPS = 40
"""Most steps from one of the other starts."""
NUDGES, NUDGE = 8, 0.05
"""So many small steps are looked at where nothing is won any more; standard deviation, radians."""
SADDLE = 1e-6
"""Part of the square error that a nudge must win, to go on from there."""
SAME = 1e-12
"""Rotations whose dot product differs from 1 by less are the same."""
ROUNDS = 2
"""How often poses as near as they get are nudged."""


def search(given: ManyInput) -> tuple[Found, Found, Stage]:
    """The best poses inside the limits, the starts inside them, and the stage of all goals and limits."""
    limits = [joint.limit for joint in given.skeleton.joints]
    proper = Stage(given, limits)
    everything = np.arange(given.size)
    start = proper.measure(everything, given.poses)
    if given.tolerances.any():
        return _relaxed(given, proper, start), start, proper
    best = _first(given, proper)
    _other_starts(given, proper, limits, best)
    _as_near(proper, best)
    _earlier_first(given, proper, limits, best)
    worse = gains(start.score, best.score, proper.tolerance)
    best.put(everything, start, worse)
    return best, start, proper


def _first(given: ManyInput, proper: Stage) -> Found:
    """From the given poses: inside the comfort regions, and from there inside the limits."""
    gain = HURRIED_GAIN if given.settings.restarts else PATIENT_GAIN
    regions = _regions(given)
    stage = proper if regions is None else Stage(given, regions)
    best = stage.measure(np.arange(given.size), given.poses)
    some = np.flatnonzero((best.excess > 1.0) | ~_at_reference(given, best.poses))
    if len(some):
        _take(best, some, stage.solve(some, best.poses.at(some), gain))
    missed = best.missed
    if regions is not None and len(missed):
        _take(best, missed, proper.solve(missed, best.poses.at(missed), gain, again=True))
    return best


def _relaxed(given: ManyInput, proper: Stage, start: Found) -> Found:
    """As far as comfort tolerances let joints: inside the comfort regions, from there inside the limits."""
    regions = _regions(given)
    best, some = start.at(np.arange(given.size)), np.flatnonzero(start.excess > 1.0)
    for stage in (proper,) if regions is None else (Stage(given, regions), proper):
        if not len(some):
            break
        inside = stage.measure(some, best.poses.at(some))
        ahead = stage.solve(some, inside.poses, PATIENT_GAIN)
        found, at_ease = stage.ease(some, inside.poses, ahead.poses)
        found.iterations += ahead.iterations
        _take(best, some, found)
        some = some[(found.excess > 1.0) & ~at_ease]
    return best


def _take(best: Found, some: Indices, found: Found) -> None:
    best.put(some, found, np.ones(len(some), np.bool_))
    best.iterations[some] += found.iterations


def _at_reference(given: ManyInput, poses: Poses) -> Mask:
    """(B,) whether nothing draws a pose elsewhere."""
    if given.reference is None:
        return np.ones(given.size, np.bool_)
    turned = np.abs((given.reference.rotations * poses.rotations).sum(0))
    shifted = np.abs(given.reference.translations - poses.translations).max((0, 1))
    return np.asarray((turned > 1.0 - SAME).all(0) & (shifted <= SAME))


def _regions(given: ManyInput) -> list[Limit | None] | None:
    """The comfort regions in the place of limits; None where no joint that may move has one."""
    joints = given.skeleton.joints
    found = [joint.comfort.region if joint.comfort is not None else None for joint in joints]
    if not given.settings.comfort or all(found[i] is None for i in given.movable):
        return None
    return [region or joint.limit for region, joint in zip(found, joints, strict=True)]


# Other starts ---------------------------------------------------------------------------------------


def _other_starts(given: ManyInput, proper: Stage, limits: list[Limit | None], best: Found) -> None:
    """Solve what missed from other starts, the same for every pose; the first that meets the goals counts,
    else the nearest. Several starts are tried at once, more the fewer poses are left."""
    if given.settings.restarts == 0 or len(given.movable) < 2 or not len(best.missed):
        return
    turns, shifts, free = _templates(given, limits)
    pending = np.flatnonzero((best.excess > 1.0) & ~proper.beyond_reach(given.poses))
    kept, first = proper.serving_met(best.poses), best.poses.rotations.copy()
    number = 0
    while len(pending) and number < turns.shape[-1]:
        count = min(max(1, RUN // len(pending)), turns.shape[-1] - number)
        some = np.repeat(pending, count)
        which = np.tile(np.arange(number, number + count), len(pending))
        begin = _started(given, some, select(turns, which), select(shifts, which), free)
        # Every other start leaves joints alone that only serve goals which the first solve met.
        stay = select(kept, some) & (which % 2 == 1)
        begin.rotations[:, stay] = select(first, some)[:, stay]
        found = proper.solve(some, begin, HURRIED_GAIN, HURRIED_STEPS)
        for each in range(count):
            own = np.arange(each, len(some), count)
            own = own[best.excess[some[own]] > 1.0]
            other = found.at(own)
            best.iterations[some[own]] += other.iterations
            won = gains(other.score, select(best.score, some[own]), proper.tolerance)
            best.put(some[own], other, won | (other.excess <= 1.0))
        number += count
        pending = pending[best.excess[pending] > 1.0]


def _templates(given: ManyInput, limits: list[Limit | None]) -> tuple[Array, Array, Indices]:
    """Other starts as (4, n, K) rotations and (3, n, K) translations, and the joints that have no limit:
    these are rotated from where they are."""
    skeleton, settings = given.skeleton, given.settings
    rest = Pose.rest(skeleton)
    found = list(
        starts(
            StartSpace(skeleton, given.goals, limits, given.movable, ()),
            rest,
            settings.seed,
            settings.restarts,
        )
    )
    free = [i for i in given.movable if (limit := limits[i]) is None or is_free(limit)]
    poses = Poses.of(found)
    return poses.rotations, poses.translations, np.array(free, dtype=np.intp)


def _started(given: ManyInput, some: Indices, turns: Array, shifts: Array, free: Indices) -> Poses:
    """The given poses `some` (K,) with other rotations and slides of what may move."""
    own = given.poses.at(some)
    moving = np.array(given.movable, dtype=np.intp)
    before = own.rotations[:, free]
    own.rotations[:, moving] = turns[:, moving]
    own.rotations[:, free] = unit(multiply(before, turns[:, free]))
    for i in given.movable:
        for slide in given.skeleton.joints[i].slides:
            axis = np.array(slide.axis)[:, None]
            own.translations[:, i] += axis * (axis * (shifts[:, i] - own.translations[:, i])).sum(0)
    return own


# As near as it gets ---------------------------------------------------------------------------------


def _as_near(proper: Stage, best: Found) -> None:
    """Bring what no start leads to its goals as near as it gets, also past saddles."""
    some = best.missed
    columns = proper.problem.layout.columns
    if not len(some) or not columns:
        return
    random = Random(proper.input.settings.seed)
    _go_on(proper, best, some, best.poses.at(some))
    for _ in range(ROUNDS):
        some = some[best.excess[some] > 1.0]
        if not len(some):
            return
        nudges = np.array([[random.gauss(0.0, NUDGE) for _ in range(NUDGES)] for _ in range(columns)])
        tried = proper.nudged(some, best.poses.at(some), nudges)
        lower = np.flatnonzero(tried.square < (1.0 - SADDLE) * best.square[some])
        some = some[lower]
        if len(some):
            _go_on(proper, best, some, tried.poses.at(lower))


def _go_on(stage: Stage, best: Found, some: Indices, begin: Poses) -> None:
    """Solve poses `some` with patience; what is nearer counts."""
    found = stage.solve(some, begin, PATIENT_GAIN, again=True)
    best.iterations[some] += found.iterations
    best.late[some] = found.late
    nearer: Mask = (found.square < best.square[some]) | (found.excess <= 1.0)
    best.put(some, found, nearer)


def _earlier_first(given: ManyInput, proper: Stage, limits: list[Limit | None], best: Found) -> None:
    """Serve the goals rank by rank: each as near as those before it leave room for.

    Goals that are missed stay as they are achieved while later ones are served, so that these have a say
    although the error of the others is far larger.
    """
    if len(proper.ranks) < 2:
        return
    for count in range(1, len(proper.ranks) + 1):
        # Only where a goal of these ranks is not met can it come nearer.
        some = best.missed
        some = some[best.score[:count, some].sum(0) > 0.0]
        if not len(some):
            continue
        ranks = proper.ranks[:count]
        chosen = [k for k, goal in enumerate(given.goals) if goal.priority in ranks]
        stage = proper if count == len(proper.ranks) else Stage(given, limits, chosen)
        served = stage.solve(some, best.poses.at(some), PATIENT_GAIN, frozen=count - 1, again=True)
        best.iterations[some] += served.iterations
        found = proper.measure(some, served.poses)
        best.put(some, found, gains(found.score, select(best.score, some), proper.tolerance))
