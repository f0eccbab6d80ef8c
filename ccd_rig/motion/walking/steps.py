"""The frames of a walk: where the body goes, where feet are planted and how they get there.

    cycle, way, ground, timeline -> body carried along the way -> footfalls on the ground -> feet -> hips

A stance of the cycle rests at a place of the straight line, which the way bends along the curve (`path`). It
becomes a footfall: a place on the ground, with the slope that heel and ball lie on. Where heel or toes have
nothing level to lie on, as at the edge of a stair, the footfall goes along the curve to where they have. Between
two footfalls the foot moves as in the cycle, over a base that leads from one to the other, and is lifted over
what lies between.

The body goes at its height in the cycle above the mean height of the ground over a stride, and sinks, as smooth
as that, for legs that are too short for their feet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InvalidInput
from ...limits.batch import BatchLimits
from ...maths import batch
from ...maths.batch import Array
from ..ground import Ground
from ..interpolation import same_side
from ..retargeting.alignment import UP, shortest
from ..retargeting.feet import FootPath, missing_turn, raised_ahead, rolled
from ..retargeting.motions import product, turned
from ..retargeting.root import drops, smooth_envelope, smooth_shifts, ways_aside
from .cycle import BLEND, Cycle, FootCycle, WalkLeg, placed, posed, sampled
from .path import Way
from .settings import WalkSettings
from .timeline import Timeline, smooth

HIGH = 1e5
"""Metres above a curve from which ground is looked for that is not below it."""
STEP_UP = 0.8
"""Leg lengths above the ground so far from which the next is looked for."""
WALL = 0.6
"""Leg lengths up to which the ground may step up or down at once, and height at which walls are looked for."""
GRAIN = 0.1
"""Leg lengths between places of the way whose ground is looked at."""
NARROW = 0.5
"""Leg lengths of the widest hole that a body goes over."""
TRIES = 17
"""Places along the curve at which a footfall may be, an odd number."""
UNEVEN, CAUGHT = 0.05, 0.03
"""Leg lengths by which a heel may be off the plane of its ball, and toes below the ground, before a footfall is
moved."""
DROOP, BENT = np.radians(25.0), np.radians(50.0)
"""How far toes bend down over an edge, and up, at most."""
ROOM = 0.06
"""Leg lengths ahead of the toes that are to be free, for them to swing."""
GOOD = 0.5
"""What a footfall may cost, in squares of these, before it is moved."""
WINDOWS = ((0.0, 1.0), (0.0, 0.85), (0.0, 0.7), (0.0, 0.55), (0.15, 1.0), (0.3, 1.0), (0.45, 1.0))
"""Parts of a swing in which the base may go from the height of one footfall to that of the next."""
ROLLING = 0.3
"""Seconds over which heels are raised further for a leg that is too short."""
HASTE = 0.15
"""What a shorter of these costs, in parts of the rise or fall."""


@dataclass(frozen=True, eq=False)
class Footfall:
    """A foot that is down.

    Attributes:
        first, last: phases between which it is.
        along, aside: of the straight line, metres; where the cycle has it.
        shift: metres by which it is moved along the curve.
        place: (3,) of the ground under the ball, world, in the row in which it comes down.
        slope: (4,) from level to the plane on which heel and ball lie.
        row: in which it comes down.
    """

    first: float
    last: float
    along: float
    aside: float
    shift: float
    place: Array
    slope: Array
    row: int


@dataclass(frozen=True, eq=False)
class FootPlan:
    """What a foot does, world.

    Attributes:
        footfalls: in order.
        balls: (F, 3) joint at the ball.
        feet: (F, 4) rotations.
        toes: (F, 4) rotations, or None.
        borne: (F,) 1 in footfalls, fading to 0 beyond.
        down: (F,) index of the footfall, -1 in the air.
    """

    footfalls: Sequence[Footfall]
    balls: Array
    feet: Array
    toes: Array | None
    borne: Array
    down: Array

    def ankles(self, leg: WalkLeg) -> Array:
        """(F, 3) joint of the foot."""
        return np.asarray(self.balls - turned(self.feet, leg.sole.ball))


@dataclass(frozen=True, eq=False)
class WalkPlan:
    """A walk before legs are solved.

    Attributes:
        rotations: (F, n, 4) relative to rest.
        translations: (F, n, 3) relative to rest, model units.
        feet: by leg.
        moved: (F, 3) metres by which the hips are moved for legs to reach, world.
        times: (F,) seconds.
        along: (F,) metres of the way.
    """

    rotations: Array
    translations: Array
    feet: Mapping[str, FootPlan]
    moved: Array
    times: Array
    along: Array


def plan_walk(
    cycle: Cycle, way: Way, height: float, ground: Ground, time: Timeline, settings: WalkSettings
) -> WalkPlan:
    """The walk along a way.

    Args:
        cycle: what is walked.
        way: along which.
        height: of the way's start, world metres; the ground is looked for below it, else above.
        ground: what feet stand on; its rows are frames.
        time: frames.
        settings: how.

    Raises:
        InvalidInput: there is no ground, a hole or a wall in the way, or a bend that is too narrow.
    """
    widest = max(float(np.abs(foot.balls[:, 1]).max()) for foot in cycle.feet.values())
    if way.smallest_radius <= widest:
        raise InvalidInput(
            f"the curve bends with a radius of {way.smallest_radius:.2g} m, feet are {widest:.2g} m beside its "
            "line: make the bend wider"
        )
    along = settings.offset + cycle.speed * (time.phases - time.phases[0])
    profile = _profile(cycle, way, height, ground, along)
    body = _body(cycle, way, time, along, profile)
    feet = {
        leg.limb.name: _foot(cycle, leg, way, ground, time, along, profile, settings) for leg in cycle.legs
    }
    rotations, hips, turns = body
    heads, _ = posed(cycle.figure_map, cycle.target, *body)
    feet = {
        leg.limb.name: _rolled(
            cycle, leg, feet[leg.limb.name], heads, profile.height(along), time.times, settings
        )
        for leg in cycle.legs
    }
    moved = _moved(cycle, heads, feet, time, settings)
    pose = placed(cycle.figure_map, cycle.target, rotations, hips + moved, turns)
    feet = {
        leg.limb.name: _within_reach(cycle, leg, feet[leg.limb.name], pose, settings) for leg in cycle.legs
    }
    return WalkPlan(*pose, feet, moved, time.times, along)


# The ground along the way ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Profile:
    """Heights (P,) of the ground at metres (P,) of the way, and (P,) their mean over a stride."""

    along: Array
    heights: Array
    means: Array

    def height(self, along: Array) -> Array:
        """Of the ground, about."""
        return np.asarray(np.interp(along, self.along, self.heights))


def _profile(cycle: Cycle, way: Way, height: float, ground: Ground, along: Array) -> Profile:
    leg, stride = cycle.leg, cycle.speed * cycle.period
    ends = along[0] - stride, along[-1] + stride
    count = int(np.ceil((ends[1] - ends[0]) / (GRAIN * leg))) + 1
    grid = np.linspace(*ends, count)
    places, _ = way.at(grid)
    rows = np.searchsorted(along, grid).clip(0, len(along) - 1)
    heights = np.full(count, np.nan)
    start = int(np.searchsorted(grid, along[0]))
    heights[start] = _first_height(ground, places[start], height, leg, int(rows[start]))
    for order in (range(start + 1, count), range(start - 1, -1, -1)):
        known = float(heights[start])
        for k in order:
            top = np.array([[*places[k], known + STEP_UP * leg]])
            found = float(ground.below(top, rows[k : k + 1])[0][0])
            if not np.isfinite(found):  # below ground that is far above, such as in a wall, or over a hole
                top[0, 2] = known + HIGH
                heights[k] = float(ground.below(top, rows[k : k + 1])[0][0])
                continue
            known = heights[k] = found
    inside = (grid >= along[0] - 1e-9) & (grid <= along[-1] + 1e-9)
    _require_ground(heights, grid, inside, leg)
    _require_no_wall(ground, places, heights, grid, rows, inside, leg)
    known = np.isfinite(heights)
    heights = np.interp(grid, grid[known], heights[known])
    half = max(1, round(0.5 * stride / (grid[1] - grid[0])))
    bell = np.hanning(2 * half + 3)[1:-1]
    # Straight on beyond the ends, so that a slope stays one.
    before = 2.0 * heights[0] - heights[half:0:-1]
    after = 2.0 * heights[-1] - heights[-2 : -half - 2 : -1]
    means = np.convolve(np.concatenate((before, heights, after)), bell / bell.sum(), mode="valid")
    return Profile(grid, heights, means)


def _first_height(ground: Ground, place: Array, height: float, leg: float, row: int) -> float:
    rows = np.array([row])
    for top in (height + STEP_UP * leg, height + HIGH):
        found = float(ground.below(np.array([[*place, top]]), rows)[0][0])
        if np.isfinite(found):
            return found
    raise InvalidInput(
        f"there is no ground below the start of the way at ({place[0]:.3g}, {place[1]:.3g}): move the curve over "
        "it, or choose another ground"
    )


def _require_ground(heights: Array, grid: Array, inside: Array, leg: float) -> None:
    """Raises InvalidInput for holes that are too wide."""
    last = None
    for k in np.flatnonzero(inside):
        if np.isfinite(heights[k]):
            last = None
            continue
        last = k if last is None else last
        if grid[k] - grid[last] > NARROW * leg:
            raise InvalidInput(
                f"there is no ground at {grid[last]:.2f} m along the curve: close the hole, or lead the curve "
                "round it"
            )


def _require_no_wall(
    ground: Ground, places: Array, heights: Array, grid: Array, rows: Array, inside: Array, leg: float
) -> None:
    k = np.flatnonzero(inside & np.isfinite(heights))
    if len(k) < 2:
        return
    steps = np.diff(heights[k])
    steep = np.flatnonzero(np.abs(steps) > WALL * leg)
    if len(steep):
        at = int(steep[0])
        word = "rises" if steps[at] > 0.0 else "falls"
        raise InvalidInput(
            f"the ground {word} by {abs(steps[at]):.2f} m at once at {grid[k[at]]:.2f} m along the curve, more "
            "than a leg can step: lead the curve round it"
        )
    tops = np.column_stack((places[k], heights[k] + WALL * leg))
    for i in range(len(k) - 1):
        if ground.blocked(tops[i : i + 1], tops[i + 1 : i + 2], int(rows[k[i]]))[0]:
            raise InvalidInput(
                f"a wall stands in the way at {grid[k[i]]:.2f} m along the curve: lead the curve round it"
            )


# The body -----------------------------------------------------------------------------------------


def _body(
    cycle: Cycle, way: Way, time: Timeline, along: Array, profile: Profile
) -> tuple[Array, Array, Array]:
    """(F, n, 4) rotations inside limits, (F, 3) hips and (F, 4) their rotation, world."""
    at = time.phases / cycle.step
    rotations, hips, turns = (sampled(each, at) for each in (cycle.rotations, cycle.hips, cycle.hip_turns))
    if (time.shares < 1.0).any():
        means = [_mean_rotation(each) for each in (*cycle.rotations.transpose(1, 0, 2), cycle.hip_turns)]
        share = time.shares
        hips = cycle.hips.mean(axis=0) + share[:, None] * (hips - cycle.hips.mean(axis=0))
        turns = batch.slerp(np.broadcast_to(means[-1], turns.shape), turns, share, -1)
        for i, mean in enumerate(means[:-1]):
            own = np.ascontiguousarray(rotations[:, i])
            rotations[:, i] = batch.slerp(np.broadcast_to(mean, own.shape), own, share, -1)
    limits = BatchLimits([joint.limit for joint in cycle.target.skeleton.joints])
    rotations = limits.project(np.ascontiguousarray(rotations.transpose(2, 1, 0)))[0].transpose(2, 1, 0)
    places, headings = way.bent(along + hips[:, 0], np.zeros(len(along)))
    middle, about = way.at(along)
    heading = _about_up(about)
    world = turned(heading, hips)
    world[:, :2] += middle
    world[:, 2] += np.interp(along, profile.along, profile.means)
    del places, headings
    return np.ascontiguousarray(rotations), world, product(heading, turns)


def _mean_rotation(rotations: Array) -> Array:
    """(4,) of (K, 4) near each other."""
    total = same_side(rotations[:, None])[:, 0].sum(axis=0)
    size = float(np.linalg.norm(total))
    return np.asarray(total / size) if size > 1e-9 else rotations[0]


def _about_up(angles: Array) -> Array:
    zeros = np.zeros_like(angles)
    return np.stack((np.cos(0.5 * angles), zeros, zeros, np.sin(0.5 * angles)), axis=-1)


# Feet ---------------------------------------------------------------------------------------------


def _foot(
    cycle: Cycle,
    leg: WalkLeg,
    way: Way,
    ground: Ground,
    time: Timeline,
    along: Array,
    profile: Profile,
    settings: WalkSettings,
) -> FootPlan:
    foot, sole = cycle.feet[leg.limb.name], leg.sole
    count, phases = len(time.phases), time.phases
    start = settings.offset - cycle.speed * phases[0]  # of the straight line at phase 0
    at = phases / cycle.step
    balls, feet = sampled(foot.balls, at), sampled(foot.feet, at)
    toes = sampled(foot.toes, at) if foot.toes is not None else None
    ahead, aside, rises = start + cycle.speed * phases + balls[:, 0], balls[:, 1], balls[:, 2].copy()
    spans = _spans(cycle, foot, time, start)
    spans = _with_stands(spans, time, (ahead, aside))
    if time.start or time.stop:
        feet = _standing_feet(foot, cycle, leg, time, feet)
        rises *= time.shares
    if not spans:  # the foot is never down
        spans = []
    falls = [_footfall(cycle, leg, foot, way, ground, time, profile, settings, span) for span in spans]
    down = np.full(count, -1)
    for i, fall in enumerate(falls):
        rows = (phases >= fall.first - 1e-9) & (phases <= fall.last + 1e-9)
        down[rows] = i
        ahead[rows], aside[rows], rises[rows] = fall.along, fall.aside, 0.0
    # What stands and is carried between footfalls.
    shifts, slopes = np.zeros(count), np.tile((1.0, 0.0, 0.0, 0.0), (count, 1))
    carried, turns = np.zeros((count, 3)), np.tile((1.0, 0.0, 0.0, 0.0), (count, 1))
    bases, swings = np.zeros(count), []
    ends: list[tuple[Array, Array]] = []
    for i, fall in enumerate(falls):
        rows = np.flatnonzero(down == i)
        end = np.zeros(3), np.array((1.0, 0.0, 0.0, 0.0))
        if len(rows):
            places, turned_by = ground.carried(fall.place, fall.row, rows)
            shifts[rows], slopes[rows] = fall.shift, fall.slope
            carried[rows], turns[rows] = (places - fall.place) * (1.0, 1.0, 0.0), turned_by
            bases[rows] = places[:, 2]
            end = carried[rows[-1]], turned_by[-1]
        ends.append(end)
    edges = [-1, *range(len(falls))]
    for before, after in zip(edges, [*range(len(falls)), -1], strict=True):
        low = falls[before].last if before >= 0 else -np.inf
        high = falls[after].first if after >= 0 else np.inf
        rows = np.flatnonzero((down < 0) & (phases > low) & (phases < high))
        if not len(rows):
            continue
        if before >= 0 and after >= 0:
            u = (phases[rows] - low) / (high - low)
        else:
            u = np.full(len(rows), 1.0 if before < 0 else 0.0)
        a = falls[before if before >= 0 else after] if falls else None
        b = falls[after if after >= 0 else before] if falls else None
        if a is None or b is None:
            bases[rows] = profile.height(ahead[rows])
            continue
        part = smooth(u)
        if before >= 0 and after >= 0 and b.along > a.along:
            part = np.clip((ahead[rows] - a.along) / (b.along - a.along), 0.0, 1.0)
        shifts[rows] = a.shift + part * (b.shift - a.shift)
        pairs = (np.broadcast_to(each, (len(rows), 4)) for each in (a.slope, b.slope))
        slopes[rows] = batch.slerp(*pairs, part, -1)
        if before >= 0:
            rest, turn = ends[before]
            carried[rows] = (1.0 - part)[:, None] * rest
            turns[rows] = batch.slerp(
                np.broadcast_to(turn, (len(rows), 4)), np.tile((1.0, 0.0, 0.0, 0.0), (len(rows), 1)), part, -1
            )
        swings.append((rows, u, part, before, after))
    xy, headings = way.bent(ahead + shifts, aside)
    xy = xy + carried[:, :2]
    upright = product(slopes, product(turns, _about_up(headings)))
    feet = product(upright, feet)
    toes = product(upright, toes) if toes is not None else None
    arms = turned(slopes, np.column_stack((np.zeros((count, 2)), sole.height + rises)))
    points = _sole_points(leg, feet, toes)
    for rows, u, part, before, after in swings:
        high = profile.height(ahead[rows])
        if before < 0 or after < 0:
            fall = falls[max(before, after)]
            bases[rows] = high + fall.place[2] - float(profile.height(np.array([fall.along]))[0])
            continue
        lows = bases[down == before][-1] if (down == before).any() else falls[before].place[2]
        need = _needed(ground, rows, xy, arms, points, high + STEP_UP * cycle.leg)
        own = np.min([arms[rows, 2] + point[rows, 2] for point in points], axis=0)
        margin = np.clip(own, 0.0, settings.clearance * cycle.leg)  # the cycle's, where it is lower
        bases[rows] = _swing_base(u, part, float(lows), float(falls[after].place[2]), need + margin)
    borne = _borne(down, time.times)
    balls = np.column_stack((xy, bases)) + arms
    return _on_surface(
        leg,
        ground,
        FootPlan(falls, balls, feet, toes, borne, down),
        time.times,
        profile.height(ahead),
        cycle.leg,
        settings,
    )


def _spans(
    cycle: Cycle, foot: FootCycle, time: Timeline, start: float
) -> list[tuple[float, float, float, float]]:
    """First and last phase, along and aside of each stance that the frames meet."""
    found = []
    periods = range(
        int(np.floor(time.phases[0] / cycle.period)) - 2, int(np.floor(time.phases[-1] / cycle.period)) + 2
    )
    for k in periods:
        later, way = k * cycle.period, k * cycle.period * cycle.speed
        for stance in foot.stances:
            span = stance.first + later, stance.last + later
            if span[0] <= time.phases[-1] + cycle.period and span[1] >= time.phases[0]:
                found.append((*span, start + stance.along + way, stance.aside))
    # One more than the last that is met, for the foot to be on its way there.
    ends = [i for i, span in enumerate(found) if span[0] > time.phases[-1]]
    return found[: ends[0] + 1] if ends else found


def _with_stands(
    spans: list[tuple[float, float, float, float]], time: Timeline, way: tuple[Array, Array]
) -> list[tuple[float, float, float, float]]:
    """Spans with those of feet that stand, in the air of the cycle, at the first or at the last frame."""
    ahead, aside = way
    first, last = float(time.phases[0]), float(time.phases[-1])
    if time.start and not any(span[0] <= first <= span[1] for span in spans):
        spans = [(first, first, float(ahead[0]), float(aside[0])), *(s for s in spans if s[0] > first)]
    if time.stop:
        spans = [span for span in spans if span[0] <= last]
        if not spans or spans[-1][1] < last:
            spans = [*spans, (last, last, float(ahead[-1]), float(aside[-1]))]
    return spans


def _standing_feet(foot: FootCycle, cycle: Cycle, leg: WalkLeg, time: Timeline, feet: Array) -> Array:
    """(F, 4) rotations of a foot that goes over from how it stands, as in the middle of its stance."""
    if not foot.stances:
        return feet
    stance = foot.stances[0]
    middle = sampled(foot.feet, np.array([0.5 * (stance.first + stance.last) / cycle.step]))
    del leg
    return batch.slerp(np.broadcast_to(middle, feet.shape), feet, time.shares, -1)


def _footfall(
    cycle: Cycle,
    leg: WalkLeg,
    foot: FootCycle,
    way: Way,
    ground: Ground,
    time: Timeline,
    profile: Profile,
    settings: WalkSettings,
    span: tuple[float, float, float, float],
) -> Footfall:
    first, last, along, aside = span
    row = int(np.searchsorted(time.phases, first - 1e-9).clip(0, len(time.phases) - 1))
    size, sole = cycle.leg, leg.sole
    middle = sampled(foot.feet, np.array([0.5 * (first + last) / cycle.step]))
    side = turned(middle, sole.across)[0] * (1.0, 1.0, 0.0)
    front = np.cross(side, UP)
    front /= max(float(np.linalg.norm(front)), 1e-12)
    heel = float(np.linalg.norm(turned(middle, sole.heel)[0, :2])) if leg.flat else 0.0
    toe = float(np.linalg.norm(sole.toe) ** 2 - sole.height**2) ** 0.5 if sole.toe is not None else 0.0
    half = 0.04 * leg.length
    left = np.array((-front[1], front[0], 0.0))
    offsets = np.stack(
        (0.0 * front, -heel * front, toe * front, half * left, -half * left, (toe + ROOM * size) * front)
    )
    tries = np.linspace(-settings.adjust * size, settings.adjust * size, TRIES)
    tries = tries[np.argsort(np.abs(tries), kind="stable")]
    best: tuple[float, Footfall] | None = None
    for shift in tries.tolist():
        xy, heading = way.bent(np.array([along + shift]), np.array([aside]))
        about = _about_up(heading)
        arms = turned(about, offsets)
        points = np.column_stack((xy + arms[:, :2], np.zeros(6)))
        points[:, 2] = profile.height(np.array([along + shift]))[0] + STEP_UP * size
        heights, normals = ground.below(points, np.full(6, row))
        if not np.isfinite(heights[0]):
            continue
        place = np.array((*xy[0], heights[0]))
        normal, cost = normals[0], (shift / max(settings.adjust * size, 1e-12)) ** 2
        ahead = arms[2] if toe else turned(about, front[None])[0]
        ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-12)
        across = np.cross(UP, ahead)
        tilt = -float(normal @ ahead) / max(float(normal[2]), 1e-6)
        roll = -float(normal @ across) / max(float(normal[2]), 1e-6)
        steepest = float(np.tan(settings.steepest))
        if heel > 0.0:
            lean = (heights[0] - heights[1]) / heel if np.isfinite(heights[1]) else np.inf
            off = abs(lean - tilt) * heel if np.isfinite(lean) else UNEVEN * size * 2.0
            cost += (off / (UNEVEN * size)) ** 2
            if abs(lean) <= steepest:
                tilt = lean
        if np.isfinite(heights[3]) and np.isfinite(heights[4]):
            sides = (heights[3] - heights[4]) / (2.0 * half)
            roll = sides if abs(sides) <= steepest else roll
        for k, far in ((2, toe), (5, toe + ROOM * size)):
            caught = float(heights[k] - heights[0] - tilt * far)
            caught = caught if np.isfinite(caught) else 0.0
            cost += (max(0.0, caught) / (CAUGHT * size)) ** 2
        slope = np.array((1.0, 0.0, 0.0, 0.0))
        if leg.flat:
            grade = np.array((tilt, roll))
            grade *= min(1.0, steepest / max(float(np.hypot(*grade)), 1e-12))
            plane = UP - grade[0] * ahead - grade[1] * across
            slope = shortest(np.array(UP)[None] * 1.0, plane[None])[0]
        fall = Footfall(first, last, along, aside, shift, place, slope, row)
        if shift == 0.0 and cost < GOOD:
            return fall
        if best is None or cost < best[0] - 1e-9:
            best = cost, fall
    if best is None:
        raise InvalidInput(
            f"there is no ground for the {leg.limb.name} at {along:.2f} m along the curve: close the hole, or lead "
            "the curve farther from the edge"
        )
    return best[1]


def _sole_points(leg: WalkLeg, feet: Array, toes: Array | None) -> list[Array]:
    """(F, 3) each, from the ball's joint."""
    found = [turned(feet, leg.sole.under), turned(feet, leg.sole.heel)]
    if toes is not None and leg.sole.toe is not None:
        found.append(turned(toes, leg.sole.toe))
    return found


