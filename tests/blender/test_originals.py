"""Baking a baked action again: from the motion as it was before, if that is asked for."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion

PLAYED = 2e-6


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake")


@pytest.fixture
def rig(ext):
    """Half influence; bone_1 has keys, bone_0 a pose that no key holds."""
    made = rigs.chain(3, 0.5)
    goal = rigs.empty("Goal")
    for frame, x in ((1, 0.2), (10, 0.8)):
        goal.location = (x, 0.2, 1.0)
        goal.keyframe_insert("location", frame=frame)
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.influence = "Hand", "bone_2", goal, 0.5
    made.pose.bones["bone_0"].rotation_quaternion = Quaternion((1, 0, 0), 0.2)
    return made


def key(rig):
    for frame, angle in ((1, 0.1), (10, 0.9)):
        rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(1)


def run(bake, rig, **fields):
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10, **fields))


def poses(rig):
    found = []
    for frame in range(1, 11):
        bpy.context.scene.frame_set(frame)
        found.append([tuple(bone.matrix_basis.to_quaternion()) for bone in rig.pose.bones])
    return np.array(found)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ"])
def test_a_second_bake_is_the_first_one(bake, rig, keyed, mode):
    for bone in rig.pose.bones:
        bone.rotation_mode = mode
    if keyed and mode == "QUATERNION":
        key(rig)
    elif keyed:
        for frame, angle in ((1, 0.1), (10, 0.9)):
            rig.pose.bones["bone_1"].rotation_euler = (angle, 0, 0)
            rig.pose.bones["bone_1"].keyframe_insert("rotation_euler", frame=frame)
    run(bake, rig)
    first = poses(rig)
    run(bake, rig, from_original=True)
    assert np.abs(poses(rig) - first).max() < PLAYED * 10
    run(bake, rig, from_original=True)  # and so on
    assert np.abs(poses(rig) - first).max() < PLAYED * 10
    run(bake, rig)  # without it, half of the way is added
    assert np.abs(poses(rig) - first).max() > 0.01


def test_an_action_that_knows_nothing_is_refused(ext, bake, rig):
    errors = ext.module("ccd_rig.errors")
    with pytest.raises(errors.RigError, match="does not know what it was baked from"):
        run(bake, rig, from_original=True)
    key(rig)
    with pytest.raises(errors.RigError, match="switch off Start From Original"):
        run(bake, rig, from_original=True)


def test_the_original_may_be_gone(bake, rig):
    key(rig)
    original = rig.animation_data.action
    run(bake, rig)
    bpy.data.actions.remove(original)
    assert run(bake, rig, from_original=True).check.faults() == ()


def test_after_saving_and_loading(bake, rig, tmp_path):
    key(rig)
    run(bake, rig)
    first = poses(rig)
    path = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    rig = bpy.data.objects["Rig"]
    run(bake, rig, from_original=True)
    assert np.abs(poses(rig) - first).max() < PLAYED * 10
