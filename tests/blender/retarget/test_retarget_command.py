"""Retargeting from the command line."""

from __future__ import annotations

import json

import addon_utils
import bpy
import rigs
from retargeting import as_fbx, odd_source


def test_the_command_line_takes_a_folder_of_clips(cli, source, tmp_path, capsys):
    clips = tmp_path / "clips"
    clips.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(clips / "walk.blend"))
    bpy.ops.wm.save_as_mainfile(filepath=str(clips / "again.blend"))
    (clips / "broken.bvh").write_text("nothing")
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    hero, out, table = tmp_path / "hero.blend", tmp_path / "out.blend", tmp_path / "table.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    code = cli.main(["retarget", str(clips), str(hero), "--output", str(out), "--report", str(table)])
    said = capsys.readouterr()
    assert code == 1 and "broken.bvh: cannot be read" in said.err
    found = json.loads(table.read_text())
    assert found["walk.blend"]["frames"] == found["again.blend"]["frames"] == 49
    assert "error" in found["broken.bvh"]
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert all(bpy.data.actions[name].use_fake_user for name in ("walk", "again"))
    assert [thing.type for thing in bpy.data.objects] == ["ARMATURE"]
    assert cli.main(["retarget", str(clips / "walk.blend"), str(hero)]) == 2
    weighed = ["--weight", "head=1", "--weight", "hands=0", "--space", "hands=world", "--report", str(table)]
    assert cli.main(["retarget", str(clips / "walk.blend"), str(hero), *weighed]) == 0
    assert json.loads(table.read_text())["walk.blend"]["errors"]["head"] < 1e-3
    assert set(json.loads(table.read_text())["walk.blend"]["followed"]) == {"left leg", "right leg", "head"}
    sides = ["--weight", "feet=0,1", "--speed", "0.4", "--height", "0.2", "--report", str(table)]
    assert cli.main(["retarget", str(clips / "walk.blend"), str(hero), *sides]) == 0
    assert json.loads(table.read_text())["walk.blend"]["followed"] == ["right leg"]
    for wrong in (
        "--weight head=1,1",
        "--weight feet=1,1,1",
        "--speed 0",
        "--blend -1",
        "--weight hat=1",
        "--weight head=much",
        "--space head=moon",
        "--weight head=2",
    ):
        wrong = wrong.split()
        assert (
            cli.main(["retarget", str(clips / "walk.blend"), str(hero), *wrong, "--report", str(table)]) == 2
        )
    before = hero.read_bytes()
    assert cli.main(["retarget", str(clips / "walk.blend"), str(hero), "--report", str(hero)]) == 2
    assert hero.read_bytes() == before


def hold(source):
    """Keys at one frame alone."""
    source.animation_data_clear()
    for bone in source.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=1)


def test_a_pose_is_carried_over_and_the_command_says_that_it_is_no_motion(cli, source, tmp_path, capsys):
    """Files of figures often hold a T-pose alone, in one frame of keys."""
    pose, hero, out = tmp_path / "pose.blend", tmp_path / "hero.blend", tmp_path / "out.blend"
    hold(source)
    bpy.ops.wm.save_as_mainfile(filepath=str(pose))
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    assert cli.main(["retarget", str(pose), str(hero), "--output", str(out)]) == 0
    assert "pose.blend: The source has no motion" in capsys.readouterr().err
    bpy.ops.wm.open_mainfile(filepath=str(out))
    (action,) = bpy.data.actions
    assert action.frame_range[:] == (1.0, 1.0)


def test_one_frame_that_is_chosen_is_a_pose_and_no_doubt(retarget, source, target):
    choice = retarget.RetargetChoice(frames=(7, 7))
    done = retarget.retarget_motion(bpy.context.scene, source, target, choice)
    assert retarget.lines(done)[0].startswith("1 frame, 7 to 7; ")
    assert retarget.STILL not in retarget.warnings(done)
    few = retarget.RetargetChoice(frames=(1, 9))
    done = retarget.retarget_motion(bpy.context.scene, source, target, few)  # a third of a step
    assert retarget.STILL not in retarget.warnings(done)
    hold(source)
    done = retarget.retarget_motion(bpy.context.scene, source, target, few)
    assert retarget.lines(done)[0].startswith("9 frames, 1 to 9; ")
    assert retarget.STILL in retarget.warnings(done)


