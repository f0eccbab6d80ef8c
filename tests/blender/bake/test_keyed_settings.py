"""Settings of constraints that keys or drivers move: at every frame a bake has them as Solve has them."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion, Vector
from playing import angles, play, rotations
from reaching_arms import FLOAT32, arm, assert_report_is_what_plays, keys_of, played_residual

FRAMES = range(1, 21)
SAME = 2e-3
"""Radians: the solver's tolerance over the length of a bone, as for poses that are solved apart."""


def solved(bake, rig, frames):
    """What Solve makes of each frame, without keys: {frame: rotations}."""
    seen = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            bone.rotation_quaternion = Quaternion()
        rigs.update()
        bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
        seen[frame] = [bone.rotation_quaternion.copy() for bone in rig.pose.bones]
    for bone in rig.pose.bones:
        bone.rotation_quaternion = Quaternion()
    return seen


def assert_bake_is_solve(bake, rig, frames=(1, 5, 10, 17, 20)):
    """Bake, and compare what plays with what Solve makes; the report."""
    alone = solved(bake, rig, frames)
    settings = bake.BakeSettings(FRAMES[0], FRAMES[-1], smoothness=0.0)
    report = bake.bake(bpy.context.scene, rig, settings)
    assert not report.warnings
    assert report.check is not None
    assert not report.check.mismatches()
    assert_plays(rig, alone)
    return report, alone


def key(row, field, values):
    for frame, value in values.items():
        setattr(row, field, value)
        row.keyframe_insert(field, frame=frame)


def drive(row, field, expression):
    """A driver of a number by the frame."""
    curve = row.driver_add(*field) if isinstance(field, tuple) else row.driver_add(field)
    curve.driver.type, curve.driver.expression = "SCRIPTED", expression


def drive_by_slider(row, field, path, component="LOC_Z"):
    """A driver of a number by the place of an object that moves; the object."""
    slider = rigs.keyed(rigs.empty("Slider"), path)
    curve = row.driver_add(*field) if isinstance(field, tuple) else row.driver_add(field)
    curve.driver.type = "AVERAGE"
    source = curve.driver.variables.new()
    source.type = "TRANSFORMS"
    source.targets[0].id, source.targets[0].transform_type = slider, component
    return slider


def spread(poses):
    """Radians by which the rotations of a bone differ most between frames."""
    turns = np.array([[rotation[:] for rotation in pose] for pose in poses.values()])
    return angles(turns, turns[:1]).max()


def assert_plays(rig, poses):
    """Bones play with the rotations that poses have at their frames."""
    for frame, rotations_at in poses.items():
        turns = np.array([[rotation[:] for rotation in rotations_at]])
        assert angles(rotations(rig, [frame]), turns).max() < SAME, frame


def baked_keys(bake, channels, rig, last=FRAMES[-1]):
    """The keys of bones that a bake has written."""
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, last))
    return {path: keys for path, keys in keys_of(channels, rig).items() if path[0].startswith("pose.bones")}


def assert_same_keys(one, other):
    assert one.keys() == other.keys()
    for path, keys in one.items():
        assert np.array_equal(keys, other[path]), path


def still_limb(**fields):
    """Two bones, bent, with a target and a pole that stand still."""
    rig = rigs.armature(
        [rigs.B("upper", (0, 0, 0), (0, 0.1, 1)), rigs.B("lower", (0, 0.1, 1), (0, 0, 2), "upper", 0.0, True)]
    )
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    target, pole = rigs.empty("Target", (0.2, 0.1, 1.5)), rigs.empty("Pole", (0.0, 3.0, 1.0))
    row = rigs.reach(rig, "lower", target, "Hand", pole_target=pole, **fields)
    rigs.update()
    return rig, row


@pytest.mark.parametrize("method", ["CCD", "TWO_BONE"])
@pytest.mark.parametrize("by", ["keys", "driver", "object"])
def test_a_moving_pole_angle_counts_at_every_frame(bake, method, by):
    rig, row = still_limb(method=method)
    if by == "keys":
        key(row, "pole_angle", {1: 0.0, 10: 1.2, 20: -0.4})
    elif by == "object":
        drive_by_slider(row, "pole_angle", {1: (0.2, 0.0, 0.0), 20: (1.4, 0.0, 0.0)}, "LOC_X")
    else:
        drive(row, "pole_angle", "0.06 * frame")
    report, alone = assert_bake_is_solve(bake, rig)
    assert report.unsolved() == ()
    assert max(each.angle for each in report.entries) < 2e-3
    assert spread(alone) > 0.5


