"""Poses that are captured: the present one, those of an action, pose assets."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from library_poses import key, mixed_chain, read, same, stored, turn
from mathutils import Euler, Quaternion
from operator_calls import fails, select


@pytest.fixture
def rig(ext):
    return mixed_chain(ext)


def test_capture_the_present_pose(ext, library, rig, capfd):
    wanted = {"bone_0": turn(20), "bone_1": turn(50, "Z"), "bone_2": turn(-70, "Y")}
    for bone, rotation in wanted.items():
        rigs.set_rotation(rig.pose.bones[bone], rotation)
    assert bpy.ops.ccd_rig.pose_capture() == {"FINISHED"}
    assert "Captured 1 pose of 2 bones" in capfd.readouterr().out
    bpy.ops.ccd_rig.pose_capture(bones="SELECTED", name="Pose")
    bpy.ops.ccd_rig.pose_capture(bones="SELECTED", name="Low")
    chains, selected, low = stored(library)
    assert [entry.name for entry in (chains, selected, low)] == ["Pose", "Pose.001", "Low"]
    assert list(chains.rotations) == ["bone_1", "bone_2"]
    assert list(selected.rotations) == ["bone_0"]
    for entry in (chains, selected):
        for bone, rotation in entry.rotations.items():
            assert same(rotation, wanted[bone]), bone
    assert rig.ccd_rig.active_pose == 2


def test_capture_what_live_shows(library, rig):
    """Applied with Live off, the bones stand as Live has shown them."""
    rig.ccd_rig.constraints[0].target = rigs.empty("Goal", (0.7, 0.4, 1.9))
    rigs.activate(rig)
    rigs.set_rotation(rig.pose.bones["bone_0"], turn(20))
    bpy.ops.ccd_rig.live()
    rigs.update()
    seen = [bone.matrix.copy() for bone in rig.pose.bones]
    own = [tuple(bone.rotation_euler) for bone in rig.pose.bones]
    bpy.ops.ccd_rig.pose_capture()
    bpy.ops.ccd_rig.live()
    assert [tuple(bone.rotation_euler) for bone in rig.pose.bones] == own
    bpy.ops.ccd_rig.pose_apply()
    rigs.update()
    for bone, matrix in zip(rig.pose.bones, seen, strict=True):
        assert max(abs(value) for row in bone.matrix - matrix for value in row) < 1e-5, bone.name


def test_capture_what_live_shows_no_longer(library, rig):
    """With its only constraint at influence 0, Live shows the channels."""
    row = rig.ccd_rig.constraints[0]
    row.target = rigs.empty("Goal", (0.7, 0.4, 1.9))
    rigs.activate(rig)
    rigs.set_rotation(rig.pose.bones["bone_1"], turn(20))
    bpy.ops.ccd_rig.live()
    rigs.update()
    row.influence = 0.0
    rig.update_tag()
    rigs.update()
    bpy.ops.ccd_rig.pose_capture()
    (entry,) = stored(library)
    assert same(entry.rotations["bone_1"], turn(20))


def test_renaming_keeps_names_unique(library, rig):
    for _ in range(2):
        bpy.ops.ccd_rig.pose_capture()
    rig.ccd_rig.poses[1].name = "Pose"
    assert [entry.name for entry in stored(library)] == ["Pose", "Pose.001"]
    rig.ccd_rig.poses[0].name = ""
    assert rig.ccd_rig.poses[0].name == "Pose"


def test_capture_says_what_is_missing(ext, rig):
    select(ext, rig)
    fails(bpy.ops.ccd_rig.pose_capture, "no bone is selected", bones="SELECTED")
    fails(bpy.ops.ccd_rig.pose_capture, "'Rig' has no action", source="ACTION")
    rig.pose.bones["bone_1"].rotation_euler.x = math.nan
    fails(bpy.ops.ccd_rig.pose_capture, "bone 'bone_1' has a rotation that is not a number")
    rig.pose.bones["bone_1"].rotation_euler.x = 0.0
    rig.ccd_rig.constraints.clear()
    fails(bpy.ops.ccd_rig.pose_capture, "has no CCD constraint with bones: choose Selected Bones")
    assert len(rig.ccd_rig.poses) == 0


def test_capture_an_action_without_touching_the_scene(library, rig):
    """Entries are what Blender plays at each frame, though no frame is visited."""
    rng_turns = {1: (10, -20, 5), 9: (60, 30, -80), 21: (-40, 75, 120)}
    for frame, degrees in rng_turns.items():
        for bone, angle, axis in zip(("bone_0", "bone_1", "bone_2"), degrees, "XYZ", strict=True):
            key(rig, bone, frame, turn(angle, axis))
    scene = bpy.context.scene
    scene.frame_set(5)
    before = read(rig)
    assert bpy.ops.ccd_rig.pose_capture(source="ACTION", step=6) == {"FINISHED"}
    assert scene.frame_current == 5
    assert read(rig) == before
    found = stored(library)
    name = rig.animation_data.action.name
    assert [entry.name for entry in found] == [f"{name} {frame}" for frame in (1, 7, 13, 19, 21)]
    for entry, frame in zip(found, (1, 7, 13, 19, 21), strict=True):
        scene.frame_set(frame)
        assert set(entry.rotations) == {"bone_1", "bone_2"}
        for bone, rotation in entry.rotations.items():
            assert same(rotation, read(rig)[bone]), (bone, frame)


def test_an_actions_own_range_and_its_size(ext, library, rig):
    key(rig, "bone_1", 1, turn(10))
    key(rig, "bone_1", 5000, turn(90))
    options = {"source": "ACTION", "step": 4}
    fails(bpy.ops.ccd_rig.pose_capture, "would give 1251 poses, more than 1000", **options)
    action = rig.animation_data.action
    action.use_frame_range = True
    action.frame_start, action.frame_end = 3, 9
    bpy.ops.ccd_rig.pose_capture(**options)
    assert [entry.name for entry in stored(library)] == [f"{action.name} {frame}" for frame in (3, 7, 9)]
    select(ext, rig, "bone_0")
    words = f"action '{action.name}' turns none of the bones bone_0"
    fails(bpy.ops.ccd_rig.pose_capture, words, bones="SELECTED", **options)


def test_what_is_not_animated_or_muted_is_as_it_stands(library, channels, rig):
    """Of the Euler angles of bone_1 only X plays; Y has no keys and Z is muted."""
    bone = rig.pose.bones["bone_1"]
    bone.rotation_euler = (0.0, 0.0, 0.0)
    for frame, angle in ((1, 0.0), (11, 1.0)):
        bone.rotation_euler = (angle, 0.0, angle)
        bone.keyframe_insert("rotation_euler", index=0, frame=frame)
        bone.keyframe_insert("rotation_euler", index=2, frame=frame)
    for curve in channels.fcurves_of(rig):
        curve.mute = curve.array_index == 2
    bone.rotation_euler = (0.0, 0.4, 0.25)
    bpy.ops.ccd_rig.pose_capture(source="ACTION", step=10)
    first, last = stored(library)
    assert same(first.rotations["bone_1"], Euler((0.0, 0.4, 0.25), "ZXY").to_quaternion())
    assert same(last.rotations["bone_1"], Euler((1.0, 0.4, 0.25), "ZXY").to_quaternion())


def test_a_keyed_rotation_mode_is_honoured(library, rig):
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = turn(30)
    bone.keyframe_insert("rotation_quaternion", frame=1)
    bone.keyframe_insert("rotation_mode", frame=1)
    bone.rotation_mode = "XYZ"
    bpy.ops.ccd_rig.pose_capture(source="ACTION")
    (entry,) = stored(library)
    assert same(entry.rotations["bone_1"], turn(30))


@pytest.fixture
def asset(rig):
    """The action "Fist", a pose asset that the armature does not use."""
    key(rig, "bone_1", 4, turn(33))
    key(rig, "bone_0", 4, turn(11))
    action = rig.animation_data.action
    action.name, action.use_fake_user = "Fist", True
    action.asset_mark()
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion())
    return action


def test_capture_a_pose_asset(ext, library, rig, asset):
    assert bpy.ops.ccd_rig.pose_capture(source="ASSET", asset="Fist") == {"FINISHED"}
    (entry,) = stored(library)
    assert (entry.name, list(entry.rotations)) == ("Fist", ["bone_1"])
    assert same(entry.rotations["bone_1"], turn(33))
    assert rig.animation_data is None
    assert all(same(each, Quaternion()) for each in read(rig).values())


def test_what_is_no_pose_asset(ext, library, rig, asset):
    bpy.data.actions.new("Plain")
    capture = bpy.ops.ccd_rig.pose_capture
    fails(capture, "choose a pose asset; pose assets in this file: Fist", source="ASSET")
    fails(capture, "there is no action 'Fast'", source="ASSET", asset="Fast")
    fails(capture, "'Plain' is not a pose asset: mark it as an asset", source="ASSET", asset="Plain")
    select(ext, rig, "bone_2")
    words = "action 'Fist' turns none of the bones bone_2"
    fails(capture, words, source="ASSET", asset="Fist", bones="SELECTED")
    other = rigs.chain(3, name="Other")
    rigs.activate(other)
    key(other, "bone_1", 1, turn(1))
    key(other, "bone_1", 9, turn(2))
    other.animation_data.action.name = "Walk"
    other.animation_data.action.asset_mark()
    rigs.activate(rig)
    fails(capture, "has frames 1 to 9, but a pose asset has one", source="ASSET", asset="Walk")
    material = bpy.data.materials.new("Paint")
    material.diffuse_color = (1.0, 0.0, 0.0, 1.0)
    material.keyframe_insert("diffuse_color", frame=1)
    material.animation_data.action.name = "Colour"
    material.animation_data.action.asset_mark()
    fails(capture, "action 'Colour' is not for objects", source="ASSET", asset="Colour")
    assert len(rig.ccd_rig.poses) == 0
