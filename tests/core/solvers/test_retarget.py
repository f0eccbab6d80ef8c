"""Motion carried over between figures: the same one, larger ones, ones with other axes or on four legs.

Effectors by their weights and spaces, and what is refused, by which name.
"""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import bipeds
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.shapes import BatchLimits, Cone, Hinge, SwingTwist
from ccd_rig.maths import batch
from ccd_rig.motion.retargeting.alignment import _heading, shortest
from ccd_rig.motion.retargeting.figures import (
    FigureMap,
    Figures,
    Limb,
    SourceMotion,
    TargetFigure,
    inverse,
    product,
    straightest_frame,
    turned,
)
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.scaled_way import head_effector, limb_effectors, poles
from ccd_rig.motion.settings import ContactThresholds, EffectorSpace, RetargetSettings
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
    outcome = bipeds.heads_of(target, retarget(MAP, target, source, FREE))
    for name in ("thigh", "upper_arm"):
        left, right = (figure.index(f"{name}.{side}") for side in "LR")
        ours, theirs = (heads[:, left] - heads[:, right] for heads in (outcome, source.heads))
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
    outcome = bipeds.heads_of(target, result)
    for limb in MAP.limbs:
        start, *others = (figure.index(name) for name in (limb.upper, limb.middle, limb.end))
        for j in others:
            ours, theirs = (heads[:, j] - heads[:, start] for heads in (outcome, source.heads))
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
    outcome = bipeds.heads_of(target, limb)
    own = source.heads[:, hand] - source.heads[:, shoulder]
    np.testing.assert_allclose(outcome[:, hand] - outcome[:, shoulder], 1.2 * own, atol=1e-4)
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


def test_maps_that_do_not_fit_the_figures_are_refused_by_name(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(figure)
    for upper, middle in (("shin.L", "thigh.L"), ("thigh.R", "shin.L")):  # crossed; of two legs
        limb = Limb("left leg", upper, middle, "foot.L", "toe.L")
        with pytest.raises(InvalidInput, match=f"left leg: {upper}, {middle}, .* do not hang on each other"):
            retarget(dataclasses.replace(MAP, legs=(limb, MAP.legs[1])), target, source)


def test_limbs_without_length_are_refused(figure, moving):
    """A source whose arm lies in one point, and a target whose arm does."""
    source, target = bipeds.source_of(figure, *moving), TargetFigure.at_rest(figure)
    heads = source.reference_heads.copy()
    arm = [source.names.index(name) for name in ("upper_arm.L", "forearm.L", "hand.L")]
    heads[arm] = heads[arm[0]]
    flat = dataclasses.replace(source, reference_heads=heads)
    with pytest.raises(InvalidInput, match="left arm: the source's has no length"):
        retarget(MAP, target, flat, FREE)
    offsets = {name: {"offset": (0.0, 0.0, 0.0)} for name in ("forearm.L", "hand.L")}
    short = TargetFigure.at_rest(figure.replace(offsets))
    with pytest.raises(InvalidInput, match="left arm: the target's has no length"):
        retarget(MAP, short, source, FREE)


def test_numbers_that_are_none_are_refused_by_joint(figure, moving):
    source = bipeds.source_of(figure, *moving)
    heads = source.heads.copy()
    heads[3, 5, 1] = np.nan
    with pytest.raises(InvalidInput, match=f"joint '{source.names[5]}': heads of the source at frame 3"):
        dataclasses.replace(source, heads=heads)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("feet", 1.5), ("feet", (0.5, 1.5)), ("hands", (1.0, np.nan)), ("knees", (1.0, 0.0, 1.0))),
        *(("head", (1.0, 0.0)), ("blend", -1.0), ("extension", 0.2), ("scale", np.nan)),
    ],
)
def test_settings_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(InvalidInput, match=f"^{field} must be"):
        RetargetSettings(**{field: value})


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
        figures = Figures(MAP, target, source)
        effector = limb_effectors(figures, settings).get(name) or head_effector(figures, settings)
        heads = bipeds.heads_of(target, result)
        errors.append(effector.errors(heads, result.way))
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
        pole = poles(Figures(MAP, target, source), settings)[limb.name]
        _, angle, off = pole.sides(heads[-1], result.way, limb.end)
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
    # The source's legs are hyperextended in some frames: to bend to their usual side there is no flip.
    assert measures(MAP, target, source, result).flipped == 0
    back = dataclasses.replace(result, rotations=result.rotations.copy())
    knee, frame = target.index("shin.L"), 2
    w, x, y, z = back.rotations[frame, knee]
    back.rotations[frame, knee] = (w, -x, -y, -z)
    assert measures(MAP, target, source, back).flipped == 1


