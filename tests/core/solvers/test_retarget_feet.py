"""Feet of a retargeted figure: locked where they are down, and never below the ground."""

from __future__ import annotations

import dataclasses
import math

import bipeds
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.limits.batch import BatchLimits
from ccd_rig.limits.shapes import Hinge
from ccd_rig.motion.contacts import LEVEL, Phase
from ccd_rig.motion.retargeting import feet, sole
from ccd_rig.motion.retargeting.feet import FootPath, carried, foot_path
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.motions import TargetFigure
from ccd_rig.motion.retargeting.rolling import Contacts
from ccd_rig.motion.retargeting.root import drops, smooth_envelope, smooth_shifts
from ccd_rig.motion.retargeting.settings import RetargetSettings
from ccd_rig.motion.retargeting.sole import Sole
from ccd_rig.motion.retargeting.stances import find_stances, leg_length
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)
MAP = bipeds.figure_map()
EXACT, SOLVE = 1e-9, 2e-5


@pytest.fixture(scope="module")
def figure():
    return bipeds.skeleton()


def sliding(figure, speed=0.05, frames=40, crouch=0.3):
    """A figure that crouches, both feet down, while all of it slides along X."""
    return posed(figure, {"thigh": -crouch, "shin": 2.0 * crouch, "foot": -crouch}, speed, frames)


def posed(figure, angles, speed=0.0, frames=40):
    """A figure with its legs' joints turned about X, radians by name, both feet down, sliding along X."""
    rotations, translations = bipeds.turns(figure, frames, size=0.0)
    for side in "LR":
        for name, angle in angles.items():
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
    heads = bipeds.heads_of(target, result)
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
    assert (found.moved_frames, found.moved) == (0, 0.0)
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


def test_a_foot_on_its_instep_lies_on_the_ground_with_ball_and_ankle():
    """Turned over about the axis across it, joints are lowest, and come up to the ground."""
    under, heel = np.array((0.0, 0.0, -0.02)), np.array((-0.1, 0.0, -0.02))
    toe = np.array((0.05, 0.0, -0.02))
    foot = Sole(np.array((0.1, 0.0, -0.08)), under, heel, toe, np.array((0.0, 1.0, 0.0)), 0.02)
    over = np.tile((0.0, 0.0, 1.0, 0.0), (9, 1))
    contacts = Contacts([], np.arange(9) / 30.0, np.zeros(3), np.zeros(0), 0.0, 0.1)
    ankles = np.tile((0.0, 0.0, -0.03), (9, 1))  # the ball is 8 cm above it now
    path = foot_path(ankles, (over, over), foot, contacts, 0.1)
    assert path.ankles[:, 2] == pytest.approx(np.zeros(9), abs=1e-12)
    assert np.abs(path.toes - over).max() < 1e-12  # toes that point back are not bent round


def test_toes_turn_up_without_a_step_while_a_foot_rolls_over_onto_its_instep():
    """From pointing up over ahead and down to straight back, 4 cm above the ground."""
    pitch = np.radians(np.arange(90.0, -180.0, -1.0))
    half = 0.5 * pitch[:, None]
    turned = np.concatenate((np.cos(half), np.sin(half) * (0.0, -1.0, 0.0)), axis=1)  # +X to +Z
    ahead, toe = np.tile((1.0, 0.0, 0.0), (len(pitch), 1)), np.array((0.1, 0.0, 0.0))
    angles = feet.missing_turn(turned, toe, ahead, np.full(len(pitch), -0.04))
    on_ground = -math.asin(0.4)
    below = (pitch < on_ground) & (pitch >= -0.5 * math.pi)
    assert angles[below] == pytest.approx(on_ground - pitch[below], abs=1e-9)
    assert angles[pitch > on_ground].max() == 0.0
    assert np.abs(np.diff(angles)).max() <= math.radians(1.0) * (1.0 + 1e-9)
    assert angles[-1] < math.radians(1.5)


