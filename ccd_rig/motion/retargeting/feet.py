"""Paths of feet: the source's ankles scaled, each contact locked at the point of the sole the foot rolls on.

The sole has three points at the ground below the reference pose: under the ball, behind the ankle (heel) and
at the end of the toes. A step is a contact of the ball, with the rolls of the source before and after it
(`stances`). The foot turns about its heel, then about its ball, then about the end of its toes. Successive
points join without a jump: a heel is locked at its position at the moment when the ball locks. Beyond both
ends the offset fades to zero along a cubic that starts with its value and its velocity, so neither jumps
(Kovar, Schreiner and Gleicher 2002, "Footskate Cleanup for Motion Capture Editing"):

    offset(t) = h00(t / T) D + h10(t / T) T V        D = offset, V = its velocity, at the edge

While the ball is locked, the toes are flat, in their mean heading. A heel below the ground in a contact turns
the foot about its ball, and toes are turned up. What is still below lifts the foot. Hips are shifted towards
feet that are out of reach of their legs.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...maths import batch
from ...maths.batch import Array, Mask
from ..contacts import LEVEL, Phase
from ..interpolation import bell_means
from ..settings import ContactThresholds
from .alignment import UP, shortest
from .figures import Limb, TargetFigure, inverse, limb_length, product, turned

HEEL = 0.3
"""How far the heel is behind the ankle, in distances of the ankle from the ball along the ground."""
UPRIGHT = 1.2
"""Height of an ankle above the ball, in distances along the ground, from which a foot stands on its toes."""
HIGH = 0.2
"""Height of an ankle above the ball, in lengths of the leg, of a foot that stands on its toes."""
TOES = 0.5
"""How long toes are whose bone does not tell, in the same distances."""
AHEAD = 0.7
"""Cosine of the angle up to which the bone of the toes leads ahead."""


PIVOT = math.radians(20.0)
"""How far a foot turns on its ball at most while its toes stay as they are."""
LIES = 0.5, 0.87
"""Sine of the tilt of the axis across a foot, up to which toes are flat, and from which they are not."""
OVER = math.radians(100.0), math.radians(130.0)
"""How far toes are bent at most to lie flat, and from where they keep their motion."""
MOST_ROLL = math.radians(20.0)
"""How far a heel is raised further at most for a leg that is too short."""
BODY = 2.0
"""Metres of an ankle's way that count as much as one by which the hips, and both legs with them, sink."""
RAISED = 0.15
"""Height of a heel, in its distances from the ball, from which it may be raised further without restraint."""
DEEP = 1e-3
"""Lengths of a foot by which toes may be in the ground before they are straightened."""
AROUND = 0.3
"""Seconds around such frames in which they straighten."""
STEEPEST = 0.98
"""Largest horizontal distance of a foot from its hip joint, in lengths of the leg, at which the hips sink.

Beyond it they move along the ground.
"""


class SolePart(enum.Enum):
    """The points on which a foot stands."""

    HEEL = "HEEL"
    BALL = "BALL"
    TOES = "TOES"


