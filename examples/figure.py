# SPDX-License-Identifier: GPL-3.0-or-later
"""A jointed doll on the metarig's bones, and the things around it: balls, floor, light for a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import cos, pi, sin

import bpy
from mathutils import Matrix, Vector

SEGMENTS, RINGS = 18, 4  # of a capsule

# sRGB, 0 to 1
WOOD = (0.87, 0.72, 0.53)
JOINT = (0.56, 0.38, 0.25)
RED = (0.90, 0.25, 0.20)
BLUE = (0.16, 0.45, 0.85)
GREEN = (0.18, 0.62, 0.32)
FLOOR = (1.12, 1.12, 1.12)  # above 1: Workbench's light takes about a third of it
TILE = (1.06, 1.06, 1.06)


@dataclass(frozen=True)
class Part:
    """A capsule along a bone: radii (metres) at its two ends; start and end as parts of the bone's length."""

    bone: str
    radii: tuple[float, float]
    depth: float = 1.0  # thickness along Z as a part of the width
    start: float = 0.0
    end: float = 1.0
    colour: int = 0  # 0 wood, 1 joint
    shift: tuple[float, float] = (0.0, 0.0)  # metres along X and Z


PARTS = (
    Part("spine", (0.135, 0.125), depth=0.78, start=0.15, end=0.75),
    Part("spine.001", (0.118, 0.118), depth=0.75, start=0.1, end=0.9, colour=1),
    Part("spine.002", (0.135, 0.155), depth=0.72, start=0.1, end=0.9),
    Part("spine.003", (0.16, 0.105), depth=0.75, start=0.1, end=0.78),
    Part("spine.004", (0.052, 0.050), start=-0.6, end=1.0, colour=1),
    Part("spine.005", (0.050, 0.050), start=0.0, end=1.0, colour=1),
    Part("spine.006", (0.082, 0.098), depth=1.12, start=0.42, end=0.62, shift=(0.0, 0.045)),
    Part("nose", (0.018, 0.022), start=0.1, end=0.6),
)
LIMB_PARTS = (
    Part("shoulder", (0.055, 0.06), start=0.55, end=0.95),
    Part("upper_arm", (0.060, 0.044), start=0.0, end=0.93),
    Part("forearm", (0.047, 0.047), start=0.0, end=0.0, colour=1),
    Part("forearm", (0.044, 0.031), start=0.1, end=0.93),
    Part("hand", (0.032, 0.032), start=0.0, end=0.0, colour=1),
    Part("hand", (0.034, 0.040), depth=0.55, start=0.35, end=1.25),
    Part("hand", (0.034, 0.020), depth=0.6, start=1.3, end=2.1),
    Part("thigh", (0.088, 0.062), start=0.03, end=0.93),
    Part("shin", (0.064, 0.064), start=0.0, end=0.0, colour=1),
    Part("shin", (0.060, 0.040), start=0.1, end=0.93),
    Part("foot", (0.041, 0.041), start=0.0, end=0.0, colour=1),
    Part("foot", (0.042, 0.040), depth=0.80, start=0.0, end=1.0, shift=(0.0, 0.005)),
    Part("toe", (0.040, 0.036), depth=0.62, start=0.0, end=0.75, shift=(0.0, 0.004)),
    Part("heel.02", (0.036, 0.036), start=0.35, end=0.65, shift=(0.0, 0.034)),
)


def doll(armature_object: bpy.types.Object) -> bpy.types.Object:
    """The doll: one mesh, each part bound to its bone."""
    parts = [*PARTS]
    for side in "LR":
        parts += [
            Part(f"{p.bone}.{side}", p.radii, p.depth, p.start, p.end, p.colour, p.shift) for p in LIMB_PARTS
        ]
    points: list[Vector] = []
    faces: list[tuple[int, ...]] = []
    colours: list[int] = []
    groups: dict[str, list[int]] = {}
    for part in parts:
        bone = armature_object.data.bones[part.bone]
        first = len(points)
        new_points, new_faces = capsule(
            part.start * bone.length, part.end * bone.length, part.radii, part.depth, part.shift
        )
        points += [bone.matrix_local @ point for point in new_points]
        faces += [tuple(first + i for i in face) for face in new_faces]
        colours += [part.colour] * len(new_faces)
        groups.setdefault(part.bone, []).extend(range(first, len(points)))
    thing = mesh_object("Doll", points, faces, (WOOD, JOINT), colours)
    for bone, indices in groups.items():
        thing.vertex_groups.new(name=bone).add(indices, 1.0, "REPLACE")
    thing.parent = armature_object
    thing.modifiers.new("Armature", "ARMATURE").object = armature_object
    return thing


