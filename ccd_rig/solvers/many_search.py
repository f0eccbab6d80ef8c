"""How `solve_many` searches: comfort before limits, other starts for what missed, then as near as it gets.

What happens to a pose depends on that pose alone: runs, rounds and chunks only decide what is worked out
together.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from ..goals import served
from ..limits.shapes import Limit
from ..maths.batch import Array, Indices, Mask, at_least_two, multiply, select, unit
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
    proper = Stage(given, [joint.limit for joint in given.skeleton.joints])
    everything = np.arange(given.size)
    start = proper.measure(everything, given.poses)
    if given.tolerances.any():
        return _relaxed(given, proper, start), start, proper
    best = _first(given, proper)
    _missed(proper, proper.mild(), best, best.missed)
    # Where there is no room for all, what is nearest to all may be away from what meets those served first.
    some = best.missed[best.score[:-1, best.missed].any(0)]
    if len(some):
        alone = proper.solve(some, given.poses.at(some), _gain(given))
        _put_nearer(proper, best, some, alone)
        _missed(proper, proper, best, some)
    worse = gains(start.score, best.score, proper.tolerance)
    best.put(everything, start, worse)
    return best, start, proper


def _first(given: ManyInput, proper: Stage) -> Found:
    """From the given poses: inside the comfort regions, and from there inside the limits; in each first with
    all goals nearly alike, then with those served first before the others."""
    regions = _regions(given)
    stages = [proper] if regions is None else [Stage(given, regions), proper]
    if len(proper.ranks) > 1:
        stages = [each for stage in stages for each in (stage.mild(), stage)]
    best = stages[0].measure(np.arange(given.size), given.poses)
    some = np.flatnonzero((best.excess > 1.0) | ~_at_reference(given, best.poses))
    for number, stage in enumerate(stages):
        if len(some):
            _take(best, some, stage.solve(some, best.poses.at(some), _gain(given), again=number > 0))
        some = best.missed
    return best


def _gain(given: ManyInput) -> float:
    """Below what gain a search ends that is not the last."""
    return HURRIED_GAIN if given.settings.restarts else PATIENT_GAIN


def _missed(proper: Stage, by: Stage, best: Found, some: Indices) -> None:
    """Bring poses `some` that miss goals to them from other starts, led by a stage; else as near as they get,
    those served first before the others."""
    _other_starts(proper, by, best, some)
    _as_near(proper, best, some)
    _earlier_first(proper, best, some)


def _put_nearer(proper: Stage, best: Found, some: Indices, found: Found) -> None:
    """Take over what was found for poses `some` where it meets the goals or is nearer."""
    best.iterations[some] += found.iterations
    nearer = gains(found.score, select(best.score, some), proper.tolerance)
    best.put(some, found, nearer | (found.excess <= 1.0))


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


def _other_starts(proper: Stage, by: Stage, best: Found, some: Indices) -> None:
    """Solve what missed of poses `some` from other starts, the same for every pose; the first that meets the
    goals counts, else the nearest. Several starts are tried at once, more the fewer poses are left."""
    given = proper.input
    some = some[best.excess[some] > 1.0]
    if given.settings.restarts == 0 or len(given.movable) < 2 or not len(some):
        return
    turns, shifts, free = _templates(given, proper.limits)
    pending = some[~proper.unreachable(given.poses)[some]]
    kept, first = _serving_met(proper, best.poses), best.poses.rotations.copy()
    number = 0
    while len(pending) and number < turns.shape[-1]:
        count = min(max(1, RUN // len(pending)), turns.shape[-1] - number)
        some = np.repeat(pending, count)
        which = np.tile(np.arange(number, number + count), len(pending))
        pair = at_least_two(np.arange(len(some)))
        begin = _started(given, some[pair], select(turns, which[pair]), select(shifts, which[pair]), free)
        begin = begin.at(np.arange(len(some)))
        # Every other start leaves joints alone that only serve goals which the first solve met.
        stay = select(kept, some) & (which % 2 == 1)
        begin.rotations[:, stay] = select(first, some)[:, stay]
        found = by.solve(some, begin, HURRIED_GAIN, HURRIED_STEPS)
        if by is not proper:
            found = replace(proper.measure(some, found.poses), iterations=found.iterations)
        for each in range(count):
            own = np.arange(each, len(some), count)
            own = own[best.excess[some[own]] > 1.0]
            _put_nearer(proper, best, some[own], found.at(own))
        number += count
        pending = pending[best.excess[pending] > 1.0]


def _serving_met(proper: Stage, poses: Poses) -> Mask:
    """(n, B) whether joints serve goals that are met and no others."""
    given = proper.input
    distances, angles, _ = proper.misses(np.arange(given.size), poses)
    met = (distances <= given.settings.position_tolerance) & (angles <= given.settings.angle_tolerance)
    found = np.zeros((len(given.skeleton), given.size), np.bool_)
    joints = [set(served(goal, given.skeleton)) for goal in given.goals]
    for i in given.movable:
        found[i] = met[:, [i in each for each in joints]].all(1)
    return found


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


def _as_near(proper: Stage, best: Found, some: Indices) -> None:
    """Bring what no start leads to its goals, of poses `some`, as near as it gets, also past saddles."""
    some = some[best.excess[some] > 1.0]
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


def _earlier_first(proper: Stage, best: Found, some: Indices) -> None:
    """Serve the goals of poses `some` rank by rank: each as near as those before it leave room for.

    Goals that are missed stay as they are achieved while later ones are served, so that these have a say
    although the error of the others is far larger.
    """
    given = proper.input
    if len(proper.ranks) < 2:
        return
    for count in range(1, len(proper.ranks) + 1):
        # Only where a goal of these ranks is not met can it come nearer.
        missed = some[(best.excess[some] > 1.0) & best.score[:count, some].any(0)]
        if not len(missed):
            continue
        ranks = proper.ranks[:count]
        chosen = [k for k, goal in enumerate(given.goals) if goal.priority in ranks]
        stage = proper if count == len(proper.ranks) else Stage(given, proper.limits, chosen)
        ended = stage.solve(missed, best.poses.at(missed), PATIENT_GAIN, frozen=count - 1, again=True)
        found = replace(proper.measure(missed, ended.poses), iterations=ended.iterations)
        _put_nearer(proper, best, missed, found)
