"""The frames of a walk: where the body goes, where feet are planted and how they get there.

    cycle, way, ground, timeline -> body carried along the way -> footfalls on the ground -> feet -> hips

A stance of the cycle rests at a place of the straight line, which the way bends along the curve (`path`). It
becomes a footfall: a place on the ground, with the slope that heel and ball lie on. Where heel or toes have
nothing level to lie on, as at the edge of a stair, the footfall goes along the curve to where they have.
Between two footfalls the foot moves as in the cycle, over a base that leads from one to the other, and is
lifted over what lies between. Seen from its hip the leg moves as in the cycle, with what goes over from the
one footfall to the other and most of what the way over the ground adds.

The body goes at its height in the cycle above the mean height of the ground over a stride; one that lies on
several pairs of legs is turned to its slope. It sinks, as smooth as that, for legs that are too short: a long
body at the end where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InvalidInput
from ...limits.shapes import BatchLimits
from ...maths import batch
from ...maths.batch import Array, Indices
from ..ground import Ground, clearing, grade_of, plane_of
from ..retargeting.alignment import NO_TURN, UP, shortest
from ..retargeting.feet import (
    FootPath,
    Sole,
    ahead_of,
    drops,
    missing_turn,
    raised_ahead,
    rolled,
    smooth_envelope,
    smooth_shifts,
    ways_aside,
)
from ..retargeting.figures import inverse, product, turned
from ..settings import WalkSettings
from .cycle import (
    BLEND,
    Cycle,
    FootCycle,
    Stance,
    Standing,
    WalkLeg,
    placed,
    posed,
    sampled,
    standing_on_average,
    yaw_of,
)
from .folding import folded_leg
from .path import STEP_UP, Profile, Strides, Way, means_beside, profile_along
from .timeline import Timeline

LYING, SPLAYED = 0.3, 0.6
"""Leg lengths from the hindmost foot to the foremost from which a body lies along the ground, and from the
rightmost to the leftmost from which it lies across it."""
LEAN = 0.5
"""Height of the point about which a body is turned to a slope, in that of the starts of its legs: these lean
half as far as it does. Legs that lean as far put its weight behind its feet, upright ones lack length."""
SHARPEST = float(np.radians(150.0))
"""How far a way may turn within a stride."""
TRIES = 17
"""Places along the curve at which a footfall may be, an odd number."""
UNEVEN, CAUGHT = 0.05, 0.03
"""Leg lengths by which a heel is off the plane of its ball, and toes below the ground, that count as one.

So does a rise below a foot, by which it is steeper than feet are turned.
"""
ROOM = 0.12
"""Leg lengths ahead of the toes that are to be free, for them to swing."""
GOOD = 0.5
"""What a footfall may cost, in squares of these, before it is moved."""
DROOP, BENT = np.radians(25.0), np.radians(50.0)
"""How far toes bend down over an edge, and up, at most."""
BRACKETS, CUTS, MET = 12, 4, 0.01
"""Angles at which toes are tried on the ground, cuts between two of these, and how far off they end at most,
in their lengths."""
PARTS = (0.25, 0.5, 0.75)
"""Parts of the way from the ball to the end of toes that are looked at for what they lie on."""
ROLLING = 0.3
"""Seconds over which heels are raised further for a leg that is too short, toes over what they would hit."""
WINDOWS = ((0.0, 1.0), (0.0, 0.85), (0.0, 0.7), (0.0, 0.55), (0.15, 1.0), (0.3, 1.0), (0.45, 1.0))
"""Parts of a swing in which the base may go from the height of one footfall to that of the next."""
FAITHFUL, MOST = 0.7, 0.7
"""Part of what a swing over the ground adds to the leg of the cycle that is kept, and where it saturates for
a straight leg: in radians, and in the logarithm of its length.

