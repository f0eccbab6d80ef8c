"""After the bake: what Blender shows is measured, and what keeps keys from playing is named."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion, Vector
from whole_file import differences, dump

PLAYED = 1e-4  # metres: float32 bones end to end, evaluated by Blender


@pytest.fixture
def arm(ext):
    """Five bones, a target on an arc of 40 frames; the limbs stand in a turned and scaled object."""
    rig = rigs.chain(5, 0.4)
    rig.rotation_euler, rig.scale, rig.location = (0.3, 0.2, 0.1), (2, 2, 2), (1, 2, 3)
    goal = rigs.empty("Goal")
    for i in range(9):
        goal.location = rig.matrix_basis @ Vector((math.sin(i), 0.5 * math.cos(i), 1.2))
        goal.keyframe_insert("location", frame=1 + 5 * i)
    rigs.reach(rig, "bone_4", goal, "Hand")
    rigs.update()
    bpy.context.scene.frame_set(1)
    return rig


def measured(rig, frames):
    """{frame: world metres between tip and target}, in the user's own scene."""
    row, found = rig.ccd_rig.constraints[0], {}
    for frame in frames:
        bpy.context.scene.frame_set(math.floor(frame), subframe=frame % 1)
        graph = bpy.context.evaluated_depsgraph_get()
        seen = rig.evaluated_get(graph)
        tip = seen.matrix_world @ seen.pose.bones[row.tip].tail
        found[frame] = (tip - row.target.evaluated_get(graph).matrix_world.translation).length
    return found


def run(bake, rig, first=1, last=41, **fields):
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(first, last, **fields))


def rest(steps):
    """Run a generator to its end; its value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def only(report):
    [row] = report.check.results
    return row


@pytest.mark.parametrize("step", [1, 6])
def test_what_plays_is_what_is_reported(bake, arm, step):
    report = run(bake, arm, step=step)
    seen, row = measured(arm, range(1, 42)), only(report)
    worst = max(seen, key=seen.get)
    assert row.residual == pytest.approx(seen[worst], abs=PLAYED)
    assert seen[row.frame] == pytest.approx(seen[worst], abs=PLAYED)
    assert row.causes == ()
    assert report.check.frames == 41
    assert max(r.keyed_residual for r in report.entries) == pytest.approx(row.residual, abs=PLAYED)
    assert report.seconds > 0.0 and report.check.seconds > 0.0


def test_between_keys_too(bake, arm):
    """With keys on solved frames alone, the error between them is seen, though nobody solved there."""
    report = run(bake, arm, step=10, keys=bake.Keys.SOLVED_FRAMES)
    seen, row = measured(arm, range(1, 42)), only(report)
    assert max(seen.values()) > 0.01
    assert row.residual == pytest.approx(max(seen.values()), abs=PLAYED)
    assert row.frame == max(seen, key=seen.get)
    assert row.causes == ()  # at their frames the keys play as baked


def test_it_can_be_left_out(bake, arm):
    assert run(bake, arm, verify=False).check is None
    assert arm.ccd_rig.report.check == ""


def test_report_in_json_and_on_the_armature(bake, arm):
    report = run(bake, arm)
    content = json.loads(report.to_json())
    assert json.loads(replace(report, seconds=2.34567).to_json())["seconds"] == 2.346  # to the millisecond
    assert content["check"]["frames"] == 41
    [row] = content["check"]["results"]
    assert (row["constraint"], row["causes"]) == ("Hand", [])
    assert content["check"]["words"] == report.check.words() == arm.ccd_rig.report.check
    assert report.check.words().startswith("Plays as baked: at most ")


# --- what overrides keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "told"), [(21, False), (15, True)])
def test_only_where_a_constraint_has_influence_it_is_told_of(channels, bake, arm, first, told):
    """It has none from frame 21 on; something else turns a bone from the first of these frames on."""
    row = arm.ccd_rig.constraints[0]
    other = arm.pose.bones[copy_rotation(arm)[0]].constraints[0]
    for thing, values in ((row, ((1, 1.0), (21, 0.0))), (other, ((1, 0.0), (first, 1.0)))):
        for frame, value in values:
            thing.influence = value
            thing.keyframe_insert("influence", frame=frame)
    rigs.interpolate(channels.fcurves_of(arm), "CONSTANT")
    report = run(bake, arm)
    assert bool(report.check.mismatches()) == told
    assert bool(only(report).causes) == told
    assert {entry.frame for entry in report.entries} == set(range(1, 21))


def copy_rotation(rig):
    constraint = rig.pose.bones["bone_2"].constraints.new("COPY_ROTATION")
    constraint.target = rigs.empty("Other")
    return "bone_2", "Copy Rotation"


def other_ik(rig):
    constraint = rig.pose.bones["bone_3"].constraints.new("IK")
    constraint.target, constraint.chain_count = rigs.empty("Other", (3, 3, 3)), 3
    return "IK", "bone_3"


@pytest.mark.parametrize("override", [copy_rotation, other_ik], ids=lambda each: each.__name__)
def test_constraints_that_act_on_top_are_named(bake, arm, override):
    words = override(arm)
    report = run(bake, arm)
    row = only(report)
    assert row.causes
    assert all(word in " ".join(row.causes) for word in words)
    seen = measured(arm, range(1, 42))
    assert row.residual == pytest.approx(max(seen.values()), abs=PLAYED)
    assert row.deviation > 0.01
    assert "Constraint 'Hand' does not play as baked" in report.check.mismatches()[0]
    assert arm.ccd_rig.report.mismatches == 1
    assert report.check.words() == arm.ccd_rig.report.check == "Does not play as baked: Hand"


def test_a_driver_that_comes_late_is_named(bake, arm, monkeypatch):
    """Nothing stands in the way when the bake begins; a driver is there when it is looked at."""
    steps = bake.bake_steps(bpy.context.scene, arm, bake.BakeSettings(1, 41))
    for progress in steps:
        if progress.verb == "checked":
            break
    arm.pose.bones["bone_1"].driver_add("rotation_quaternion", 1).driver.expression = "0.5"
    report = rest(steps)
    words = " ".join(only(report).causes)
    assert "'bone_1'" in words
    assert "driver" in words


@pytest.mark.parametrize("scaled", ["bone_3", "bone_4"])
def test_a_length_that_goes_after_the_bones_is_named(bake, arm, scaled):
    """The last bone's scale moves no head of a bone, only the end that should reach the target."""
    length = arm.pose.bones[scaled].driver_add("scale", 1).driver
    bend = length.variables.new()
    bend.type, length.expression = "TRANSFORMS", f"1 + 0.3 * abs({bend.name})"
    bend.targets[0].id, bend.targets[0].bone_target = arm, "bone_1"
    bend.targets[0].transform_type, bend.targets[0].transform_space = "ROT_X", "LOCAL_SPACE"
    arm.data.bones["bone_4"].inherit_scale = "NONE"
    rigs.update()
    report = run(bake, arm)
    assert not report.is_sound
    assert f"'{scaled}': scale[1] has a driver" in report.check.mismatches()[0]
    assert only(report).deviation == pytest.approx(max(measured(arm, range(1, 42)).values()), abs=1e-3)


