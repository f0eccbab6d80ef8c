"""Poles: held against what Blender plays of the baked action."""

from __future__ import annotations

import bpy
import pytest
import rigs
from goal_arms import FRAMES, PLACES, PLAYED, SOLVE, TURNED, apart, bend_angle, distance, leg, played
from mathutils import Quaternion


@pytest.mark.parametrize("place", ["at home", "turned", "mirrored"])
def test_a_chain_bends_towards_its_pole(bake, place):
    rig, row = leg()
    rig.matrix_world = PLACES[place]
    for thing in (row.target, row.pole_target):  # what they are keyed to is in the armature's own space
        thing.parent = rig
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for frame, evaluated, depsgraph in played(rig):
        assert distance(rig, row, evaluated, depsgraph) < SOLVE + PLAYED, frame
        assert bend_angle(evaluated, row, depsgraph) < TURNED + 5 * PLAYED, frame


def test_a_pole_never_breaks_a_limit_nor_keeps_the_foot_from_its_target(ext, bake):
    limits = ext.module("ccd_rig.limits.shapes")
    stored = ext.module("ccd_rig.blender.properties.limits")
    rig, row = leg(limits=True)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    alone, other = leg(limits=True)
    other.pole_target = None
    free = bake.bake(bpy.context.scene, alone, bake.BakeSettings(1, FRAMES))
    assert report.unsolved_count() > 0  # the pole goes behind, where the leg's limits do not let it bend
    for with_pole, without in zip(report.entries, free.entries, strict=True):
        assert with_pole.residual <= max(without.residual, 0.0) + 1.2 * SOLVE, with_pole
    for frame, evaluated, depsgraph in played(rig):
        for bone in ("thigh", "shin"):
            limit = stored.limit_value(rig.pose.bones[bone].ccd_rig.limit)
            turned = evaluated.pose.bones[bone].rotation_quaternion.normalized()
            assert limits.violation(limit, turned) < 2e-5, (frame, bone)
        line = next(each for each in report.entries if each.frame == frame)
        assert bend_angle(evaluated, row, depsgraph) == pytest.approx(line.keyed_angle, abs=2e-3)


def test_a_bone_of_another_armature_is_a_pole(bake):
    rig, row = leg()
    other = rigs.chain(2, 1.0, name="Other")
    other.location = (0.0, -2.0, 0.2)
    for frame, angle in ((1, 0.0), (FRAMES, 1.2)):
        other.pose.bones["bone_0"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        other.pose.bones["bone_0"].keyframe_insert("rotation_quaternion", frame=frame)
    row.pole_target, row.pole_bone = other, "bone_1"
    other.hide_viewport = True
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    other.hide_viewport = False
    for _, evaluated, depsgraph in played(rig, (1, 12, FRAMES)):
        head = other.matrix_world @ other.evaluated_get(depsgraph).pose.bones["bone_1"].head
        thigh, shin = evaluated.pose.bones["thigh"], evaluated.pose.bones["shin"]
        line = (shin.tail - thigh.head).normalized()
        sides = [p - thigh.head - line * (p - thigh.head).dot(line) for p in (shin.head, head)]
        assert apart(*sides) < TURNED + 5 * PLAYED


def test_solve_pose_takes_pole_and_rotation_too(bake):
    rig, row = leg()
    row.rotation, row.bone_axis, row.target_axis = "DIRECTION", "POS_Z", "POS_X"
    row.use_position = True
    row.rotation = "NONE"
    bpy.context.scene.frame_set(9)
    result = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig).result
    rigs.update()
    depsgraph = bpy.context.evaluated_depsgraph_get()
    assert len(result.errors) == 1
    assert bend_angle(rig.evaluated_get(depsgraph), row, depsgraph) < TURNED + 5 * PLAYED
