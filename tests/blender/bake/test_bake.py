"""Baking: what is keyed is what is reported, inside limits; what fails or is cancelled changes nothing."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import tracemalloc

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector
from whole_file import differences, dump

FLOAT32 = 2e-6  # one rounded operation on numbers near 1
SOLVE = 1e-4  # the solver's own tolerance, metres
PLAYED = 1e-4  # metres: 20 float32 bones end to end, evaluated by Blender


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake.bake")


@pytest.fixture
def channels(ext):
    return ext.module("ccd_rig.blender.keys.channels")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")


# --- set-ups ------------------------------------------------------------------------------------------------


def constrain(rig, tip, target, name="Hand", **fields):
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = name, tip, target
    for field, value in fields.items():
        setattr(row, field, value)
    return row


def key_location(thing, points, first=1, gap=5):
    """Key a path: one point every `gap` frames."""
    for i, point in enumerate(points):
        thing.location = point
        thing.keyframe_insert("location", frame=first + gap * i)
    rigs.update()


def circle(centre, radius, count=13):
    """Points around a tilted circle, one turn."""
    turns = [math.tau * i / (count - 1) for i in range(count)]
    c = Vector(centre)
    return [c + radius * Vector((math.cos(t), math.sin(t), 0.4 * math.sin(2 * t))) for t in turns]


def arm(count=20, length=0.25, **fields):
    """A chain of `count` bones and a target on a circle within its reach, for 60 frames."""
    rig = rigs.chain(count, length)
    target = rigs.empty("Target")
    reach = count * length
    key_location(target, circle((0.08 * reach, 0.06 * reach, 0.5 * reach), 0.3 * reach))
    constrain(rig, f"bone_{count - 1}", target, **fields)
    bpy.context.scene.frame_set(1)
    return rig, target


# --- reading what plays -------------------------------------------------------------------------------------


def play(rig, frames):
    """Per frame the evaluated armature object, its world matrix and the scene's depsgraph."""
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        yield frame, rig.evaluated_get(depsgraph), depsgraph


def played_residual(rig, row, evaluated, depsgraph):
    """World metres between tip and target, as Blender plays them."""
    bone = evaluated.pose.bones[row.tip]
    tip = evaluated.matrix_world @ (bone.tail if row.use_tail else bone.head)
    target = row.target.evaluated_get(depsgraph).matrix_world
    if row.target_bone:
        target = target @ row.target.evaluated_get(depsgraph).pose.bones[row.target_bone].matrix
    return (tip - target @ Vector(row.offset)).length


def assert_report_is_what_plays(rig, report, tolerance=PLAYED):
    rows = {row.name: row for row in rig.ccd_rig.constraints}
    by_frame = {}
    for row in report.entries:
        by_frame.setdefault(row.frame, []).append(row)
    for frame, evaluated, depsgraph in play(rig, by_frame):
        for row in by_frame[frame]:
            residual = played_residual(rig, rows[row.constraint], evaluated, depsgraph)
            assert abs(residual - row.keyed_residual) < tolerance, (frame, row, residual)


def keys_of(channels, rig):
    """{(data path, index): (K, 2) keys} of the object's action."""
    found = {}
    for curve in channels.fcurves_of(rig):
        values = np.empty(2 * len(curve.keyframe_points), np.float32)
        curve.keyframe_points.foreach_get("co", values)
        found[curve.data_path, curve.array_index] = values.reshape(-1, 2)
    return found


def keyed_quaternions(channels, rig, bone):
    """(frames, (K, 4)) of a bone in quaternion mode."""
    path = f'pose.bones["{bone}"].rotation_quaternion'
    keys = keys_of(channels, rig)
    columns = [keys[path, i] for i in range(4)]
    return columns[0][:, 0], np.stack([column[:, 1] for column in columns], axis=1).astype(np.float64)


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


# --- steps and keys -----------------------------------------------------------------------------------------


def slerped(a, b, part):
    """Slerp in double precision: mathutils' own loses half of the digits where a and b are near."""
    whole = 2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
    return (np.sin((1.0 - part) * whole) * a + np.sin(part * whole) * b) / np.sin(whole)


