"""Retarget motion to another figure: carry rotations over, then solve all frames for hands and feet.

Data flow:

    source motion, figure map -> stances -> corrections of the reference poses -> rotations carried over
    -> hips moved and lowered, paths of feet -> goals -> solve_many -> rotations and translations

The carried-over pose of a frame is the start and the reference of its solve: a frame that meets its goals
keeps it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import InvalidInput
from ..maths import batch
from ..maths.batch import Array
from ..motion.interpolation import same_side
from ..motion.retargeting.alignment import carried_over, corrections, moved_root, trunk_pitch
from ..motion.retargeting.feet import (
    FootPath,
    Sole,
    SolePart,
    carried,
    drops,
    foot_path,
    lying_toes,
    rolled,
    smooth_envelope,
    smooth_shifts,
    ways_aside,
)
from ..motion.retargeting.figures import (
    FigureMap,
    Figures,
    Limb,
    SourceMotion,
    TargetFigure,
    limb_length,
)
from ..motion.retargeting.measures import RetargetResult
from ..motion.retargeting.over_ground import Terrain, cleared, laid
from ..motion.retargeting.scaled_way import (
    ScaledWay,
    drift_of,
    girdle_lifts,
    length_scale,
    limb_effectors,
    scaled_way,
)
from ..motion.retargeting.stances import find_stances, levels
from ..motion.settings import EffectorSpace, RetargetSettings
from ..motion.walking.path import STEP_UP
from .retarget_goals import turned_to, with_effectors

SINKS = 0.5
"""Part of the height of hip joints above the ground by which the hips sink at most."""


def retarget(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings = RetargetSettings(),  # noqa: B008  (it is frozen)
    terrain: Terrain | None = None,
) -> RetargetResult:
    """Retarget the source's motion to the target.

    Args:
        target: its skeleton's limits hold; locked joints stay.
        source: F frames.
        terrain: on which feet are laid; its rows are the F frames. None: the ground is level.

    Raises:
        InvalidInput: names the joint or field and what to do.
    """
    figure_map.require(target.skeleton)
    figures = Figures(figure_map, target, source)
    for limb in figures.map.limbs:
        length, source_length = figures.lengths(limb)
        if not source_length > 0.0:
            raise InvalidInput(f"{limb.name}: the source's has no length in its reference pose")
        if not length > 0.0:
            raise InvalidInput(f"{limb.name}: the target's has no length in its reference pose")
    stances = find_stances(source, figure_map, settings.thresholds)
    fixes = corrections(figures, levels(source, figure_map, stances, target))
    rotations = carried_over(figure_map, target, source, fixes)
    pitch = trunk_pitch(figures, rotations, length_scale(figures, settings))
    if pitch is not None:
        rotations = carried_over(figure_map, target, source, fixes, pitch)
    translations = np.tile(target.translations, (len(source.times), 1, 1))
    _, world = target.world(rotations, translations)
    turns = {leg.name: world[:, target.index(leg.end)] for leg in figure_map.legs}
    way, contacts = scaled_way(figures, settings, stances, turns)
    translations = _hips_moved(figures, way, rotations, translations)
    heads, _ = target.world(rotations, translations)
    feet = limb_effectors(figures, settings)
    soles = {leg.name: Sole.of(target, leg) for leg in figure_map.legs}
    paths = {}
    for leg in figure_map.legs:
        ankles, sole = feet[leg.name].wanted(heads, way), soles[leg.name]
        if settings.foot_space is EffectorSpace.WORLD:
            ankles = ankles + _girdle_shift(figures, leg, heads, way)
        toes = world[:, target.index(leg.tip)] if leg.tip else None
        path = foot_path(ankles, (turns[leg.name], toes), sole, contacts[leg.name], settings.blend)
        if any(hold.part is not SolePart.BALL for hold in path.holds):
            far = batch.length(path.ankles - heads[:, target.index(leg.upper)], -1)
            reach = _reach(figures, settings, leg)
            followed = contacts[leg.name].followed(far > reach)
            if followed.rolls != contacts[leg.name].rolls:
                path = foot_path(ankles, (turns[leg.name], toes), sole, followed, settings.blend)
        paths[leg.name] = path
    sizes = {leg.name: limb_length(target, leg) for leg in figure_map.legs}
    if terrain is not None and paths:
        paths, lift = laid(terrain, paths, soles, sizes, source.times)
        way, shift = replace(way, lift=lift), lift[:, None] * np.array((0.0, 0.0, 1.0))
        translations = moved_root(figure_map, target, world, translations, shift)
    moved, translations = _reaching(figures, settings, rotations, translations, paths)
    if terrain is not None:  # feet whose legs are too short are elsewhere
        for name, path in paths.items():
            paths[name] = cleared(terrain, path, soles[name], sizes[name], source.times)
    pose, hands = with_effectors(figures, settings, way, (rotations, translations), paths)
    tips = {}
    for leg in figure_map.legs:
        toes = paths[leg.name].toes
        if toes is not None:
            weight = np.full(len(toes), settings.weight("feet", leg.is_right))
            tips[leg.tip] = batch.slerp(world[:, target.index(leg.tip)], toes, weight, -1)
    pose = turned_to(target, pose, tips)
    ground = None if terrain is None else terrain.ground

    def below(name: str, points: Array) -> Array:
        if ground is None:
            return np.maximum(paths[name].ground, way.ground)
        tops = np.column_stack((points[:, :2], paths[name].ground + STEP_UP * sizes[name]))
        return ground.below(tops, np.arange(len(tops)))[0]

    if settings.contacts:
        weights = {leg.name: settings.weight("feet", leg.is_right) for leg in figure_map.legs}
        lying = {
            name: (soles[name], weights[name] * paths[name].weights) for name in weights if weights[name]
        }
        pose = lying_toes(target, (pose, translations), lying, source.times, below)
    return RetargetResult(same_side(pose), translations, settings, stances, way, paths, hands, moved, ground)


def places_of_feet(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> Array:
    """(F, legs, 3) where feet of the target are over level ground at height 0, about, metres."""
    figures = Figures(figure_map, target, source)
    scale = length_scale(figures, settings)
    way = ScaledWay(scale, 0.0, *drift_of(figures, scale, settings), target.shift, 0.0)
    ankles = [way.points(figures.source_heads(leg.end), source.times) for leg in figure_map.legs]
    return np.stack(ankles, axis=1) * (1.0, 1.0, 0.0)


def _hips_moved(figures: Figures, way: ScaledWay, rotations: Array, translations: Array) -> Array:
    """(F, n, 3) translations with the middle of the hip joints (without legs, the hips) at the source's."""
    target = figures.target
    heads, world = target.world(rotations, translations)
    uppers = [leg.upper for leg in figures.map.legs] or [figures.map.hips]
    middle = np.mean([figures.source_heads(name) for name in uppers], axis=0)
    present = np.mean([heads[:, target.index(name)] for name in uppers], axis=0)
    shift = way.points(middle, figures.source.times) - present
    return moved_root(figures.map, target, world, translations, shift)


