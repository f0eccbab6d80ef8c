"""Rotations written into the channels of bones: which, and near to what was there."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Euler
from rigs import (
    EULER_MODES,
    MODES,
    chain,
    pose_randomly,
    random_rotation,
)
from round_trips import FLOAT32, turned

EXACT = 1e-12


@pytest.mark.parametrize("mode", MODES)
def test_apply_touches_only_the_named_joints(ext, bones, modes, mode):
    rig = chain(4)
    for pose_bone in rig.pose.bones:
        pose_bone.rotation_mode = mode
    pose_randomly(rig, 3, location=0.2)

    def channels():
        kinds = ("rotation_quaternion", "rotation_euler", "rotation_axis_angle", "location", "scale")
        return {(b.name, kind): tuple(getattr(b, kind)) for b in rig.pose.bones for kind in kinds}

    before = channels()
    reading = bones.read(rig, [("bone_3", 3)], {})
    bones.apply(rig, reading, turned(reading, 1), joints=[1])
    changed = {key for key, value in channels().items() if value != before[key]}
    assert changed == {("bone_2", modes.rotation_channel(rig.pose.bones["bone_2"])[0])}


def test_apply_writes_nothing_if_a_bone_is_gone(bones, errors):
    rig = chain(3)
    reading = bones.read(rig, [("bone_2", 0)], {})
    rig.data.bones["bone_1"].name = "renamed"
    with pytest.raises(errors.RigError, match="no bone 'bone_1'"):
        bones.apply(rig, reading, turned(reading, 1))
    assert all(tuple(b.rotation_quaternion) == (1, 0, 0, 0) for b in rig.pose.bones)


def test_apply_stays_near_to_the_present_values(bones):
    rig = chain(3)
    first, second, third = rig.pose.bones
    first.rotation_mode, first.rotation_euler = "XYZ", (7.0, 0.1, -6.2)
    second.rotation_quaternion = (-1, 0, 0, 0)
    third.rotation_mode, third.rotation_axis_angle = "AXIS_ANGLE", (7.0, 0, 0, -1)
    reading = bones.read(rig, [("bone_2", 0)], {})
    bones.apply(rig, reading, reading.pose)
    assert tuple(first.rotation_euler) == pytest.approx((7.0, 0.1, -6.2), abs=FLOAT32)
    assert tuple(second.rotation_quaternion) == pytest.approx((-1, 0, 0, 0), abs=FLOAT32)
    assert tuple(third.rotation_axis_angle) == pytest.approx((7.0, 0, 0, -1), abs=FLOAT32)


# --- Channel values -----------------------------------------------------------------------------------------


numbers = st.floats(-1.0, 1.0, allow_subnormal=False)
quaternions = (
    st.tuples(numbers, numbers, numbers, numbers)
    .filter(lambda q: sum(x * x for x in q) > 1e-3)
    .map(lambda q: tuple(np.array(q) / np.linalg.norm(q)))
)
QUARTER = math.sqrt(0.5)
special = st.sampled_from(
    [
        (1, 0, 0, 0),
        (-1, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, -1),
        (QUARTER, 0, QUARTER, 0),
        (QUARTER, QUARTER, 0, 0),
        (QUARTER, 0, 0, -QUARTER),
        (0.5, 0.5, 0.5, 0.5),
        (0.5, -0.5, 0.5, -0.5),
    ]
)


def meaning(mode, values):
    """Channel values as a quaternion (w, x, y, z), in double precision and apart from the code under test."""
    values = np.asarray(values, dtype=float)
    if mode == "QUATERNION":
        return values / np.linalg.norm(values)
    if mode == "AXIS_ANGLE":
        axis = values[1:] / np.linalg.norm(values[1:])
        return np.array((math.cos(values[0] / 2), *(math.sin(values[0] / 2) * axis)))
    total = np.array((1.0, 0.0, 0.0, 0.0))
    for letter in mode:  # the first axis is turned about first
        half, axis = values["XYZ".index(letter)] / 2, "XYZ".index(letter)
        w, v = math.cos(half), np.eye(3)[axis] * math.sin(half)
        total = np.array(
            (w * total[0] - v @ total[1:], *(w * total[1:] + total[0] * v + np.cross(v, total[1:])))
        )
    return total


def apart(a, b):
    return min(np.linalg.norm(a - b), np.linalg.norm(a + b))


@pytest.mark.parametrize("mode", MODES)
def test_channel_values_mean_the_rotation(modes, mode):
    @given(st.lists(st.one_of(quaternions, special), min_size=1, max_size=6), st.booleans())
    def check(rotations, with_previous):
        previous = modes.channel_values(mode, [(0.5, 0.1, -0.7, 0.3)])[0] if with_previous else None
        values = modes.channel_values(mode, rotations, previous)
        assert np.isfinite(values).all()
        for rotation, value in zip(rotations, values, strict=True):
            assert apart(meaning(mode, value), np.array(rotation)) < FLOAT32

    check()


def test_euler_values_agree_with_blender(modes):
    rng = random.Random(5)
    for mode in EULER_MODES:
        for _ in range(200):
            rotation = random_rotation(rng)
            value = modes.channel_values(mode, [tuple(rotation)])[0]
            assert tuple(value) == pytest.approx(tuple(rotation.to_euler(mode)), abs=2e-4)
            assert apart(np.array(Euler(value, mode).to_quaternion()), np.array(rotation)) < FLOAT32


def steps(values):
    return np.abs(np.diff(values, axis=0)).max()


@pytest.mark.parametrize("count", [601, 617])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_three_full_turns_have_no_jump(modes, mode, axis, count):
    """About one axis for three turns: no value may step further than the rotation itself.

    That goes past half turns and, for the middle Euler axis, past gimbal lock: of 601 frames some stand
    exactly in it, of 617 none. Signs of the quaternions are random.
    """
    rng = np.random.default_rng(axis)
    angles = np.linspace(0.0, 6 * math.pi, count)
    rotations = np.zeros((count, 4))
    rotations[:, 0], rotations[:, 1 + axis] = np.cos(angles / 2), np.sin(angles / 2)
    values = modes.channel_values(mode, rotations * rng.choice((-1, 1), (count, 1)))
    assert steps(values) < 1.01 * (angles[1] - angles[0])
    # In float32, as the solver's quaternions are.
    values = modes.channel_values(mode, rotations.astype(np.float32))
    assert steps(values) < 1.05 * (angles[1] - angles[0])


@pytest.mark.parametrize("mode", MODES)
def test_values_go_on_from_the_previous_one(modes, mode):
    rng = random.Random(9)
    path = [random_rotation(rng) for _ in range(6)]
    rotations = [tuple(a.slerp(b, t / 60)) for a, b in itertools.pairwise(path) for t in range(60)]
    whole = modes.channel_values(mode, rotations)
    for cut in (1, 77, 200):
        joined = modes.channel_values(mode, rotations[cut:], whole[cut - 1])
        assert np.abs(joined - whole[cut:]).max() < 1e-9
    shifted = {"QUATERNION": whole[0] * -1.0, "AXIS_ANGLE": whole[0] * -1.0}.get(mode)
    if shifted is None:
        shifted = whole[0] + (4 * math.pi, 0.0, -2 * math.pi)
    moved_on = modes.channel_values(mode, rotations, shifted)
    assert np.abs(moved_on[0] - shifted).max() < 1e-6
    assert np.abs(np.diff(moved_on, axis=0)).max() == pytest.approx(
        np.abs(np.diff(whole, axis=0)).max(), rel=1e-6
    )


@pytest.mark.parametrize("mode", EULER_MODES)
def test_euler_values_are_no_further_than_blenders(modes, mode):
    """Frame by frame never further from the frame before than mathutils' own to_euler(mode, previous)."""
    rng = random.Random(21)
    previous = np.array((0.2, -3.0, 8.0))
    for _ in range(300):
        rotation = random_rotation(rng)
        value = modes.channel_values(mode, [tuple(rotation)], previous)[0]
        theirs = np.array(rotation.to_euler(mode, Euler(previous, mode)))
        assert np.linalg.norm(value - previous) <= np.linalg.norm(theirs - previous) + 1e-3
        previous = value