def _needed(
    ground: Ground, rows: Array, xy: Array, arms: Array, points: Sequence[Array], tops: Array
) -> Array:
    """(R,) height of the base at least, for the sole to be above the ground; minus infinity over holes."""
    found = np.full(len(rows), -np.inf)
    for point in points:
        at = arms[rows] + point[rows]
        under = np.column_stack((xy[rows] + at[:, :2], tops))
        heights, _ = ground.below(under, rows)
        found = np.fmax(found, heights - at[:, 2])
    return found


def _swing_base(u: Array, p: Array, start: float, end: float, needed: Array) -> Array:
    """(R,) heights from one footfall to the next that are not below the needed ones, but near the ends.

    On a slope it is a line by how far the foot is on its way, so that the swing is the cycle's, turned. Over a
    stair it is a smooth step in a part of the time: the foot goes up before it goes ahead. An arch is added for
    what lies between; of all ways the one with the lowest arch is taken.

    Args:
        u: (R,) part of the time, 0 to 1.
        p: (R,) how far the foot is, 0 to 1.
        start, end: heights of the footfalls.
        needed: (R,) heights.
    """
    best: tuple[float, Array] | None = None
    ways = [(p, p, 0.0)]
    for low, high in WINDOWS:
        v = np.clip((u - low) / (high - low), 0.0, 1.0)
        ways.append((v**3 * (10.0 - 15.0 * v + 6.0 * v * v), u, HASTE / (high - low)))
    for part, over, haste in ways:
        base, arch = start + (end - start) * part, 4.0 * over * (1.0 - over)
        clear = arch > 0.2
        lift = float(np.max(((needed - base) / np.maximum(arch, 0.2))[clear], initial=0.0))
        cost = lift + haste * abs(end - start)
        if best is None or cost < best[0] - 1e-12:
            best = cost, base + lift * arch
    assert best is not None
    return best[1]


