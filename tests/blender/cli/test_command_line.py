"""`ccd_rig bake` and `ccd_rig check`, in this process and as a process of their own."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import time
from types import SimpleNamespace

import bpy
import pytest
import rigs
from command_processes import TIMEOUT, command_line, keys_in, process
from installed import ROOT

# --- as a process -------------------------------------------------------------------------------------------


def test_bake_in_a_process_of_its_own(channels, shot, tmp_path):
    before = shot.read_bytes()
    output, report = tmp_path / "baked.blend", tmp_path / "baked.json"
    done = process("bake", shot, "--output", output, "--report", report)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Rig: 9 of 9 frames reached; worst " in done.stdout
    assert done.stderr == ""
    assert shot.read_bytes() == before
    content = json.loads(report.read_text())
    assert [row["frame"] for row in content["entries"]] == list(range(9))
    assert content["armature"] == "Rig"
    keys = keys_in(output, channels)
    assert len(keys) == 4 * 4
    assert all(frames == list(range(9)) for frames in keys.values())
    assert bpy.data.objects["Rig"].ccd_rig.report.words == content["summary"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["baked.blend", "baked.json", "shot.blend"]


def test_check_in_a_process_of_its_own(shot, edit):
    done = process("check", shot)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "Rig: no problems" in done.stdout
    edit(lambda rig: setattr(rig.ccd_rig.constraints[0], "tip", "gone"))
    done = process("check", shot)
    assert done.returncode == 1
    assert "ERROR: Rig: " in done.stdout
    assert "gone" in done.stdout


def test_help_shows_examples_and_exit_codes():
    done = process("bake", "--help")
    assert done.returncode == 0
    for words in (
        "--frames FIRST-LAST",
        "blender -b shot.blend --command ccd_rig bake",
        "exit codes:",
        "\n  4 ",
    ):
        assert words in done.stdout


def test_usage_errors_are_one_line(tmp_path):
    done = process("bake", tmp_path / "nothing.blend", "--output", tmp_path / "out.blend")
    assert done.returncode == 2
    assert done.stderr == f"ccd_rig: error: there is no file {tmp_path / 'nothing.blend'}\n"


@pytest.mark.parametrize(
    ("option", "compress", "size"),
    [
        ("--report", False, 1000),
        pytest.param("--output", False, 1000, marks=pytest.mark.mass),
        pytest.param("--output", False, 70000, marks=pytest.mark.mass),
        pytest.param("--output", True, 1000, marks=pytest.mark.mass),
        ("--output", True, 70000),  # the last flush fails, which Blender does not look at
    ],
)
def test_a_full_disk_leaves_nothing_behind(shot, tmp_path, option, compress, size):
    import resource

    bpy.ops.wm.save_as_mainfile(filepath=str(shot), compress=compress)
    folder = tmp_path / "full"
    folder.mkdir()
    name = {"--output": "out.blend", "--report": "out.json"}[option]
    (folder / name).write_text("old")

    def small_files():  # no file may grow beyond this, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk sends no signal

    done = process("bake", shot, option, folder / name, preexec_fn=small_files)
    assert done.returncode == 4, done.stdout + done.stderr
    (complaint,) = [line for line in done.stderr.splitlines() if line.startswith("ccd_rig: ")]
    assert f"cannot write {folder / name}: " in complaint
    assert [(each.name, each.read_text()) for each in folder.iterdir()] == [(name, "old")]


# --- in this process ----------------------------------------------------------------------------------------


def test_the_command_is_known_to_blender(ext):
    assert ext.module("ccd_rig.blender")._commands


@pytest.mark.parametrize(
    ("words", "range_"),
    [
        (["--frames", "1-5"], (1, 5)),
        (["--frames", "1:5"], (1, 5)),
        (["--frames", "-2-5"], (-2, 5)),
        (["--frames", "-3--1"], (-3, -1)),
        (["--frames=-3:-1"], (-3, -1)),
        (["--frames", "4-4"], (4, 4)),
        ([], (0, 8)),
    ],
)
def test_frame_ranges(cli, shot, tmp_path, words, range_):
    report = tmp_path / "r.json"
    assert cli.main(["bake", str(shot), "--report", str(report), *words]) == 0
    content = json.loads(report.read_text())
    assert (content["frame_start"], content["frame_end"]) == range_


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "nothing would be kept"),
        (["--report", "r.json", "--frames", "5"], "'5' is not a frame range"),
        (["--report", "r.json", "--frames", "5-x"], "'5-x' is not a frame range"),
        (["--report", "r.json", "--frames", "5-1"], "empty"),
        (["--report", "r.json", "--step", "0"], "step must be 1 or more"),
        (["--report", "r.json", "--step", "two"], "--step"),
        (["--report", "r.json", "--keys", "none"], "--keys"),
        (["--report", "r.json", "--body", "feet"], "--body"),
        (["--report", "r.json", "--rep", "r.json"], "--rep"),
    ],
)
def test_wrong_words(cli, shot, tmp_path, monkeypatch, capfd, words, complaint):
    monkeypatch.chdir(tmp_path)
    before = shot.read_bytes()
    assert cli.main(["bake", str(shot), *words]) == 2
    complaints = capfd.readouterr().err.splitlines()
    assert len(complaints) == 1
    assert complaint in complaints[0]
    assert shot.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["shot.blend"]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("--preroll 19", "preroll", 19),
        ("--smoothness 0.5", "smoothness", 0.5),
        ("--reduce-angle 2", "reduce_angle", math.radians(2.0)),
        ("--reduce-error 0.01", "reduce_error", 0.01),
        ("--keys targets", "keys", "TARGET_KEYS"),
        ("--keys reference --reference-keys Rig/bone_0", "keys", "REFERENCE_KEYS"),
        ("--keys reference --reference-keys Rig/bone_0", "reference_bone", "bone_0"),
        ("--keys reference --reference-keys Rig", "reference_object", "Rig"),
        ("--start pose", "start", "POSE"),
        ("", "start", "ACTION"),
        ("--keep-switches", "switch_to_fk", False),
        ("--body keep", "body", "KEEP_ANIMATION"),
        ("--body follow", "body", "FOLLOW_FEET"),
        ("--body walk", "body", "WALK_ON"),
        ("", "body", ""),
        ("--body-helps", "body_helps", True),
        ("--no-body-helps", "body_helps", False),
        ("", "body_helps", None),
        ("--current-action", "destination", "CURRENT_ACTION"),
        ("--nla-strip", "destination", "NLA_STRIP"),
    ],
)
def test_words_of_a_bake_are_its_settings(ext, cli, words, field, value):
    settings = ext.module("ccd_rig.blender.cli.bake_command").bake_settings
    made = getattr(settings(cli.parse(["bake", *words.split()]), bpy.context.scene), field)
    assert getattr(made, "name", made) == value


def test_no_command_and_no_file(cli, capfd):
    assert cli.main([]) == 2
    bpy.ops.wm.read_homefile(use_empty=True)
    assert cli.main(["check"]) == 2
    assert "no file is open" in capfd.readouterr().err


def test_step_keys_and_current_action(channels, cli, shot, edit, tmp_path):
    edit(lambda rig: rig.pose.bones["bone_0"].keyframe_insert("location", frame=1))
    output = tmp_path / "out.blend"
    words = [
        "--step",
        "4",
        "--keys",
        "solved",
        "--current-action",
        "--constraint",
        "Hand",
        "--armature",
        "Rig",
    ]
    assert cli.main(["bake", str(shot), "--output", str(output), *words]) == 0
    keys = keys_in(output, channels)
    assert keys['pose.bones["bone_3"].rotation_quaternion', 0] == [0, 4, 8]
    assert keys['pose.bones["bone_0"].location', 0] == [1]
    assert len(bpy.data.actions) == 2


@pytest.mark.parametrize(
    ("words", "solver"),
    [
        ([], "CCD_LEAST_SQUARES"),
        (["--solver", "ccd"], "CCD"),
        (["--solver", "ccd-least-squares"], "CCD_LEAST_SQUARES"),
    ],
)
def test_solver(cli, shot, tmp_path, words, solver):
    report = tmp_path / "report.json"
    assert cli.main(["bake", str(shot), "--report", str(report), *words]) == 0
    assert json.loads(report.read_text())["solver"] == solver


def test_frames_that_are_not_reached(cli, shot, edit, tmp_path, capfd):
    edit(lambda rig: setattr(rig, "location", (5.0, 0.0, 0.0)))
    output = tmp_path / "out.blend"
    capfd.readouterr()
    assert cli.main(["bake", str(shot), "--output", str(output)]) == 0
    assert "ccd_rig: warning: Rig: 0 of 9 frames reached" in capfd.readouterr().err
    assert output.exists()
    assert cli.main(["bake", str(shot), "--output", str(output), "--strict"]) == 3


def test_what_cannot_be_baked(cli, shot, edit, tmp_path, capfd):
    output = tmp_path / "out.blend"
    words = ["bake", str(shot), "--output", str(output)]
    assert cli.main([*words, "--constraint", "Foot"]) == 1
    assert cli.main([*words, "--armature", "Nobody"]) == 1
    edit(lambda rig: setattr(rig.ccd_rig.constraints[0], "target", None))
    assert cli.main(words) == 1
    complaints = [line for line in capfd.readouterr().err.splitlines() if line.startswith("ccd_rig: error: ")]
    assert len(complaints) == 3
    for complaint, name in zip(complaints, ("Foot", "Nobody", "Hand"), strict=True):
        assert name in complaint
    assert not output.exists()


def test_which_armature(cli, shot, edit, tmp_path, capfd):
    def second(rig):
        other = rigs.chain(2, name="Other")
        row = other.ccd_rig.constraints.add()
        row.name, row.tip, row.target = "Foot", "bone_1", bpy.data.objects["Target"]

    edit(second)
    words = ["bake", str(shot), "--report", str(tmp_path / "r.json"), "--frames", "1-2"]
    assert cli.main(words) == 2
    assert "(Rig, Other)" in capfd.readouterr().err.replace("(Other, Rig)", "(Rig, Other)")
    assert cli.main([*words, "--armature", "Other"]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["armature"] == "Other"


def test_a_constraint_that_one_of_several_rigs_has(cli, shot, edit, tmp_path, capfd):
    def add_another(rig):
        other = rigs.chain(4, 0.5)
        other.name, rig.ccd_rig.constraints[0].target.location.y = "Other", 0.2
        row = other.ccd_rig.constraints.add()
        row.name, row.tip, row.target = "Foot", "bone_3", rig.ccd_rig.constraints[0].target

    edit(add_another)
    words = ["--constraint", "Foot"]
    assert cli.main(["check", str(shot), *words]) == 0
    said = capfd.readouterr().out
    assert "Other: no problems" in said and "Rig:" not in said
    report, job = tmp_path / "r.json", tmp_path / "job"
    assert cli.main(["bake", str(shot), "--all", "--frames", "1-2", "--report", str(report), *words]) == 0
    content = json.loads(report.read_text())
    assert [each["armature"] for each in content["reports"]] == ["Other"]
    assert cli.main(["farm", str(shot), "--output", str(job), *words]) == 0
    (farmed,) = json.loads((job / "settings.json").read_text())["shots"]
    assert {name: each["constraints"] for name, each in farmed["armatures"].items()} == {"Other": ["Foot"]}
    both = [*words, "--constraint", "Hand"]  # each rig its own
    assert cli.main(["check", str(shot), *both]) == 0
    capfd.readouterr()
    for command in (["check"], ["bake", "--all", "--report", str(report)], ["farm", "--output", str(job)]):
        assert cli.main([command[0], str(shot), *command[1:], *words, "--constraint", "Tail"]) == 1
        assert "no armature has a constraint 'Tail'; with CCD constraints: " in capfd.readouterr().err


def test_no_armature_with_constraints(cli, shot, edit, capfd):
    edit(lambda rig: rig.ccd_rig.constraints.clear())
    assert cli.main(["check", str(shot)]) == 1
    assert "no armature" in capfd.readouterr().err


def test_quiet(cli, shot, tmp_path, capfd):
    assert cli.main(["bake", str(shot), "--report", str(tmp_path / "r.json"), "--quiet"]) == 0
    assert "reached" not in capfd.readouterr().out


def test_scripted_drivers_need_trust(cli, shot, edit, tmp_path, capfd):
    def drive(rig):
        curve = rig.ccd_rig.constraints[0].driver_add("influence")
        curve.driver.expression = "len('half') / 8 + 0 * bpy.context.scene.frame_current"

    edit(drive)
    words = ["bake", str(shot), "--report", str(tmp_path / "r.json"), "--frames", "1-2"]
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    capfd.readouterr()
    cli.main(words)
    assert "--enable-autoexec" in capfd.readouterr().err
    assert cli.main([*words, "--enable-autoexec"]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["entries"][0]["influence"] == pytest.approx(
        0.5, abs=1e-6
    )


def test_a_slow_bake_shows_how_far_it_is(ext, cli, shot, tmp_path, capfd, monkeypatch):
    """By a clock that goes on a second whenever it is looked at."""
    clock = SimpleNamespace(perf_counter=itertools.count().__next__)
    monkeypatch.setattr(ext.module("ccd_rig.blender.bake.progress"), "time", clock)
    command = ext.module("ccd_rig.blender.cli.bake_command")
    monkeypatch.setattr(command, "SLOW", 0.0)
    monkeypatch.setattr(command, "RELOG", 0.0)
    words = ["bake", str(shot), "--report", str(tmp_path / "r.json")]
    assert cli.main(words) == 0
    told = list(dict.fromkeys(capfd.readouterr().err.splitlines()))
    lines = [line for line in told if "of 9 evaluated" in line]
    seen = [line.partition(",")[0] for line in lines]
    assert seen == [f"frame {k}: {k + 1} of 9 evaluated" for k in range(9)]
    assert all(", about " in line for line in lines[1:-1]), "how fast it is shows with the second item"
    assert "about" not in lines[-1], "nothing is left"
    assert any("of 9 solved" in line for line in told)
    assert cli.main([*words, "--quiet"]) == 0
    assert "of 9" not in capfd.readouterr().err


def test_interrupted_inside_a_handler(cli, shot, tmp_path, capfd):
    """Blender prints what a handler raises, and goes on: Ctrl-C is neither lost nor raised there."""
    output = tmp_path / "out.blend"

    @bpy.app.handlers.persistent
    def press(*_):
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # Python runs signals between two of its own steps

    pressed = []
    bpy.app.handlers.frame_change_post.append(press)
    try:
        assert cli.main(["bake", str(shot), "--output", str(output)]) == 130
    finally:
        bpy.app.handlers.frame_change_post.remove(press)
    said = capfd.readouterr()
    assert "interrupted, nothing is written" in said.err
    assert "Traceback" not in said.out + said.err
    assert pressed and not output.exists()


def test_interrupted_inside_a_handler_of_saving(cli, shot, tmp_path, capfd):
    """The file is written then: the command ends as it does without."""
    output = tmp_path / "out.blend"

    @bpy.app.handlers.persistent
    def press(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

    bpy.app.handlers.save_post.append(press)
    try:
        assert cli.main(["bake", str(shot), "--output", str(output)]) == 0
    finally:
        bpy.app.handlers.save_post.remove(press)
    said = "".join(capfd.readouterr())
    assert "nothing is written" not in said
    assert "Traceback" not in said
    assert output.exists()


def test_interrupted(shot, tmp_path):
    """Ctrl-C in mid-bake, once the progress line shows that it is under way."""
    output = tmp_path / "out.blend"
    command = command_line("bake", shot, "--frames", "0-100000", "--output", output)
    started = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert "of 100001 " in started.stderr.readline()
        started.send_signal(signal.SIGINT)
        _, complaints = started.communicate(timeout=TIMEOUT)
    finally:
        started.kill()
    assert started.returncode == 130
    assert "ccd_rig: error: interrupted, nothing is written" in complaints.splitlines()
    assert [each.name for each in tmp_path.iterdir()] == ["shot.blend"]
