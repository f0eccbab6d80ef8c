"""Baking: what is keyed is what is reported, inside limits."""

from __future__ import annotations

import json
import math
import tracemalloc

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion
from playing import play
from reaching_arms import (
    FLOAT32,
    PLAYED,
    SOLVE,
    arm,
    assert_report_is_what_plays,
    circle,
    key_location,
    keyed_quaternions,
    played_residual,
)
from whole_file import differences, dump

# --- reached, and the report says so ------------------------------------------------------------------------


def test_long_chain_follows_a_moving_target(bake):
    rig, _ = arm(20)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert {row.status for row in report.entries} == {"CONVERGED"}
    assert [row.frame for row in report.entries] == list(range(1, 61))
    assert report.unsolved() == ()
    for _frame, evaluated, depsgraph in play(rig, range(1, 61)):
        assert played_residual(rig, rig.ccd_rig.constraints[0], evaluated, depsgraph) < SOLVE + PLAYED / 10
    assert_report_is_what_plays(rig, report)


PLACES = {
    "moved": Matrix.Translation((30.0, -20.0, 5.0)),
    "turned": Euler((0.7, -1.1, 2.0)).to_matrix().to_4x4(),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
    "tiny": Matrix.Scale(0.01, 4),
    "non-uniform": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (1.0, 2.0, 0.5)),
    "mirrored": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (-1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize("place", PLACES)
def test_residuals_are_world_metres_wherever_the_armature_is(bake, place):
    rig, target = arm(6, 0.5)
    rig.matrix_world = PLACES[place]
    path = [PLACES[place] @ p for p in circle((0.4, 0.3, 1.5), 0.8)]
    key_location(target, path)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30))
    assert report.unsolved() == (), place
    assert report.worst().residual <= SOLVE * (1 + 1e-2)
    assert_report_is_what_plays(rig, report, PLAYED)


def test_sheared_by_its_parent(bake):
    rig, target = arm(6, 0.5)
    parent = rigs.empty("Parent")
    parent.scale = (1.0, 2.0, 0.7)
    rig.parent = parent
    rig.rotation_euler = (0.4, 0.5, 0.6)
    rigs.update()
    key_location(target, [rig.matrix_world @ p for p in circle((0.4, 0.3, 1.5), 0.6)])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30))
    assert report.unsolved() == ()
    assert_report_is_what_plays(rig, report)


def test_out_of_reach_is_reported_not_raised(bake):
    rig, target = arm(5, 0.5)
    target.animation_data_clear()
    target.location = (0.0, 4.0, 0.0)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 4))
    assert {row.status for row in report.entries} == {"OPTIMAL"}
    assert all(abs(row.residual - 1.5) < 1e-3 for row in report.entries)
    assert [row.frame for row in report.unsolved()] == [1, 2, 3, 4]
    assert report.summary().startswith("0 of 4 frames reached; worst 1.50")
    assert_report_is_what_plays(rig, report)


def test_report_in_words_in_json_and_on_the_armature(bake):
    rig, target = arm(5, 0.5)
    target.animation_data_clear()
    for frame, height in ((1, 2.0), (3, 2.0), (4, 3.0), (5, 2.0)):
        target.location = (0.1, 0.1, height)
        target.keyframe_insert("location", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert report.worst().frame == 4
    assert len(report.unsolved()) == report.unsolved_count() == 1
    worst = f"worst {report.worst().residual:.4f} m at frame 4 (Hand)"
    assert report.summary().startswith(f"4 of 5 frames reached; {worst}; ")
    content = json.loads(report.to_json())
    assert content["format"] == "ccd_rig.bake_report"
    assert content["version"] == 1
    assert (content["frames_solved"], content["frames_reached"]) == (5, 4)
    assert content["action"] == rig.animation_data.action.name == report.action
    assert content["tolerance"] == pytest.approx(SOLVE)
    assert content["angle_tolerance"] == pytest.approx(1e-3)
    fields = (
        *("frame", "constraint", "status", "residual", "keyed_residual", "influence"),
        *("angle", "keyed_angle"),
    )
    assert content["entries"] == [{name: getattr(row, name) for name in fields} for row in report.entries]
    stored = rig.ccd_rig.report
    assert (stored.words, stored.worst_frame, stored.unsolved) == (report.summary(), 4, 1)
    assert stored.worst_constraint == "Hand"


# --- limits -------------------------------------------------------------------------------------------------


def limit_all(rig, kind):
    for bone in rig.pose.bones:
        limit = bone.ccd_rig.limit
        limit.kind = kind
        limit.hinge_lower, limit.hinge_upper = -0.2, 0.5
        limit.axis = (1.0, 0.0, 0.2)
        limit.cone_radius = 0.35
        limit.x_lower, limit.x_upper, limit.z_lower, limit.z_upper = -0.1, 0.5, -0.4, 0.2
        limit.use_twist, limit.twist_lower, limit.twist_upper = True, -0.2, 0.3
        limit.euler_lower, limit.euler_upper = (-0.5, -0.1, -0.4), (0.3, 0.2, 0.5)


@pytest.mark.parametrize("kind", ["HINGE", "CONE", "ELLIPSE", "EULER"])
@pytest.mark.parametrize("step", [1, 9])
def test_limits_hold_at_every_keyed_frame(ext, bake, channels, kind, step):
    limits = ext.module("ccd_rig.limits.shapes")
    stored = ext.module("ccd_rig.blender.properties.limits")
    rig, _ = arm(8, 0.5)
    limit_all(rig, kind)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 28, step=step))
    for bone in rig.pose.bones:
        limit = stored.limit_value(bone.ccd_rig.limit)
        _, values = keyed_quaternions(channels, rig, bone.name)
        assert max(limits.violation(limit, Quaternion(q)) for q in values) < 10 * FLOAT32, bone.name
    assert_report_is_what_plays(rig, report)