def _borne(down: Array, times: Array) -> Array:
    """(F,) 1 where a foot is down, 0 farther than `BLEND` seconds from there, smooth between."""
    rows = np.flatnonzero(down >= 0)
    if not len(rows):
        return np.zeros(len(down))
    after = np.searchsorted(rows, np.arange(len(down))).clip(0, len(rows) - 1)
    before = (after - 1).clip(0)
    far = np.minimum(np.abs(times[rows[after]] - times), np.abs(times - times[rows[before]]))
    return smooth(1.0 - far / BLEND)


def _on_surface(
    leg: WalkLeg,
    ground: Ground,
    plan: FootPlan,
    times: Array,
    heights: Array,
    size: float,
    settings: WalkSettings,
) -> FootPlan:
    """The foot with its heel and toes on the ground where it is down, and nothing of it below."""
    sole, balls, feet, toes = leg.sole, plan.balls, plan.feet, plan.toes
    rows, tops = np.arange(len(balls)), heights + STEP_UP * size
    ahead = _ahead(feet, sole.across)

    def under(arm: Array) -> Array:
        points = np.column_stack(((balls + arm)[:, :2], np.maximum(tops, balls[:, 2] + 0.2 * size)))
        found, _ = ground.below(points, rows)
        return np.where(np.isfinite(found), found, -np.inf)

    if leg.flat:
        below = np.maximum(under(turned(feet, sole.heel)) - balls[:, 2], -10.0 * size)
        feet = raised_ahead(feet, -ahead, missing_turn(feet, sole.heel, -ahead, below))
    if toes is not None and sole.toe is not None:
        tips = turned(toes, sole.toe)
        flat = batch.length(tips[:, :2], -1)
        rise = np.arctan2(tips[:, 2], np.maximum(flat, 1e-9))
        length = float(np.linalg.norm(sole.toe))
        reach = np.sqrt(max(length**2 - sole.height**2, 1e-12))
        level = under(ahead * reach) - balls[:, 2]
        # The end of the toes is as far below the ball's joint as the ground there, within what toes bend.
        drop = np.arcsin(np.clip(sole.height / max(length, 1e-12), 0.0, 1.0))
        wanted = np.arctan2(np.maximum(level, -10.0 * length), reach)
        wanted = np.clip(wanted, -drop - settings.steepest - DROOP, BENT)
        missing = np.where(np.isfinite(level), np.maximum(0.0, np.arctan2(level, reach) - rise), 0.0)
        missing = smooth_envelope(np.minimum(missing, BENT), times, ROLLING)
        turn = plan.borne * (wanted - rise) + (1.0 - plan.borne) * missing
        toes = raised_ahead(toes, ahead, turn)
    points = _sole_points(leg, feet, toes)
    deep = np.max([under(point) - balls[:, 2] - point[:, 2] for point in points[:1]], axis=0)
    balls = balls + np.column_stack((np.zeros((len(balls), 2)), np.maximum(0.0, deep)))
    return replace(plan, balls=balls, feet=feet, toes=toes)


