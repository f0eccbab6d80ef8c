"""Where feet are to be: the source's ankles scaled, and each contact locked at the ball of the foot.

In a contact the ball stays at one place (Kovar, Schreiner and Gleicher 2002, "Footskate Cleanup for Motion
Capture Editing"), about which the foot rolls. Before and after it the foot goes over into its own motion
along a cubic that starts with the lock's offset and its velocity, so neither jumps:

    offset(t) = h00(t / T) D + h10(t / T) T V        D = lock - ball,  V = - velocity of the ball, at the edge

The sole of a foot is three points at the ground below the reference pose: under the ball, behind the ankle
and at the end of the toes. A heel below the ground in a contact turns the foot about its ball, toes are
turned up, and what is still below lifts the foot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..contacts import LEVEL, ContactThresholds, Phase
from .alignment import UP
from .figure_map import Limb
from .motions import TargetFigure, inverse, product, turned
from .root import smooth_envelope

HEEL = 0.3
"""How far the heel is behind the ankle, in distances of the ankle from the ball along the ground."""

TOES = 0.5
"""How long toes are whose bone does not tell, in the same distances."""
AHEAD = 0.7
"""Cosine of the angle up to which the bone of the toes leads ahead."""
MOST_ROLL = math.radians(20.0)
"""How far a heel is raised further at most for a leg that is too short."""
RAISED = 0.3
"""Height of a heel, in its distances from the ball, from which it may be raised further without restraint."""


@dataclass(frozen=True, eq=False)
class Sole:
    """A foot of the target in its reference pose, in metres.

    Attributes:
        ball: (3,) from the ankle, in the foot's frame; 0 for a foot without a ball.
        under, heel: (3,) points of the sole from the ball, in the foot's frame.
        toe: (3,) end of the toes from the ball, in the frame of the toes; None where there are none.
        across: (3,) unit, the axis across the foot, along the ground, in its frame; to its left.
        height: of the ball over the ground.
    """

    ball: Array
    under: Array
    heel: Array
    toe: Array | None
    across: Array
    height: float

    @property
    def rolls(self) -> bool:
        """Whether the foot has a ball about which its heel may rise."""
        return bool(self.ball.any())

    @classmethod
    def of(cls, target: TargetFigure, limb: Limb) -> Sole:
        """Of the target's reference pose."""
        heads, rotations = target.reference
        foot, tip = target.index(limb.end), target.index(limb.tip or limb.end)
        ankle, ball = heads[foot], heads[tip]
        down = (0.0, 0.0, target.ground - ball[2])
        behind = (ankle - ball) * (1.0 + HEEL, 1.0 + HEEL, 0.0) + down
        to_foot = inverse(rotations[foot])
        toe = None
        if limb.tip:
            length = target.scale * target.skeleton.joints[tip].length
            tail = turned(rotations[tip], np.array((0.0, length, 0.0)))
            toe = turned(inverse(rotations[tip]), _toes(ball - ankle, tail) + down)
        across = np.cross(UP, (ball - ankle) if limb.tip else _along_bone(target, limb))
        across /= max(float(np.linalg.norm(across)), 1e-12)
        under, heel, offset, side = (
            turned(to_foot, each) for each in (np.array(down), behind, ball - ankle, across)
        )
        return cls(offset, under, heel, toe, side, float(ball[2] - target.ground))


def _toes(foot: Array, tail: Array) -> Array:
    """(3,) along the ground, from the ball to the end of the toes: to the tail of their bone, where that
    leads on ahead; many files have tails that lead nowhere."""
    ahead = foot * (1.0, 1.0, 0.0)
    size = float(np.linalg.norm(ahead))
    along = float(ahead @ tail) / max(size, 1e-12)
    if size > 0.0 and along >= AHEAD * np.linalg.norm(tail) and along <= size:
        return tail * (1.0, 1.0, 0.0)
    return TOES * ahead


def _along_bone(target: TargetFigure, limb: Limb) -> Array:
    """(3,) along a foot that has no ball: its bone."""
    _, rotations = target.reference
    return turned(rotations[target.index(limb.end)], np.array((0.0, 1.0, 0.0)))


