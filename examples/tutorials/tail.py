# SPDX-License-Identifier: GPL-3.0-or-later
"""A tail: one chain, one target, limits from a preset, a bake."""

from __future__ import annotations

from math import pi, sin

import bpy
import common
import studio
from picture import Picture

COUNT = 12
FIRST, LAST = 1, 72
TIP = f"tail.{COUNT:02}"


def build() -> bpy.types.Object:
    """A tail of twelve bones, straight out behind."""
    length = 0.16
    bones = []
    for k in range(COUNT):
        name, parent = f"tail.{k + 1:02}", f"tail.{k:02}" if k else ""
        bones.append((name, (0.0, length * k, 1.0), (0.0, length * (k + 1), 1.0), parent))
    common.set_range(FIRST, LAST)
    return common.armature("Tail", bones)


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/tail.md has the reader do."""
    set_up(rig)
    common.press(bpy.ops.ccd_rig.bake)


def set_up(rig: bpy.types.Object) -> None:
    """All of it but the bake."""
    common.select(rig, TIP)
    common.press(bpy.ops.ccd_rig.constraint_add)
    common.press(bpy.ops.ccd_rig.solver_preset, preset="TAIL")
    common.select(rig, *(bone.name for bone in rig.pose.bones))
    common.press(bpy.ops.ccd_rig.limits_preset, preset="TAIL")
    way = {}
    for frame in range(FIRST, LAST + 1, 6):
        turn = 2.0 * pi * (frame - FIRST) / (LAST + 1 - FIRST)
        way[frame] = (0.75 * sin(turn), -0.55, 0.35 + 0.3 * sin(2.0 * turn))
    common.move(common.target(rig, TIP), way)


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of it."""
    studio.body(rig, {bone.name: 0.075 - 0.0052 * k for k, bone in enumerate(rig.pose.bones)})
    studio.mark(common.target(rig, TIP))
    view = studio.View((-2.4, -0.2, 1.5), (0.0, 0.93, 1.05), 2.0)
    return studio.sheet((1, 13, 25, 43, 61), view)
