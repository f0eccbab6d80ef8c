"""A walk with its legs solved: feet where they are planned, knees bent as in the cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from mathutils import Vector

from ..goals import Goal
from ..maths import batch
from ..maths.batch import Array
from ..motion.ground import Ground
from ..motion.interpolation import same_side
from ..motion.retargeting.figures import TargetFigure, product
from ..motion.walking.cycle import Cycle, Standing, WalkLeg
from ..motion.walking.path import Strides, Way
from ..motion.walking.settings import WalkSettings
from ..motion.walking.steps import WalkPlan, plan_walk
from ..motion.walking.timeline import Timeline
from .retarget_goals import (
    STEADY,
    STRAIGHT,
    Pose,
    add_place,
    add_turn,
    bent_to_usual_side,
    goals_met,
    turned_to,
)


@dataclass(frozen=True, eq=False)
class Walk:
    """A motion of a figure.

    Attributes:
        rotations: (F, n, 4) relative to rest.
        translations: (F, n, 3) relative to rest, model units.
        plan: what feet and hips were to do.
        cycle: what is walked.
    """

    rotations: Array
    translations: Array
    plan: WalkPlan
    cycle: Cycle


def walk(
    cycle: Cycle,
    way: Way,
    height: float,
    ground: Ground,
    time: Timeline,
    settings: WalkSettings,
    strides: Strides | None = None,
    standing: Standing | None = None,
) -> Walk:
    """The walk of a cycle along a way; arguments and errors are those of `plan_walk`."""
    plan = plan_walk(cycle, way, height, ground, time, settings, strides, standing)
    target, figure_map = cycle.target, cycle.figure_map
    pose = plan.rotations, plan.translations
    goals: list[Goal] = []
    targets: list[Array] = []
    places: dict[str, Array] = {}
    heads, _ = target.world(*pose)
    for leg in cycle.legs:
        foot, end = plan.feet[leg.limb.name], leg.limb.end
        # An ankle is no farther from its hip than its leg is long: the foot keeps its rotation then.
        hips, ankles = heads[:, target.index(leg.limb.upper)], foot.ankles(leg)
        places[leg.limb.name] = ankles
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
    rotations = bent_to_usual_side(target, pose, [leg.limb for leg in cycle.legs])
    rotations = _bent_ahead(target, (rotations, pose[1]), cycle.legs, places)
    rotations = goals_met(figure_map, target, (rotations, pose[1]), goals, targets)
    tips = {leg.limb.tip: toes for leg in cycle.legs if (toes := plan.feet[leg.limb.name].toes) is not None}
    rotations = turned_to(target, rotations, tips)
    return Walk(same_side(rotations), plan.translations, plan, cycle)


def _bent_ahead(
    target: TargetFigure, pose: Pose, legs: Sequence[WalkLeg], ankles: Mapping[str, Array]
) -> Array:
    """Rotations with legs that are about straight bent to their usual side, as far as their ankles want it.

    A solve that starts at a straight leg may bend it to either side.

    Args:
        target: the figure.
        pose: (F, n, 4) rotations and (F, n, 3) translations relative to rest.
        legs: bent by the law of cosines where two bones make them.
        ankles: by leg, (F, 3) where they are to be, world.
    """
    heads, world = target.world(*pose)
    turns: dict[str, Array] = {}
    for leg in legs:
        upper, middle, end = (target.index(name) for name in leg.limb.joints[:3])
        first, second = heads[:, middle] - heads[:, upper], heads[:, end] - heads[:, middle]
        a, b = batch.length(first, -1), batch.length(second, -1)
        across = batch.cross(first, second, -1) / np.maximum(a * b, 1e-12)[:, None]
        sides = batch.rotate(batch.conjugate(world[:, upper].T).T, across, -1)
        usual = sides.sum(axis=0)
        size = float(np.linalg.norm(usual))
        if leg.limb.bends or size <= STEADY * batch.length(sides, -1).sum() or size < 1e-9:
            continue
        far = batch.length(ankles[leg.limb.name] - heads[:, upper], -1)
        near = batch.length(across, -1) < STRAIGHT
        if not near.any():
            continue
        cosine = (far**2 - a**2 - b**2) / np.maximum(2.0 * a * b, 1e-12)
        half = np.where(near, 0.5 * np.arccos(np.clip(cosine, -1.0, 1.0)), 0.0)
        axis = batch.rotate(world[:, upper], np.broadcast_to(usual / size, first.shape), -1)
        turn = np.concatenate((np.cos(half)[:, None], np.sin(half)[:, None] * axis), axis=1)
        turns[leg.limb.middle] = product(turn, world[:, middle])
    return turned_to(target, pose[0], turns)