class Hold(NamedTuple):
    """Frames in which a foot turns about a point of its sole: places of the first and of the last."""

    part: SolePart
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Sole:
    """A foot of the target in its reference pose, in metres."""

    ball: Array  # (3,) from the ankle, in the foot's frame; 0 for a foot without a ball
    # (3,) points of the sole from the ball, in the foot's frame; see `heel_from_ball`.
    under: Array
    heel: Array
    # (3,) end of the toes from the ball, in the frame of the toes; None where there are none.
    toe: Array | None
    # (3,) unit, the axis across the toes, along the ground, in their frame; to their left.
    across_toe: Array | None
    across: Array  # (3,) unit, the axis across the foot, along the ground, in its frame; to its left
    height: float  # of the ball over the ground
    # (3,) end of a foot without a ball, from its ankle, in its frame; None where its bone does not tell.
    front: Array | None = None
    # By joint of the toes beyond the ball, (k, 3) on the ground below it and what hangs on it, from its head,
    # in its frame.
    beyond: Mapping[int, Array] = field(default_factory=dict)

    @property
    def rolls(self) -> bool:
        """Whether the foot has a ball about which its heel may rise."""
        return bool(self.ball.any())

    @property
    def stands_on_toes(self) -> bool:
        """Whether its heel is in the air in the reference pose."""
        return self.rolls and bool(np.allclose(self.heel, -self.ball, rtol=0.0, atol=1e-12))

    @classmethod
    def of(cls, target: TargetFigure, limb: Limb) -> Sole:
        """The sole in the target's reference pose."""
        heads, rotations = target.reference
        foot, tip = target.index(limb.end), target.index(limb.tip or limb.end)
        ankle, ball = heads[foot], heads[tip]
        down = (0.0, 0.0, target.ground - ball[2])
        to_foot = inverse(rotations[foot])
        toe = across_toe = None
        beyond: dict[int, Array] = {}
        if limb.tip:
            length = target.scale * target.skeleton.joints[tip].length
            ahead = _toes(ball - ankle, turned(rotations[tip], np.array((0.0, length, 0.0))))
            names = [joint.name for joint in target.skeleton.joints] if limb.toes else []
            for j in (tip, *(names.index(name) for name in limb.toes if name in names)):
                places = heads[j] + np.concatenate((np.zeros((1, 3)), _hanging(target, j, rotations[j])))
                ahead = _farther(ball - ankle, ahead, places - ball)
                if j != tip:
                    places[:, 2] = target.ground
                    beyond[j] = turned(inverse(rotations[j]), places - heads[j])
            to_toe = inverse(rotations[tip])
            toe = turned(to_toe, ahead + down)
            across_toe = turned(to_toe, np.cross(UP, ahead) / max(float(np.linalg.norm(ahead)), 1e-12))
        across = np.cross(UP, (ball - ankle) if limb.tip else _along_bone(target, limb))
        across /= max(float(np.linalg.norm(across)), 1e-12)
        heel = heel_from_ball(ankle - ball, down[2], limb_length(target, limb))
        under, heel, offset, side = (
            turned(to_foot, each) for each in (np.array(down), heel, ball - ankle, across)
        )
        front = None if limb.tip else _front(target, limb)
        front = None if front is None else turned(to_foot, front)
        height = float(ball[2] - target.ground)
        return cls(offset, under, heel, toe, across_toe, side, height, front, beyond)

    def straight(self, target: TargetFigure, rotations: Array, weights: Array) -> Array:
        """Rotations (F, n, 4) relative to rest, with toes beyond the ball as in the reference pose.

        Args:
            target: whose sole it is.
            rotations: (F, n, 4) relative to rest.
            weights: (F,) 1 where they are so, 0 where they keep their motion.
        """
        rotations = rotations.copy()
        for j in self.beyond:
            if not target.skeleton.joints[j].locked:
                rotations[:, j] = batch.slerp(rotations[:, j], target.rotations[j], weights, -1)
        return rotations

    def ends(self, heads: Array, rotations: Array) -> list[Array]:
        """(F, 3) each on the sole beyond the ball, of heads (F, n, 3) and rotations (F, n, 4), world."""
        return [
            heads[:, j] + turned(rotations[:, j], each) for j, arms in self.beyond.items() for each in arms
        ]

    def points(self, feet: Array, toes: Array | None) -> list[Array]:
        """(F, 3) each from the ball to a point of the sole, world, of rotations (F, 4) of foot and toes.

        Ball and ankle are among them: a foot that is turned over lies on its instep.
        """
        points = [turned(feet, each) for each in (self.under, self.heel, np.zeros(3), -self.ball)]
        if self.front is not None:
            points.append(turned(feet, self.front))
        if toes is not None and self.toe is not None:
            points.append(turned(toes, self.toe))
        return points


def lying_toes(
    target: TargetFigure,
    pose: tuple[Array, Array],
    soles: Mapping[str, tuple[Sole, Array]],
    times: Array,
    ground: Callable[[str, Array], Array],
) -> Array:
    """Rotations (F, n, 4) relative to rest, with toes beyond the ball as in the reference pose where feet are
    down, and smoothly around frames in which they would be in the ground.

    Args:
        pose: (F, n, 4) rotations and (F, n, 3) translations relative to rest.
        soles: by leg, with (F,) how far the foot is down, 0 to 1.
        times: (F,) seconds.
        ground: heights (F,) below points (F, 3) of a leg; NaN where there is none.
    """
    soles = {name: each for name, each in soles.items() if each[0].beyond}
    rotations, translations = pose
    if not soles:
        return rotations
    lying = rotations
    for sole, weights in soles.values():
        lying = sole.straight(target, lying, weights)
    heads, world = target.world(lying, translations)
    for name, (sole, weights) in soles.items():
        gaps = np.array([end[:, 2] - ground(name, end) for end in sole.ends(heads, world)])
        deep = (gaps < -DEEP * max(float(np.linalg.norm(sole.heel)), sole.height)).any(axis=0)
        more = smooth_envelope(np.asarray(deep, np.float64), times, AROUND)
        rotations = sole.straight(target, rotations, np.maximum(weights, more))
    return rotations


