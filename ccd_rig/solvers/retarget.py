"""Retarget motion to another figure: carry rotations over, then solve all frames for hands and feet.

Data flow:

    source motion, figure map -> stances -> corrections of the reference poses -> rotations carried over
    -> hips moved and lowered, paths of feet -> goals -> solve_many -> rotations and translations

The carried-over pose of a frame is the start and the reference of its solve: a frame that meets its goals
keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidInput
from ..maths import batch
from ..maths.batch import Array
from ..motion.ground import Ground
from ..motion.interpolation import same_side
from ..motion.retargeting.alignment import carried_over, corrections, moved_root, trunk_pitch
from ..motion.retargeting.feet import (
    FootPath,
    Sole,
    SolePart,
    carried,
    drops,
    foot_path,
    rolled_smoothly,
    smooth_envelope,
    smooth_shifts,
    ways_aside,
)
from ..motion.retargeting.figures import FigureMap, Limb, SourceMotion, TargetFigure
from ..motion.retargeting.over_ground import Terrain, cleared, laid
from ..motion.retargeting.scaled_way import (
    ScaledWay,
    drift_of,
    girdle_lifts,
    length_scale,
    limb_effectors,
    limb_length,
    scaled_way,
)
from ..motion.retargeting.settings import EffectorSpace, RetargetSettings
from ..motion.retargeting.stances import Stances, find_stances, leg_length, levels
from .retarget_goals import Retargeting, turned_to

SINKS = 0.5
"""Part of the height of hip joints above the ground by which the hips sink at most."""


@dataclass(frozen=True, eq=False)
class RetargetResult:
    """A motion of the target.

    Attributes:
        rotations: (F, n, 4) relative to rest.
        translations: (F, n, 3) relative to rest, in the model's unit.
        settings: of the retargeting.
        stances: of the source's feet.
        way: map from the source's world to the target's.
        feet: by leg, the planned path of the foot.
        hands: by arm, (F, 3) targets of the wrist, world metres; none where hands have weight 0.
        moved: (F, 3) shifts of the hips that let legs reach, world metres.
        ground: on which feet are laid; None if it is level.
    """

    rotations: Array
    translations: Array
    settings: RetargetSettings
    stances: Stances
    way: ScaledWay
    feet: Mapping[str, FootPath]
    hands: Mapping[str, Array]
    moved: Array
    ground: Ground | None = None


def retarget(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings = RetargetSettings(),  # noqa: B008  (it is frozen)
    terrain: Terrain | None = None,
) -> RetargetResult:
    """Retarget the source's motion to the target.

    Args:
        figure_map: pairs of joints.
        target: its skeleton's limits hold; locked joints stay.
        source: F frames.
        settings: of the retargeting.
        terrain: on which feet are laid; its rows are the F frames. None: the ground is level.

    Raises:
        InvalidInput: names the joint or field and what to do.
    """
    figure_map.require(target.skeleton, source.names)
    _require_lengths(figure_map, target, source)
    stances = find_stances(source, figure_map, settings.thresholds)
    fixes = corrections(figure_map, target, source, levels(source, figure_map, stances, target))
    rotations = carried_over(figure_map, target, source, fixes)
    scale = length_scale(figure_map, target, source, settings)
    pitch = trunk_pitch(figure_map, target, source, rotations, scale)
    if pitch is not None:
        rotations = carried_over(figure_map, target, source, fixes, pitch)
    translations = np.tile(target.translations, (len(source.times), 1, 1))
    _, world = target.world(rotations, translations)
    turns = {leg.name: world[:, target.index(leg.end)] for leg in figure_map.legs}
    way, contacts = scaled_way(figure_map, target, source, settings, (stances, turns))
    translations = _hips_moved(figure_map, target, source, way, rotations, translations)
    heads, _ = target.world(rotations, translations)
    feet = limb_effectors(figure_map, target, source, settings)
    paths = {}
    for leg in figure_map.legs:
        ankles = feet[leg.name].wanted(target, heads, source, way)
        if settings.foot_space is EffectorSpace.WORLD:
            ankles = ankles + _girdle_shift(figure_map, target, source, leg, heads, way)
        toes = world[:, target.index(leg.tip)] if leg.tip else None
        sole = Sole.of(target, leg)
        path = foot_path(ankles, (turns[leg.name], toes), sole, contacts[leg.name], settings.blend)
        if any(hold.part is not SolePart.BALL for hold in path.holds):
            far = batch.length(path.ankles - heads[:, target.index(leg.upper)], -1)
            reach = _reach(figure_map, target, source, settings, leg)
            followed = contacts[leg.name].followed(far > reach)
            if followed.rolls != contacts[leg.name].rolls:
                path = foot_path(ankles, (turns[leg.name], toes), sole, followed, settings.blend)
        paths[leg.name] = path
    soles = {leg.name: Sole.of(target, leg) for leg in figure_map.legs}
    sizes = {leg.name: limb_length(target, leg) for leg in figure_map.legs}
    if terrain is not None and paths:
        paths, lift = laid(terrain, paths, soles, sizes, source.times)
        way, shift = replace(way, lift=lift), lift[:, None] * np.array((0.0, 0.0, 1.0))
        translations = moved_root(figure_map, target, rotations, translations, shift)
    moved, translations = _reaching(figure_map, target, source, settings, rotations, translations, paths)
    if terrain is not None:  # feet whose legs are too short are elsewhere
        for name, path in paths.items():
            paths[name] = cleared(terrain, path, soles[name], sizes[name], source.times)
    work = Retargeting(figure_map, target, source, settings, way)
    pose, hands = work.solve(rotations, translations, paths)
    tips = {}
    for leg in figure_map.legs:
        toes = paths[leg.name].toes
        if toes is not None:
            weight = np.full(len(toes), settings.weight("feet", leg.is_right))
            tips[leg.tip] = batch.slerp(world[:, target.index(leg.tip)], toes, weight, -1)
    pose = turned_to(target, pose, tips)
    ground = None if terrain is None else terrain.ground
    return RetargetResult(same_side(pose), translations, settings, stances, way, paths, hands, moved, ground)


def places_of_feet(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> Array:
    """(F, legs, 3) where feet of the target are over level ground at height 0, about, metres."""
    scale = length_scale(figure_map, target, source, settings)
    hips = _heads(figure_map, source, figure_map.hips)
    way = ScaledWay(scale, 0.0, drift_of(hips, source.times, scale, settings), target.shift, 0.0)
    ankles = [way.points(_heads(figure_map, source, leg.end), source.times) for leg in figure_map.legs]
    return np.stack(ankles, axis=1) * (1.0, 1.0, 0.0)


def _require_lengths(figure_map: FigureMap, target: TargetFigure, source: SourceMotion) -> None:
    for limb in figure_map.limbs:
        if not leg_length(source, figure_map, limb) > 0.0:
            raise InvalidInput(f"{limb.name}: the source's has no length in its reference pose")
        if not limb_length(target, limb) > 0.0:
            raise InvalidInput(f"{limb.name}: the target's has no length in its reference pose")


def _heads(figure_map: FigureMap, source: SourceMotion, name: str) -> Array:
    return source.heads[:, source.index(figure_map.sources[name])]


def _hips_moved(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    way: ScaledWay,
    rotations: Array,
    translations: Array,
) -> Array:
    """(F, n, 3) translations with the middle of the hip joints (without legs, the hips) at the source's."""
    heads, _ = target.world(rotations, translations)
    uppers = [leg.upper for leg in figure_map.legs] or [figure_map.hips]
    middle = np.mean([_heads(figure_map, source, name) for name in uppers], axis=0)
    present = np.mean([heads[:, target.index(name)] for name in uppers], axis=0)
    shift = way.points(middle, source.times) - present
    return moved_root(figure_map, target, rotations, translations, shift)


