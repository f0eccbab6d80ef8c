"""Lock a foot in its contacts, at its heel, its ball or its toes.

A step is a contact of the ball, together with the rolls of the source before and after it (`stances`). The
foot turns about its heel, then about its ball, then about the end of its toes. Successive points join without
a jump: a heel is locked at its position at the moment when the ball locks. Beyond both ends the offset fades
to zero along a cubic that starts with its value and its velocity, so neither jumps (Kovar, Schreiner and
Gleicher 2002, "Footskate Cleanup for Motion Capture Editing"):

    offset(t) = h00(t / T) D + h10(t / T) T V        D = offset, V = its velocity, at the edge

While the ball is locked, the toes are flat, in their mean heading.
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

PIVOT = math.radians(20.0)
"""How far a foot turns on its ball at most while its toes stay as they are."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contacts of one foot.

    Attributes:
        phases: of the ball, in order.
        times: (F,) seconds.
        velocity: (3,) of the ground, world metres per second.
        heights: of the ground in each phase, world metres.
        level: height of the ground where there is no phase; minus infinity for no ground.
        low: metres below the ground at which a foot is above another place.
        rolls: by phase, the points on which the foot rolls before and after it; empty for none.
    """

    phases: Sequence[Phase]
    times: Array
    velocity: Array
    heights: Array
    level: float
    low: float
    rolls: Sequence[Sequence[Hold]] = ()

    def ground(self, soles: Array, blend: float) -> Array:
        """(F,) height of the ground.

        In a phase it is the phase's height, between two phases the lower of both, and before the first and
        after the last the lowest. Where a foot gets lower by more than `low`, its lowest height is the
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
        sole: the ball's height.
        contacts: of this foot.
        blend: most seconds of the fade before and after a step.
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
        for hold, offset in steps[-1]:
            rows = slice(hold.first, hold.last + 1)
            offsets[rows], weights[rows] = offset[rows], 1.0
    edges = [-1, *(edge for step in steps for edge in (step[0][0].first, step[-1][0].last)), len(times)]
    for k, step in enumerate(steps):
        before, first, last, after = edges[2 * k : 2 * k + 4]
        room_before = times[first] - times[before] if before >= 0 else math.inf
        room_after = times[after] - times[last] if after < len(times) else math.inf
        for offset, edge, room, sign in (
            (step[0][1], first, room_before, -1.0),
            (step[-1][1], last, room_after, 1.0),
        ):
            beyond, weight = fade_out(offset, times, edge, sign * min(blend, room))
            offsets += beyond
            weights = np.minimum(1.0, weights + weight)
    return offsets, weights, tuple(hold for step in steps for hold, _ in step)


def fade_out(values: Array, times: Array, edge: int, span: float) -> tuple[Array, Array]:
    """Fade values (F, k) from an edge to zero: (F, k) values beyond it, and (F,) their weights.

    Args:
        values: the fade starts with their value and velocity at the edge.
        times: (F,) seconds.
        edge: index of its frame.
        span: seconds of the fade, negative before the edge; results are 0 elsewhere.
    """
    faded, weights = np.zeros_like(values), np.zeros(len(times))
    rows, u = _beyond(times, edge, span)
    if len(u) == 0:
        return faded, weights
    weights[rows] = (1.0 + 2.0 * u) * (1.0 - u) ** 2
    start = max(0, edge - 1)
    near = slice(start, edge + 2)
    velocity = np.gradient(values[near], times[near], axis=0)[edge - start]
    faded[rows] = weights[rows, None] * values[edge] + (span * u * (1.0 - u) ** 2)[:, None] * velocity
    return faded, weights


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
    phase: Phase, offset: Array, relative: Array, arms: Mapping[SolePart, Array], rolls: Sequence[Hold]
) -> list[tuple[Hold, Array]]:
    """The locked points of a step in order, each with the offsets (F, 3) that lock it.

    Args:
        phase: of the ball.
        offset: (F, 3) that locks the ball.
        relative: (F, 3) the ball relative to the ground, as it moves freely.
        arms: (F, 3) from the ball to the other points.
        rolls: before and after the phase.
    """
    locks = [(Hold(SolePart.BALL, *phase), offset)]
    for hold in rolls:
        if hold.part in arms:
            is_before = hold.last < phase.first
            point, edge = relative + arms[hold.part], phase.first if is_before else phase.last
            locks.insert(0 if is_before else len(locks), (hold, offset[edge] + point[edge] - point))
    return locks


def _pivoted(heading: Array, tips: Array) -> Array:
    """(n, 3) the mean heading (3,) of toes, turned after tips (n, 3) that turn farther away than `PIVOT`."""
    ways = np.unwrap(np.arctan2(tips[:, 1], tips[:, 0]))
    mean = math.atan2(heading[1], heading[0])
    mean += 2.0 * math.pi * round((float(np.median(ways)) - mean) / (2.0 * math.pi))
    past = ways - mean - np.clip(ways - mean, -PIVOT, PIVOT)
    sine, cosine = np.sin(past), np.cos(past)
    x, y, z = heading
    return np.stack((cosine * x - sine * y, sine * x + cosine * y, np.full(len(past), z)), axis=1)


def flat_toes(toes: Array, sole: Sole, contacts: Contacts, blend: float) -> Array:
    """(F, 4) rotations of toes, flat and still in each phase of the ball, with their own motion between.

    Toes go round with a foot that pivots farther than `PIVOT` from where it points in the mean of a phase.

    Args:
        toes: (F, 4) as they move freely, world.
        sole: with toes.
        contacts: of the foot.
        blend: most seconds of the fade.
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
        flat = _pivoted(heading, tips[first : last + 1]) * (along / size) - (0.0, 0.0, sole.height)
        arcs = shortest(tips, flat[np.clip(np.arange(len(tips)) - first, 0, last - first)])  # w >= 0
        sines = batch.length(arcs[:, 1:], -1)
        turn = arcs[:, 1:] * (2.0 * np.arctan2(sines, arcs[:, 0]) / np.maximum(sines, 1e-12))[:, None]
        vectors[first : last + 1] = turn[first : last + 1]
        if k:
            gap = float(times[first] - times[phases[k - 1].last])
            vectors += fade_out(turn, times, first, -min(blend, gap))[0]
        else:
            vectors += fade_out(turn, times, first, -blend)[0]
        gap = float(times[phases[k + 1].first] - times[last]) if k + 1 < len(phases) else math.inf
        vectors += fade_out(turn, times, last, min(blend, gap))[0]
    angles = batch.length(vectors, -1)[:, None]
    half = 0.5 * angles
    turn = np.concatenate((np.cos(half), 0.5 * np.sinc(half / math.pi) * vectors), axis=1)
    return product(turn, toes)