def test_axis_angle_without_rotation_keeps_the_axis(modes):
    still, turn = (1.0, 0.0, 0.0, 0.0), (math.cos(0.4), 0.0, math.sin(0.4), 0.0)
    values = modes.channel_values("AXIS_ANGLE", [still, turn, still])
    assert values == pytest.approx(np.array([(0, 0, 1, 0), (0.8, 0, 1, 0), (0, 0, 1, 0)]), abs=EXACT)
    values = modes.channel_values("AXIS_ANGLE", [still], (0.3, 0, 0, 2))
    assert values == pytest.approx(np.array([(0, 0, 0, 1)]), abs=EXACT)
    values = modes.channel_values("AXIS_ANGLE", [still, still])
    assert values == pytest.approx(np.array([(0, 0, 1, 0)] * 2), abs=EXACT)


def test_gimbal_lock_keeps_the_outer_angles(modes):
    for mode in EULER_MODES:
        i, j, k = ("XYZ".index(letter) for letter in mode)
        for quarter in (-math.pi / 2, math.pi / 2):
            wanted = np.zeros(3)
            wanted[[i, j, k]] = (0.9, quarter, 0.4)
            locked = [tuple(meaning(mode, wanted))] * 3
            assert modes.channel_values(mode, locked, wanted) == pytest.approx(
                np.array([wanted] * 3), abs=1e-9
            )
            free = modes.channel_values(mode, locked)
            assert free[:, k] == pytest.approx(0.0, abs=EXACT)  # nothing to keep: the last angle is 0


