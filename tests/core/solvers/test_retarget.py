"""Motion carried over between figures that are known: the same one, a larger one, one with other axes."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import bipeds
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.batch import BatchLimits
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.motion.contacts import ContactThresholds, Phase
from ccd_rig.motion.retargeting import feet, sole
from ccd_rig.motion.retargeting.alignment import _heading, shortest
from ccd_rig.motion.retargeting.effectors import head_effector, limb_effectors, poles
from ccd_rig.motion.retargeting.feet import FootPath, foot_path, rolled, sunken
from ccd_rig.motion.retargeting.figure_map import FigureMap, Limb
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.motions import SourceMotion, TargetFigure, product, turned
from ccd_rig.motion.retargeting.reference import straightest_frame
from ccd_rig.motion.retargeting.rolling import Contacts
from ccd_rig.motion.retargeting.root import drops, smooth_envelope
from ccd_rig.motion.retargeting.settings import EffectorSpace, RetargetSettings
from ccd_rig.motion.retargeting.sole import Hold, Sole, SolePart
from ccd_rig.motion.retargeting.stances import find_stances, leg_length
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)
MAP = bipeds.figure_map()
EXACT, SINGLE, SOLVE = 1e-9, 2e-6, 2e-5


def rng_twists(seed=3):
    rng = np.random.default_rng(seed)
    return {name: Quaternion(rng.normal(size=4)).normalized() for name in bipeds.places()}


def heads_of(target, result):
    return target.world(result.rotations, result.translations)[0]


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
    assert not result.sunk.any()


def test_a_figure_twice_as_large_moves_twice_as_far(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(bipeds.skeleton(scaled(2.0)))
    result = retarget(MAP, target, source, FREE)
    np.testing.assert_allclose(np.abs((result.rotations * moving[0]).sum(2)), 1.0, atol=SINGLE)
    np.testing.assert_allclose(heads_of(target, result), 2.0 * source.heads, atol=1e-5)


def test_other_axes_of_joints_give_the_same_motion(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(bipeds.skeleton(twists=rng_twists()))
    result = retarget(MAP, target, source, FREE)
    np.testing.assert_allclose(heads_of(target, result), source.heads, atol=1e-5)


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
    np.testing.assert_allclose(heads_of(target, result), source.heads, atol=3e-5)


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
    np.testing.assert_allclose(heads_of(target, result), source.heads, atol=1e-5)


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
    found = heads_of(target, retarget(MAP, target, source, FREE))
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
    found = heads_of(target, result)
    for limb in MAP.limbs:
        start, *others = (figure.index(name) for name in (limb.upper, limb.middle, limb.end))
        for j in others:
            ours, theirs = (heads[:, j] - heads[:, start] for heads in (found, source.heads))
            np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=figure.joints[j].name)


def sliding(figure, speed=0.05, frames=40, crouch=0.3):
    """A figure that crouches, both feet down, while all of it slides along X."""
    rotations, translations = bipeds.turns(figure, frames, size=0.0)
    for side in "LR":
        for name, angle in (("thigh", -crouch), ("shin", 2.0 * crouch), ("foot", -crouch)):
            j = figure.index(f"{name}.{side}")
            axes = Quaternion(Vector((1.0, 0.0, 0.0)), angle)
            world = TargetFigure.at_rest(figure).reference[1][j]
            local = Quaternion(world).conjugated() @ axes @ Quaternion(world)
            rotations[:, j] = local[:]
    translations[:] = 0.0
    heads, _ = TargetFigure.at_rest(figure).world(rotations, translations)
    drop = heads[0, figure.index("toe.L"), 2] - 0.02
    axes = Quaternion(TargetFigure.at_rest(figure).reference[1][0]).conjugated()
    for f in range(frames):
        translations[f, 0] = (axes @ Vector((speed * f / 30.0, 0.0, -drop)))[:]
    return rotations, translations


def test_feet_that_slide_are_locked(figure):
    source = bipeds.source_of(figure, *sliding(figure))
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source)
    heads = heads_of(target, result)
    assert [list(phases) for phases in result.stances.phases.values()] == [[(0, 39)], [(0, 39)]]
    for side in "LR":
        ball = heads[:, figure.index(f"toe.{side}")]
        assert np.ptp(source.heads[:, figure.index(f"toe.{side}"), 0]) > 0.06
        assert np.ptp(ball, axis=0).max() < SOLVE
        np.testing.assert_allclose(ball[:, 2], 0.02, atol=SOLVE)
    # The hips go on as they did.
    np.testing.assert_allclose(heads[:, 0, :2] - source.heads[:, 0, :2], 0.0, atol=1e-6)
    found = measures(MAP, target, source, result)
    assert max(stance.drift for stance in found.stances) < SOLVE
    assert min(stance.source_slide for stance in found.stances) == pytest.approx(0.05, rel=1e-6)
    assert found.penetration < SOLVE and found.flipped == 0 and found.broken == 0
    assert (found.sunk_frames, found.sunk) == (0, 0.0)
    # Only where feet are free they are to follow: here nowhere.
    assert found.errors["left leg"] == found.errors["right leg"] == 0.0


@pytest.mark.parametrize(("toe", "lowest"), [(None, -0.02), ((0.2, 0.0, -0.05), -0.2)])
def test_toes_that_point_down_are_lowest(toe, lowest):
    """Foot level, toes turned down by a right angle."""
    under, heel = np.array((0.0, 0.0, -0.02)), np.array((-0.1, 0.0, -0.02))
    end = None if toe is None else np.array(toe)
    sole_ = Sole(np.array((0.1, 0.0, -0.08)), under, heel, end, np.array((0.0, 1.0, 0.0)), 0.02)
    level = np.array([[1.0, 0.0, 0.0, 0.0]] * 2)
    down = np.array([[math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0]] * 2)  # +X to -Z
    balls = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(feet._lowest(balls, level, down, sole_), [lowest, 1.0 + lowest], atol=1e-12)


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


def locked_foot(fps):
    """A foot that slows down, slides on and speeds up, locked where it is slow: its own way, and the path."""
    times = np.arange(2 * fps) / fps
    speed = 2.0 * np.clip(np.abs(times - 1.0) - 0.3, 0.0, 1.0) + 0.1
    x = np.cumsum(speed) / fps
    ankles = np.stack((x, np.zeros(len(x)), np.full(len(x), 0.1)), axis=1)
    under, heel = np.array((0.0, 0.0, -0.02)), np.array((-0.1, 0.0, -0.02))
    sole = Sole(np.array((0.1, 0.0, -0.08)), under, heel, None, np.array((0.0, 1.0, 0.0)), 0.02)
    rows = np.flatnonzero(speed < 0.3)
    phase = Phase(int(rows[0]), int(rows[-1]))
    contacts = Contacts([phase], times, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    straight = np.tile((1.0, 0.0, 0.0, 0.0), (len(x), 1))
    return ankles, foot_path(ankles, (straight, None), sole, contacts, 0.2).ankles, phase, times


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
@pytest.mark.parametrize(
    ("tail", "toes"),
    [
        ((0.0, -0.5, 0.1), (0.0, -0.5, 0.0)),  # ahead: taken, along the ground
        ((0.1, -0.9, -0.2), (0.1, -0.9, 0.0)),
        ((0.0, 0.5, 0.0), None),  # back, aside, up: nothing says where toes end
        ((0.8, -0.1, 0.0), None),
        ((0.0, -0.1, 0.8), None),
        ((0.0, -1.5, 0.0), None),  # longer than the foot
    ],
)
def test_toes_end_where_their_bone_does_if_that_leads_ahead(size, tail, toes):
    foot = np.array((0.0, -1.0, -0.3))
    found = sole._toes(size * foot, size * np.array(tail))
    expected = toes or tuple(sole.TOES * foot * (1.0, 1.0, 0.0))
    np.testing.assert_allclose(found, size * np.array(expected), atol=size * EXACT)


def test_a_foot_enters_and_leaves_its_lock_without_a_kink():
    """Changes of speed from frame to frame fall with the time between: the speed itself does not jump."""
    jumps = []
    for fps in (60, 240):
        own, path, (first, last), times = locked_foot(fps)
        assert np.ptp(path[first : last + 1], axis=0).max() < 1e-12
        assert np.ptp(own[first : last + 1], axis=0).max() > 0.05
        beyond = (times > times[last] + 0.2) | (times < times[first] - 0.2)
        np.testing.assert_allclose(path[beyond], own[beyond], atol=1e-12)
        jumps.append(np.abs(np.diff(path[:, 0], 2)).max() * fps)
    assert jumps[1] < 0.3 * jumps[0]


def rolling_foot(fps=120):
    """A foot that lands on its heel, lies flat, rolls over its ball and leaves by its toes, while all of it
    slides ahead at 8 cm a second: world points of heel, ball and toes by time, the path, and the sole."""
    times = np.arange(int(1.2 * fps)) / fps
    sole = Sole(
        np.array((0.12, 0.0, -0.08)),
        np.array((0.0, 0.0, -0.02)),
        np.array((-0.16, 0.0, -0.02)),
        np.array((0.06, 0.0, -0.02)),
        np.array((0.0, 1.0, 0.0)),
        0.02,
    )
    landing = np.radians(np.interp(times, (0.2, 0.4), (25.0, 0.0)))
    raised = np.radians(np.interp(times, (0.6, 1.0), (0.0, -30.0)))
    bent = np.radians(np.interp(times, (0.8, 1.0), (0.0, -25.0)))
    feet, toes = pitched(landing + raised), pitched(landing + bent)
    balls = np.zeros((len(times), 3))
    balls[:, 2] = 0.02
    for k in range(len(times)):
        if times[k] < 0.4:  # about the heel
            balls[k] = (-0.16, 0.0, 0.0) - spun(feet[k], sole.heel)
        elif times[k] > 0.8:  # about the toes
            balls[k] = (0.06, 0.0, 0.0) - spun(toes[k], sole.toe)
    away = np.clip(0.2 - times, 0.0, 1.0) + np.clip(times - 1.0, 0.0, 1.0)
    balls += np.stack((0.08 * times + 6.0 * np.sign(times - 0.6) * away**2, 0.0 * times, 8.0 * away**2), 1)
    flat = np.flatnonzero((times > 0.39) & (times < 0.81))
    heel, tip = (
        np.flatnonzero((times > 0.22) & (times < 0.39)),
        np.flatnonzero((times > 0.81) & (times < 0.98)),
    )
    first, last = int(flat[0]), int(flat[-1])
    rolls = [(Hold(SolePart.HEEL, int(heel[0]), first - 1), Hold(SolePart.TOES, last + 1, int(tip[-1])))]
    contacts = Contacts([Phase(first, last)], times, np.zeros(3), np.zeros(1), 0.0, 0.1, rolls)
    path = foot_path(balls - turned(feet, sole.ball), (feet, toes), sole, contacts, 0.2)
    return balls, (feet, toes), path, sole, times


def pitched(angles):
    return np.stack((np.cos(angles / 2), 0.0 * angles, -np.sin(angles / 2), 0.0 * angles), axis=1)


def spun(rotation, point):
    return np.array((Quaternion(rotation) @ Vector(point))[:])


def test_a_foot_rolls_from_its_heel_over_its_ball_to_its_toes_each_held_still():
    balls, (feet, toes), path, sole, times = rolling_foot()
    assert [hold.part for hold in path.holds] == [SolePart.HEEL, SolePart.BALL, SolePart.TOES]
    own = {
        SolePart.HEEL: balls + turned(feet, sole.heel),
        SolePart.BALL: balls,
        SolePart.TOES: balls + turned(toes, sole.toe),
    }
    ball = path.ankles + turned(path.feet, sole.ball)
    found = {
        SolePart.HEEL: ball + turned(path.feet, sole.heel),
        SolePart.BALL: ball,
        SolePart.TOES: ball + turned(path.toes, sole.toe),
    }
    for part, first, last in path.holds:
        assert times[last] - times[first] > 0.12, part
        rows = slice(first, last + 1)
        assert np.ptp(own[part][rows, 0]) > 0.01
        assert np.ptp(found[part][rows], axis=0).max() < 1e-9, part
    first, last = path.holds[1][1:]
    assert np.ptp(found[SolePart.TOES][first : last + 1], axis=0).max() < 1e-9
    assert min(point[:, 2].min() for point in found.values()) > -1e-6


def test_toes_that_would_dip_into_the_ground_are_raised_for_no_longer_than_that_takes():
    """A foot in the air comes down for a tenth of a second, its toes pointing down; the blend is 0.2 s."""
    times = np.arange(241) / 120
    point = np.array((0.06, 0.0, -0.02))
    sole = Sole(np.zeros(3), np.array((0.0, 0.0, -0.02)), np.zeros(3), point, np.array((0.0, 1.0, 0.0)), 0.02)
    ankles = np.zeros((241, 3))
    ankles[:, 2] = 1.0 - 0.97 * np.clip(1.0 - np.abs(times - 1.0) / 0.05, 0.0, 1.0)
    feet, toes = pitched(np.zeros(241)), pitched(np.full(241, -1.0))
    contacts = Contacts([], times, np.zeros(3), np.zeros(0), 0.0, 0.1)
    path = foot_path(ankles, (feet, toes), sole, contacts, 0.2)
    assert (path.ankles + turned(path.toes, point))[:, 2].min() > -1e-6
    assert (ankles + turned(toes, point))[:, 2].min() < -0.01
    away = np.abs(times - 1.0) > 0.05 + 0.1 + 0.02
    np.testing.assert_allclose(path.toes[away], toes[away], atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_heel_rises_only_where_the_leg_is_too_short(seed):
    """Its heel is a little up already; hips are anywhere above it."""
    rng = np.random.default_rng(seed)
    *_, sole, _ = rolling_foot()
    feet, ankles = pitched(np.full(40, -0.3)), np.tile((0.0, 0.0, 0.12), (40, 1))
    hips = ankles + rng.normal(size=(40, 3)) * (0.3, 0.1, 0.05) + (0.0, 0.0, 0.8)
    ones = np.ones(40)
    path = FootPath(ankles, feet, None, ones, ones, 0.0 * ones)
    distances = np.linalg.norm(ankles - hips, axis=1)
    long_enough = rolled(path, sole, hips, distances + 0.001)
    np.testing.assert_allclose(long_enough.ankles, ankles, atol=1e-12)
    np.testing.assert_allclose(long_enough.feet, feet, atol=1e-12)
    short = rolled(path, sole, hips, distances - 0.01)
    balls = [each.ankles + turned(each.feet, sole.ball) for each in (path, short)]
    np.testing.assert_allclose(balls[0], balls[1], atol=1e-9)
    ahead = hips[:, 0] > 0.05  # on a circle about the ball an ankle goes up and ahead
    nearer = np.linalg.norm(short.ankles - hips, axis=1)
    assert ahead.sum() > 10
    np.testing.assert_allclose(nearer[ahead], distances[ahead] - 0.01, atol=1e-9)


def test_heels_and_toes_that_a_source_rolls_on_are_found(figure):
    """Read from the source: its heel is down before its ball, and the end of its toes after it."""
    balls, (feet, toes), _, sole, times = rolling_foot()
    plain = bipeds.source_of(figure, *bipeds.turns(figure, len(times), size=0.0), 120.0)
    heads, turns = plain.heads.copy(), plain.rotations.copy()
    foot, toe = figure.index("foot.L"), figure.index("toe.L")
    heads[:, toe], heads[:, foot] = balls, balls - turned(feet, sole.ball)
    turns[:, toe], turns[:, foot] = toes, feet
    source = dataclasses.replace(plain, heads=heads, rotations=turns)
    found = find_stances(source, MAP, RetargetSettings().thresholds)
    ((heel, tip),) = found.rolls["left leg"]
    (phase,) = found.phases["left leg"]
    assert (heel.part, tip.part) == (SolePart.HEEL, SolePart.TOES)
    assert (heel.last, tip.first) == (phase.first - 1, phase.last + 1)
    assert times[heel.first] == pytest.approx(0.2, abs=0.04)
    assert times[tip.last] == pytest.approx(1.0, abs=0.04)


def test_a_roll_that_the_leg_is_too_short_for_is_let_go():
    rolls = [(Hold(SolePart.HEEL, 2, 4), Hold(SolePart.TOES, 9, 12))]
    contacts = Contacts([Phase(5, 8)], np.arange(15.0), np.zeros(3), np.zeros(1), 0.0, 0.1, rolls)
    far = np.zeros(15, bool)
    assert [list(each) for each in contacts.followed(far).rolls] == [list(rolls[0])]
    far[[3, 11]] = True
    found = contacts.followed(far).rolls
    assert [list(each) for each in found] == [[Hold(SolePart.HEEL, 4, 4), Hold(SolePart.TOES, 9, 10)]]
    far[[4, 9]] = True
    assert [list(each) for each in contacts.followed(far).rolls] == [[]]


def test_a_rolling_foot_goes_on_without_a_jump_where_another_point_takes_over():
    """From frame to frame the ankle's speed changes no more than where the foot's own motion does."""
    balls, (feet, _), path, sole, _ = rolling_foot()
    own = np.diff(balls - turned(feet, sole.ball), 2, axis=0)
    found = np.diff(path.ankles, 2, axis=0)
    assert np.abs(found).max() < 1.5 * np.abs(own).max()
    assert np.abs(np.diff(path.ankles, axis=0)).max() < 1.2 * np.abs(np.diff(balls, axis=0)).max()


def test_a_leg_that_is_too_short_lowers_the_hips_smoothly(figure):
    """Feet far apart, locked: the target's legs are as long, but its hips are narrower by 8 cm a side."""
    given = bipeds.places()
    for side, sign in (("L", 1.0), ("R", -1.0)):
        for name in ("thigh", "shin", "foot", "toe"):
            head, parent, tail = given[f"{name}.{side}"]
            shift = Vector((-0.08 * sign, 0.0, 0.0))
            given[f"{name}.{side}"] = (head + shift, parent, tail + shift)
    rotations, translations = sliding(figure, speed=0.0, crouch=0.02)
    for side, sign in (("L", 1.0), ("R", -1.0)):
        j = figure.index(f"thigh.{side}")
        world = Quaternion(TargetFigure.at_rest(figure).reference[1][j])
        turn = world.conjugated() @ Quaternion(Vector((0.0, 1.0, 0.0)), -0.4 * sign) @ world
        rotations[:, j] = [(turn @ Quaternion(q))[:] for q in rotations[:, j]]
    source = bipeds.source_of(figure, rotations, translations)
    target = TargetFigure.at_rest(bipeds.skeleton(given))
    result = retarget(MAP, target, source)
    assert result.sunk.min() > 0.005
    heads = heads_of(target, result)
    for leg in MAP.legs:
        foot = heads[:, target.index(leg.end)]
        np.testing.assert_allclose(foot, result.feet[leg.name].ankles, atol=SOLVE)


