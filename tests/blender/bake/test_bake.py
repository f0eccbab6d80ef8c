"""Baking: what is keyed is what is reported, inside limits."""

from __future__ import annotations

import dataclasses
import json
import math
import tracemalloc

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion
from reaching_arms import (
    FLOAT32,
    PLAYED,
    SOLVE,
    arm,
    assert_report_is_what_plays,
    circle,
    key_location,
    keyed_quaternions,
    keys_of,
    play,
    played_residual,
)
from whole_file import differences, dump

# --- reached, and the report says so ------------------------------------------------------------------------


def test_long_chain_follows_a_moving_target(ext, bake):
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


# --- influence, several constraints, parents ----------------------------------------------------------------


def test_influence_blends_from_the_pose_to_the_solve(ext, bake, channels):
    rig, _ = arm(5, 0.5)
    path = "ccd_rig.constraints[0].influence"
    for frame, value in ((1, 0.0), (10, 0.0), (20, 1.0)):
        rig.ccd_rig.constraints[0].influence = value
        rig.keyframe_insert(path, frame=frame)
    for frame, angle in ((1, 0.0), (30, 0.5)):  # the pose underneath moves as well
        for bone in rig.pose.bones:
            bone.rotation_quaternion = Quaternion((1, 0, 0), angle)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    base = {}
    weight = {}
    for frame, evaluated, _ in play(rig, range(1, 31)):
        base[frame] = [b.rotation_quaternion.normalized() for b in evaluated.pose.bones]
        weight[frame] = evaluated.ccd_rig.constraints[0].influence
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30))
    blended = {
        f: [b.rotation_quaternion.normalized() for b in e.pose.bones] for f, e, _ in play(rig, range(1, 31))
    }
    assert_report_is_what_plays(rig, report)
    assert [row.frame for row in report.entries] == list(range(11, 31))  # left out where the influence is 0
    assert [row.influence for row in report.entries] == pytest.approx(
        [weight[f] for f in range(11, 31)], abs=FLOAT32
    )
    assert report.unsolved() == ()

    # The same solves at full influence, from the same first frame.
    old = next(a for a in bpy.data.actions if a.name != report.action and a.use_fake_user)
    rig.animation_data.action = old
    if "slots" in old.bl_rna.properties:
        rig.animation_data.action_slot = old.slots[0]
    for curve in list(channels.fcurves_of(rig)):
        if curve.data_path == path:
            curve.mute = True
    rig.ccd_rig.constraints[0].influence = 1.0
    full = bake.bake(bpy.context.scene, rig, bake.BakeSettings(11, 30))
    assert [row.residual for row in full.entries] == pytest.approx(
        [row.residual for row in report.entries], abs=1e-6
    )
    solved = {
        f: [b.rotation_quaternion.normalized() for b in e.pose.bones] for f, e, _ in play(rig, range(11, 31))
    }
    for frame in range(1, 31):
        for j in range(5):
            if weight[frame] == 0.0:
                expected = base[frame][j]
            else:
                expected = base[frame][j].slerp(solved[frame][j], weight[frame])
            assert blended[frame][j].rotation_difference(expected).angle % math.tau < 1e-3, (frame, j)
    assert report.entries[0].keyed_residual > 0.1 > report.entries[0].residual


def two_arms():
    """A spine of two bones with an arm of three on each side, and a target for each arm."""
    bones = [
        rigs.B("spine", (0, 0, 0), (0, 0, 1)),
        rigs.B("chest", (0, 0, 1), (0, 0, 2), "spine", connect=True),
    ]
    for side, sign in (("L", 1), ("R", -1)):
        parent = "chest"
        for i in range(3):
            bones.append(
                rigs.B(f"{side}{i}", (sign * i, 0, 2), (sign * (i + 1), 0, 2), parent, connect=i > 0)
            )
            parent = f"{side}{i}"
    rig = rigs.armature(bones)
    for side, sign in (("L", 1), ("R", -1)):
        target = rigs.empty(f"Target{side}")
        key_location(target, [(sign * 2.0 + 0.5, y, 2.5 + 0.3 * y) for y in (0.0, 0.7, -0.5, 0.2)], gap=7)
        rigs.reach(rig, f"{side}2", target, f"Hand {side}")
    return rig


def test_several_constraints_share_bones(bake, channels):
    rig = two_arms()
    rig.pose.bones["spine"].ccd_rig.stiffness = 1.0
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 22))
    assert report.unsolved() == ()
    assert [(row.frame, row.constraint) for row in report.entries[:3]] == [
        (1, "Hand L"),
        (1, "Hand R"),
        (2, "Hand L"),
    ]
    assert_report_is_what_plays(rig, report)
    assert not [path for path, _ in keys_of(channels, rig) if '"spine"' in path]  # locked: no keys
    rig.animation_data_clear()
    only = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5, constraints=("Hand R",)))
    assert {row.constraint for row in only.entries} == {"Hand R"}
    assert not [path for path, _ in keys_of(channels, rig) if '"L' in path]


