"""What keeps a foot where it is down: locked at its heel, its ball or its toes.

A step is a contact of the ball with what the source rolls on beside it (`stances`). The foot turns about its
heel, then about its ball, then about the end of its toes. One point takes over where the other has it: a heel
is locked where it is when the ball locks. Beyond both ends an offset goes back to nothing along a cubic that
starts with its value and its velocity, so neither jumps (Kovar, Schreiner and Gleicher 2002, "Footskate
Cleanup for Motion Capture Editing"):

    offset(t) = h00(t / T) D + h10(t / T) T V        D = offset, V = its velocity, at the edge

While the ball is locked, so are the toes: flat, in their mean heading.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...maths import batch
from ...maths.batch import Array, Mask
from ..contacts import LEVEL, ContactThresholds, Phase
from .alignment import shortest
from .motions import product, turned
from .sole import Hold, Sole, SolePart


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contacts of one foot.

    Attributes:
        phases: of the ball, in order.
        times: (F,) seconds.
        velocity: (3,) of the ground, world metres per second.
        heights: of the ground in each phase, world metres.
        level: height of the ground where there is no phase; minus infinity for no ground.
        low: metres by which a foot must get below the ground to be above another place.
        rolls: beside each phase, what the foot rolls on; empty for nothing.
    """

    phases: Sequence[Phase]
    times: Array
    velocity: Array
    heights: Array
    level: float
    low: float
    rolls: Sequence[Sequence[Hold]] = ()

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

    def followed(self, out_of_reach: Mask) -> Contacts:
        """The same without rolls from the first frame on, away from the ball, in which the leg is too short,
        of (F,)."""
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
        """(F,) height of a point that is `height` metres above the ground in each phase; 0 between."""
        found = np.zeros(len(self.times))
        for (first, last), ground in zip(self.phases, self.heights.tolist(), strict=True):
            found[first : last + 1] = ground + height
        return found


def phase_heights(balls: Array, phases: Sequence[Phase]) -> Array:
    """(phases,) median height of a ball in each of its phases."""
    return np.array([np.median(balls[first : last + 1, 2]) for first, last in phases])


def stepped(heights: Array, lowest: float, leg: float, thresholds: ContactThresholds) -> Array:
    """Heights above the ground; those of one level with the lowest are on it."""
    above = heights - lowest
    return np.where(above <= LEVEL * thresholds.height * leg, 0.0, above)


def locked(
    balls: Array, arms: Mapping[SolePart, Array], sole: Sole, contacts: Contacts, blend: float
) -> tuple[Array, Array, tuple[Hold, ...]]:
    """(F, 3) what brings a foot to where it is locked, (F,) how far it is, and what is locked when.

    Args:
        balls: (F, 3) as the foot moves freely, world.
        arms: (F, 3) from the ball to the heel, and to the end of the toes; none for those that do not roll.
        sole: the ball's height.
        contacts: of this foot.
        blend: seconds at most beyond a step in which it goes over into its own motion.
    """
    times, phases = contacts.times, contacts.phases
    offsets = np.zeros_like(balls)
    weights: Array = np.zeros(len(balls))
    relative = balls - contacts.velocity * times[:, None]
    steps: list[list[tuple[Hold, Array]]] = []
    for k, phase in enumerate(phases):
        place = relative[phase.first : phase.last + 1].mean(axis=0)
        place[2] = contacts.heights[k] + sole.height
        steps.append(
            _step(phase, place - relative, relative, arms, contacts.rolls[k] if contacts.rolls else ())
        )
        for hold, way in steps[-1]:
            rows = slice(hold.first, hold.last + 1)
            offsets[rows], weights[rows] = way[rows], 1.0
    edges = [-1, *(edge for step in steps for edge in (step[0][0].first, step[-1][0].last)), len(times)]
    for k, step in enumerate(steps):
        before, first, last, after = edges[2 * k : 2 * k + 4]
        room_before = times[first] - times[before] if before >= 0 else math.inf
        room_after = times[after] - times[last] if after < len(times) else math.inf
        for way, edge, room_there, sign in (
            (step[0][1], first, room_before, -1.0),
            (step[-1][1], last, room_after, 1.0),
        ):
            beyond, part = eased(way, times, edge, sign * min(blend, room_there))
            offsets += beyond
            weights = np.minimum(1.0, weights + part)
    return offsets, weights, tuple(hold for step in steps for hold, _ in step)


