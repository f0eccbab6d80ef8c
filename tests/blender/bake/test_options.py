"""Options of a bake: stored with the armature, and where a bake goes that is made again."""

from __future__ import annotations

import bpy
import pytest
import rigs


@pytest.fixture
def rig(ext):
    made = rigs.chain(3)
    rigs.reach(made, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0)), "Hand")
    rigs.activate(made)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 4
    return made


def frames(ext, rig):
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    return sorted({int(point.co[0]) for curve in curves for point in curve.keyframe_points})


def test_the_button_takes_what_the_armature_stores(ext, rig):
    """A button's call gets them before it starts; what the call names counts more. A script gets defaults."""
    options = ext.module("ccd_rig.blender.bake.settings")
    rig.ccd_rig.bake.keys, rig.ccd_rig.bake.step = "SOLVED_FRAMES", 3
    called = bpy.context.window_manager.operator_properties_last("ccd_rig.bake")
    names = list(options.CCD_RIG_PG_bake.__annotations__)
    for name in names:
        called.property_unset(name)
    called.start = "REST"
    options.take_stored(called, rig)
    assert (called.keys, called.step, called.start) == ("SOLVED_FRAMES", 3, "REST")
    assert rig.ccd_rig.bake.start == "ACTION"
    for name in names:
        called.property_unset(name)
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert frames(ext, rig) == [1, 2, 3, 4]


def written(stored):
    """What a file holds of a group of properties."""
    return stored.bl_system_properties_get() if hasattr(stored, "bl_system_properties_get") else stored


def test_what_an_earlier_version_has_stored_is_ignored(ext, rig, tmp_path):
    """An order of frames and a preroll, which the panel has no more."""
    written(rig.ccd_rig.bake)["order"] = 2
    written(rig.ccd_rig.bake)["preroll"] = 3
    path = str(tmp_path / "file.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    rig = bpy.data.objects["Rig"]
    rigs.activate(rig)
    assert not hasattr(rig.ccd_rig.bake, "order")
    assert bpy.ops.ccd_rig.bake("INVOKE_DEFAULT") == {"FINISHED"}
    assert frames(ext, rig) == [1, 2, 3, 4]


def test_a_choice_of_a_later_version_is_refused(ext, rig):
    errors, options = ext.module("ccd_rig.errors"), ext.module("ccd_rig.blender.bake.settings")
    stored = rig.ccd_rig.bake
    written(stored)["keys"] = 99
    called = bpy.context.window_manager.operator_properties_last("ccd_rig.bake")
    with pytest.raises(errors.RigError, match="Keys is not known to this version"):
        options.take_stored(called, rig)


def test_options_belong_to_their_armature(ext, rig, tmp_path):
    other = rigs.chain(2, name="Other")
    rig.ccd_rig.bake.start = "REST"
    assert other.ccd_rig.bake.start == "ACTION"
    rig.ccd_rig.bake.smoothness = 0.0
    rig.ccd_rig.bake.use_ground, rig.ccd_rig.bake.ground = True, 0.25
    path = str(tmp_path / "file.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    stored = bpy.data.objects["Rig"].ccd_rig.bake
    assert (stored.start, stored.smoothness) == ("REST", 0.0)
    assert (stored.use_ground, stored.ground) == (True, 0.25)


def test_the_stored_options_have_the_defaults_of_a_bake(ext, rig):
    options, settings = (
        ext.module("ccd_rig.blender.bake.settings"),
        ext.module("ccd_rig.blender.bake.settings"),
    )
    new = options.bake_settings(bpy.context.scene, rig.ccd_rig.bake, rig, (1, 4))
    assert new == settings.BakeSettings(1, 4, error_reduction=new.error_reduction)


def test_a_bake_made_again_overwrites(ext, rig):
    """The motion before stays once; what a hand has made is never overwritten."""
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=1)
    first = rig.animation_data.action
    for _ in range(3):
        assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
        baked = rig.animation_data.action
        assert baked != first and set(bpy.data.actions) == {first, baked}
        assert first.use_fake_user and not baked.use_fake_user
    assert bpy.ops.ccd_rig.bake(destination="NEW_ACTION") == {"FINISHED"}
    assert len(bpy.data.actions) == 3


def test_a_bone_that_comes_later_is_remembered_too(ext, rig):
    """A bake of another chain into the same action knows what played on it before."""
    bone = rig.pose.bones["bone_0"]
    row = rig.ccd_rig.constraints[0]
    row.chain_length = 1
    bpy.ops.ccd_rig.bake()
    row.chain_length = 0
    bone.rotation_quaternion = (0.9, 0.1, 0.0, 0.0)
    bpy.ops.ccd_rig.bake(start="POSE")
    pose = rig.animation_data.action["ccd_rig_pose"].to_dict()
    assert set(pose) == {"bone_0", "bone_1", "bone_2"}
    assert pose["bone_0"]["rotation_quaternion"][0] == pytest.approx(0.9)


def test_an_action_that_others_use_is_not_overwritten(channels, rig):
    bpy.ops.ccd_rig.bake()
    baked = rig.animation_data.action
    twin = rig.copy()
    bpy.context.scene.collection.objects.link(twin)
    twin.animation_data_create()
    channels.assign(twin, baked, channels.slot_of(rig.animation_data))
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert rig.animation_data.action != baked and twin.animation_data.action == baked


# --- Auto Keying


@pytest.fixture
def auto(rig):
    settings, edit = bpy.context.scene.tool_settings, bpy.context.preferences.edit
    before = edit.use_keyframe_insert_available, edit.use_auto_keyframe_insert_needed
    edit.use_keyframe_insert_available = edit.use_auto_keyframe_insert_needed = False
    settings.use_keyframe_insert_auto = True
    yield settings
    edit.use_keyframe_insert_available, edit.use_auto_keyframe_insert_needed = before


def keyed_paths(ext, thing):
    return {curve.data_path for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(thing)}


ROTATIONS = {f'pose.bones["bone_{i}"].rotation_quaternion' for i in range(3)}


def test_solve_honours_auto_keying(ext, rig, auto):
    bpy.context.scene.frame_set(3)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert keyed_paths(ext, rig) == ROTATIONS
    assert frames(ext, rig) == [3]


def test_without_auto_keying_solve_sets_no_keys(ext, rig):
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = False
    bpy.ops.ccd_rig.solve()
    assert rig.animation_data is None


def test_auto_keying_that_only_replaces(ext, rig, auto):
    auto.auto_keying_mode = "REPLACE_KEYS"
    bpy.ops.ccd_rig.solve()
    assert keyed_paths(ext, rig) == set()


def test_auto_keying_of_available_channels_alone(ext, rig, auto):
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=1)
    bpy.context.preferences.edit.use_keyframe_insert_available = True
    bpy.context.scene.frame_set(4)
    bpy.ops.ccd_rig.solve()
    assert keyed_paths(ext, rig) == {'pose.bones["bone_1"].rotation_quaternion'}
    assert frames(ext, rig) == [1, 4]


def test_a_pose_of_the_library_honours_auto_keying(ext, rig, auto):
    bpy.ops.ccd_rig.pose_capture()
    bpy.context.scene.frame_set(2)
    assert bpy.ops.ccd_rig.pose_apply() == {"FINISHED"}
    assert keyed_paths(ext, rig) == ROTATIONS and frames(ext, rig) == [2]
