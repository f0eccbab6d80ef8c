"""Motion carried over between figures that are known: the same one, a larger one, one with other axes."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import bipeds
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.limits.batch import BatchLimits
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.motion.contacts import ContactThresholds
from ccd_rig.motion.retargeting.alignment import _heading, shortest
from ccd_rig.motion.retargeting.figures import (
    FigureMap,
    SourceMotion,
    TargetFigure,
    product,
    straightest_frame,
)
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.settings import EffectorSpace, RetargetSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)
MAP = bipeds.figure_map()
EXACT, SINGLE = 1e-9, 2e-6


def rng_twists(seed=3):
    rng = np.random.default_rng(seed)
    return {name: Quaternion(rng.normal(size=4)).normalized() for name in bipeds.places()}


def scaled(factor):
    return {
        name: (factor * head, parent, factor * tail) for name, (head, parent, tail) in bipeds.places().items()
    }


@pytest.fixture(scope="module")
def figure():
    return bipeds.skeleton()


@pytest.fixture(scope="module")
def moving(figure):
    return bipeds.turns(figure, 40)


def test_a_figures_own_motion_stays(figure, moving):
    rotations, translations = moving
    source = bipeds.source_of(figure, rotations, translations)
    result = retarget(MAP, TargetFigure.at_rest(figure), source, FREE)
    dots = np.abs((result.rotations * rotations).sum(2))
    assert dots.min() > 1.0 - EXACT
    np.testing.assert_allclose(result.translations, translations, atol=EXACT)
    assert not result.moved.any()


def test_a_figure_twice_as_large_moves_twice_as_far(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(bipeds.skeleton(scaled(2.0)))
    result = retarget(MAP, target, source, FREE)
    np.testing.assert_allclose(np.abs((result.rotations * moving[0]).sum(2)), 1.0, atol=SINGLE)
    np.testing.assert_allclose(bipeds.heads_of(target, result), 2.0 * source.heads, atol=1e-5)


def test_other_axes_of_joints_give_the_same_motion(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(bipeds.skeleton(twists=rng_twists()))
    result = retarget(MAP, target, source, FREE)
    np.testing.assert_allclose(bipeds.heads_of(target, result), source.heads, atol=1e-5)


def test_a_model_space_that_is_turned_and_scaled_gives_the_same_motion_in_the_world(figure, moving):
    source = bipeds.source_of(figure, *moving)
    turn = Quaternion((0.7, 0.1, -0.5, 0.3)).normalized()
    inner = {
        name: (100.0 * (turn.conjugated() @ head), parent, 100.0 * (turn.conjugated() @ tail))
        for name, (head, parent, tail) in bipeds.places().items()
    }
    count = len(figure)
    target = TargetFigure(
        bipeds.skeleton(inner),
        np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)),
        np.zeros((count, 3)),
        np.array(turn[:]),
        np.zeros(3),
        0.01,
    )
    result = retarget(MAP, target, source, FREE)
    np.testing.assert_allclose(bipeds.heads_of(target, result), source.heads, atol=3e-5)


def test_arms_that_hang_at_rest_follow_arms_that_are_spread(figure, moving):
    """A pose: the source's reference has its arms out, the target's rest has them 60 degrees lower."""
    given = bipeds.places()
    for side, sign in (("L", 1.0), ("R", -1.0)):
        pivot = given[f"upper_arm.{side}"][0]
        lower = Matrix.Rotation(sign * np.radians(60.0), 3, "Y")
        for name in ("upper_arm", "forearm", "hand"):
            head, parent, tail = given[f"{name}.{side}"]
            given[f"{name}.{side}"] = (pivot + lower @ (head - pivot), parent, pivot + lower @ (tail - pivot))
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(bipeds.skeleton(given))
    result = retarget(MAP, target, source, FREE)
    np.testing.assert_allclose(bipeds.heads_of(target, result), source.heads, atol=1e-5)


@pytest.mark.parametrize("degrees", [-50.0, 35.0])
def test_a_chest_that_is_turned_at_the_reference_turns_the_spine(figure, moving, degrees):
    """The source's reference has its shoulders turned against its hips, the target's rest has not: the lines
    across are parallel all the time, and the spine between takes its share."""
    given, turn = bipeds.places(), Matrix.Rotation(np.radians(degrees), 3, "Z")
    for name, (head, parent, tail) in given.items():
        if head.z > 1.2:
            given[name] = (turn @ head, parent, turn @ tail)
    turned_figure = bipeds.skeleton(given)
    source = bipeds.source_of(turned_figure, *moving)
    target = TargetFigure.at_rest(figure)
    found = bipeds.heads_of(target, retarget(MAP, target, source, FREE))
    for name in ("thigh", "upper_arm"):
        left, right = (figure.index(f"{name}.{side}") for side in "LR")
        ours, theirs = (heads[:, left] - heads[:, right] for heads in (found, source.heads))
        ours, theirs = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, atol=0.02, err_msg=name)


def test_a_source_whose_rest_is_no_pose_is_read_from_a_frame(figure, moving):
    """Axes of the source mean nothing; its reference is a frame. Limbs point as its own."""
    plain = bipeds.source_of(figure, *moving)
    rng = np.random.default_rng(5)
    axes = rng.normal(size=(len(figure), 4))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    turned = product(plain.rotations, axes[None])
    source = SourceMotion(
        plain.names, plain.times, plain.heads, turned, plain.heads[7], turned[7], stands=False
    )
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, FREE)
    found = bipeds.heads_of(target, result)
    for limb in MAP.limbs:
        start, *others = (figure.index(name) for name in (limb.upper, limb.middle, limb.end))
        for j in others:
            ours, theirs = (heads[:, j] - heads[:, start] for heads in (found, source.heads))
            np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=figure.joints[j].name)


@pytest.mark.parametrize(
    ("name", "below"),
    [("hips", ("chest", "leg")), ("chest", ("head", "hand")), ("spine", ()), ("head", ())],
)
def test_the_nearest_mapped_joints_below(name, below):
    """Past joints that follow nothing, and not past those that follow something."""
    up = Vector((0.0, 1.0, 0.0))
    parents = {"hips": -1, "spine": 0, "chest": 1, "neck": 2, "head": 3, "arm": 2, "hand": 5, "leg": 0}
    skeleton = Skeleton([Joint(each, parent, up, length=1.0) for each, parent in parents.items()])
    mapped = SimpleNamespace(sources=dict.fromkeys(("hips", "chest", "head", "hand", "leg"), "source"))
    assert FigureMap.nearest_mapped_below(mapped, skeleton, name) == below


def test_limits_are_held(figure):
    limits = {"limit": Hinge((1.0, 0.0, 0.0), 0.0, 0.3)}
    spread = {"limit": SwingTwist(Cone(0.3), (-0.2, 0.2))}
    narrow = bipeds.skeleton(shin_L=limits, shin_R=limits, upper_arm_L=spread, spine=spread)
    source = bipeds.source_of(figure, *bipeds.turns(figure, 30, size=2.0))
    result = retarget(MAP, TargetFigure.at_rest(narrow), source, FREE)
    batch = BatchLimits([joint.limit for joint in narrow.joints])
    assert batch.violations(np.ascontiguousarray(result.rotations.transpose(2, 1, 0))).max() < 1e-4


def test_in_place_takes_the_mean_velocity_off(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, dataclasses.replace(FREE, in_place=True))
    hips = bipeds.heads_of(target, result)[:, 0]
    np.testing.assert_allclose(hips[0, :2], hips[-1, :2], atol=1e-6)
    np.testing.assert_allclose(hips[:, 2], source.heads[:, 0, 2], atol=1e-6)


def test_hands_of_longer_arms_are_in_lengths_of_the_arm_or_in_the_world(figure, moving):
    given = bipeds.places()
    for side in "LR":
        start = given[f"upper_arm.{side}"][0]
        for name in ("upper_arm", "forearm", "hand"):
            head, parent, tail = given[f"{name}.{side}"]
            given[f"{name}.{side}"] = (start + 1.2 * (head - start), parent, start + 1.2 * (tail - start))
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(bipeds.skeleton(given))
    limb = retarget(MAP, target, source, FREE)
    world = retarget(MAP, target, source, dataclasses.replace(FREE, hand_space=EffectorSpace.WORLD))
    hand, shoulder = figure.index("hand.L"), figure.index("upper_arm.L")
    found = bipeds.heads_of(target, limb)
    own = source.heads[:, hand] - source.heads[:, shoulder]
    np.testing.assert_allclose(found[:, hand] - found[:, shoulder], 1.2 * own, atol=1e-4)
    np.testing.assert_allclose(bipeds.heads_of(target, world)[:, hand], source.heads[:, hand], atol=1e-4)


def test_one_frame_and_two_are_enough(figure, moving):
    for count in (1, 2):
        source = bipeds.source_of(figure, moving[0][:count], moving[1][:count])
        result = retarget(MAP, TargetFigure.at_rest(figure), source)
        assert result.rotations.shape == (count, len(figure), 4)
        assert np.isfinite(measures(MAP, TargetFigure.at_rest(figure), source, result).jerk)


def test_shortest_rotations_lead_from_one_vector_to_the_other():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 50, 3))
    b[0], b[1] = -a[0], 0.0
    for vector, other, rotation in zip(a, b, shortest(a, b), strict=True):
        seen = Quaternion(rotation) @ Vector(vector).normalized()
        wanted = Vector(other).normalized() if other.any() else Vector(vector).normalized()
        assert (seen - wanted).length < 1e-5


def test_default_thresholds_are_those_of_the_contacts_but_for_speed():
    assert RetargetSettings().thresholds == ContactThresholds(speed=1.0 / 3.0)


def test_the_straightest_frame_is_the_one_that_stands_with_its_arms_stretched(figure, moving):
    rotations, translations = (each.copy() for each in moving)
    rotations[23] = (1.0, 0.0, 0.0, 0.0)
    assert straightest_frame(MAP, bipeds.source_of(figure, rotations, translations)) == 23


@pytest.mark.parametrize("degrees", [0.0, 40.0, -150.0, 180.0])
def test_the_heading_of_a_rotation_is_its_part_about_the_vertical(degrees):
    about = Quaternion((0.0, 0.0, 1.0), np.radians(degrees))
    tilted = about @ Quaternion((0.6, 0.8, 0.0), 0.7)
    assert abs(Quaternion(_heading(np.array(tilted))).dot(about)) == pytest.approx(1.0, abs=1e-6)
    upside_down = np.array((0.0, 0.6, 0.8, 0.0))  # a half turn about a level axis has none
    assert _heading(upside_down).tolist() == [1.0, 0.0, 0.0, 0.0]