def test_limits_are_held(figure):
    limits = {"limit": Hinge((1.0, 0.0, 0.0), 0.0, 0.3)}
    spread = {"limit": SwingTwist(Cone(0.3), (-0.2, 0.2))}
    narrow = bipeds.skeleton(shin_L=limits, shin_R=limits, upper_arm_L=spread, spine=spread)
    source = bipeds.source_of(figure, *bipeds.turns(figure, 30, size=2.0))
    result = retarget(MAP, TargetFigure.at_rest(narrow), source, FREE)
    batch = BatchLimits([joint.limit for joint in narrow.joints])
    assert batch.violations(np.ascontiguousarray(result.rotations.transpose(2, 1, 0))).max() < 1e-4


@pytest.mark.parametrize("settings", [FREE, RetargetSettings()])
def test_limits_of_toes_are_held(figure, settings):
    """Toes that may hardly bend, under a source whose toes bend a lot."""
    stiff = {"limit": Hinge((1.0, 0.0, 0.0), -0.05, 0.1)}
    target = bipeds.skeleton(toe_L=stiff, toe_R=stiff)
    source = bipeds.source_of(figure, *bipeds.turns(figure, 30, size=2.0))
    result = retarget(MAP, TargetFigure.at_rest(target), source, settings)
    limits = BatchLimits([joint.limit for joint in target.joints])
    off = limits.violations(np.ascontiguousarray(result.rotations.transpose(2, 1, 0)))
    assert off[[target.index(f"toe.{side}") for side in "LR"]].max() < 1e-4


