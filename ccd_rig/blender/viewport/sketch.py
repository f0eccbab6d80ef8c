# SPDX-License-Identifier: GPL-3.0-or-later
"""Sketches: lines, faces and labels grouped by colour, one draw call each; sketches of pins and roles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import cos, pi, sin
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
from mathutils import Vector

from ..figures.role import ARM_PARTS, FRONT_PARTS, LEG_PARTS, Part, Role
from ..rig.armature import MEETS, handle_ends
from .palette import Opaque, Palette

Colour = tuple[float, float, float, float]  # red, green, blue, alpha; 0..1

DASHES = (4, 60)  # smallest and largest number of dashes of a line


class Label(NamedTuple):
    """Text at a point in world space, placed on the side away from another point."""

    point: Vector
    away_from: Vector
    words: str
    colour: Colour


class Box(NamedTuple):
    """A rectangle on the screen: its lower left corner and its size, pixels."""

    x: float
    y: float
    width: float
    height: float


def spread_out(boxes: Sequence[Box]) -> list[Box]:
    """Boxes in the same order, the upper ones first in their places, others below those that they cover."""
    placed: dict[int, Box] = {}
    for k in sorted(range(len(boxes)), key=lambda k: -boxes[k].y):
        box, left = boxes[k], list(placed.values())
        while covered := [each for each in left if _meet(box, each)]:
            box = box._replace(y=min(each.y for each in covered) - box.height)
            left = [each for each in left if each not in covered]  # whatever the sum was rounded to
        placed[k] = box
    return [placed[k] for k in range(len(boxes))]


def beside(point: float, width: float, offset: float, to_right: bool, room: tuple[float, float]) -> float:
    """Left edge of a text beside a point: on the other side where it would not be seen whole.

    Args:
        point: where the point is, along the screen, as all others in pixels.
        width: of the text.
        offset: distance of the text from the point.
        to_right: which side is better.
        room: left and right edge of what is seen. Texts of points beyond it stay where they are.
    """
    left, right = point - offset - width, point + offset
    least, most = room
    fits = {False: left >= least, True: right + width <= most}
    if least <= point <= most and not fits[to_right] and fits[not to_right]:
        to_right = not to_right
    return right if to_right else left


def _meet(one: Box, other: Box) -> bool:
    beside = one.x >= other.x + other.width or other.x >= one.x + one.width
    above = one.y >= other.y + other.height or other.y >= one.y + one.height
    return not (beside or above)


class Sketch:
    """Lines, faces and labels in world space.

    Attributes:
        palette: the colours to draw with.
        lines: (colour, width in pixels) -> ends of segments, in pairs.
        faces: colour -> corners of triangles, in threes.
        labels: texts.
    """

    def __init__(self, palette: Palette | None = None) -> None:
        self.palette = palette or Palette()
        self.lines: dict[tuple[Colour, float], list[Vector]] = defaultdict(list)
        self.faces: dict[Colour, list[Vector]] = defaultdict(list)
        self.labels: list[Label] = []

    def path(self, points: Iterable[Vector], colour: Colour, width: float) -> None:
        """Add a polyline."""
        segments = self.lines[colour, width]
        for a, b in pairwise(points):
            segments += (a, b)

    def dotted(self, ends: tuple[Vector, Vector], dash: float, colour: Colour, width: float) -> None:
        """Add a dashed line, with dashes and gaps about `dash` metres long."""
        start, end = ends
        least, most = DASHES
        dashes = (end - start).length / (2.0 * dash) if dash > 0.0 else 0.0
        count = round(min(max(dashes, least), most))
        segments = self.lines[colour, width]
        for i in range(count):
            segments += (
                start.lerp(end, (2 * i) / (2 * count - 1)),
                start.lerp(end, (2 * i + 1) / (2 * count - 1)),
            )

    def fan(self, centre: Vector, points: Sequence[Vector], colour: Colour) -> None:
        """Add a fan of triangles from a centre to consecutive points."""
        corners = self.faces[colour]
        for a, b in pairwise(points):
            corners += (centre, a, b)

    def label(self, point: Vector, away_from: Vector, words: str, colour: Colour) -> None:
        """Add a text at a point, clear of the line from there to another point."""
        self.labels.append(Label(point, away_from, words, colour))


def placed(matrix: Any, points: Iterable[Vector]) -> list[Vector]:
    """Return points transformed by a matrix."""
    return [matrix @ point for point in points]


PIN_SIZE = 0.12  # half the width of a pin's mark, as a fraction of the bone's length
PIN_WIDTH = 3.0  # [pixels]


def sketch_pins(sketch: Sketch, armature_object: bpy.types.Object, pins: Mapping[str, bool]) -> None:
    """Draw pins: {name of the bone: whether its rotation is pinned too}."""
    places = handle_ends(armature_object.data) if pins else {}
    for name, turns_too in pins.items():
        bone = armature_object.pose.bones[name]
        world: Any = bone.id_data.matrix_world @ bone.matrix
        length, colour = bone.bone.length, sketch.palette.planted
        if name in places:  # with the axis Y along the bone
            length = places[name].length
            turn = Vector((0.0, 1.0, 0.0)).rotation_difference(places[name])
            world @= turn.to_matrix().to_4x4()
        size = PIN_SIZE * length
        end = world @ Vector((0.0, length, 0.0))
        corners = [
            world @ Vector((size * x, length, size * z))
            for x, z in ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 0))
        ]
        sketch.path(corners, (*colour, 1.0), PIN_WIDTH)
        sketch.fan(end, corners, (*colour, 0.5))
        for along in (-1.0, 1.0):
            point = world @ Vector((0.0, length + along * size, 0.0))
            sketch.fan(point, corners, (*colour, 0.35))
            sketch.path((end, point), (*colour, 1.0), PIN_WIDTH)
        if turns_too:
            angles = (2.0 * pi * k / 24 for k in range(25))
            ring = [world @ Vector((1.6 * size * cos(a), 0.7 * length, 1.6 * size * sin(a))) for a in angles]
            sketch.path(ring, (*colour, 1.0), PIN_WIDTH)


ROLE_WIDTH = 6.0  # [pixels]
ROLE_ALPHA = 0.8
_TRUNK: Opaque = (0.75, 0.45, 1.0)
_ARM: Opaque = (1.0, 0.55, 0.15)
_LEG: Opaque = (0.3, 0.85, 0.35)
_FRONT_LEG: Opaque = (0.1, 0.75, 0.75)
COLOURS: Mapping[Part, Opaque] = MappingProxyType(
    {
        **dict.fromkeys((Part.SPINE, Part.NECK), _TRUNK),
        **dict.fromkeys(ARM_PARTS, _ARM),
        **dict.fromkeys((*LEG_PARTS[1:], Part.LEG), _LEG),
        **dict.fromkeys(FRONT_PARTS, _FRONT_LEG),
        Part.HIPS: (1.0, 0.85, 0.2),
        Part.HEAD: (0.95, 0.35, 0.75),
        **dict.fromkeys((Part.TAIL, Part.TRUNK), (0.35, 0.65, 1.0)),
        Part.WING: (0.9, 0.9, 0.9),
    }
)
"""Colours of parts of a figure, the same for both sides."""
OTHER_COLOUR: Opaque = (0.65, 0.65, 0.5)
NAMED = (
    *(Part.HIPS, Part.HEAD, Part.HAND, Part.FOOT, Part.FRONT_FOOT),
    *(Part.TAIL, Part.TRUNK, Part.WING, Part.LEG),
)
"""Parts whose first bone is labelled."""


def sketch_roles(sketch: Sketch, armature_object: bpy.types.Object, roles: Mapping[str, Role]) -> None:
    """Draw bones in the colours of their roles, with labels at the ends of limbs.

    Where tails say nothing (`handle_ends`), a line goes to the bones with which the limb goes on.

    Args:
        roles: by bone.
    """
    world: Any = armature_object.matrix_world
    places = handle_ends(armature_object.data)
    parts = {(role.part, role.side, role.number) for role in roles.values()}
    for name, role in roles.items():
        bone = armature_object.pose.bones.get(name)
        if bone is None:
            continue
        part = role.part
        if part is Part.SHOULDER and (Part.UPPER_ARM, role.side, role.number) not in parts:
            leg = (Part.FRONT_THIGH, role.side, role.number)
            part = leg[0] if leg in parts else part  # a shoulder blade of an animal
        colour = COLOURS.get(part, OTHER_COLOUR)
        ends = world @ bone.head, world @ _end(bone, roles, places)
        sketch.path(ends, (*colour, ROLE_ALPHA), ROLE_WIDTH)
        if role.part in NAMED and role.index == 0:
            sketch.label(ends[1], ends[0], role.limb(), (*colour, 1.0))


def _end(bone: bpy.types.PoseBone, roles: Mapping[str, Role], places: Mapping[str, Vector]) -> Vector:
    """End of a bone in armature space: its tail, or where its limb goes on if tails say nothing."""
    if bone.name not in places:
        return Vector(bone.tail)
    role = roles[bone.name]
    heads = [
        each.head
        for each in bone.children
        if each.name in roles
        and role.goes_on_as(roles[each.name])
        and (each.head - bone.head).length > MEETS * bone.bone.length
    ]
    if heads:
        return sum(heads, Vector()) / len(heads)
    return Vector(bone.matrix @ places[bone.name])


dialog_roles: dict[str, Mapping[str, str]] = {}
"""Name of an armature object -> bone -> its role in the open dialog, in words."""
left_roles: set[str] = set()
"""Names of armature objects on which the user has gone on since Set Up Figure, by a handle of a target."""
