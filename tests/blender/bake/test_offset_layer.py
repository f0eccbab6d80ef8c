"""Raise Over Frames: a layer over the motion of a target, and nothing else changed."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector
from operator_calls import add, both_ways, fails, posed_chain, undo_push

PATH = "ccd_rig.constraints[0].offset"
FRAMES = range(1, 81)


@pytest.fixture
def rig(ext):
    """A chain whose target has a key at every frame."""
    made = posed_chain(ext)
    row = add(made)
    for frame in FRAMES:
        row.target.location = (1.0 + 0.2 * math.sin(0.2 * frame), 0.5, 1.5)
        row.target.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    bpy.context.scene.frame_set(1)
    return made


def curves(channels, thing, path):
    return {c.array_index: c for c in channels.fcurves_of(thing) if c.data_path == path}


def played(channels, rig, frames=FRAMES):
    """(F, 3) Target Offset as it plays; what has no F-curve as it stands."""
    row, by_index = rig.ccd_rig.constraints[0], curves(channels, rig, PATH)
    return np.array(
        [[by_index[i].evaluate(f) if i in by_index else row.offset[i] for i in range(3)] for f in frames]
    )


def smoothstep(x):
    return x * x * (3.0 - 2.0 * x)


def shape(start, end, falloff, frames=FRAMES):
    corners = start - falloff, start, end, end + falloff
    return smoothstep(np.interp(frames, corners, (0.0, 1.0, 1.0, 0.0)))


def test_a_hand_is_raised_for_a_while(rig, channels, bake):
    """Four keys, the target's own keys untouched, and a bake that follows."""
    row = rig.ccd_rig.constraints[0]
    row.offset_space = "WORLD"
    target = row.target
    before = [np.array([k.co[:] for k in c.keyframe_points]) for c in channels.fcurves_of(target)]
    raised = bpy.ops.ccd_rig.offset_raise(distance=0.3, direction="POS_Z", start=20, end=44, falloff=6)
    assert raised == {"FINISHED"}
    by_index = curves(channels, rig, PATH)
    assert [k.co[0] for k in by_index[2].keyframe_points] == [14, 20, 44, 50]
    wanted = np.zeros((len(FRAMES), 3))
    wanted[:, 2] = 0.3 * shape(20, 44, 6)
    assert np.allclose(played(channels, rig), wanted, atol=1e-5)
    after = [np.array([k.co[:] for k in c.keyframe_points]) for c in channels.fcurves_of(target)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 80))
    assert report.unsolved() == ()
    for frame, shift in ((10, 0.0), (17, 0.15), (30, 0.3), (60, 0.0)):
        bpy.context.scene.frame_set(frame)
        tip = rig.matrix_world @ rig.pose.bones["bone_2"].tail
        assert (tip - target.matrix_world.translation - Vector((0.0, 0.0, shift))).length < 3e-4, frame


def test_the_present_frame_and_a_second_without_words(rig, channels):
    bpy.context.scene.render.fps = 25
    bpy.context.scene.frame_set(30)
    assert bpy.ops.ccd_rig.offset_raise() == {"FINISHED"}
    assert np.allclose(played(channels, rig)[:, 2], 0.1 * shape(30, 55, 5), atol=1e-5)


def test_up_is_the_worlds_though_the_target_is_turned(rig, channels):
    """A hand went sideways, along the axis of its target."""
    row = rig.ccd_rig.constraints[0]
    row.target.rotation_euler.x = 1.2
    bpy.context.scene.frame_set(20)
    assert row.offset_space == "TARGET"
    assert bpy.ops.ccd_rig.offset_raise(start=20, end=44) == {"FINISHED"}
    assert row.offset_space == "WORLD"
    assert bpy.ops.ccd_rig.offset_raise(start=20, end=44, space="WORLD") == {"FINISHED"}
    before = played(channels, rig)
    fails(bpy.ops.ccd_rig.offset_raise, "is used along World", start=20, end=44, space="TARGET")
    assert row.offset_space == "WORLD"
    assert np.array_equal(played(channels, rig), before)


@pytest.mark.parametrize("use", ["chosen", "keyed", "shifted"])
def test_a_space_that_was_chosen_or_is_used_stays(rig, use):
    row = rig.ccd_rig.constraints[0]
    if use == "chosen":
        row.offset_space = "ARMATURE"
    elif use == "keyed":
        row.keyframe_insert("offset", frame=60)
    else:
        row.offset.x = 0.1
    space = row.offset_space
    assert bpy.ops.ccd_rig.offset_raise(start=20, end=44) == {"FINISHED"}
    assert row.offset_space == space


@pytest.mark.parametrize("interpolation", ["BEZIER", "LINEAR", "CONSTANT"])
@pytest.mark.parametrize("keyed", [range(3), (2,), (0, 2)])
def test_keys_that_are_there_play_on_below_the_layer(rig, channels, interpolation, keyed):
    """Inside it their motion has the shift on top; outside every frame is as it was."""
    row = rig.ccd_rig.constraints[0]
    for place, i in enumerate(keyed):
        for frame, value in ((2 + place, 0.1), (16, -0.2), (33, 0.4), (58 - place, 0.0), (70, 0.2)):
            row.offset[i] = value * (1 + i)
            row.keyframe_insert("offset", index=i, frame=frame)
    rigs.interpolate(curves(channels, rig, PATH).values(), interpolation)
    before = played(channels, rig)
    bpy.ops.ccd_rig.offset_raise(distance=0.3, direction="NEG_Y", start=20, end=44, falloff=6)
    wanted = before.copy()
    wanted[:, 1] -= 0.3 * shape(20, 44, 6)
    assert np.abs(played(channels, rig) - wanted).max() < 2e-6