@pytest.mark.parametrize("kind", ["target", "turn", "pole"])
def test_a_target_that_goes_after_the_bones_is_named(bake, arm, kind):
    """By way of a custom property, which nothing that is looked at before the bake leads to."""
    goal, row = bpy.data.objects["Goal"], arm.ccd_rig.constraints[0]
    arm["Bend"] = 0.0
    bend = arm.driver_add('["Bend"]').driver
    bend.type, variable = "SUM", bend.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].bone_target = arm, "bone_2"
    variable.targets[0].transform_type, variable.targets[0].transform_space = "ROT_X", "LOCAL_SPACE"
    moved = goal
    if kind == "turn":
        row.rotation = "ORIENTATION"
    if kind == "pole":
        moved = row.pole_target = rigs.empty("Pole", (3, 3, 3))
    channel = "delta_rotation_euler" if kind == "turn" else "delta_location"
    follow = moved.driver_add(channel, 0).driver
    follow.type, goes = "SUM", follow.variables.new()
    goes.targets[0].id, goes.targets[0].data_path = arm, '["Bend"]'
    rigs.update()
    report = run(bake, arm)
    assert len(report.check.mismatches()) == 1
    assert "target or pole moves with the bones" in report.check.mismatches()[0]
    played = report.check.results[0]
    if kind == "target":
        assert played.residual == pytest.approx(max(measured(arm, range(1, 42)).values()), abs=PLAYED)
        assert played.deviation > 10 * PLAYED
    if kind == "turn":
        assert played.deviation_angle > 0.01


def test_only_the_constraint_that_is_off_is_named(bake, arm):
    rigs.reach(arm, "bone_1", rigs.empty("Near", (1, 2.5, 4)), "Mid", chain_length=2)
    constraint = arm.pose.bones["bone_4"].constraints.new("COPY_ROTATION")
    constraint.target = rigs.empty("Other")
    rigs.update()
    report = run(bake, arm)
    causes = {row.constraint: row.causes for row in report.check.results}
    assert causes["Hand"] and not causes["Mid"]