def beast(body, front, high):
    """A skeleton on four legs: length of its body, of its front legs and height of their wrists, metres."""
    given = {
        "hips": (Vector((0.0, 0.0, 0.7)), "", Vector((0.0, -0.2, 0.7))),
        "chest": (Vector((0.0, -0.3, 0.7)), "hips", Vector((0.0, -body, 0.7))),
        "head": (Vector((0.0, -body - 0.2, 0.9)), "chest", Vector((0.0, -body - 0.4, 0.9))),
    }
    for side, sign in (("L", 1.0), ("R", -1.0)):
        x = 0.1 * sign
        for prefix, above, y, top, wrist in (
            ("", "hips", 0.0, 0.65, 0.15),
            ("front_", "chest", -body, 0.05 + front, high),
        ):
            knee = 0.5 * (top + wrist)
            ends = [(y, top), (y - 0.06, knee), (y, wrist), (y - 0.08, 0.02), (y - 0.14, 0.02)]
            parents = (above, *(f"{prefix}{name}.{side}" for name in ("thigh", "shin", "foot")))
            for k, name in enumerate(("thigh", "shin", "foot", "toe")):
                head, tail = (Vector((x, *ends[i])) for i in (k, k + 1))
                given[f"{prefix}{name}.{side}"] = head, parents[k], tail
    return bipeds.skeleton(given)


def beasts_map(figure):
    legs = tuple(
        Limb(f"{word} {girdle} leg", *(f"{prefix}{n}.{s}" for n in ("thigh", "shin", "foot", "toe")), girdle)
        for girdle, prefix in (("", ""), ("front", "front_"))
        for s, word in (("L", "left"), ("R", "right"))
    )
    names = {joint.name: joint.name for joint in figure.joints}
    return FigureMap(names, "hips", legs, (), ("chest",), "head")


def test_a_body_on_four_legs_stands_upright_along_the_ground():
    figure = beast(0.9, 0.6, 0.1)
    heads, _ = TargetFigure.at_rest(figure).reference
    feet, hips, top = beasts_map(figure).middles({j.name: heads[figure.index(j.name)] for j in figure.joints})
    way = (top - hips) / np.linalg.norm(top - hips)
    assert way[2] > 0.99 and hips[2] > feet[2] + 0.4


def test_a_beast_of_other_proportions_stands_and_steps_on_its_own_feet():
    """Its body is longer, its wrists are higher: front feet stay under its own shoulders, on the ground."""
    own, other = beast(0.9, 0.6, 0.1), beast(1.3, 0.55, 0.2)
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (30, len(own), 1))
    for name, phase in (
        ("thigh.L", 0.0),
        ("thigh.R", np.pi),
        ("front_thigh.L", np.pi),
        ("front_thigh.R", 0.0),
    ):
        half = 0.1 * np.sin(np.linspace(0.0, 2.0 * np.pi, 30) + phase)
        rotations[:, own.index(name)] = np.stack((np.cos(half), np.sin(half), 0.0 * half, 0.0 * half), axis=1)
    source = bipeds.source_of(own, rotations, np.zeros((30, len(own), 3)))
    target, figure_map = TargetFigure.at_rest(other), beasts_map(own)
    result = retarget(figure_map, target, source, FREE)
    heads, rest = bipeds.heads_of(target, result), target.reference[0]
    errors = measures(figure_map, target, source, result).errors
    for leg in figure_map.legs:
        foot, hip = target.index(leg.end), target.index(leg.upper)
        np.testing.assert_allclose(heads[0, foot] - heads[0, hip], rest[foot] - rest[hip], atol=0.03)
        assert heads[0, foot, 2] == pytest.approx(rest[foot, 2], abs=0.03)
        assert errors[leg.name] < 0.06


