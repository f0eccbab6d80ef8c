"""The map from the source's world to the target's, and effectors that follow points of the source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array
from ..settings import EffectorSpace, RetargetSettings
from .feet import Contacts, Sole, phase_heights, stepped
from .figures import Figures, Limb, limb_length, path_length, turned
from .stances import Stances


@dataclass(frozen=True, eq=False)
class ScaledWay:
    """target point(t) = scale source point(t) + place + rise + lift(t) - drift t, in metres."""

    scale: float  # of lengths
    rise: float  # metres, so that soles stand on the ground
    drift: Array  # (3,) metres per second, subtracted
    start: float  # seconds at which nothing of it is subtracted
    place: Array  # (3,) horizontal position of the target's model origin
    ground: float  # height of the ground, metres; of the lowest, where there are several
    # (F,) metres by which the body is higher on ground that is not level; None on level ground.
    lift: Array | None = None

    def points(self, points: Array, times: Array) -> Array:
        """(F, 3) target points of source points (F, 3)."""
        shift = self.place + np.array((0.0, 0.0, self.rise))
        placed = np.asarray(self.scale * points + shift - self.drift * (times - self.start)[:, None])
        if self.lift is not None:
            placed[:, 2] += self.lift
        return placed


def length_scale(figures: Figures, settings: RetargetSettings) -> float:
    """Scale of lengths from source to target: the setting, or the ratio of the legs' lengths."""
    if settings.scale:
        return settings.scale
    sizes = [figures.lengths(leg) for leg in figures.map.legs]
    if not sizes:
        heads, others = (
            {name: head(name) for name in figures.map.sources}
            for head in (figures.target_head, figures.source_head)
        )
        sizes = [(_spread(heads, figures.map.hips), _spread(others, figures.map.hips))]
    return float(np.mean([size / other for size, other in sizes]))


def scaled_way(
    figures: Figures, settings: RetargetSettings, stances: Stances, turns: Mapping[str, Array]
) -> tuple[ScaledWay, dict[str, Contacts]]:
    """The map from the source's world to the target's, and the contacts of each leg there.

    Args:
        settings: scale, ground, in_place, contacts and thresholds are used.
        turns: by leg (F, 4) rotations of feet in the target's world.
    """
    figure_map, target, source = figures.map, figures.target, figures.source
    scale = length_scale(figures, settings)
    drift, start = drift_of(figures, scale, settings)
    ground = target.ground if settings.ground is None else settings.ground
    way = ScaledWay(scale, 0.0, drift, start, target.shift * (1.0, 1.0, 0.0), ground)
    if not figure_map.legs:
        hips, followed = (head(figure_map.hips)[2] for head in (figures.target_head, figures.source_head))
        return replace(way, rise=float(hips - scale * followed + ground - target.ground)), {}
    heights, lows, lifts = {}, [], girdle_lifts(figures, scale)
    for leg in figure_map.legs:
        sole = Sole.of(target, leg)
        ankles = figures.source_heads(leg.end)
        balls = way.points(ankles, source.times) + turned(turns[leg.name], sole.ball)
        balls[:, 2] += lifts[leg.name]
        heights[leg.name] = phase_heights(balls, stances.phases[leg.name]) - sole.height
        lows.append(_lowest_rest(balls[:, 2], source.times, settings.thresholds.shortest) - sole.height)
    every = np.concatenate(list(heights.values()))
    lowest = float(every.min()) if len(every) else 0.0
    size = min(limb_length(target, leg) for leg in figure_map.legs)
    low = settings.thresholds.height * size
    is_locked = settings.contacts
    if is_locked and len(every):
        level = lowest + float(
            np.median((every - lowest)[stepped(every, lowest, size, settings.thresholds) == 0.0])
        )
    else:
        level = min(lows)
        # Height of the source's ground, scaled, if its reference pose stands as the target's does.
        gaps = [_standing_gap(figures, leg, scale) for leg in figure_map.legs]
        standing = float(np.mean(gaps)) + target.ground
        if source.stands and abs(standing - level) <= low:
            level = standing
    contacts = {
        name: Contacts(
            stances.phases[name] if is_locked else (),
            source.times,
            scale * stances.velocity - drift,
            ground + stepped(each if is_locked else each[:0], lowest, size, settings.thresholds),
            ground if is_locked else -math.inf,
            low,
            stances.rolls.get(name, ()) if is_locked else (),
        )
        for name, each in heights.items()
    }
    return replace(way, rise=ground - level), contacts


def _lowest_rest(heights: Array, times: Array, seconds: float) -> float:
    """Lowest height below which a point (F,) stays for some time: a moment below it is noise."""
    frame = float(np.median(np.diff(times))) if len(times) > 1 else seconds
    count = min(len(heights), max(1, round(seconds / frame)))
    return float(np.lib.stride_tricks.sliding_window_view(heights, count).max(axis=1).min())


def drift_of(figures: Figures, scale: float, settings: RetargetSettings) -> tuple[Array, float]:
    """(3,) mean velocity of the hips along the ground that is taken off, scaled, and the time it counts from.

    It is 0 unless in place.
    """
    times, velocity, start = figures.source.times, figures.source.velocity, 0.0
    if velocity is None:
        hips, start = figures.source_heads(figures.map.hips), float(times[0])
        velocity = (hips[-1] - hips[0]) / (float(times[-1]) - start) if len(times) > 1 else np.zeros(3)
    return scale * velocity * (1.0, 1.0, 0.0) * float(settings.in_place), start