def test_between_solves_stand_slerps(bake, channels):
    rig, _ = arm(8, 0.5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60, step=7))
    solved = [1, 8, 15, 22, 29, 36, 43, 50, 57, 60]
    assert [row.frame for row in report.entries if row.status != "SLERPED"] == solved
    assert {row.status for row in report.entries if row.frame not in solved} == {"SLERPED"}
    for bone in ("bone_0", "bone_4", "bone_7"):
        frames, values = keyed_quaternions(channels, rig, bone)
        assert frames.tolist() == list(range(1, 61))
        at = dict(zip(frames.tolist(), values, strict=True))
        for a, b in itertools.pairwise(solved):
            for frame in range(a + 1, b):
                expected = slerped(at[a], at[b], (frame - a) / (b - a))
                assert np.abs(at[frame] - expected).max() < FLOAT32
    assert_report_is_what_plays(rig, report)
    assert "10 of 10 solved frames reached" in report.summary()


def test_a_step_beyond_the_range_solves_both_ends(bake):
    rig, _ = arm(4, 0.5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(-3, 6, step=100))
    assert [row.frame for row in report.entries if row.status != "SLERPED"] == [-3, 6]
    assert [row.frame for row in report.entries] == list(range(-3, 7))


def test_keys_on_solved_frames_only(bake, channels):
    rig, _ = arm(6, 0.5)
    settings = bake.BakeSettings(1, 60, step=10, keys=bake.Keys.SOLVED_FRAMES)
    report = bake.bake(bpy.context.scene, rig, settings)
    solved = [1, 11, 21, 31, 41, 51, 60]
    curves = list(channels.fcurves_of(rig))
    assert len(curves) == 6 * 4
    for curve in curves:
        assert [point.co[0] for point in curve.keyframe_points] == solved
        assert {point.interpolation for point in curve.keyframe_points} == {"BEZIER"}
    assert [row.frame for row in report.entries] == solved
    assert_report_is_what_plays(rig, report)
    assert report.summary().startswith("7 of 7 solved frames reached; ")


def test_the_same_input_gives_the_same_bits(bake, channels):
    rig, _ = arm(12, 0.4)
    settings = bake.BakeSettings(1, 40, step=3)
    first = bake.bake(bpy.context.scene, rig, settings)
    keys = keys_of(channels, rig)
    rig.animation_data_clear()
    second = bake.bake(bpy.context.scene, rig, settings)
    again = keys_of(channels, rig)
    assert keys.keys() == again.keys()
    assert all(np.array_equal(keys[path], again[path]) for path in keys)
    assert first.entries == second.entries


def test_new_action_keeps_the_old_one(bake, channels):
    rig, _ = arm(4, 0.5)
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=3)
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=100)
    old = rig.animation_data.action
    before = keys_of(channels, rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    new = rig.animation_data.action
    assert new != old
    assert new.name == report.action
    assert old.use_fake_user
    keys = keys_of(channels, rig)
    assert np.array_equal(
        keys['pose.bones["bone_0"].location', 0], before['pose.bones["bone_0"].location', 0]
    )
    assert keys['pose.bones["bone_1"].rotation_quaternion', 0][-1, 0] == 100


def test_current_action(bake, channels):
    rig, _ = arm(4, 0.5)
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=3)
    old = rig.animation_data.action
    settings = bake.BakeSettings(5, 20, destination=bake.Destination.CURRENT_ACTION)
    report = bake.bake(bpy.context.scene, rig, settings)
    assert rig.animation_data.action == old
    assert report.action == old.name
    assert len(bpy.data.actions) == 2  # this one and the target's
    assert keyed_quaternions(channels, rig, "bone_3")[0].tolist() == list(range(5, 21))


