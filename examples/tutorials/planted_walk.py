# SPDX-License-Identifier: GPL-3.0-or-later
"""A walk with planted feet: a walk in place goes through the world, and no foot slides."""

from __future__ import annotations

import bpy
import common
import figure
import gait
import studio
from picture import Picture

FIRST, LAST = 1, 1 + 3 * gait.PERIOD
FEET = ("toe.L", "toe.R")


def build() -> bpy.types.Object:
    """Rigify's human, which walks in place by keys."""
    common.set_range(FIRST, LAST)
    rig = common.metarig("human")
    gait.key_walk(rig, FIRST, LAST, speed=0.0)
    return rig


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/planted_walk.md has the reader do."""
    common.select(rig, *FEET)
    common.press(bpy.ops.ccd_rig.feet_plant)
    common.press(bpy.ops.ccd_rig.bake)


def picture(rig: bpy.types.Object) -> Picture:
    """The figure at some frames in one picture."""
    doll = figure.doll(rig)
    way = list(range(FIRST, LAST + 1, gait.PERIOD // 2))
    scene = bpy.context.scene
    places = []
    for frame in (way[0], way[-1]):
        scene.frame_set(frame)
        places.append(rig.matrix_world @ rig.pose.bones["spine"].head)
    middle = 0.5 * (places[0] + places[1])
    view = studio.View((-8.0, 0.0, 1.5), (0.0, middle.y, 1.0), (places[0] - places[1]).length + 1.5)
    return studio.strobe(doll, way, view)
