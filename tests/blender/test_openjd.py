"""Jobs checked and run by Open Job Description's own command line, `openjd`."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import bpy
import pytest
import rigs
import walks
from installed import ROOT
from shots import keys_in, largest_angle, same_bits, wander

pytestmark = pytest.mark.mass  # takes long

OPENJD = Path(sysconfig.get_path("scripts")) / "openjd"
AGREE = math.radians(0.01)  # what chunks and the whole may differ by, as the manual says
TIMEOUT = 300  # [s]


@pytest.fixture
def clips_job(ext, tmp_path):
    """A job that puts two clips onto a metarig."""
    clips, target = tmp_path / "clips", tmp_path / "hero.blend"
    clips.mkdir()
    for name in ("one", "two"):
        bpy.ops.wm.read_homefile(use_empty=True)
        walks.walk(ext, cycles=2, in_place=False)
        bpy.ops.wm.save_as_mainfile(filepath=str(clips / f"{name}.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    bpy.ops.wm.save_as_mainfile(filepath=str(target))
    cli = ext.module("ccd_rig.blender.cli.command_line")
    words = ["--retarget", str(target), "--output", str(tmp_path / "job"), "--program", sys.executable]
    assert cli.main(["farm", str(clips), *words]) == 0
    return tmp_path / "job"


@pytest.fixture
def job(ext, tmp_path):
    """A job of a short and a long shot, whose tasks run with this Python; the long one has two chunks."""
    files = [wander(tmp_path / "short.blend", 40), wander(tmp_path / "long.blend", 1600, bones=12)]
    cli = ext.module("ccd_rig.blender.cli.command_line")
    words = ["--output", str(tmp_path / "job"), "--chunk", "800", "--program", sys.executable]
    assert cli.main(["farm", *map(str, files), *words]) == 0
    return tmp_path / "job"


def openjd(*words):
    """Start the command line; its tasks find the package in this checkout."""
    return subprocess.Popen(
        [sys.executable, str(OPENJD), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def through(running):
    said, _ = running.communicate(timeout=TIMEOUT)
    return running.returncode, said


def tasks(job, *places):
    """A worker that takes some of the tasks of the first step."""
    step = json.loads((job / "template.json").read_text())["steps"][0]
    parameters = step["parameterSpace"]["taskParameterDefinitions"]
    chosen = [{each["name"]: str(each["range"][k]) for each in parameters} for k in places]
    return openjd("run", job / "template.json", "--step", step["name"], "--tasks", json.dumps(chosen))


def test_clips_are_put_onto_an_armature(clips_job):
    code, said = through(openjd("check", clips_job / "template.json"))
    assert code == 0, said
    code, said = through(tasks(clips_job, 1))
    assert code == 0, said
    assert "openjd_status: two: 49 frames, 1 to 49" in said
    baked = clips_job / "baked"
    two = {f"two{end}" for end in (".blend", ".json", ".record.json")}
    assert {path.name for path in baked.iterdir()} == two

    code, said = through(openjd("run", clips_job / "template.json", "--step", "Table"))
    assert code != 0
    assert "openjd_fail: no result of one for these settings" in said
    assert {path.name for path in baked.iterdir()} == two

    code, said = through(openjd("run", clips_job / "template.json", "--run-dependencies"))
    assert code == 0, said
    assert said.count("done before, and nothing has changed") == 1
    lines = (baked / "table.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["clip", "one", "two"]


def test_two_workers_one_killed_and_run_again(cli, channels, job, tmp_path):
    code, said = through(openjd("check", job / "template.json"))
    assert code == 0, said
    first, second = tasks(job, 0, 2), tasks(job, 1)
    pid = None
    for line in second.stdout:
        if match := re.search(r"Command started as pid: (\d+)", line):
            pid = int(match[1])
        if "openjd_progress" in line:  # in mid-bake
            break
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    code, said = through(second)
    assert code != 0, said
    code, said = through(first)
    assert code == 0, said
    assert "openjd_status: short: 40 of 40 frames reached" in said
    baked = job / "baked"
    names = {path.name for path in baked.rglob("*") if path.is_file()}
    assert names == {"short.blend", "short.json", "short.record.json", "long.801-1600.npz"}

    # Without the chunk that died there is nothing to join, and the job says so.
    code, said = through(openjd("run", job / "template.json", "--step", "Join"))
    assert code != 0
    assert "openjd_fail: long is not joined, and nothing is written: frames 1 to 800 are missing" in said
    assert {path.name for path in baked.rglob("*") if path.is_file()} == names

    code, said = through(openjd("run", job / "template.json", "--run-dependencies"))
    assert code == 0, said
    assert said.count("done before, and nothing has changed") == 2
    assert len((baked / "table.csv").read_text().splitlines()) == 3

    for name in ("short", "long"):
        output = tmp_path / f"{name}_whole.blend"
        assert cli.main(["bake", str(tmp_path / f"{name}.blend"), "--output", str(output)]) == 0
        ours, theirs = keys_in(baked / f"{name}.blend", channels), keys_in(output, channels)
        if name == "short":
            assert same_bits(ours, theirs)
        assert largest_angle(ours, theirs) <= AGREE
