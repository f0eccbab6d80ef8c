"""Imports of the product for benchmarks of bakes."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ccd_rig.blender import register, unregister
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
    "leave",
    "register",
    "select_bone",
    "solve_current",
    "unregister",
    "violation",
]


def leave(code: int) -> NoReturn:
    """End the process: Blender's own shutdown crashes (4.2) or hangs (4.5) with Rigify."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
