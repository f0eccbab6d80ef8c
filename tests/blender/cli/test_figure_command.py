"""`ccd_rig figure`, as a process of its own."""

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


def test_roles_are_told_and_nothing_is_set_up(hero, tmp_path):
    before, report = hero.read_bytes(), tmp_path / "roles.json"
    done = process("figure", hero, "--report", report)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    told = json.loads(report.read_text())
    assert told["roles"]["hand.L"] == "left hand"
    assert told["roles"]["spine"] == "hips"
    assert ": Rigify metarig human" in done.stdout
    assert hero.read_bytes() == before


def test_a_figure_is_set_up_with_the_roles_of_a_file(hero, tmp_path):
    roles, output, report = (tmp_path / name for name in ("roles.json", "rigged.blend", "report.json"))
    process("figure", hero, "--report", roles)
    changed = json.loads(roles.read_text())
    changed["roles"]["hand.L"] = ""
    roles.write_text(json.dumps(changed))
    done = process(
        "figure", hero, "--roles", roles, "--groups", "hands,head", "--output", output, "--report", report
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(report.read_text())
    assert len(made["constraints"]["hands"]) == 1
    assert "hand.L" not in made["roles"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    (rig,) = [thing for thing in bpy.data.objects if thing.type == "ARMATURE"]
    assert {row.tip for row in rig.ccd_rig.constraints} == {"hand.R", "spine.006"}


def test_motion_is_followed_unless_it_is_to_keep_still(hero, tmp_path):
    (rig,) = [thing for thing in bpy.data.objects if thing.type == "ARMATURE"]
    for frame, turn in ((1, 0.0), (10, 0.5)):
        rig.pose.bones["forearm.L"].rotation_quaternion = (1.0, turn, 0.0, 0.0)
        rig.pose.bones["forearm.L"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_end = 10
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    keyed = {}
    for name, words in (("moving", ()), ("still", ("--keep-still",))):
        output = tmp_path / f"{name}.blend"
        done = process("figure", hero, "--groups", "hands", "--output", output, *words)
        assert done.returncode == 0, done.stdout + done.stderr
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
        ("{", 1, "cannot read the roles"),
        ('{"bones": {}}', 1, 'must hold {"roles": {"bone": "role"}}'),
        ('{"roles": {"nobody": "left hand"}}', 1, "there is no bone 'nobody'"),
        ('{"roles": {"hand.L": "left paddle"}}', 1, "is no role"),
    ],
)
def test_roles_that_cannot_be_are_one_line(hero, tmp_path, text, code, words):
    roles, output = tmp_path / "roles.json", tmp_path / "out.blend"
    roles.write_text(text)
    done = process("figure", hero, "--roles", roles, "--output", output)
    assert done.returncode == code
    (line,) = done.stderr.splitlines()
    assert words in line
    assert not output.exists()


def test_words_that_go_nowhere_are_refused(hero, tmp_path):
    done = process("figure", hero)
    assert done.returncode == 2
    assert "name --output, --report or both" in done.stderr
    done = process("figure", hero, "--groups", "ears", "--report", tmp_path / "r.json")
    assert done.returncode == 2
    assert "give some of hands, feet" in done.stderr
