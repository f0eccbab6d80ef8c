"""Paths of feet: the source's ankles scaled, and each contact locked at the point the foot rolls on.

In a contact heel, ball or toes stay at one place, about which the foot rolls; see `rolling`. A heel below the
ground in a contact turns the foot about its ball, toes are turned up, and what is still below lifts the foot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from .alignment import UP
from .motions import product, turned
from .rolling import Contacts, faded, flat_toes, locked
from .root import smooth_envelope
from .sole import Hold, Sole, SolePart

MOST_ROLL = math.radians(20.0)
"""How far a heel is raised further at most for a leg that is too short."""
RAISED = 0.15
"""Height of a heel, in its distances from the ball, from which it may be raised further without restraint."""


@dataclass(frozen=True, eq=False)
class FootPath:
    """The path of a foot of the target, in the world.

    Attributes:
        ankles: (F, 3).
        feet: (F, 4) rotations.
        toes: (F, 4) rotations, or None.
        weights: (F,) 1 where a point of the sole is locked, 0 where the foot moves freely.
        borne: (F,) the same of the ball alone: how far it bears the body.
        ground: (F,) height of the ground below it.
        holds: what of the sole is locked when, in order.
    """

    ankles: Array
    feet: Array
    toes: Array | None
    weights: Array
    borne: Array
    ground: Array
    holds: tuple[Hold, ...] = ()


def foot_path(
    ankles: Array, rotations: tuple[Array, Array | None], sole: Sole, contacts: Contacts, blend: float
) -> FootPath:
    """Ankles (F, 3) and rotations (F, 4) of foot and toes, world, with contacts locked and the sole above
    the ground; `blend` is in seconds."""
    feet, toes = rotations
    balls = ankles + turned(feet, sole.ball)
    ground = contacts.ground(_lowest(balls, feet, toes, sole), blend)
    borne = np.minimum(1.0, faded(np.ones((len(balls), 1)), contacts, blend)[:, 0])
    heights = balls[:, 2] + faded(contacts.steps(sole.height)[:, None] - balls[:, 2:], contacts, blend)[:, 0]
    ahead = _ahead(feet, sole.across)
    arms = {}
    if sole.rolls:
        flat = missing_turn(feet, sole.heel, -ahead, np.full(len(feet), -sole.height))
        feet = raised_ahead(feet, -ahead, faded(flat[:, None], contacts, blend)[:, 0])
        arms[SolePart.HEEL] = turned(feet, sole.heel)
    if toes is not None and sole.toe is not None:
        toes = flat_toes(toes, sole, contacts, blend)
        angles = missing_turn(toes, sole.toe, ahead, ground - heights)
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

    The ankle goes up and ahead on a circle about the ball, as far as the leg can follow, to where it is
    nearest to the hip, or by `MOST_ROLL`. It never goes away from the hip, and near the angle where it would,
    it rolls no farther than it is from that: so the roll does not leap in time. A heel that is down stays
    down. The hips sink by the rest.

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
    roll = start + np.arccos(np.clip((0.5 * reach**2 - rest) / size, -1.0, 1.0))
    missing = batch.length(path.ankles - hips, -1) > reach
    roll = np.minimum(roll, -start)  # the way to the hip is longest at `start`, and grows up to there
    raised = turned(path.feet, sole.heel)[:, 2] + balls[:, 2] - path.ground
    part = np.clip(raised / (RAISED * max(float(np.linalg.norm(sole.heel)), 1e-12)), 0.0, 1.0)
    angle = np.where(missing, np.clip(roll, 0.0, MOST_ROLL), 0.0) * path.borne * part
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
    along, rise = batch.dot(ways, ahead, -1), ways[:, 2]
    size = np.maximum(np.hypot(along, rise), 1e-12)
    wanted, present = np.arcsin(np.clip(ground / size, -1.0, 1.0)), np.arctan2(rise, along)
    down = -0.5 * np.pi
    missing = np.maximum(0.0, wanted - np.maximum(present, down))
    return np.asarray(missing * np.minimum(1.0, 2.0 - present / down))


def raised_ahead(rotations: Array, ahead: Array, angles: Array) -> Array:
    """Rotations (F, 4) turned upwards on the side `ahead` by angles (F,)."""
    axis = batch.cross(ahead, np.broadcast_to(UP, ahead.shape), -1)
    half = 0.5 * angles[:, None]
    return product(np.concatenate((np.cos(half), np.sin(half) * axis), axis=1), rotations)


def _ahead(rotations: Array, across: Array) -> Array:
    """(F, 3) where feet point along the ground, from the axis (3,) across them in their frame."""
    sides = turned(rotations, across) * (1.0, 1.0, 0.0)
    ahead = batch.cross(sides, np.broadcast_to(UP, sides.shape), -1)
    return np.asarray(ahead / np.maximum(batch.length(ahead, -1), 1e-12)[:, None])
