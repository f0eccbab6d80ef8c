"""Several armatures baked in one pass: each comes out as it does alone; all is written, or nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
import rigs
import walks
from whole_file import differences, dump

LAST = 24


@pytest.fixture
def bake_all(ext):
    return ext.module("ccd_rig.blender.bake.bake_all")


@pytest.fixture
def settings(ext):
    made = ext.module("ccd_rig.blender.bake.settings").BakeSettings

    def of(last=LAST, **fields):
        return made(1, last, **fields)

    return of


def arm(k, count=3, limit="CONE"):
    """A chain with a moving target of its own."""
    rig = rigs.chain(count, 1.0, f"Arm {k}")
    rig.location.x = 4.0 * k
    target = rigs.empty(f"Target {k}")
    places = {frame: (4.0 * k + 0.1 * frame, 0.5 + 0.05 * k, 1.5 - 0.02 * frame) for frame in range(1, 30, 4)}
    rigs.keyed(target, places)
    rigs.reach(rig, f"bone_{count - 1}", target)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = limit, 2.6
    return rig


def keys(ext, rig):
    """All keys as plain values."""
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    return {
        (curve.data_path, curve.array_index): [tuple(key.co) for key in curve.keyframe_points]
        for curve in curves
    }


def test_each_comes_out_as_it_does_alone(ext, bake, bake_all, settings):
    made = [arm(0), arm(1), arm(2), arm(3, count=5), arm(4, limit="NONE")]
    alone = [bake.bake(bpy.context.scene, rig, settings()) for rig in made]
    expected = [keys(ext, rig) for rig in made]
    for rig in made:
        rig.animation_data_clear()
        rigs.update()
        for bone in rig.pose.bones:
            bone.matrix_basis.identity()
    reports = bake_all.bake_all(bpy.context.scene, dict.fromkeys(made, settings()))
    assert [report.armature for report in reports] == [rig.name for rig in made]
    for rig, before, report, its in zip(made, expected, reports, alone, strict=True):
        assert keys(ext, rig) == before
        assert report.summary() == its.summary()
        assert report.check.words() == its.check.words()
        assert rig.ccd_rig.report.words == report.summary()
        assert report.seconds > 0.0


def test_a_single_frame_comes_out_as_it_does_alone(ext, bake, bake_all, settings):
    made = [arm(0), arm(1)]
    for rig in made:
        bake.bake(bpy.context.scene, rig, settings(last=1))
    expected = [keys(ext, rig) for rig in made]
    for rig in made:
        rig.animation_data_clear()
        for bone in rig.pose.bones:
            bone.matrix_basis.identity()
    bake_all.bake_all(bpy.context.scene, dict.fromkeys(made, settings(last=1)))
    assert [keys(ext, rig) for rig in made] == expected


def test_frames_are_evaluated_once_for_all(ext, bake_all, settings, monkeypatch):
    isolation = ext.module("ccd_rig.blender.scene.isolation")
    plain, frames = isolation.set_frame, []
    monkeypatch.setattr(
        isolation, "set_frame", lambda scene, frame: frames.append(frame) or plain(scene, frame)
    )
    made = [arm(0), arm(1), arm(2, count=5)]
    rigs.keyed(bpy.data.objects["Target 2"], {10: (8.0, 9.0, 1.0)})  # out of reach: this one is solved last
    reports = bake_all.bake_all(bpy.context.scene, dict.fromkeys(made, settings()))
    assert reports[2].unsolved_count() > 0 == reports[0].unsolved_count()
    assert sorted(frames) == sorted([*range(1, LAST + 2)] * 2)  # solved, and checked; each with one after it


def test_other_ranges_share_their_frames(ext, bake_all, settings, monkeypatch):
    """The second begins and ends later, of the third every fourth frame is solved.

    Each frame for itself: so nothing beyond the ranges is evaluated, but for the frame after each.
    """
    isolation, bake = ext.module("ccd_rig.blender.scene.isolation"), ext.module("ccd_rig.blender.bake.bake")
    made = [arm(0), arm(1), arm(2)]
    asked = settings(12), replace(settings(20), frame_start=8), replace(settings(9), step=4)
    asked = tuple(replace(each, smoothness=0.0) for each in asked)
    expected = []
    for rig, own in zip(made, asked, strict=True):
        bake.bake(bpy.context.scene, rig, own)
        expected.append(keys(ext, rig))
        rig.animation_data_clear()
        for bone in rig.pose.bones:
            bone.matrix_basis.identity()
    rigs.update()
    plain, frames = isolation.set_frame, []
    monkeypatch.setattr(
        isolation, "set_frame", lambda scene, frame: frames.append(frame) or plain(scene, frame)
    )
    bake_all.bake_all(bpy.context.scene, dict(zip(made, asked, strict=True)))
    assert [keys(ext, rig) for rig in made] == expected
    assert sorted(frames) == sorted([*range(1, 22)] * 2)  # solved, and checked; each with one after it


def test_planted_figures_come_out_as_they_do_alone(ext, bake, bake_all, settings):
    first = walks.walk(ext, 2, in_place=False)
    walks.select(ext, first, "toe.L", "toe.R")
    bpy.ops.ccd_rig.feet_plant()
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.scene.frame_set(1)
    second = first.copy()
    second.animation_data.action = first.animation_data.action
    bpy.context.scene.collection.objects.link(second)
    second.location.x = 3.0
    rigs.update()
    last = 30
    alone = bake.bake(bpy.context.scene, first, settings(last))
    expected = keys(ext, first)
    first.animation_data.action = second.animation_data.action
    first.ccd_rig.report.words = ""
    rigs.update()
    report, other = bake_all.bake_all(bpy.context.scene, {first: settings(last), second: settings(last)})
    assert keys(ext, first) == expected
    assert report.summary() == alone.summary()
    assert keys(ext, second).keys() == expected.keys()
    assert other.check.words() == alone.check.words()


def test_what_hangs_on_another_comes_after_it(ext, bake_all, settings):
    leader, follower = arm(0), arm(1)
    bpy.data.objects["Target 1"].animation_data_clear()
    row = follower.ccd_rig.constraints[0]
    row.target, row.target_bone = leader, "bone_2"
    follower.location.x = 0.5
    rigs.update()
    assert bake_all.waves({follower: settings(), leader: settings()}) == [[leader], [follower]]
    reports = bake_all.bake_all(bpy.context.scene, {follower: settings(), leader: settings()})
    assert [report.armature for report in reports] == [follower.name, leader.name]
    for frame in (1, 9, LAST):
        bpy.context.scene.frame_set(frame)
        tip = follower.matrix_world @ follower.pose.bones["bone_2"].tail
        head = leader.matrix_world @ leader.pose.bones["bone_2"].head
        assert (tip - head).length < 2e-3


def test_two_that_hang_on_each_other_are_refused(ext, bake_all, settings):
    one, other = arm(0), arm(1)
    for rig, its in ((one, other), (other, one)):
        row = rig.ccd_rig.constraints[0]
        row.target, row.target_bone = its, "bone_2"
    rigs.update()
    before = dump()
    with pytest.raises(Exception, match="'Arm 0' and 'Arm 1' move each other's targets"):
        bake_all.bake_all(bpy.context.scene, {one: settings(), other: settings()})
    assert not differences(before, dump())


@pytest.mark.parametrize("other_too", [True, False])
def test_keys_that_would_move_another_of_them_are_refused(ext, bake_all, settings, other_too):
    """Two armatures play one action: keys that the second writes there would replace those of the first."""
    channels, writer = (ext.module(f"ccd_rig.blender.keys.{name}") for name in ("channels", "writer"))
    current, new = writer.Destination.CURRENT_ACTION, writer.Destination.NEW_ACTION
    one, other = arm(0), arm(1)
    one.pose.bones[0].keyframe_insert("rotation_quaternion", frame=1)
    other.animation_data_create()
    channels.assign(other, channels.action_of(one), channels.slot_of(one.animation_data))
    rigs.update()
    before = dump()
    made = {
        one: settings(3, destination=current),
        other: settings(3, destination=current if other_too else new),
    }
    with pytest.raises(Exception, match="'Arm 0' and 'Arm 1' share an action"):
        bake_all.bake_all(bpy.context.scene, made)
    assert not differences(before, dump())
    reports = bake_all.bake_all(bpy.context.scene, dict.fromkeys(made, settings(3, destination=new)))
    assert [report.check.mismatches() for report in reports] == [(), ()]


@pytest.mark.parametrize("kind", ["disabled", "not chosen", "controls", "root"])
def test_a_circle_of_what_no_bake_moves_is_none(bake_all, settings, kind):
    """Whether the bake of an armature moves the target of another tells, not whether a target is there."""
    one, other = arm(0), arm(1)
    for rig, its in ((one, other), (other, one)):
        with rigs.edit_bones(rig) as bones:
            control = bones.new("control")
            control.head, control.tail = (0.0, 1.0, 0.0), (0.0, 1.0, 1.0)
        row = rig.ccd_rig.constraints[0]
        row.target, row.target_bone = its, {"controls": "control", "root": "bone_0"}.get(kind, "bone_2")
        row.chain_length = 2
        rig.ccd_rig.body_helps = False
    if kind in ("disabled", "not chosen"):
        row = rigs.reach(one, "bone_2", rigs.empty("Goal", (0.5, 0.5, 1.5)), "Goal")
        one.ccd_rig.constraints[0].enabled = kind != "disabled"
    rigs.update()
    first = settings(3, constraints=("Goal",)) if kind == "not chosen" else settings(3)
    reports = bake_all.bake_all(bpy.context.scene, {one: first, other: settings(3)})
    assert [report.check.mismatches() for report in reports] == [(), ()]


def hung(rig, on):
    """Let an arm follow a bone of another."""
    row = rig.ccd_rig.constraints[0]
    row.target, row.target_bone = on, "bone_2"


def test_a_refusal_names_those_that_make_the_circle(bake_all, settings):
    follower, *circle = (arm(k) for k in range(4))
    hung(follower, circle[0])
    for k, rig in enumerate(circle):
        hung(rig, circle[k - 1])
    rigs.update()
    made = dict.fromkeys([follower, *circle], settings())
    with pytest.raises(Exception, match="Armatures 'Arm 1', 'Arm 3' and 'Arm 2' move each other's targets"):
        bake_all.bake_all(bpy.context.scene, made)


@pytest.mark.parametrize("name", ["Reach Rig.001", "Rig"])
def test_a_refusal_says_whose_constraint_it_is(bake_all, settings, name):
    one, other = arm(0), arm(1)
    one.name, other.name = "Rig.001", "Rig"
    other.ccd_rig.constraints[0].name, other.ccd_rig.constraints[0].target = name, None
    rigs.update()
    with pytest.raises(Exception, match=rf"^Rig: Constraint '{name}'"):
        bake_all.bake_all(bpy.context.scene, dict.fromkeys([one, other], settings()))
    other.ccd_rig.constraints.clear()
    with pytest.raises(Exception, match=r"^Armature 'Rig' has no CCD constraint"):
        bake_all.bake_all(bpy.context.scene, dict.fromkeys([one, other], settings()))


def test_progress_counts_the_frames_of_all(ext, bake_all, settings, monkeypatch):
    monkeypatch.setattr(bake_all, "CHUNK", 2 * LAST)
    made = [arm(k) for k in range(4)]
    hung(made[3], made[0])
    rigs.update()
    progress = ext.module("ccd_rig.blender.bake.progress")
    assert progress.Progress(7, 30, 120).words(2.0, 20) == "frame 7: 30 of 120 solved, about 18 s left"
    pace = progress.Pace()
    seen, percent = {}, [0.0]
    for item in bake_all.bake_all_steps(bpy.context.scene, dict.fromkeys(made, settings())):
        assert item.total == len(made) * (LAST if item.verb != "done" else 1)
        seen.setdefault(item.verb, []).append(item.done)
        pace.take(item)
        percent.append(pace.percent)
    for verb in ("solved", "checked", "done"):
        assert seen[verb] == sorted(seen[verb])
        assert seen[verb][-1] == len(made) * (LAST if verb != "done" else 1)
    parts = len(made) // 2 + 1  # two side by side, the third, and the one that hangs on the first
    assert max(np.diff(percent)) <= 100.0 / parts
    assert percent[-1] == pytest.approx(95.0)


@pytest.mark.parametrize("fault", ["target", "nan", "locked", "late"])
def test_one_that_cannot_be_baked_leaves_all_as_they_were(bake, bake_all, settings, monkeypatch, fault):
    made = [arm(0), arm(1)]
    if fault == "target":
        made[1].ccd_rig.constraints[0].target = None
    elif fault == "nan":
        bpy.data.objects["Target 1"].animation_data_clear()
        bpy.data.objects["Target 1"].location.x = float("nan")
    elif fault == "locked":
        for bone in made[1].pose.bones:
            bone.lock_rotation = (True, True, True)
            bone.lock_rotation_w = bone.lock_rotations_4d = True
    else:  # when the first has its keys
        plain = bake.write_keys

        def fails(task, *rest):
            if task.armature_object == made[1]:
                raise bake.RigError("the disk is full")
            return plain(task, *rest)

        monkeypatch.setattr(bake, "write_keys", fails)
    rigs.update()
    before = dump()
    with pytest.raises(Exception, match=r"Arm 1|Target 1"):
        bake_all.bake_all(bpy.context.scene, dict.fromkeys(made, settings()))
    assert not differences(before, dump())


def test_cancelled_at_any_step_it_leaves_all_as_they_were(ext, bake_all, settings, monkeypatch):
    # [s] else a slow machine has more steps now than then
    monkeypatch.setattr(ext.module("ccd_rig.solvers.motion"), "CHUNK_SECONDS", 3600.0)
    made = [arm(0), arm(1)]
    total = sum(1 for _ in bake_all.bake_all_steps(bpy.context.scene, dict.fromkeys(made, settings(6))))
    for rig in made:
        rig.animation_data_clear()
    rigs.update()
    before = dump()
    for stop in np.linspace(1, total, 9, dtype=int).tolist():
        steps = bake_all.bake_all_steps(bpy.context.scene, dict.fromkeys(made, settings(6)))
        for _ in range(stop):
            next(steps)
        steps.close()
        assert not differences(before, dump()), stop


def test_more_than_go_side_by_side(ext, bake_all, settings, monkeypatch):
    monkeypatch.setattr(bake_all, "CHUNK", 16)
    plain, loads = bake_all.shared_scene, []
    monkeypatch.setattr(bake_all, "shared_scene", lambda scene: loads.append(scene) or plain(scene))
    made = [arm(k) for k in range(5)]
    reports = bake_all.bake_all(bpy.context.scene, dict.fromkeys(made, settings(8)))
    assert [report.armature for report in reports] == [rig.name for rig in made]
    assert all(report.unsolved_count() == 0 for report in reports)
    assert len(loads) == 3  # 2 and 2 and 1 of 8 frames each
    with pytest.raises(Exception, match="No armature of the scene has enabled CCD constraints"):
        bake_all.bake_all(bpy.context.scene, {})


def test_the_operator_bakes_each_with_its_own_options(ext):
    made = [arm(0), arm(1), arm(2)]
    made[1].ccd_rig.bake.step, made[1].ccd_rig.bake.keys = 4, "SOLVED_FRAMES"
    made[2].ccd_rig.constraints[0].enabled = False
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 9
    assert bpy.ops.ccd_rig.bake_all() == {"FINISHED"}
    counts = [
        max((len(each) for each in keys(ext, rig).values()), default=0) if rig.animation_data else 0
        for rig in made
    ]
    assert counts == [9, 3, 0]
    for rig in made:
        rig.ccd_rig.constraints.clear()
    with pytest.raises(RuntimeError, match="poll"):
        bpy.ops.ccd_rig.bake_all()


def test_all_at_the_command_line(cli, tmp_path, capfd):
    arm(0), arm(1)
    path, output, report = (tmp_path / name for name in ("in.blend", "out.blend", "report.json"))
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    words = ["bake", str(path), "--all", "--frames", "1-8", "--output", str(output), "--report", str(report)]
    assert cli.main(words) == 0
    content = json.loads(report.read_text())
    assert content["format"] == "ccd_rig.bake_reports"
    assert [each["armature"] for each in content["reports"]] == ["Arm 0", "Arm 1"]
    assert "Arm 1: 8 of 8 frames reached" in capfd.readouterr().out
    assert output.is_file()
    assert cli.main([*words, "--armature", "Arm 0"]) == 2


def test_a_bake_begins_with_nothing_done(ext):
    progress = ext.module("ccd_rig.blender.bake.progress")
    pace = progress.Pace()
    pace.take(progress.Progress(1, 0, 10, verb="evaluated"))
    assert pace.percent == 0.0