def test_in_place_takes_the_mean_velocity_off(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, dataclasses.replace(FREE, in_place=True))
    hips = heads_of(target, result)[:, 0]
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
    found = heads_of(target, limb)
    own = source.heads[:, hand] - source.heads[:, shoulder]
    np.testing.assert_allclose(found[:, hand] - found[:, shoulder], 1.2 * own, atol=1e-4)
    np.testing.assert_allclose(heads_of(target, world)[:, hand], source.heads[:, hand], atol=1e-4)


def test_feet_without_toes_are_locked_at_their_ankles(figure):
    legs = tuple(dataclasses.replace(leg, tip="") for leg in MAP.legs)
    sources = {name: name for name in MAP.sources if not name.startswith("toe")}
    bare = dataclasses.replace(MAP, legs=legs, sources=sources)
    source = bipeds.source_of(figure, *sliding(figure))
    target = TargetFigure.at_rest(figure)
    result = retarget(bare, target, source)
    for side in "LR":
        ankle = heads_of(target, result)[:, figure.index(f"foot.{side}")]
        assert np.ptp(ankle, axis=0).max() < SOLVE
    assert measures(bare, target, source, result).turn < 0.1


def test_one_frame_and_two_are_enough(figure, moving):
    for count in (1, 2):
        source = bipeds.source_of(figure, moving[0][:count], moving[1][:count])
        result = retarget(MAP, TargetFigure.at_rest(figure), source)
        assert result.rotations.shape == (count, len(figure), 4)
        assert np.isfinite(measures(MAP, TargetFigure.at_rest(figure), source, result).jerk)