def _spread(heads: Mapping[str, Array], hips: str) -> float:
    """Mean distance of joints (3,) from the hips, metres: the size of a figure without legs."""
    size = float(np.mean([np.linalg.norm(head - heads[hips]) for head in heads.values()]))
    if not size > 0.0:
        raise InvalidInput(f"all mapped joints are where '{hips}' is: map one that is elsewhere")
    return size


def girdle_lifts(figures: Figures, scale: float) -> dict[str, float]:
    """By leg, metres to lift its foot above the scaled source's, so that all feet stand alike.

    Of four legs, ankles of one pair may be higher than the source's and those of the other lower. It is 0 for
    one pair, and where the source's reference pose does not stand.
    """
    legs = figures.map.legs
    if len(figures.map.hind_legs) == len(legs) or not figures.source.stands:
        return dict.fromkeys((leg.name for leg in legs), 0.0)
    gaps = {leg.name: _standing_gap(figures, leg, scale) for leg in legs}
    middle = float(np.mean(list(gaps.values())))
    return {
        leg.name: middle - float(np.mean([gaps[each.name] for each in figures.map.girdle(leg)]))
        for leg in legs
    }


def _standing_gap(figures: Figures, leg: Limb, scale: float) -> float:
    """Metres by which the source's scaled ankle is higher than the target's in the reference poses."""
    return float(scale * figures.source_head(leg.end)[2] - figures.target_head(leg.end)[2])


@dataclass(frozen=True)
class Effector:
    """A joint of the target that follows a joint of the source."""

    name: str  # in reports
    figures: Figures  # target and source
    joint: str
    base: str  # joint at the start of its limb
    # Of the limb, in metres: the scale of `LIMB`.
    length: float
    source_length: float
    weight: float  # 0 to 1
    space: EffectorSpace  # of its target

    def wanted(self, heads: Array, way: ScaledWay) -> Array:
        """(F, 3) its targets, world metres; `heads` (F, n, 3) are those of the target."""
        points = self.figures.source_heads(self.joint)
        if self.space is EffectorSpace.WORLD:
            return way.points(points, self.figures.source.times)
        ratio = self.length / self.source_length
        start = heads[:, self.figures.target.index(self.base)]
        return np.asarray(start + ratio * (points - self.figures.source_heads(self.base)))

    def sides(self, heads: Array, way: ScaledWay, end: str) -> tuple[Array, Array, Array]:
        """The swivel of a knee or elbow to its target's side.

        Returns:
            (F, 3) unit axis from its limb's start to the joint `end`; (F,) radians about it; (F,) the smaller
            distance of joint and target from the axis, in lengths of the limb.
        """
        start, last, joint = (
            heads[:, self.figures.target.index(name)] for name in (self.base, end, self.joint)
        )
        axis = batch.directions(last - start)
        present = joint - start
        wanted = self.wanted(heads, way) - start
        present = present - batch.dot(present, axis, -1)[:, None] * axis
        wanted = wanted - batch.dot(wanted, axis, -1)[:, None] * axis
        sine = batch.dot(axis, batch.cross(present, wanted, -1), -1)
        angle = batch.arctan2(sine, batch.dot(present, wanted, -1))
        off = np.minimum(batch.length(present, -1), batch.length(wanted, -1)) / self.length
        return axis, np.asarray(angle), np.asarray(off)

    def errors(self, heads: Array, way: ScaledWay) -> Array:
        """(F,) its distances from its targets, in lengths of the limb."""
        off = heads[:, self.figures.target.index(self.joint)] - self.wanted(heads, way)
        return np.asarray(batch.length(off, -1) / self.length)


_SINGULAR = {"feet": "foot", "hands": "hand", "knees": "knee", "elbows": "elbow"}


def limb_effectors(figures: Figures, settings: RetargetSettings) -> dict[str, Effector]:
    """The effector at the end of each limb, by the limb's name."""
    return {limb.name: _effector(figures, settings, limb, is_pole=False) for limb in figures.map.limbs}


def poles(figures: Figures, settings: RetargetSettings) -> dict[str, Effector]:
    """The effector at the knee or elbow of each limb, by the limb's name."""
    return {limb.name: _effector(figures, settings, limb, is_pole=True) for limb in figures.map.limbs}


def _effector(figures: Figures, settings: RetargetSettings, limb: Limb, *, is_pole: bool) -> Effector:
    pair = ("knees", "elbows") if is_pole else ("feet", "hands")
    field = pair[limb not in figures.map.legs]
    return Effector(
        f"{_SINGULAR[field]} of the {limb.name}" if is_pole else limb.name,
        figures,
        limb.middle if is_pole else limb.end,
        limb.upper,
        *figures.lengths(limb),
        settings.weight(field, limb.is_right),
        getattr(settings, f"{_SINGULAR[field]}_space"),
    )


def head_effector(figures: Figures, settings: RetargetSettings) -> Effector | None:
    """The effector of the head, relative to the hips; None without a head below the hips in the tree."""
    head, hips = figures.map.head, figures.map.hips
    skeleton = figures.target.skeleton
    if not head or hips not in (skeleton.joints[i].name for i in skeleton.chain(head)):
        return None
    length, source_length = (
        path_length([place(hips), place(head)]) for place in (figures.target_head, figures.source_head)
    )
    if not (length > 0.0 and source_length > 0.0):
        return None
    return Effector("head", figures, head, hips, length, source_length, settings.head, settings.head_space)
