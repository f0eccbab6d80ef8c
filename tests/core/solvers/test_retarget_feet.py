"""Feet of a retargeted figure: locked where they are down, as they roll, and never below the ground."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc

import bipeds
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.limits.shapes import BatchLimits, Hinge
from ccd_rig.maths import batch
from ccd_rig.motion.contacts import LEVEL, Phase
from ccd_rig.motion.retargeting import feet, stances
from ccd_rig.motion.retargeting.feet import (
    MOST_ROLL,
    OVER,
    Contacts,
    FootPath,
    Hold,
    Sole,
    SolePart,
    carried,
    drops,
    foot_path,
    rolled,
    smooth_envelope,
    smooth_shifts,
)
from ccd_rig.motion.retargeting.figures import TargetFigure, leg_length, turned
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.stances import find_stances
from ccd_rig.motion.settings import RetargetSettings
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)
MAP = bipeds.figure_map()
EXACT, SOLVE = 1e-9, 2e-5
ACROSS = np.array((0.0, 1.0, 0.0))


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
    outcome = measures(MAP, target, source, result)
    assert max(stance.drift for stance in outcome.stances) < SOLVE
    assert min(stance.source_slide for stance in outcome.stances) == pytest.approx(0.05, rel=1e-6)
    assert outcome.penetration < SOLVE and outcome.flipped == 0 and outcome.broken == 0
    assert (outcome.moved_frames, outcome.moved) == (0, 0.0)
    # Only where feet are free they are to follow: here nowhere.
    assert outcome.errors["left leg"] == outcome.errors["right leg"] == 0.0


@pytest.mark.parametrize(("toe", "lowest"), [(None, -0.02), ((0.2, 0.0, -0.05), -0.2)])
def test_toes_that_point_down_are_lowest(toe, lowest):
    """Foot level, toes turned down by a right angle."""
    under, heel = np.array((0.0, 0.0, -0.02)), np.array((-0.1, 0.0, -0.02))
    end = None if toe is None else np.array(toe)
    sole_ = Sole(np.array((0.1, 0.0, -0.08)), under, heel, end, ACROSS, ACROSS, 0.02)
    level = np.array([[1.0, 0.0, 0.0, 0.0]] * 2)
    down = np.array([[math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0]] * 2)  # +X to -Z
    balls = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(feet._lowest(balls, level, down, sole_), [lowest, 1.0 + lowest], atol=1e-12)


def test_a_foot_on_its_instep_lies_on_the_ground_with_ball_and_ankle():
    """Turned over about the axis across it, joints are lowest, and come up to the ground."""
    under, heel = np.array((0.0, 0.0, -0.02)), np.array((-0.1, 0.0, -0.02))
    toe = np.array((0.05, 0.0, -0.02))
    foot = Sole(np.array((0.1, 0.0, -0.08)), under, heel, toe, ACROSS, ACROSS, 0.02)
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


PAW = Sole(
    ball=np.array((0.1, 0.0, -0.08)),
    under=np.array((0.0, 0.0, -0.02)),
    heel=np.array((-0.1, 0.0, -0.02)),
    toe=np.array((0.06, 0.0, -0.02)),
    across_toe=ACROSS,
    across=ACROSS,
    height=0.02,
)


def test_toes_go_round_with_a_foot_that_pivots_on_its_ball():
    """A dancer's turn, half round in a contact, heel up: toes stay flat, and ahead of the foot."""
    yaw = math.pi * np.clip(np.arange(-10, 51) / 40.0, 0.0, 1.0)
    spin = np.stack((np.cos(0.5 * yaw), 0.0 * yaw, 0.0 * yaw, np.sin(0.5 * yaw)), axis=1)
    pitched = np.tile((math.cos(0.25), 0.0, math.sin(0.25), 0.0), (len(yaw), 1))  # half a radian down
    rotations = feet.product(spin, pitched)
    contacts = Contacts([Phase(5, 55)], np.arange(len(yaw)) / 30.0, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    ankles = (0.0, 0.0, 0.02) - feet.turned(rotations, PAW.ball)
    toes = foot_path(ankles, (rotations, rotations), PAW, contacts, 0.1).toes[5:56]
    tips = feet.turned(toes, PAW.toe)
    off = np.arctan2(tips[:, 1], tips[:, 0]) - yaw[5:56]
    assert np.abs(np.angle(np.exp(1j * off))).max() < math.radians(21.0)
    assert tips[:, 2] == pytest.approx(np.full(51, -0.02), abs=1e-9)
    steps = 2.0 * np.arccos(np.clip(np.abs((toes[1:] * toes[:-1]).sum(axis=1)), 0.0, 1.0))
    assert steps.max() < math.radians(180.0 / 40.0) * 1.01


def test_toes_that_slope_steeply_lie_flat_while_the_heel_is_up():
    """Toes as short as their ball is high, as in many files: raised with the foot they lead back below it."""
    steep = dataclasses.replace(PAW, toe=np.array((0.02, 0.0, -0.03)), height=0.03, under=np.zeros(3))
    half = 0.5 * np.radians(np.interp(np.arange(41), (5, 20, 35), (0.0, 70.0, 0.0)))  # the heel goes up
    rotations = np.stack((np.cos(half), 0.0 * half, np.sin(half), 0.0 * half), axis=1)
    contacts = Contacts([Phase(0, 40)], np.arange(41) / 30.0, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    assert turned(rotations, steep.toe)[20, 0] < -0.01
    tips = turned(feet.flat_toes(rotations, rotations, steep, contacts, 0.15), steep.toe)
    np.testing.assert_allclose(tips, np.tile(steep.toe, (41, 1)), atol=1e-9)


def largest_step(rotations):
    """Radians, from frame to frame."""
    return 2.0 * np.arccos(np.clip(np.abs((rotations[1:] * rotations[:-1]).sum(axis=1)), 0.0, 1.0)).max()


def test_toes_of_a_foot_that_sinks_into_the_ground_are_not_bent_up():
    """A paw presses itself 6 cm into the ground before a jump, its toes level: it is lifted, toes and all."""
    times = np.arange(41) / 24.0
    level = np.tile((1.0, 0.0, 0.0, 0.0), (41, 1))
    ankles = np.zeros((41, 3))
    ankles[:, 2] = 0.1 - 0.06 * np.clip(1.0 - np.abs(np.arange(41) - 20) / 2.0, 0.0, 1.0)
    contacts = Contacts([Phase(0, 15)], times, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    path = foot_path(ankles, (level, level), PAW, contacts, 0.15)
    assert largest_step(path.toes) < 1e-9
    ends = path.ankles + turned(path.feet, PAW.ball) + turned(path.toes, PAW.toe)
    assert ends[:, 2].min() > -1e-9


@pytest.mark.parametrize(("roll", "is_flat"), [(0.0, True), (25.0, True), (65.0, False), (110.0, False)])
def test_toes_of_a_foot_that_lies_on_its_side_stay_as_they_are(roll, is_flat):
    """A body that has fallen: its feet lie rolled over, and their toes are not turned to the ground."""
    times, half = np.arange(41) / 24.0, 0.5 * math.radians(roll)
    rolled_over = np.tile((math.cos(half), math.sin(half), 0.0, 0.0), (41, 1))
    pitch = Quaternion((0.0, 1.0, 0.0), 0.4)
    toes = feet.product(rolled_over, np.tile(pitch[:], (41, 1)))
    contacts = Contacts([Phase(20, 40)], times, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    made = feet.flat_toes(toes, rolled_over, PAW, contacts, 0.15)
    tips = turned(made, PAW.toe)
    if is_flat:
        assert tips[20:, 2] == pytest.approx(np.full(21, -PAW.height), abs=1e-8)
    else:
        np.testing.assert_allclose(np.abs(made), np.abs(toes), atol=1e-9)
    assert largest_step(made[20:]) < 1e-6


def test_toes_that_point_into_the_ground_tell_no_lower_ground():
    """A body that crawls: after a contact the foot stands on end, its toes 6 cm below the ground."""
    times, half = np.arange(41) / 24.0, 0.25 * math.pi * np.clip((np.arange(41) - 15) / 8.0, 0.0, 1.0)
    on_end = np.stack((np.cos(half), 0.0 * half, np.sin(half), 0.0 * half), axis=1)
    contacts = Contacts([Phase(0, 15)], times, np.zeros(3), np.array([0.0]), 0.0, 0.03)
    ankles = (0.0, 0.0, 0.02) - turned(on_end, PAW.ball)
    path = foot_path(ankles, (on_end, on_end), PAW, contacts, 0.15)
    assert path.ground == pytest.approx(np.zeros(41), abs=1e-12)
    balls = path.ankles + turned(path.feet, PAW.ball)
    assert (balls + turned(path.toes, PAW.toe))[:, 2].min() > -1e-9


@pytest.mark.parametrize(("pitch", "is_flat"), [(60.0, True), (95.0, True), (150.0, False)])
def test_toes_of_a_foot_that_lies_on_its_instep_are_not_bent_round(pitch, is_flat):
    """A body that lies prone: its feet point back. One that kneels on its toes bends them."""
    times, half = np.arange(31) / 24.0, 0.5 * math.radians(pitch)
    over = np.tile((math.cos(half), 0.0, math.sin(half), 0.0), (31, 1))
    contacts = Contacts([Phase(0, 30)], times, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    made = feet.flat_toes(over, over, PAW, contacts, 0.15)
    wanted = np.tile(PAW.toe, (31, 1)) if is_flat else turned(over, PAW.toe)
    np.testing.assert_allclose(turned(made, PAW.toe), wanted, atol=1e-9)


def test_frames_beside_a_contact_do_not_tell_that_a_foot_lies_on_its_instep():
    """It is turned by 90 degrees while it is down, two frames, and by 175 before and after."""
    half = np.full(31, 0.5 * math.radians(175.0))
    half[15:17] = 0.25 * math.pi
    over = np.stack((np.cos(half), 0.0 * half, np.sin(half), 0.0 * half), axis=1)
    contacts = Contacts([Phase(15, 16)], np.arange(31) / 24.0, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    made = turned(feet.flat_toes(over, over, PAW, contacts, 0.15), PAW.toe)
    np.testing.assert_allclose(made[15:17], np.tile(PAW.toe, (2, 1)), atol=1e-9)


def gets_up(tilts, phases):
    """Bends (F,) of toes against their foot, and turns (F - 1,) of both from frame to frame, of a foot
    tilted ahead by degrees (F,) whose own toes go with it; 30 fps."""
    feet_, times = pitched(-np.radians(tilts)), np.arange(len(tilts)) / 30.0
    heights = np.zeros(len(phases))
    contacts = Contacts([Phase(*each) for each in phases], times, np.zeros(3), heights, 0.0, 0.1)
    path = foot_path((0.0, 0.0, 0.02) - turned(feet_, PAW.ball), (feet_, feet_), PAW, contacts, 0.15)
    return (
        batch.angles_between(path.toes, path.feet, -1),
        batch.angles_between(path.toes[1:], path.toes[:-1], -1),
        batch.angles_between(feet_[1:], feet_[:-1], -1),
    )


def test_toes_are_never_bent_farther_than_where_they_still_lie_flat():
    """A body that lay prone gets up, its foot on its instep first: what counts is how it is tilted now."""
    bends, turns, own = gets_up(np.interp(np.arange(60), (0, 9, 45), (150.0, 150.0, 60.0)), [(9, 59)])
    assert np.degrees(bends.max()) < 101.0
    assert bends[50] == pytest.approx(math.radians(60.0), abs=1e-6)  # and then they do
    gain = 1.0 + OVER[1] / (OVER[1] - OVER[0])
    assert turns.max() < gain * own.max()


def test_toes_of_a_foot_behind_a_kneeling_body_do_not_flick_between_contacts():
    """Two contacts five frames apart, the foot tilted by more than toes bend in the first and at the
    beginning of the second; faster than foot and fade they do not turn."""
    tilts = np.interp(np.arange(50), (0, 4, 9, 20, 49), (140.0, 137.0, 124.0, 108.0, 80.0))
    bends, turns, own = gets_up(tilts, [(0, 3), (9, 49)])
    assert np.degrees(bends.max()) < 101.0
    fade = 1.5 * bends[9] / 6.0  # what a smooth step over these frames turns in one at most
    assert turns[3:9].max() < fade + 2.0 * own[3:9].max()
    assert np.degrees(bends[:9].max()) < 60.0


def test_a_foot_that_stands_on_its_toes_may_lie_down():
    """A cat's, whose ankle is 12 cm above its ball: as it sits, the ankle comes down to the ground."""
    ankle = np.array((-0.03, 0.0, 0.1))
    heel = feet.heel_from_ball(ankle, -0.02, 0.3)
    np.testing.assert_array_equal(heel, ankle)
    human = feet.heel_from_ball(np.array((-0.1, 0.0, 0.08)), -0.02, 0.3)
    np.testing.assert_allclose(human, (-0.13, 0.0, -0.02))
    # A joint of the toes below the ankle of a long leg, as in many files, makes no animal of a figure.
    np.testing.assert_allclose(feet.heel_from_ball(ankle, -0.02, 0.85), (-0.039, 0.0, -0.02))
    hind = dataclasses.replace(PAW, ball=-ankle, heel=heel)
    assert hind.stands_on_toes and not PAW.stands_on_toes
    times, lying = np.arange(31) / 24.0, math.atan2(0.1, 0.03) + math.atan2(0.02, 0.1)
    half = -0.5 * np.interp(np.arange(31), (5, 20), (0.0, lying + 0.1))
    rotations = np.stack((np.cos(half), 0.0 * half, np.sin(half), 0.0 * half), axis=1)
    level = np.tile((1.0, 0.0, 0.0, 0.0), (31, 1))
    contacts = Contacts([Phase(0, 30)], times, np.zeros(3), np.array([0.0]), 0.0, 0.1)
    balls = (0.0, 0.0, 0.02)
    path = foot_path(balls - turned(rotations, hind.ball), (rotations, level), hind, contacts, 0.15)
    np.testing.assert_allclose(path.feet[:15], rotations[:15], atol=1e-9)
    assert path.ankles[0, 2] == pytest.approx(0.12)
    assert path.ankles[-1, 2] == pytest.approx(0.0, abs=1e-9)
    ones = np.ones(31)
    hips = np.add(path.ankles, (0.0, 0.0, 0.5))
    assert rolled(path, hind, hips, 0.49 * ones) is path  # its slope is not changed for a leg that is short


def locked_foot(fps):
    """A foot that slows down, slides on and speeds up, locked where it is slow: its own way, and the path."""
    times = np.arange(2 * fps) / fps
    speed = 2.0 * np.clip(np.abs(times - 1.0) - 0.3, 0.0, 1.0) + 0.1
    x = np.cumsum(speed) / fps
    ankles = np.stack((x, np.zeros(len(x)), np.full(len(x), 0.1)), axis=1)
    under, heel = np.array((0.0, 0.0, -0.02)), np.array((-0.1, 0.0, -0.02))
    sole = Sole(np.array((0.1, 0.0, -0.08)), under, heel, None, None, ACROSS, 0.02)
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
    outcome = feet._toes(size * foot, size * np.array(tail))
    expected = toes or tuple(feet.TOES * foot * (1.0, 1.0, 0.0))
    np.testing.assert_allclose(outcome, size * np.array(expected), atol=size * EXACT)


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


def test_hips_do_not_sink_into_the_ground_for_a_leg_that_is_far_too_short(figure):
    """The right leg is a tenth as long as the left, which stands on higher ground: its foot is in the air."""
    given = bipeds.places()
    top = given["thigh.R"][0]
    for name in ("thigh", "shin", "foot", "toe"):
        head, parent, tail = given[f"{name}.R"]
        given[f"{name}.R"] = (top + 0.1 * (head - top), parent, top + 0.1 * (tail - top))
    source = bipeds.source_of(figure, *sliding(figure, speed=0.0, crouch=0.1))
    target = TargetFigure.at_rest(bipeds.skeleton(given))
    result = retarget(MAP, target, source)
    heads = bipeds.heads_of(target, result)
    ground = result.feet["left leg"].ground
    assert (ground > result.feet["right leg"].ground + 0.5).all()
    hips = heads[:, target.index("thigh.L"), 2] - ground
    before = hips - result.moved[:, 2]
    assert before.min() > 0.4
    assert hips == pytest.approx(0.5 * before, abs=1e-6)


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
    outcome = drops(hips, ankles, np.ones(5), np.ones(5))
    expected = [1.5 - math.sqrt(1.0 - min(each, 0.98) ** 2) for each in aside]
    np.testing.assert_allclose(outcome, expected, atol=1e-9)


def test_hips_go_along_the_ground_where_legs_that_lie_are_too_short(figure):
    """A figure that sits with its legs ahead of it, its world a tenth larger than its legs are."""
    source = bipeds.source_of(figure, *posed(figure, {"thigh": -math.radians(80.0)}))
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, RetargetSettings(scale=1.1))
    heads = bipeds.heads_of(target, result)
    assert np.all(result.moved[:, 1] < -0.02)  # ahead is -Y
    outcome = measures(MAP, target, source, result)
    assert outcome.moved_frames == 40
    assert max(stance.drift for stance in outcome.stances) < SOLVE
    for leg in MAP.legs:
        ankles = heads[:, target.index(leg.end)]
        np.testing.assert_allclose(ankles, result.feet[leg.name].ankles, atol=SOLVE)


def test_shifts_to_both_sides_leave_the_rest_of_both():
    times = np.arange(30) / 30.0
    first, second = np.zeros((30, 2)), np.zeros((30, 2))
    first[:, 0], second[:, 0], second[10:20, 1] = 0.03, -0.01, 0.02
    outcome = smooth_shifts([first, second], times, 0.1)
    np.testing.assert_allclose(outcome[:, 0], 0.02, atol=1e-12)
    assert np.all(outcome[10:20, 1] >= 0.02 - 1e-12) and np.all(outcome[[0, -1], 1] == 0.0)


def test_a_foot_in_the_air_goes_with_the_hips_down_as_far_as_the_ground_lets_it():
    sole = Sole(
        np.array((0.1, 0.0, -0.08)),
        np.array((0.0, 0.0, -0.02)),
        np.array((-0.1, 0.0, -0.02)),
        None,
        None,
        ACROSS,
        0.02,
    )
    ankles = np.array([(0.0, 0.0, 0.4), (0.0, 0.0, 0.11), (0.0, 0.0, 0.1), (0.0, 0.0, 0.4)])
    straight, none = np.tile((1.0, 0.0, 0.0, 0.0), (4, 1)), np.zeros(4)
    weights = np.array((0.0, 0.0, 1.0, 0.5))
    path = FootPath(ankles, straight, None, weights, weights, none)
    outcome = carried(path, sole, np.tile((0.01, 0.0, -0.03), (4, 1))).ankles
    np.testing.assert_allclose(ankles[:, 2] - outcome[:, 2], (0.03, 0.01, 0.0, 0.015), atol=1e-12)
    np.testing.assert_allclose(outcome[:, 0] - ankles[:, 0], (0.01, 0.01, 0.0, 0.005), atol=1e-12)


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
    outcome = find_stances(source, MAP, RetargetSettings().thresholds)
    slips = [abs(speed - outcome.velocity[1]) for speed in (3.6, 4.4)]
    assert max(slips) > RetargetSettings().thresholds.speed * leg_length(source, MAP, MAP.legs[0])
    for phases in outcome.phases.values():
        assert phases
        assert max(last - first for first, last in phases) >= 14


def test_an_envelope_is_nowhere_below_and_flat_where_values_are():
    rng = np.random.default_rng(0)
    values, times = np.maximum(0.0, rng.normal(size=200)), np.arange(200) / 30.0
    outcome = smooth_envelope(values, times, 0.3)
    assert (outcome >= values - 1e-12).all()
    assert np.abs(np.diff(outcome)).max() < 0.6 * np.abs(np.diff(values)).max()
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
    outcome = measures(MAP, target, source, result)
    assert len(outcome.stances) == (2 if shortest < 1.0 else 0)
    assert outcome.hover < 1e-3 and outcome.penetration < 1e-3


@pytest.mark.parametrize("rate", [0.6, 0.0, -0.6])
def test_a_figure_in_a_lift_starts_or_ends_at_the_ground_with_free_feet(figure, rate):
    """At a steady rate, five seconds long; in one frame it is 0.3 m too low, by noise."""
    source = bipeds.source_of(figure, *sliding(figure, speed=0.0, frames=150))
    heads = source.heads + (rate * source.times)[:, None, None] * (0.0, 0.0, 1.0)
    heads[70, :, 2] -= 0.3
    rests = source.reference_heads - np.array((0.0, 0.0, 0.95))
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, dataclasses.replace(source, heads=heads, reference_heads=rests), FREE)
    balls = bipeds.heads_of(target, result)[:, figure.index("toe.L"), 2]
    shortest = FREE.thresholds.shortest  # of a contact, which feet have at least at the ground
    assert -abs(rate) * shortest - 1e-3 <= np.delete(balls, 70).min() - 0.02 <= 1e-3


@pytest.mark.parametrize("height", [0.05, -0.03])
def test_measures_tell_how_far_soles_are_above_the_ground_or_below_it(figure, height):
    """Of a figure that is never down, beside a rest that stands; feet are not kept on the ground."""
    source = bipeds.source_of(figure, *sliding(figure, speed=0.0))
    source = dataclasses.replace(source, heads=source.heads + np.array((0.0, 0.0, height)))
    thresholds = dataclasses.replace(RetargetSettings().thresholds, shortest=100.0)
    target = TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source, RetargetSettings(contacts=False, thresholds=thresholds))
    outcome = measures(MAP, target, source, result)
    assert (outcome.hover, outcome.penetration) == pytest.approx(
        (max(height, 0.0), max(-height, 0.0)), abs=1e-3
    )


def test_a_foot_that_leaves_the_ground_downwards_is_told_as_below_it(figure):
    """At the end of a clip a figure steps down, and no contact tells a lower ground there."""
    source = bipeds.source_of(figure, *sliding(figure, speed=0.0))
    heads = source.heads.copy()
    heads[37:] -= 0.07 * np.arange(1, 4)[:, None, None] * np.array((0.0, 0.0, 1.0))
    source, target = dataclasses.replace(source, heads=heads), TargetFigure.at_rest(figure)
    result = retarget(MAP, target, source)
    balls = bipeds.heads_of(target, result)[:, figure.index("toe.L"), 2]
    outcome = measures(MAP, target, source, result)
    assert outcome.ground == 0.0 and balls.min() < -0.1
    assert outcome.penetration == pytest.approx(0.02 - balls.min(), abs=1e-3)


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
    outcome = find_stances(source, MAP, RetargetSettings().thresholds)
    assert outcome.velocity == pytest.approx([0.0, 1.7, 0.0], abs=0.25)
    longest = [max(last - first + 1 for first, last in phases) for phases in outcome.phases.values()]
    assert min(longest) >= 12 and max(longest) - min(longest) <= 4


def test_a_foot_is_not_held_down_while_the_sources_is_up(figure):
    """Above the middle height of the contact by more than what tells two levels of the ground apart."""
    source = lifting_in_place(figure)
    thresholds = RetargetSettings().thresholds
    outcome = find_stances(source, MAP, thresholds)
    for leg in MAP.legs:
        heights = source.heads[:, figure.index(leg.tip), 2]
        assert outcome.phases[leg.name]
        for first, last in outcome.phases[leg.name]:
            rows = heights[first : last + 1]
            most = LEVEL * thresholds.height * leg_length(source, MAP, leg)
            assert max(rows[0], rows[-1]) - np.median(rows) <= most


def rolling_foot(fps=120):
    """A foot that lands on its heel, lies flat, rolls over its ball and leaves by its toes, while all of it
    slides ahead at 8 cm a second: world points of heel, ball and toes by time, the path, and the sole."""
    times = np.arange(int(1.2 * fps)) / fps
    sole = Sole(
        np.array((0.12, 0.0, -0.08)),
        np.array((0.0, 0.0, -0.02)),
        np.array((-0.16, 0.0, -0.02)),
        np.array((0.06, 0.0, -0.02)),
        ACROSS,
        ACROSS,
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
    outcome = {
        SolePart.HEEL: ball + turned(path.feet, sole.heel),
        SolePart.BALL: ball,
        SolePart.TOES: ball + turned(path.toes, sole.toe),
    }
    for part, first, last in path.holds:
        assert times[last] - times[first] > 0.12, part
        rows = slice(first, last + 1)
        assert np.ptp(own[part][rows, 0]) > 0.01
        assert np.ptp(outcome[part][rows], axis=0).max() < 1e-9, part
    first, last = path.holds[1][1:]
    assert np.ptp(outcome[SolePart.TOES][first : last + 1], axis=0).max() < 1e-9
    assert min(point[:, 2].min() for point in outcome.values()) > -1e-6


def test_toes_that_would_dip_into_the_ground_are_raised_for_no_longer_than_that_takes():
    """A foot in the air comes down for a tenth of a second, its toes pointing down; the blend is 0.2 s."""
    times = np.arange(241) / 120
    point = np.array((0.06, 0.0, -0.02))
    sole = Sole(np.zeros(3), np.array((0.0, 0.0, -0.02)), np.zeros(3), point, ACROSS, ACROSS, 0.02)
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
    assert (nearer[ahead] < distances[ahead]).all() and (nearer >= distances - 0.01 - 1e-9).all()


def rolls_by_angle(path, sole, hips, angles):
    """(angles, F) from hips to ankles, of feet turned about their balls by angles (angles, 1 or F): heels go
    up."""
    balls = path.ankles + turned(path.feet, sole.ball)
    x, y, z = -np.array([spun(foot, sole.ball) for foot in path.feet]).T
    cosine, sine = np.cos(angles), np.sin(angles)
    ankles = np.stack(np.broadcast_arrays(cosine * x + sine * z, y, cosine * z - sine * x), 2)
    return np.linalg.norm(balls + ankles - hips, axis=2)


@pytest.mark.parametrize("seed", range(6))
def test_a_raised_heel_never_takes_the_ankle_farther_from_the_hip(seed):
    """Hips all around, far behind the foot too; compared with the distances at all angles."""
    rng = np.random.default_rng(seed)
    *_, sole, _ = rolling_foot()
    feet, ankles = pitched(rng.uniform(-1.2, -0.1, 400)), np.tile((0.0, 0.0, 0.12), (400, 1))
    hips = ankles + rng.normal(size=(400, 3)) * (0.6, 0.2, 0.3) + (0.0, 0.0, 0.5)
    path = FootPath(ankles, feet, None, np.ones(400), rng.choice((1.0, 0.4), 400), np.zeros(400))
    before = np.linalg.norm(ankles - hips, axis=1)
    reach = before - rng.uniform(0.001, 0.1, 400)
    outcome = np.linalg.norm(rolled(path, sole, hips, reach).ankles - hips, axis=1)
    assert (outcome <= before + 1e-9).all()
    angles = MOST_ROLL * np.linspace(-1.0, 1.0, 401)
    possible = rolls_by_angle(path, sole, hips, angles[:, None])
    # Where the ankle has come nearer for as far already, it goes on to the reach, or as near as it gets, or
    # up to where least squares of the missing part and half the ankle's way are least on a straight line.
    heel_up = (ankles + turned(feet, sole.ball) + turned(feet, sole.heel))[:, 2] > 0.2 * 0.17
    falling = (np.diff(possible[:201], axis=0) < 0.0).all(0) & heel_up & (path.borne == 1.0)
    assert falling.sum() > 20 and (before < possible[201] - 1e-4).sum() > 20
    lever = (possible[199] - possible[201]) / (angles[201] - angles[199])
    half = 0.5 * np.hypot(sole.ball[0], sole.ball[2])
    damped = np.array(
        [
            np.linalg.lstsq([[lever[k]], [half]], [before[k] - reach[k], 0.0], rcond=None)[0][0]
            for k in range(400)
        ]
    )
    till = rolls_by_angle(path, sole, hips, np.linspace(0.0, np.clip(damped, 0.0, MOST_ROLL), 50))
    best = np.maximum(till.min(0), reach)
    np.testing.assert_allclose(outcome[falling], best[falling], atol=1e-5)
    is_damped = outcome > np.maximum(possible[200:].min(0), reach) + 1e-4
    assert (falling & is_damped).sum() > 5 and (falling & ~is_damped).sum() > 5


def test_a_heel_goes_up_without_a_leap_while_the_hip_comes_over_the_foot():
    """A leg that is too short all the time; the hip goes from far behind the foot to far ahead of it."""
    *_, sole, _ = rolling_foot()
    hips = np.column_stack((np.linspace(-1.5, 1.5, 3001), np.full((3001, 2), (0.05, 0.6))))
    feet, ankles = np.repeat(pitched(np.array((-0.5,))), 3001, axis=0), np.tile((0.0, 0.0, 0.12), (3001, 1))
    path = FootPath(ankles, feet, None, np.ones(3001), np.ones(3001), np.zeros(3001))
    outcome = rolled(path, sole, hips, np.full(3001, 0.3))
    angles = 2.0 * np.arccos(np.clip(np.abs((outcome.feet * feet).sum(1)), 0.0, 1.0))
    assert angles[0] < 1e-6 and angles[-1] == pytest.approx(MOST_ROLL, abs=1e-6)
    assert np.abs(np.diff(angles)).max() < 0.01  # a millimetre of the hip's way each


@pytest.mark.parametrize("seed", range(3))
def test_a_foot_that_stands_does_not_rock_for_a_millimetre_that_the_leg_lacks(seed):
    """The ankle is nearly above the ball. The hip trembles by 2 mm, as captured motion does; 60 fps."""
    rng = np.random.default_rng(seed)
    ball, ones = np.array((0.03, 0.0, -0.07)), np.ones(120)
    sole = Sole(ball, np.array((0.0, 0.0, -0.02)), np.array((-0.04, 0.0, -0.02)), None, None, ACROSS, 0.02)
    ankles, feet = np.tile((0.0, 0.0, 0.09), (120, 1)), pitched(np.full(120, -0.2))
    hips = ankles + (0.02, 0.05, 0.8) + np.cumsum(rng.normal(size=(120, 3)), axis=0) * 5e-4
    path = FootPath(ankles, feet, None, ones, ones, 0.0 * ones)
    distances = np.linalg.norm(ankles - hips, axis=1)
    outcome = rolled(path, sole, hips, np.full(120, np.median(distances)))
    # The ankle moves no farther than the hip's distance changes.
    steps = np.linalg.norm(np.diff(outcome.ankles, axis=0), axis=1)
    assert steps.max() > 1e-5 and steps.max() < np.abs(np.diff(distances)).max(), steps.max()


def test_heels_and_toes_that_a_source_rolls_on_are_found():
    """Read from the source: its heel is down before its ball, and the end of its toes after it."""
    figure = bipeds.skeleton()
    balls, (feet, toes), _, sole, times = rolling_foot()
    plain = bipeds.source_of(figure, *bipeds.turns(figure, len(times), size=0.0), 120.0)
    heads, turns = plain.heads.copy(), plain.rotations.copy()
    foot, toe = figure.index("foot.L"), figure.index("toe.L")
    heads[:, toe], heads[:, foot] = balls, balls - turned(feet, sole.ball)
    turns[:, toe], turns[:, foot] = toes, feet
    source = dataclasses.replace(plain, heads=heads, rotations=turns)
    outcome = find_stances(source, bipeds.figure_map(), RetargetSettings().thresholds)
    ((heel, tip),) = outcome.rolls["left leg"]
    (phase,) = outcome.phases["left leg"]
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
    outcome = contacts.followed(far).rolls
    assert [list(each) for each in outcome] == [[Hold(SolePart.HEEL, 4, 4), Hold(SolePart.TOES, 9, 10)]]
    far[[4, 9]] = True
    assert [list(each) for each in contacts.followed(far).rolls] == [[]]


def test_a_rolling_foot_goes_on_without_a_jump_where_another_point_takes_over():
    """From frame to frame the ankle's speed changes no more than where the foot's own motion does."""
    balls, (feet, _), path, sole, _ = rolling_foot()
    own = np.diff(balls - turned(feet, sole.ball), 2, axis=0)
    outcome = np.diff(path.ankles, 2, axis=0)
    assert np.abs(outcome).max() < 1.5 * np.abs(own).max()
    assert np.abs(np.diff(path.ankles, axis=0)).max() < 1.2 * np.abs(np.diff(balls, axis=0)).max()


def test_what_a_step_rolls_on_begins_where_the_one_before_has_ended(monkeypatch):
    """Heel and toes that are down for ever, but for the step in the middle, whose are nowhere."""
    figure, leg = bipeds.skeleton(), bipeds.figure_map().legs[0]
    source = bipeds.source_of(figure, *bipeds.turns(figure, 40, size=0.0))
    phases = [Phase(5, 8), Phase(14, 18), Phase(25, 30)]

    def points(_source, _figure_map, _leg, phase, rows):
        place = np.tile((0.0, 0.0, 9.0 if phase is phases[1] else -9.0), (40, 1))[rows]
        return {SolePart.HEEL: place, SolePart.TOES: place}

    monkeypatch.setattr(stances, "_sole_points", points)
    outcome = stances._rolls(source, bipeds.figure_map(), leg, phases, np.zeros(3), 0.1)
    spans = [[(first, last) for _, first, last in holds] for holds in outcome]
    assert spans == [[(0, 4), (9, 13)], [], [(19, 24), (31, 39)]]
    both = stances._rolls(source, bipeds.figure_map(), leg, phases[::2], np.zeros(3), 0.1)
    assert [[(first, last) for _, first, last in holds] for holds in both] == [[(0, 4), (9, 24)], [(31, 39)]]


def test_memory_grows_as_the_frames_do():
    """A walk of 25 frames a step, with a roll before each."""
    peaks = []
    for count in (1000, 2000):
        level, balls = np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)), np.zeros((count, 3))
        phases = [Phase(first, first + 12) for first in range(5, count - 20, 25)]
        rolls = [(Hold(SolePart.HEEL, first - 2, first - 1),) for first, _ in phases]
        heights, times = np.zeros(len(phases)), np.arange(count) / 24.0
        contacts = Contacts(phases, times, np.zeros(3), heights, 0.0, 0.1, rolls)
        tracemalloc.start()
        feet.locked(balls, {SolePart.HEEL: balls - (0.1, 0.0, 0.0)}, PAW, contacts, 0.15)
        feet.flat_toes(level, level, PAW, contacts, 0.15)
        peaks.append(tracemalloc.get_traced_memory()[1] / count)
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