@pytest.mark.parametrize(
    ("first", "second"),
    [((5e-3, 0.02), (1e-3, 0.09)), ((5e-4, 0.3), (1e-3, 0.01))],  # 50 or 30 tolerances, and 10
)
def test_the_deviation_is_told_of_the_frame_that_is_most_tolerances_off(ext, monkeypatch, first, second):
    """In each pair the second frame is farther off in what is smaller by its tolerance."""
    playback = ext.module("ccd_rig.blender.bake.playback")
    deviations = (np.array(each)[:, None] for each in zip(first, second, strict=True))
    monkeypatch.setattr(playback, "_deviations", lambda *_: tuple(deviations))
    monkeypatch.setattr(playback, "_moved_themselves", lambda *_: [0])
    bake_frames = SimpleNamespace(
        constraints=(SimpleNamespace(tip="bone_0", chain_length=1, kind=SimpleNamespace(balances=False)),),
        skeleton=SimpleNamespace(chain=lambda *_: (0,), joints=(SimpleNamespace(name="bone_0"),)),
        lengths=np.zeros((2, 1)),
        worlds=np.zeros((2, 4, 4)),
        influences=np.ones((2, 1)),
    )
    rig = rigs.chain(1)
    strays, tolerances = np.zeros((2, 2)), (1e-4, 1e-2)
    *worst, row, causes = playback._worst_deviation(rig, bake_frames, 0, None, None, None, strays, tolerances)
    assert (row, *worst) == (0, *first)
    assert causes == ("something else moves bone 'bone_0'",)


def test_what_nobody_can_name_is_said_too(channels, bake, arm):
    steps = bake.bake_steps(bpy.context.scene, arm, bake.BakeSettings(1, 41))
    spoil_keys(channels, arm, steps, "bone_1", 0.5)
    row = only(rest(steps))
    assert row.causes == ("something else moves bone 'bone_1'",)


def spoil_keys(channels, rig, steps, bone, amount):
    """Change keys of bones, by a part of their names, when a bake's check begins."""
    for progress in steps:
        if progress.verb == "checked":
            break
    for curve in channels.fcurves_of(rig):
        if bone in curve.data_path:
            for key in curve.keyframe_points:
                key.co.y += amount
            curve.update()


@pytest.fixture
def balanced(ext):
    return rigs.balanced()


def centre(rig, frame):
    """X and Z of the middle of both masses at a frame, in the world."""
    bpy.context.scene.frame_set(frame)
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    bones = [seen.pose.bones[name] for name in ("arm_2", "side_2")]
    return (seen.matrix_world @ (sum((bone.head + bone.tail for bone in bones), Vector()) / 4.0)).xz


@pytest.mark.parametrize(("bone", "kind"), [("side_3", "IK"), ("side_0", "COPY_ROTATION"), ("side_2", "IK")])
def test_a_mass_that_something_else_moves_is_told(bake, balanced, bone, kind):
    """The chain plays as it was baked; Blender's constraint moves a mass from where balance read it."""
    other = balanced.pose.bones[bone].constraints.new(kind)
    other.target = rigs.empty("Other", (4, 0, 1))
    other.target.rotation_euler = (0.0, 1.0, 0.0)
    if kind == "IK":
        other.chain_count = 2
    rigs.update()
    report = run(bake, balanced, 1, 11)
    row = only(report)
    assert not report.is_sound
    assert f"constraint '{other.name}' of bone '{bone}' acts on bone 'side_" in " ".join(row.causes)
    assert "arm_" not in " ".join(row.causes)
    frame = int(row.frame)
    played = centre(balanced, frame)
    away = played - bpy.data.objects["Goal"].matrix_world.translation.xz
    assert row.residual == pytest.approx(away.length, abs=PLAYED)
    frame = int(row.deviation_frame)
    played = centre(balanced, frame)
    other.mute = True
    rigs.update()
    assert row.deviation == pytest.approx((played - centre(balanced, frame)).length, abs=PLAYED)
    assert any("'side_2'" in words and f"'{other.name}'" in words for words in report.warnings)
    report = run(bake, balanced, 1, 11)
    assert not only(report).causes and not report.warnings


def test_a_mass_that_moves_along_no_balanced_axis_plays_as_baked(bake, balanced):
    """What is beyond a mass carries none, and a turn about a mass's own line moves nothing."""
    other = balanced.pose.bones["side_3"].constraints.new("COPY_ROTATION")
    other.target = rigs.empty("Other")
    other.target.rotation_euler = (0.0, 1.0, 0.0)
    twist = balanced.pose.bones["side_2"].constraints.new("COPY_ROTATION")
    twist.target, twist.use_x, twist.use_z = other.target, False, False
    twist.owner_space = twist.target_space = "LOCAL"
    rigs.update()
    assert not only(run(bake, balanced, 1, 11)).causes


