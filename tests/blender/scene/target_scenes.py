"""Rigs with targets in scenes: made, sampled, and held against what the main scene shows."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector

FRAMES = (1, 2.5, 7, 10, -3.75, 4)
FLOAT32 = 1e-6  # of values around 1
FLOAT32_FAR = 1e-5  # of values around 10, after an inverse


def animate(thing, path, frames=(-5, 3, 8, 12), seed=0, spread=1.0):
    """Random keys on a property of an object or a bone."""
    random = np.random.default_rng(seed)
    width = len(getattr(thing, path))
    for frame in frames:
        setattr(thing, path, tuple(random.uniform(-spread, spread, width)))
        thing.keyframe_insert(path, frame=frame)


def make_rig():
    """Three bones on an animated base, and beside them a bone of its own, in an object that moves."""
    rig = rigs.armature(
        [
            rigs.B("base", (0, 0, 0), (0, 0, 0.5)),
            rigs.B("upper", (0, 0, 0.5), (0, 0, 1.5), "base"),
            rigs.B("lower", (0, 0, 1.5), (0, 0.3, 2.5), "upper", 0.3, True),
            rigs.B("tip", (0, 0.3, 2.5), (0, 0.3, 3), "lower", -0.7, True),
            rigs.B("aside", (1, 0, 0), (1, 0, 1)),
        ]
    )
    rig.location, rig.rotation_euler = (0.4, -0.3, 0.2), (0.3, 0.5, -0.8)
    for index, bone in enumerate(("base", "upper", "lower", "aside")):
        animate(rig.pose.bones[bone], "rotation_quaternion", seed=20 + index)
    animate(rig.pose.bones["base"], "location", seed=30)
    animate(rig, "location", seed=31)
    return rig


def add_row(rig, target, bone="", tip="tip", length=3, name="Reach", **values):
    return rigs.reach(rig, tip, target, name, chain_length=length, target_bone=bone, **values)


def file_state():
    """All that a user could notice: numbers of data-blocks, values, the frame, mode and selection."""
    scene, layer = bpy.context.scene, bpy.context.view_layer
    counts = {
        name: len(getattr(bpy.data, name))
        for name, kind in bpy.data.bl_rna.properties.items()
        if kind.type == "COLLECTION"
    }
    objects = {}
    for item in bpy.data.objects:
        pose = (
            [
                (
                    *map(tuple, (b.location, b.rotation_quaternion, b.rotation_euler, b.scale)),
                    b.matrix.copy().freeze(),
                )
                for b in item.pose.bones
            ]
            if item.pose
            else []
        )
        objects[item.name] = (
            item.users,
            item.matrix_world.copy().freeze(),
            *map(tuple, (item.location, item.rotation_euler, item.scale)),
            item.hide_viewport,
            item.animation_data and item.animation_data.action,
            [row.influence for row in item.ccd_rig.constraints],
            pose,
        )
    return (
        counts,
        objects,
        (
            bpy.context.window.scene if bpy.context.window else None,
            scene,
            scene.frame_current,
            scene.frame_subframe,
        ),
        (layer.objects.active, bpy.context.mode, sorted(o.name for o in layer.objects if o.select_get())),
    )


def in_main_scene(rig, row, frame, scene=None):
    """What the user's scene shows: target in armature space, influence, world matrix, heads of all bones."""
    scene = scene or bpy.context.scene
    scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
    depsgraph = scene.view_layers[0].depsgraph
    shown = rig.evaluated_get(depsgraph)
    target = row.target.evaluated_get(depsgraph)
    assert shown.is_evaluated
    assert target.is_evaluated
    world = target.matrix_world.copy()
    if row.target_bone:
        world = world @ target.pose.bones[row.target_bone].matrix
    point = shown.matrix_world.inverted() @ (world @ Vector(row.offset))
    influence = shown.ccd_rig.constraints[row.name].influence
    heads = {bone.name: bone.head.copy() for bone in shown.pose.bones}
    return point, influence, shown.matrix_world.copy(), heads


def assert_same(sample, expected, skeletons, tolerance=FLOAT32_FAR):
    point, influence, matrix_world, heads = expected
    assert list(sample.targets[0].point) == pytest.approx(list(point), abs=tolerance)
    assert sample.influences[0] == influence
    assert sample.matrix_world == matrix_world
    placed = skeletons.forward_kinematics(sample.reading.skeleton, sample.reading.pose)
    for bone, transform in zip(sample.reading.bones, placed, strict=True):
        assert list(transform.translation) == pytest.approx(list(heads[bone]), abs=tolerance), bone


def sample_once(evaluation, rig, rows, frame):
    with evaluation.frames(bpy.context.scene, rig, rows) as sample:
        return sample(frame)
