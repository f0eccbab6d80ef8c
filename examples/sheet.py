# SPDX-License-Identifier: GPL-3.0-or-later
"""The contact sheet: the walk in one picture, the limit of a shoulder, the reach by frames, the errors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from math import cos, pi, sin

import bpy
import figure
import numpy as np
import picture
import walk
from mathutils import Matrix, Vector
from picture import INK, Drawing, Picture

from ccd_rig.blender.bake.report import BakeReport, Entry
from ccd_rig.maths.rotations import exp

WIDTH, HEIGHT = 1920, 1360
EDGE = 24  # px around everything
WALK = (1230, 540)  # px
LIMIT = (WIDTH - 2 * EDGE - 16 - WALK[0], WALK[1])
TILE = (226, 330)
GAP = (WIDTH - 2 * EDGE - 8 * TILE[0]) / 7
PLOT_HEIGHT = 210

WALK_FRAMES = (10, 28, 43, 59, 75, 91, 107, 138)
REACH_FRAMES = (137, 150, 163, 178, 190, 202, 220, 240)
LIMIT_BONE, LIMIT_FRAME = "upper_arm.R", 187

OK, MISSED = (0.13, 0.60, 0.33), (0.85, 0.20, 0.18)
FAINT = (0.50, 0.53, 0.57)
GRID = (0.87, 0.88, 0.90)
COLOURS = {
    "Hand R": figure.RED,
    "Hand L": figure.BLUE,
    "Face": (0.55, 0.33, 0.75),
    "Ankle L": (0.10, 0.55, 0.50),
    "Foot L": (0.35, 0.72, 0.62),
    "Ankle R": (0.80, 0.52, 0.10),
    "Foot R": (0.93, 0.70, 0.30),
}


def contact_sheet(rig: bpy.types.Object, report: BakeReport, words: str) -> Picture:
    """The whole sheet.

    Args:
        rig: the baked armature object in the current scene, with the doll and the targets around it.
        report: of the bake.
        words: a line below the title.
    """
    rows: dict[int, list[Entry]] = {}
    for row in report.entries:
        rows.setdefault(row.frame, []).append(row)
    top = 106
    sheet = picture.blank(WIDTH, HEIGHT)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.text("CCD Rig", EDGE, HEIGHT - 62, 50)
    drawing.text("Rigify's human metarig walks, and reaches for a ball", EDGE + 205, HEIGHT - 46, 26)
    drawing.text(words, EDGE + 205, HEIGHT - 76, 20, FAINT)
    with picture.studio() as scene:
        picture.paste(sheet, _walk_picture(scene, rig), EDGE, top)
        picture.paste(sheet, _limit_picture(scene, rig), WIDTH - EDGE - LIMIT[0], top)
        tiles_top = top + WALK[1] + 56
        trail = _path(scene, rig)
        for i, frame in enumerate(REACH_FRAMES):
            left = EDGE + i * (TILE[0] + GAP)
            picture.paste(sheet, _tile(scene, rig, frame), round(left), tiles_top)
            _label_tile(drawing, rows[frame], frame, left, HEIGHT - tiles_top - TILE[1])
        bpy.data.objects.remove(trail)
    caption = HEIGHT - top - WALK[1] - 22
    frames = ", ".join(str(frame) for frame in WALK_FRAMES)
    drawing.text(f"Frames {frames}: feet stay where they are planted, knees bend forward", EDGE, caption, 19)
    left = WIDTH - EDGE - LIMIT[0]
    drawing.text("Swing limit of the right shoulder, and the elbow's way over 240 frames", left, caption, 19)
    _plot(drawing, report, EDGE, 40)
    picture.paste(sheet, drawing.render(), 0, 0)
    return sheet


# --- pictures of the figure ---------------------------------------------------------------------------------


def _walk_picture(scene: bpy.types.Scene, rig: bpy.types.Object) -> Picture:
    """Several frames of the walk in one picture, from the right side; the figure goes from left to right."""
    doll = next(child for child in rig.children if child.type == "MESH")
    balls = [bpy.data.objects[f"Target Hand {side}"] for side in "LR"]
    with ExitStack() as made:
        ways = []
        for frame in WALK_FRAMES:
            scene.frame_set(frame)
            ways.append(rig.pose.bones["spine"].head.y)
            for thing in (doll, *balls):
                made.callback(picture.remove_copy, picture.frozen_copy(scene, thing))
        for thing in (doll, *balls):
            thing.hide_render = True
            made.callback(setattr, thing, "hide_render", False)
        middle = Vector((0.0, (ways[0] + ways[-1]) / 2.0, 0.99))
        camera = scene.camera
        camera.data.type, camera.data.ortho_scale = "ORTHO", 4.7
        figure.look_at(camera, middle + Vector((-8.0, 0.0, 1.7)), middle)
        return picture.render(scene, *WALK)


def _path(scene: bpy.types.Scene, rig: bpy.types.Object) -> bpy.types.Object:
    """The ball's way once the figure stands."""
    target = bpy.data.objects["Target Hand R"]
    places = []
    for frame in range(walk.STAND, walk.FRAME_END + 1):
        scene.frame_set(frame)
        places.append(target.matrix_world.translation.copy())
    return figure.line("Way of the Ball", places, 0.006, (0.95, 0.62, 0.58))