def test_keys_that_continue_older_ones_keep_their_sign(bake, channels):
    rig, _ = arm(4, 0.5)
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (-1.0, 0.0, 0.0, 0.0)
        bone.keyframe_insert("rotation_quaternion", frame=0)
    settings = bake.BakeSettings(1, 10, destination=bake.Destination.CURRENT_ACTION)
    bake.bake(bpy.context.scene, rig, settings)
    for i in range(4):
        _, values = keyed_quaternions(channels, rig, f"bone_{i}")
        assert (np.sum(values[1:] * values[:-1], axis=1) > 0.0).all()


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("before", [False, True])
def test_no_turn_the_long_way_round_to_later_keys(bake, channels, destination, before):
    """Later keys stand on the other side of the sphere, or a turn further on; they stay what they are."""
    rig, _ = arm(8, 0.5)
    for i, mode in enumerate(rigs.MODES):
        bone = rig.pose.bones[f"bone_{i}"]
        bone.rotation_mode = mode
        path = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(
            mode, "rotation_euler"
        )
        if before and mode == "QUATERNION":
            bone.rotation_quaternion = Quaternion((1, 0, 0), 0.1)
            bone.keyframe_insert(path, frame=0)
        for frame in (25, 31):
            bone.rotation_quaternion = -Quaternion((1, 0, 0), 0.01 * frame)
            bone.rotation_axis_angle = (math.tau + 0.01 * frame, 1, 0, 0)
            bone.rotation_euler = (math.tau + 0.01 * frame, 0, 0)
            bone.keyframe_insert(path, frame=frame)
    bpy.context.scene.frame_set(28)
    later = [bone.matrix_basis.copy() for bone in rig.pose.bones]
    bpy.context.scene.frame_set(0)
    state = dump()
    settings = bake.BakeSettings(1, 20, destination=bake.Destination[destination])
    steps = bake.bake_steps(bpy.context.scene, rig, settings)
    while next(steps).verb != "checked":
        pass
    steps.close()
    assert differences(state, dump()) == []
    bake.bake(bpy.context.scene, rig, settings)
    for (path, index), keys in keys_of(channels, rig).items():
        if not path.endswith("rotation_quaternion") and (index == 0 or path.endswith("euler")):
            assert np.abs(np.diff(keys[:, 1])).max() < math.pi, (path, index)
    _, values = keyed_quaternions(channels, rig, "bone_0")
    assert (np.sum(values[1:] * values[:-1], axis=1) > 0.0).all()
    bpy.context.scene.frame_set(28)
    for bone, matrix in zip(rig.pose.bones, later, strict=True):
        assert np.abs(np.array(bone.matrix_basis) - np.array(matrix)).max() < 5 * FLOAT32, bone.name


@pytest.mark.parametrize("step", [1, 4])
def test_every_rotation_mode(bake, channels, step):
    rig, _ = arm(8, 0.5)
    for i, mode in enumerate(rigs.MODES):
        rig.pose.bones[f"bone_{i}"].rotation_mode = mode
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60, step=step))
    assert report.unsolved() == ()
    paths = {path.rpartition(".")[2] for path, _ in keys_of(channels, rig)}
    assert paths == {"rotation_quaternion", "rotation_axis_angle", "rotation_euler"}
    assert [bone.rotation_mode for bone in rig.pose.bones] == list(rigs.MODES)
    assert_report_is_what_plays(rig, report)
    for (path, index), keys in keys_of(channels, rig).items():
        if path.endswith("euler"):  # no turn the long way round
            assert np.abs(np.diff(keys[:, 1])).max() < math.pi, (path, index)


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
        constrain(rig, f"{side}2", target, f"Hand {side}")
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


# --- nothing changes unless all is well ---------------------------------------------------------------------


def spoil_range(rig, settings):
    return settings(10, 9)


def spoil_step(rig, settings):
    return settings(1, 9, step=0)


def spoil_target(rig, settings):
    rig.ccd_rig.constraints[0].target = None
    return settings(1, 9)


def spoil_tip(rig, settings):
    rig.ccd_rig.constraints[0].tip = "gone"
    return settings(1, 9)


def spoil_name(rig, settings):
    return settings(1, 9, constraints=("Foot",))


def spoil_influence(rig, settings):
    rig.ccd_rig.constraints[0].influence = 0.0
    return settings(1, 9)


