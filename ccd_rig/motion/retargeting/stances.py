"""Contacts of the source's feet, and the flat orientation of a foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..contacts import EVEN, LEVEL, SLIDES, Phase, contact_phases, ground_velocity, shortest_contact
from ..settings import ContactThresholds
from .alignment import UP, shortest
from .feet import TOES, Hold, SolePart, heel_from_ball
from .figures import FigureMap, Limb, SourceMotion, TargetFigure, inverse, leg_length, product, turned

FLAT = 30.0
"""Percentile of an ankle's heights in a contact up to which the foot counts as flat."""


@dataclass(frozen=True, eq=False)
class Stances:
    """Contacts of the source's feet."""

    phases: Mapping[str, Sequence[Phase]]  # of the ball, by leg, in order
    velocity: Array  # (3,) of the ground, metres per second of the source; 0 where it stands still
    # By leg and phase, the points on which the foot rolls before and after it.
    rolls: Mapping[str, Sequence[Sequence[Hold]]] = field(default_factory=dict)


def ball(source: SourceMotion, figure_map: FigureMap, limb: Limb) -> Array:
    """(F, 3) positions of the source's ball of the foot, or of its ankle without a ball."""
    return source.heads[:, source.index(figure_map.sources[limb.tip or limb.end])]


def find_stances(source: SourceMotion, figure_map: FigureMap, thresholds: ContactThresholds) -> Stances:
    """Detect the contacts of all feet, see `motion.contacts`; of two feet, each is beside the other."""
    if not figure_map.legs:
        return Stances({}, np.zeros(3))
    balls = {limb.name: ball(source, figure_map, limb) for limb in figure_map.legs}
    leg = min(leg_length(source, figure_map, limb) for limb in figure_map.legs)
    velocity = ground_velocity(list(balls.values()), source.times, leg, thresholds)
    phases = {}
    rolls = {}
    for limb in figure_map.legs:
        name, points = limb.name, balls[limb.name]
        others = [other for each, other in balls.items() if each != name]
        beside = others[0] if len(others) == 1 else None
        candidates = contact_phases(points, source.times, leg, velocity, thresholds, beside)
        slow = max(leg * thresholds.speed, SLIDES * float(np.linalg.norm(velocity)))
        over_ground = points - velocity * source.times[:, None]
        phases[name] = _trimmed(candidates, over_ground, source.times, slow, leg, thresholds)
        if limb.tip:
            rolls[name] = _rolls(source, figure_map, limb, phases[name], velocity, thresholds.release * slow)
    return Stances(phases, velocity, rolls)


def yielding_phases(
    points: Array, times: Array, leg: float, ahead: Array, thresholds: ContactThresholds
) -> list[Phase]:
    """The phases in which a foot is down on ground that goes along with it as long as it goes back.

    Feet of drawn cycles may slide at any speed. What tells their contacts is that they are low, and do not go
    ahead of the figure.

    Args:
        points: (F, 3) of the ball of the foot, relative to the figure as it travels.
        times: (F,) seconds.
        leg: its length, metres.
        ahead: (3,) unit direction in which the figure goes.
    """
    speeds = np.gradient(points @ ahead, times)
    yielding = np.maximum(speeds, 0.0)
    gone = np.concatenate(([0.0], np.cumsum(0.5 * (yielding[1:] + yielding[:-1]) * np.diff(times))))
    over_ground = np.stack((gone, np.zeros_like(gone), points[:, 2]), axis=1)
    pace = float(np.median(-speeds[speeds < 0.0])) if (speeds < 0.0).any() else 0.0
    thresholds = replace(thresholds, shortest=shortest_contact(pace / leg, thresholds))
    candidates = contact_phases(over_ground, times, leg, np.zeros(3), thresholds)
    slow = max(leg * thresholds.speed, SLIDES * pace)
    return _trimmed(candidates, over_ground, times, slow, leg, thresholds)


def _rolls(
    source: SourceMotion,
    figure_map: FigureMap,
    limb: Limb,
    phases: Sequence[Phase],
    velocity: Array,
    slow: float,
) -> list[tuple[Hold, ...]]:
    """Around each phase of the ball, the frames in which the heel or the end of the toes is down.

    These points are fixed to foot and toes in the frame with the lowest ankle. They are down next to a phase
    while they are slower over the ground than `slow`, and lower than the ball. `velocity` is the ground's.
    """
    balls = ball(source, figure_map, limb)
    count = len(source.times)
    rolls: list[tuple[Hold, ...]] = []
    for k, phase in enumerate(phases):
        start = 0
        if rolls and rolls[-1] and rolls[-1][-1].first > phases[k - 1].last:
            start = rolls[-1][-1].last + 1
        start = max(start, phases[k - 1].last + 1 if k else 0)
        end = phases[k + 1].first if k + 1 < len(phases) else count
        near = slice(max(start - 1, 0), end + 1)  # what may roll, and the rows beside it
        points = _sole_points(source, figure_map, limb, phase, near)
        downs = {}
        for part, point in points.items():
            over_ground = point - velocity * source.times[near, None]
            speeds = batch.length(np.gradient(over_ground, source.times[near], axis=0), -1)
            downs[part] = (speeds < slow) & (point[:, 2] < balls[near, 2])
        holds = []
        for rows in (np.arange(phase.first - 1, start - 1, -1), np.arange(phase.last + 1, end)):
            best: tuple[int, SolePart] = (0, SolePart.BALL)
            for part, is_down in downs.items():
                length = int(np.argmin(np.append(is_down[rows - near.start], False)))
                best = max(best, (length, part), key=lambda each: each[0])
            if best[0]:
                ends = sorted((int(rows[0]), int(rows[best[0] - 1])))
                holds.append(Hold(best[1], ends[0], ends[1]))
        rolls.append(tuple(holds))
    return rolls