def heel_from_ball(ankle: Array, ground: float, leg: float) -> Array:
    """(3,) from the ball to the heel: on the ground behind the ankle.

    For a foot that stands on its toes, as a cat's, it is the ankle: such a heel is in the air. Its ankle is
    above the ball rather than behind it, and high in its leg.

    Args:
        ankle: (3,) from the ball, of a foot that stands.
        ground: height of the ground above the ball.
        leg: its length from hip to ankle, metres.
    """
    if ankle[2] >= UPRIGHT * float(np.hypot(ankle[0], ankle[1])) > 0.0 and ankle[2] >= HIGH * leg:
        return ankle
    return ankle * (1.0 + HEEL, 1.0 + HEEL, 0.0) + (0.0, 0.0, ground)


def _toes(foot: Array, tail: Array) -> Array:
    """(3,) along the ground, from the ball to the end of the toes: to the tail of their bone, where that
    leads on ahead; many files have tails that lead nowhere."""
    ahead = foot * (1.0, 1.0, 0.0)
    size, along = float(np.linalg.norm(ahead)), float(ahead @ tail)
    if size > 0.0 and AHEAD * float(np.linalg.norm(tail)) * size <= along <= size * size:
        return tail * (1.0, 1.0, 0.0)
    return TOES * ahead


def _farther(foot: Array, ahead: Array, places: Array) -> Array:
    """(3,) along the ground, from the ball to the end of the toes, or to the place (k, 3) farthest ahead.

    Toes of several bones end with the last.
    """
    line = foot[:2] / max(float(np.linalg.norm(foot[:2])), 1e-12)
    for place in places * (1.0, 1.0, 0.0):
        along = float(place[:2] @ line)
        if along > float(ahead[:2] @ line) and along >= AHEAD * float(np.linalg.norm(place)):
            ahead = place
    return ahead


def _hanging(target: TargetFigure, j: int, rotation: Array) -> Array:
    """(k, 3) from a joint turned as (4,) to what hangs on it and is no joint, world metres."""
    points = target.hanging.get(target.skeleton.joints[j].name)
    return np.zeros((0, 3)) if points is None else target.scale * turned(rotation, points)


def _front(target: TargetFigure, limb: Limb) -> Array | None:
    """(3,) from the ankle to the ground below the tail of the foot's bone, where that leads ahead and down to
    the sole; many files have tails that lead nowhere."""
    tail = target.scale * target.skeleton.joints[target.index(limb.end)].length * _along_bone(target, limb)
    height = float(target.reference[0][target.index(limb.end), 2]) - target.ground
    is_ahead = np.linalg.norm(tail[:2]) >= AHEAD * np.linalg.norm(tail)
    if not is_ahead or not height > 0.0 or not -1.5 * height <= tail[2] <= -0.5 * height:
        return None
    return np.array((tail[0], tail[1], -height))


def _along_bone(target: TargetFigure, limb: Limb) -> Array:
    """(3,) along a foot that has no ball: its bone."""
    _, rotations = target.reference
    return turned(rotations[target.index(limb.end)], np.array((0.0, 1.0, 0.0)))