@dataclass(frozen=True, eq=False)
class FootPath:
    """What a foot of the target is to do, in the world.

    Attributes:
        ankles: (F, 3).
        feet: (F, 4) rotations.
        toes: (F, 4) rotations, or None.
        weights: (F,) 1 in contacts, 0 where the foot moves freely.
        ground: (F,) height of the ground below it.
    """

    ankles: Array
    feet: Array
    toes: Array | None
    weights: Array
    ground: Array


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contacts of one foot.

    Attributes:
        phases: in order.
        times: (F,) seconds.
        velocity: (3,) of the ground, world metres per second.
        heights: of the ground in each phase, world metres.
        level: height of the ground where there is no phase; minus infinity for no ground.
        low: metres by which a foot must get below the ground to be above another place.
    """

    phases: Sequence[Phase]
    times: Array
    velocity: Array
    heights: Array
    level: float
    low: float

    def ground(self, soles: Array, blend: float) -> Array:
        """(F,) height of the ground: that of the phase, between two of them that of the lower one, and beyond
        the first and the last that of the lowest.

        Where a foot gets lower than that by more than `low`, it goes down to another place, and that is the
        ground.

        Args:
            soles: (F,) height of the lowest point of the sole, as the foot moves freely.
            blend: seconds at most from one height to the next.
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


def phase_heights(balls: Array, phases: Sequence[Phase]) -> Array:
    """(phases,) median height of a ball in each of its phases."""
    return np.array([np.median(balls[first : last + 1, 2]) for first, last in phases])


def stepped(heights: Array, lowest: float, leg: float, thresholds: ContactThresholds) -> Array:
    """Heights above the ground; those of one level with the lowest are on it."""
    above = heights - lowest
    return np.where(above <= LEVEL * thresholds.height * leg, 0.0, above)


def foot_path(
    ankles: Array, rotations: tuple[Array, Array | None], sole: Sole, contacts: Contacts, blend: float
) -> FootPath:
    """Ankles (F, 3) and rotations (F, 4) of foot and toes, world, with contacts locked and the sole above
    the ground; `blend` is in seconds."""
    feet, toes = rotations
    balls = ankles + turned(feet, sole.ball)
    ground = contacts.ground(_lowest(balls, feet, toes, sole), blend)
    offsets, weights = _offsets(balls, contacts, sole.height, blend)
    balls = balls + offsets
    ahead = _ahead(feet, sole.across)
    if sole.rolls:
        feet = _raised(feet, -ahead, weights * _missing(feet, sole.heel, -ahead, ground - balls[:, 2]))
    if toes is not None and sole.toe is not None:
        angles = _missing(toes, sole.toe, ahead, ground - balls[:, 2])
        toes = _raised(toes, ahead, smooth_envelope(angles, contacts.times, 0.5 * blend))
    balls[:, 2] += np.maximum(0.0, ground - _lowest(balls, feet, toes, sole))
    return FootPath(balls - turned(feet, sole.ball), feet, toes, weights, ground)


def _lowest(balls: Array, feet: Array, toes: Array | None, sole: Sole) -> Array:
    """(F,) height of the lowest point of a sole."""
    points = [turned(feet, sole.under), turned(feet, sole.heel)]
    if toes is not None and sole.toe is not None:
        points.append(turned(toes, sole.toe))
    return np.asarray(balls[:, 2] + np.min([point[:, 2] for point in points], axis=0))