def eased(values: Array, times: Array, edge: int, span: float) -> tuple[Array, Array]:
    """(F, k) values that go on from those (F, k) of an edge to nothing, and (F,) their part of it.

    Args:
        values: whose value and velocity at the edge they start with.
        times: (F,) seconds.
        edge: its place.
        span: seconds in which they do, negative for those before it; nothing stands outside.
    """
    found, parts = np.zeros_like(values), np.zeros(len(times))
    rows, u = _beyond(times, edge, span)
    if len(u) == 0:
        return found, parts
    parts[rows] = (1.0 + 2.0 * u) * (1.0 - u) ** 2
    start = max(0, edge - 1)
    near = slice(start, edge + 2)
    velocity = np.gradient(values[near], times[near], axis=0)[edge - start]
    found[rows] = parts[rows, None] * values[edge] + (span * u * (1.0 - u) ** 2)[:, None] * velocity
    return found, parts


def _beyond(times: Array, edge: int, span: float) -> tuple[slice, Array]:
    """The rows within `span` seconds beyond an edge, before it for a negative span, and how far they are."""
    ends = sorted((times[edge], times[edge] + span))
    first, last = np.searchsorted(times, ends[0], "right"), np.searchsorted(times, ends[1], "left")
    rows = slice(int(first), int(last))
    return rows, (times[rows] - times[edge]) / span


def faded(values: Array, contacts: Contacts, blend: float) -> Array:
    """(F, k) values as they are in each phase of the ball, that fade before and after it; 0 elsewhere."""
    found = np.zeros_like(values)
    times, phases = contacts.times, contacts.phases
    for k, (first, last) in enumerate(phases):
        found[first : last + 1] += values[first : last + 1]
        before = times[first] - times[phases[k - 1].last] if k else math.inf
        after = times[phases[k + 1].first] - times[last] if k + 1 < len(phases) else math.inf
        for edge, span in ((first, -min(blend, before)), (last, min(blend, after))):
            rows, u = _beyond(times, edge, span)
            found[rows] += ((1.0 + 2.0 * u) * (1.0 - u) ** 2)[:, None] * values[edge]
    return found


def _step(
    phase: Phase, way: Array, relative: Array, arms: Mapping[SolePart, Array], rolls: Sequence[Hold]
) -> list[tuple[Hold, Array]]:
    """What is locked in a step, in order, each with (F, 3) the offset that does so.

    Args:
        phase: of the ball.
        way: (F, 3) offset that locks it.
        relative: (F, 3) the ball over the ground as it moves freely.
        arms: (F, 3) from it to the other points.
        rolls: what the foot rolls on beside the phase.
    """
    found = [(Hold(SolePart.BALL, *phase), way)]
    for hold in rolls:
        if hold.part in arms:
            is_before = hold.last < phase.first
            point, edge = relative + arms[hold.part], phase.first if is_before else phase.last
            found.insert(0 if is_before else len(found), (hold, way[edge] + point[edge] - point))
    return found


def flat_toes(toes: Array, sole: Sole, contacts: Contacts, blend: float) -> Array:
    """(F, 4) rotations of toes, flat and still in each phase of the ball, with their own motion between.

    Args:
        toes: (F, 4) as they move freely, world.
        sole: with toes.
        contacts: of the foot.
        blend: seconds at most from one to the other.
    """
    assert sole.toe is not None
    tips = turned(toes, sole.toe)
    times, phases = contacts.times, contacts.phases
    vectors = np.zeros_like(tips)
    for k, (first, last) in enumerate(phases):
        heading = tips[first : last + 1].mean(axis=0) * (1.0, 1.0, 0.0)
        size = float(np.linalg.norm(heading))
        if size < 1e-9:
            continue
        along = math.sqrt(max(float(sole.toe @ sole.toe) - sole.height**2, 0.0))
        flat = heading * (along / size) - (0.0, 0.0, sole.height)
        turn = _rotation_vectors(shortest(tips, np.broadcast_to(flat, tips.shape)))
        vectors[first : last + 1] = turn[first : last + 1]
        if k:
            gap = float(times[first] - times[phases[k - 1].last])
            vectors += eased(turn, times, first, -min(blend, gap))[0]
        else:
            vectors += eased(turn, times, first, -blend)[0]
        gap = float(times[phases[k + 1].first] - times[last]) if k + 1 < len(phases) else math.inf
        vectors += eased(turn, times, last, min(blend, gap))[0]
    angles = batch.length(vectors, -1)[:, None]
    half = 0.5 * angles
    turn = np.concatenate((np.cos(half), 0.5 * np.sinc(half / math.pi) * vectors), axis=1)
    return product(turn, toes)


def _rotation_vectors(rotations: Array) -> Array:
    """(F, 3) axes times angles, radians, of unit quaternions (F, 4) with w >= 0."""
    sines = batch.length(rotations[:, 1:], -1)
    angles = 2.0 * np.arctan2(sines, rotations[:, 0])
    return np.asarray(rotations[:, 1:] * (angles / np.maximum(sines, 1e-12))[:, None])
