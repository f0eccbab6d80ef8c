"""Fewer keys: within the angle that was asked for, few of them, and fast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Euler, Quaternion
from seeds import few_and_all

from ccd_rig.motion import key_reduction

EXACT = 1e-12
FLOAT32 = 2e-6
EULERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


def run(kind, frames, values, tolerances, must=None):
    values = np.asarray(values, float)
    must = np.zeros(values.shape[:2], bool) if must is None else must
    steps = key_reduction.choose(kind, np.asarray(frames, float), values, np.asarray(tolerances, float), must)
    parts = []
    while True:
        try:
            parts.append(next(steps))
        except StopIteration as end:
            assert parts == sorted(parts)
            assert all(0.0 <= part <= 1.0 for part in parts)
            return end.value


def turning(count, seed, waves=6):
    """A smooth motion: (F, 4) quaternions on one side."""
    random = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, count)[:, None]
    values = random.normal(size=4) * 2.0
    for k in range(1, waves):
        values = values + random.normal(size=4) * np.sin(2 * math.pi * k * t + random.uniform(0, 6, 4)) / k
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def worst(kind, frames, values, kept):
    played = key_reduction.interpolated(np.asarray(frames, float), values, kept)
    wanted = values if kind == key_reduction.PLACE else key_reduction.rotations_of(kind, values)
    return key_reduction.apart(kind, played, wanted).max()


@pytest.mark.parametrize("angle", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("seeds", few_and_all(2, 5))
def test_within_the_angle_and_few(angle, seeds):
    frames = np.arange(1000.0)
    values = np.array([turning(1000, seed) for seed in seeds])
    kept = run("QUATERNION", frames, values, np.full(len(seeds), angle))
    for each, mask in zip(values, kept, strict=True):
        assert worst("QUATERNION", frames, each, mask) <= angle
        assert mask[0]
        assert mask[-1]
        assert mask.sum() < {1e-3: 400, 1e-2: 150, 0.1: 60}[angle]
        # None of them is idle: without it the angle would not be kept.
        inner = np.flatnonzero(mask)[1:-1]
        idle = 0
        for key in inner:
            less = mask.copy()
            less[key] = False
            idle += worst("QUATERNION", frames, each, less) <= angle
        assert idle <= 1 + len(inner) // 20


def test_at_rest_two_keys_do():
    frames = np.arange(500.0)
    values = np.tile([1.0, 0.0, 0.0, 0.0], (3, 500, 1))
    assert run("QUATERNION", frames, values, np.full(3, 1e-6)).sum() == 6


def test_one_and_two_frames():
    values = np.tile([1.0, 0.0, 0.0, 0.0], (1, 2, 1))
    assert run("QUATERNION", [4.0], values[:, :1], [0.1]).tolist() == [[True]]
    assert run("QUATERNION", [4.0, 4.5], values, [0.1]).tolist() == [[True, True]]


def test_what_has_to_stay_stays():
    frames = np.arange(50.0)
    values = np.tile([1.0, 0.0, 0.0, 0.0], (1, 50, 1))
    must = np.zeros((1, 50), bool)
    must[0, [7, 8, 31]] = True
    assert np.flatnonzero(run("QUATERNION", frames, values, [0.1], must)[0]).tolist() == [0, 7, 8, 31, 49]


def test_a_leap_keeps_its_frames():
    frames = np.arange(100.0)
    values = np.tile([1.0, 0.0, 0.0, 0.0], (1, 100, 1))
    values[0, 40:] = tuple(Quaternion((0, 0, 1), 1.0))
    kept = run("QUATERNION", frames, values, [0.01])[0]
    assert np.flatnonzero(kept).tolist() == [0, 39, 40, 99]


@given(
    st.integers(2, 60),
    st.integers(0, 10**6),
    st.sampled_from(("QUATERNION", "AXIS_ANGLE", *EULERS, key_reduction.PLACE)),
    st.floats(1e-4, 0.5),
)
@settings(max_examples=80, deadline=None)
def test_any_motion_stays_within(count, seed, kind, tolerance):
    random = np.random.default_rng(seed)
    frames = np.cumsum(random.uniform(0.25, 2.0, count))
    width = 4 if kind in ("QUATERNION", "AXIS_ANGLE") else 3
    values = np.cumsum(random.normal(size=(2, count, width)) * 0.05, axis=1) + random.normal(
        size=(2, 1, width)
    )
    kept = run(kind, frames, values, [tolerance, tolerance])
    for each, mask in zip(values, kept, strict=True):
        assert worst(kind, frames, each, mask) <= tolerance + EXACT


@pytest.mark.parametrize("mode", EULERS)
def test_rotations_of_euler_angles(mode):
    angles = np.random.default_rng(4).uniform(-7, 7, (50, 3))
    found = key_reduction.rotations_of(mode, angles)
    for each, rotation in zip(angles, found, strict=True):
        wanted = Euler(each, mode).to_quaternion()
        assert min(np.abs(rotation - wanted).max(), np.abs(rotation + wanted).max()) < FLOAT32


def test_rotations_of_angle_and_axis():
    values = np.array([(0.7, 0, 0, 2.0), (5.0, 0, 0, 0), (-1.0, 1, 1, 0)])
    found = key_reduction.rotations_of("AXIS_ANGLE", values)
    for each, rotation in zip(values, found, strict=True):
        wanted = Quaternion(each[1:], each[0])
        assert min(np.abs(rotation - wanted).max(), np.abs(rotation + wanted).max()) < FLOAT32


def test_runs():
    over = np.array([1, 0, 0, 1, 1, 1, 0, 1, 1], bool)
    assert key_reduction.middles_of_runs(over).tolist() == [0, 4, 7]
    assert key_reduction.middles_of_runs(np.zeros(4, bool)).tolist() == []


def test_signs_and_zero_quaternions_are_as_in_blender():
    values = np.array([(0.6, 0.8, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)])
    turns = key_reduction.rotations_of("QUATERNION", values)
    assert tuple(turns[1]) == tuple(Quaternion((0.0, 0.0, 0.0, 0.0)).normalized())
    assert key_reduction.apart("QUATERNION", -values, turns) == pytest.approx([0.0, 0.0], abs=1e-7)