# Contacts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contacts of one foot."""

    phases: Sequence[Phase]  # of the ball, in order
    times: Array  # (F,) seconds
    velocity: Array  # (3,) of the ground, world metres per second
    heights: Array  # of the ground in each phase, world metres
    level: float  # height of the ground where there is no phase; minus infinity for no ground
    low: float  # metres below the ground at which a foot is above another place
    # By phase, the points on which the foot rolls before and after it; empty for none.
    rolls: Sequence[Sequence[Hold]] = ()

    def ground(self, soles: Array, blend: float) -> Array:
        """(F,) height of the ground.

        In a phase it is the phase's height, and between two phases the lower of both. Before the first and
        after the last it is the lowest. Where a foot gets lower by more than `low`, its lowest height is the
        ground.

        Args:
            soles: (F,) height of the lowest point of the sole, as the foot moves freely.
            blend: most seconds between two heights.
        """
        starts = [-1, *(phase.last for phase in self.phases)]
        ends = [*(phase.first for phase in self.phases), len(self.times)]
        heights = self.heights.tolist()
        lowest = min(heights, default=self.level)
        between = [lowest, *np.minimum(self.heights[:-1], self.heights[1:]).tolist(), lowest]
        gaps = []
        for start, end, height in zip(starts, ends, between[: len(starts)], strict=True):
            deepest = float(soles[start + 1 : end].min(initial=height))
            gaps.append(deepest if deepest < height - self.low else height)
        if not self.phases:
            return np.full(len(self.times), gaps[0])
        places: list[float] = []
        levels: list[float] = []
        for k, (first, last) in enumerate(self.phases):
            came, went = float(self.times[first]), float(self.times[last])
            gap = came - (float(self.times[self.phases[k - 1].last]) if k else -math.inf)
            room = (float(self.times[ends[k + 1]]) if k + 1 < len(self.phases) else math.inf) - went
            places += [came - min(blend, 0.5 * gap), came, went, went + min(blend, 0.5 * room)]
            levels += [gaps[k], heights[k], heights[k], gaps[k + 1]]
        return np.asarray(np.interp(self.times, places, levels))

    def followed(self, out_of_reach: Mask) -> Contacts:
        """The same with rolls cut at the first frame, away from the ball, with the leg out of reach (F,)."""
        rolls = []
        for phase, holds in zip(self.phases, self.rolls, strict=bool(self.rolls)):
            kept = []
            for part, first, last in holds:
                far = first + np.flatnonzero(out_of_reach[first : last + 1])
                if len(far) == 0:
                    kept.append(Hold(part, first, last))
                elif last < phase.first and far[-1] < last:
                    kept.append(Hold(part, int(far[-1]) + 1, last))
                elif first > phase.last and far[0] > first:
                    kept.append(Hold(part, first, int(far[0]) - 1))
            rolls.append(tuple(kept))
        return replace(self, rolls=rolls)

    def steps(self, height: float) -> Array:
        """(F,) heights of a point `height` metres above the ground in each phase; 0 between."""
        heights = np.zeros(len(self.times))
        for (first, last), ground in zip(self.phases, self.heights.tolist(), strict=True):
            heights[first : last + 1] = ground + height
        return heights


def phase_heights(balls: Array, phases: Sequence[Phase]) -> Array:
    """(phases,) median height of a ball in each of its phases."""
    return np.array([np.median(balls[first : last + 1, 2]) for first, last in phases])


def stepped(heights: Array, lowest: float, leg: float, thresholds: ContactThresholds) -> Array:
    """Heights above the lowest; heights on its level become 0."""
    above = heights - lowest
    return np.where(above <= LEVEL * thresholds.height * leg, 0.0, above)


def locked(
    balls: Array, arms: Mapping[SolePart, Array], sole: Sole, contacts: Contacts, blend: float
) -> tuple[Array, Array, tuple[Hold, ...]]:
    """Offsets (F, 3) that lock a foot, their weights (F,), and the locked points in order.

    Args:
        balls: (F, 3) as the foot moves freely, world.
        arms: (F, 3) from the ball to the heel, and to the end of the toes; none for points without rolls.
        blend: most seconds of the fade before and after a step.
    """
    times, phases = contacts.times, contacts.phases
    offsets = np.zeros_like(balls)
    weights: Array = np.zeros(len(balls))
    relative = balls - contacts.velocity * times[:, None]
    points = {SolePart.BALL: relative, **{part: relative + arm for part, arm in arms.items()}}
    steps: list[list[tuple[Hold, Array]]] = []
    for k, phase in enumerate(phases):
        place = relative[phase.first : phase.last + 1].mean(axis=0)
        place[2] = contacts.heights[k] + sole.height
        steps.append(_step(phase, place, points, contacts.rolls[k] if contacts.rolls else ()))
        for hold, place in steps[-1]:
            rows = slice(hold.first, hold.last + 1)
            offsets[rows], weights[rows] = place - points[hold.part][rows], 1.0
    edges = [-1, *(edge for step in steps for edge in (step[0][0].first, step[-1][0].last)), len(times)]
    for k, step in enumerate(steps):
        before, first, last, after = edges[2 * k : 2 * k + 4]
        room_before = times[first] - times[before] if before >= 0 else math.inf
        room_after = times[after] - times[last] if after < len(times) else math.inf
        for (hold, place), edge, room, sign in (
            (step[0], first, room_before, -1.0),
            (step[-1], last, room_after, 1.0),
        ):
            near = place - points[hold.part][_beside(edge)]
            rows, beyond, weight = fade_out(near, times, edge, sign * min(blend, room))
            offsets[rows] += beyond
            weights[rows] = np.minimum(1.0, weights[rows] + weight)
    return offsets, weights, tuple(hold for step in steps for hold, _ in step)