def test_the_command_line_refuses_a_rest_that_is_no_pose_in_words_of_its_own(cli, target, tmp_path, capsys):
    odd_source(target)
    mapped = tmp_path / "map.json"
    pairs = {pair.name: pair.source for pair in target.ccd_rig.retarget.pairs}
    mapped.write_text(json.dumps({"bones": pairs}))
    clip, hero, table = tmp_path / "clip.blend", tmp_path / "hero.blend", tmp_path / "table.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(clip))
    for thing in [thing for thing in bpy.data.objects if thing != target]:
        bpy.data.objects.remove(thing)
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    words = ["--map", str(mapped), "--source-armature", "Odd", "--report", str(table)]
    assert cli.main(["retarget", str(clip), str(hero), *words]) == 1
    said = capsys.readouterr()
    assert "give --reference frame" in said.err + said.out
    assert "Reference: Frame" not in said.err + said.out


def test_what_an_importer_raises_is_told_in_one_line(cli, tmp_path, capfd):
    figure = rigs.armature(rigs.biped(), "Figure")
    target, clip = tmp_path / "figure.blend", tmp_path / "clip.bvh"
    bpy.ops.wm.save_as_mainfile(filepath=str(target))
    figure.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=1)
    addon_utils.enable("io_anim_bvh")
    bpy.ops.export_anim.bvh(filepath=str(clip), frame_start=1, frame_end=2)
    hierarchy, motion = clip.read_text().split("Frame Time:")
    clip.write_text(f"{hierarchy}Frame Time:{motion.replace('0.000000', '9' * 5000 + 'x', 1)}")
    capfd.readouterr()
    words = ["retarget", str(clip), str(target), "--report", str(tmp_path / "report.json"), "--quiet"]
    assert cli.main(words) == 1
    said = capfd.readouterr()
    assert "Traceback" not in said.out + said.err
    (line,) = said.err.strip().splitlines()
    assert line.startswith("ccd_rig: warning: clip.bvh: cannot be read: it is damaged, or no .bvh file (Val")
    assert len(line) < 300


def test_a_clip_keeps_its_own_speed_in_a_scene_of_another_rate(cli, source, tmp_path):
    """Two seconds of an FBX file of 24 frames a second are two in a scene of 30."""
    clip, hero, out = tmp_path / "walk.fbx", tmp_path / "hero.blend", tmp_path / "out.blend"
    table = tmp_path / "table.json"
    bpy.context.scene.render.fps = 24
    as_fbx(clip, tmp_path)
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    bpy.context.scene.render.fps = 30
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    assert cli.main(["retarget", str(clip), str(hero), "--output", str(out), "--report", str(table)]) == 0
    assert json.loads(table.read_text())["walk.fbx"]["frames"] == 61
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert bpy.context.scene.render.fps == 30
    start, end = bpy.data.actions["walk"].frame_range
    assert end - start == 60.0


def test_a_bvh_file_that_does_not_tell_its_rate_is_asked_about(cli, source, tmp_path, capsys):
    clip, hero, table = tmp_path / "walk.bvh", tmp_path / "hero.blend", tmp_path / "table.json"
    bpy.context.scene.frame_end = 12
    addon_utils.enable("io_anim_bvh")
    rigs.activate(source)
    bpy.ops.export_anim.bvh(filepath=str(clip), frame_start=1, frame_end=12, global_scale=100.0)
    head, _, motion = clip.read_text().partition("Frame Time:")
    clip.write_text(f"{head}Frame Time: 0\n{motion.partition(chr(10))[2]}")
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    words = ["retarget", str(clip), str(hero), "--report", str(table), "--reference", "frame"]
    assert cli.main(words) == 1
    assert "walk.bvh: Frame Time 0 is not the time of a frame; give --source-fps" in capsys.readouterr().err
    assert cli.main([*words, "--source-fps", "24"]) == 0
    assert json.loads(table.read_text())["walk.bvh"]["frames"] == 12


def test_the_motion_of_a_bvh_file_is_named_as_the_file(cli, source, tmp_path):
    """Blender's importer names its action so too, until what it read is gone."""
    hero, clip, out = tmp_path / "hero.blend", tmp_path / "stride.bvh", tmp_path / "out.blend"
    addon_utils.enable("io_anim_bvh")
    rigs.activate(source)
    bpy.ops.export_anim.bvh(filepath=str(clip), frame_start=1, frame_end=9)
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    words = ["retarget", str(clip), str(hero), "--output", str(out), "--quiet"]
    assert cli.main(words) == 0
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert [action.name for action in bpy.data.actions] == ["stride"]
