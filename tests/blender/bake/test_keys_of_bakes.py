"""Where a bake puts keys, and how they go on from those that stay."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from reaching_arms import FLOAT32, arm, assert_report_is_what_plays, keyed_quaternions, keys_of
from whole_file import differences, dump

ROTATIONS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}


def slerped(a, b, part):
    """Slerp in double precision: mathutils' own loses half of the digits where a and b are near."""
    whole = 2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
    return (np.sin((1.0 - part) * whole) * a + np.sin(part * whole) * b) / np.sin(whole)


def test_between_solves_stand_slerps(bake, channels):
    rig, _ = arm(8, 0.5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60, step=7))
    solved = [1, 8, 15, 22, 29, 36, 43, 50, 57, 60]
    assert [row.frame for row in report.entries if row.status != "SLERPED"] == solved
    assert {row.status for row in report.entries if row.frame not in solved} == {"SLERPED"}
    for bone in ("bone_0", "bone_4", "bone_7"):
        frames, values = keyed_quaternions(channels, rig, bone)
        assert frames.tolist() == list(range(1, 61))
        at = dict(zip(frames.tolist(), values, strict=True))
        for a, b in itertools.pairwise(solved):
            for frame in range(a + 1, b):
                expected = slerped(at[a], at[b], (frame - a) / (b - a))
                assert np.abs(at[frame] - expected).max() < FLOAT32
    assert_report_is_what_plays(rig, report)
    assert "10 of 10 solved frames reached" in report.summary()


def test_a_step_beyond_the_range_solves_both_ends(bake):
    rig, _ = arm(4, 0.5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(-3, 6, step=100))
    assert [row.frame for row in report.entries if row.status != "SLERPED"] == [-3, 6]
    assert [row.frame for row in report.entries] == list(range(-3, 7))


def test_keys_on_solved_frames_only(bake, channels):
    rig, _ = arm(6, 0.5)
    settings = bake.BakeSettings(1, 60, step=10, keys=bake.Keys.SOLVED_FRAMES)
    report = bake.bake(bpy.context.scene, rig, settings)
    solved = [1, 11, 21, 31, 41, 51, 60]
    curves = list(channels.fcurves_of(rig))
    assert len(curves) == 6 * 4
    for curve in curves:
        assert [point.co[0] for point in curve.keyframe_points] == solved
        assert {point.interpolation for point in curve.keyframe_points} == {"BEZIER"}
    assert [row.frame for row in report.entries] == solved
    assert_report_is_what_plays(rig, report)
    assert report.summary().startswith("7 of 7 solved frames reached; ")


def test_the_same_input_gives_the_same_bits(bake, channels):
    rig, _ = arm(12, 0.4)
    settings = bake.BakeSettings(1, 40, step=3)
    first = bake.bake(bpy.context.scene, rig, settings)
    keys = keys_of(channels, rig)
    rig.animation_data_clear()
    second = bake.bake(bpy.context.scene, rig, settings)
    again = keys_of(channels, rig)
    assert keys.keys() == again.keys()
    assert all(np.array_equal(keys[path], again[path]) for path in keys)
    assert first.entries == second.entries
    assert replace(first, action="") == replace(second, action="")  # whatever time they took


def test_new_action_keeps_the_old_one(bake, channels):
    rig, _ = arm(4, 0.5)
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=3)
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=100)
    old = rig.animation_data.action
    before = keys_of(channels, rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    new = rig.animation_data.action
    assert new != old
    assert new.name == report.action
    assert old.use_fake_user
    keys = keys_of(channels, rig)
    assert np.array_equal(
        keys['pose.bones["bone_0"].location', 0], before['pose.bones["bone_0"].location', 0]
    )
    assert keys['pose.bones["bone_1"].rotation_quaternion', 0][-1, 0] == 100


def test_current_action(bake, channels):
    rig, _ = arm(4, 0.5)
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=3)
    old = rig.animation_data.action
    settings = bake.BakeSettings(5, 20, destination=bake.Destination.CURRENT_ACTION)
    report = bake.bake(bpy.context.scene, rig, settings)
    assert rig.animation_data.action == old
    assert report.action == old.name
    assert len(bpy.data.actions) == 2  # this one and the target's
    assert keyed_quaternions(channels, rig, "bone_3")[0].tolist() == list(range(5, 21))


@pytest.mark.parametrize(("destination", "is_told"), [("CURRENT_ACTION", True), ("NLA_STRIP", False)])
def test_a_bake_that_a_modifier_repeats_says_so(bake, channels, destination, is_told):
    """The curves of a strip are new, and have none."""
    rig, _ = arm(4, 0.5)
    bone = rig.pose.bones["bone_1"]
    for frame in (1, 5):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    for curve in channels.fcurves_of(rig):
        curve.modifiers.new("CYCLES")
    report = bake.bake(
        bpy.context.scene, rig, bake.BakeSettings(1, 5, destination=bake.Destination[destination])
    )
    told = [each for each in report.warnings if "Cycles repeats" in each]
    assert [each.startswith("Bone 'bone_1': ") for each in told] == [True] * is_told