A folded leg turns much for a small way of its foot, and over a stair at a run it went past its hip: so it
saturates earlier. With the part at 0.6 and at 0.8 more walks are restless.
"""
SPEEDING = 0.3
"""Part of a swing in which a foot begins to turn from one slope to the next."""


@dataclass(frozen=True, eq=False)
class Footfall:
    """A foot that is down."""

    stance: Stance  # phases between which it is, and where the cycle has it on the straight line
    shift: float  # metres by which it is moved along the curve
    place: Array  # (3,) of the ground under the ball, world, in the row in which it comes down
    slope: Array  # (4,) from level to the plane on which heel and ball lie
    row: int  # in which it comes down


@dataclass(frozen=True, eq=False)
class FootPlan:
    """The motion of a foot, world space."""

    footfalls: Sequence[Footfall]  # in order
    balls: Array  # (F, 3) joint at the ball
    feet: Array  # (F, 4) rotations
    toes: Array | None  # (F, 4) rotations, or None
    down: Indices  # (F,) index of the footfall, -1 in the air
    passage: tuple[Indices, Array]  # (F, 4) rows of values that go over in the air, and their weights

    def ankles(self, leg: WalkLeg) -> Array:
        """(F, 3) joint of the foot."""
        return np.asarray(self.balls - turned(self.feet, leg.sole.ball))

    def gone_over(self, values: Array) -> Array:
        """(F, k) values (F, k) where the foot is down, and a smooth way from one to the next in the air."""
        rows, weights = self.passage
        return np.asarray((weights[..., None] * values[rows]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class WalkPlan:
    """A walk before legs are solved."""

    rotations: Array  # (F, n, 4) relative to rest
    translations: Array  # (F, n, 3) relative to rest, model units
    feet: Mapping[str, FootPlan]  # by leg
    moved: Array  # (F, 3) metres by which the hips are moved for legs to reach, world
    times: Array  # (F,) seconds
    phases: Array  # (F,) seconds of the cycle, not decreasing
    along: Array  # (F,) metres of the way
    reach: Mapping[str, Array]  # by leg, (F,) metres that it may be long from its hip to its ankle


@dataclass(frozen=True, eq=False)
class _Lie:
    """The plane that a body goes along."""

    places: Array  # (F,) metres of the way under its middle
    heights: Array  # (F,) world heights there
    grades: Array  # (F, 2) by which it rises ahead and to the left, for a metre; 0 for an upright body
    centre: Array  # (3,) of the cycle's frame about which a body is turned to it
    is_long: bool  # whether it goes along the ground below several pairs of legs

    def height(self, rows: Indices, along: Array, aside: Array) -> Array:
        """(R,) heights of the plane at rows (R,), at metres of the way and metres to its left."""
        ahead = along - self.places[rows]
        return np.asarray(self.heights[rows] + self.grades[rows, 0] * ahead + self.grades[rows, 1] * aside)


@dataclass(frozen=True, eq=False)
class _Course:
    """The inputs of a walk.

    `along` and `profile` are as in `WalkPlan` and `profile_along`, `reach` is by leg. `line` is (F,) metres
    of the body on the cycle's straight line.
    """

    cycle: Cycle
    way: Way
    ground: Ground
    time: Timeline
    settings: WalkSettings
    strides: Strides
    line: Array
    along: Array
    profile: Profile
    lie: _Lie
    reach: Mapping[str, Array]
    standing: Standing

    @property
    def rows(self) -> Indices:
        return np.arange(len(self.along))

    def under(self, points: Array, along: Array, rows: Indices) -> tuple[Array, Array]:
        """Heights (P,) and normals (P, 3) of the ground below points (P, 3) at metres (P,) of the way."""
        tops = np.maximum(self.profile.height(along) + STEP_UP * self.cycle.leg, points[:, 2])
        return self.ground.below(np.column_stack((points[:, :2], tops)), rows)


def plan_walk(
    cycle: Cycle,
    way: Way,
    height: float,
    ground: Ground,
    time: Timeline,
    settings: WalkSettings,
    strides: Strides | None = None,
    standing: Standing | None = None,
) -> Generator[None, None, WalkPlan]:
    """The walk along a way; yields nothing between its parts, where it may be closed.

    Args:
        height: of the curve where the walk begins, world metres; the ground is looked for below it, else
            above.
        ground: what feet stand on; its rows are frames.
        strides: how long steps are; None: as in the cycle, from `settings.offset` on.
        standing: how the figure stands where it does; None: as in the cycle on average.

    Raises:
        InvalidInput: there is no ground, a hole or a wall in the way, or a bend that is too narrow.
    """
    turn = way.largest_turn(cycle.stride)
    if turn > SHARPEST:
        raise InvalidInput(
            lambda metres: (
                f"the curve turns by {np.degrees(turn):.0f} degrees within a stride of "
                f"{metres * cycle.stride:.2g} m: make the bend wider, or the stride shorter"
            )
        )
    strides = Strides.even(settings.offset) if strides is None else strides
    standing = standing_on_average(cycle) if standing is None else standing
    line = cycle.speed * (time.phases - time.phases[0])
    along = strides.along_at(line)
    profile = profile_along(cycle, way, height, ground, along, strides)
    lie = _lie(cycle, way, ground, settings, strides, along, profile)
    reach = _reaches(cycle, settings, standing, time.shares)
    course = _Course(cycle, way, ground, time, settings, strides, line, along, profile, lie, reach, standing)
    body = _body(course)
    heads, world = posed(cycle.figure_map, cycle.target, *body)
    free = {}
    for leg in cycle.legs:
        yield
        free[leg.limb.name] = _rolled(course, leg, _foot(course, leg), heads)
    yield
    rotations, hips, turns = body
    weights = {leg.limb.name: _weights(course, leg, free[leg.limb.name]) for leg in cycle.legs}
    if lie.is_long:
        hips, turns = _sunk(course, heads, free, weights, hips, turns)
        heads, world = posed(cycle.figure_map, cycle.target, rotations, hips, turns)
    moved = _moved(course, heads, free, weights)
    joints, feet = (heads + moved[:, None], world), dict[str, FootPlan]()
    for leg in cycle.legs:
        yield
        foot = free[leg.limb.name]
        feet[leg.limb.name] = foot if leg.is_free else _swung(course, leg, foot, joints)
    pose = placed(cycle.figure_map, cycle.target, rotations, hips + moved, turns)
    return WalkPlan(*pose, feet, moved, time.times, time.phases, along, reach)


# The body -----------------------------------------------------------------------------------------


def _body(course: _Course) -> tuple[Array, Array, Array]:
    """(F, n, 4) rotations inside limits, (F, 3) hips and (F, 4) their rotation, world."""
    cycle, share = course.cycle, course.time.shares
    at = course.time.phases / cycle.step
    rotations, hips, turns = (sampled(each, at) for each in (cycle.rotations, cycle.hips, cycle.hip_turns))
    if (share < 1.0).any():
        standing = course.standing
        hips = standing.hips + share[:, None] * (hips - standing.hips)
        turns = _stood(standing.hip_turn, turns, share)
        rotations = _stood(standing.rotations, rotations, share)
    limits = BatchLimits([joint.limit for joint in cycle.target.skeleton.joints])
    rotations = limits.project(np.ascontiguousarray(rotations.transpose(2, 1, 0)))[0].transpose(2, 1, 0)
    middle, headings = course.way.at(course.along)
    heading, lie = batch.axis_rotation(UP, headings), course.lie
    planes = np.column_stack((-lie.grades, np.ones(len(headings))))
    lean = shortest(UP, planes)
    world = turned(heading, lie.centre + turned(lean, hips - lie.centre))
    world[:, :2] += middle
    world[:, 2] += lie.heights
    return np.ascontiguousarray(rotations), world, product(heading, product(lean, turns))


def _stood(standing: Array, walking: Array, shares: Array) -> Array:
    """(F, ..., 4) rotations between those of a stand (..., 4) and of a walk (F, ..., 4), by shares (F,)."""
    rows, rotations = np.flatnonzero(shares < 1.0), walking.copy()
    parts = shares[rows].reshape(-1, *(1,) * (walking.ndim - 2))
    rotations[rows] = batch.slerp(standing, walking[rows], parts, -1)
    return rotations


def _lie(
    cycle: Cycle,
    way: Way,
    ground: Ground,
    settings: WalkSettings,
    strides: Strides,
    along: Array,
    profile: Profile,
) -> _Lie:
    """The plane that fits best (least squares) through the mean ground below the legs.

    It is level along the way for a figure whose legs are about below one place, and across it for one whose
    legs are not far apart: that stays upright.
    """
    feet = list(cycle.feet.values())
    before = np.array([foot.before for foot in feet])
    aside = np.array([foot.aside for foot in feet])
    pivot = float(before.mean())
    below = np.stack([np.interp(along + each, profile.along, profile.means) for each in before])
    is_long, is_splayed = np.ptp(before) > LYING * cycle.leg, np.ptp(aside) > SPLAYED * cycle.leg
    if is_splayed:
        for is_side in (aside > 0.0, aside <= 0.0):
            far = float(aside[is_side].mean()) if is_side.any() else 0.0
            means = means_beside(cycle, way, ground, along, strides, profile, far)
            for k in np.flatnonzero(is_side):
                below[k] = np.interp(along + before[k], profile.along, means)
    axes = np.column_stack(
        (
            (before - pivot) * is_long,
            (aside - aside.mean()) * is_splayed,
        )
    )
    heights = below.mean(axis=0)
    grades = (np.linalg.pinv(axes) @ (below - heights)).T
    heads, _ = cycle.joints
    starts = [cycle.target.index(leg.limb.upper) for leg in cycle.legs]
    centre = np.array((pivot, 0.0, LEAN * float(heads[:, starts, 2].mean())))
    heights = heights - grades[:, 1] * float(aside.mean())
    steepest = float(np.tan(settings.steepest))
    sizes = np.maximum(batch.length(grades, -1), 1e-12)
    grades = grades * np.minimum(1.0, steepest / sizes)[:, None]
    return _Lie(along + pivot, heights, grades, centre, bool(is_long))


# Feet ---------------------------------------------------------------------------------------------


def _foot(course: _Course, leg: WalkLeg) -> FootPlan:
    """The motion of a foot, for legs of any length."""
    cycle, time, sole = course.cycle, course.time, leg.sole
    foot, count, phases = cycle.feet[leg.limb.name], len(course.along), course.time.phases
    at = phases / cycle.step
    balls, feet = sampled(foot.balls, at), sampled(foot.feet, at)
    toes = sampled(foot.toes, at) if foot.toes is not None else None
    ahead = course.strides.along_at(course.line + balls[:, 0] - foot.before) + foot.before
    aside, rises = balls[:, 1], balls[:, 2].copy()
    stances = _stances(course, foot)
    if time.start or time.stop:
        stand, turn = course.standing.feet[leg.limb.name], 0.0
        level, level_toes = stand.foot, stand.toe
        if foot.stances:
            middle = np.array([0.5 * (foot.stances[0].first + foot.stances[0].last) / cycle.step])
            turn = yaw_of(product(stand.foot, inverse(sampled(foot.feet, middle)[0])))
            back = batch.axis_rotation(UP, -turn)
            level = product(back, stand.foot)
            level_toes = None if stand.toe is None else product(back, stand.toe)
        body, moves = np.column_stack((course.along[[0, -1]], np.zeros(2))), stand.place is not None
        if stand.place is not None:
            places = body + stand.place
        else:
            places = np.column_stack((ahead, aside))[[0, -1]] - body
            places = body + [_within_reach(course, leg, place) for place in places]
        stances = _with_stands(stances, time, places, turn, moves)
        feet = _stood(level, feet, time.shares)
        if toes is not None and level_toes is not None:
            toes = _stood(level_toes, toes, time.shares)
        rises *= time.shares
    falls = [_footfall(course, leg, stance) for stance in stances]
    down = np.full(count, -1, np.intp)
    yaws, shifts, bases = np.zeros(count), np.zeros(count), course.profile.height(ahead)
    slopes, turns, carried = np.tile(NO_TURN, (count, 1)), np.tile(NO_TURN, (count, 1)), np.zeros((count, 3))
    # What slopes lead from and to in the air, how far they are, and the turn of the ground that fades.
    slope_ends, gone, left, fades = np.stack((slopes, slopes)), np.zeros(count), turns.copy(), np.zeros(count)
    free = np.column_stack((ahead, aside))  # as in the cycle
    for i, fall in enumerate(falls):
        rows = np.flatnonzero((phases >= fall.stance.first - 1e-9) & (phases <= fall.stance.last + 1e-9))
        down[rows] = i
        ahead[rows], aside[rows], rises[rows] = fall.stance.along, fall.stance.aside, 0.0
        places, turns[rows] = course.ground.carried(fall.place, fall.row, rows)
        shifts[rows], slopes[rows], bases[rows] = fall.shift, fall.slope, places[:, 2]
        yaws[rows] = fall.stance.turn
        carried[rows] = (places - fall.place) * (1.0, 1.0, 0.0)
    swings = []
    for i in range(-1, len(falls)):
        before, after = (
            falls[max(i, 0)] if falls else None,
            falls[min(i + 1, len(falls) - 1)] if falls else None,
        )
        if before is None or after is None:
            break
        low = before.stance.last if i >= 0 else -np.inf
        high = after.stance.first if i + 1 < len(falls) else np.inf
        rows = np.flatnonzero((down < 0) & (phases > low) & (phases < high))
        if not len(rows):
            continue
        u: Array = np.zeros(len(rows))
        p: Array = u
        if before is not after:
            u = p = (phases[rows] - low) / (high - low)
            step = min(high - low, cycle.stride_time)  # a foot that is never down in the cycle goes on longer
            for row, stance, part in (
                (rows[0] - 1, before.stance, batch.smooth_step(1.0 - (phases[rows] - low) / step)),
                (rows[-1] + 1, after.stance, batch.smooth_step(1.0 - (high - phases[rows]) / step)),
            ):
                if 0 <= row < count:  # from where it stands, which may be beside where the cycle has it
                    off = np.array((stance.along, stance.aside)) - free[row]
                    ahead[rows] += part * off[0]
                    aside[rows] += part * off[1]
            if after.stance.along > before.stance.along:
                far = after.stance.along - before.stance.along
                p = np.clip((ahead[rows] - before.stance.along) / far, 0.0, 1.0)
            swings.append((rows, u, p, i))
        else:  # the first and the last way of a foot lead over the ground as it is
            bases[rows] += before.place[2] - float(course.profile.height(np.array([before.stance.along]))[0])
        shifts[rows] = before.shift + p * (after.shift - before.shift)
        yaws[rows] = before.stance.turn + batch.smooth_step(p) * (after.stance.turn - before.stance.turn)
        slope_ends[0, rows], slope_ends[1, rows], gone[rows] = before.slope, after.slope, evenly(u)
        rests = np.flatnonzero(down == i)
        if i >= 0 and len(rests):
            carried[rows] = (1.0 - p)[:, None] * carried[rests[-1]]
            left[rows], fades[rows] = turns[rests[-1]], 1.0 - p
    air = down < 0
    slopes[air] = batch.slerp(slope_ends[0, air], slope_ends[1, air], gone[air], -1)
    turns[air] = batch.slerp(NO_TURN, left[air], fades[air], -1)
    xy, headings = course.way.bent(ahead + shifts, aside, foot.before)
    for rows, u, _, _ in swings:  # a foot is quicker than the body, and would turn as much quicker in a bend
        first, last = headings[[max(rows[0] - 1, 0), min(rows[-1] + 1, count - 1)]]
        headings[rows] = first + evenly(u) * (last - first)
    xy, slopes = xy + carried[:, :2], product(turns, slopes)
    upright = product(slopes, batch.axis_rotation(UP, headings + yaws))
    feet = product(upright, feet)
    toes = product(upright, toes) if toes is not None else None
    arms = turned(slopes, np.column_stack((np.zeros((count, 2)), sole.height + rises)))
    points = [arms + point for point in leg.sole_points(feet, toes)]
    if sole.toe is not None:  # toes go over from how they lay to their own motion: what is between is lifted
        points.append(arms + _laid_toes(sole, feet, slopes))
    for rows, u, p, i in swings:
        rests = np.flatnonzero(down == i)
        low = float(bases[rests[-1]] if len(rests) else falls[i].place[2])
        heights, above = [], np.array([point[rows, 2] for point in points])  # the base
        for point in points:
            under = np.column_stack((xy[rows] + point[rows, :2], np.full(len(rows), -np.inf)))
            heights.append(course.under(under, ahead[rows], rows)[0])
        clearance = course.settings.clearance * cycle.leg
        needed = clearing(np.array(heights), above, above.min(axis=0), clearance)
        around = np.array((max(rows[0] - 1, 0), *rows, min(rows[-1] + 1, count - 1)))
        ends = low, float(falls[i + 1].place[2])
        plane = ends[0] + (ends[1] - ends[0]) * np.concatenate(([0.0], p, [1.0]))
        if course.lie.is_long:
            plane = course.lie.height(around, ahead[around], aside[around])
        bases[rows] = swing_base(u, p, ends, plane, rises[rows], needed)
    plan = FootPlan(falls, np.column_stack((xy, bases)) + arms, feet, toes, down, _passage(course, down))
    if toes is not None:
        plan = replace(plan, toes=_between(plan, _lying(course, leg, plan, ahead), toes))
    return _on_surface(course, leg, plan, ahead)


def evenly(u: Array) -> Array:
    """(R,) parts of a way from rest to rest at parts (R,) of the time, as even as it is smooth.

    Its speed rises in the first `SPEEDING` of the time as a smooth step does, and falls as in the last.
    """

    def gone(v: Array) -> Array:  # the integral of the smooth step 3 v^2 - 2 v^3
        v = np.clip(v / SPEEDING, 0.0, 1.0)
        return np.asarray(SPEEDING * v**3 * (1.0 - 0.5 * v))

    most = 1.0 - SPEEDING
    past = gone(u) + np.clip(u - SPEEDING, 0.0, 1.0 - 2.0 * SPEEDING)
    return np.asarray((past + np.where(u > most, 0.5 * SPEEDING - gone(1.0 - u), 0.0)) / most)


def _within_reach(course: _Course, leg: WalkLeg, place: Array) -> Array:
    """The place (2,) of a ball on which a foot stands, in the cycle's frame; nearer to where it comes down
    in the cycle as far as its leg needs it."""
    standing, foot = course.standing, course.cycle.feet[leg.limb.name]
    hip = standing.heads[course.cycle.target.index(leg.limb.upper)]
    arm = turned(standing.feet[leg.limb.name].foot, leg.sole.ball)
    usual = np.array((foot.before, place[1]))
    for part in np.linspace(0.0, 1.0, TRIES):
        tried = place + part * (usual - place)
        ankle = np.array((*tried, leg.sole.height)) - arm
        if np.linalg.norm(ankle - hip) <= course.reach[leg.limb.name][0]:
            return np.asarray(tried)
    return usual


def _stances(course: _Course, foot: FootCycle) -> list[Stance]:
    """Stances that the frames meet, and one more, along the way."""
    cycle, phases = course.cycle, course.time.phases
    stances: list[Stance] = []
    first, last = (int(np.floor(phases[k] / cycle.period)) for k in (0, -1))
    for k in range(first - 2, last + 3):
        later = k * cycle.period
        start = cycle.speed * (later - phases[0]) - foot.before  # of the period, on the straight line
        for each in foot.stances:
            if stances and stances[-1].first > phases[-1]:
                return stances
            if each.last + later >= phases[0]:
                along = float(course.strides.along_at(np.array(start + each.along))) + foot.before
                stances.append(Stance(each.first + later, each.last + later, along, each.aside))
    return stances


def _with_stands(
    stances: list[Stance], time: Timeline, places: Array, turn: float, moves: bool
) -> list[Stance]:
    """Stances with those of a foot that stands at the first and the last frame.

    Args:
        places: (2, 2) metres along and beside the way where it stands first and last.
        turn: of its stances there.
        moves: whether a foot that is down in the cycle then stands there too.
    """
    first, last = float(time.phases[0]), float(time.phases[-1])
    at_start, at_end = ({"along": x, "aside": y, "turn": turn} for x, y in places.tolist())
    stances = list(stances)
    if time.start and not (stances and stances[0].first <= first):
        stances.insert(0, Stance(first, first, **at_start))
    elif time.start and moves:
        stances[0] = replace(stances[0], **at_start)
    if time.stop:
        stances = [each for each in stances if each.first <= last]
        if not stances or stances[-1].last < last:
            stances.append(Stance(last, last, **at_end))
        elif moves:
            stances[-1] = replace(stances[-1], **at_end)
    return stances


def _footfall(course: _Course, leg: WalkLeg, stance: Stance) -> Footfall:
    """The footfall of a stance: at its place in the cycle, or at the cheapest place along the curve."""
    cycle, settings, sole, size = course.cycle, course.settings, leg.sole, course.cycle.leg
    row = int(np.searchsorted(course.time.phases, stance.first - 1e-9).clip(0, len(course.along) - 1))
    before = cycle.feet[leg.limb.name].before
    middle = np.array([0.5 * (stance.first + stance.last) / cycle.step])
    foot = sampled(cycle.feet[leg.limb.name].feet, middle)
    foot = product(batch.axis_rotation(UP, stance.turn), foot)
    front = np.cross(turned(foot, sole.across)[0] * (1.0, 1.0, 0.0), UP)
    front /= max(float(np.linalg.norm(front)), 1e-12)
    left = np.cross(UP, front)
    heel = float(np.linalg.norm(turned(foot, sole.heel)[0, :2])) if leg.flat else 0.0
    toe = 0.0 if sole.toe is None else max(float(sole.toe @ sole.toe) - sole.height**2, 0.0) ** 0.5
    half, room = 0.04 * leg.length, toe + ROOM * size
    back = heel or half
    offsets = np.stack((0.0 * front, -back * front, toe * front, room * front, half * left, -half * left))
    tries = np.linspace(-settings.adjust * size, settings.adjust * size, TRIES)
    tries = tries[np.argsort(np.abs(tries), kind="stable")]
    best: tuple[float, Footfall] | None = None
    for shifts in (tries[:1], tries[1:]):  # nearly always the first will do
        along = np.asarray(stance.along + shifts, np.float64)
        xy, headings = course.way.bent(along, np.full(len(shifts), stance.aside), before)
        yaw, count = batch.axis_rotation(UP, headings), len(offsets)
        arms = turned(yaw[:, None], offsets).reshape(-1, 3)
        points = np.column_stack((np.repeat(xy, count, axis=0) + arms[:, :2], np.full(len(arms), -np.inf)))
        heights, normals = course.under(points, np.repeat(along, count), np.full(len(points), row))
        aheads, acrosses = (turned(yaw, each) for each in (front, left))
        for k, shift in enumerate(shifts.tolist()):
            ball, behind, tip, far, one, other = heights[k * count : (k + 1) * count].tolist()
            if not np.isfinite(ball):
                continue
            ahead, normal = aheads[k], normals[k * count]
            rise = -float(normal @ ahead) / max(float(normal[2]), 1e-6)
            cost = (shift / max(settings.adjust * size, 1e-12)) ** 2
            lean = (ball - behind) / heel if heel > 0.0 else np.nan
            if heel > 0.0:
                off = abs(lean - rise) * heel if np.isfinite(lean) else 2.0 * UNEVEN * size
                cost += (off / (UNEVEN * size)) ** 2
                rise = lean if abs(lean) <= np.tan(settings.steepest) else rise
            steep = float(np.hypot(*normal[:2])) / max(float(normal[2]), 1e-6) - np.tan(settings.steepest)
            cost += (half * max(0.0, steep) / (CAUGHT * size)) ** 2
            for height, distance in ((tip, toe), (far, room), *(() if heel else ((behind, -back),))):
                caught = height - ball - rise * distance
                cost += (max(0.0, caught if np.isfinite(caught) else 0.0) / (CAUGHT * size)) ** 2
            if best is not None and cost >= best[0] - 1e-9:
                continue
            slope = NO_TURN
            if leg.flat:
                slopes = lean, (one - other) / (2.0 * half)
                grade = grade_of(normal, ahead, acrosses[k], slopes, settings.steepest)
                slope = shortest(UP, plane_of(grade, ahead, acrosses[k]))
            best = cost, Footfall(stance, shift, np.array((*xy[k], ball)), slope, row)
        if best is not None and best[1].shift == 0.0 and best[0] < GOOD:
            return best[1]
    if best is None:
        raise InvalidInput(
            lambda metres: (
                f"there is no ground for the {leg.limb.name} at {metres * stance.along:.2f} m along the "
                "curve: close the hole, or lead the curve farther from the edge"
            )
        )
    return best[1]


def swing_base(
    u: Array, p: Array, ends: tuple[float, float], plane: Array, rises: Array, needed: Array
) -> Array:
    """(R,) heights from one footfall to the next that are not below the needed ones, but near the ends.

    It is a line by how far the foot is on its way, so that on a slope the swing is the cycle's, turned; or
    goes along the plane of the body, and from how far one footfall is above it to how far the next is in a
    smooth step; or is a smooth step in a part of the time: over a stair the foot goes up before it goes
    ahead. An arch is added for what lies between. Of all ways the one is taken on which the foot is slowest
    beside the plane of the body.

    The arch is a parabola to the power of 4/3. The parabola has a kink at both ends: a crouched figure's feet
    leave a slope of 20 degrees with 1.37 times the jerk of its cycle, now 1.29. To the power of 1.5 it is so
    steep that a spider's joints turn by 1.41 times as much as in its cycle at a kerb, now 1.34.

    Args:
        u: (R,) part of the time, 0 to 1.
        p: (R,) how far the foot is, 0 to 1.
        ends: heights of the footfalls.
        plane: (R + 2,) heights of the body's plane below the foot, with those at the footfalls.
        rises: (R,) of the foot over the base.
        needed: (R,) heights.
    """
    (start, end), times = ends, np.concatenate(([0.0], u, [1.0]))
    far = (end - plane[-1]) - (start - plane[0])
    ways = [(start + (end - start) * p, p), (plane[1:-1] + start - plane[0] + far * batch.smooth_step(u), u)]
    for low, high in WINDOWS:
        v = np.clip((u - low) / (high - low), 0.0, 1.0)
        ways.append((start + (end - start) * v**3 * (10.0 - 15.0 * v + 6.0 * v * v), u))
    steps = np.maximum(np.diff(times), 1e-3)
    best: tuple[float, Array] | None = None
    for base, over in ways:
        bow = 4.0 * over * (1.0 - over)
        arch = bow * np.cbrt(bow)
        clear = arch > 0.2
        lift = float(np.max(((needed - base) / np.maximum(arch, 0.2))[clear], initial=0.0))
        lifted = base + lift * arch
        rates = np.diff(np.concatenate(([start], lifted + rises, [end])) - plane) / steps
        cost = float(np.abs(rates).max())
        if best is None or cost < best[0] - 1e-9:
            best = cost, lifted
    assert best is not None
    return best[1]


def borne(down: Indices, times: Array, blend: float) -> Array:
    """(F,) 1 where a foot is down, 0 farther than `blend` seconds from there, smooth between."""
    rows = np.flatnonzero(down >= 0)
    if not len(rows):
        return np.zeros(len(down))
    before, after = _around(rows, len(down))
    far = np.minimum(np.abs(times[after] - times), np.abs(times - times[before]))
    return batch.smooth_step(1.0 - far / blend)


def _around(rows: Indices, count: int) -> tuple[Indices, Indices]:
    """(F,) the last of ascending rows before each of F, and the first at or after it; else the nearest."""
    after = np.searchsorted(rows, np.arange(count)).clip(0, len(rows) - 1)
    return rows[(after - 1).clip(0)], rows[after]


def _on_surface(course: _Course, leg: WalkLeg, plan: FootPlan, along: Array) -> FootPlan:
    """The foot with its heel on the ground where it is down, and nothing of it below."""

    def above(arms: Array) -> Array:
        return _above(course, plan, along, arms, course.rows)

    if leg.flat:
        back = -ahead_of(plan.feet, leg.sole.across)
        below = np.maximum(above(turned(plan.feet, leg.sole.heel)), -10.0 * leg.length)
        missing = missing_turn(plan.feet, leg.sole.heel, back, below)
        plan = replace(plan, feet=raised_ahead(plan.feet, back, missing))
    under = leg.sole_points(plan.feet, None)[0]
    deep = np.maximum(0.0, above(under) - under[:, 2])
    plan = replace(plan, balls=plan.balls + deep[:, None] * UP)
    if plan.toes is not None and leg.sole.toe is not None:
        plan = replace(plan, toes=_clear_toes(course, leg, plan, along))
    return plan


def _above(course: _Course, plan: FootPlan, along: Array, arms: Array, rows: Indices) -> Array:
    """(R,) height of the ground under points (R, 3) over the ball at rows; minus infinity over holes."""
    heights, _ = course.under(plan.balls[rows] + arms, along[rows], rows)
    return np.where(np.isfinite(heights), heights - plan.balls[rows, 2], -np.inf)


# Toes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Toes:
    """Toes that bend about the axis across them, along the ground."""

    ahead: Array  # (F, 3) unit, along the ground, where they point
    side: Array  # (F, 3) of their ends from the ball, along the axis
    size: Array  # (F,) metres of their ends from the axis
    rise: Array  # (F,) radians above level

    @classmethod
    def of(cls, sole: Sole, toes: Array) -> _Toes:
        """Toes of a sole that has them, turned as (F, 4)."""
        assert sole.toe is not None and sole.across_toe is not None
        # The line to their ends leads back where they hang past the vertical; the axis across them stays.
        tips, ahead = turned(toes, sole.toe), ahead_of(toes, sole.across_toe)
        far = batch.dot(tips, ahead, -1)
        side = tips - far[:, None] * ahead - tips[:, 2:] * UP
        return cls(ahead, side, np.hypot(far, tips[:, 2]), batch.arctan2(tips[:, 2], far))

    def ends(self, angles: Array, rows: Indices) -> Array:
        """(R, 3) from the ball to their ends at angles (R,) above level in rows (R,)."""
        return self.side[rows] + self.size[rows, None] * _up(self.ahead[rows], angles)


def _lying(course: _Course, leg: WalkLeg, plan: FootPlan, along: Array) -> Array:
    """(F, 4) toes on the ground where the foot is down.

    They lie in the plane of their footfall. Where their ends are off the ground there, they bend to the
    nearest angle at which these meet it. Over an edge they bend down as far as what lies on it lets them.
    """
    sole, rows = leg.sole, np.flatnonzero(plan.down >= 0)
    assert plan.toes is not None
    if sole.toe is None or not len(rows):
        return plan.toes
    toes = _Toes.of(sole, plan.toes)
    slopes = np.array([fall.slope for fall in plan.footfalls])[plan.down[rows]]
    planes = turned(slopes, np.broadcast_to(UP, (len(rows), 3)))
    pitch = batch.arctan2(-batch.dot(planes, toes.ahead[rows], -1), planes[:, 2])
    start, most = pitch - _flat(sole), course.settings.steepest + DROOP
    met = _met(_over(course, plan, along, toes, rows), toes.size[rows], start, most)
    bent = np.flatnonzero(met < start)
    if len(bent):
        gaps = [_over(course, plan, along, toes, rows[bent], part, sole.height) for part in (*PARTS, 1.0)]

        def lowest(angles: Array, k: Indices) -> Array:
            return np.asarray(np.min([gap(angles, k) for gap in gaps], axis=0))

        deep = lowest(met[bent], np.arange(len(bent))) < -MET * toes.size[rows[bent]]
        met[bent] = np.where(deep, _met(lowest, toes.size[rows[bent]], start[bent], most), met[bent])
    angles = toes.rise.copy()
    angles[rows] = met
    return raised_ahead(plan.toes, toes.ahead, angles - toes.rise)


def _over(
    course: _Course,
    plan: FootPlan,
    along: Array,
    toes: _Toes,
    rows: Indices,
    part: float = 1.0,
    height: float = 0.0,
) -> Callable[[Array, Indices], Array]:
    """Heights (K,) above the ground of ends of toes at angles (K,), at places (K,) in rows (R,).

    Args:
        part: of the way to their ends from below the ball, whose `height` is that above the ground.
    """

    def over(angles: Array, k: Indices) -> Array:
        points = part * toes.ends(angles, rows[k]) - (1.0 - part) * height * UP
        far = 10.0 * toes.size[rows[k]]
        return np.asarray(points[:, 2] - np.clip(_above(course, plan, along, points, rows[k]), -far, far))

    return over


def _clear_toes(course: _Course, leg: WalkLeg, plan: FootPlan, along: Array) -> Array:
    """(F, 4) toes in the air, bent up smoothly where their ends would be in the ground."""
    assert plan.toes is not None
    toes, is_air, times = _Toes.of(leg.sole, plan.toes), plan.down < 0, course.time.times
    ends = toes.ends(toes.rise, course.rows)
    deep = np.flatnonzero(is_air & (_above(course, plan, along, ends, course.rows) > ends[:, 2]))
    if not len(deep):
        return plan.toes
    missing = np.zeros(len(is_air))
    over = _over(course, plan, along, toes, deep)
    missing[deep] = _met(over, toes.size[deep], toes.rise[deep], 0.0) - toes.rise[deep]
    raised = (1.0 - borne(plan.down, times, BLEND)) * smooth_envelope(missing, times, ROLLING)
    return raised_ahead(plan.toes, toes.ahead, np.maximum(raised, missing))


def _met(over: Callable[[Array, Indices], Array], sizes: Array, start: Array, most: float) -> Array:
    """(R,) radians above level at which toes meet the ground: the nearest to a start, on the side where they
    are above it.

    They are over other places the more they are bent, so the angle is bracketed first and then cut down by
    regula falsi (Dowell and Jarratt 1971, "A Modified Regula Falsi Method for Computing the Root of an
    Equation").

    Args:
        over: (K,) heights of toes above the ground at angles (K,), of toes (K,) of the R.
        sizes: (R,) their lengths.
        start: (R,) radians. Toes above the ground go down from there, by `most` if they meet none; those
            below it go up, to `BENT` above level.
        most: radians.
    """
    left = np.arange(len(start))
    first = over(start, left)
    touches = np.abs(first) <= MET * sizes  # toes that touch the ground stay there
    step = np.where(first > 0.0, -most, np.maximum(BENT - start, 0.0)) / BRACKETS
    step = np.where(touches, np.where(first > 0.0, -2.0, 2.0) * MET, step)
    result, near, over_near, bracketed = start.copy(), start.copy(), first.copy(), []
    for k in range(BRACKETS):
        left = left if k == 0 else left[~touches[left]]
        if not len(left):
            break
        far = near[left] + step[left]
        over_far = over(far, left)
        meets = (over_far > 0.0) != (first[left] > 0.0)
        bracketed.append(
            (left[meets], near[left[meets]], far[meets], over_near[left[meets]], over_far[meets])
        )
        left = left[~meets]
        near[left], over_near[left] = far[~meets], over_far[~meets]
    result[left] = near[left]
    k, low, high, over_low, over_high = (np.concatenate(each) for each in zip(*bracketed, strict=True))
    is_low = over_low > 0.0  # name the end above the ground high
    low, high = np.where(is_low, high, low), np.where(is_low, low, high)
    over_low, over_high = np.where(is_low, over_high, over_low), np.where(is_low, over_low, over_high)
    for _ in range(CUTS):
        share = over_high / np.maximum(over_high - over_low, 1e-12)
        middle = high + np.clip(share, 0.05, 0.95) * (low - high)
        over_middle = over(middle, k)
        is_high = over_middle > 0.0
        over_low = np.where(is_high, 0.5 * over_low, over_middle)
        over_high = np.where(is_high, over_middle, 0.5 * over_high)
        high, low = np.where(is_high, middle, high), np.where(is_high, low, middle)
    share = np.clip(over_high / np.maximum(over_high - over_low, 1e-12), 0.0, 1.0)
    root = high + share * (low - high)
    # At an edge the ground falls away: beyond it.
    result[k] = np.where(over(root, k) < -MET * sizes[k], high, root)
    return result


def _flat(sole: Sole) -> float:
    """Radians below level by which toes that lie on level ground lead down from the ball."""
    assert sole.toe is not None
    length = max(float(np.linalg.norm(sole.toe)), 1e-12)
    return float(np.arcsin(np.clip(sole.height / length, 0.0, 1.0)))


def _laid_toes(sole: Sole, feet: Array, slopes: Array) -> Array:
    """(F, 3) from the ball to the ends of toes that lie along slopes (F, 4), ahead of feet (F, 4)."""
    assert sole.toe is not None
    length, flat = max(float(np.linalg.norm(sole.toe)), 1e-12), _flat(sole)
    ahead = ahead_of(product(inverse(slopes), feet), sole.across)
    return np.asarray(length * turned(slopes, _up(ahead, np.full(len(feet), -flat))))


def _up(ahead: Array, angles: Array) -> Array:
    """(F, 3) directions (F, 3) along the ground, raised by angles (F,)."""
    return np.asarray(np.cos(angles)[:, None] * ahead + np.sin(angles)[:, None] * UP)


# Swings as seen from the hip -----------------------------------------------------------------------


def _swung(course: _Course, leg: WalkLeg, plan: FootPlan, joints: tuple[Array, Array]) -> FootPlan:
    """The foot, in the air, where its leg takes it on a body whose hips have sunk.

    In the frame of the hips the line of the leg, by its angles from straight down and by the logarithm of its
    length, is that of the cycle with what goes over from one footfall to the next. What the foot on its way
    over the ground is off that is added for the most part, the less the farther it is (`FAITHFUL`). Against
    its lower leg the foot is turned as in the cycle, with what goes over: it would make up for the leg else,
    in the frames in which the cycle turns it fastest. Then it is lifted over the ground.

    Args:
        joints: (F, n, 3) heads and (F, n, 4) rotations with the legs of the cycle, world.
    """
    cycle, target, limb, sole = course.cycle, course.cycle.target, leg.limb, leg.sole
    heads, world = joints
    upper, end, hips = (target.index(name) for name in (limb.upper, limb.end, cycle.figure_map.hips))
    body, start, foot = world[:, hips], heads[:, upper], world[:, end]
    back, is_air = inverse(body), (plan.down < 0)[:, None]
    down = batch.directions(turned(inverse(cycle.hip_turns), -UP).sum(axis=0))
    usual = _from_down(down, turned(back, heads[:, end] - start))
    off = _from_down(down, turned(back, plan.ankles(leg) - start)) - usual
    over = plan.gone_over(off)
    most = MOST * np.exp(usual[:, :1]) / leg.length
    added = (off - over) / np.hypot(1.0, batch.length(off - over, -1)[:, None] / most)
    led = usual + over + FAITHFUL * added
    far = np.minimum(np.exp(led[:, :1]), course.reach[limb.name][:, None])
    lines = turned(body, far * turned(_exponential(led[:, 1:]), np.broadcast_to(down, (len(led), 3))))
    led_leg = folded_leg(target, limb, heads, world, np.where(is_air, lines, plan.ankles(leg) - start))
    lower, led_lower = [*led_leg.items()][-1]
    usual_turns = product(inverse(world[:, target.index(lower)]), foot)
    turns = product(product(inverse(led_lower), plan.feet), inverse(usual_turns))
    turns = _turned_over(plan, turns)
    feet = np.where(is_air, product(led_lower, product(turns, usual_turns)), plan.feet)
    balls = np.where(is_air, start + lines + turned(feet, sole.ball), plan.balls)
    toes = plan.toes
    if toes is not None:
        carried = product(feet, product(inverse(foot), world[:, target.index(limb.tip)]))
        toes = _between(replace(plan, feet=feet), toes, carried)
    plan = replace(plan, balls=balls, feet=feet, toes=toes)
    cycle_foot = cycle.feet[limb.name]
    ahead = sampled(cycle_foot.balls, course.time.phases / cycle.step)[:, 0] - cycle_foot.before
    along = course.strides.along_at(course.line + ahead) + cycle_foot.before
    return _on_surface(course, leg, _lifted(course, leg, plan, along), along)


def _between(plan: FootPlan, laid: Array, free: Array) -> Array:
    """(F, 4) toes as laid (F, 4) where a foot is down, and in the air as free (F, 4), turned in the frame of
    the foot by what goes over from one footfall to the next."""
    back = inverse(plan.feet)
    turns = product(product(back, laid), inverse(product(back, free)))
    turns = _turned_over(plan, turns)
    return np.where((plan.down >= 0)[:, None], laid, product(product(plan.feet, turns), product(back, free)))


def _from_down(down: Array, lines: Array) -> Array:
    """(F, 4) logarithms of the lengths of lines (F, 3), and their turns from straight down (3,)."""
    logs = np.log(np.maximum(batch.length(lines, -1), 1e-9))
    return np.column_stack((logs, _logarithm(shortest(down, lines))))


def _turned_over(plan: FootPlan, turns: Array) -> Array:
    """(F, 4) turns (F, 4) where a foot is down, and what goes over from one to the next in the air."""
    return _exponential(plan.gone_over(_logarithm(np.where(turns[:, :1] < 0.0, -turns, turns))))


def _logarithm(turns: Array) -> Array:
    """(F, 3) rotation vectors of turns (F, 4)."""
    return batch.logarithm(np.ascontiguousarray(turns.T)).T


def _exponential(vectors: Array) -> Array:
    """(F, 4) turns by rotation vectors (F, 3)."""
    return np.ascontiguousarray(batch.exponential(np.ascontiguousarray(vectors.T)).T)


def _swings(down: Indices) -> list[tuple[int, int]]:
    """The first row of each way of a foot in the air, and the row after its last."""
    edges = np.flatnonzero(np.diff((down < 0).astype(np.int8), prepend=0, append=0))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _passage(course: _Course, down: Indices) -> tuple[Indices, Array]:
    """(F, 4) rows and their weights of which values go over from one footfall to the next: see `FootPlan`.

    A value goes over in a smooth step, in a stride at most, and its rate fades in `BLEND` seconds.
    """
    times, count = course.time.times, len(down)
    rows, weights = np.tile(np.arange(count)[:, None], 4), np.zeros((count, 4))
    weights[down >= 0, 0] = 1.0
    for first, end in _swings(down):
        span = course.cycle.stride_time
        if first > 0 and end < count:
            span = min(span, float(times[end] - times[first - 1]))
        for k, (edge, inner) in enumerate(((first - 1, first - 2), (end, end + 1))):
            if not 0 <= edge < count:
                continue
            far = np.abs(times[first:end] - times[edge])
            rows[first:end, 2 * k] = edge
            weights[first:end, 2 * k] = batch.smooth_step(1.0 - far / span)
            if 0 <= inner < count and down[inner] == down[edge]:
                fade = min(BLEND, span)
                u = np.minimum(far / fade, 1.0)
                rate = fade * u * (1.0 - u) ** 2 / abs(times[edge] - times[inner])
                rows[first:end, 2 * k + 1] = inner
                weights[first:end, 2 * k : 2 * k + 2] += rate[:, None] * (1.0, -1.0)
    return rows, weights


def _lifted(course: _Course, leg: WalkLeg, plan: FootPlan, along: Array) -> FootPlan:
    """The foot, in the air, lifted over the ground by a smooth height; toes turn up by themselves.

    It is as far above the ground as in the cycle, up to the clearance that is set.

    Args:
        along: (F,) metres of the way at the foot.
    """
    sole, times, rows = leg.sole, course.time.times, course.rows
    feet, toes, is_air = plan.feet, plan.toes, plan.down < 0
    points = leg.sole_points(feet, toes)
    if sole.toe is not None:  # as far as along the ground
        slopes = np.array([NO_TURN, *(fall.slope for fall in plan.footfalls)])[plan.down + 1]
        points.append(_laid_toes(sole, feet, _turned_over(plan, slopes)))
    heights = []
    for point in points:
        places = np.column_stack(((plan.balls + point)[:, :2], np.full(len(point), -np.inf)))
        heights.append(course.under(places, along, rows)[0])
    above = np.array([(plan.balls + point)[:, 2] for point in points])
    foot = course.cycle.feet[leg.limb.name]
    low = np.min([point[:, 2] for point in leg.sole_points(foot.feet, foot.toes)], axis=0)
    usual = sampled((foot.balls[:, 2] + sole.height + low)[:, None], course.time.phases / course.cycle.step)
    free = 1.0 - borne(plan.down, times, BLEND)
    clear = free * course.time.shares * usual[:, 0]
    needed = clearing(np.array(heights), above, clear, course.settings.clearance * course.cycle.leg)
    lift = smooth_envelope(np.maximum(0.0, needed) * is_air, times, BLEND)
    balls = plan.balls + (is_air * free * lift)[:, None] * UP
    return replace(plan, balls=balls)


# The hips -----------------------------------------------------------------------------------------


def _reaches(cycle: Cycle, settings: WalkSettings, standing: Standing, shares: Array) -> dict[str, Array]:
    """By leg, (F,) metres that it may be long: as far as cycle and stand stretch it, or the setting."""
    heads, _ = cycle.joints
    heads = np.concatenate((heads, standing.heads[None]))
    reaches = {}
    for leg in cycle.legs:
        foot, hip = (cycle.target.index(name) for name in (leg.limb.end, leg.limb.upper))
        lengths = np.minimum(batch.length(heads[:, foot] - heads[:, hip], -1), leg.length)
        walking = max(settings.extension * leg.length, float(lengths[: len(cycle.hips)].max()))
        reaches[leg.limb.name] = walking + (1.0 - shares) * max(0.0, float(lengths[-1]) - walking)
    return reaches


def _weights(course: _Course, leg: WalkLeg, plan: FootPlan) -> Array:
    """(F,) parts of what a leg lacks for which hips sink.

    All of it where it is down, and the less in the air, the more the cycle folds it.
    """
    heads, _ = course.cycle.joints
    foot, hip = (course.cycle.target.index(name) for name in (leg.limb.end, leg.limb.upper))
    shortest_line = float(batch.length(heads[:, foot] - heads[:, hip], -1).min())
    part = float(batch.smooth_step(np.array(shortest_line / leg.length)))
    return np.asarray(part + (1.0 - part) * borne(plan.down, course.time.times, BLEND))


def _rolled(course: _Course, leg: WalkLeg, plan: FootPlan, heads: Array) -> FootPlan:
    """The foot with its heel raised about the ball where the leg is too short for its ankle."""
    if not (leg.flat and leg.limb.tip):
        return plan
    under = course.profile.height(course.along)
    for i, fall in enumerate(plan.footfalls):
        under[plan.down == i] = fall.place[2]
    bears = borne(plan.down, course.time.times, BLEND)
    path = FootPath(plan.ankles(leg), plan.feet, plan.toes, bears, bears, under)
    reach = course.reach[leg.limb.name]
    path = rolled(path, leg.sole, heads[:, course.cycle.target.index(leg.limb.upper)], reach)
    angles = batch.angles_between(path.feet, plan.feet, -1)
    angles = smooth_envelope(angles, course.time.times, ROLLING)
    return replace(plan, feet=raised_ahead(plan.feet, -ahead_of(plan.feet, leg.sole.across), angles))


def _sunk(
    course: _Course,
    heads: Array,
    feet: Mapping[str, FootPlan],
    weights: Mapping[str, Array],
    hips: Array,
    turns: Array,
) -> tuple[Array, Array]:
    """(F, 3) hips and (F, 4) their rotation of a long body that sinks at the end whose legs are too short.

    So the other end's legs do not fold for them. What that leaves out of reach the whole body sinks for.
    """
    cycle, times, whole = course.cycle, course.time.times, np.ones(len(heads))
    _, headings = course.way.at(course.along)
    ahead = np.column_stack((np.cos(headings), np.sin(headings)))
    missing, places = [], []
    for leg in cycle.legs:
        start = heads[:, cycle.target.index(leg.limb.upper)]
        missing.append(
            drops(start, feet[leg.limb.name].ankles(leg), course.reach[leg.limb.name], weights[leg.limb.name])
        )
        places.append(((start - hips)[:, :2] * ahead).sum(axis=1).mean())
    middle = 0.5 * (max(places) + min(places))
    ends = []
    for is_front in (True, False):
        group = [k for k, place in enumerate(places) if (place > middle) == is_front]
        needed = np.max([missing[k] for k in group], axis=0)
        needed = smooth_envelope(needed, times, cycle.stride_time)  # as the ground is a mean over a stride
        ends.append((float(np.mean([places[k] for k in group])), needed))
    (front, low), (back, high) = ends
    grade = (high - low) / (front - back)
    lift = -high - grade * back
    axes = np.column_stack((-ahead * grade[:, None], whole))
    return hips + lift[:, None] * UP, product(shortest(UP, axes), turns)


def _moved(
    course: _Course, heads: Array, feet: Mapping[str, FootPlan], weights: Mapping[str, Array]
) -> Array:
    """(F, 3) how far the hips move for legs that are too short for their feet, in the air too: one that was
    let go of there would jump."""
    times, window, legs = course.time.times, 0.5 * course.cycle.stride_time, []
    for leg in course.cycle.legs:
        hips = heads[:, course.cycle.target.index(leg.limb.upper)]
        reach = course.reach[leg.limb.name]
        legs.append((hips, feet[leg.limb.name].ankles(leg), reach, weights[leg.limb.name]))
    shift = np.zeros((len(heads), 3))
    shift[:, :2] = smooth_shifts([ways_aside(*each) for each in legs], times, window)
    missing = [drops(hips + shift, *others) for hips, *others in legs]
    shift[:, 2] = -smooth_envelope(np.max(missing, axis=0), times, window)
    return shift
