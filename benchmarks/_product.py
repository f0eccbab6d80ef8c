"""Imports of the product for benchmarks of bakes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from ccd_rig.blender import register
from ccd_rig.blender.bake.bake import bake, solve_current
from ccd_rig.blender.bake.bake_all import bake_all
from ccd_rig.blender.bake.report import BakeReport
from ccd_rig.blender.bake.settings import BakeSettings
from ccd_rig.blender.keys.channels import fcurves_of, select_bone
from ccd_rig.blender.properties.joints import joint_settings
from ccd_rig.limits.shapes import violation

__all__ = [
    "BakeReport",
    "BakeSettings",
    "bake",
    "bake_all",
    "fcurves_of",
    "joint_settings",
    "run",
    "select_bone",
    "solve_current",
    "violation",
]


def run(main: Callable[[], int | None], registers: bool = True) -> NoReturn:
    """Register the product, unless the benchmark does, and run it; its exit code ends the process.

    Blender's own shutdown crashes (4.2) or hangs (4.5) with Rigify.
    """
    if registers:
        register()
    try:
        code = main() or 0
    except Exception:
        traceback.print_exc()
        code = 1
    except SystemExit as ended:  # of argparse, or a line that says what is missing
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
