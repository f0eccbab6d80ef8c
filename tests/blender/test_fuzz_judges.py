"""The judges of `dev.py fuzz` bite: each finds a fault that is planted, and none where there is none."""

from __future__ import annotations

import csv
import random
import signal
import sys
import time

import bpy
import pytest
import rigs
from installed import ROOT

sys.path.append(str(ROOT))

from devtools.fuzz import command_lines, files, live, played, setups
from devtools.fuzz import rigs as judged
from devtools.fuzz.shots import printed, tracebacks


@pytest.fixture
def told(ext, tmp_path):
    """A file of two constraints that share bones, one of them at half influence, and what is told of it."""
    rig = rigs.chain(6, 0.5)
    for bone in rig.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=1)
    rigs.reach(rig, "bone_2", rigs.empty("Aside", (1.0, 0.0, 1.0)), "Spine", influence=0.5)
    goal = rigs.keyed(rigs.empty("Goal"), {1: (0.3, 0.0, 2.2), 5: (0.6, 0.0, 2.0)})
    rigs.reach(rig, "bone_5", goal, "Hand", chain_length=3)
    limit = rig.pose.bones["bone_4"].ccd_rig.limit
    limit.kind, limit.cone_radius = "CONE", 1.5
    return saved(ext, rig, tmp_path)


def saved(ext, rig, tmp_path):
    bake = ext.module("ccd_rig.blender.bake.bake")
    settings = bake.BakeSettings(1, 5)
    rigs.activate(rig)
    bases = {frame: judged._base_at(rig, frame) for frame in range(1, 6)}
    report = bake.bake(bpy.context.scene, rig, settings)
    plan = judged._plan(rig, report, settings, bases, setups.INFLUENCES)
    plan["file"] = str(tmp_path / "file.blend")
    bpy.ops.wm.save_as_mainfile(filepath=plan["file"])
    return plan


def entries(plan, row):
    return [entry for frame in plan["frames"] for entry in frame["entries"] if entry["row"] == row]


def test_a_row_that_is_called_reached_and_is_not(told):
    assert played.ask(told) == []
    hand = entries(told, "Hand")
    assert len(hand) == 5 and not any(entry["reached"] for entry in hand)  # the spine carries it off
    hand[2]["reached"] = True
    (words,) = played.ask(told)
    assert words.startswith("frame 3: 'Hand' is called reached, and plays 0.")


def test_a_reach_of_a_figure_that_stands_is_judged_too(ext, tmp_path):
    """Limits are judged on the leg on which it stands too, which has no keys here, but not on its body."""
    rig = rigs.armature(rigs.biped())
    rigs.reach(rig, "foot.L", None, "Foot", kind="PLANT")
    rigs.reach(rig, "head", rigs.empty("Goal", (0.2, -0.2, 1.7)), "Head", chain_length=2)
    for name in ("shin.L", "spine", rig.pose.bones["foot.L"].parent_recursive[-1].name):
        rig.pose.bones[name].ccd_rig.limit.kind = "CONE"
    plan = saved(ext, rig, tmp_path)
    assert played.ask(plan) == []
    assert not entries(plan, "Foot")
    assert all(frame["limited"] == ["shin.L", "spine"] for frame in plan["frames"])
    entries(plan, "Head")[1]["keyed_residual"] += 0.01
    (words,) = played.judge(plan)
    assert words.startswith("frame 2: 'Head' is ")


@pytest.mark.parametrize(
    ("scale", "told_of"), [((2, 2, 2), True), ((1, 2, 1), False), ((-1, 1, 1), False), ((-1, -1, 1), True)]
)
def test_rotations_are_judged_where_nothing_is_sheared_or_mirrored(ext, scale, told_of):
    rig = rigs.chain(2)
    rigs.reach(rig, "bone_1", rigs.empty("Goal"), "Hand")
    for thing in (rig, bpy.data.objects["Goal"]):
        thing.rotation_euler, thing.scale = (0.1, 0.2, 0.3), scale
        rigs.update()
        assert judged._is_rigid(rig) == told_of
        thing.scale = (1, 1, 1)
    rigs.update()
    assert judged._is_rigid(rig)
    rig.pose.bones["bone_0"].scale.x = 1.5
    assert not judged._is_rigid(rig)


def test_a_distance_that_is_told_otherwise(told):
    entries(told, "Hand")[1]["keyed_residual"] += 0.01
    (words,) = played.judge(told)
    assert words.startswith("frame 2: 'Hand' is ")


@pytest.mark.parametrize("mode", rigs.MODES)
def test_a_row_below_full_influence_that_would_miss(ext, tmp_path, mode):
    rig = rigs.chain(3, 0.5)
    for bone in rig.pose.bones:
        bone.rotation_mode = mode
        bone.keyframe_insert(setups._rotation_path(bone), frame=1)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (0.8, 0.2, 0.7)), "Hand", influence=0.5)
    rigs.empty("Elsewhere", (0.8, 0.2, 0.71))
    plan = saved(ext, rig, tmp_path)
    assert all(entry["reached"] and entry["alone"] for entry in entries(plan, "Hand"))
    assert played.judge(plan) == []
    plan["rows"]["Hand"]["target"] = "Elsewhere"
    assert any("at full influence" in words for words in played.judge(plan))


