"""Files that look odd and are fine: shared actions, two scenes, hidden collections, frames below zero."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion


@pytest.fixture
def rig(ext):
    made = rigs.chain(3, 0.5)
    goal = rigs.empty("Goal")
    for frame, x in ((-8, 0.2), (8, 0.8)):
        goal.location = (x, 0.2, 1.0)
        goal.keyframe_insert("location", frame=frame)
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_2", goal
    for frame, angle in ((-8, 0.1), (8, 0.9)):
        made.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        made.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(0)
    return made


def sound(bake, rig, scene=None, **fields):
    report = bake.bake(scene or bpy.context.scene, rig, bake.BakeSettings(-8, 8, **fields))
    assert report.unsolved_count() == 0
    assert report.solved_count() == 17
    assert report.check.mismatches() == ()
    [played] = report.check.results
    assert played.residual < 1e-4 + 1e-5
    return report


def turns(thing):
    found = []
    for frame in (-8, -3, 0, 5, 8):
        bpy.context.scene.frame_set(frame)
        found.append([tuple(bone.rotation_quaternion) for bone in thing.pose.bones])
    return np.array(found)


@pytest.mark.parametrize("destination", ["NEW_ACTION", "NLA_STRIP"])
def test_another_object_with_the_same_action_keeps_its_motion(bake, rig, destination):
    other = rig.copy()
    bpy.context.scene.collection.objects.link(other)
    assert other.animation_data.action == rig.animation_data.action
    before = turns(other)
    sound(bake, rig, destination=bake.Destination[destination])
    assert np.array_equal(turns(other), before)


def test_who_else_is_moved_in_place_is_said_before(ext, checks, rig):
    places = ext.module("ccd_rig.blender.keys.writer").Destination

    def said(where):
        return [p.message for p in checks.problems(rig, bpy.context.scene, (), where)]

    assert said(places.CURRENT_ACTION) == []
    other = rig.copy()
    other.name = "Twin"
    bpy.context.scene.collection.objects.link(other)
    [message] = said(places.CURRENT_ACTION)
    assert "'Rig': its action moves 'Twin' too" in message
    assert "choose New Action" in message
    assert said(places.NEW_ACTION) == said(places.NLA_STRIP) == said(None) == []


def test_an_armature_in_two_scenes(bake, rig):
    second = bpy.data.scenes.new("Second")
    for thing in (rig, bpy.data.objects["Goal"]):
        second.collection.objects.link(thing)
    second.render.fps, second.frame_current = 30, 77
    sound(bake, rig)
    assert (second.frame_current, len(bpy.data.scenes)) == (77, 2)
    sound(bake, rig, second)
    assert bpy.context.scene.frame_current == 0


@pytest.mark.parametrize("how", ["hide_viewport", "hide_render", "exclude"])
def test_hidden_collections(bake, rig, how):
    hidden = bpy.data.collections.new("Hidden")
    bpy.context.scene.collection.children.link(hidden)
    for thing in (rig, bpy.data.objects["Goal"]):
        bpy.context.scene.collection.objects.unlink(thing)
        hidden.objects.link(thing)
    layer = bpy.context.view_layer.layer_collection.children["Hidden"]
    setattr(layer if how == "exclude" else hidden, how, True)
    rigs.update()
    sound(bake, rig)


def test_a_range_that_starts_and_ends_below_zero(bake, rig):
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(-8, -2))
    assert [row.frame for row in report.entries] == list(range(-8, -1))
    assert report.check.mismatches() == ()