def _tile(scene: bpy.types.Scene, rig: bpy.types.Object, frame: int) -> Picture:
    scene.frame_set(frame)
    camera = scene.camera
    camera.data.type, camera.data.lens, camera.data.sensor_fit = "PERSP", 66.0, "VERTICAL"
    ground = Vector((-0.16, walk.motion_end(), 0.0))
    at = ground + Vector((0.0, 0.0, 1.22))
    figure.look_at(camera, at + Vector((-2.6, -6.2, 0.9)), at)
    return picture.render(scene, *TILE)


def _limit_picture(scene: bpy.types.Scene, rig: bpy.types.Object) -> Picture:
    """The region in which the elbow may be, seen from the shoulder, and where it was."""
    bone = rig.pose.bones[LIMIT_BONE]
    turns = []
    for frame in range(scene.frame_start, scene.frame_end + 1):
        scene.frame_set(frame)
        turns.append(bone.rotation_quaternion.copy())
    scene.frame_set(LIMIT_FRAME)
    # From the bone's rest axes, as its parent carries them in this frame, to the world.
    rest = bone.parent.matrix @ bone.parent.bone.matrix_local.inverted() @ bone.bone.matrix_local
    to_world = rig.matrix_world @ Matrix.Translation(bone.head) @ rest.to_3x3().normalized().to_4x4()
    length = bone.length
    limit = bone.ccd_rig.limit
    with ExitStack() as made:
        region, border = _swing_region(limit, length)
        things = [region, figure.line("Border", border, 0.004, (0.05, 0.45, 0.42))]
        way = [length * 1.01 * (turn @ Vector((0.0, 1.0, 0.0))) for turn in turns]
        things.append(figure.line("Way of the Elbow", way, 0.005, figure.RED))
        here = figure.ball("Elbow", 0.018, figure.RED)
        things.append(here)
        for thing in things:
            thing.matrix_world = to_world
            made.callback(bpy.data.objects.remove, thing)
        here.matrix_world = to_world @ Matrix.Translation(way[LIMIT_FRAME - scene.frame_start])
        camera = scene.camera
        camera.data.type, camera.data.lens, camera.data.sensor_fit = "PERSP", 70.0, "AUTO"
        at = rig.matrix_world @ bone.head + Vector((-0.02, 0.0, 0.0))
        figure.look_at(camera, at + Vector((-1.35, -1.9, 0.75)), at)
        return picture.render(scene, *LIMIT)


def _swing_region(limit, length: float) -> tuple[bpy.types.Object, list[Vector]]:
    """The part of a sphere that the bone's tail may reach, and its border, in the bone's rest axes."""
    around, rings = 96, 24

    def at(angle: float, part: float) -> Vector:
        c, s = cos(angle), sin(angle)
        x = c * (limit.x_upper if c > 0.0 else -limit.x_lower)
        z = s * (limit.z_upper if s > 0.0 else -limit.z_lower)
        return length * (exp(Vector((part * x, 0.0, part * z))) @ Vector((0.0, 1.0, 0.0)))

    points = [at(2.0 * pi * j / around, i / rings) for i in range(rings + 1) for j in range(around)]
    faces = [
        (
            i * around + j,
            i * around + (j + 1) % around,
            (i + 1) * around + (j + 1) % around,
            (i + 1) * around + j,
        )
        for i in range(rings)
        for j in range(around)
    ]
    region = figure.mesh_object("Region", points, faces, ((0.10, 0.62, 0.58, 0.30),), [0] * len(faces))
    border = [at(2.0 * pi * j / around, 1.0) for j in range(around + 1)]
    return region, border