def test_a_moving_weight_counts_at_every_frame(bake):
    """Two constraints that pull a bone apart: the heavier one comes nearer to its target."""
    rig = rigs.chain(4, 0.5)
    left, right = rigs.empty("Left", (-1.0, 0.3, 1.2)), rigs.empty("Right", (1.0, 0.3, 1.2))
    one = rigs.reach(rig, "bone_3", left, "Left")
    rigs.reach(rig, "bone_3", right, "Right", effector_offset=(0.0, 0.05, 0.0))
    rigs.update()
    key(one, "weight", {1: 0.2, 20: 5.0})
    report, alone = assert_bake_is_solve(bake, rig)
    assert spread(alone) > 0.2
    off = [each.residual for each in report.entries if each.constraint == "Left"]
    assert off[0] > 2.0 * off[-1]
    fits = report.fit.frames
    entries = {c: [e.residual for e in report.entries if e.constraint == c] for c in ("Left", "Right")}
    for place, weight in ((0, 0.2), (-1, 5.0)):
        a, b = entries["Left"][place], entries["Right"][place]
        rms = math.sqrt((weight * a * a + b * b) / (weight + 1.0))
        assert fits[place].rms == pytest.approx(rms, rel=1e-4)


def test_a_moving_max_extension_counts_at_every_frame(bake):
    rig, _ = arm(5, 0.5)
    row = rig.ccd_rig.constraints[0]
    row.target.animation_data_clear()
    row.target.location = (0.0, 0.5, 2.7)
    key(row, "max_extension", {1: 0.7, 20: 0.95})
    report, _ = assert_bake_is_solve(bake, rig)
    residuals = {each.frame: each.residual for each in report.entries}
    assert residuals[1] - residuals[20] == pytest.approx(0.25 * 2.5, abs=5e-3)


@pytest.mark.parametrize("by", ["keys", "driver"])
@pytest.mark.parametrize("space", ["TARGET", "ARMATURE", "WORLD"])
def test_a_moving_target_offset_counts_in_its_space(bake, by, space):
    rig, target = arm(5, 0.5)
    rig.location, rig.rotation_euler, rig.scale = (0.3, -0.2, 0.1), (0.0, 0.9, 0.4), (0.8,) * 3
    target.rotation_euler, target.scale = (1.1, 0.2, 0.0), (2.0,) * 3
    row = rig.ccd_rig.constraints[0]
    row.offset_space = space
    if by == "keys":
        key(row, "offset", {1: (0.0, 0.0, 0.0), 10: (0.1, 0.0, -0.2), 20: (0.05, 0.1, 0.1)})
    else:
        drive(row, ("offset", 2), "0.01 * frame")
    rigs.update()
    report, _ = assert_bake_is_solve(bake, rig)
    assert report.unsolved() == ()
    for _, evaluated, depsgraph in play(rig, (1, 6, 10, 20)):
        place = target.evaluated_get(depsgraph).matrix_world
        axes = {"TARGET": place, "ARMATURE": evaluated.matrix_world}.get(space)
        shift = Vector(row.offset) if axes is None else axes.to_3x3() @ Vector(row.offset)
        reached = evaluated.matrix_world @ evaluated.pose.bones["bone_4"].tail
        assert (reached - place.translation - shift).length < 2e-4


def test_a_keyed_setting_that_does_not_move_changes_no_bit(bake, channels):
    """Nor does one that a constraint does not ask for, however it moves."""
    seen = []
    for keyed in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, _ = arm(6, 0.4)
        row = rig.ccd_rig.constraints[0]
        if keyed:
            key(row, "weight", {1: 1.0, 20: 1.0})
            key(row, "offset", {1: (0.0,) * 3, 20: (0.0,) * 3})
            key(row, "pole_angle", {1: 0.0, 20: 1.0})
            key(row, "soft", {1: 0.0, 20: 0.1})
        seen.append(baked_keys(bake, channels, rig, 60))
    assert_same_keys(*seen)


def test_a_keyed_pole_that_does_not_move_changes_no_bit(bake, channels):
    seen = []
    for keyed in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, row = still_limb(max_extension=0.8, pole_angle=0.3, weight=1.5)
        rigs.keyed(row.target, {1: (0.2, 0.1, 1.5), 20: (0.5, -0.3, 1.2)})
        for field in ("pole_angle", "max_extension", "weight") if keyed else ():
            key(row, field, {1: getattr(row, field), 20: getattr(row, field)})
        seen.append(baked_keys(bake, channels, rig))
    assert_same_keys(*seen)


