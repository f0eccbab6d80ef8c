"""The demo: a walk within human limits that it bakes, and what a user gets for a file of their own.

The demo is a program of its own, so it is run as one, in a process with Blender's module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import bpy
import pytest
from installed import AS_MODULE, ROOT

DEMO = ROOT / "examples/demo.py"
TIMEOUT = 300  # [s]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python that stands in `folder`, with these arguments."""
    assert AS_MODULE, "the demo needs a Python that has the bpy module"
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            name: value for name, value in os.environ.items() if name != "OCIO"
        },  # Blender sets it for itself
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.fixture
def users_file(ext, tmp_path: Path) -> Path:
    """Two armatures with one constraint each, 10 frames; one target is out of reach."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 10
    for name, distance in (("Near", 1.2), ("Far", 9.0)):
        rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
        scene.collection.objects.link(rig)
        bpy.context.view_layer.objects.active = rig
        bpy.ops.object.mode_set(mode="EDIT")
        parent = None
        for i in range(3):
            bone = rig.data.edit_bones.new(f"bone{i}")
            bone.head, bone.tail = (0.0, 0.0, 0.5 * i), (0.0, 0.0, 0.5 * i + 0.5)
            bone.parent, parent = parent, bone
        bpy.ops.object.mode_set(mode="OBJECT")
        target = bpy.data.objects.new(f"{name} Target", None)
        target.location = (distance, 0.0, 0.0)
        scene.collection.objects.link(target)
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.target = "Reach", "bone2", target
    path = tmp_path / "mine.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    return path


def test_a_users_file_is_baked_beside_itself(ext, users_file: Path):
    before = users_file.read_bytes()
    done = run(users_file.parent, str(DEMO), "--file", users_file.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert users_file.read_bytes() == before
    names = sorted(path.name for path in users_file.parent.iterdir())
    assert names == ["mine.blend", "mine_baked.blend", "mine_baked_Far.json", "mine_baked_Near.json"]
    near = json.loads((users_file.parent / "mine_baked_Near.json").read_text(encoding="utf-8"))
    far = json.loads((users_file.parent / "mine_baked_Far.json").read_text(encoding="utf-8"))
    assert near["frames_reached"] == 10
    assert far["frames_reached"] == 0
    assert all(abs(row["residual"] - 7.5) < 1e-3 for row in far["entries"])
    bpy.ops.wm.open_mainfile(filepath=str(users_file.parent / "mine_baked.blend"))
    for frame in (1, 10):
        bpy.context.scene.frame_set(frame)
        tip = bpy.data.objects["Near"].pose.bones["bone2"].tail
        assert (tip - bpy.data.objects["Near Target"].location).length < 2e-4


MISTAKES = (
    (("--file", "missing.blend"), 2, "there is no file missing.blend"),
    (("--file", "broken.blend"), 2, "cannot open broken.blend"),
    (("--file", "empty.blend"), 1, "no armature in scene 'Scene' has CCD constraints"),
    (("--file", "empty.blend", "--output", "empty.blend"), 2, "name another file"),
    (("--file", "empty.blend", "--output", "nowhere/out.blend"), 4, "there is no folder"),
    (("--frames", "3"), 2, "unrecognized arguments"),
    (("--output", "broken.blend"), 4, "cannot make folder broken.blend"),
)
"""Arguments of the demo, its exit code, and a part of its message."""
IN_ONE_PROCESS = """
import contextlib, io, json, os, sys
sys.path.insert(0, sys.argv[1])
import demo
told = []
for arguments in json.loads(sys.argv[2]):
    with contextlib.redirect_stderr(io.StringIO()) as err:
        told.append((demo.main(arguments), err.getvalue()))
print(json.dumps(told), flush=True)
os._exit(0)
"""


def test_mistakes_are_one_line(ext, tmp_path: Path):
    (tmp_path / "broken.blend").write_bytes(b"no Blender file")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "empty.blend"), copy=True)
    before = sorted(tmp_path.iterdir())
    arguments = json.dumps([each[0] for each in MISTAKES])
    done = run(tmp_path, "-c", IN_ONE_PROCESS, str(DEMO.parent), arguments)
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    for (arguments, code, words), (ended, told) in zip(MISTAKES, json.loads(done.stdout), strict=True):
        assert ended == code, (arguments, told)
        assert words in told, (arguments, told)
        assert told.startswith("demo: error: ")
        assert told.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


WITH_ONE_SAMPLE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import demo, picture
picture.SAMPLES = picture.FLAT_SAMPLES = "OFF"
code = demo.main([])
sys.stdout.flush()
os._exit(code)
"""
"""The demo, with a picture that is drawn in a third of the time: all that is left out are smooth edges."""


@pytest.mark.mass
def test_a_contact_sheet_is_drawn(ext, tmp_path: Path):
    done = run(tmp_path, "-c", WITH_ONE_SAMPLE, str(DEMO.parent))
    assert done.returncode == 0, done.stdout + done.stderr
    names = sorted(path.name for path in (tmp_path / "demo_output").iterdir())
    assert names == ["contact_sheet.png", "demo.blend", "demo.json"]


def test_the_figure_walks_within_its_limits(ext, tmp_path: Path):
    done = run(tmp_path, str(DEMO), "--no-sheet")
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "demo_output"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["demo.blend", "demo.json"]
    report = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    missed = {(row["constraint"], row["frame"]) for row in report["entries"] if row["status"] != "CONVERGED"}
    # The ball is out of the right hand's reach for a while, and nothing else ever is.
    assert {constraint for constraint, _ in missed} == {"Hand R"}
    assert {frame for _, frame in missed} >= set(range(196, 211))
    assert min(frame for _, frame in missed) >= 185
    assert max(frame for _, frame in missed) <= 220

    bpy.ops.wm.open_mainfile(filepath=str(folder / "demo.blend"))
    rig = bpy.data.objects["Walker"]
    properties = ext.module("ccd_rig.blender.properties.joints")
    limits = ext.module("ccd_rig.limits.shapes")
    bones = [bone.name for bone in rig.pose.bones if bone.ccd_rig.limit.kind != "NONE"]
    assert len(bones) == 20
    settings = properties.joint_settings(rig, bones)
    reported = {(row["frame"], row["constraint"]): row["keyed_residual"] for row in report["entries"]}
    for frame in range(1, 241, 7):
        bpy.context.scene.frame_set(frame)
        for name in bones:
            rotation = rig.pose.bones[name].matrix_basis.to_quaternion()
            assert limits.contains(settings[name]["limit"], rotation, 1e-4), f"{name} at frame {frame}"
        for row in rig.ccd_rig.constraints:
            away = rig.matrix_world @ rig.pose.bones[row.tip].tail - row.target.matrix_world.translation
            assert away.length == pytest.approx(reported[frame, row.name], abs=1e-5)