def test_hips_sink_for_a_foot_that_is_beside_them_farther_than_the_leg_is_long():
    """As far as the leg lets them, not for ever: level with a foot at 0.98 of its length."""
    aside = np.array((0.0, 0.3, 0.9, 1.0, 5.0))
    hips = np.tile((0.0, 0.0, 1.5), (5, 1))
    ankles = np.stack((0.6 * aside, 0.8 * aside, np.zeros(5)), axis=1)
    found = drops(hips, ankles, np.ones(5), np.ones(5))
    expected = [1.5 - math.sqrt(1.0 - min(each, 0.98) ** 2) for each in aside]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_an_envelope_is_nowhere_below_and_flat_where_values_are():
    rng = np.random.default_rng(0)
    values, times = np.maximum(0.0, rng.normal(size=200)), np.arange(200) / 30.0
    found = smooth_envelope(values, times, 0.3)
    assert (found >= values - 1e-12).all()
    assert np.abs(np.diff(found)).max() < 0.6 * np.abs(np.diff(values)).max()
    np.testing.assert_allclose(smooth_envelope(np.full(50, 0.4), times[:50], 0.3), 0.4)


def test_shortest_rotations_lead_from_one_vector_to_the_other():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 50, 3))
    b[0], b[1] = -a[0], 0.0
    for vector, other, rotation in zip(a, b, shortest(a, b), strict=True):
        seen = Quaternion(rotation) @ Vector(vector).normalized()
        wanted = Vector(other).normalized() if other.any() else Vector(vector).normalized()
        assert (seen - wanted).length < 1e-5


