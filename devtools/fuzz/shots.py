"""What faults from outside are tried on."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import bpy
import rigs  # of tests/blender
from installed import PACKAGE  # of tests/blender


def module(name: str) -> Any:
    """A module of the installed extension, by its path in `ccd_rig`."""
    return import_module(f"{PACKAGE}.ccd_rig.{name}")


def shot() -> Any:
    """A rig that can be baked."""
    rig = rigs.chain(4, 0.5)
    target = rigs.keyed(rigs.empty("Goal"), {-3: (0.2, 0.1, 1.3), 8: (0.9, 0.1, 1.3)})
    rigs.reach(rig, "bone_3", target, "Hand")
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 0, 8
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=2)
    rigs.activate(rig)
    rigs.update()
    return rig
