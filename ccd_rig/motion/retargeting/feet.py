"""Where feet are to be: the source's ankles scaled, and each contact locked at the ball of the foot.

In a contact the ball stays at one place (Kovar, Schreiner and Gleicher 2002, "Footskate Cleanup for Motion
Capture Editing"), about which the foot rolls. Before and after it the foot goes over into its own motion along
a cubic that starts with the lock's offset and its velocity, so neither jumps:

    offset(t) = h00(t / T) D + h10(t / T) T V        D = lock - ball,  V = - velocity of the ball, at the edge

The sole of a foot is three points at the ground below the reference pose: under the ball, behind the ankle
and at the end of the toes. A heel below the ground in a contact turns the foot about its ball, toes are turned
up, and what is still below lifts the foot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..contacts import LEVEL, ContactThresholds, Phase
from .alignment import UP
from .figure_map import Limb
from .motions import TargetFigure, inverse, product, turned

HEEL = 0.3
"""How far the heel is behind the ankle, in distances of the ankle from the ball along the ground."""


@dataclass(frozen=True, eq=False)
class Sole:
    """A foot of the target in its reference pose, in metres.

    Attributes:
        ball: (3,) from the ankle, in the foot's frame; 0 for a foot without a ball.
        under, heel: (3,) points of the sole from the ball, in the foot's frame.
        toe: (3,) end of the toes from the ball, in the frame of the toes; None where there are none.
        height: of the ball over the ground.
    """

    ball: Array
    under: Array
    heel: Array
    toe: Array | None
    height: float

    @classmethod
    def of(cls, target: TargetFigure, limb: Limb) -> Sole:
        """Of the target's reference pose."""
        heads, rotations = target.reference()
        foot, tip = target.index(limb.end), target.index(limb.tip or limb.end)
        ankle, ball = heads[foot], heads[tip]
        down = (0.0, 0.0, target.ground - ball[2])
        behind = (ankle - ball) * (1.0 + HEEL, 1.0 + HEEL, 0.0) + down
        to_foot = inverse(rotations[foot])
        toe = None
        if limb.tip:
            length = target.scale * target.skeleton.joints[tip].length
            way = turned(rotations[tip], np.array((0.0, length, 0.0))) * (1.0, 1.0, 0.0) + down
            toe = turned(inverse(rotations[tip]), way)
        under, heel, offset = (turned(to_foot, each) for each in (np.array(down), behind, ball - ankle))
        return cls(offset, under, heel, toe, float(ball[2] - target.ground))


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
        level: height of the ground where there is no phase.
    """

    phases: Sequence[Phase]
    times: Array
    velocity: Array
    heights: Array
    level: float

    def ground(self) -> Array:
        """(F,) height of the ground: that of the phases, straight lines between them."""
        if not self.phases:
            return np.full(len(self.times), self.level)
        edges = [self.times[frame] for phase in self.phases for frame in phase]
        return np.interp(self.times, edges, np.repeat(self.heights, 2))


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
    ground = contacts.ground()
    offsets, weights = _offsets(balls, contacts, sole.height, blend)
    balls = balls + offsets
    feet = _raised(feet, sole.heel, ground - balls[:, 2], weights)
    if toes is not None and sole.toe is not None:
        toes = _raised(toes, sole.toe, ground - balls[:, 2], np.ones(len(balls)))
    points = [turned(feet, sole.under), turned(feet, sole.heel)]
    if toes is not None and sole.toe is not None:
        points.append(turned(toes, sole.toe))
    lowest = balls[:, 2] + np.min([point[:, 2] for point in points], axis=0)
    balls[:, 2] += np.maximum(0.0, ground - lowest)
    return FootPath(balls - turned(feet, sole.ball), feet, toes, weights, ground)


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


def _raised(rotations: Array, point: Array, ground: Array, weights: Array) -> Array:
    """Rotations (F, 4) turned by part `weights` of what brings a point up to the ground (F,), both seen from
    the centre of rotation."""
    ways = turned(rotations, point)
    flat = ways * (1.0, 1.0, 0.0)
    size = batch.length(ways, -1)
    elevation = np.arctan2(ways[:, 2], batch.length(flat, -1))
    wanted = np.arcsin(np.clip(ground / np.maximum(size, 1e-12), -1.0, 1.0))
    angle = 0.5 * weights * np.maximum(0.0, wanted - elevation)
    axis = batch.cross(flat, np.broadcast_to(UP, flat.shape), -1)
    axis = axis / np.maximum(batch.length(axis, -1), 1e-12)[:, None]
    turn = np.concatenate((np.cos(angle)[:, None], np.sin(angle)[:, None] * axis), axis=1)
    return product(batch.unit(turn, -1), rotations)