def test_the_bone_is_named_whose_mass_nobody_knows_to_be_moved(channels, bake, balanced):
    for name in ("side_2", "side_3"):
        balanced.pose.bones[name].keyframe_insert("rotation_quaternion", frame=1)
    settings = bake.BakeSettings(1, 11, destination=bake.Destination.CURRENT_ACTION)
    steps = bake.bake_steps(bpy.context.scene, balanced, settings)
    spoil_keys(channels, balanced, steps, "side", 0.3)
    assert only(rest(steps)).causes == ("something else moves bone 'side_2'",)


# --- where, and when ----------------------------------------------------------------------------------------


def test_frame_and_scene_of_the_user_stay(bake, arm):
    bpy.context.scene.frame_set(17, subframe=0.5)
    run(bake, arm)
    assert (bpy.context.scene.frame_current, bpy.context.scene.frame_subframe) == (17, 0.5)
    assert [scene.name for scene in bpy.data.scenes] == ["Scene"]


def test_hidden_armature(bake, arm):
    arm.hide_viewport = True
    report = run(bake, arm)
    arm.hide_viewport = False
    assert only(report).residual == pytest.approx(max(measured(arm, range(1, 42)).values()), abs=PLAYED)


def test_orientation_and_balance(bake, arm):
    row = arm.ccd_rig.constraints[0]
    row.rotation, row.use_position = "ORIENTATION", False
    for bone in arm.pose.bones:
        bone.ccd_rig.mass = 1.0
    rigs.reach(arm, "bone_2", rigs.empty("Foot", (1, 2, 3)), "Balance", kind="BALANCE", priority=1)
    rigs.update()
    report = run(bake, arm, 1, 11)
    played = {row.constraint: row for row in report.check.results}
    rows = [row for row in report.entries if row.constraint == "Balance"]
    assert played["Balance"].residual == pytest.approx(max(row.keyed_residual for row in rows), abs=PLAYED)
    rows = [row for row in report.entries if row.constraint == "Hand"]
    assert played["Hand"].angle == pytest.approx(max(row.keyed_angle for row in rows), abs=1e-3)
    assert not played["Hand"].causes and not played["Balance"].causes


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION", "NLA_STRIP"])
@pytest.mark.parametrize("keyed", [False, True])
def test_cancelled_while_checking_all_is_as_it_was(bake, arm, destination, keyed):
    if keyed:
        for frame, angle in ((1, 0.0), (20, 0.5)):
            arm.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), angle)
            arm.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=frame)
        bpy.context.scene.frame_set(5)
    arm.pose.bones["bone_1"].rotation_quaternion = Quaternion((0, 1, 0), 0.4)  # no key holds this
    before = dump()
    into = bake.Destination[destination]
    steps = bake.bake_steps(bpy.context.scene, arm, bake.BakeSettings(1, 41, destination=into))
    for progress in steps:
        if progress.verb == "checked" and progress.done == 20:
            break
    rigs.update()
    steps.close()
    assert differences(before, dump()) == []


@pytest.mark.parametrize("scale", [(-1, 1, 1), (1, 1, -1), (-1, 1, -1)])
def test_bones_that_a_scale_mirrors_play_as_baked(bake, arm, scale):
    """The tail of a mirrored tip stays where the bone points, so its keys play as any others."""
    tip = arm.ccd_rig.constraints[0].tip
    arm.pose.bones[tip].scale = scale
    rigs.update()
    report = run(bake, arm)
    assert report.check.mismatches() == ()
    assert max(row.deviation_angle for row in report.check.results) < 1e-3


def test_a_chain_whose_parent_is_mirrored_is_refused_for_that(ext, bake):
    arm = rigs.chain(4)
    rigs.reach(arm, "bone_3", rigs.empty("Goal", (0.5, 0.5, 2.0)), "Hand", chain_length=2)
    arm.pose.bones["bone_0"].scale.x = -1.0
    rigs.update()
    with pytest.raises(ext.core.RigError, match="is mirrored by a parent: give its parents positive scale"):
        bake.bake(bpy.context.scene, arm, bake.BakeSettings(1, 3))
    arm.pose.bones["bone_0"].scale.x = 1.0
    rigs.update()
    assert bake.bake(bpy.context.scene, arm, bake.BakeSettings(1, 3)).check.mismatches() == ()
