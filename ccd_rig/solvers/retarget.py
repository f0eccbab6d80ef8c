"""Motion from one figure to another: rotations carried over, then all frames solved for hands and feet.

The way of the data:

    source motion, figure map -> stances -> corrections of the reference poses -> rotations carried over
    -> hips moved and lowered, paths of feet -> goals -> solve_many -> rotations and translations

The carried-over pose of a frame is where its solve starts and what it stays near to: what meets its goals is
left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..goals import Goal, OrientationGoal, PositionGoal
from ..limits.batch import BatchLimits
from ..maths import batch
from ..maths.batch import Array
from ..motion.interpolation import same_side
from ..motion.retargeting.alignment import corrections
from ..motion.retargeting.carry_over import carried_over, moved_root
from ..motion.retargeting.feet import FootPath, foot_path, rolled, sunken
from ..motion.retargeting.figure_map import FigureMap, Limb
from ..motion.retargeting.motions import SourceMotion, TargetFigure, inverse, product
from ..motion.retargeting.root import drops, smooth_envelope
from ..motion.retargeting.scaled_way import ScaledWay, limb_length, scaled_way
from ..motion.retargeting.settings import HandSpace, RetargetSettings
from ..motion.retargeting.sole import Sole
from ..motion.retargeting.stances import Stances, find_stances, leg_length, levels
from ..settings import SolverSettings
from ..skeleton.joints import Skeleton
from .many import solve_many

PRECISION = 1e-5
"""Position tolerance, in lengths of a leg."""
ANGLE_PRECISION = 1e-4
"""Angle tolerance, radians."""


@dataclass(frozen=True, eq=False)
class RetargetResult:
    """A motion of the target.

    Attributes:
        rotations: (F, n, 4) relative to rest.
        translations: (F, n, 3) relative to rest, in the model's unit.
        stances: of the source's feet.
        way: from the source's world to the target's.
        feet: by leg, what the foot was to do.
        hands: by arm, (F, 3) where the wrist was to be, world metres; none where hands have weight 0.
        sunk: (F,) metres by which the hips were lowered.
    """

    rotations: Array
    translations: Array
    stances: Stances
    way: ScaledWay
    feet: Mapping[str, FootPath]
    hands: Mapping[str, Array]
    sunk: Array


def retarget(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings = RetargetSettings(),  # noqa: B008  (it is frozen)
) -> RetargetResult:
    """The source's motion on the target.

    Args:
        figure_map: which joint follows which.
        target: its skeleton's limits are held; locked joints stay.
        source: F frames.
        settings: how.

    Raises:
        InvalidInput: names the joint or field and what to do.
    """
    figure_map.require(target.skeleton, source.names)
    _require_lengths(figure_map, target, source)
    stances = find_stances(source, figure_map, settings.thresholds)
    fixes = corrections(figure_map, target, source, levels(source, figure_map, stances))
    if not settings.contacts:
        stances = Stances(dict.fromkeys(stances.phases, ()), np.zeros(3))
    rotations = carried_over(figure_map, target, source, fixes)
    translations = np.tile(target.translations, (len(source.times), 1, 1))
    _, world = target.world(rotations, translations)
    turns = {leg.name: world[:, target.index(leg.end)] for leg in figure_map.legs}
    way, contacts = scaled_way(figure_map, target, source, settings, (stances, turns))
    translations = _hips_moved(figure_map, target, source, way, (rotations, translations))
    paths = {}
    for leg in figure_map.legs:
        ankles = way.points(_heads(figure_map, source, leg.end), source.times)
        toes = world[:, target.index(leg.tip)] if leg.tip else None
        given, sole = (turns[leg.name], toes), Sole.of(target, leg)
        paths[leg.name] = foot_path(ankles, given, sole, contacts[leg.name], settings.blend)
    sunk, lowered = _lowered(figure_map, target, source, settings, (rotations, translations, paths))
    hands = _wrists(figure_map, target, source, settings, (rotations, lowered, way))
    pose = _solved(figure_map, target, settings, (rotations, lowered), (paths, hands))
    pose = _toes_turned(figure_map, target, pose, paths)
    return RetargetResult(same_side(pose), lowered, stances, way, paths, hands, sunk)


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
    pose: tuple[Array, Array],
) -> Array:
    """Translations (F, n, 3) with the middle of the hip joints where the source has it."""
    heads, _ = target.world(*pose)
    uppers = [leg.upper for leg in figure_map.legs]
    own = np.mean([_heads(figure_map, source, name) for name in uppers], axis=0)
    present = np.mean([heads[:, target.index(name)] for name in uppers], axis=0)
    return moved_root(figure_map, target, *pose, way.points(own, source.times) - present)


def _extensions(figure_map: FigureMap, source: SourceMotion, limb: Limb) -> Array:
    """(F,) how far the source stretches a limb, in its lengths."""
    ways = _heads(figure_map, source, limb.end) - _heads(figure_map, source, limb.upper)
    return batch.length(ways, -1) / leg_length(source, figure_map, limb)


def _lowered(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings,
    made: tuple[Array, Array, dict[str, FootPath]],
) -> tuple[Array, Array]:
    """(F,) how far the hips sink for legs that are too short for their feet, and the translations then."""
    rotations, translations, paths = made
    if settings.feet == 0.0:
        return np.zeros(len(source.times)), translations
    heads, _ = target.world(rotations, translations)
    missing: Array = np.zeros(len(source.times))
    for leg in figure_map.legs:
        reach = _reach(figure_map, target, source, settings, leg)
        hips = heads[:, target.index(leg.upper)]
        path = paths[leg.name] = rolled(paths[leg.name], Sole.of(target, leg), hips, reach)
        missing = np.maximum(missing, drops(hips, path.ankles, reach, path.borne * settings.feet))
    sunk = smooth_envelope(missing, source.times, 2.0 * settings.blend)
    shift = sunk[:, None] * np.array((0.0, 0.0, -1.0))
    lowered = moved_root(figure_map, target, rotations, translations, shift)
    for leg in figure_map.legs:
        reach = _reach(figure_map, target, source, settings, leg)
        hips = heads[:, target.index(leg.upper)] + shift
        path = sunken(paths[leg.name], Sole.of(target, leg), sunk)
        way = path.ankles - hips
        size = batch.length(way, -1)
        way *= np.minimum(1.0, reach / np.maximum(size, 1e-12))[:, None]
        paths[leg.name] = replace(path, ankles=hips + way)
    return sunk, lowered


def _reach(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings, leg: Limb
) -> Array:
    """(F,) metres that a leg may be long: as far as the source stretches its own, or the setting."""
    own = np.minimum(_extensions(figure_map, source, leg), 1.0)
    return np.asarray(limb_length(target, leg) * np.maximum(settings.extension, own))


def _wrists(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    settings: RetargetSettings,
    made: tuple[Array, Array, ScaledWay],
) -> dict[str, Array]:
    """By arm, (F, 3) where wrists are to be, world metres."""
    rotations, translations, way = made
    if settings.hands == 0.0 or not figure_map.arms:
        return {}
    heads, _ = target.world(rotations, translations)
    found = {}
    for arm in figure_map.arms:
        wrists = _heads(figure_map, source, arm.end)
        if settings.hand_space is HandSpace.WORLD:
            found[arm.name] = way.points(wrists, source.times)
            continue
        ratio = limb_length(target, arm) / leg_length(source, figure_map, arm)
        shoulders = heads[:, target.index(arm.upper)]
        found[arm.name] = shoulders + ratio * (wrists - _heads(figure_map, source, arm.upper))
    return found


# Solving ------------------------------------------------------------------------------------------


def _solved(
    figure_map: FigureMap,
    target: TargetFigure,
    settings: RetargetSettings,
    pose: tuple[Array, Array],
    asked: tuple[Mapping[str, FootPath], Mapping[str, Array]],
) -> Array:
    """(F, n, 4) rotations whose feet and hands are where they are to be."""
    (paths, hands), (heads, world) = asked, target.world(*pose)
    goals: list[Goal] = []
    targets: list[Array] = []
    weights = {**dict.fromkeys(paths, settings.feet), **dict.fromkeys(hands, settings.hands)}
    for limb in figure_map.limbs:
        weight, i = weights.get(limb.name, 0.0), target.index(limb.end)
        if weight == 0.0:
            continue
        path = paths.get(limb.name)
        points = hands[limb.name] if path is None else path.ankles
        turns = (
            world[:, i]
            if path is None
            else batch.slerp(world[:, i], path.feet, np.full(len(world), weight), -1)
        )
        chain = target.skeleton.chain(limb.end)
        length = len(chain) - chain.index(target.index(limb.upper))
        none, upright = Vector((0.0, 0.0, 0.0)), Quaternion((1.0, 0.0, 0.0, 0.0))
        goals.append(PositionGoal(limb.end, none, none, chain_length=length))
        targets.append(target.points_to_model(heads[:, i] + weight * (points - heads[:, i])))
        goals.append(OrientationGoal(limb.end, upright, chain_length=length))
        targets.append(target.rotations_to_model(turns))
    if not goals:
        return pose[0]
    size = min(limb_length(target, leg) for leg in figure_map.legs) / target.scale
    precise = SolverSettings(position_tolerance=PRECISION * size, angle_tolerance=ANGLE_PRECISION, restarts=0)
    skeleton = _bending_at_limbs(figure_map, target)
    return solve_many(skeleton, pose, goals, precise, targets=targets, reference=pose).rotations


def _bending_at_limbs(figure_map: FigureMap, target: TargetFigure) -> Skeleton:
    """The skeleton with the joints between those of limbs locked: bones that only twist stay straight."""
    bending = {name for limb in figure_map.limbs for name in limb.joints}
    held = {}
    for limb in figure_map.limbs:
        chain = target.skeleton.chain(limb.end)
        for i in chain[chain.index(target.index(limb.upper)) :]:
            joint = target.skeleton.joints[i]
            if joint.name not in bending and not joint.locked:
                held[joint.name] = {"stiffness": 1.0}
    return target.skeleton.replace(held) if held else target.skeleton


def _toes_turned(
    figure_map: FigureMap, target: TargetFigure, rotations: Array, paths: Mapping[str, FootPath]
) -> Array:
    """Toes turned as their paths have them, inside their limits."""
    found = rotations.copy()
    _, world = target.world(found, np.zeros((1, len(target.skeleton), 3)))
    for leg in figure_map.legs:
        toes = paths[leg.name].toes
        if toes is None:
            continue
        i = target.index(leg.tip)
        joint = target.skeleton.joints[i]
        if joint.locked:
            continue
        base = world[:, joint.parent] if joint.inherit_rotation else np.broadcast_to(target.turn, toes.shape)
        local = product(inverse(product(base, target.rests[i])), toes)
        if joint.limit is not None:
            local = BatchLimits([joint.limit]).project(np.ascontiguousarray(local.T[:, None]))[0][:, 0].T
        found[:, i] = local
    return found
