"""Toes of several bones: a sole ends where the last one does, and lies on the ground there."""

from __future__ import annotations

from dataclasses import replace

import bipeds
import numpy as np
import pytest
from gaits import gait
from mathutils import Vector

from ccd_rig.maths import batch
from ccd_rig.motion.ground import LevelGround
from ccd_rig.motion.retargeting.feet import Sole
from ccd_rig.motion.retargeting.figures import TargetFigure, inverse, turned
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.settings import RetargetSettings, WalkSettings
from ccd_rig.motion.walking.cycle import WalkLeg, cycle_of
from ccd_rig.motion.walking.measures import walk_measures
from ccd_rig.motion.walking.path import way_along
from ccd_rig.motion.walking.timeline import timeline
from ccd_rig.solvers.retarget import retarget
from ccd_rig.solvers.stepping import result_of
from ccd_rig.solvers.walk import walk_work

MAP = bipeds.figure_map()
FAR = {"L": Vector((0.1, -0.22, 0.02)), "R": Vector((-0.1, -0.22, 0.02))}
END = np.array((0.0, -0.3, 0.0))  # of the second bone, on the ground, but for x


def long_toes():
    """The biped with a second bone of the toes on each foot, 8 cm long, and the map of all on itself."""
    given = bipeds.places()
    for side, head in FAR.items():
        given[f"toe_2.{side}"] = head, f"toe.{side}", head + Vector((0.0, -0.08, 0.0))
    figure = bipeds.skeleton(given)
    target = TargetFigure.at_rest(figure)
    rest = [joint.name for joint in figure.joints]
    hanging = {f"toe_2.{side}": np.array([(0.0, 0.08, 0.0)]) for side in "LR"}
    legs = tuple(replace(leg, toes=(leg.tip.replace("toe", "toe_2"),)) for leg in MAP.legs)
    return replace(target, hanging=hanging), replace(MAP, sources={name: name for name in rest}, legs=legs)


def ends_of(target, name, played):
    """(F, 3) of what is on the ground below the end of a second bone, in heads and rotations that play."""
    j = target.index(name)
    arm = turned(inverse(target.reference[1][j]), np.array((0.0, -0.08, -0.02)))
    return played[0][:, j] + turned(played[1][:, j], arm)


def test_a_sole_ends_with_the_last_bone_of_the_toes():
    target, figure_map = long_toes()
    leg = figure_map.legs[0]
    _, axes = target.reference
    toe = turned(axes[target.index(leg.tip)], Sole.of(target, leg).toe)
    assert toe == pytest.approx((0.0, -0.16, -0.02), abs=1e-6)
    bare = replace(target, hanging={})  # a tail that may be invented: the sole ends with its head
    assert turned(axes[target.index(leg.tip)], Sole.of(bare, leg).toe)[1] == pytest.approx(-0.08, abs=1e-6)


def test_bones_that_are_no_joints_count_as_they_hang():
    target = TargetFigure.at_rest(bipeds.skeleton())
    leg = MAP.legs[0]
    _, axes = target.reference
    rotation = axes[target.index(leg.tip)]
    for far, end in ((0.2, -0.2), (-0.2, -0.08), (0.05, -0.08)):  # ahead; behind, and nearer than the tail
        there = replace(target, hanging={leg.tip: np.array([(0.0, far, 0.0)])})
        assert turned(rotation, Sole.of(there, leg).toe)[1] == pytest.approx(end, abs=1e-6)
    arm = turned(inverse(rotation), np.array((0.3, -0.1, 0.0)))
    aside = replace(target, hanging={leg.tip: arm[None]})
    assert turned(rotation, Sole.of(aside, leg).toe)[1] == pytest.approx(-0.08, abs=1e-6)