@pytest.mark.parametrize(("start", "end"), [(20, 44), (16, 58), (22, 52)])
def test_layers_add_up_wherever_the_second_one_lies(rig, channels, start, end):
    bpy.ops.ccd_rig.offset_raise(distance=0.3, direction="POS_Z", start=20, end=44, falloff=6)
    before = played(channels, rig)
    bpy.ops.ccd_rig.offset_raise(distance=0.2, direction="POS_X", start=start, end=end, falloff=2)
    before[:, 0] += 0.2 * shape(start, end, 2)
    assert np.abs(played(channels, rig) - before).max() < 1e-5


def test_frames_that_are_stretched(rig, channels):
    """At a scene frame Blender shows what lies at another time of keys."""
    scene = bpy.context.scene
    scene.render.frame_map_old, scene.render.frame_map_new = 100, 200
    bpy.ops.ccd_rig.offset_raise(distance=0.3, start=20, end=44, falloff=6)
    for frame in (13, 17, 30, 47, 51):
        scene.frame_set(frame)
        assert rig.ccd_rig.constraints[0].offset[2] == pytest.approx(
            0.3 * shape(20, 44, 6, [frame])[0], abs=1e-5
        )


def test_undo_and_redo(rig, channels):
    def state():
        thing = bpy.data.objects[rig_name]
        return played(channels, thing).tolist()

    rig_name = rig.name
    undo_push()
    before = state()
    bpy.ops.ccd_rig.offset_raise(distance=0.3, start=20, end=44)
    undo_push()
    both_ways(before, state(), state)


def test_what_cannot_be_raised_is_told_and_stays(rig, channels):
    row = rig.ccd_rig.constraints[0]
    raising = bpy.ops.ccd_rig.offset_raise
    fails(raising, "the start must not lie after the end", start=30, end=20)
    assert not curves(channels, rig, PATH)
    curve = row.driver_add("offset", 2)
    fails(raising, f"Constraint '{row.name}': Target Offset has a driver", start=1, end=20)
    assert len(rig.animation_data.drivers) == 1
    row.driver_remove("offset", 2)
    row.keyframe_insert("offset", frame=4)
    (_, _, curve) = (curves(channels, rig, PATH)[i] for i in range(3))
    before = played(channels, rig).tolist()
    curve.extrapolation = "LINEAR"
    fails(raising, "goes on beyond its keys", start=1, end=20)
    curve.extrapolation = "CONSTANT"
    curve.lock = True
    fails(raising, "is locked: unlock it", start=1, end=20)
    curve.lock = False
    row.target = None
    fails(raising, f"Constraint '{row.name}' has no target: choose one first", start=1, end=20)
    assert played(channels, rig).tolist() == before
    rig.ccd_rig.active_index = -1
    fails(raising, "No constraint is active", start=1, end=20)


def in_a_strip(rig, indices=(0, 1, 2)):
    """Put keys of Target Offset into a strip; return the constraint, the animation data and the track."""
    row = rig.ccd_rig.constraints[0]
    for frame, height in ((1, 0.0), (40, 0.5), (80, 0.0)):
        row.offset = (0.0, 0.0, height)
        for i in indices:
            row.keyframe_insert("offset", index=i, frame=frame)
    animation = rig.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("Layer", 1, animation.action)
    animation.action = None
    row.offset = (0.0, 0.2, 0.0)  # plays where no strip moves it
    return row, animation, track


def shown(rig, frames=FRAMES):
    values = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        values.append(rig.ccd_rig.constraints[0].offset[:])
    return np.array(values)


@pytest.mark.parametrize("direction", ["POS_Z", "NEG_X"])
@pytest.mark.parametrize("indices", [(0, 1, 2), (2,)])
@pytest.mark.parametrize("keyed", [True, False])
def test_an_offset_that_nla_strips_play_gets_a_strip_that_is_added(rig, bake, direction, indices, keyed):
    """Below the present action, which goes on playing what it has."""
    row, animation, _ = in_a_strip(rig, indices)
    if keyed:
        row.keyframe_insert("influence", frame=1)
    action = animation.action
    before = shown(rig)
    raised = {"distance": 0.2, "direction": direction, "start": 30, "end": 42, "falloff": 6}
    assert bpy.ops.ccd_rig.offset_raise(**raised) == {"FINISHED"}
    wanted = before.copy()
    wanted[:, "XYZ".index(direction[-1])] += (0.2 if direction[0] == "P" else -0.2) * shape(30, 42, 6)
    assert np.abs(shown(rig) - wanted).max() < 1e-5
    assert animation.action == action
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 80))
    assert report.unsolved() == ()


def test_strips_to_which_none_can_be_added_are_told_and_stay(rig):
    row, animation, track = in_a_strip(rig)
    before = shown(rig, (10, 40, 70)).tolist()
    words = f"Constraint '{row.name}': Target Offset plays in NLA strips"
    raised = {"distance": 0.2, "start": 38, "end": 42, "falloff": 3}
    track.is_solo = True
    fails(bpy.ops.ccd_rig.offset_raise, words, **raised)
    track.is_solo = False
    assert len(animation.nla_tracks) == 1 and shown(rig, (10, 40, 70)).tolist() == before
    row.keyframe_insert("offset", frame=1)
    fails(bpy.ops.ccd_rig.offset_raise, words, **raised)
    track.mute = True
    assert bpy.ops.ccd_rig.offset_raise(**raised) == {"FINISHED"}
