"""Auto Keying of what the extension's operators change, by Blender's preferences."""

from __future__ import annotations

import bpy
import pytest
import rigs
from keyed import link, make_armature

BONE = 'pose.bones["upper"]'


@pytest.fixture
def rig(ext):
    """Auto Keying is on, and afterwards the preferences are as before.

    The scene's settings go with the file. They must not be set after the test: once a test has read another
    file, Blender writes through a kept reference into freed memory.
    """
    made = make_armature()
    edit = bpy.context.preferences.edit
    names = ("use_keyframe_insert_available", "use_auto_keyframe_insert_needed", "use_visual_keying")
    before = {name: getattr(edit, name) for name in names}
    for name in names:
        setattr(edit, name, False)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    yield made
    for name, value in before.items():
        setattr(edit, name, value)


@pytest.fixture
def insert(ext):
    return ext.module("ccd_rig.blender.keys.auto_keys").insert


def moved(rig):
    return [(rig.pose.bones["upper"], "rotation_quaternion"), (rig, "location")]


def keys(channels, rig):
    """{path: its groups, and the frames of keys of all its curves}."""
    found = {}
    for curve in channels.fcurves_of(rig):
        name = curve.group.name if curve.group else ""
        group, frames = found.setdefault(curve.data_path, (name, set()))
        assert group == name
        frames |= {point.co[0] for point in curve.keyframe_points}
    return found


def test_it_is_off(channels, rig, insert):
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = False
    assert insert(bpy.context, moved(rig)) == "" and rig.animation_data is None


def test_what_is_named_is_keyed_in_blenders_groups(channels, rig, insert):
    bpy.context.scene.frame_set(7)
    assert insert(bpy.context, moved(rig)) == ""
    expected = {f"{BONE}.rotation_quaternion": ("upper", {7.0}), "location": ("Object Transforms", {7.0})}
    assert keys(channels, rig) == expected


@pytest.mark.parametrize("how", ["available", "replace"])
def test_only_what_has_keys_gets_keys(channels, rig, insert, how):
    """Of the mode Replace only keys at this frame."""
    rig.keyframe_insert("location", frame=1, group="Object Transforms")
    if how == "available":
        bpy.context.preferences.edit.use_keyframe_insert_available = True
    else:
        bpy.context.scene.tool_settings.auto_keying_mode = "REPLACE_KEYS"
    bpy.context.scene.frame_set(7)
    assert insert(bpy.context, moved(rig)) == ""
    frames = {1.0, 7.0} if how == "available" else {1.0}
    assert keys(channels, rig) == {"location": ("Object Transforms", frames)}
    bpy.context.scene.frame_set(1)
    rig.location.x = 5.0
    assert insert(bpy.context, moved(rig)) == ""
    bpy.context.scene.frame_set(2)
    bpy.context.scene.frame_set(1)
    assert rig.location.x == 5.0


def test_only_what_is_needed(channels, rig, insert):
    bpy.context.preferences.edit.use_auto_keyframe_insert_needed = True
    rig.keyframe_insert("location", frame=1)
    bpy.context.scene.frame_set(7)
    assert insert(bpy.context, [(rig, "location")]) == ""
    assert keys(channels, rig)["location"][1] == {1.0}
    rig.location.x += 1.0
    assert insert(bpy.context, [(rig, "location")]) == ""
    assert keys(channels, rig)["location"][1] == {1.0, 7.0}


def test_visual_keying_keys_what_is_seen(channels, rig, insert):
    target = rigs.empty("Target", (3.0, 0.0, 0.0))
    rig.constraints.new("COPY_LOCATION").target = target
    bpy.context.preferences.edit.use_visual_keying = True
    rigs.update()
    assert insert(bpy.context, [(rig, "location")]) == ""
    assert [curve.evaluate(1) for curve in channels.fcurves_of(rig)] == [3.0, 0.0, 0.0]


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_the_active_keying_set_is_applied_to_what_moved(channels, rig, insert, mode):
    """Not to what is selected, and the named channels do not count."""
    beside = rigs.empty("Beside")
    rigs.activate(rig)
    beside.select_set(True)
    bpy.ops.object.mode_set(mode=mode)
    keying_sets = bpy.context.scene.keying_sets_all
    keying_sets.active = next(each for each in keying_sets if each.bl_idname == "Scaling")
    bpy.context.scene.tool_settings.use_keyframe_insert_keyingset = True
    if mode == "POSE":
        channels.select_bone(rig.pose.bones['lo"wer'], True)
    assert insert(bpy.context, moved(rig)[mode == "OBJECT" :][:1]) == ""
    assert set(keys(channels, rig)) == {f"{BONE}.scale" if mode == "POSE" else "scale"}
    assert beside.animation_data is None
    bpy.ops.object.mode_set(mode="OBJECT")


def test_a_keying_set_that_keys_nothing_is_told(rig, insert):
    """One of bones, in Object Mode."""
    rigs.activate(rig)
    keying_sets = bpy.context.scene.keying_sets_all
    keying_sets.active = next(each for each in keying_sets if each.bl_idname == "WholeCharacter")
    bpy.context.scene.tool_settings.use_keyframe_insert_keyingset = True
    assert "keying set 'Whole Character' has keyed nothing" in insert(bpy.context, [(rig, "location")])
    assert rig.animation_data is None


def test_an_action_of_a_library_is_told(channels, rig, insert, library):
    action = link(library, "actions", "Stored")
    rig = make_armature()
    rig.animation_data_create().action = action
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    words = insert(bpy.context, moved(rig))
    assert "action 'Stored' cannot be edited" in words