def spoil_stiffness(rig, settings):
    for bone in rig.pose.bones:
        bone.ccd_rig.stiffness = 1.0
    return settings(1, 9)


def spoil_curve(rig, settings):
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=1)
    for curve in rig_curves(rig):
        curve.lock = True
    return settings(1, 9)


def rig_curves(rig):
    action = rig.animation_data.action
    if "slots" in action.bl_rna.properties:
        return list(action.layers[0].strips[0].channelbag(rig.animation_data.action_slot).fcurves)
    return list(action.fcurves)


SPOILERS = {
    "empty": spoil_range,
    "step must": spoil_step,
    "target": spoil_target,
    "gone": spoil_tip,
    "Foot": spoil_name,
    "influence": spoil_influence,
    "(locked|stiffness)": spoil_stiffness,
    "bone_1.*locked": spoil_curve,
}


@pytest.mark.parametrize("words", SPOILERS)
def test_what_cannot_be_baked_is_said_and_nothing_changes(bake, errors, words):
    rig, _ = arm(3, 0.5)
    SPOILERS[words](rig, lambda *_a, **_k: None)
    before = dump()
    with pytest.raises(errors.CCDRigError, match=words):
        bake.bake(bpy.context.scene, rig, SPOILERS[words](rig, bake.BakeSettings))
    assert differences(before, dump()) == []


@pytest.mark.parametrize("after", [0, 1, 2, 11, 12])
@pytest.mark.parametrize("with_action", [False, True])
def test_cancel_at_any_frame_changes_nothing(bake, channels, after, with_action):
    rig, _ = arm(3, 0.5)
    if with_action:
        rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=4)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    channels.select_bone(rig.pose.bones["bone_1"], True)
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion(
        (1, 0, 0), 0.3
    )  # not keyed: a changed frame loses it
    bpy.context.scene.frame_set(7, subframe=0.25)
    before = dump()
    destination = bake.Destination.CURRENT_ACTION
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 12, destination=destination))
    for _ in range(after):
        next(steps)
    steps.close()
    assert differences(before, dump()) == []


def test_progress_counts_up_and_may_cancel(bake):
    rig, _ = arm(3, 0.5)
    seen = []
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12, step=4), seen.append)
    evaluated = [(p.frame, p.done, p.total) for p in seen if p.verb == "evaluated"]
    assert list(dict.fromkeys(evaluated)) == [(1, 1, 4), (5, 2, 4), (9, 3, 4), (12, 4, 4)]
    solved = [p.done for p in seen if p.verb == "solved"]
    assert solved == sorted(solved) and solved[-1] == 4
    assert [p.done for p in seen if p.verb == "checked"] == list(range(1, 13))
    before = dump()

    class Enough(Exception):
        pass

    def stop(progress):
        if progress.done == 3:
            raise Enough

    with pytest.raises(Enough):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12), stop)
    assert differences(before, dump()) == []


def test_a_failure_while_writing_changes_nothing(bake, channels, errors):
    rig, _ = arm(3, 0.5)
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=4)
    destination = bake.Destination.CURRENT_ACTION

    def lock(state):
        for curve in channels.fcurves_of(rig):
            curve.lock = state

    lock(True)
    before = dump()
    lock(False)
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 6, destination=destination))
    for _ in range(6):
        next(steps)
    lock(True)  # while the bake is under way
    with pytest.raises(errors.RigError, match="bone_1"):
        list(steps)
    assert differences(before, dump()) == []


def test_bake_leaves_frame_selection_mode_and_pose(bake, channels):
    rig, _ = arm(3, 0.5)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    channels.select_bone(rig.pose.bones["bone_1"], True)
    bpy.context.scene.frame_set(7, subframe=0.25)
    names = ("scenes", "collections", "context", "selected", "frame", "armatures")
    before = {key: value for key, value in dump().items() if key.startswith(names)}
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12))
    after = {key: value for key, value in dump().items() if key.startswith(names)}
    assert after == before
    assert channels.is_bone_selected(rig.pose.bones["bone_1"])
    assert not channels.is_bone_selected(rig.pose.bones["bone_0"])


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