def fade_out(near: Array, times: Array, edge: int, span: float) -> tuple[slice, Array, Array]:
    """Fade values from an edge to zero: the R rows beyond it, (R, k) values there, and (R,) their weights.

    Args:
        near: (n, k) values at the rows `_beside` the edge. Value and velocity there start the fade.
        times: (F,) seconds.
        span: seconds of the fade, negative before the edge.
    """
    rows, u = _beyond(times, edge, span)
    weights = (1.0 + 2.0 * u) * (1.0 - u) ** 2
    beside = _beside(edge)
    velocity = np.gradient(near, times[beside], axis=0)[edge - beside.start] if len(u) else np.zeros(1)
    faded = weights[:, None] * near[edge - beside.start]
    return rows, faded + (span * u * (1.0 - u) ** 2)[:, None] * velocity, weights


def _beside(edge: int) -> slice:
    """The row of an edge, with those before and after it."""
    return slice(max(0, edge - 1), edge + 2)


def _beyond(times: Array, edge: int, span: float) -> tuple[slice, Array]:
    """Rows within `span` seconds beyond an edge (before it if negative), and their places, 0 to 1."""
    ends = sorted((times[edge], times[edge] + span))
    first, last = np.searchsorted(times, ends[0], "right"), np.searchsorted(times, ends[1], "left")
    rows = slice(int(first), int(last))
    return rows, (times[rows] - times[edge]) / span


def faded(values: Array, contacts: Contacts, blend: float) -> Array:
    """(F, k) values in each phase of the ball, faded before and after it; 0 elsewhere."""
    result = np.zeros_like(values)
    times, phases = contacts.times, contacts.phases
    for k, (first, last) in enumerate(phases):
        result[first : last + 1] += values[first : last + 1]
        before = times[first] - times[phases[k - 1].last] if k else math.inf
        after = times[phases[k + 1].first] - times[last] if k + 1 < len(phases) else math.inf
        for edge, span in ((first, -min(blend, before)), (last, min(blend, after))):
            rows, u = _beyond(times, edge, span)
            result[rows] += ((1.0 + 2.0 * u) * (1.0 - u) ** 2)[:, None] * values[edge]
    return result


def _step(
    phase: Phase, place: Array, points: Mapping[SolePart, Array], rolls: Sequence[Hold]
) -> list[tuple[Hold, Array]]:
    """The locked points of a step in order, each with the place (3,) relative to the ground where it is.

    Args:
        place: (3,) of the ball.
        points: (F, 3) relative to the ground, as they move freely.
        rolls: before and after the phase.
    """
    locks = [(Hold(SolePart.BALL, *phase), place)]
    for hold in rolls:
        if hold.part in points:
            is_before = hold.last < phase.first
            edge = phase.first if is_before else phase.last
            there = place - points[SolePart.BALL][edge] + points[hold.part][edge]
            locks.insert(0 if is_before else len(locks), (hold, there))
    return locks


def _pivoted(ahead: Array) -> Array:
    """(n, 3) mean of headings (n, 3) of toes, turned after those that turn farther away than `PIVOT`."""
    ways = np.unwrap(batch.arctan2(ahead[:, 1], ahead[:, 0]))
    turn = ways - ways.mean()
    ways = ways.mean() + turn - np.clip(turn, -PIVOT, PIVOT)
    return np.stack((np.cos(ways), np.sin(ways), np.zeros(len(ways))), axis=1)