@pytest.mark.parametrize("degrees", [0.0, 40.0, -150.0, 180.0])
def test_the_heading_of_a_rotation_is_its_part_about_the_vertical(degrees):
    about = Quaternion((0.0, 0.0, 1.0), math.radians(degrees))
    tilted = about @ Quaternion((0.6, 0.8, 0.0), 0.7)
    assert abs(Quaternion(_heading(np.array(tilted))).dot(about)) == pytest.approx(1.0, abs=1e-6)
    upside_down = np.array((0.0, 0.6, 0.8, 0.0))  # a half turn about a level axis has none
    assert _heading(upside_down).tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sources": {}}, "at least hips and legs"),
        ({"hips": "pelvis"}, "the hips 'pelvis' follow nothing"),
        ({"legs": ()}, "no legs"),
        ({"head": "hat"}, "joint 'hat' follows nothing"),
    ],
)
def test_maps_that_make_no_sense_are_refused_by_name(changes, words):
    fields = {field.name: getattr(MAP, field.name) for field in dataclasses.fields(MAP) if field.init}
    with pytest.raises(InvalidInput, match=words):
        FigureMap(**{**fields, **changes})


def test_maps_that_do_not_fit_the_figures_are_refused_by_name(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(figure)
    wrong = dataclasses.replace(MAP, sources={**MAP.sources, "hand.L": "claw"})
    with pytest.raises(InvalidInput, match=r"no joint 'claw', which 'hand\.L' follows"):
        retarget(wrong, target, source)
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
    ("field", "value"), [("feet", 1.5), ("blend", -1.0), ("extension", 0.2), ("scale", np.nan)]
)
def test_settings_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(InvalidInput, match=f"^{field} must be"):
        RetargetSettings(**{field: value})


