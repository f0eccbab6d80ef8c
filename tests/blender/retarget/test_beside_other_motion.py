"""Retargeting onto figures that other actions, strips and keys move, and from sources that play nothing."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from retargeting import played, refused, run

BONES = ("spine", "spine.003", "thigh.L", "shin.L", "foot.L", "shin.R", "toe.R")
FRAMES = range(1, 50, 6)


def moved(rig, frame):
    """The figure with an action that turns, moves and scales bones; shown at a frame."""
    for name in ("shin.R", "spine.002", "thigh.L"):
        bone = rig.pose.bones[name]
        bone.rotation_mode = "XYZ"
        for at, value in ((1, 0.0), (20, 0.7), (40, -0.4)):
            bone.rotation_euler = (value, 0.5 * value, 0.0)
            bone.scale = (1.0 + value,) * 3
            for channel in ("rotation_euler", "scale"):
                bone.keyframe_insert(channel, frame=at)
            if not bone.bone.use_connect:
                bone.location = (0.25 * value, 0.0, 0.2 * value)
                bone.keyframe_insert("location", frame=at)
    bpy.context.scene.frame_set(frame)
    return rig.animation_data.action


def as_strip(thing, action):
    """The action as a strip instead."""
    track = thing.animation_data.nla_tracks.new()
    strip = track.strips.new("Strip", 1, action)
    thing.animation_data.action = None
    return track, strip


def reopened(rig, tmp_path):
    """What a figure plays, from the saved file."""
    name = rig.name
    path = tmp_path / "played.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return played(bpy.data.objects[name], BONES, FRAMES)


@pytest.fixture
def clean(target):
    """What the figure plays where nothing else moves it."""
    run(target)
    found = played(target, BONES, FRAMES)
    target.animation_data_clear()
    for bone in target.pose.bones:
        bone.matrix_basis.identity()
        bone.location, bone.rotation_quaternion = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    bpy.context.scene.frame_set(1)
    return found


@pytest.mark.parametrize("frame", [1, 20])
def test_an_action_that_played_before_has_no_part_in_it(target, clean, tmp_path, frame):
    before = moved(target, frame)
    run(target)
    assert target.animation_data.action is not before
    np.testing.assert_allclose(reopened(target, tmp_path), clean, atol=1e-3)


@pytest.mark.parametrize("frame", [1, 20])
def test_a_strip_that_plays_below_has_no_part_in_it(target, clean, tmp_path, frame):
    as_strip(target, moved(target, frame))
    run(target)
    np.testing.assert_allclose(reopened(target, tmp_path), clean, atol=1e-3)


def test_a_refusal_leaves_the_scale_of_bones(target):
    action = moved(target, 20)
    as_strip(target, action)
    target.animation_data.action, target.animation_data.action_influence = action, 0.5
    rigs.update()
    refused("set it to 1", target)
    assert target.animation_data.action is action
    assert target.pose.bones["shin.R"].scale[0] == pytest.approx(1.7)


def test_a_strip_that_is_tweaked_is_said(target):
    track, strip = as_strip(target, moved(target, 1))
    track.select = strip.select = True
    target.animation_data.nla_tracks.active = track
    target.animation_data.use_tweak_mode = True
    refused("leave tweak mode", target)


def test_a_source_of_strips_plays_as_long_as_they_do(source, target, clean):
    """The scene goes on long after them: what stands still there is no motion of the source."""
    as_strip(source, source.animation_data.action)
    bpy.context.scene.frame_end = 250
    run(target)
    assert target.animation_data.action.frame_range[:] == (1.0, 49.0)
    np.testing.assert_allclose(played(target, BONES, FRAMES), clean, atol=1e-3)


@pytest.mark.parametrize("muted", ["track", "strip", "curves"])
def test_a_source_that_plays_nothing_is_said(ext, source, target, muted):
    retarget = ext.module("ccd_rig.blender.retarget.retarget")
    chosen = ext.module("ccd_rig.blender.retarget.chosen")
    if muted == "curves":
        for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(source):
            curve.mute = True
    else:
        track, strip = as_strip(source, source.animation_data.action)
        (track if muted == "track" else strip).mute = True
    done = retarget.retarget_motion(bpy.context.scene, source, target, chosen.choice_of(target))
    assert retarget.warnings(done)[0] == retarget.STILL


def test_a_source_that_moves_is_not_said_to_stand_still(ext, source, target):
    retarget = ext.module("ccd_rig.blender.retarget.retarget")
    chosen = ext.module("ccd_rig.blender.retarget.chosen")
    done = retarget.retarget_motion(bpy.context.scene, source, target, chosen.choice_of(target))
    assert retarget.STILL not in retarget.warnings(done)


@pytest.mark.parametrize("name", ["feet", "scale", "in_place", "reference_frame", "hand_space"])
def test_settings_of_a_whole_motion_take_no_keys(ext, name):
    """They would count for nothing, silently."""
    rig = rigs.armature(rigs.biped(), "Figure")
    with pytest.raises(TypeError, match="not animatable"):
        rig.keyframe_insert(f"ccd_rig.retarget.{name}", frame=1)
