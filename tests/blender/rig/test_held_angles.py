"""Rotation channels that are locked keep their value to the bit, near gimbal lock too."""

from __future__ import annotations

import itertools
import math
import random

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Quaternion

EXACT = 1e-12
FLOAT32 = 1e-6  # of a rotation: Blender's own conversion of angles calculates in float32
OPEN = 3e-6  # so near gimbal lock the sum or the difference of outer angles counts as undetermined
NEAR_LOCK = (0.0, 1e-9, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 1e-4, 1e-3, 0.1, 1.0)
SOME_LOCKED = [locks for n in (1, 2) for locks in itertools.combinations(range(3), n)]


def rotation(mode, angles):
    """One turn after the other, in double precision: the order that the mode's letters give."""
    halves = 0.5 * np.asarray(angles, float)
    total = np.zeros((*halves.shape[:-1], 4))
    total[..., 0] = 1.0
    for letter in mode:
        axis = "XYZ".index(letter)
        v = np.zeros_like(halves)
        w, v[..., axis] = np.cos(halves[..., axis, None]), np.sin(halves[..., axis])
        a, u = total[..., :1], total[..., 1:]
        total = np.concatenate((w * a - (v * u).sum(-1, keepdims=True), w * u + a * v + np.cross(v, u)), -1)
    return total


def apart(one, other):
    """Radians between rotations; exact where they are near, unlike the arc cosine of their product."""
    one, other = np.asarray(one), np.asarray(other)
    gaps = np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1)
    return 4.0 * np.arcsin(np.minimum(*gaps) / 2.0)


def test_turns_are_those_of_blender():
    for mode, seed in itertools.product(rigs.EULER_MODES, range(5)):
        angles = [random.Random(seed).uniform(-3, 3) for _ in range(3)]
        assert apart(rotation(mode, angles), Euler(angles, mode).to_quaternion()) < FLOAT32


@pytest.mark.parametrize("locked", SOME_LOCKED)
@pytest.mark.parametrize("mode", rigs.EULER_MODES)
def test_a_held_angle_stays_and_the_rotation_is_the_same(modes, mode, locked):
    rng = random.Random(f"{mode} {locked}")
    middle = "XYZ".index(mode[1])
    for near, side in itertools.product(NEAR_LOCK, (-1, 1)):
        wanted = [rng.uniform(-math.pi, math.pi) for _ in range(3)]
        wanted[middle] = side * math.pi / 2 + rng.choice((-1, 1)) * near
        held = np.array([[wanted[axis] if axis in locked else math.nan for axis in range(3)]])
        # As solvers give them: with the noise of float32.
        noisy = rotation(mode, wanted) + [rng.uniform(-3e-8, 3e-8) for _ in range(4)]
        for previous in (None, [rng.uniform(-math.pi, math.pi) for _ in range(3)]):
            (values,) = modes.channel_values(mode, [noisy], previous, held)
            for axis in locked:
                assert math.remainder(values[axis] - wanted[axis], 2 * math.pi) == pytest.approx(0, abs=EXACT)
            limit = OPEN if locked == (middle,) else FLOAT32
            assert apart(rotation(mode, values), rotation(mode, wanted)) < limit


@pytest.mark.parametrize("mode", rigs.EULER_MODES)
def test_what_cannot_be_reached_is_come_near_to(modes, mode):
    """With one outer angle held the nearest rotation is found: none of a fine grid is nearer."""
    rng = random.Random(mode)
    first, middle, last = ("XYZ".index(letter) for letter in mode)
    grid = np.arange(-math.pi, math.pi, 0.05)
    for held_axis, other in ((first, last), (last, first)):
        goal = np.array(Quaternion([rng.gauss(0, 1) for _ in range(4)]).normalized())
        held = np.full((1, 3), math.nan)
        held[0, held_axis] = rng.uniform(-1, 1)
        (values,) = modes.channel_values(mode, [goal], None, held)
        assert values[held_axis] == held[0, held_axis]
        found = apart(rotation(mode, values), goal)
        angles = np.zeros((len(grid), len(grid), 3))
        angles[..., held_axis] = held[0, held_axis]
        angles[..., middle], angles[..., other] = grid[:, None], grid
        best = apart(rotation(mode, angles), goal).min()
        assert best - 0.1 < found <= best + EXACT


@pytest.mark.parametrize("locked", [0, 2])
def test_a_bake_through_gimbal_lock_leaves_locked_channels(channels, bake, locked):
    """A target led round a bone whose middle angle passes a quarter turn, as Blender shows it."""
    rig = rigs.chain(3, 0.5)
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode = "XYZ"
    bone.rotation_euler = (0.3, 0.0, -0.4)
    bone.lock_rotation = [axis == locked for axis in range(3)]
    held = bone.rotation_euler[locked]
    goal = rigs.empty("Goal")
    for frame in range(1, 42):
        angle = math.pi / 2 + (frame - 21) * 1e-5
        bone.rotation_euler = [held if axis == locked else v for axis, v in enumerate((0.2, angle, 0.9))]
        rigs.update()
        goal.location = rig.matrix_world @ rig.pose.bones["bone_2"].tail
        goal.keyframe_insert("location", frame=frame)
    bone.rotation_euler = [held if axis == locked else v for axis, v in enumerate((0.1, 1.5, 0.7))]
    for other in ("bone_0", "bone_2"):
        rig.pose.bones[other].lock_rotation = (True, True, True)
    rigs.reach(rig, "bone_2", goal)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 41, step=2))
    assert report.check.mismatches() == ()
    curves = channels.fcurves_of(rig)
    (curve,) = [c for c in curves if "bone_1" in c.data_path and c.array_index == locked]
    assert {point.co[1] for point in curve.keyframe_points} == {held}