def flat_toes(toes: Array, feet: Array, sole: Sole, contacts: Contacts, blend: float) -> Array:
    """(F, 4) rotations of toes, flat and still in each phase of the ball, with their own motion between.

    Toes go round with a foot that pivots farther than `PIVOT` from where it points in the mean of a phase.
    Those of a foot that lies on its side or on its instep, as of a body that has fallen, keep their own
    motion: see `LIES` and `OVER`. Both hold in each frame: a foot may come up from its instep while it is
    down.

    Args:
        toes: (F, 4) as they move freely, world.
        feet: (F, 4) rotations of the foot, world.
        blend: most seconds of the fade.
    """
    assert sole.toe is not None and sole.across_toe is not None
    tips = turned(toes, sole.toe)
    along = math.sqrt(max(float(sole.toe @ sole.toe) - sole.height**2, 0.0))
    if along < 1e-9:  # toes that lead straight down have no heading
        return toes
    # The line along toes that slope steeply leads back where they are raised: the axis across them does not.
    ahead = ahead_of(toes, sole.across_toe)
    times, phases = contacts.times, contacts.phases
    vectors = np.zeros_like(tips)
    for k, (first, last) in enumerate(phases):
        flat = along * _pivoted(ahead[first : last + 1]) - (0.0, 0.0, sole.height)
        start = _beside(first).start
        near = np.arange(start, min(last + 2, len(tips)))  # the phase, and the rows beside it
        arcs = shortest(tips[near], flat[np.clip(near - first, 0, last - first)])  # w >= 0
        sines = batch.length(arcs[:, 1:], -1)
        angles = 2.0 * batch.arctan2(sines, arcs[:, 0])
        turn = arcs[:, 1:] * (angles / np.maximum(sines, 1e-12))[:, None]
        side = np.abs(turned(feet[near], sole.across)[:, 2])
        for tilt, (whole, none) in ((side, LIES), (angles, OVER)):
            turn *= np.clip((none - tilt) / (none - whole), 0.0, 1.0)[:, None]
        vectors[first : last + 1] = turn[first - start : last + 1 - start]
        before = float(times[first] - times[phases[k - 1].last]) if k else math.inf
        after = float(times[phases[k + 1].first] - times[last]) if k + 1 < len(phases) else math.inf
        for edge, span in ((first, -min(blend, before)), (last, min(blend, after))):
            beside = _beside(edge)
            edge_turn = turn[beside.start - start : beside.stop - start]
            rows, beyond, _ = fade_out(edge_turn, times, edge, span)
            vectors[rows] += beyond
    angles = batch.length(vectors, -1)[:, None]
    half = 0.5 * angles
    turn = np.concatenate((np.cos(half), 0.5 * np.sinc(half / math.pi) * vectors), axis=1)
    return product(turn, toes)


# Paths --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FootPath:
    """The path of a foot of the target, in the world."""

    ankles: Array  # (F, 3)
    feet: Array  # (F, 4) rotations
    toes: Array | None  # (F, 4) rotations, or None
    weights: Array  # (F,) 1 where a point of the sole is locked, 0 where the foot moves freely
    borne: Array  # (F,) the same of the ball alone: how far it bears the body
    ground: Array  # (F,) height of the ground below it
    holds: tuple[Hold, ...] = ()  # what of the sole is locked when, in order


def foot_path(
    ankles: Array, rotations: tuple[Array, Array | None], sole: Sole, contacts: Contacts, blend: float
) -> FootPath:
    """Ankles (F, 3) and rotations (F, 4) of foot and toes, world, with contacts locked and the sole above
    the ground; `blend` is in seconds."""
    feet, toes = rotations
    balls = ankles + turned(feet, sole.ball)
    # Toes that point down tell no lower ground: they are turned up.
    ground = contacts.ground(_lowest(balls, feet, None, sole), blend)
    borne = np.minimum(1.0, faded(np.ones((len(balls), 1)), contacts, blend)[:, 0])
    heights = balls[:, 2] + faded(contacts.steps(sole.height)[:, None] - balls[:, 2:], contacts, blend)[:, 0]
    ahead = ahead_of(feet, sole.across)
    arms = {}
    if sole.rolls:
        flat = missing_turn(feet, sole.heel, -ahead, np.full(len(feet), -sole.height))
        feet = raised_ahead(feet, -ahead, faded(flat[:, None], contacts, blend)[:, 0])
        arms[SolePart.HEEL] = turned(feet, sole.heel)
    if toes is not None and sole.toe is not None:
        # A ball below its height on the ground is lifted in the end, and the toes with it.
        floor = np.minimum(ground - heights, -sole.height)
        most = missing_turn(toes, sole.toe, ahead, floor) + _rise(toes, sole.toe, ahead)
        toes = flat_toes(toes, feet, sole, contacts, blend)
        # What laid them flat counts: both together turn them no farther than they would go up by themselves.
        most = np.maximum(0.0, most - _rise(toes, sole.toe, ahead))
        angles = np.minimum(missing_turn(toes, sole.toe, ahead, floor), most)
        free = (1.0 - borne) * smooth_envelope(angles, contacts.times, 0.5 * blend)
        toes = raised_ahead(toes, ahead, np.maximum(angles, free))
        arms[SolePart.TOES] = turned(toes, sole.toe)
    offsets, weights, holds = locked(balls, arms, sole, contacts, blend)
    balls = balls + offsets
    balls[:, 2] += np.maximum(0.0, ground - _lowest(balls, feet, toes, sole))
    return FootPath(balls - turned(feet, sole.ball), feet, toes, weights, borne, ground, holds)


