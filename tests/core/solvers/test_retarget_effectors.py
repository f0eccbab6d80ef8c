"""Head, hands, feet, knees and elbows of a retargeted figure, by their weights and spaces."""

from __future__ import annotations

import dataclasses
import math

import bipeds
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.motion.retargeting.figures import TargetFigure
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.scaled_way import head_effector, limb_effectors, poles
from ccd_rig.motion.retargeting.settings import EffectorSpace, RetargetSettings
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)
MAP = bipeds.figure_map()


@pytest.fixture(scope="module")
def other_proportions():
    """A source, and a target that stoops, with longer upper arms, shorter forearms and knees that are low."""
    given = bipeds.places()
    shifts = {"chest": (0.0, 0.06, -0.05), "head": (0.0, -0.05, -0.03)}
    for side, sign in (("L", 1.0), ("R", -1.0)):
        shifts[f"shin.{side}"] = (0.06 * sign, 0.0, -0.08)
        shifts[f"forearm.{side}"] = (0.06 * sign, 0.03, 0.0)
    moved = {}
    for name, (head, parent, tail) in given.items():
        moved[name] = head + Vector(shifts.get(name, (0.0, 0.0, 0.0))), parent, tail
    figure = bipeds.skeleton()
    source = bipeds.source_of(figure, *bipeds.turns(figure, 40, seed=2, size=2.5))
    return source, TargetFigure.at_rest(bipeds.skeleton(moved))


@pytest.mark.parametrize("space", list(EffectorSpace))
@pytest.mark.parametrize(("weight", "name"), [("head", "head"), ("hands", "left arm"), ("feet", "left leg")])
def test_a_weight_brings_an_effector_to_the_source_in_its_space(other_proportions, weight, name, space):
    source, target = other_proportions
    field = {"head": "head_space", "hands": "hand_space", "feet": "foot_space"}[weight]
    off = dict.fromkeys(("feet", "hands", "head", "knees", "elbows"), 0.0)
    errors = []
    for value in (0.0, 0.5, 1.0):
        settings = dataclasses.replace(FREE, **{**off, weight: value, field: space})
        result = retarget(MAP, target, source, settings)
        found = limb_effectors(MAP, target, source, settings)
        effector = found.get(name) or head_effector(MAP, target, source, settings)
        heads = bipeds.heads_of(target, result)
        errors.append(effector.errors(target, heads, source, result.way))
        assert (name in measures(MAP, target, source, result).followed) is (value > 0.0)
    reached = errors[0] < 0.12  # not where it is farther than the limb is long
    assert errors[0].mean() > 0.005 and reached.mean() > 0.15
    assert np.median(errors[2][reached]) < 2e-3
    assert errors[1].mean() < 0.75 * errors[0].mean()


@pytest.mark.parametrize(("weight", "space"), [("hands", "hand_space"), ("feet", "foot_space")])
def test_sides_have_weights_of_their_own(other_proportions, weight, space):
    """Each side moves as it does where both have its weight; feet share the hips, which go with both."""
    source, target = other_proportions
    off = dict.fromkeys(("feet", "hands"), 0.0)
    apart, both, none = (
        retarget(
            MAP,
            target,
            source,
            dataclasses.replace(FREE, **{**off, weight: value, space: EffectorSpace.LIMB}),
        )
        for value in ((0.0, 1.0), 1.0, 0.0)
    )
    left, right = MAP.arms if weight == "hands" else MAP.legs
    for limb, like, unlike in ((left, none, both), (right, both, none)):
        joints = [target.index(name) for name in limb.joints]
        np.testing.assert_allclose(apart.rotations[:, joints], like.rotations[:, joints], atol=5e-4)
        assert np.abs(apart.rotations[:, joints] - unlike.rotations[:, joints]).max() > 1e-2
    assert measures(MAP, target, source, apart).followed == {right.name}


def test_a_pole_of_one_side_turns_that_side_alone(other_proportions):
    source, target = other_proportions
    plain, turned = (
        retarget(MAP, target, source, dataclasses.replace(FREE, knees=value)) for value in (0.0, (1.0, 0.0))
    )
    left, right = (target.index(leg.upper) for leg in MAP.legs)
    assert np.abs(turned.rotations[:, left] - plain.rotations[:, left]).max() > 1e-3
    np.testing.assert_allclose(turned.rotations[:, right], plain.rotations[:, right], atol=1e-4)


