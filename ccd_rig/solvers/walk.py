"""A walk with its legs solved: feet where they are planned, knees bent as in the cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mathutils import Vector

from ..goals import Goal
from ..maths import batch
from ..maths.batch import Array, Mask
from ..motion.ground import Ground
from ..motion.interpolation import same_side
from ..motion.retargeting.alignment import NO_TURN, shortest
from ..motion.retargeting.figures import STEADY, STRAIGHT, TargetFigure, product
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
    rotations = bent_to_usual_side(target, pose, [leg.limb for leg in cycle.legs])
    rotations = _bent_ahead(target, (rotations, pose[1]), cycle.legs, plan)
    rotations = goals_met(figure_map, target, (rotations, pose[1]), goals, targets)
    tips = {leg.limb.tip: toes for leg in cycle.legs if (toes := plan.feet[leg.limb.name].toes) is not None}
    rotations = turned_to(target, rotations, tips)
    return Walk(same_side(rotations), plan.translations, plan, cycle)


def _bent_ahead(target: TargetFigure, pose: Pose, legs: Sequence[WalkLeg], plan: WalkPlan) -> Array:
    """Rotations with legs that are about straight put where they are planned, bent to their usual side.

    A solve that starts at a straight leg, or passes one, may bend it to either side.

    Args:
        target: the figure.
        pose: (F, n, 4) rotations and (F, n, 3) translations relative to rest.
        legs: bent by the law of cosines where two bones make them.
        plan: of their feet.
    """
    heads, world = target.world(*pose)
    straight: dict[WalkLeg, Mask] = {}
    knees: dict[str, Array] = {}
    for leg in legs:
        upper, middle, end = (target.index(name) for name in leg.limb.joints[:3])
        first, second = heads[:, middle] - heads[:, upper], heads[:, end] - heads[:, middle]
        a, b = batch.length(first, -1), batch.length(second, -1)
        across = batch.cross(first, second, -1) / np.maximum(a * b, 1e-12)[:, None]
        sides = batch.rotate(batch.conjugate(world[:, upper].T).T, across, -1)
        usual = sides.sum(axis=0)
        size = float(np.linalg.norm(usual))
        near = batch.length(across, -1) < STRAIGHT
        is_steady = size > STEADY * batch.length(sides, -1).sum() and size > 1e-9
        if leg.limb.bends or not is_steady or not near.any():
            continue
        axis = batch.rotate(world[:, upper], np.broadcast_to(usual / size, first.shape), -1)
        present = batch.arctan2(
            batch.dot(across, axis, -1), batch.dot(first, second, -1) / np.maximum(a * b, 1e-12)
        )
        far = batch.length(plan.feet[leg.limb.name].ankles(leg) - heads[:, upper], -1)
        cosine = (far**2 - a**2 - b**2) / np.maximum(2.0 * a * b, 1e-12)
        half = np.where(near, 0.5 * (np.arccos(np.clip(cosine, -1.0, 1.0)) - present), 0.0)
        turn = np.concatenate((np.cos(half)[:, None], np.sin(half)[:, None] * axis), axis=1)
        straight[leg], knees[leg.limb.middle] = near, product(turn, world[:, middle])
    rotations, thighs, feet = turned_to(target, pose[0], knees), {}, {}
    heads, _ = target.world(rotations, pose[1])
    for leg, near in straight.items():
        foot, hips = plan.feet[leg.limb.name], heads[:, target.index(leg.limb.upper)]
        turn = shortest(heads[:, target.index(leg.limb.end)] - hips, foot.ankles(leg) - hips)
        thigh, present = (world[:, target.index(name)] for name in (leg.limb.upper, leg.limb.end))
        thighs[leg.limb.upper] = product(np.where(near[:, None], turn, NO_TURN), thigh)
        if not leg.is_free:
            feet[leg.limb.end] = np.where(near[:, None], foot.feet, present)
    return turned_to(target, turned_to(target, rotations, thighs), feet)