def _lowest(balls: Array, feet: Array, toes: Array | None, sole: Sole) -> Array:
    """(F,) height of the lowest point of a sole."""
    return np.asarray(balls[:, 2] + np.min([point[:, 2] for point in sole.points(feet, toes)], axis=0))


def rolled(path: FootPath, sole: Sole, hips: Array, reach: Array) -> FootPath:
    """The path with heels raised about the ball where the leg is too short for its ankle, in contacts.

    The ankle goes up and ahead on a circle about the ball, as far as the leg can follow. It ends where it is
    nearest to the hip, or has rolled by `MOST_ROLL`. It never goes away from the hip, and near the angle
    where it would, it rolls no farther than it is from that: so the roll does not leap in time. A heel that
    is down stays down, and a foot that stands on its toes keeps its slope. The hips sink by the rest.

    An ankle nearly above its ball comes hardly nearer by rolling. So the roll is at most the damped least
    squares' (Nakamura and Hanafusa 1986): it minimises the squares of what the leg lacks, in metres, and of
    the ankle's way, divided by `BODY`.

    Args:
        hips: (F, 3) the leg's hip joint.
        reach: (F,) how long the leg may be.
    """
    if not sole.rolls or sole.stands_on_toes:
        return path
    balls = path.ankles + turned(path.feet, sole.ball)
    ahead, up = ahead_of(path.feet, sole.across), turned(path.feet, -sole.ball)
    axis = batch.cross(-ahead, UP, -1)
    to_ball, along = balls - hips, batch.dot(axis, up, -1)[:, None] * axis
    # Half the squared distance from hip to ankle is a constant + size cos(angle - start).
    ahead_part = batch.dot(to_ball, up - along, -1)
    rise_part = batch.dot(to_ball, batch.cross(axis, up, -1), -1)
    size, start = np.maximum(np.hypot(ahead_part, rise_part), 1e-12), batch.arctan2(rise_part, ahead_part)
    rest = batch.dot(to_ball, along, -1) + 0.5 * (batch.dot(to_ball, to_ball, -1) + batch.dot(up, up, -1))
    roll = start + np.arccos(np.clip((0.5 * reach**2 - rest) / size, -1.0, 1.0))
    roll = np.minimum(roll, -start)  # the way to the hip is longest at `start`, and grows up to there
    distance = batch.length(path.ankles - hips, -1)
    short, radius = distance - reach, batch.length(up - along, -1)
    lever = -size * np.sin(start) / np.maximum(distance, 1e-12)  # metres nearer for a radian
    roll = np.minimum(roll, short * lever / np.maximum(lever**2 + (radius / BODY) ** 2, 1e-12))
    raised = turned(path.feet, sole.heel)[:, 2] + balls[:, 2] - path.ground
    part = np.clip(raised / (RAISED * max(float(np.linalg.norm(sole.heel)), 1e-12)), 0.0, 1.0)
    angle = np.where(short > 0.0, np.clip(roll, 0.0, MOST_ROLL), 0.0) * path.borne * part
    feet = raised_ahead(path.feet, -ahead, angle)
    return replace(path, feet=feet, ankles=balls - turned(feet, sole.ball))


def carried(path: FootPath, sole: Sole, shift: Array) -> FootPath:
    """The path with a foot in the air going with hips that are moved by (F, 3) metres, down as far as the
    ground lets it: so its leg bends as it did."""
    balls = path.ankles + turned(path.feet, sole.ball)
    room = np.maximum(0.0, _lowest(balls, path.feet, path.toes, sole) - path.ground)
    shift = np.column_stack((shift[:, :2], np.maximum(shift[:, 2], -room)))
    return replace(path, ankles=path.ankles + (1.0 - path.weights)[:, None] * shift)