def test_bones_beyond_lie_as_at_rest_while_a_foot_is_down_and_what_is_told_is_true():
    """The source's curl down into the ground by half a radian, in contacts too."""
    target, figure_map = long_toes()
    figure = target.skeleton
    rotations, translations = bipeds.turns(figure, 40, size=0.0)
    source = bipeds.source_of(figure, rotations, 0.0 * translations)
    turns = source.rotations.copy()
    for side in "LR":
        j = figure.index(f"toe_2.{side}")
        curl = batch.axis_rotation(np.array((1.0, 0.0, 0.0)), np.full(40, 0.5))
        turns[:, j] = batch.multiply(curl, turns[:, j], -1)
    curled = replace(source, rotations=turns)
    outcome = retarget(figure_map, target, curled)
    heads, world = target.world(outcome.rotations, outcome.translations)
    for side, x in (("L", 0.1), ("R", -0.1)):
        ends = ends_of(target, f"toe_2.{side}", (heads, world))
        np.testing.assert_allclose(np.abs(ends[:, 2]), 0.0, atol=2e-5)
        assert ends[0] == pytest.approx((x, END[1], 0.0), abs=1e-4)
    assert measures(figure_map, target, curled, outcome).penetration < 1e-4
    free = retarget(figure_map, target, curled, RetargetSettings(contacts=False))
    deep = measures(figure_map, target, curled, free).penetration
    assert deep == pytest.approx(0.08 * np.sin(0.5) - 0.02 * (1.0 - np.cos(0.5)), abs=2e-3)


def test_a_walk_lays_toes_of_several_bones_on_the_ground():
    target, figure_map = long_toes()
    source = gait(target, figure_map, {"left leg": 0.0, "right leg": 0.5})
    turns = source.rotations.copy()
    for side in "LR":
        j = target.index(f"toe_2.{side}")
        curl = batch.axis_rotation(np.array((1.0, 0.0, 0.0)), np.full(len(turns), 0.5))
        turns[:, j] = batch.multiply(curl, turns[:, j], -1)
    settings = WalkSettings()
    cycle = cycle_of(figure_map, target, replace(source, rotations=turns), settings.thresholds)
    way = way_along(np.array(((0.0, 0.0, 0.0), (0.0, -5.0, 0.0))), False, 0.5 * cycle.leg)
    time = timeline(cycle, way.length, 1.0 / 30.0, settings)
    done = result_of(walk_work(cycle, way, 0.0, LevelGround(), time, settings))
    played = target.world(done.rotations, done.translations)
    told = walk_measures(cycle, done.plan, LevelGround(), *played)
    for leg in figure_map.legs:
        ends = ends_of(target, leg.tip.replace("toe", "toe_2"), played)
        down = done.plan.feet[leg.name].down >= 0
        assert np.abs(ends[down, 2]).max() < 1e-4
        assert told.penetration >= -ends[:, 2].min() - 1e-6
    assert told.penetration < 2e-3


def test_toes_begin_with_the_next_bone_where_one_stands_on_end():
    """As of a fox, whose hind foot has three bones that are called toes."""
    given = bipeds.places()
    for side, x in (("L", 0.1), ("R", -0.1)):
        ankle, hock, ball = (Vector((x, *place)) for place in ((0.05, 0.35), (0.0, 0.12), (-0.04, 0.03)))
        given[f"shin.{side}"] = given[f"shin.{side}"][0], f"thigh.{side}", ankle
        given[f"foot.{side}"] = ankle, f"shin.{side}", hock
        given[f"toe.{side}"] = hock, f"foot.{side}", ball
        given[f"toe_2.{side}"] = ball, f"toe.{side}", ball + Vector((0.0, -0.06, -0.03))
    target = TargetFigure.at_rest(bipeds.skeleton(given))
    leg = WalkLeg.of(target, replace(MAP.legs[0], toes=("toe_2.L",)))
    assert (leg.limb.end, leg.limb.tip, leg.limb.bends) == ("toe.L", "toe_2.L", ("foot.L",))
    assert leg.sole.toe is not None and leg.sole.height == pytest.approx(0.03, abs=1e-6)