def test_toes_go_round_with_a_foot_that_pivots_on_its_ball():
    """A dancer's turn, half round in a contact, heel up: toes stay flat, and ahead of the foot."""
    sole_ = Sole(
        ball=np.array((0.1, 0.0, -0.08)),
        under=np.array((0.0, 0.0, -0.02)),
        heel=np.array((-0.1, 0.0, -0.02)),
        toe=np.array((0.06, 0.0, -0.02)),
        across=np.array((0.0, 1.0, 0.0)),
        height=0.02,
    )
    yaw = math.pi * np.clip(np.arange(-10, 51) / 40.0, 0.0, 1.0)
    spin = np.stack((np.cos(0.5 * yaw), 0.0 * yaw, 0.0 * yaw, np.sin(0.5 * yaw)), axis=1)
    pitched = np.tile((math.cos(0.25), 0.0, math.sin(0.25), 0.0), (len(yaw), 1))  # half a radian down
    rotations = feet.product(spin, pitched)
    contacts = Contacts([Phase(5, 55)], np.arange(len(yaw)) / 30.0, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    ankles = (0.0, 0.0, 0.02) - feet.turned(rotations, sole_.ball)
    toes = foot_path(ankles, (rotations, rotations), sole_, contacts, 0.1).toes[5:56]
    tips = feet.turned(toes, sole_.toe)
    off = np.arctan2(tips[:, 1], tips[:, 0]) - yaw[5:56]
    assert np.abs(np.angle(np.exp(1j * off))).max() < math.radians(21.0)
    assert tips[:, 2] == pytest.approx(np.full(51, -0.02), abs=1e-9)
    steps = 2.0 * np.arccos(np.clip(np.abs((toes[1:] * toes[:-1]).sum(axis=1)), 0.0, 1.0))
    assert steps.max() < math.radians(180.0 / 40.0) * 1.01


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
    assert (-result.moved[:, 2]).min() > 0.005
    heads = bipeds.heads_of(target, result)
    for leg in MAP.legs:
        foot = heads[:, target.index(leg.end)]
        np.testing.assert_allclose(foot, result.feet[leg.name].ankles, atol=SOLVE)


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


def test_feet_without_toes_are_locked_at_their_ankles(figure):
    legs = tuple(dataclasses.replace(leg, tip="") for leg in MAP.legs)
    sources = {name: name for name in MAP.sources if not name.startswith("toe")}
    bare = dataclasses.replace(MAP, legs=legs, sources=sources)
    source = bipeds.source_of(figure, *sliding(figure))
    target = TargetFigure.at_rest(figure)
    result = retarget(bare, target, source)
    for side in "LR":
        ankle = bipeds.heads_of(target, result)[:, figure.index(f"foot.{side}")]
        assert np.ptp(ankle, axis=0).max() < SOLVE
    assert measures(bare, target, source, result).turn < 0.1


def test_hips_sink_for_a_foot_that_is_beside_them_farther_than_the_leg_is_long():
    """As far as the leg lets them, not for ever: level with a foot at 0.98 of its length."""
    aside = np.array((0.0, 0.3, 0.9, 1.0, 5.0))
    hips = np.tile((0.0, 0.0, 1.5), (5, 1))
    ankles = np.stack((0.6 * aside, 0.8 * aside, np.zeros(5)), axis=1)
    found = drops(hips, ankles, np.ones(5), np.ones(5))
    expected = [1.5 - math.sqrt(1.0 - min(each, 0.98) ** 2) for each in aside]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_hips_go_along_the_ground_where_legs_that_lie_are_too_short(figure):
    """A figure that sits with its legs ahead of it, its world a tenth larger than its legs are."""
    source = bipeds.source_of(figure, *posed(figure, {"thigh": -math.radians(80.0)}))
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, RetargetSettings(scale=1.1))
    heads = bipeds.heads_of(target, result)
    assert np.all(result.moved[:, 1] < -0.02)  # ahead is -Y
    found = measures(MAP, target, source, result)
    assert found.moved_frames == 40
    assert max(stance.drift for stance in found.stances) < SOLVE
    for leg in MAP.legs:
        ankles = heads[:, target.index(leg.end)]
        np.testing.assert_allclose(ankles, result.feet[leg.name].ankles, atol=SOLVE)


def test_shifts_to_both_sides_leave_the_rest_of_both():
    times = np.arange(30) / 30.0
    first, second = np.zeros((30, 2)), np.zeros((30, 2))
    first[:, 0], second[:, 0], second[10:20, 1] = 0.03, -0.01, 0.02
    found = smooth_shifts([first, second], times, 0.1)
    np.testing.assert_allclose(found[:, 0], 0.02, atol=1e-12)
    assert np.all(found[10:20, 1] >= 0.02 - 1e-12) and np.all(found[[0, -1], 1] == 0.0)


def test_a_foot_in_the_air_goes_with_the_hips_down_as_far_as_the_ground_lets_it():
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
    found = carried(path, sole, np.tile((0.01, 0.0, -0.03), (4, 1))).ankles
    np.testing.assert_allclose(ankles[:, 2] - found[:, 2], (0.03, 0.01, 0.0, 0.015), atol=1e-12)
    np.testing.assert_allclose(found[:, 0] - ankles[:, 0], (0.01, 0.01, 0.0, 0.005), atol=1e-12)


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