def missing_turn(rotations: Array, point: Array, ahead: Array, ground: Array) -> Array:
    """(F,) radians by which a point must turn upwards to be on the ground.

    A point that leads back under its centre, as toes of a foot on its instep, would come up the other way
    round. The farther it leads back, the less it turns, and not at all where it is straight behind: the foot
    is lifted instead. So the turn has no step where a foot rolls over.

    Args:
        rotations: (F, 4) world.
        point: (3,) from the centre of rotation, in their frame.
        ahead: (F, 3) unit, along the ground: the side on which the point is. The axis is across it.
        ground: (F,) height of the ground over the centre.
    """
    ways = turned(rotations, point)
    size = np.maximum(np.hypot(batch.dot(ways, ahead, -1), ways[:, 2]), 1e-12)
    wanted, present = np.arcsin(np.clip(ground / size, -1.0, 1.0)), _rise(rotations, point, ahead)
    down = -0.5 * np.pi
    missing = np.maximum(0.0, wanted - np.maximum(present, down))
    return np.asarray(missing * np.minimum(1.0, 2.0 - present / down))


def _rise(rotations: Array, point: Array, ahead: Array) -> Array:
    """(F,) radians above level, seen along the axis across `ahead`, of a point; see `missing_turn`."""
    ways = turned(rotations, point)
    return batch.arctan2(ways[:, 2], batch.dot(ways, ahead, -1))


def raised_ahead(rotations: Array, ahead: Array, angles: Array) -> Array:
    """Rotations (F, 4) turned upwards on the side `ahead` by angles (F,); its height does not count."""
    return product(batch.axis_rotation(batch.cross(ahead, UP, -1), angles), rotations)


def ahead_of(rotations: Array, across: Array) -> Array:
    """(F, 3) where feet point along the ground, from the axis (3,) across them in their frame."""
    return batch.directions(batch.cross(turned(rotations, across) * (1.0, 1.0, 0.0), UP, -1))


# Shifts of the hips -------------------------------------------------------------------------------


def ways_aside(hips: Array, ankles: Array, reach: Array, weights: Array) -> Array:
    """(F, 2) horizontal shifts of the hips for a leg, towards a foot far beside them, metres; see `drops`."""
    beside = (ankles - hips)[:, :2]
    size = batch.length(beside, -1)
    part = weights * np.maximum(0.0, 1.0 - STEEPEST * reach / np.maximum(size, 1e-12))
    return np.asarray(part[:, None] * beside)


def drops(hips: Array, ankles: Array, reach: Array, weights: Array) -> Array:
    """(F,) metres by which the hips must sink for a leg.

    Args:
        hips: (F, 3) its hip joint.
        ankles: (F, 3) targets of its ankle.
        reach: (F,) its largest extension.
        weights: (F,) factors of the result: 1 in contacts.
    """
    lines = ankles - hips
    beside = np.minimum(batch.length(lines[:, :2], -1), STEEPEST * reach)
    return np.asarray(weights * np.maximum(0.0, -lines[:, 2] - np.sqrt(reach**2 - beside**2)))


def smooth_envelope(values: Array, times: Array, window: float) -> Array:
    """(F,) a smooth curve nowhere below values (F,).

    A running maximum over half a window, then a weighted mean over the window: each mean is over values that
    are at least the one in its middle.
    """
    if not values.any() or len(times) < 2:
        return values
    steps = 0.5 * window / float(np.median(np.diff(times)))
    half = max(1, round(min(steps, len(times))))  # a longer window sees no more
    padded = np.pad(values, 2 * half, mode="edge")
    tops = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1).max(axis=1)
    return bell_means(tops, half)


def smooth_shifts(shifts: Sequence[Array], times: Array, window: float) -> Array:
    """(F, k) smooth shift that combines several shifts (F, k).

    By axis, it is the sum of the smooth envelopes (`smooth_envelope`) of the largest shifts to either side.
    """
    combined = np.zeros_like(shifts[0])
    for sign in (1.0, -1.0):
        most = np.max([np.maximum(sign * shift, 0.0) for shift in shifts], axis=0)
        combined += sign * np.stack([smooth_envelope(each, times, window) for each in most.T], axis=1)
    return combined
