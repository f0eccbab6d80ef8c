# SPDX-License-Identifier: GPL-3.0-or-later
"""An arm with a prop: a hand takes a mug, and lifts it to the mouth inside human limits."""

from __future__ import annotations

from math import cos, pi, radians, sin

import bpy
import common
import figure
import studio
from mathutils import Vector
from picture import Picture

FIRST, LAST = 1, 60
REACHED, LIFTED = 20, 44
TABLE = 1.12  # metres: a high one, as in a bar
MUG, MOUTH = Vector((-0.18, -0.34, TABLE)), Vector((-0.03, -0.22, 1.74))
RADIUS, HEIGHT = 0.04, 0.10  # metres
GLASS, TOP = (0.25, 0.55, 0.62), (0.62, 0.60, 0.57)


def build() -> bpy.types.Object:
    """Rigify's human, a table, and an animated mug with an empty where a hand would hold it."""
    common.set_range(FIRST, LAST)
    rig = common.metarig("human")
    common.lower_arms(rig, FIRST)
    _box("Table", (-0.75, -0.95, TABLE - 0.03), (0.55, -0.22, TABLE))
    mug = _mug()
    common.key(mug, "location", {FIRST: MUG, REACHED + 2: MUG, LIFTED: MOUTH, LAST: MOUTH})
    mug.rotation_mode = "ZYX"  # turned about its own axis first, then tilted
    turns = {FIRST: (0, 0), REACHED + 2: (0, 0), LIFTED: (0, 55), LAST: (-28, 55)}
    tilts = {frame: (radians(tilt), 0.0, radians(yaw)) for frame, (tilt, yaw) in turns.items()}
    common.key(mug, "rotation_euler", tilts)
    grip = bpy.data.objects.new("Grip", None)
    bpy.context.scene.collection.objects.link(grip)
    grip.parent, grip.empty_display_size = mug, 0.05
    grip.location = (-RADIUS - 0.012, 0.0, 0.5 * HEIGHT)
    grip.rotation_euler = (
        radians(-25.0),
        0.0,
        radians(200.0),
    )  # its Y axis is where the fingers point: to the front
    return rig


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/arm.md has the reader do."""
    common.select(rig, "hand.R", beside=bpy.data.objects["Grip"])
    common.press(bpy.ops.ccd_rig.constraint_add)
    row = rig.ccd_rig.constraints["hand.R"]
    row.rotation = "DIRECTION"
    common.select(rig, "upper_arm.R", "forearm.R", "hand.R")
    common.press(bpy.ops.ccd_rig.limits_preset, preset="HUMAN")
    common.key(row, "influence", {FIRST: 0.0, REACHED: 1.0})
    common.press(bpy.ops.ccd_rig.bake)


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of it."""
    figure.doll(rig)
    view = studio.View((-2.2, -2.6, 0.9), (-0.08, -0.16, 1.33), 1.35)
    return studio.sheet((1, 12, 22, 36, 60), view)


def _box(name: str, low: tuple[float, float, float], high: tuple[float, float, float]) -> bpy.types.Object:
    points = [
        Vector((x, y, z)) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])
    ]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return figure.mesh_object(name, points, faces, (TOP,), [0] * 6, smooth=False)


def _mug() -> bpy.types.Object:
    count = 20
    rings = (
        (0.0, 0.0),
        (RADIUS, 0.0),
        (RADIUS, HEIGHT),
        (RADIUS * 0.86, HEIGHT),
        (RADIUS * 0.86, 0.01),
        (0.0, 0.01),
    )
    points = [
        Vector((r * cos(2 * pi * k / count), r * sin(2 * pi * k / count), z))
        for r, z in rings
        for k in range(count)
    ]
    faces = [
        (i * count + k, i * count + (k + 1) % count, (i + 1) * count + (k + 1) % count, (i + 1) * count + k)
        for i in range(len(rings) - 1)
        for k in range(count)
    ]
    return figure.mesh_object("Mug", points, faces, (GLASS,), [0] * len(faces))
