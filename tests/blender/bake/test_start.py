"""Where a bake starts from: nothing that Solve or a hand has left in the pose decides what it gives."""

from __future__ import annotations

import json
import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from playing import angles, rotations

FRAMES = range(1, 21)
SAME = 2e-6  # radians, of float32 keys


def tail(count=12, reach=0):
    """A tail that nothing animates; its target goes along an arc."""
    rig = rigs.chain(count, 1.0 / count)
    goal = rigs.empty("Goal")
    rigs.keyed(goal, {f: (0.7 * math.sin(a), 0.1, 0.7 * math.cos(a)) for f, a in ((1, -0.9), (20, 0.9))})
    rigs.reach(rig, f"bone_{count - 1}", goal, "Tip", chain_length=reach)
    bpy.context.scene.frame_set(1)
    return rig


def run(bake, rig, start="ACTION", **fields):
    chosen = bake.BakeSettings(FRAMES[0], FRAMES[-1], start=bake.Start[start], **fields)
    return bake.bake(bpy.context.scene, rig, chosen)


def pose(rig, seed=0.3):
    """A pose by hand, without keys."""
    for k, bone in enumerate(rig.pose.bones):
        bone.rotation_quaternion = Quaternion((math.sin(k), math.cos(k), 0.5), seed)


def key_bend(rig, bone="bone_1"):
    """One bone bends back and forth about X."""
    for frame, angle in ((1, 0.0), (10, 0.6), (20, 0.1)):
        rig.pose.bones[bone].rotation_quaternion = Quaternion((1, 0, 0), angle)
        rig.pose.bones[bone].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(1)


def test_solve_then_bake_is_bake(bake):
    rig = tail()
    run(bake, rig)
    alone = rotations(rig, FRAMES)
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = tail()
    rigs.activate(rig)
    for frame in (3, 20, 11):
        bpy.context.scene.frame_set(frame)
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert max(bone.rotation_quaternion.angle for bone in rig.pose.bones) > 0.05  # it did leave a pose
    report = run(bake, rig)
    assert np.abs(rotations(rig, FRAMES) - alone).max() == 0.0
    assert report.start == "ACTION" and "bone_0" in report.from_rest


def test_a_pose_by_hand_has_no_say_and_is_told(bake):
    rig = tail(3)
    run(bake, rig)
    alone = rotations(rig, FRAMES)
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = tail(3)
    rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((0, 1, 1), 0.8)
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion((0, 1, 1), 0.4)
    report = run(bake, rig)
    assert np.abs(rotations(rig, FRAMES) - alone).max() == 0.0
    assert report.from_rest == ("bone_1", "bone_2")
    assert "'bone_1' and 1 more posed without keys, baked from rest" in report.summary()
    written = json.loads(report.to_json())
    assert (written["start"], written["from_rest"]) == ("ACTION", ["bone_1", "bone_2"])


def test_nothing_is_told_where_nothing_is_left_out(bake):
    report = run(bake, tail(3))
    assert report.from_rest == () and "baked from rest" not in report.summary()
    assert json.loads(report.to_json())["from_rest"] == []


def test_what_is_keyed_starts_from_its_keys(bake):
    """The target stays where the motion already has the tip, but for one bone that a hand has turned."""
    rig = tail(3)
    key_bend(rig)
    goal = bpy.data.objects["Goal"]
    goal.animation_data_clear()
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        goal.location = rig.matrix_world @ rig.pose.bones["bone_2"].tail
        goal.keyframe_insert("location", frame=frame)
    before = rotations(rig, FRAMES)
    rig.pose.bones["bone_0"].rotation_quaternion = Quaternion((0, 0, 1), 0.7)
    report = run(bake, rig)
    assert report.from_rest == ("bone_0",)
    assert angles(rotations(rig, FRAMES), before).max() < 1e-3


def test_the_pose_as_it_stands(bake):
    rig = tail(6)
    key_bend(rig)
    goal = bpy.data.objects["Goal"]
    goal.animation_data_clear()
    pose(rig)
    rigs.update()
    goal.location = rig.matrix_world @ rig.pose.bones["bone_5"].tail
    stands = np.array([bone.matrix_basis.to_quaternion()[:] for bone in rig.pose.bones])
    report = run(bake, rig, "POSE")
    assert angles(rotations(rig, FRAMES), stands).max() < 1e-3
    assert (report.start, report.from_rest) == ("POSE", ())


def test_the_rest_pose(bake):
    rig = tail(6)
    run(bake, rig)
    alone = rotations(rig, FRAMES)
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = tail(6)
    key_bend(rig)
    run(bake, rig, "REST")
    assert np.abs(rotations(rig, FRAMES) - alone).max() == 0.0