def test_default_thresholds_are_those_of_the_contacts_but_for_speed():
    assert RetargetSettings().thresholds == ContactThresholds(speed=1.0 / 3.0)


def stepping_in_place(figure, speeds, frames=80, cycle=40):
    """Feet that take turns on ground that moves ahead at these speeds of either, metres a second; 40 fps."""
    rotations, translations = bipeds.turns(figure, frames, size=0.0)
    translations[:] = 0.0
    source = bipeds.source_of(figure, rotations, translations, 40.0)
    heads = source.heads.copy()
    for side, start, speed in (("L", 0, speeds[0]), ("R", cycle // 2, speeds[1])):
        part = (np.arange(frames) + start) % cycle / cycle
        half = speed * 0.5 * cycle / 40.0
        ahead = np.where(part < 0.5, (2.0 * part - 0.5) * half, 0.5 * np.cos(2 * np.pi * (part - 0.5)) * half)
        up = np.where(part < 0.5, 0.0, 0.3 * np.sin(2 * np.pi * (part - 0.5)))
        toe = figure.index(f"toe.{side}")
        heads[:, toe, 1] += ahead
        heads[:, toe, 2] += up
    return dataclasses.replace(source, heads=heads)


def test_feet_that_slip_a_little_over_fast_ground_are_down(figure):
    """One slips by a fifth of its speed, which is more than a foot may on ground that stands still."""
    source = stepping_in_place(figure, (3.6, 4.4))
    found = find_stances(source, MAP, RetargetSettings().thresholds)
    slips = [abs(speed - found.velocity[1]) for speed in (3.6, 4.4)]
    assert max(slips) > RetargetSettings().thresholds.speed * leg_length(source, MAP, MAP.legs[0])
    for phases in found.phases.values():
        assert phases
        assert max(last - first for first, last in phases) >= 14


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
    heads, rest = heads_of(target, result), target.reference[0]
    errors = measures(figure_map, target, source, result).errors
    for leg in figure_map.legs:
        foot, hip = target.index(leg.end), target.index(leg.upper)
        np.testing.assert_allclose(heads[0, foot] - heads[0, hip], rest[foot] - rest[hip], atol=0.03)
        assert heads[0, foot, 2] == pytest.approx(rest[foot, 2], abs=0.03)
        assert errors[leg.name] < 0.06


def test_the_straightest_frame_is_the_one_that_stands_with_its_arms_stretched(figure, moving):
    rotations, translations = (each.copy() for each in moving)
    rotations[23] = (1.0, 0.0, 0.0, 0.0)
    assert straightest_frame(MAP, bipeds.source_of(figure, rotations, translations)) == 23


# Effectors ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_proportions(figure):
    """A source, and a target that stoops, with longer upper arms, shorter forearms and knees that are low."""
    given = bipeds.places()
    shifts = {"chest": (0.0, 0.06, -0.05), "head": (0.0, -0.05, -0.03)}
    for side, sign in (("L", 1.0), ("R", -1.0)):
        shifts[f"shin.{side}"] = (0.06 * sign, 0.0, -0.08)
        shifts[f"forearm.{side}"] = (0.06 * sign, 0.03, 0.0)
    moved = {}
    for name, (head, parent, tail) in given.items():
        moved[name] = head + Vector(shifts.get(name, (0.0, 0.0, 0.0))), parent, tail
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
        heads = heads_of(target, result)
        errors.append(effector.errors(target, heads, source, result.way))
        assert (name in measures(MAP, target, source, result).followed) is (value > 0.0)
    reached = errors[0] < 0.12  # not where it is farther than the limb is long
    assert errors[0].mean() > 0.005 and reached.mean() > 0.15
    assert np.median(errors[2][reached]) < 2e-3
    assert errors[1].mean() < 0.75 * errors[0].mean()


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
        heads.append(heads_of(target, result))
        pole = poles(MAP, target, source, settings)[limb.name]
        _, angle, off = pole.sides(target, heads[-1], source, result.way, limb.end)
        angles.append(np.abs(angle[off > 0.1]))
    assert min(map(len, angles)) > 3
    assert angles[0].max() > 0.02
    assert angles[1].max() < 1e-3
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


def test_a_foot_in_the_air_goes_down_with_the_hips_as_far_as_the_ground_lets_it():
    sole = Sole(
        np.array((0.1, 0.0, -0.08)),
        np.array((0.0, 0.0, -0.02)),
        np.array((-0.1, 0.0, -0.02)),
        None,
        np.array((0.0, 1.0, 0.0)),
        0.02,
    )
    ankles = np.array([(0.0, 0.0, 0.4), (0.0, 0.0, 0.11), (0.0, 0.0, 0.1), (0.0, 0.0, 0.4)])
    straight, none = np.tile((1.0, 0.0, 0.0, 0.0), (4, 1)), np.zeros(4)
    weights = np.array((0.0, 0.0, 1.0, 0.5))
    path = FootPath(ankles, straight, None, weights, weights, none)
    found = sunken(path, sole, np.full(4, 0.03)).ankles[:, 2]
    np.testing.assert_allclose(ankles[:, 2] - found, (0.03, 0.01, 0.0, 0.015), atol=1e-12)