def _ahead(rotations: Array, across: Array) -> Array:
    """(F, 3) where feet point along the ground."""
    sides = turned(rotations, across) * (1.0, 1.0, 0.0)
    found = batch.cross(sides, np.broadcast_to(UP, sides.shape), -1)
    return np.asarray(found / np.maximum(batch.length(found, -1), 1e-12)[:, None])


# The hips -----------------------------------------------------------------------------------------


def _reach(cycle: Cycle, leg: WalkLeg, settings: WalkSettings) -> float:
    """Metres that a leg may be long: as far as the cycle stretches it, or the setting."""
    heads, world = posed(cycle.figure_map, cycle.target, cycle.rotations, cycle.hips, cycle.hip_turns)
    foot = cycle.target.index(leg.limb.end)
    ways = heads[:, foot] - heads[:, cycle.target.index(leg.limb.upper)]
    own = float(batch.length(ways, -1).max()) / leg.length
    del world
    return leg.length * max(settings.extension, min(own, 1.0))


def _rolled(
    cycle: Cycle,
    leg: WalkLeg,
    plan: FootPlan,
    heads: Array,
    ground: Array,
    times: Array,
    settings: WalkSettings,
) -> FootPlan:
    """The foot with its heel raised about the ball where the leg is too short for its ankle."""
    if not (leg.flat and leg.limb.tip):
        return plan
    under = ground.copy()
    for i, fall in enumerate(plan.footfalls):
        under[plan.down == i] = fall.place[2]
    path = FootPath(plan.ankles(leg), plan.feet, plan.toes, plan.borne, plan.borne, under)
    reach = np.full(len(heads), _reach(cycle, leg, settings))
    path = rolled(path, leg.sole, heads[:, cycle.target.index(leg.limb.upper)], reach)
    angles = smooth_envelope(batch.angles_between(path.feet, plan.feet, -1), times, ROLLING)
    return replace(plan, feet=raised_ahead(plan.feet, -_ahead(plan.feet, leg.sole.across), angles))


