"""The map from the source's world to the target's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InvalidInput
from ...maths.batch import Array
from .figure_map import FigureMap, Limb
from .motions import SourceMotion, TargetFigure, path_length, turned
from .rolling import Contacts, phase_heights, stepped
from .root import mean_velocity
from .settings import RetargetSettings
from .sole import Sole
from .stances import Stances, leg_length

LOW = 5.0
"""Percentile of a ball's heights that estimates the ground without contacts."""


@dataclass(frozen=True, eq=False)
class ScaledWay:
    """target point(t) = scale source point(t) + place + rise - drift t, in metres.

    Attributes:
        scale: of lengths.
        rise: metres, so that soles stand on the ground.
        drift: (3,) metres per second, subtracted.
        place: (3,) horizontal position of the target's model origin.
        ground: height of the ground, metres; of the lowest, where there are several.
    """

    scale: float
    rise: float
    drift: Array
    place: Array
    ground: float

    def points(self, points: Array, times: Array) -> Array:
        """(F, 3) target points of source points (F, 3)."""
        shift = self.place + np.array((0.0, 0.0, self.rise))
        return np.asarray(self.scale * points + shift - self.drift * (times - times[0])[:, None])


def limb_length(target: TargetFigure, limb: Limb) -> float:
    """From hip to knee to ankle, or from shoulder to elbow to wrist, in the reference pose; metres."""
    heads, _ = target.reference
    return path_length([heads[target.index(name)] for name in (limb.upper, limb.middle, limb.end)])


def scaled_way(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings,
    feet: tuple[Stances, Mapping[str, Array]],
) -> tuple[ScaledWay, dict[str, Contacts]]:
    """The map from the source's world to the target's, and the contacts of each leg there.

    Args:
        figure_map: pairs of joints.
        target: figure that receives the motion.
        source: figure of the motion.
        settings: scale, ground, in_place, contacts and thresholds are used.
        feet: contacts, and by leg (F, 4) rotations of feet in the target's world.
    """
    stances, turns = feet
    sizes = [(limb_length(target, leg), leg_length(source, figure_map, leg)) for leg in figure_map.legs]
    heads = {name: target.reference[0][target.index(name)] for name in figure_map.sources}
    followed = {name: source.reference_heads[source.index(each)] for name, each in figure_map.sources.items()}
    sizes = sizes or [(_spread(heads, figure_map.hips), _spread(followed, figure_map.hips))]
    scale = settings.scale or float(np.mean([size / other for size, other in sizes]))
    drift: Array = np.zeros(3)
    if settings.in_place:
        hips = source.heads[:, source.index(figure_map.sources[figure_map.hips])]
        drift = scale * mean_velocity(hips, source.times)
    ground = target.ground if settings.ground is None else settings.ground
    way = ScaledWay(scale, 0.0, drift, target.shift * (1.0, 1.0, 0.0), ground)
    if not figure_map.legs:
        lift = heads[figure_map.hips][2] - scale * followed[figure_map.hips][2] + ground - target.ground
        return replace(way, rise=float(lift)), {}
    heights, lows, lifts = {}, [], girdle_lifts(figure_map, target, source, scale)
    for leg in figure_map.legs:
        sole = Sole.of(target, leg)
        ankles = source.heads[:, source.index(figure_map.sources[leg.end])]
        balls = way.points(ankles, source.times) + turned(turns[leg.name], sole.ball)
        balls[:, 2] += lifts[leg.name]
        heights[leg.name] = phase_heights(balls, stances.phases[leg.name]) - sole.height
        lows.append(float(np.percentile(balls[:, 2], LOW)) - sole.height)
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
        gaps = [_standing_gap(figure_map, target, source, leg, scale) for leg in figure_map.legs]
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


def _spread(heads: Mapping[str, Array], hips: str) -> float:
    """Mean distance of joints (3,) from the hips, metres: the size of a figure without legs."""
    size = float(np.mean([np.linalg.norm(head - heads[hips]) for head in heads.values()]))
    if not size > 0.0:
        raise InvalidInput(f"all mapped joints are where '{hips}' is: map one that is elsewhere")
    return size


def girdle_lifts(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, scale: float
) -> dict[str, float]:
    """By leg, metres to lift its foot above the scaled source's, so that all feet stand alike.

    Of four legs, ankles of one pair may be higher than the source's and those of the other lower. It is 0 for
    one pair, and where the source's reference pose does not stand.
    """
    legs = figure_map.legs
    if len(figure_map.hind_legs) == len(legs) or not source.stands:
        return dict.fromkeys((leg.name for leg in legs), 0.0)
    gaps = {leg.name: _standing_gap(figure_map, target, source, leg, scale) for leg in legs}
    middle = float(np.mean(list(gaps.values())))
    return {
        leg.name: middle - float(np.mean([gaps[each.name] for each in figure_map.girdle(leg)]))
        for leg in legs
    }


def _standing_gap(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, leg: Limb, scale: float
) -> float:
    """Metres by which the source's scaled ankle is higher than the target's in the reference poses."""
    ankle = source.reference_heads[source.index(figure_map.sources[leg.end]), 2]
    return float(scale * ankle - target.reference[0][target.index(leg.end), 2])
