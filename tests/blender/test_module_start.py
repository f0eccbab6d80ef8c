"""`python -m ccd_rig` while its modules are loaded: the Blender program has loaded them before."""

from __future__ import annotations

import os
import subprocess
import sys

import bpy
import pytest
import rigs
from installed import ROOT

TIMEOUT = 120  # [s]
SIGNAL = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(1000): pass\n"


def interrupted_in(tmp_path, name, code):
    """A bake whose process is sent a signal in a module that is loaded on the way, and what is there then."""
    (tmp_path / f"{name}.py").write_text(code)
    output = tmp_path / "out.blend"
    done = subprocess.run(
        [sys.executable, "-m", "ccd_rig", "bake", str(tmp_path / "shot.blend"), "--output", str(output)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr.splitlines() == ["ccd_rig: error: interrupted, nothing is written"]
    assert not output.exists()


def test_interrupted_while_modules_are_loaded(tmp_path):
    """By a module that is loaded on the way: its place says when."""
    interrupted_in(tmp_path, "argparse", SIGNAL)


@pytest.mark.parametrize("name", ["mathutils", "bpy"])
@pytest.mark.parametrize("code", ["{SIGNAL}", "try:\n{indented}except KeyboardInterrupt: pass\n"])
def test_interrupted_while_blender_is_loaded(tmp_path, name, code):
    """It is loaded before the command is, and may swallow what is raised in its imports."""
    indented = "".join(f"    {line}\n" for line in SIGNAL.splitlines())
    text = code.format(SIGNAL=SIGNAL, indented=indented)
    if name == "bpy":  # mathutils comes with it
        text = f"import sys, types\n{text}"
    interrupted_in(tmp_path, name, text)


def test_it_ends_where_nobody_reads_what_it_says(tmp_path, ext):
    """Blender's own shutdown, which would follow an exception, hangs or crashes."""
    rig = rigs.chain(2)
    rigs.reach(rig, "bone_1", rigs.empty("Target", (1.0, 0.0, 0.5)), "Hand")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "ccd_rig", "check", str(tmp_path / "shot.blend")],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=pipe,
            stderr=pipe,
            timeout=TIMEOUT,
            check=False,
        )
    assert done.returncode == 1
