"""What only keys would need stops a bake, and no pose that is shown."""

from __future__ import annotations

import bpy
import pytest
import rigs
from shown import SHOWN, off


def locked(rig, curve):
    curve.lock = True


def sampled(rig, curve):
    curve.convert_to_samples(1, 20)


def modified(rig, curve):
    curve.modifiers.new("NOISE").mute = False


def tweaked(rig, curve):
    rigs.tweak(rig)


def keyed(ext, rig):
    """An F-curve of the first bone of the chain."""
    bone = rig.pose.bones[rig.ccd_rig.constraints[0].tip].parent_recursive[-1]
    bone.rotation_mode = "QUATERNION"
    for frame in (1, 20):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    return next(iter(ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)))


REFUSED = r"unlock it|Samples to Keys|mute or remove it|leave tweak mode"


@pytest.fixture(autouse=True)
def auto_keying():
    yield
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = False


@pytest.mark.parametrize("spoil", [locked, sampled, modified, tweaked])
def test_poses_without_keys_are_shown_and_bakes_are_refused(ext, rig, live, spoil):
    spoil(rig, keyed(ext, rig))
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    assert off(rig) < SHOWN
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    assert off(rig) > 1.0
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert off(rig) < SHOWN
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    for refused in (bpy.ops.ccd_rig.solve, bpy.ops.ccd_rig.bake):
        with pytest.raises(RuntimeError, match=REFUSED):
            refused()


def test_a_driver_takes_the_place_of_any_pose(rig):
    bone = rig.pose.bones[rig.ccd_rig.constraints[0].tip].parent_recursive[-1]
    bone.driver_add("rotation_quaternion", 0).driver.expression = "1"
    for refused in (bpy.ops.ccd_rig.live, bpy.ops.ccd_rig.solve):
        with pytest.raises(RuntimeError, match="has a driver"):
            refused()
