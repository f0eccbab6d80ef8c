"""Walk Along from the command line."""

from __future__ import annotations

import json

import bpy
import pytest
import walks
from walking import curve, terrain


@pytest.fixture
def main(ext):
    return ext.module("ccd_rig.blender.cli.command_line").main


@pytest.fixture
def shot(ext, tmp_path):
    rig = walks.walk(ext)
    rig.animation_data.action.name = "Cycle"
    curve((0.0, 0.0, 0.0), (0.0, -3.0, 0.0))
    terrain(lambda x, y: 0.3 + 0.1 * y, count=5)
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def test_it_walks_and_saves(main, shot, tmp_path, capsys):
    out, table = tmp_path / "out.blend", tmp_path / "out.json"
    words = ["walk", str(shot), "--cycle", "Cycle", "--along", "Path", "--ground", "Terrain"]
    assert main([*words, "--output", str(out), "--report", str(table)]) == 0
    assert "footfalls" in capsys.readouterr().out
    found = json.loads(table.read_text())
    assert found["slide"] < 5e-4 and found["penetration"] < 2e-3 and found["flipped"] == 0
    assert found["legs"] == ["left leg", "right leg"]
    bpy.ops.wm.open_mainfile(filepath=str(out))
    rig = bpy.data.objects["Walker"]
    assert rig.animation_data.action.name == "Cycle along Path"
    assert bpy.data.actions["Cycle"].use_fake_user
    last = walks.heads(rig, ("hips",), (int(rig.animation_data.action.frame_range[1]),))[0, 0]
    # 0.3 m lower after 3 m; the hips are above that.
    assert 0.55 < last[2] - (0.3 + 0.1 * last[1]) < 1.0


def test_the_same_as_the_operator(main, shot, tmp_path, ext):
    table = tmp_path / "out.json"
    assert main(["walk", str(shot), "--along", "Path", "--ground", "0.25", "--report", str(table)]) == 0
    by_command = json.loads(table.read_text())
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    rig = bpy.data.objects["Walker"]
    bpy.context.view_layer.objects.active = rig
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.height = "HEIGHT", 0.25
    rig.ccd_rig.walk.curve = bpy.data.objects["Path"]
    walk = ext.module("ccd_rig.blender.walk")
    done = walk.walk_along(bpy.context.scene, rig, rig.ccd_rig.walk.curve, walk.choice_of(rig))
    found = json.loads(json.dumps(walk.as_values(done)))
    for name in ("frames", "cycle", "legs", "footfalls", "stretched", "flipped"):
        assert found[name] == by_command[name]
    assert found["length"] == pytest.approx(by_command["length"])
    assert found["turn"] == pytest.approx(by_command["turn"], rel=1e-4)


@pytest.mark.parametrize("words", [["--cycle-frames", "-7-17"], ["--cycle-frames=-7:17"]])
def test_frames_of_the_cycle_are_named_as_those_of_a_bake(main, channels, shot, tmp_path, words):
    table = tmp_path / "out.json"
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    for each in channels.fcurves_of(bpy.data.objects["Walker"]):
        for point in each.keyframe_points:
            point.co_ui.x -= 8.0
    bpy.ops.wm.save_mainfile()
    assert main(["walk", str(shot), "--along", "Path", "--report", str(table), *words]) == 0
    assert json.loads(table.read_text())["cycle"] == [-7.0, 17.0]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--along", "Path"], 2, "nothing would be kept"),
        (
            ["--along", "Nowhere", "--report", "R"],
            1,
            "no curve object 'Nowhere' in the scene; there are: Path",
        ),
        (["--along", "Path", "--cycle", "None", "--report", "R"], 1, "no action 'None'; there are: Cycle"),
        (["--along", "Path", "--ground", "Moon", "--report", "R"], 1, "no object or collection 'Moon'"),
        (["--along", "Path", "--ground", "Walker", "--report", "R"], 1, "no ground with faces 'Walker'"),
        (["--along", "Path", "--stride", "0", "--report", "R"], 2, "stride must be"),
        (["--along", "Path", "--cycle-frames", "x", "--report", "R"], 2, "'x' is not a frame range"),
        (["--report", "R"], 2, "--along"),
    ],
)
def test_bad_words_are_told(main, shot, tmp_path, capsys, words, code, said):
    words = [str(tmp_path / "r.json") if word == "R" else word for word in words]
    assert main(["walk", str(shot), *words]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r.json").exists()