def test_a_setting_that_is_no_number_at_a_frame_is_refused(bake, channels):
    rig, row = still_limb()
    key(row, "pole_angle", {1: 0.1, 12: 0.1, 20: 0.2})
    (curve,) = channels.fcurves_of(rig)
    curve.keyframe_points[2].co[1] = math.nan
    action = rig.animation_data.action
    with pytest.raises(Exception, match="'Hand': 'Pole Angle' is not a number at frame 13"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert rig.animation_data.action == action


@pytest.mark.parametrize("field", ["pole_angle", "weight", "offset", "driven offset"])
def test_keys_at_target_keys_count_those_of_settings_and_of_what_drives_them(bake, field):
    """A setting that the constraint does not ask for has none."""
    settings = bake.BakeSettings(1, 20, keys=bake.Keys.TARGET_KEYS)
    rig, row = still_limb()
    row.pole_target.location = (0.0, 3.0, 1.0)
    if field == "driven offset":
        slider = drive_by_slider(row, ("offset", 2), {4: (0.0, 0.0, 0.0), 15: (0.0, 0.0, -0.2)})
        assert slider.animation_data.action is not None
    else:
        key(row, field, {4: (0.0,) * 3, 15: (0.1, 0.0, -0.2)} if field == "offset" else {4: 0.2, 15: 0.9})
    key(row, "rotation_weight", {7: 0.5, 11: 0.1})
    report = bake.bake(bpy.context.scene, rig, settings)
    assert [each.frame for each in report.entries] == [1, 4, 15, 20]


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("by", ["keys", "object"])
def test_the_report_measures_at_a_target_offset_as_it_plays(bake, by, step):
    """At keys and between them."""
    rig, target = arm(5, 0.5)
    target.animation_data_clear()
    row = rig.ccd_rig.constraints[0]
    if by == "object":
        drive_by_slider(row, ("offset", 2), {1: (0.0, 0.0, 0.0), 20: (0.0, 0.0, -0.4)})
    else:
        key(row, "offset", {1: (0.0, 0.0, 0.0), 20: (0.0, 0.0, -0.4)})
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 21, step=step))
    (result,) = report.check.results
    assert result.causes == ()
    worst = max(played_residual(rig, e.ccd_rig.constraints[0], e, d) for _, e, d in play(rig, range(1, 22)))
    assert result.residual == pytest.approx(worst, abs=FLOAT32)
    assert rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).ccd_rig.constraints[0].offset[2] < -0.3
    assert_report_is_what_plays(rig, report)


FIELDS = "weight", "rotation_weight", "pole_angle", "max_extension"


@pytest.mark.parametrize("field", FIELDS)
def test_a_moving_setting_makes_the_goals_ready_once(bake, ext, monkeypatch, field):
    """Not anew at each frame, in the solve, the report and the playback check."""
    module, counts = ext.module("ccd_rig.solvers.pose_search"), []
    whole = module.problem_tables

    def counted(*arguments):
        counts[-1] += 1
        return whole(*arguments)

    monkeypatch.setattr(module, "problem_tables", counted)
    for ends in ((0.8, 0.8), (0.8, 0.9)):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, row = still_limb(rotation="ORIENTATION") if field == "rotation_weight" else still_limb()
        if field == "rotation_weight":
            row.pole_target = None
        key(row, field, {1: ends[0], 20: ends[1]})
        # A figure that was not baked yet: what is ready for equal bones stays so.
        rig.pose.bones[0].ccd_rig.stiffness = (1 + len(counts) + 2 * FIELDS.index(field)) / 20
        counts.append(0)
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20, smoothness=0.0))
    assert 0 < counts[1] <= counts[0] + 1


def test_a_target_that_jumps_is_followed_at_once_whatever_is_keyed(bake, channels):
    """A weight that moves does not make a jump that the target explains one to be smoothed."""
    seen = []
    for last in (1.0, 1.5):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, _ = arm(6, 0.4)
        row = rig.ccd_rig.constraints[0]
        row.target.animation_data_clear()
        for frame, place in ((1, (0.4, 0.3, 1.0)), (10, (0.4, 0.3, 1.0)), (11, (-0.3, 0.5, 1.3))):
            row.target.location = place
            row.target.keyframe_insert("location", frame=frame)
        key(row, "weight", {1: 1.0, 20: last})
        seen.append(baked_keys(bake, channels, rig))
    for path, keys in seen[0].items():
        assert np.abs(keys[:, 1] - seen[1][path][:, 1]).max() < SAME, path


def test_a_pole_angle_that_jumps_is_followed_at_once(bake, channels):
    """As a pole that jumps is: keys of CONSTANT interpolation turn the bend from one frame to the next."""
    rig = rigs.chain(5, 0.5)
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    target, pole = rigs.empty("Target", (0.2, 0.1, 1.5)), rigs.empty("Pole", (0.0, 3.0, 1.0))
    row = rigs.reach(rig, "bone_4", target, "Hand", pole_target=pole)
    rigs.update()
    key(row, "pole_angle", {1: 0.0, 10: 1.2})
    rigs.interpolate(channels.fcurves_of(rig), "CONSTANT")
    alone = solved(bake, rig, (9, 10))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert not report.check.mismatches()
    assert_plays(rig, alone)


