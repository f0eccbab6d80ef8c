"""`python -m ccd_rig` while its modules are loaded: the Blender program has loaded them before."""

from __future__ import annotations

import os
import subprocess
import sys

from installed import ROOT

TIMEOUT = 120  # [s]


def test_interrupted_while_modules_are_loaded(tmp_path):
    """By a module that is loaded on the way: its place says when."""
    (tmp_path / "argparse.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(1000): pass\n"
    )
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