def test_keys_that_continue_older_ones_keep_their_sign(bake, channels):
    rig, _ = arm(4, 0.5)
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (-1.0, 0.0, 0.0, 0.0)
        bone.keyframe_insert("rotation_quaternion", frame=0)
    settings = bake.BakeSettings(1, 10, destination=bake.Destination.CURRENT_ACTION)
    bake.bake(bpy.context.scene, rig, settings)
    for i in range(4):
        _, values = keyed_quaternions(channels, rig, f"bone_{i}")
        assert (np.sum(values[1:] * values[:-1], axis=1) > 0.0).all()


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("before", [False, True])
def test_no_turn_the_long_way_round_to_later_keys(bake, channels, destination, before):
    """Later keys stand on the other side of the sphere, or a turn further on; they stay what they are."""
    rig, _ = arm(8, 0.5)
    for i, mode in enumerate(rigs.MODES):
        bone = rig.pose.bones[f"bone_{i}"]
        bone.rotation_mode = mode
        path = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(
            mode, "rotation_euler"
        )
        if before and mode == "QUATERNION":
            bone.rotation_quaternion = Quaternion((1, 0, 0), 0.1)
            bone.keyframe_insert(path, frame=0)
        for frame in (25, 31):
            bone.rotation_quaternion = -Quaternion((1, 0, 0), 0.01 * frame)
            bone.rotation_axis_angle = (math.tau + 0.01 * frame, 1, 0, 0)
            bone.rotation_euler = (math.tau + 0.01 * frame, 0, 0)
            bone.keyframe_insert(path, frame=frame)
    bpy.context.scene.frame_set(28)
    later = [bone.matrix_basis.copy() for bone in rig.pose.bones]
    bpy.context.scene.frame_set(0)
    state = dump()
    settings = bake.BakeSettings(1, 20, destination=bake.Destination[destination], smoothness=0.0)
    steps = bake.bake_steps(bpy.context.scene, rig, settings)
    while next(steps).verb != "checked":
        pass
    steps.close()
    assert differences(state, dump()) == []
    bake.bake(bpy.context.scene, rig, settings)
    for (path, index), keys in keys_of(channels, rig).items():
        if not path.endswith("rotation_quaternion") and (index == 0 or path.endswith("euler")):
            assert np.abs(np.diff(keys[:, 1])).max() < math.pi, (path, index)
    _, values = keyed_quaternions(channels, rig, "bone_0")
    assert (np.sum(values[1:] * values[:-1], axis=1) > 0.0).all()
    bpy.context.scene.frame_set(28)
    for bone, matrix in zip(rig.pose.bones, later, strict=True):
        assert np.abs(np.array(bone.matrix_basis) - np.array(matrix)).max() < 5 * FLOAT32, bone.name


@pytest.mark.parametrize("step", [1, 4])
def test_every_rotation_mode(bake, channels, step):
    rig, _ = arm(8, 0.5)
    for i, mode in enumerate(rigs.MODES):
        rig.pose.bones[f"bone_{i}"].rotation_mode = mode
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60, step=step))
    assert report.unsolved() == ()
    paths = {path.rpartition(".")[2] for path, _ in keys_of(channels, rig)}
    assert paths == {"rotation_quaternion", "rotation_axis_angle", "rotation_euler"}
    assert [bone.rotation_mode for bone in rig.pose.bones] == list(rigs.MODES)
    assert_report_is_what_plays(rig, report)
    for (path, index), keys in keys_of(channels, rig).items():
        if path.endswith("euler"):  # no turn the long way round
            assert np.abs(np.diff(keys[:, 1])).max() < math.pi, (path, index)


@pytest.mark.parametrize("mode", rigs.MODES)
def test_after_a_whole_turn_the_short_way_leads_to_the_keys_that_stay(bake, mode):
    """The target goes once round the arm and back to its place, where the animation holds the arm still."""
    rig = rigs.chain(2)
    for bone in rig.pose.bones:
        bone.rotation_mode = mode
        rigs.set_rotation(bone, Quaternion((1, 0, 0), 0.3))
        for frame in (1, 40):
            bone.keyframe_insert(ROTATIONS.get(mode, "rotation_euler"), frame=frame)
    bpy.context.view_layer.update()
    _, y, z = rig.pose.bones["bone_1"].tail
    turns = {frame: math.atan2(z, y) + 0.2 * math.pi * (frame - 10) for frame in range(10, 21)}
    path = {
        f: (0.0, math.hypot(y, z) * math.cos(a), math.hypot(y, z) * math.sin(a)) for f, a in turns.items()
    }
    rigs.reach(rig, "bone_1", rigs.keyed(rigs.empty("Goal"), path))
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(10, 20))
    shown = {}
    for frame in (20.0, 20.25, 20.5, 20.75, 21.0, 30.0, 40.0):
        bpy.context.scene.frame_set(int(frame), subframe=frame % 1)
        evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        shown[frame] = [bone.matrix.to_quaternion() for bone in evaluated.pose.bones]
    for rotations in shown.values():
        for rotation, still in zip(rotations, shown[21.0], strict=True):
            assert abs(rotation.dot(still)) == pytest.approx(1.0, abs=1e-3)