def test_an_envelope_is_nowhere_below_and_flat_where_values_are():
    rng = np.random.default_rng(0)
    values, times = np.maximum(0.0, rng.normal(size=200)), np.arange(200) / 30.0
    found = smooth_envelope(values, times, 0.3)
    assert (found >= values - 1e-12).all()
    assert np.abs(np.diff(found)).max() < 0.6 * np.abs(np.diff(values)).max()
    np.testing.assert_allclose(smooth_envelope(np.full(50, 0.4), times[:50], 0.3), 0.4)


@pytest.mark.parametrize("shortest", [0.1, 100.0])
@pytest.mark.parametrize("contacts", [True, False])
def test_feet_stand_on_the_ground_whatever_height_the_source_rests_at(figure, contacts, shortest):
    """Its root rests at the origin, as in many files: its feet are 0.95 m lower there than as it moves."""
    source = bipeds.source_of(figure, *sliding(figure))
    source = dataclasses.replace(source, reference_heads=source.reference_heads - np.array((0.0, 0.0, 0.95)))
    thresholds = dataclasses.replace(RetargetSettings().thresholds, shortest=shortest)
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, RetargetSettings(contacts=contacts, thresholds=thresholds))
    for side in "LR":
        ball = bipeds.heads_of(target, result)[:, figure.index(f"toe.{side}"), 2]
        np.testing.assert_allclose(ball, 0.02, atol=1e-3)
    found = measures(MAP, target, source, result)
    assert len(found.stances) == (2 if shortest < 1.0 else 0)
    assert found.hover < 1e-3 and found.penetration < 1e-3


@pytest.mark.parametrize("height", [0.05, -0.03])
def test_measures_tell_how_far_soles_are_above_the_ground_or_below_it(figure, height):
    """Of a figure that is never down, beside a rest that stands; feet are not kept on the ground."""
    source = bipeds.source_of(figure, *sliding(figure, speed=0.0))
    source = dataclasses.replace(source, heads=source.heads + np.array((0.0, 0.0, height)))
    thresholds = dataclasses.replace(RetargetSettings().thresholds, shortest=100.0)
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, RetargetSettings(contacts=False, thresholds=thresholds))
    found = measures(MAP, target, source, result)
    assert (found.hover, found.penetration) == pytest.approx((max(height, 0.0), max(-height, 0.0)), abs=1e-3)


def lifting_in_place(figure, frames=96, cycle=48):
    """Feet that take turns on ground that moves, the left at 1.4 and the right at 2 m/s or so; 30 fps.

    They rise by 5 cm in the last half of the time in which they go with the ground.
    """
    rotations, translations = bipeds.turns(figure, frames, size=0.0)
    translations[:] = 0.0
    source = bipeds.source_of(figure, rotations, translations, 30.0)
    heads = source.heads.copy()
    for side, start, speed in (("L", 0, 1.4), ("R", cycle // 2, 2.0)):
        part = (np.arange(frames) + start) % cycle / cycle
        down = 2.0 * part
        slip = 0.1 * np.sin(2.0 * np.pi * down) / (2.0 * np.pi)
        back, half = down - 0.5 + slip, speed * 0.5 * cycle / 30.0
        swing = np.cos(2.0 * np.pi * (part - 0.5)) * 0.5
        up = np.where(part < 0.5, 0.05 * np.clip(2.0 * down - 1.0, 0.0, 1.0) ** 2, 0.0)
        up = np.where(part < 0.5, up, 0.05 * (2.0 - down) + 0.2 * np.sin(np.pi * (down - 1.0)))
        toe = figure.index(f"toe.{side}")
        heads[:, toe, 1] += np.where(part < 0.5, back, swing) * half
        heads[:, toe, 2] += up
    return dataclasses.replace(source, heads=heads)


def test_contacts_of_both_feet_in_place_are_as_long_although_they_slip(figure):
    source = lifting_in_place(figure)
    found = find_stances(source, MAP, RetargetSettings().thresholds)
    assert found.velocity == pytest.approx([0.0, 1.7, 0.0], abs=0.25)
    longest = [max(last - first + 1 for first, last in phases) for phases in found.phases.values()]
    assert min(longest) >= 12 and max(longest) - min(longest) <= 4


def test_a_foot_is_not_held_down_while_the_sources_is_up(figure):
    """Above the middle height of the contact by more than what tells two levels of the ground apart."""
    source = lifting_in_place(figure)
    thresholds = RetargetSettings().thresholds
    found = find_stances(source, MAP, thresholds)
    for leg in MAP.legs:
        heights = source.heads[:, figure.index(leg.tip), 2]
        assert found.phases[leg.name]
        for first, last in found.phases[leg.name]:
            rows = heights[first : last + 1]
            most = LEVEL * thresholds.height * leg_length(source, MAP, leg)
            assert max(rows[0], rows[-1]) - np.median(rows) <= most
