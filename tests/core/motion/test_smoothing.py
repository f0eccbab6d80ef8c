"""Jolts of joints are found and smoothed where their target goes on evenly, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from ccd_rig.motion.smoothing import BEFORE, KERNEL, bends, smoothed, weights

F, AT = 60, 30
EVERY = np.ones(F, bool)


def turning(angles: np.ndarray) -> np.ndarray:
    """(4, 1, F) about one axis."""
    rotations = np.zeros((4, 1, len(angles)))
    rotations[0, 0], rotations[2, 0] = np.cos(0.5 * angles), np.sin(0.5 * angles)
    return rotations


def stopped(step: float = 0.02) -> np.ndarray:
    """A joint that stops at once, as at a limit."""
    return turning(step * np.minimum(np.arange(F), AT))


def even(step: float = 0.02) -> np.ndarray:
    """(3, F) a target that goes on."""
    return np.outer((1.0, 0.5, 0.0), step * np.arange(F))


def test_bends_are_changes_of_the_turn():
    angles = np.cumsum(np.linspace(0.0, 0.02, F))
    assert bends(turning(angles)) == pytest.approx(0.02 / (F - 1), rel=1e-3)
    assert bends(turning(0.01 * np.arange(F))) == pytest.approx(0.0, abs=1e-12)


def test_a_stop_is_a_jolt_of_the_frames_about_it():
    found = weights(stopped(), even(), 1.0, EVERY)
    assert found[AT] == pytest.approx(1.0)
    assert (found[: AT - 4 * BEFORE] == 0.0).all()
    assert (found[AT + 4 * BEFORE :] == 0.0).all()
    assert np.abs(np.diff(found)).max() <= max(KERNEL) + 1e-12  # it comes and goes by degrees


def test_smoothing_softens_a_stop_and_leaves_the_rest():
    before = stopped()
    parts = weights(before, even(), 1.0, EVERY)
    after = smoothed(before, parts)
    assert bends(after).max() <= 0.6 * bends(before).max()
    assert np.abs(np.linalg.norm(after, axis=0) - 1.0).max() <= 1e-12
    assert np.abs(after - before)[..., parts == 0.0].max() <= 1e-12


def test_signs_do_not_matter():
    """A quaternion and its negative are the same rotation."""
    plain, flipped = stopped(), stopped()
    flipped[..., 10:25] *= -1.0
    assert np.abs(bends(flipped) - bends(plain)).max() <= 1e-12
    parts = weights(plain, even(), 1.0, EVERY)
    assert (weights(flipped, even(), 1.0, EVERY) == parts).all()
    same = np.abs((smoothed(flipped, parts) * smoothed(plain, parts)).sum(0))
    assert np.abs(same - 1.0).max() <= 1e-12


def test_even_turns_are_no_jolt():
    assert (weights(turning(0.02 * np.arange(F)), even(), 1.0, EVERY) == 0.0).all()


def test_what_the_target_explains_is_no_jolt():
    """It slows down by as much as the joint does, in lengths of the chain."""
    way = np.minimum(np.arange(F), AT) + 0.6 * np.maximum(np.arange(F) - AT, 0)
    targets = np.outer((1.0, 0.0, 0.0), 0.02 * way)
    slowing = turning(0.02 * way)
    assert (weights(slowing, targets, 1.0, EVERY) == 0.0).all()
    assert weights(slowing, even(), 1.0, EVERY).max() > 0.9


@pytest.mark.parametrize("jump", [0.0, 0.5])
def test_where_the_target_stops_or_jumps_nothing_is_smoothed(jump):
    """A chain 50 times as long would have to do next to nothing for it."""
    targets = np.outer((1.0, 0.0, 0.0), 0.02 * np.minimum(np.arange(F), AT))
    targets[:, AT:] += jump
    found = weights(stopped(), targets, 50.0, EVERY)
    assert (found[AT - BEFORE :] == 0.0).all()
    assert (weights(stopped(), np.zeros((3, F)), 50.0, EVERY) == 0.0).all()  # at rest


def test_frames_that_do_not_count_are_kept_clear_of():
    usable = EVERY.copy()
    usable[AT] = False
    found = weights(stopped(), even(), 1.0, usable)
    assert (found[AT - BEFORE : AT + BEFORE + 1] == 0.0).all()


@pytest.mark.parametrize("frames", range(1, 16))
def test_short_ranges(frames):
    """With a stop in their middle."""
    part = slice(AT - frames // 2, AT - frames // 2 + frames)
    rotations, targets = stopped()[..., part], even()[:, part]
    found = weights(rotations, targets, 1.0, EVERY[part])
    assert found.shape == (frames,)
    assert (found.max() > 0.0) == (frames > 2 * BEFORE)
    assert np.isfinite(smoothed(rotations, found)).all()


def test_the_ends_stay():
    rotations = turning(0.02 * np.abs(np.arange(F) - 1))  # it turns back at the second frame
    found = weights(rotations, even(), 1.0, EVERY)
    assert found.max() > 0.0
    assert (found[:BEFORE] == 0.0).all()
    assert (found[-BEFORE:] == 0.0).all()