def test_a_limit_that_one_frame_breaks(told):
    rig = bpy.data.objects["Rig"]
    told["frames"] = [{**frame, "entries": []} for frame in told["frames"]]
    assert told["frames"][3]["limited"] == ["bone_4"]
    bpy.context.scene.frame_set(4)
    bone = rig.pose.bones["bone_4"]
    bone.rotation_quaternion = (0.0, 1.0, 0.0, 0.0)
    bone.keyframe_insert("rotation_quaternion", frame=4)
    bpy.ops.wm.save_as_mainfile(filepath=told["file"])
    (words,) = played.judge(told)
    assert words.startswith("frame 4: 'bone_4' is outside its limit by 1.6")


def test_what_a_preview_leaves_behind(ext, tmp_path):
    session = live.Session(random.Random(1), str(tmp_path))

    def show():
        bpy.data.objects["Rig0"].ccd_rig.live = True
        rigs.update()

    show()
    session.save()
    assert session.faults == [] and session.lost() == []
    show()
    before_save = ext.module("ccd_rig.blender.live").before_save
    bpy.app.handlers.save_pre.remove(before_save)
    try:
        session.save()
    finally:
        bpy.app.handlers.save_pre.append(before_save)
    assert session.faults[0].startswith("saved, left behind: 'live' of Rig0")
    assert any("CCD Rig Live" in words for words in session.faults)
    rig = bpy.data.objects["Rig0"]
    rig.pose.bones[0].constraints.remove(rig.pose.bones[0].constraints["CCD Rig Live"])
    assert session.lost()


def test_a_handler_that_fails(ext):
    def fail(*_arguments):
        raise IndexError("planted")

    bpy.app.handlers.depsgraph_update_post.append(fail)
    try:
        with printed() as text:
            rigs.empty("Moved").location.x = 1.0
            rigs.update()
            said = text()
    finally:
        bpy.app.handlers.depsgraph_update_post.remove(fail)
    assert tracebacks(said)[0] == "traceback: IndexError: planted"


def test_a_reader_that_changes_what_it_refuses(ext, tmp_path):
    rigs.chain(2)

    def refuses(_path):
        bpy.data.objects["Rig"].ccd_rig.constraints.add()
        return "no"

    def fails(_path):
        print("Traceback (most recent call last):\n  File\nKeyError: 'x'", file=sys.stderr)
        return ""

    path = tmp_path / "file"
    assert files.tried(files.Reader("", lambda _: "no"), path) == []
    (words,) = files.tried(files.Reader("", refuses), path)
    assert words.startswith("refused (no), but changed: ")
    assert files.tried(files.Reader("", fails), path) == ["traceback: KeyError: 'x'"]
    assert files.tried(files.Reader("", lambda _: "no" * 400), path) == ["a refusal of 800 letters"]


def test_results_that_collide_and_formulas(ext, tmp_path):
    rig, target = rigs.chain(2), tmp_path / "table.csv"
    rig.pose.bones[0].keyframe_insert("rotation_quaternion", frame=1)
    names = {"one": 1, "two": 2}
    bpy.context.scene["kept"] = 1
    for name in names:  # the second is that of the first
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"{name}.blend"))
        for ending in ("json", "record.json"):
            (tmp_path / f"{name}.{ending}").write_text("{}")
    with target.open("w", newline="") as file:
        csv.writer(file).writerows([["shot"], ["one"], ["=two"]])
    (tmp_path / "table.txt").write_text("shot\none\ntwo\n")
    assert command_lines.wrong_results(tmp_path, names) == [
        "'two' has not its own result",
        "a formula: '=two'",
    ]
    target.unlink()
    assert command_lines.wrong_results(tmp_path, {"one": 1}) == ["there is no table"]


SAID = f"{command_lines.SAID}\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "{}x.py", line 1\nKeyboardInterrupt\n'


@pytest.mark.parametrize(
    ("sent", "code", "err", "went_on", "fault"),
    [
        (signal.SIGINT, 130, SAID, 0.0, ""),
        (signal.SIGINT, 0, "", 0.1, ""),
        (signal.SIGTERM, -signal.SIGTERM, "", 0.0, ""),
        (signal.SIGINT, 0, "", 0.8, "the signal is swallowed"),
        (signal.SIGINT, 130, "", 0.0, "exit code 130, but standard error says: ''"),
        (signal.SIGINT, 1, "oh", 0.0, "exit code 1: oh"),
        (signal.SIGINT, 130, TRACEBACK.format(command_lines.OURS) + SAID, 0.0, "traceback"),
        (signal.SIGINT, -signal.SIGINT, TRACEBACK.format("/lib/runpy/"), 0.0, ""),
        (signal.SIGKILL, -signal.SIGINT, "", 0.0, "exit code -2: "),
    ],
)
def test_how_a_command_ends(sent, code, err, went_on, fault):
    found = command_lines.wrong_end(sent, code, err, went_on)
    assert [words.startswith(fault) for words in found] == [True] * bool(fault), found


def test_a_task_that_goes_on(tmp_path):
    folder = str(tmp_path)
    assert command_lines._processes(folder) == []
    process = command_lines._command("check", tmp_path / "none.blend")
    try:
        until = time.monotonic() + 5.0
        while not command_lines._processes(folder) and time.monotonic() < until:
            time.sleep(0.01)
        assert all(folder in each for each in command_lines._processes(folder) or [""])
    finally:
        process.communicate()
