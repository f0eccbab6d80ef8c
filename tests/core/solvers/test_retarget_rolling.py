"""Feet that roll from heel over ball to toes: each is held still in its turn."""

from __future__ import annotations

import dataclasses

import bipeds
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.motion.contacts import Phase
from ccd_rig.motion.retargeting import stances
from ccd_rig.motion.retargeting.feet import MOST_ROLL, FootPath, foot_path, rolled
from ccd_rig.motion.retargeting.motions import turned
from ccd_rig.motion.retargeting.rolling import Contacts
from ccd_rig.motion.retargeting.settings import RetargetSettings
from ccd_rig.motion.retargeting.sole import Hold, Sole, SolePart
from ccd_rig.motion.retargeting.stances import find_stances


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


def rolls_by_angle(path, sole, hips, angles):
    """(angles, F) from hips to ankles, of feet turned about their balls by each angle: heels go up."""
    balls = path.ankles + turned(path.feet, sole.ball)
    x, y, z = -np.array([spun(foot, sole.ball) for foot in path.feet]).T
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    ankles = np.stack(
        (cosine * x + sine * z, np.broadcast_to(y, (len(angles), len(y))), cosine * z - sine * x), 2
    )
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
    found = np.linalg.norm(rolled(path, sole, hips, reach).ankles - hips, axis=1)
    assert (found <= before + 1e-9).all()
    possible = rolls_by_angle(path, sole, hips, MOST_ROLL * np.linspace(-1.0, 1.0, 401))
    # Where the ankle has come nearer for as far already, it goes on to the reach, or as near as it gets.
    heel_up = (ankles + turned(feet, sole.ball) + turned(feet, sole.heel))[:, 2] > 0.2 * 0.17
    falling = (np.diff(possible[:201], axis=0) < 0.0).all(0) & heel_up & (path.borne == 1.0)
    assert falling.sum() > 20 and (before < possible[201] - 1e-4).sum() > 20
    best = np.maximum(possible[200:].min(0), reach)
    np.testing.assert_allclose(found[falling], best[falling], atol=1e-5)


def test_a_heel_goes_up_without_a_leap_while_the_hip_comes_over_the_foot():
    """A leg that is too short all the time; the hip goes from far behind the foot to far ahead of it."""
    *_, sole, _ = rolling_foot()
    hips = np.column_stack((np.linspace(-1.5, 1.5, 3001), np.full((3001, 2), (0.05, 0.6))))
    feet, ankles = np.repeat(pitched(np.array((-0.5,))), 3001, axis=0), np.tile((0.0, 0.0, 0.12), (3001, 1))
    path = FootPath(ankles, feet, None, np.ones(3001), np.ones(3001), np.zeros(3001))
    found = rolled(path, sole, hips, np.full(3001, 0.3))
    angles = 2.0 * np.arccos(np.clip(np.abs((found.feet * feet).sum(1)), 0.0, 1.0))
    assert angles[0] < 1e-6 and angles[-1] == pytest.approx(MOST_ROLL, abs=1e-6)
    assert np.abs(np.diff(angles)).max() < 0.01  # a millimetre of the hip's way each


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
    found = find_stances(source, bipeds.figure_map(), RetargetSettings().thresholds)
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


def test_what_a_step_rolls_on_begins_where_the_one_before_has_ended(monkeypatch):
    """Heel and toes that are down for ever, but for the step in the middle, whose are nowhere."""
    figure, leg = bipeds.skeleton(), bipeds.figure_map().legs[0]
    source = bipeds.source_of(figure, *bipeds.turns(figure, 40, size=0.0))
    phases = [Phase(5, 8), Phase(14, 18), Phase(25, 30)]

    def points(_source, _figure_map, _leg, phase):
        place = np.tile((0.0, 0.0, 9.0 if phase is phases[1] else -9.0), (40, 1))
        return {SolePart.HEEL: place, SolePart.TOES: place}

    monkeypatch.setattr(stances, "_sole_points", points)
    found = stances._rolls(source, bipeds.figure_map(), leg, phases, np.zeros(3), 0.1)
    spans = [[(first, last) for _, first, last in holds] for holds in found]
    assert spans == [[(0, 4), (9, 13)], [], [(19, 24), (31, 39)]]
    both = stances._rolls(source, bipeds.figure_map(), leg, phases[::2], np.zeros(3), 0.1)
    assert [[(first, last) for _, first, last in holds] for holds in both] == [[(0, 4), (9, 24)], [(31, 39)]]