def rolled(path: FootPath, sole: Sole, hips: Array, reach: Array) -> FootPath:
    """The path with heels raised about the ball where the leg is too short for its ankle, in contacts.

    The ankle goes up and ahead on a circle about the ball, as far as the leg can follow or `MOST_ROLL`. A
    heel that is down stays down: then the hips have to sink.

    Args:
        path: of the foot.
        sole: its points.
        hips: (F, 3) the leg's hip joint.
        reach: (F,) how long the leg may be.
    """
    if not sole.rolls:
        return path
    balls = path.ankles + turned(path.feet, sole.ball)
    ahead, up = _ahead(path.feet, sole.across), turned(path.feet, -sole.ball)
    axis = batch.cross(-ahead, np.broadcast_to(UP, ahead.shape), -1)
    to_ball, along = balls - hips, batch.dot(axis, up, -1)[:, None] * axis
    # Half the squared distance from hip to ankle is a constant + size cos(angle - start).
    ahead_part = batch.dot(to_ball, up - along, -1)
    rise_part = batch.dot(to_ball, batch.cross(axis, up, -1), -1)
    size, start = np.maximum(np.hypot(ahead_part, rise_part), 1e-12), np.arctan2(rise_part, ahead_part)
    rest = batch.dot(to_ball, along, -1) + 0.5 * (batch.dot(to_ball, to_ball, -1) + batch.dot(up, up, -1))
    asked = start + np.arccos(np.clip((0.5 * reach**2 - rest) / size, -1.0, 1.0))
    missing = batch.length(path.ankles - hips, -1) > reach
    raised = turned(path.feet, sole.heel)[:, 2] + balls[:, 2] - path.ground
    part = np.clip(raised / (RAISED * max(float(np.linalg.norm(sole.heel)), 1e-12)), 0.0, 1.0)
    angle = np.where(missing, np.clip(asked, 0.0, MOST_ROLL), 0.0) * path.weights * part
    feet = _raised(path.feet, -ahead, angle)
    return replace(path, feet=feet, ankles=balls - turned(feet, sole.ball))


def _offsets(balls: Array, contacts: Contacts, height: float, blend: float) -> tuple[Array, Array]:
    """(F, 3) what brings balls to where they are locked, and (F,) how far a foot is in a contact."""
    times, phases = contacts.times, contacts.phases
    offsets, weights = np.zeros_like(balls), np.zeros(len(balls))
    relative = balls - contacts.velocity * times[:, None]
    speeds = np.gradient(relative, times, axis=0) if len(times) > 1 else np.zeros_like(balls)
    for k, (first, last) in enumerate(phases):
        inside = slice(first, last + 1)
        place = relative[inside].mean(axis=0)
        place[2] = contacts.heights[k] + height
        offsets[inside] += place - relative[inside]
        weights[inside] = 1.0
        before = times[phases[k - 1].last] if k else -np.inf
        after = times[phases[k + 1].first] if k + 1 < len(phases) else np.inf
        for edge, span, way in ((last, after - times[last], 1.0), (first, times[first] - before, -1.0)):
            length = min(blend, span)
            part = way * (times - times[edge]) / length if length > 0.0 else np.full(len(times), 2.0)
            rows = (part > 0.0) & (part < 1.0)
            u = part[rows][:, None]
            kept = (1.0 + 2.0 * u) * (1.0 - u) ** 2
            slope = -way * length * speeds[edge]
            offsets[rows] += kept * (place - relative[edge]) + u * (1.0 - u) ** 2 * slope
            weights[rows] = np.minimum(1.0, weights[rows] + kept[:, 0])
    return offsets, weights


def _missing(rotations: Array, point: Array, ahead: Array, ground: Array) -> Array:
    """(F,) radians by which a point must turn upwards to be on the ground.

    Args:
        rotations: (F, 4) world.
        point: (3,) from the centre of rotation, in their frame.
        ahead: (F, 3) unit, along the ground: the side on which the point is. The axis is across it.
        ground: (F,) height of the ground over the centre.
    """
    ways = turned(rotations, point)
    along, rise = batch.dot(ways, ahead, -1), ways[:, 2]
    size = np.maximum(np.hypot(along, rise), 1e-12)
    wanted = np.arcsin(np.clip(ground / size, -1.0, 1.0))
    return np.asarray(np.maximum(0.0, wanted - np.arctan2(rise, along)))


def _raised(rotations: Array, ahead: Array, angles: Array) -> Array:
    """Rotations (F, 4) turned upwards on the side `ahead` by angles (F,)."""
    axis = batch.cross(ahead, np.broadcast_to(UP, ahead.shape), -1)
    half = 0.5 * angles[:, None]
    return product(np.concatenate((np.cos(half), np.sin(half) * axis), axis=1), rotations)


def _ahead(rotations: Array, across: Array) -> Array:
    """(F, 3) where feet point along the ground, from the axis (3,) across them in their frame."""
    sides = turned(rotations, across) * (1.0, 1.0, 0.0)
    found = batch.cross(sides, np.broadcast_to(UP, sides.shape), -1)
    return np.asarray(found / np.maximum(batch.length(found, -1), 1e-12)[:, None])
