# SPDX-License-Identifier: GPL-3.0-or-later
"""A spider: eight legs recognised by how they lie, and a walk by keys on their targets."""

from __future__ import annotations

from itertools import pairwise
from math import cos, radians, sin

import bpy
import common
import studio
from mathutils import Vector
from picture import Picture

FIRST, LAST = 1, 48
STRIDE, CYCLE = 0.36, 24  # metres and frames of a step
LIFT = 0.12  # metres
BEARINGS = (35.0, 70.0, 110.0, 145.0)  # degrees from the front
JOINTS = (
    (0.12, 0.32),
    (0.34, 0.56),
    (0.66, 0.36),
    (0.84, 0.0),
)  # metres from the middle, and above the ground


def build() -> bpy.types.Object:
    """A body of two bones and eight legs of three."""
    bones = [
        ("body", (0, 0.12, 0.32), (0, -0.16, 0.32), ""),
        ("Bone.001", (0, 0.12, 0.32), (0, 0.48, 0.38), "body"),
    ]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        for k, bearing in enumerate(BEARINGS):
            way = Vector((sign * sin(radians(bearing)), -cos(radians(bearing)), 0.0))
            points = [far * way + Vector((0, 0, high)) for far, high in JOINTS]
            parent = "body"
            for name, (head, tail) in zip(leg(k + 1, side), pairwise(points), strict=True):
                bones.append((name, head, tail, parent))
                parent = name
    common.set_range(FIRST, LAST)
    return common.armature("Spider", bones)


def leg(number: int, side: str) -> tuple[str, str, str]:
    """The bones of a leg, from the body on: 1 to 4 from the front, "L" or "R"; named as Blender does."""
    first, second, third = (f"Bone.{3 * number - 1 + k:03d}.{side}" for k in range(3))
    return first, second, third


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/spider.md has the reader do."""
    common.select(rig)
    common.press(bpy.ops.ccd_rig.figure_set_up)
    way = -STRIDE * (LAST - FIRST) / CYCLE
    body = common.target(rig, "body")
    common.move(body, {FIRST: (0, 0, 0), LAST: (0, way, 0)})
    for curve in common.curves(body):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    for side in "LR":
        for number in range(1, len(BEARINGS) + 1):
            foot = leg(number, side)[-1]
            step(common.target(rig, foot), early=(number % 2 == 0) == (side == "L"))
    common.press(bpy.ops.ccd_rig.bake)


def step(target: bpy.types.Object, early: bool) -> None:
    """Key a foot's target: half a cycle it stands, half a cycle it goes on; half of the legs begin."""
    start = FIRST if early else FIRST + CYCLE // 2
    place = (0.25 if early else -0.25) * STRIDE
    shifts = {FIRST: Vector((0, place, 0))}
    for frame in range(start, LAST, CYCLE):
        shifts[frame] = Vector((0, place, 0))
        shifts[frame + CYCLE // 4] = Vector((0, place - 0.5 * STRIDE, LIFT))
        place -= STRIDE
        shifts[frame + CYCLE // 2] = Vector((0, place, 0))
    common.move(target, shifts)


def dress(rig: bpy.types.Object) -> None:
    """Give it a wooden body."""
    radii = {"body": 0.10, "Bone.001": 0.15}
    for side in "LR":
        for number in range(1, len(BEARINGS) + 1):
            radii |= dict(zip(leg(number, side), (0.03, 0.024, 0.03), strict=True))
    studio.body(rig, radii, plain=("body", "Bone.001"))


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of it."""
    dress(rig)
    view = studio.View((-1.9, -2.2, 1.5), (0.0, -0.1, 0.2), 2.6)
    return studio.sheet((1, 7, 13, 19, 25), view)