def _girdle_shift(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    leg: Limb,
    heads: Array,
    way: ScaledWay,
) -> Array:
    """(F, 3) offset of a pair of legs from the source's; 0 for a figure with one pair.

    Front and hind legs of a longer body are farther apart, and ankles of one pair may be higher.
    """
    girdle = figure_map.girdle(leg)
    if len(girdle) == len(figure_map.legs):
        return np.zeros((1, 3))
    middle = np.mean([_heads(figure_map, source, each.upper) for each in girdle], axis=0)
    present = np.mean([heads[:, target.index(each.upper)] for each in girdle], axis=0)
    offset = (present - way.points(middle, source.times)) * (1.0, 1.0, 0.0)
    offset[:, 2] = girdle_lifts(figure_map, target, source, way.scale)[leg.name]
    return np.asarray(offset)


def _reaching(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings,
    rotations: Array,
    translations: Array,
    paths: dict[str, FootPath],
) -> tuple[Array, Array]:
    """(F, 3) shifts of the hips for legs too short for their feet, and the translations with them.

    Hips move along the ground towards a foot far beside them, as of a figure that lies, and down. `paths`
    changes with them.
    """
    shift = np.zeros((len(source.times), 3))
    weights = {leg.name: settings.weight("feet", leg.is_right) for leg in figure_map.legs}
    if not any(weights.values()):
        return shift, translations
    heads, _ = target.world(rotations, translations)
    wanted, window = {}, 2.0 * settings.blend
    for leg in figure_map.legs:
        reach = _reach(figure_map, target, source, settings, leg)
        hips = heads[:, target.index(leg.upper)]
        path = rolled_smoothly(paths[leg.name], Sole.of(target, leg), hips, reach, source.times, window)
        paths[leg.name] = path
        wanted[leg.name] = hips, path.ankles, reach, path.borne * weights[leg.name]
    shift[:, :2] = smooth_shifts([ways_aside(*each) for each in wanted.values()], source.times, window)
    missing = [drops(hips + shift, *others) for hips, *others in wanted.values()]
    rooms = [hips[:, 2] - paths[name].ground for name, (hips, *_) in wanted.items()]
    most = SINKS * np.maximum(0.0, np.min(rooms, axis=0))
    shift[:, 2] = -smooth_envelope(np.minimum(np.max(missing, axis=0), most), source.times, window)
    for leg in figure_map.legs:
        hips, _, reach, _ = wanted[leg.name]
        path = carried(paths[leg.name], Sole.of(target, leg), shift)
        line = path.ankles - hips - shift
        line *= np.minimum(1.0, reach / np.maximum(batch.length(line, -1), 1e-12))[:, None]
        paths[leg.name] = replace(path, ankles=hips + shift + line)
    return shift, moved_root(figure_map, target, rotations, translations, shift)


def _reach(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings, leg: Limb
) -> Array:
    """(F,) largest extension of a leg, metres: the larger of the source's and the setting."""
    lines = _heads(figure_map, source, leg.end) - _heads(figure_map, source, leg.upper)
    extension = np.minimum(batch.length(lines, -1) / leg_length(source, figure_map, leg), 1.0)
    return np.asarray(limb_length(target, leg) * np.maximum(settings.extension, extension))