# --- solve without keys -------------------------------------------------------------------------------------


def test_solve_current_poses_as_the_first_frame_of_a_bake(bake):
    rig, _ = arm(8, 0.5)
    for i, mode in enumerate(rigs.MODES):
        rig.pose.bones[f"bone_{i}"].rotation_mode = mode
    bpy.context.scene.frame_set(1)
    posed_now = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    rigs.update()
    assert posed_now.result.status.name == "CONVERGED"
    assert [constraint.name for constraint in posed_now.constraints] == ["Hand"]
    assert posed_now.states == ("CONVERGED",)
    assert rig.animation_data is None
    row, depsgraph = rig.ccd_rig.constraints[0], bpy.context.evaluated_depsgraph_get()
    assert played_residual(rig, row, rig.evaluated_get(depsgraph), depsgraph) < SOLVE + PLAYED / 10
    posed = [bone.matrix.copy() for bone in rig.pose.bones]
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
        bone.matrix_basis = Matrix()
    rigs.update()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    bpy.context.scene.frame_set(1)
    for bone, matrix in zip(rig.pose.bones, posed, strict=True):
        assert np.abs(np.array(bone.matrix) - np.array(matrix)).max() < 1e-4


def test_solve_current_with_influence_0_says_so(bake, errors):
    rig, _ = arm(3, 0.5, influence=0.0)
    before = dump()
    with pytest.raises(errors.RigError, match="influence"):
        bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    assert differences(before, dump()) == []


# --- size ---------------------------------------------------------------------------------------------------


def test_memory_stays_below_a_kilobyte_per_bone_and_frame(bake):
    rig, _ = arm(10, 0.5)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))  # what is loaded once is not counted
    tracemalloc.start()
    try:
        peaks = []
        for last in (600, 1800):
            tracemalloc.reset_peak()
            bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, last))
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    # Some hundred frames are solved at once, however many there are.
    assert (peaks[1] - peaks[0]) / (1200 * 10) < 1024


def test_a_jump_is_named(bake):
    """The target jumps to the other side: the report says which bone turns most, and at which frame."""
    rig, target = arm(1, 0.5)
    target.animation_data_clear()
    for frame, x in ((1, 1.0), (6, 1.0), (7, -1.0), (12, -1.0)):
        target.location = (x, 0.0, 0.05)
        target.keyframe_insert("location", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12))
    assert (report.largest_rotation.frame, report.largest_rotation.bone) == (7, "bone_0")
    assert report.largest_rotation.angle == pytest.approx(math.pi - 2.0 * math.atan(0.05), abs=1e-3)
    assert report.summary().endswith("; 'bone_0' turns 174 degrees at frame 7")
    assert json.loads(report.to_json())["largest_rotation"]["bone"] == "bone_0"
    assert report.advice() == "'bone_0' turns 174 degrees at frame 7"
    still = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert "turns" not in still.summary()
    assert still.advice() == ""


def test_a_tip_whose_scale_is_animated_reaches_with_its_tail(bake):
    """Its tail is as far out as its scale has it at each frame."""
    rig = rigs.chain(3)
    bone = rig.pose.bones["bone_2"]
    for frame, size in ((1, 1.0), (10, 1.6)):
        bone.scale = (1.0, size, 1.0)
        bone.keyframe_insert("scale", frame=frame)
    target = rigs.keyed(rigs.empty("Goal"), {1: (1.2, 0.4, 1.5), 10: (1.4, -0.5, 1.9)})
    rigs.reach(rig, "bone_2", target)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10))
    assert report.unsolved_count() == 0
    for frame in range(1, 11):
        bpy.context.scene.frame_set(frame)
        seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        tail = seen.matrix_world @ seen.pose.bones["bone_2"].tail
        assert (tail - target.matrix_world.translation).length < 1e-3
