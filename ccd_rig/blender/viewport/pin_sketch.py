# SPDX-License-Identifier: GPL-3.0-or-later
"""How pins are drawn: a nail's head at the end that stays, with rotation a ring round the bone too."""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, pi, sin
from typing import Any

import bpy
from mathutils import Vector

from .sketch import Sketch

SIZE = 0.12  # half the width of a pin's mark, as a part of the bone's length
WIDTH = 3.0  # [pixels]


def sketch_pins(sketch: Sketch, armature_object: bpy.types.Object, shown: Iterable[str]) -> None:
    """Draw the pins of bones.

    Args:
        sketch: what is drawn on.
        armature_object: the armature.
        shown: names of the bones that the view shows.
    """
    bones = armature_object.pose.bones
    for name in shown:
        kind = bones[name].ccd_rig.pin
        if kind in ("PLACE", "ROTATION"):
            _sketch_pin(sketch, bones[name], kind == "ROTATION")


def _sketch_pin(sketch: Sketch, bone: bpy.types.PoseBone, turns_too: bool) -> None:
    world: Any = bone.id_data.matrix_world @ bone.matrix
    length, colour = bone.bone.length, sketch.palette.planted
    size = SIZE * length
    end = world @ Vector((0.0, length, 0.0))
    corners = [
        world @ Vector((size * x, length, size * z)) for x, z in ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 0))
    ]
    sketch.path(corners, (*colour, 1.0), WIDTH)
    sketch.fan(end, corners, (*colour, 0.5))
    for along in (-1.0, 1.0):
        point = world @ Vector((0.0, length + along * size, 0.0))
        sketch.fan(point, corners, (*colour, 0.35))
        sketch.path((end, point), (*colour, 1.0), WIDTH)
    if turns_too:
        angles = (2.0 * pi * k / 24 for k in range(25))
        ring = [world @ Vector((1.6 * size * cos(a), 0.7 * length, 1.6 * size * sin(a))) for a in angles]
        sketch.path(ring, (*colour, 1.0), WIDTH)