def _girdle_shift(figures: Figures, leg: Limb, heads: Array, way: ScaledWay) -> Array:
    """(F, 3) offset of a pair of legs from the source's; 0 for a figure with one pair.

    Front and hind legs of a longer body are farther apart, and ankles of one pair may be higher.
    """
    girdle = figures.map.girdle(leg)
    if len(girdle) == len(figures.map.legs):
        return np.zeros((1, 3))
    middle = np.mean([figures.source_heads(each.upper) for each in girdle], axis=0)
    present = np.mean([heads[:, figures.target.index(each.upper)] for each in girdle], axis=0)
    offset = (present - way.points(middle, figures.source.times)) * (1.0, 1.0, 0.0)
    offset[:, 2] = girdle_lifts(figures, way.scale)[leg.name]
    return np.asarray(offset)


def _reaching(
    figures: Figures,
    settings: RetargetSettings,
    rotations: Array,
    translations: Array,
    paths: dict[str, FootPath],
) -> tuple[Array, Array]:
    """(F, 3) shifts of the hips for legs too short for their feet, and the translations with them.

    Hips move along the ground towards a foot far beside them, as of a figure that lies, and down. `paths`
    changes with them.
    """
    figure_map, target, times = figures.map, figures.target, figures.source.times
    shift = np.zeros((len(times), 3))
    weights = {leg.name: settings.weight("feet", leg.is_right) for leg in figure_map.legs}
    if not any(weights.values()):
        return shift, translations
    heads, world = target.world(rotations, translations)
    wanted = {}
    for leg in figure_map.legs:
        reach = _reach(figures, settings, leg)
        hips = heads[:, target.index(leg.upper)]
        path = paths[leg.name] = rolled(paths[leg.name], Sole.of(target, leg), hips, reach)
        wanted[leg.name] = hips, path.ankles, reach, path.borne * weights[leg.name]
    window = 2.0 * settings.blend
    shift[:, :2] = smooth_shifts([ways_aside(*each) for each in wanted.values()], times, window)
    missing = [drops(hips + shift, *others) for hips, *others in wanted.values()]
    rooms = [hips[:, 2] - paths[name].ground for name, (hips, *_) in wanted.items()]
    most = SINKS * np.maximum(0.0, np.min(rooms, axis=0))
    shift[:, 2] = -smooth_envelope(np.minimum(np.max(missing, axis=0), most), times, window)
    for leg in figure_map.legs:
        hips, _, reach, _ = wanted[leg.name]
        path = carried(paths[leg.name], Sole.of(target, leg), shift)
        line = path.ankles - hips - shift
        line *= np.minimum(1.0, reach / np.maximum(batch.length(line, -1), 1e-12))[:, None]
        paths[leg.name] = replace(path, ankles=hips + shift + line)
    return shift, moved_root(figure_map, target, world, translations, shift)


def _reach(figures: Figures, settings: RetargetSettings, leg: Limb) -> Array:
    """(F,) largest extension of a leg, metres: the larger of the source's and the setting."""
    length, source_length = figures.lengths(leg)
    lines = figures.source_heads(leg.end) - figures.source_heads(leg.upper)
    extension = np.minimum(batch.length(lines, -1) / source_length, 1.0)
    return np.asarray(length * np.maximum(settings.extension, extension))
