"""How far a body goes that walks on, for feet that are known."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def travel(ext):
    return ext.module("ccd_rig.blender.bake.body_motion").travel


def test_feet_that_take_turns_carry_the_body_at_the_speed_of_the_ground(travel):
    frames = np.arange(10, 51, dtype=float)
    places = np.zeros((41, 2, 3))
    left = frames < 30
    places[:, 0, 1] = np.where(left, 0.02 * frames, 5.0)  # pushed back by the ground, then anywhere
    places[:, 1, 1] = np.where(left, -7.0, 0.02 * frames)
    places[:, :, 2] = 0.1 * frames[:, None]  # heights are none of its business
    planted = np.stack((left, frames > 30), axis=1)
    ways = travel(frames, places, planted)
    assert ways[:, 1] == pytest.approx(-0.02 * (frames - 10.0), abs=1e-12)
    assert not ways[:, [0, 2]].any()


def test_in_the_air_it_goes_on_from_one_speed_to_the_other(travel):
    frames = np.arange(30, dtype=float)
    places = np.zeros((30, 1, 3))
    places[:11, 0, 0] = frames[:11]
    places[19:, 0, 0] = 3.0 * frames[19:]
    planted = ((frames <= 10) | (frames >= 20))[:, None]
    speeds = -np.diff(travel(frames, places, planted)[:, 0])
    assert (np.diff(speeds) >= -1e-12).all()
    assert (speeds[0], speeds[-1]) == pytest.approx((1.0, 3.0))


def test_a_foot_that_leaves_says_less_than_one_that_stands(travel):
    frames = np.arange(20, dtype=float)
    places = np.zeros((20, 2, 3))
    places[:, 0, 0] = frames
    places[10:, 1, 0] = 100.0 * (frames[10:] - 10.0)  # it is dragged in the last frame in which it is planted
    planted = np.stack((frames >= 0, (frames >= 1) & (frames <= 11)), axis=1)
    step = -np.diff(travel(frames, places, planted)[:, 0])[10]
    assert 1.0 < step < 20.0


def test_without_a_planted_bone_it_stays(travel):
    places = np.random.default_rng(1).normal(size=(5, 2, 3))
    assert not travel(np.arange(5.0), places, np.zeros((5, 2), bool)).any()
