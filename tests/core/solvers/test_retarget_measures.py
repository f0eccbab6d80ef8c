"""What the measures of a retargeted motion say, against lengths and angles that were put in."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import bipeds
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.motion.contacts import Phase
from ccd_rig.motion.retargeting import feet, measures, stances
from ccd_rig.motion.retargeting.figures import FigureMap, Limb, TargetFigure, turned
from ccd_rig.motion.settings import RetargetSettings
from ccd_rig.solvers.retarget import retarget

MAP = bipeds.figure_map()
TURN = 0.6


@pytest.fixture
def figure():
    """A human with bent arms."""
    places = bipeds.places()
    for side in "LR":
        head, parent, tail = places[f"upper_arm.{side}"]
        elbow = tail + Vector((0.0, 0.2, 0.0))
        places[f"upper_arm.{side}"] = head, parent, elbow
        _, parent, tail = places[f"forearm.{side}"]
        places[f"forearm.{side}"] = elbow, parent, tail
    return bipeds.skeleton(places)


@pytest.mark.parametrize("way", ["about itself", "ahead"])
def test_errors_are_in_lengths_of_the_limb(figure, way):
    """An arm turned about the line to its hand, where the elbow alone is off, or with the hand."""
    count, target = 3, TargetFigure.at_rest(figure)
    still = np.tile((1.0, 0.0, 0.0, 0.0), (count, len(figure), 1))
    source = bipeds.source_of(figure, still, np.zeros((count, len(figure), 3)))
    result = retarget(MAP, target, source, RetargetSettings(contacts=False))
    heads, axes = target.reference
    upper, middle, end = (figure.index(f"{name}.L") for name in ("upper_arm", "forearm", "hand"))
    to_elbow, to_hand = Vector(heads[middle] - heads[upper]), Vector(heads[end] - heads[upper])
    length = to_elbow.length + (to_hand - to_elbow).length
    axis = to_hand.normalized() if way == "about itself" else Vector((0.0, 0.0, 1.0))
    rotations = result.rotations.copy()
    rotations[:, upper] = Quaternion(Quaternion(axes[upper]).conjugated() @ axis, TURN)[:]
    made = measures.measures(MAP, target, source, dataclasses.replace(result, rotations=rotations))
    hand, elbow = (made.errors[name] for name in ("left arm", "elbow of the left arm"))
    if way == "about itself":
        off = (to_elbow - to_elbow.dot(axis) * axis).length
        assert (hand, elbow) == pytest.approx((0.0, 2.0 * math.sin(0.5 * TURN) * off / length), abs=1e-4)
    else:
        assert hand == pytest.approx(2.0 * math.sin(0.5 * TURN) * to_hand.length / length, abs=1e-4)


def test_a_drift_is_the_way_from_the_mean_place_on_ground_that_moves():
    times, ground = np.array([0.0, 0.5, 1.0, 1.5]), np.array((0.0, -1.0, 0.0))
    balls = np.array([(9.0, 9.0, 0.0), (0.0, 3.0, 0.1), (2.0, 3.0, 0.2), (4.0, 3.0, 0.3)])
    drift, slide = measures._drift(balls + ground * times[:, None], times, ground, Phase(1, 3))
    assert (drift, slide) == pytest.approx((2.0, 4.0))


def test_the_last_frame_of_a_contact_is_one_of_those_that_may_be_flat():
    heights = np.array([1.0, 1.0, 0.3, 0.2, 0.1, 1.0, 0.0])
    source = SimpleNamespace(heads=np.stack((heights, heights, heights), axis=1)[:, None], index=lambda _: 0)
    foot = SimpleNamespace(end="foot")
    rows = stances._flat_rows(source, SimpleNamespace(sources={"foot": "foot"}), foot, [Phase(2, 4)])
    assert rows.tolist() == [4]


def test_shoulders_of_a_figure_without_arms_and_head_are_the_highest_joint_of_its_trunk():
    figure_map = FigureMap({}, "hips", (), trunk=("spine", "belly", "chest"))
    assert figure_map.shoulders == ("chest",)
    assert FigureMap({}, "hips", ()).shoulders == ("hips",)


def test_toes_lead_to_the_tail_of_their_bone():
    target = TargetFigure.at_rest(bipeds.skeleton())
    sole = feet.Sole.of(target, MAP.legs[0])
    _, axes = target.reference
    toe = turned(axes[target.index(MAP.legs[0].tip)], sole.toe)
    assert toe == pytest.approx((0.0, -0.08, target.ground - 0.02), abs=1e-6)


def test_toes_of_a_ball_right_below_its_ankle_lead_nowhere():
    """In numbers without rounding: a quotient of zeros would be none."""
    heads, ahead = np.array([(0.0, 0.0, z) for z in (1.0, 0.5, 0.125, 0.03125)]), (0.0, 0.0, 0.0, 1.0)
    target = SimpleNamespace(
        reference=(heads, np.array([(1.0, 0.0, 0.0, 0.0)] * 3 + [ahead])),
        index=("thigh", "shin", "foot", "toe").index,
        ground=0.0,
        scale=1.0,
        skeleton=SimpleNamespace(joints=[SimpleNamespace(length=0.125, name="")] * 4),
        hanging={},
    )
    sole = feet.Sole.of(target, Limb("left leg", "thigh", "shin", "foot", "toe"))
    assert turned(np.array(ahead), sole.toe) == pytest.approx((0.0, 0.0, -0.03125))
    assert sole.across_toe == pytest.approx(np.zeros(3))
