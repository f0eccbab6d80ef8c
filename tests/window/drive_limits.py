"""Limits without numbers: the menu in the sidebar.

Runs as drive.py does, and by its helpers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import REDRAW, install, note, open_tab, photograph, sh, start, view
from drive_viewport import make_rig, pose


def make_hinges() -> None:
    """All bones are hinges, and the active one, which alone is selected, is bent by 100 degrees."""
    make_rig()
    for pose_bone in bpy.data.objects["Rig"].pose.bones:
        pose_bone.ccd_rig.limit.kind = "HINGE"
        pose_bone.select = pose_bone.name == "Bone1"
    pose((1, 0, 0), 100.0)
    bpy.ops.ed.undo_push(message="Hinges")


def upper() -> list[float]:
    """Where the hinges end, degrees."""
    return [math.degrees(bone.ccd_rig.limit.hinge_upper) for bone in bpy.data.objects["Rig"].pose.bones]


def open_menu() -> Iterator[float]:
    """Open the menu that the arrow beside the kind of limit has, at the pointer."""
    window, area, region = view()
    sh("xdotool", "mousemove", area.x + area.width // 3, window.height - area.y - area.height // 2)
    yield 0.3
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.call_menu("INVOKE_DEFAULT", name="CCD_RIG_MT_limits")
    yield 2 * REDRAW


def press(*names: str) -> Iterator[float]:
    for name in names:
        sh("xdotool", "key", name)
        yield 0.4
    yield REDRAW


def run() -> Iterator[float]:
    install()
    make_hinges()
    yield REDRAW
    yield from open_tab()
    yield from open_menu()
    photograph("menu")
    yield from press("Home", "Down", "Return")  # Max from Pose
    photograph("max_from_pose")
    note("max_from_pose", upper=upper())
    yield from press("ctrl+z")
    note("undo", upper=upper())
    yield from open_menu()
    yield from press("Home", "Down", "Down", "Right")
    photograph("presets")
    yield from press("Escape", "Escape")


if __name__ == "__main__":
    start(run())