@pytest.mark.parametrize("body", [0.6, 1.4])
def test_a_trunk_of_another_length_pitches_so_that_both_girdles_are_as_high_as_the_sources(body):
    """Front legs of a beast rise by up to 0.5 m over the hind ones, as it sits: its legs and head stay."""
    own, other = beast(0.9, 0.6, 0.1), beast(body, 0.6, 0.1)
    pitch = np.radians(np.linspace(0.0, 34.0, 20))

    def about_x(angles):
        return np.stack((np.cos(angles / 2), np.sin(angles / 2), 0.0 * angles, 0.0 * angles), axis=1)

    rest = TargetFigure.at_rest(own).reference[1]
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (20, len(own), 1))
    for name in ("hips", "head", *(f"{p}thigh.{s}" for p in ("", "front_") for s in "LR")):
        j = own.index(name)  # the hips go up in front: -Y to +Z is about -X; what hangs on them turns back
        turn = about_x(-pitch if name == "hips" else pitch)
        rotations[:, j] = product(product(inverse(rest[j]), turn), rest[j])
    source = bipeds.source_of(own, rotations, np.zeros((20, len(own), 3)))
    target, figure_map = TargetFigure.at_rest(other), beasts_map(own)
    result = retarget(figure_map, target, source, FREE)
    heads, world = target.world(result.rotations, result.translations)

    def rises(points):
        return points[:, own.index("front_thigh.L"), 2] - points[:, own.index("thigh.L"), 2]

    assert np.ptp(rises(source.heads)) > 0.45
    np.testing.assert_allclose(rises(heads), rises(source.heads), atol=1e-6)
    head = batch.angles_between(world[:, own.index("head")], source.rotations[:, own.index("head")], -1)
    assert head.max() < 1e-6
    for leg in figure_map.legs:  # no leg has to bend otherwise
        hips, ankles = (heads[:, own.index(name)] for name in (leg.upper, leg.end))
        theirs = source.heads[:, own.index(leg.end)] - source.heads[:, own.index(leg.upper)]
        np.testing.assert_allclose((ankles - hips)[:, 2], theirs[:, 2], atol=1e-5)


@pytest.mark.parametrize("leap", [0.0, 0.5])
def test_legs_of_a_beast_that_crouches_fold_alike(leap):
    """On the ground and in a leap; front legs that are longer let their girdle sink farther."""
    own, other = beast(0.9, 0.55, 0.1), beast(0.9, 0.75, 0.1)
    fold = np.linspace(0.0, 1.0, 20)
    rest = TargetFigure.at_rest(own).reference[1]
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (20, len(own), 1))
    for prefix in ("", "front_"):
        for bone, share in (("thigh", -1.0), ("shin", 2.0), ("foot", -1.0)):
            for side in "LR":
                j, half = own.index(f"{prefix}{bone}.{side}"), 0.5 * share * fold
                turn = np.stack((np.cos(half), np.sin(half), 0.0 * half, 0.0 * half), axis=1)
                rotations[:, j] = product(product(inverse(rest[j]), turn), rest[j])
    still = bipeds.source_of(own, rotations, np.zeros((20, len(own), 3)))
    shifts = np.zeros((20, len(own), 3))
    foot = own.index("foot.L")
    way = still.heads[:1, foot] - still.heads[:, foot] + np.outer(fold, (0.0, 0.0, leap))
    shifts[:, 0] = turned(inverse(rest[0]), way)
    source = bipeds.source_of(own, rotations, shifts)
    target, figure_map = TargetFigure.at_rest(other), beasts_map(own)
    result = retarget(figure_map, target, source, FREE)
    heads, _ = target.world(result.rotations, result.translations)
    for leg in figure_map.legs:
        folded = []
        for points, joints in ((source.heads, own), (heads, other)):
            top, knee, end = (points[:, joints.index(name)] for name in (leg.upper, leg.middle, leg.end))
            ways = top - end, top - knee, knee - end
            straight, upper, lower = (np.linalg.norm(way, axis=1) for way in ways)
            folded.append(straight / (upper + lower))
        assert folded[0].min() < 0.65
        np.testing.assert_allclose(folded[1], folded[0], atol=0.02)


def test_a_trunk_that_stands_on_end_keeps_its_slope():
    """A beast that rears past upright: a slope of 90 degrees stays, and none is passed by a leap."""
    own, other = beast(0.9, 0.6, 0.1), beast(1.4, 0.6, 0.1)
    angles = -np.radians(np.arange(0.0, 180.0, 2.0))
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (len(angles), len(own), 1))
    rest = TargetFigure.at_rest(own).reference[1]
    turn = np.stack((np.cos(angles / 2), np.sin(angles / 2), 0.0 * angles, 0.0 * angles), axis=1)
    rotations[:, 0] = product(product(inverse(rest[0]), turn), rest[0])
    source = bipeds.source_of(own, rotations, np.zeros((len(angles), len(own), 3)))
    target, figure_map = TargetFigure.at_rest(other), beasts_map(own)
    result = retarget(figure_map, target, source, FREE)
    hips = target.world(result.rotations, result.translations)[1][:, 0]
    assert batch.angles_between(hips[45:46], source.rotations[45:46, 0], -1)[0] < 1e-6
    assert batch.angles_between(hips[1:], hips[:-1], -1).max() < np.radians(6.0)
