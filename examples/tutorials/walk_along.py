# SPDX-License-Identifier: GPL-3.0-or-later
"""A walk over hills: a cycle in place goes along a curve, over a mesh, from standing to standing."""

from __future__ import annotations

from math import pi, sin

import bpy
import common
import figure
import gait
import studio
from mathutils import Vector
from picture import Picture

LENGTH = 8.0  # m of the curve, seen from above
WAVE, HEIGHT = 3.2, 0.2  # m of the hills
ASIDE = 0.6  # m that the curve swings to both sides


def build() -> bpy.types.Object:
    """Rigify's human, which walks in place by keys, a curve and hills."""
    common.set_range(1, 1 + gait.PERIOD)
    rig = common.metarig("human")
    gait.key_walk(rig, 1, 1 + gait.PERIOD, speed=0.0)
    hills()
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions = "3D"
    spline = curve.splines.new("BEZIER")
    spline.bezier_points.add(4)
    for k, point in enumerate(spline.bezier_points):
        point.co = (ASIDE * sin(0.5 * pi * k), -0.25 * LENGTH * k, 0.0)
        point.handle_left_type = point.handle_right_type = "AUTO"
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("Path", curve))
    return rig


def hills() -> bpy.types.Object:
    """A mesh of waves across the way."""
    xs = [-2.4 + 0.1 * k for k in range(49)]
    ys = [2.0 - 0.1 * k for k in range(121)]
    points = [Vector((x, y, HEIGHT * (1.0 + sin(2.0 * pi * y / WAVE + 0.4 * x)))) for x in xs for y in ys]
    count = len(ys)
    faces = [
        (i * count + j, i * count + j + 1, (i + 1) * count + j + 1, (i + 1) * count + j)
        for i in range(len(xs) - 1)
        for j in range(count - 1)
    ]
    return figure.mesh_object("Hills", points, faces, ((0.62, 0.66, 0.52),), [0] * len(faces))


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/walk_along.md has the reader do."""
    common.select(rig, "spine")
    rig.ccd_rig.walk.curve = bpy.data.objects["Path"]
    rig.ccd_rig.ground.kind = "OBJECT"
    rig.ccd_rig.ground.object = bpy.data.objects["Hills"]
    common.press(bpy.ops.ccd_rig.walk_along)


def picture(rig: bpy.types.Object) -> Picture:
    """The figure at some frames in one picture."""
    doll = figure.doll(rig)
    first, last = (int(frame) for frame in rig.animation_data.action.frame_range)
    frames = list(range(first, last + 1, (last - first) // 9))
    view = studio.View((-8.0, -3.0, 2.6), (0.0, -0.5 * LENGTH, 0.95), LENGTH + 1.6)
    return studio.strobe(doll, frames, view)