# --- words and curves ---------------------------------------------------------------------------------------


def _label_tile(drawing: Drawing, rows: Iterable[Entry], frame: int, left: float, bottom: float) -> None:
    missed = [row for row in rows if row.status != "CONVERGED"]
    colour = MISSED if missed else OK
    drawing.frame(left, bottom, *TILE, 4, colour)
    drawing.box(left, bottom - 30, TILE[0], 32, colour)
    white = (1.0, 1.0, 1.0)
    drawing.text(f"{frame}", left + 10, bottom - 20, 21, white)
    worst = max(missed, key=lambda row: row.residual, default=None)
    words = "all reached" if worst is None else f"{100 * worst.residual:.0f} cm out of reach"
    drawing.text(words, left + TILE[0] - 10, bottom - 20, 18, white, "RIGHT")


def _plot(drawing: Drawing, report: BakeReport, left: float, bottom: float) -> None:
    """Distance of each constraint from its target over frames, on a logarithmic scale."""
    decades = (-8, 0)  # metres, powers of ten
    x0, width = left + 74, WIDTH - 2 * EDGE - 74 - 130
    count = report.frame_end - report.frame_start

    def x(frame: float) -> float:
        return x0 + width * (frame - report.frame_start) / count

    def y(distance: float) -> float:
        power = np.log10(max(distance, 10.0 ** decades[0]))
        return bottom + PLOT_HEIGHT * (power - decades[0]) / (decades[1] - decades[0])

    drawing.box(x0, bottom, width, PLOT_HEIGHT, (1.0, 1.0, 1.0))
    for frame in {row.frame for row in report.unsolved()}:
        drawing.box(x(frame - 0.5), bottom, x(frame + 0.5) - x(frame - 0.5), PLOT_HEIGHT, (0.98, 0.89, 0.88))
    for power, words in ((-8, "10 nm"), (-6, "1 µm"), (-4, "0.1 mm"), (-2, "1 cm"), (0, "1 m")):
        drawing.line([(x0, y(10.0**power)), (x0 + width, y(10.0**power))], 1, GRID)
        drawing.text(words, x0 - 8, y(10.0**power) - 6, 16, FAINT, "RIGHT")
    for frame in (1, *range(20, report.frame_end + 1, 20)):
        drawing.line([(x(frame), bottom), (x(frame), bottom - 5)], 1, FAINT)
        drawing.text(str(frame), x(frame), bottom - 22, 16, FAINT, "CENTER")
    for frame in REACH_FRAMES:
        drawing.line([(x(frame), bottom), (x(frame), bottom + PLOT_HEIGHT)], 1, (0.78, 0.80, 0.83))
    level = y(report.tolerance)
    for start in np.arange(x0, x0 + width, 14.0):
        drawing.line([(start, level), (min(start + 8, x0 + width), level)], 1.5, INK)
    drawing.text(f"tolerance {1000 * report.tolerance:g} mm", x0 + 8, level + 6, 16)
    for i, name in enumerate(reversed(COLOURS)):  # the hand last: on top
        curve = [(x(row.frame), y(row.residual)) for row in report.entries if row.constraint == name]
        drawing.line(curve, 2, COLOURS[name])
        level = bottom + PLOT_HEIGHT - 14 - 29 * (len(COLOURS) - 1 - i)
        drawing.line([(x0 + width + 16, level + 5), (x0 + width + 42, level + 5)], 4, COLOURS[name])
        drawing.text(name, x0 + width + 50, level, 18)
    drawing.text("Distance from the target by frame", left, bottom + PLOT_HEIGHT + 16, 19)