def _sole_points(
    source: SourceMotion, figure_map: FigureMap, limb: Limb, phase: Phase, rows: slice
) -> dict[SolePart, Array]:
    """(R, 3) heel and end of the source's toes at rows, on the ground in the flattest frame of a phase."""
    foot, toe = (source.index(figure_map.sources[name]) for name in (limb.end, limb.tip))
    ankles, balls = source.heads[:, foot], source.heads[:, toe]
    flat = phase.first + int(np.argmin(ankles[phase.first : phase.last + 1, 2]))
    along = (balls[flat] - ankles[flat]) * (1.0, 1.0, 0.0)
    ankle = ankles[flat] - balls[flat]
    heel = heel_from_ball(ankle, 0.0, leg_length(source, figure_map, limb)) - ankle
    heel = turned(inverse(source.rotations[flat, foot]), heel)
    tip = turned(inverse(source.rotations[flat, toe]), TOES * along)
    return {
        SolePart.HEEL: ankles[rows] + turned(source.rotations[rows, foot], heel),
        SolePart.TOES: balls[rows] + turned(source.rotations[rows, toe], tip),
    }


def _trimmed(
    phases: Sequence[Phase],
    points: Array,
    times: Array,
    slow: float,
    leg: float,
    thresholds: ContactThresholds,
) -> list[Phase]:
    """Trim frames at the ends of contacts in which the foot moves or is up, and drop short remainders.

    `contact_phases` ends contacts later. Locking a moving foot pulls at the leg, and locking a raised foot
    makes it jump. A foot moves where it is faster over the ground than `slow`, metres per second, and than
    the contact's median: feet slide more in a run than in a walk. It is up where it is higher than the median
    by the distance between two levels of the ground, or by what a slow foot may rise in a frame, whatever is
    more.
    """
    if not phases:
        return []
    trimmed = []
    speeds = batch.length(np.gradient(points, times, axis=0), -1)
    frame = float(np.median(np.diff(times)))
    shortest = shortest_contact(float(np.median(speeds)) / leg, thresholds)
    level = max(LEVEL * thresholds.height * leg, slow * frame)
    for phase in phases:
        first, last = phase
        moving = max(slow, thresholds.release * float(np.median(speeds[first : last + 1])))
        while True:
            rows = np.arange(first, last + 1)
            rises = points[rows, 2] - np.median(points[rows, 2])
            rests = rows[(speeds[rows] <= moving) & (rises <= level)]
            if not len(rests):
                break
            if rests[0] == first and rests[-1] == last:
                if times[last] - times[first] + frame >= EVEN * shortest:
                    trimmed.append(Phase(first, last))
                break
            first, last = int(rests[0]), int(rests[-1])
    return trimmed


def levels(
    source: SourceMotion, figure_map: FigureMap, stances: Stances, target: TargetFigure
) -> dict[str, Array]:
    """Rotations that turn the source's feet and toes in its reference pose flat, by target joint.

    See `alignment`. A reference pose that stands needs none. Otherwise contacts tell the flat orientation. A
    foot without contacts is flat where its line from ankle to ball slopes as the target's; its toes follow.
    """
    if source.stands:
        return {}
    turns = {}
    for limb in figure_map.legs:
        rows = _flat_rows(source, figure_map, limb, stances.phases[limb.name])
        if not len(rows) and limb.tip:
            ups = _sloped_ups(source, figure_map, limb, target)
        else:
            rotations = {
                n: source.rotations[rows, source.index(figure_map.sources[n])] for n in limb.joints[2:]
            }
            ups = {
                name: turned(inverse(each), UP).mean(axis=0) for name, each in rotations.items() if len(rows)
            }
        for name, up in ups.items():
            k = source.index(figure_map.sources[name])
            turns[name] = shortest(turned(source.reference_rotations[k], up), UP)
    return turns


def _sloped_ups(
    source: SourceMotion, figure_map: FigureMap, limb: Limb, target: TargetFigure
) -> dict[str, Array]:
    """By foot and toes, (3,) the up direction of a flat foot in the frame of the source's joint.

    The foot's line from ankle to ball slopes as the target's; toes are at their median angle to the foot.
    """
    foot, tip = (source.index(figure_map.sources[name]) for name in (limb.end, limb.tip))
    heads, _ = target.reference
    line = heads[target.index(limb.tip)] - heads[target.index(limb.end)]
    sloped = source.reference_heads[tip] - source.reference_heads[foot]
    ahead = sloped * (1.0, 1.0, 0.0) / max(float(np.linalg.norm(sloped[:2])), 1e-12)
    flat = shortest(sloped, float(np.linalg.norm(line[:2])) * ahead + line * (0.0, 0.0, 1.0))
    up = turned(inverse(product(flat, source.reference_rotations[foot])), UP)
    in_toes = turned(product(inverse(source.rotations[:, tip]), source.rotations[:, foot]), up)
    return {limb.end: up, limb.tip: np.median(in_toes, axis=0)}


def _flat_rows(source: SourceMotion, figure_map: FigureMap, limb: Limb, phases: Sequence[Phase]) -> Array:
    """Frames in which a foot stands flat: the frames of each contact with a low ankle."""
    heights = source.heads[:, source.index(figure_map.sources[limb.end]), 2]
    rows = []
    for phase in phases:
        span = np.arange(phase.first, phase.last + 1)
        rows.append(span[heights[span] <= np.percentile(heights[span], FLAT)])
    return np.concatenate(rows) if rows else np.zeros(0, np.intp)
