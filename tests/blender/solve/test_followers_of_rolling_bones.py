"""Bones that shift as another bone turns, as a kneecap does."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from rolling import DOWN, FLOAT32, FRAMES, REACHED, bend, hinge, keys_of, knee_angles, kneecap, leg, roll


def test_a_bone_outside_of_the_chain_follows(bake, channels):
    rig = leg()
    kneecap(rig)
    rig.pose.bones["cap"].location = (0.01, 0.02, 0.03)
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "cap", "location")
    assert locations[:, 2] == pytest.approx(0.05 * found**2, abs=FLOAT32)
    assert locations[:, :2] == pytest.approx(np.tile((0.01, 0.02), (FRAMES, 1)), abs=FLOAT32)
    assert not any("cap" in c.data_path and "rotation" in c.data_path for c in channels.fcurves_of(rig))
    bpy.context.scene.frame_set(5)
    rigs.activate(rig)
    rig.animation_data_clear()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    shin = rig.pose.bones["shin"].rotation_quaternion
    angle = 2.0 * math.atan2(shin.x, shin.w)
    assert rig.pose.bones["cap"].location.z == pytest.approx(0.05 * angle**2, abs=FLOAT32)


def test_a_bone_that_follows_nothing_that_is_solved_stays(bake, channels):
    rig = leg()
    kneecap(rig)
    bend(rig, chain_length=3)
    rig.ccd_rig.constraints["Foot"].tip = "thigh"
    rig.ccd_rig.constraints["Foot"].chain_length = 1
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert {c.data_path.split('"')[1] for c in channels.fcurves_of(rig)} == {"thigh"}


def test_a_parent_may_drive(bake, channels):
    """The foot slides along the shin as the knee bends; the foot's own hinge has nothing to do with it."""
    rig = leg()
    roll(rig.pose.bones["foot"], (0, 1, 0), 0.04, "shin")
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "foot", "location")
    assert locations[:, 1] == pytest.approx(0.04 * found**2, abs=FLOAT32)


def test_an_arm_rolls_while_feet_are_planted(bake, channels):
    """Where the body keeps its animation; a figure that follows its feet is refused below."""
    rig = leg()
    with rigs.edit_bones(rig) as bones:
        for name, head, tail, parent in (
            ("arm", (0, 0, 1.2), (0.3, 0, 1.2), "hips"),
            ("elbow", (0.3, 0, 1.2), (0.6, 0.0, 1.2), "arm"),
        ):
            made = bones.new(name)
            made.head, made.tail, made.parent = head, tail, bones[parent]
    shin, elbow = rig.pose.bones["shin"], rig.pose.bones["elbow"]
    shin.ccd_rig.coupled_offsets.clear()
    hinge(elbow, -0.1, 2.0)
    roll(elbow, (0, 1, 0), DOWN)
    rig.pose.bones["hips"].ccd_rig.use_slide = (False,) * 3
    rig.ccd_rig.body = "KEEP_ANIMATION"
    for frame, x in ((1, 0.0), (FRAMES, 0.05)):
        rig.pose.bones["hips"].location.x = x
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    row = bend(rig, ((0.35, 0.0, 1.5), (0.3, 0.1, 1.6), (0.4, 0.1, 1.4)), chain_length=2)
    row.tip = "elbow"
    plant = rig.ccd_rig.constraints.add()
    plant.name, plant.tip, plant.kind, plant.chain_length = "Plant", "foot", "PLANT", 4
    rigs.update()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    found, locations = knee_angles(channels, rig, "elbow"), keys_of(channels, rig, "elbow", "location")
    assert np.ptp(found) > 0.05
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        bone = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["elbow"]
        assert (bone.tail - bpy.data.objects["Goal"].matrix_world.translation).length < 2.0 * REACHED
