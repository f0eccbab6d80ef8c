"""Fewer keys: what Blender plays stays within what was asked for, limits included, and much is left out."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion, Vector
from playing import angles, in_world, rotations

PLAYED = 1e-4  # metres
FRAMES = range(1, 122)
FLOAT32 = 2e-5  # radians, of bones that are stored and played


@pytest.fixture
def rig(ext):
    made = rigs.chain(6, 0.3)
    goal = rigs.empty("Goal")
    for i in range(13):
        side = 0.9 + 0.2 * math.sin(1.7 * i)
        goal.location = Vector((side * math.cos(0.5 * i), side * math.sin(0.5 * i), 1.0 + 0.3 * math.sin(i)))
        goal.keyframe_insert("location", frame=1 + 10 * i)
    rigs.reach(made, "bone_5", goal, "Hand")
    bpy.context.scene.frame_set(1)
    rigs.update()
    return made


def run(bake, rig, **fields):
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 121, **fields))


def tips(rig):
    """(F, 3) where the chain's end plays."""
    return np.array([in_world(rig, frame)["bone_5"] @ Vector((0.0, 0.3, 0.0)) for frame in FRAMES])


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ", "ZYX"])
def test_within_the_angle(bake, rig, mode):
    for bone in rig.pose.bones:
        bone.rotation_mode = mode
    run(bake, rig)
    full = rotations(rig, FRAMES)
    report = run(bake, rig, reduce_angle=math.radians(1.0))
    thin = rotations(rig, FRAMES)
    assert angles(full, thin).max() <= math.radians(1.0) + 1e-3 * (mode != "QUATERNION") + FLOAT32
    assert report.keys_before == 6 * 121
    assert report.keys < report.keys_before / 2
    assert report.check.mismatches() == ()
    assert f"{report.keys} of 726 keys kept" in report.summary()


@pytest.mark.parametrize("error", [0.001, 0.01, 0.1])
def test_within_the_error(bake, rig, error):
    rig.scale = (2, 2, 2)
    rigs.update()
    run(bake, rig)
    full = tips(rig)
    report = run(bake, rig, reduce_error=error)
    thin = tips(rig)
    off = np.linalg.norm(full - thin, axis=1)
    assert off.max() <= error + PLAYED
    assert off.max() > 0.3 * error  # what may be off is used
    # The chain swings as far as it reaches within ten frames: a millimetre leaves little to leave out.
    assert report.keys < report.keys_before * {0.001: 0.98, 0.01: 0.7, 0.1: 0.25}[error]
    assert report.check.mismatches() == ()
    [played] = report.check.results
    assert played.residual == pytest.approx(max(row.keyed_residual for row in report.entries), abs=PLAYED)


def test_a_wider_error_keeps_fewer_keys(bake, rig):
    kept = [run(bake, rig, reduce_error=error).keys for error in (0.003, 0.03, 0.3)]
    assert kept[0] > kept[1] > kept[2]


@pytest.mark.parametrize("fields", [{"reduce_error": 1e-12}, {"reduce_angle": 1e-12}])
def test_a_tolerance_below_what_is_stored_keeps_all_keys(bake, rig, fields):
    assert run(bake, rig, **fields).keys == run(bake, rig).keys


def test_keys_of_one_bone_stand_together(bake, channels, rig):
    run(bake, rig, reduce_angle=0.02)
    frames = {}
    for curve in channels.fcurves_of(rig):
        frames.setdefault(curve.data_path, set()).add(tuple(key.co.x for key in curve.keyframe_points))
        assert {key.interpolation for key in curve.keyframe_points} == {"LINEAR"}
    assert len(frames) == 6
    assert all(len(each) == 1 for each in frames.values())
    assert all(min(each)[0] == 1 and min(each)[-1] == 121 for each in frames.values())


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "CONE", "cone_radius": 0.35},
        {"kind": "EULER", "euler_lower": (-1.0, -1.0, 0.0), "euler_upper": (1.0, 1.0, 0.0)},  # not convex
    ],
    ids=["cones", "boxes"],
)
def test_limits_hold_between_keys(ext, bake, rig, fields):
    limits, joints = ext.module("ccd_rig.limits.shapes"), ext.module("ccd_rig.blender.properties.joints")
    for bone in rig.pose.bones:
        for name, value in fields.items():
            setattr(bone.ccd_rig.limit, name, value)
    rigs.update()
    run(bake, rig, reduce_angle=0.2, reduce_error=0.2)
    names = [bone.name for bone in rig.pose.bones]
    settings = joints.joint_settings(rig, names)
    for frame in rotations(rig, FRAMES):
        for name, turn in zip(names, frame, strict=True):
            assert limits.violation(settings[name]["limit"], Quaternion(turn)) < 1e-4


def test_only_of_every_frame(bake, errors):
    with pytest.raises(errors.InvalidInput, match="Every Frame"):
        bake.BakeSettings(1, 5, keys=bake.Keys.SOLVED_FRAMES, reduce_angle=0.1)
    with pytest.raises(errors.InvalidInput, match="reduce_error must be 0 or more, not -1"):
        bake.BakeSettings(1, 5, reduce_error=-1.0)
    with pytest.raises(errors.InvalidInput, match="reduce_angle must be 0 or more, not nan"):
        bake.BakeSettings(1, 5, reduce_angle=math.nan)