def test_an_effector_without_weight_changes_nothing(other_proportions):
    source, target = other_proportions
    plain = retarget(MAP, target, source, FREE)
    spaces = dict.fromkeys(("head_space", "knee_space", "elbow_space"), EffectorSpace.WORLD)
    again = retarget(MAP, target, source, dataclasses.replace(FREE, **spaces))
    np.testing.assert_array_equal(again.rotations, plain.rotations)


@pytest.mark.parametrize("space", list(EffectorSpace))
@pytest.mark.parametrize(("weight", "limb"), [("knees", MAP.legs[0]), ("elbows", MAP.arms[1])])
def test_knees_and_elbows_are_poles(other_proportions, weight, limb, space):
    """They turn to the source's side where limbs bend, and ankles and wrists stay where they are."""
    source, target = other_proportions
    field = {"knees": "knee_space", "elbows": "elbow_space"}[weight]
    angles, heads = [], []
    for value in (0.0, 1.0):
        settings = dataclasses.replace(FREE, **{weight: value, field: space})
        result = retarget(MAP, target, source, settings)
        heads.append(bipeds.heads_of(target, result))
        pole = poles(MAP, target, source, settings)[limb.name]
        _, angle, off = pole.sides(target, heads[-1], source, result.way, limb.end)
        angles.append(np.abs(angle[off > 0.1]))
    assert min(map(len, angles)) > 3
    assert angles[1].max() < 1e-3
    assert angles[1].max() <= max(angles[0].max(), 1e-3)  # without poles they may be there already
    ends = [target.index(limb.end) for limb in MAP.limbs]
    np.testing.assert_allclose(heads[1][:, ends], heads[0][:, ends], atol=1e-4)


def test_a_bent_spine_leaves_arms_turned_as_they_were(other_proportions):
    source, target = other_proportions
    settings = dataclasses.replace(FREE, hands=0.0, feet=0.0)
    turns = [
        target.world(*(each.rotations, each.translations))[1]
        for each in (
            retarget(MAP, target, source, settings),
            retarget(MAP, target, source, dataclasses.replace(settings, head=1.0)),
        )
    ]
    for name in ("shoulder.L", "upper_arm.R", "hand.L", "head"):
        i = target.index(name)
        np.testing.assert_allclose(np.abs((turns[0][:, i] * turns[1][:, i]).sum(1)), 1.0, atol=1e-6)
    assert np.abs((turns[0][:, 1] * turns[1][:, 1]).sum(1)).min() < 1.0 - 1e-5


def test_a_leg_that_the_source_stretches_past_straight_keeps_its_side():
    """The left sole of the source sinks into the ground and the target's does not: its leg stays bent."""
    figure = bipeds.skeleton()
    target = TargetFigure.at_rest(figure)
    frames = 41
    angles = np.interp(np.arange(frames), (0, 12, 20, 28, 40), np.radians((45.0, 6.0, -8.0, 6.0, 45.0)))
    rotations = np.zeros((frames, len(figure), 4))
    rotations[..., 0] = 1.0
    for name, part in (("thigh", -0.5), ("shin", 1.0), ("foot", -0.5)):
        for side in "LR":
            j = figure.index(f"{name}.{side}")
            rotations[:, j, 0], rotations[:, j, 1] = np.cos(0.5 * part * angles), np.sin(0.5 * part * angles)
    translations = np.zeros((frames, len(figure), 3))
    roll = Quaternion((0.0, 1.0, 0.0), math.radians(4.0))
    rest = figure.joints[0].rest_rotation
    rotations[:, 0] = rest.conjugated() @ roll @ rest
    ankles = target.world(rotations, translations)[0][:, figure.index("foot.R"), 2]
    rise = target.reference[0][figure.index("foot.R"), 2] - ankles
    translations[:, 0] = [rest.conjugated() @ Vector((0.0, 0.0, height)) for height in rise]
    source = bipeds.source_of(figure, rotations, translations)
    result = retarget(MAP, target, source, RetargetSettings())
    heads = bipeds.heads_of(target, result)
    for leg in MAP.legs:
        hip, knee, ankle = (heads[:, target.index(name)] for name in (leg.upper, leg.middle, leg.end))
        bends = np.cross(knee - hip, ankle - knee)[:, 0]
        thigh, own = result.rotations[:, target.index(leg.upper)], rotations[:, figure.index(leg.upper)]
        turned, own_turned = (
            2.0 * np.arccos(np.clip(np.abs((each[1:] * each[:-1]).sum(-1)), 0.0, 1.0))
            for each in (thigh, own)
        )
        assert (np.sign(bends) == np.sign(bends[0])).all()
        assert turned.max() < 2.0 * own_turned.max()