def test_one_axis_with_keys(bake):
    """Of an Euler rotation with keys on X alone, Y and Z start from rest."""
    found = []
    for left_behind in ((0.0, 0.0), (0.4, -0.3)):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = tail(3)
        bone = rig.pose.bones["bone_1"]
        bone.rotation_mode = "XYZ"
        for frame, angle in ((1, 0.0), (20, 0.9)):
            bone.rotation_euler.x = angle
            bone.keyframe_insert("rotation_euler", index=0, frame=frame)
        bone.rotation_euler[1:] = left_behind
        bpy.context.scene.frame_set(1)
        report = run(bake, rig)
        found.append(rotations(rig, FRAMES))
        assert ("bone_1" in report.from_rest) == any(left_behind)
    assert np.abs(found[0] - found[1]).max() == 0.0


def test_locked_axes_stay_as_they_are(bake):
    rig = tail(3)
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.lock_rotation = "XYZ", (False, True, False)
    bone.rotation_euler = (0.5, 0.3, 0.2)
    report = run(bake, rig)
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert bone.rotation_euler.y == pytest.approx(0.3, abs=1e-5)
    assert report.from_rest == ("bone_1",)


def test_what_is_not_baked_stands_as_it_stood(bake):
    """Bones above the chain, and stiff ones in it, keep the pose that they are in."""
    rig = tail(6, reach=4)
    rig.pose.bones["bone_3"].ccd_rig.stiffness = 1.0
    for name in ("bone_0", "bone_3"):
        rig.pose.bones[name].rotation_quaternion = Quaternion((1, 0, 0), 0.3)
    report = run(bake, rig)
    bpy.context.scene.frame_set(7)
    for name in ("bone_0", "bone_3"):
        assert rig.pose.bones[name].rotation_quaternion.angle == pytest.approx(0.3, abs=SAME)
    assert report.from_rest == ()


def test_slides_start_from_rest_too(bake):
    found = []
    for left_behind in (0.0, 0.15):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = tail(3)
        own = rig.pose.bones["bone_0"].ccd_rig
        own.use_slide = (False, True, False)
        own.slide_lower[1], own.slide_upper[1] = -0.2, 0.2
        rig.pose.bones["bone_0"].location = (0.05, left_behind, 0.0)
        run(bake, rig)
        bpy.context.scene.frame_set(9)
        found.append([*rig.pose.bones["bone_0"].location, *rig.pose.bones["bone_1"].rotation_quaternion])
        assert found[-1][0] == pytest.approx(0.05, abs=SAME)  # along X it does not slide
    assert found[0] == found[1]


def test_strips_count_as_animation(bake):
    rig = tail(3)
    key_bend(rig)
    animation = rig.animation_data
    action = animation.action
    animation.action = None
    animation.nla_tracks.new().strips.new("Bend", 1, action)
    bpy.context.scene.frame_set(1)
    bpy.context.scene.frame_set(10)
    bent = rig.pose.bones["bone_1"].rotation_quaternion.angle
    assert bent > 0.5
    report = run(bake, rig, destination=bake.Destination.NLA_STRIP)
    assert report.from_rest == ()


def test_a_second_bake_from_the_original_is_the_first(bake):
    """What a bake started from is noted with its action, at influence below 1 too."""
    rig = tail(4)
    key_bend(rig)
    rig.pose.bones["bone_0"].rotation_quaternion = Quaternion((0, 0, 1), 0.7)
    rig.ccd_rig.constraints[0].influence = 0.5
    run(bake, rig)
    first = rotations(rig, FRAMES)
    run(bake, rig, "ORIGINAL")
    assert np.abs(rotations(rig, FRAMES) - first).max() < 2e-5


def test_planted_feet_after_solve(bake):
    """Solve moves the root bone, which has no keys: the bake does not care."""
    found = []
    for solve in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = rigs.armature(
            [
                rigs.B("hips", (0, 0, 1), (0, 0, 1.2)),
                rigs.B("thigh", (0, 0, 1), (0, -0.05, 0.5), "hips"),
                rigs.B("shin", (0, -0.05, 0.5), (0, 0, 0.1), "thigh", connect=True),
                rigs.B("foot", (0, 0, 0.1), (0, -0.2, 0), "shin", connect=True),
                rigs.B("spine", (0, 0, 1.2), (0, 0, 1.6), "hips", connect=True),
            ]
        )
        goal = rigs.empty("Goal", (0.0, -0.15, 1.45))
        for kind, tip, target, length in (("PLANT", "foot", None, 4), ("REACH", "spine", goal, 2)):
            rigs.reach(rig, tip, target, kind=kind, chain_length=length)
        rigs.update()
        if solve:
            rigs.activate(rig)
            bpy.ops.ccd_rig.solve()
            assert rig.pose.bones["hips"].location.length > 0.01
        report = run(bake, rig)
        assert report.unsolved_count() == 0, report.summary()
        found.append(rotations(rig, FRAMES))
    assert np.abs(found[0] - found[1]).max() < SAME