def test_whole_turns_of_a_pole_angle_are_a_loop(bake):
    rig, row = still_limb()
    key(row, "pole_angle", {1: 0.0, 10: math.pi, 20: math.tau})
    assert bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20)).loop is not None


def test_a_bake_in_parts_is_the_whole_bake(bake, channels):
    """Of settings that move: ranges one after the other key what one range does."""
    seen = []
    for ranges in (((1, 20),), ((1, 8), (9, 20))):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, row = still_limb()
        key(row, "pole_angle", {1: 0.0, 20: 1.2})
        key(row, "max_extension", {1: 0.7, 20: 1.0})
        key(row, "weight", {1: 0.5, 20: 2.0})
        key(row, "offset", {1: (0.0,) * 3, 20: (0.1, 0.0, -0.2)})
        for first, last in ranges:
            settings = bake.BakeSettings(first, last, smoothness=0.0)
            report = bake.bake(bpy.context.scene, rig, settings)
            assert not report.check.mismatches()
        seen.append(
            {
                frame: [bone.rotation_quaternion.copy() for bone in evaluated.pose.bones]
                for frame, evaluated, _ in play(rig, FRAMES if len(ranges) == 1 else range(9, 21))
            }
        )
    for frame, turns in seen[1].items():
        for one, other in zip(seen[0][frame], turns, strict=True):
            assert 1.0 - abs(one.dot(other)) < SAME**2, frame


def test_a_range_whose_pole_angle_does_not_come_back_is_no_loop(bake):
    rig, row = still_limb()
    key(row, "pole_angle", {1: 0.0, 10: 1.0, 20: 0.0})
    assert bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20)).loop is not None
    key(row, "pole_angle", {20: 0.5})
    assert bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20)).loop is None


@pytest.mark.parametrize("space", ["TARGET", "ARMATURE", "WORLD"])
def test_targets_from_motion_leave_room_for_a_keyed_offset(ext, space):
    """A bake of matched targets keeps the motion."""
    rig = rigs.chain(4, 0.5)
    rig.rotation_euler = (0.3, 0.0, 0.5)
    for frame, angle in ((1, 0.2), (20, 0.9)):
        for bone in rig.pose.bones:
            bone.rotation_mode = "QUATERNION"
            bone.rotation_quaternion = Quaternion((1.0, 0.2, 0.0), angle)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    target = rigs.empty("Target", (3.0, 0.0, 0.0))
    target.rotation_euler = (0.0, 1.0, 0.2)
    row = rigs.reach(rig, "bone_3", target, "Hand", offset_space=space)
    key(row, "offset", {1: (0.0, 0.0, 0.0), 20: (0.2, 0.1, -0.3)})
    rigs.activate(rig)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 20
    scene.frame_set(1)
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
    shown_point = ext.module("ccd_rig.blender.viewport.constraints").target_point
    for frame in (1, 8, 20):
        scene.frame_set(frame)
        assert (shown_point(row) - rig.matrix_world @ rig.pose.bones["bone_3"].tail).length < 1e-4


def test_a_figure_with_planted_feet_follows_keyed_settings(bake):
    """A hand's offset, and its pole angle."""
    rig = rigs.armature(
        [
            *rigs.trunk(chest=1.5),
            *rigs.leg("L"),
            *rigs.leg("R"),
            rigs.B("arm", (0.15, 0, 1.45), (0.45, 0, 1.4), "spine"),
            rigs.B("hand", (0.45, 0, 1.4), (0.7, 0, 1.4), "arm", 0.0, True),
        ]
    )
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    for side in "LR":
        rigs.reach(rig, f"foot.{side}", None, f"Plant {side}", kind="PLANT", chain_length=4)
    target, pole = rigs.empty("Target", (0.4, -0.35, 1.35)), rigs.empty("Pole", (1.0, 2.0, 1.2))
    row = rigs.reach(rig, "hand", target, "Hand", chain_length=2, pole_target=pole, offset_space="WORLD")
    rigs.update()
    key(row, "offset", {1: (0.0, 0.0, 0.0), 20: (0.0, 0.0, 0.15)})
    key(row, "pole_angle", {1: 0.0, 20: 1.0})
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.check is not None
    assert not report.check.mismatches()
    hand = [each for each in report.entries if each.constraint == "Hand"]
    assert max(each.angle for each in hand) < 2e-3
    for frame, height in ((1, 0.0), (20, 0.15)):
        bpy.context.scene.frame_set(frame)
        reached = rig.matrix_world @ rig.pose.bones["hand"].tail
        assert (reached - Vector((0.4, -0.35, 1.35 + height))).length < 2e-4
