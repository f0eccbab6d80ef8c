"""`ccd_rig figure`: once as a process of its own, then in this one."""

from __future__ import annotations

import json

import bpy
import pytest
import rigs
from command_processes import process


@pytest.fixture
def hero(ext, tmp_path):
    """A saved file with Rigify's human metarig."""
    rigs.metarig("basic_human")
    path = tmp_path / "hero.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def called(cli, *words):
    """Exit code of the command in this Blender."""
    return cli.main([str(word) for word in words])


def test_roles_are_told_and_nothing_is_set_up(hero, tmp_path):
    before, report = hero.read_bytes(), tmp_path / "roles.json"
    done = process("figure", hero, "--report", report)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    told = json.loads(report.read_text())
    assert told["roles"]["hand.L"] == "left hand"
    assert told["roles"]["spine"] == "hips"
    assert ": Rigify metarig human" in done.stdout
    assert hero.read_bytes() == before


def test_a_figure_is_set_up_with_the_roles_of_a_file(cli, hero, tmp_path):
    roles, output, report = (tmp_path / name for name in ("roles.json", "rigged.blend", "report.json"))
    assert called(cli, "figure", hero, "--report", roles) == 0
    changed = json.loads(roles.read_text())
    changed["roles"]["hand.L"] = ""
    roles.write_text(json.dumps(changed))
    words = ("--roles", roles, "--groups", "hands,head", "--output", output, "--report", report)
    assert called(cli, "figure", hero, *words) == 0
    made = json.loads(report.read_text())
    assert len(made["constraints"]["hands"]) == 1
    assert "hand.L" not in made["roles"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    (rig,) = [thing for thing in bpy.data.objects if thing.type == "ARMATURE"]
    assert {row.tip for row in rig.ccd_rig.constraints} == {"hand.R", "spine.006"}


def test_motion_is_followed_unless_it_is_to_keep_still(cli, hero, tmp_path):
    (rig,) = [thing for thing in bpy.data.objects if thing.type == "ARMATURE"]
    for frame, turn in ((1, 0.0), (10, 0.5)):
        rig.pose.bones["forearm.L"].rotation_quaternion = (1.0, turn, 0.0, 0.0)
        rig.pose.bones["forearm.L"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_end = 10
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    keyed = {}
    for name, words in (("moving", ()), ("still", ("--keep-still",))):
        output = tmp_path / f"{name}.blend"
        assert called(cli, "figure", hero, "--groups", "hands", "--output", output, *words) == 0
        bpy.ops.wm.open_mainfile(filepath=str(output))
        targets = [row.target for row in bpy.data.objects[rig_name(bpy.data)].ccd_rig.constraints]
        keyed[name] = [target.animation_data is not None for target in targets]
    assert keyed == {"moving": [True, True], "still": [False, False]}


def rig_name(data):
    """Name of the only armature object."""
    (name,) = [thing.name for thing in data.objects if thing.type == "ARMATURE"]
    return name


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("{", 1, "the list of roles is not JSON"),
        ('{"bones": {}}', 1, "the list of roles: the field 'roles' is missing"),
        ('{"roles": {"nobody": "left hand"}}', 1, "there is no bone 'nobody'"),
        ('{"roles": {"hand.L": "left paddle"}}', 1, "is no role"),
    ],
)
def test_roles_that_cannot_be_are_one_line(cli, hero, tmp_path, capfd, text, code, words):
    roles, output = tmp_path / "roles.json", tmp_path / "out.blend"
    roles.write_text(text)
    capfd.readouterr()
    assert called(cli, "figure", hero, "--roles", roles, "--output", output) == code
    (line,) = capfd.readouterr().err.splitlines()
    assert words in line
    assert not output.exists()


def test_words_that_go_nowhere_are_refused(cli, hero, tmp_path, capfd):
    assert called(cli, "figure", hero) == 2
    assert "name --output, --report or both" in capfd.readouterr().err
    assert called(cli, "figure", hero, "--groups", "ears", "--report", tmp_path / "r.json") == 2
    assert "give some of hands, feet" in capfd.readouterr().err