def capsule(
    start: float,
    end: float,
    radii: tuple[float, float],
    depth: float = 1.0,
    shift: tuple[float, float] = (0.0, 0.0),
) -> tuple[list[Vector], list[tuple[int, ...]]]:
    """Points and faces of a capsule along +Y, round at both ends."""
    points: list[Vector] = []
    rows = [(start, radii[0], -pi / 2 + pi / 2 * i / RINGS) for i in range(RINGS + 1)]
    rows += [(end, radii[1], pi / 2 * i / RINGS) for i in range(RINGS + 1)]
    for centre, radius, latitude in rows:
        for j in range(SEGMENTS):
            around = 2.0 * pi * j / SEGMENTS
            width = radius * cos(latitude)
            x, z = width * cos(around) + shift[0], depth * width * sin(around) + shift[1]
            points.append(Vector((x, centre + radius * sin(latitude) * min(depth, 1.0), z)))
    faces: list[tuple[int, ...]] = []
    for i in range(len(rows) - 1):
        for j in range(SEGMENTS):
            k = (j + 1) % SEGMENTS
            low, high = i * SEGMENTS, (i + 1) * SEGMENTS
            faces.append((low + j, high + j, high + k, low + k))
    return points, faces


def ball(name: str, radius: float, colour: tuple[float, float, float]) -> bpy.types.Object:
    """A ball around its own origin."""
    points, faces = capsule(0.0, 0.0, (radius, radius))
    return mesh_object(name, points, faces, (colour,), [0] * len(faces))


def floor(size: float, tile: float) -> bpy.types.Object:
    """A chequered floor just below z = 0, `size` metres to all sides."""
    count = round(size / tile)
    points, faces, colours = [], [], []
    for i in range(-count, count):
        for j in range(-count, count):
            first = len(points)
            corners = ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
            points += [Vector((x * tile, y * tile, 0.0)) for x, y in corners]
            faces.append((first, first + 1, first + 2, first + 3))
            colours.append((i + j) % 2)
    return mesh_object("Floor", points, faces, (FLOOR, TILE), colours, smooth=False)


def line(
    name: str, points: Iterable[Vector], radius: float, colour: tuple[float, float, float]
) -> bpy.types.Object:
    """A thin tube through points."""
    curve = bpy.data.curves.new(name, "CURVE")
    curve.dimensions, curve.bevel_depth, curve.bevel_resolution = "3D", radius, 2
    points = list(points)
    spline = curve.splines.new("POLY")
    spline.points.add(len(points) - 1)
    for target, point in zip(spline.points, points, strict=True):
        target.co = (*point, 1.0)
    curve.materials.append(material(colour))
    return _linked(bpy.data.objects.new(name, curve))


def mesh_object(
    name: str,
    points: list[Vector],
    faces: list[tuple[int, ...]],
    colours: Iterable[tuple[float, ...]],
    chosen: list[int],
    smooth: bool = True,
) -> bpy.types.Object:
    """A mesh object in the scene, a colour per face."""
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([tuple(point) for point in points], [], faces)
    for colour in colours:
        mesh.materials.append(material(colour))
    mesh.polygons.foreach_set("material_index", chosen)
    mesh.polygons.foreach_set("use_smooth", [smooth] * len(faces))
    mesh.validate()
    mesh.update()
    return _linked(bpy.data.objects.new(name, mesh))


def material(colour: tuple[float, ...]) -> bpy.types.Material:
    """The material of a colour: sRGB, 0 to 1, and alpha if it has four numbers."""
    name = "#" + "".join(f"{round(255 * part):02x}" for part in colour)
    found = bpy.data.materials.get(name)
    if found is None:
        found = bpy.data.materials.new(name)
        found.diffuse_color = (*linear(colour[:3]), colour[3] if len(colour) > 3 else 1.0)
    return found


def linear(colour: Iterable[float]) -> tuple[float, ...]:
    """sRGB to scene linear."""
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)


def look_at(thing: bpy.types.Object, place: Vector, at: Vector) -> None:
    """Put a camera at a place, upright, looking at a point."""
    thing.matrix_world = (
        Matrix.Translation(place) @ (at - place).to_track_quat("-Z", "Y").to_matrix().to_4x4()
    )


def _linked(thing: bpy.types.Object) -> bpy.types.Object:
    bpy.context.scene.collection.objects.link(thing)
    return thing
