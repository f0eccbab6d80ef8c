# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures for the tutorials: wooden bodies on any bones, balls at targets, frames side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import figure
import picture
from mathutils import Vector
from picture import Drawing, Picture

TILE = (280, 300)  # px
GAP, LABEL = 6, 40  # px
ALONG = Vector((1.0, 1.0, 0.0))  # of a place: where it is along the ground


@dataclass(frozen=True)
class View:
    """Where pictures are taken from: a direction, the point in the middle, the picture's width in metres."""

    direction: tuple[float, float, float]
    middle: tuple[float, float, float]
    width: float


def body(
    rig: bpy.types.Object,
    radii: Mapping[str, float],
    plain: Collection[str] = (),
    *,
    to_children: bool = False,
) -> bpy.types.Object:
    """Wooden parts along bones, with darker balls at their heads.

    Args:
        rig: the armature object.
        radii: bone -> radius of its part in metres.
        plain: bones without a ball, whose parts begin at their heads.
        to_children: parts lead to the heads of children, as tails of captured bones lie beside these.
    """
    points: list[Vector] = []
    faces: list[tuple[int, ...]] = []
    colours: list[int] = []
    groups: dict[str, list[int]] = {}
    for name, radius in radii.items():
        bone = rig.data.bones[name]
        start = 0.0 if name in plain else min(radius, 0.35 * bone.length)
        ends = [bone.tail_local]
        if to_children and bone.children:
            ends = [child.head_local for child in bone.children]
        parts = []
        rest = bone.matrix_local.to_3x3()
        for end in ends:
            way = end - bone.head_local
            turn = rest.col[1].rotation_difference(way).to_matrix() @ rest
            shape = figure.capsule(start, way.length - 0.5 * radius, (radius, 0.8 * radius))
            parts.append((0, turn, shape))
        if name not in plain:
            shape = figure.capsule(0.0, 0.0, (radius * 1.06, radius * 1.06))
            parts.append((1, rest, shape))
        for colour, turn, (new_points, new_faces) in parts:
            first = len(points)
            points += [bone.head_local + turn @ point for point in new_points]
            faces += [tuple(first + i for i in face) for face in new_faces]
            colours += [colour] * len(new_faces)
            groups.setdefault(name, []).extend(range(first, len(points)))
    thing = figure.mesh_object("Body", points, faces, (figure.WOOD, figure.JOINT), colours)
    for name, indices in groups.items():
        thing.vertex_groups.new(name=name).add(indices, 1.0, "REPLACE")
    thing.parent = rig
    thing.modifiers.new("Armature", "ARMATURE").object = rig
    return thing


def mark(
    target: bpy.types.Object, radius: float = 0.05, colour: picture.Colour = figure.RED
) -> bpy.types.Object:
    """A ball that goes where an empty goes."""
    ball = figure.ball(f"Ball {target.name}", radius, colour)
    copy = ball.constraints.new("COPY_LOCATION")
    copy.target = target
    return ball


def sheet(
    frames: Sequence[int],
    view: View,
    tile: tuple[int, int] = TILE,
    follow: Callable[[], Vector] | None = None,
) -> Picture:
    """Frames of the scene side by side, each with its number below.

    Args:
        frames: of the scene.
        view: the same for all.
        tile: width and height of each in pixels.
        follow: how far the view's middle has gone at the present frame; None: it stands still.
    """
    width = len(frames) * (tile[0] + GAP) + GAP
    height = tile[1] + LABEL + GAP
    result = picture.blank(width, height)
    with picture.studio() as scene:
        for k, frame in enumerate(frames):
            scene.frame_set(frame)
            middle = Vector(view.middle) + (follow() if follow is not None else Vector())
            _aim(scene.camera, view, middle)
            picture.paste(result, picture.render(scene, *tile), GAP + k * (tile[0] + GAP), GAP)
    drawing = Drawing(width, height)
    for k, frame in enumerate(frames):
        left = GAP + k * (tile[0] + GAP)
        drawing.text(f"{frame}", left + 4, 11, 32)
    picture.paste(result, drawing.render(), 0, 0)
    return result


def _aim(camera: bpy.types.Object, view: View, middle: Vector) -> None:
    camera.data.type, camera.data.ortho_scale, camera.data.sensor_fit = "ORTHO", view.width, "HORIZONTAL"
    figure.look_at(camera, middle + 12.0 * Vector(view.direction).normalized(), middle)


def strobe(
    thing: bpy.types.Object, frames: Sequence[int], view: View, size: tuple[int, int] = (1200, 440)
) -> Picture:
    """A mesh object at several frames in one picture."""
    with picture.studio() as scene, ExitStack() as made:
        for frame in frames:
            scene.frame_set(frame)
            made.callback(picture.remove_copy, picture.frozen_copy(scene, thing))
        thing.hide_render = True
        made.callback(setattr, thing, "hide_render", False)
        _aim(scene.camera, view, Vector(view.middle))
        return picture.render(scene, *size)
