"""A walk with its legs solved: feet where they are planned, knees bent as in the cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mathutils import Vector

from ..goals import Goal
from ..maths import batch
from ..maths.batch import Array
from ..motion.ground import Ground
from ..motion.interpolation import same_side
from ..motion.retargeting.feet import lying_toes
from ..motion.retargeting.figures import TargetFigure
from ..motion.settings import WalkSettings
from ..motion.walking.cycle import BLEND, Cycle, Standing, WalkLeg
from ..motion.walking.folding import folded_leg
from ..motion.walking.path import STEP_UP, Strides, Way
from ..motion.walking.steps import WalkPlan, borne, plan_walk
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

    def below(name: str, points: Array) -> Array:
        tops = np.column_stack((points[:, :2], plan.feet[name].balls[:, 2] + 0.5 * STEP_UP * cycle.leg))
        return ground.below(tops, np.arange(len(tops)))[0]

    soles = {
        leg.limb.name: (leg.sole, borne(plan.feet[leg.limb.name].down, plan.times, BLEND))
        for leg in cycle.legs
    }
    rotations = lying_toes(target, (rotations, pose[1]), soles, plan.times, below)
    return Walk(same_side(rotations), plan.translations, plan, cycle)


def _folded(target: TargetFigure, pose: Pose, legs: Sequence[WalkLeg], plan: WalkPlan) -> Array:
    """Rotations with legs put where they are planned, folded as in the cycle (`motion.walking.folding`).

    A solve that starts elsewhere may bend them to either side. Legs whose last bone turns freely have more
    bends than that needs, and are left to the solve.

    Args:
        pose: (F, n, 4) rotations and (F, n, 3) translations relative to rest.
        legs: to be put.
    """
    heads, world = target.world(*pose)
    levels: list[dict[str, Array]] = []
    for leg in (each for each in legs if not each.is_free):
        foot = plan.feet[leg.limb.name]
        line = foot.ankles(leg) - heads[:, target.index(leg.limb.upper)]
        puts = folded_leg(target, leg.limb, heads, world, line)
        for level, (name, rotation) in enumerate((*puts.items(), (leg.limb.end, foot.feet))):
            if level == len(levels):
                levels.append({})
            levels[level][name] = rotation
    rotations = pose[0]
    for each in levels:
        rotations = turned_to(target, rotations, each)
    return rotations