def test_a_hand_out_of_reach_does_not_keep_the_other_from_its_target(bake):
    rig = two_arms()
    for row in rig.ccd_rig.constraints:
        row.chain_length = 3  # no bone in common
    bpy.data.objects["TargetL"].animation_data_clear()
    bpy.data.objects["TargetL"].location = (9.0, 0.0, 2.0)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 22))
    status = {row.constraint: set() for row in report.entries}
    for row in report.entries:
        status[row.constraint].add(row.status)
    assert status["Hand R"] == {"CONVERGED"}
    assert "CONVERGED" not in status["Hand L"]
    assert report.unsolved_count() == 22
    assert_report_is_what_plays(rig, report)


def test_a_hand_served_later_comes_as_near_as_the_first_one_lets_it(bake):
    """On a line between two targets what one hand gains the other loses: the sum stays what it is."""
    sums = []
    for priority in (0, 1):
        rig = two_arms()
        for name, x in (("Hand L", 3.3), ("Hand R", -3.3)):
            target = rig.ccd_rig.constraints[name].target
            target.animation_data_clear()
            target.location = (x, 1.5 if x > 0.0 else -1.0, 1.0)
        rig.ccd_rig.constraints["Hand R"].weight = 0.2
        rig.ccd_rig.constraints["Hand R"].priority = priority
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
        last = {row.constraint: row.keyed_residual for row in report.entries if row.frame == 3}
        assert last["Hand R"] > 0.05
        sums.append(sum(last.values()))
        if priority:
            assert last["Hand L"] < 1e-3
    assert sums[1] < 1.02 * sums[0], sums


def test_animated_parents_above_the_chain(bake, channels):
    rig, target = arm(8, 0.4, chain_length=4)
    key_location(target, circle((0.3, 0.3, 2.2), 0.4))
    for frame, angle, scale in ((1, 0.0, 1.0), (30, 0.4, 1.2), (60, -0.3, 0.9)):
        bone = rig.pose.bones["bone_1"]
        bone.rotation_quaternion = Quaternion((1, 0.3, 0), angle)
        bone.scale = (scale,) * 3
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        bone.keyframe_insert("scale", frame=frame)
        rig.location = (0.0, angle, 0.0)
        rig.keyframe_insert("location", frame=frame)
    before = keys_of(channels, rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert report.unsolved() == ()
    assert_report_is_what_plays(rig, report)
    after = keys_of(channels, rig)
    assert all(np.array_equal(before[path], after[path]) for path in before)
    baked = {path.split('"')[1] for path, _ in after.keys() - before.keys()}
    assert baked == {"bone_4", "bone_5", "bone_6", "bone_7"}


def test_head_instead_of_tail_offset_and_target_bone(bake):
    rig, _ = arm(6, 0.5, use_tail=False)
    other = rigs.chain(2, 1.0, name="Other")
    other.location = (0.5, 0.5, 0.2)
    rig.ccd_rig.constraints[0].target = other
    rig.ccd_rig.constraints[0].target_bone = "bone_1"
    rig.ccd_rig.constraints[0].offset = (0.1, -0.2, 0.3)
    for frame, angle in ((1, 0.0), (20, 1.0)):
        other.pose.bones["bone_0"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        other.pose.bones["bone_0"].keyframe_insert("rotation_quaternion", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved() == ()
    assert_report_is_what_plays(rig, report)


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
    joints = ext.module("ccd_rig.blender.properties.joints")
    rig, _ = arm(8, 0.5)
    limit_all(rig, kind)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60, step=step))
    for bone in rig.pose.bones:
        limit = joints.limit_value(bone.ccd_rig.limit)
        _, values = keyed_quaternions(channels, rig, bone.name)
        assert max(limits.violation(limit, Quaternion(q)) for q in values) < 10 * FLOAT32, bone.name
    assert_report_is_what_plays(rig, report)


# --- solve without keys -------------------------------------------------------------------------------------


def test_solve_current_poses_as_the_first_frame_of_a_bake(bake):
    rig, _ = arm(8, 0.5)
    for i, mode in enumerate(rigs.MODES):
        rig.pose.bones[f"bone_{i}"].rotation_mode = mode
    bpy.context.scene.frame_set(1)
    result, constraints, _ = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    rigs.update()
    assert result.status.name == "CONVERGED"
    assert [constraint.name for constraint in constraints] == ["Hand"]
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
    # Least squares do not know an order of frames.
    assert report.advice(both_ways=False) == "Bone 'bone_0' turns 174 degrees at frame 7"
    by_ccd = dataclasses.replace(report, solver=type(report.solver).CCD)
    assert "Frame Order: Both Ways" in by_ccd.advice(both_ways=False)
    assert by_ccd.advice(both_ways=True) == ""
    still = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert "turns" not in still.summary()
    assert still.advice(both_ways=False) == ""