def test_bad_channel_input_is_refused(modes, errors):
    for arguments, words in (
        (("XYX", [(1, 0, 0, 0)]), "rotation mode must be one of"),
        (("XYZ", [(1, 0, 0)]), "shape"),
        (("XYZ", [(1, 0, 0, 0), (0, 0, 0, 0)]), "rotation 1 must be a unit quaternion"),
        (("XYZ", [(1, 0, 0, math.nan)]), "rotation 0 must be a unit quaternion"),
        (("XYZ", [(1, 0, 0, 0)], (1, 0, 0, 0)), "previous must be 3 values"),
    ):
        with pytest.raises(errors.InvalidInput, match=words):
            modes.channel_values(*arguments)
    assert modes.channel_values("XYZ", np.empty((0, 4))).shape == (0, 3)


@pytest.mark.parametrize("mode", MODES)
def test_twins_are_the_same_rotations_and_the_nearest(ext, mode):
    """At the value, and on a straight line from it, as F-curves go; none of the other twins is nearer."""
    modes = ext.module("ccd_rig.blender.rig.rotation_modes")
    generator = np.random.default_rng(MODES.index(mode))
    width = 3 if mode in EULER_MODES else 4
    angles = {"QUATERNION": 0, "AXIS_ANGLE": 1}.get(mode, 3)
    for _ in range(40):
        value, step, goal = generator.uniform(-1.0, 1.0, (3, width))
        value[:angles], goal[:angles] = generator.uniform(-9.0, 9.0, (2, angles))
        twin = modes.nearest_twin(mode, value, goal)
        factors, offsets = (np.ones(width), np.zeros(width)) if twin is None else map(np.array, twin)
        for at in (value, value + 0.3 * step):
            before, after = (modes.rotation_of(mode, each) for each in (at, factors * at + offsets))
            assert abs(before.normalized().dot(after.normalized())) == pytest.approx(1.0, abs=1e-5)
        turns = itertools.product((-4, -3, -2, -1, 0, 1, 2, 3, 4), repeat=angles)
        whole = np.array([(*each, *[0] * (width - angles)) for each in turns]) * 2.0 * math.pi
        near = np.linalg.norm(factors * value + offsets - goal)
        others = [value, -value]
        if mode in EULER_MODES:  # a half turn of all axes, and the middle angle's supplement
            others = [value, np.where(np.array(list("XYZ")) == mode[1], math.pi - value, math.pi + value)]
        for other in others:
            assert (np.linalg.norm(other + whole - goal, axis=1) > near - 1e-9).all()
        assert (twin is None) == (near == np.linalg.norm(value - goal))