def _moved(
    cycle: Cycle,
    heads: Array,
    feet: Mapping[str, FootPlan],
    time: Timeline,
    settings: WalkSettings,
) -> Array:
    """(F, 3) how far the hips move for legs that are too short for their feet."""
    window = 0.5 * cycle.period
    asked = []
    for leg in cycle.legs:
        plan, reach = feet[leg.limb.name], np.full(len(heads), _reach(cycle, leg, settings))
        asked.append(
            (heads[:, cycle.target.index(leg.limb.upper)], plan.ankles(leg), reach, np.ones(len(heads)))
        )
    shift = np.zeros((len(heads), 3))
    shift[:, :2] = smooth_shifts([ways_aside(*each) for each in asked], time.times, window)
    missing = [drops(hips + shift, *others) for hips, *others in asked]
    shift[:, 2] = -smooth_envelope(np.max(missing, axis=0), time.times, window)
    return shift


def _within_reach(
    cycle: Cycle, leg: WalkLeg, plan: FootPlan, pose: tuple[Array, Array], settings: WalkSettings
) -> FootPlan:
    """The foot no farther from its hip than its leg is long."""
    heads, _ = cycle.target.world(*pose)
    hips, ankles = heads[:, cycle.target.index(leg.limb.upper)], plan.ankles(leg)
    ways = ankles - hips
    far = batch.length(ways, -1)
    part = np.minimum(1.0, _reach(cycle, leg, settings) / np.maximum(far, 1e-12))
    return replace(plan, balls=plan.balls + (part - 1.0)[:, None] * ways)
