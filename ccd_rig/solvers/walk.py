"""A walk with its legs solved: feet where they are planned, knees bent as in the cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from mathutils import Vector

from ..goals import Goal
from ..maths import batch
from ..maths.batch import Array
from ..motion.ground import Ground
from ..motion.interpolation import same_side
from ..motion.retargeting.alignment import NO_TURN, shortest
from ..motion.retargeting.figures import STEADY, STRAIGHT, TargetFigure, inverse, product, turned
from ..motion.walking.cycle import Cycle, Standing, WalkLeg
from ..motion.walking.path import Strides, Way
from ..motion.walking.settings import WalkSettings
from ..motion.walking.steps import WalkPlan, plan_walk
from ..motion.walking.timeline import Timeline
from .retarget_goals import (
    Pose,
    add_place,
    add_turn,
    bent_to_usual_side,
    goals_met,
    turned_to,
)
from .stepping import Work

CUTS = 8
"""Steps of the search for how far a leg is folded."""


@dataclass(frozen=True, eq=False)
class Walk:
    """A motion of a figure."""

    rotations: Array  # (F, n, 4) relative to rest
    translations: Array  # (F, n, 3) relative to rest, model units
    plan: WalkPlan  # what feet and hips were to do
    cycle: Cycle  # what is walked


def walk_work(
    cycle: Cycle,
    way: Way,
    height: float,
    ground: Ground,
    time: Timeline,
    settings: WalkSettings,
    strides: Strides | None = None,
    standing: Standing | None = None,
) -> Work[Walk]:
    """The walk of a cycle along a way; it may be closed between its parts.

    Arguments and errors are those of `plan_walk`.
    """
    plan = yield from plan_walk(cycle, way, height, ground, time, settings, strides, standing)
    target, figure_map = cycle.target, cycle.figure_map
    pose = plan.rotations, plan.translations
    goals: list[Goal] = []
    targets: list[Array] = []
    heads, _ = target.world(*pose)
    for leg in cycle.legs:
        foot, end = plan.feet[leg.limb.name], leg.limb.end
        # An ankle is no farther from its hip than its leg is long: the foot keeps its rotation then.
        hips, ankles = heads[:, target.index(leg.limb.upper)], foot.ankles(leg)
        far = np.maximum(batch.length(ankles - hips, -1), 1e-12)
        ankles = hips + np.minimum(1.0, plan.reach[leg.limb.name] / far)[:, None] * (ankles - hips)
        chain = target.skeleton.chain(end)
        length = len(chain) - chain.index(target.index(leg.limb.upper))
        if not leg.is_free:
            add_place(goals, targets, end, length, target.points_to_model(ankles))
            add_turn(goals, targets, end, length, target.rotations_to_model(foot.feet))
        else:  # it stands on its end
            point = Vector((leg.sole.ball / target.scale).tolist())
            add_place(goals, targets, end, length, target.points_to_model(foot.balls), point)
    yield
    rotations = bent_to_usual_side(target, pose, [leg.limb for leg in cycle.legs])
    rotations = _folded(target, (rotations, pose[1]), cycle.legs, plan)
    yield
    rotations = goals_met(figure_map, target, (rotations, pose[1]), goals, targets)
    tips = {leg.limb.tip: toes for leg in cycle.legs if (toes := plan.feet[leg.limb.name].toes) is not None}
    rotations = turned_to(target, rotations, tips)
    return Walk(same_side(rotations), plan.translations, plan, cycle)


def _folded(target: TargetFigure, pose: Pose, legs: Sequence[WalkLeg], plan: WalkPlan) -> Array:
    """Rotations with legs put where they are planned, each bent in its joints as in the cycle.

    For a shorter leg than in the cycle all its joints bend further, each as it is bent on average. For a
    longer one all bends are multiplied by the same factor, down to straight. So it folds and stretches
    smoothly, and no joint turns over. A factor alone would leave open, where the cycle stretches the leg out,
    which joint bends: they would jump there. A solve that starts elsewhere may bend it to either side. Legs
    whose last bone turns freely have more bends than that needs, and are left to the solve.

    Args:
        pose: (F, n, 4) rotations and (F, n, 3) translations relative to rest.
        legs: to be put.
    """
    heads, world = target.world(*pose)
    levels: list[dict[str, Array]] = []
    for leg in (each for each in legs if not each.is_free):
        foot, end = plan.feet[leg.limb.name], target.index(leg.limb.end)
        names = [target.skeleton.joints[i].name for i in target.skeleton.chain(leg.limb.end)]
        bends = [name for name in names if name == leg.limb.middle or name in leg.limb.bends]
        joints = [target.index(name) for name in (leg.limb.upper, *bends)]
        points = [heads[:, i] for i in (*joints, end)]
        line = foot.ankles(leg) - points[0]
        turns = _fold([b - a for a, b in pairwise(points)], [world[:, i] for i in joints], line)
        puts = {
            target.skeleton.joints[i].name: product(turn, world[:, i])
            for i, turn in zip(joints, turns, strict=True)
        }
        for level, (name, rotation) in enumerate((*puts.items(), (leg.limb.end, foot.feet))):
            if level == len(levels):
                levels.append({})
            levels[level][name] = rotation
    rotations = pose[0]
    for each in levels:
        rotations = turned_to(target, rotations, each)
    return rotations


def _fold(links: Sequence[Array], turns: Sequence[Array], line: Array) -> list[Array]:
    """(F, 4) world rotations by which links (F, 3) of a leg lead along a line (F, 3), see `_folded`.

    How far it is folded is bracketed and then cut down by regula falsi (Dowell and Jarratt 1971).

    Args:
        links: from the hip on.
        turns: (F, 4) world rotations of their joints.
        line: from the hip to the leg's end.
    """
    axes, angles, straight = [], [], []
    for i in range(1, len(links)):
        before, after = batch.directions(links[i - 1]), batch.directions(links[i])
        across, cosine = batch.cross(before, after, -1), batch.dot(before, after, -1)
        sides = turned(inverse(turns[i - 1]), across)
        usual = sides.sum(axis=0)
        size = float(np.linalg.norm(usual))
        if size > STEADY * batch.length(sides, -1).sum() and size > 1e-9:
            axis = turned(turns[i - 1], usual / size)
            side = batch.dot(across, axis, -1)
            near = (np.abs(side) < STRAIGHT) & (
                cosine > 0.0
            )  # what is about straight bends to its usual side
            across = across + np.where(near, STRAIGHT - side, 0.0)[:, None] * axis
        sine = batch.length(across, -1)
        axes.append(across / np.maximum(sine, 1e-12)[:, None])
        angles.append(np.asarray(batch.arctan2(sine, cosine)))
        straight.append(shortest(links[i], links[i - 1]))
    if not axes:
        return [shortest(links[0], line)]

    means = [float(angle.mean()) for angle in angles]

    def folded(part: Array) -> list[Array]:
        """Links bent further by a part of their means; those of a negative part less, at -1 straight."""
        bent, factor, further = [NO_TURN], 1.0 + np.minimum(part, 0.0), np.maximum(part, 0.0)
        for axis, angle, mean, back in zip(axes, angles, means, straight, strict=True):
            whole = np.minimum(factor * angle + further * mean, np.pi)
            bent.append(product(bent[-1], product(batch.about(axis, whole), back)))
        return bent

    def reached(bent: Sequence[Array]) -> Array:
        return np.asarray(sum(turned(turn, link) for turn, link in zip(bent, links, strict=True)))

    far = batch.length(line, -1)
    is_longer = batch.length(np.asarray(sum(links)), -1) < far
    low = np.where(is_longer, -1.0, 0.0)
    high = np.where(is_longer, 0.0, (np.pi - np.max(angles, axis=0)) / max(*means, 1e-6))
    over_low, over_high = (batch.length(reached(folded(each)), -1) - far for each in (low, high))
    for _ in range(CUTS):
        part = low + np.clip(over_low / np.maximum(over_low - over_high, 1e-12), 0.0, 1.0) * (high - low)
        over = batch.length(reached(folded(part)), -1) - far
        is_low = over > 0.0
        low, high = np.where(is_low, part, low), np.where(is_low, high, part)
        over_low, over_high = np.where(is_low, over, 0.5 * over_low), np.where(is_low, 0.5 * over_high, over)
    bent = folded(part)
    whole = shortest(reached(bent), line)
    return [product(whole, turn) for turn in bent]
