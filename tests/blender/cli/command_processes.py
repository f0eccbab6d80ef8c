"""Commands as processes of their own, and the keys in the files that they write."""

from __future__ import annotations

import os
import subprocess
import sys

import bpy
from installed import AS_MODULE, ROOT

TIMEOUT = 120  # [s] a Blender that hangs at its exit


def command_line(*arguments):
    words = [str(each) for each in arguments]
    if AS_MODULE:
        return [sys.executable, "-m", "ccd_rig", *words]
    return [bpy.app.binary_path, "--background", "--command", "ccd_rig", *words]


def process(*arguments, environment=(), **options):
    """Run the command as users do, in a process of its own."""
    return subprocess.run(
        command_line(*arguments),
        cwd=ROOT,
        env={**os.environ, **dict(environment)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        **options,
    )


def keys_in(path, channels):
    """{(data path, index): [frames]} of the rig's action in a file."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    curves = channels.fcurves_of(bpy.data.objects["Rig"])
    return {(c.data_path, c.array_index): [point.co[0] for point in c.keyframe_points] for c in curves}
