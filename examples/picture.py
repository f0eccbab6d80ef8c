# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures as numpy arrays, from Blender's Workbench and to PNG, and flat drawings of text, lines and boxes.

A picture is (height, width, 4), sRGB and straight alpha, 0 to 1, the top row first. Flat drawings count
pixels from the bottom left, as Blender does.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import bpy
import figure
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

Picture = NDArray[np.float32]
Colour = tuple[float, float, float]
INK: Colour = (0.13, 0.15, 0.18)
PAPER: Colour = (0.965, 0.968, 0.972)
SAMPLES, FLAT_SAMPLES = "5", "16"  # of a pixel, as Workbench names them: of views, and of flat drawings
STEP = 3  # of 255: colours in a file are rounded to it, which makes it a third smaller


def render(scene: bpy.types.Scene, width: int, height: int) -> Picture:
    """What the scene's camera sees, by Workbench."""
    settings = scene.render
    settings.engine = "BLENDER_WORKBENCH"
    settings.resolution_x, settings.resolution_y, settings.resolution_percentage = width, height, 100
    settings.image_settings.file_format, settings.image_settings.color_mode = "PNG", "RGBA"
    settings.image_settings.color_depth, settings.image_settings.compression = "8", 10
    scene.view_settings.view_transform, scene.view_settings.look = "Standard", "None"
    settings.dither_intensity = 0.0  # its noise would not compress
    with tempfile.TemporaryDirectory() as folder:
        settings.filepath = str(Path(folder) / "render.png")
        with quiet():
            bpy.ops.render.render(write_still=True, scene=scene.name)
        image = bpy.data.images.load(settings.filepath)
        pixels = np.empty(width * height * 4, dtype=np.float32)
        image.pixels.foreach_get(pixels)
        bpy.data.images.remove(image)
        settings.filepath = ""
    return pixels.reshape(height, width, 4)[::-1]


@contextlib.contextmanager
def studio() -> Iterator[bpy.types.Scene]:
    """Floor, camera and light in the current scene, for as long as pictures are taken."""
    scene = bpy.context.scene
    with contextlib.ExitStack() as made:
        floor = figure.floor(12.0, 0.5)
        floor.location.z = -0.002
        made.callback(bpy.data.objects.remove, floor)
        camera = bpy.data.objects.new("Studio", bpy.data.cameras.new("Studio"))
        scene.collection.objects.link(camera)
        made.callback(bpy.data.objects.remove, camera)
        scene.camera = camera
        scene.world = bpy.data.worlds.new("Studio")
        scene.world.color = figure.linear((0.80, 0.83, 0.87))
        shading = scene.display.shading
        shading.light, shading.color_type, shading.studio_light = "STUDIO", "MATERIAL", "paint.sl"
        shading.show_shadows, shading.shadow_intensity = True, 0.35
        shading.show_cavity, shading.cavity_type = True, "SCREEN"
        scene.view_settings.exposure = 0.35
        scene.display.light_direction = Vector((-0.35, -0.45, 0.82)).normalized()
        scene.display.render_aa = SAMPLES
        yield scene


def frozen_copy(scene: bpy.types.Scene, thing: bpy.types.Object) -> bpy.types.Object:
    """A mesh object that stays as a thing is at the present frame."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    evaluated = thing.evaluated_get(depsgraph)
    copy = bpy.data.objects.new("Copy", bpy.data.meshes.new_from_object(evaluated))
    copy.matrix_world = evaluated.matrix_world.copy()
    scene.collection.objects.link(copy)
    return copy


def remove_copy(copy: bpy.types.Object) -> None:
    """Remove such an object and its mesh."""
    mesh = copy.data
    bpy.data.objects.remove(copy)
    bpy.data.meshes.remove(mesh)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back what Blender itself prints past Python's streams; failures reach us as exceptions."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for stream, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, stream)
                os.close(copy)


def blank(width: int, height: int, colour: Colour = PAPER) -> Picture:
    """A picture of one colour."""
    return np.broadcast_to(np.array((*colour, 1.0), dtype=np.float32), (height, width, 4)).copy()


def paste(picture: Picture, part: Picture, left: int, top: int) -> None:
    """Lay a part over the picture, by its alpha."""
    height, width = part.shape[:2]
    under = picture[top : top + height, left : left + width]
    alpha = part[..., 3:]
    under[..., :3] = under[..., :3] * (1.0 - alpha) + part[..., :3] * alpha


def save_png(picture: Picture, path: Path) -> None:
    """Write as 8 bit RGB. Each row is stored as the difference to what leaves least: nothing, left, above or
    Paeth's guess (PNG specification, section 9)."""
    levels = np.rint(picture[..., :3] * (255.0 / STEP)) * STEP
    pixels = np.clip(levels, 0, 255).astype(np.uint8)
    height, width = pixels.shape[:2]
    rows = pixels.reshape(height, width * 3)
    left, above, corner = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    left[:, 3:], above[1:], corner[1:, 3:] = rows[:, :-3], rows[:-1], rows[:-1, :-3]
    choices = np.stack((rows, rows - left, rows - above, rows - _paeth(left, above, corner)))  # modulo 256
    kinds = np.array((0, 1, 2, 4), dtype=np.uint8)  # PNG's numbers of these filters
    costs = np.abs(choices.astype(np.int8).astype(np.int32)).sum(axis=2)
    best = costs.argmin(axis=0)
    lines = np.concatenate((kinds[best][:, None], choices[best, np.arange(height)]), axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def _paeth(left: NDArray[np.uint8], above: NDArray[np.uint8], corner: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Of the three neighbours the one nearest to left + above - corner."""
    a, b, c = (part.astype(np.int16) for part in (left, above, corner))
    to_a, to_b, to_c = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    return np.where((to_a <= to_b) & (to_a <= to_c), left, np.where(to_b <= to_c, above, corner))


class Drawing:
    """A flat scene of `width` by `height` pixels; y counts upwards."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.scene = bpy.data.scenes.new("Drawing")
        camera = bpy.data.cameras.new("Drawing")
        camera.type, camera.ortho_scale, camera.clip_end = "ORTHO", max(width, height), 1000.0
        eye = bpy.data.objects.new("Drawing", camera)
        eye.location = (width / 2, height / 2, 500.0)
        self.scene.collection.objects.link(eye)
        self.scene.camera = eye
        self.scene.render.film_transparent = True
        shading = self.scene.display.shading
        shading.light, shading.color_type = "FLAT", "MATERIAL"
        self.scene.display.render_aa = FLAT_SAMPLES
        self._layer = 0

    def text(
        self, words: str, x: float, y: float, size: float, colour: Colour = INK, align: str = "LEFT"
    ) -> None:
        """One line of text with its baseline at y; size: of the em, pixels."""
        curve = bpy.data.curves.new("Text", "FONT")
        curve.body, curve.size, curve.align_x = words, size, align
        curve.materials.append(figure.material(colour))
        self._add(curve, x, y)

    def box(self, left: float, bottom: float, width: float, height: float, colour: tuple[float, ...]) -> None:
        """A filled rectangle."""
        self._faces(
            [
                (left, bottom),
                (left + width, bottom),
                (left + width, bottom + height),
                (left, bottom + height),
            ],
            colour,
        )

    def frame(
        self, left: float, bottom: float, width: float, height: float, line: float, colour: Colour
    ) -> None:
        """An empty rectangle; its line lies inside."""
        self.box(left, bottom, width, line, colour)
        self.box(left, bottom + height - line, width, line, colour)
        self.box(left, bottom, line, height, colour)
        self.box(left + width - line, bottom, line, height, colour)

    def line(self, points: Sequence[tuple[float, float]], width: float, colour: tuple[float, ...]) -> None:
        """An open line through points."""
        corners: list[tuple[float, float]] = []
        for (x0, y0), (x1, y1) in pairwise(points):
            along = Vector((x1 - x0, y1 - y0))
            if along.length == 0.0:
                continue
            along *= 0.5 * width / along.length
            x0, y0, x1, y1 = x0 - along.x / 2, y0 - along.y / 2, x1 + along.x / 2, y1 + along.y / 2
            corners += [
                (x0 + along.y, y0 - along.x),
                (x1 + along.y, y1 - along.x),
                (x1 - along.y, y1 + along.x),
                (x0 - along.y, y0 + along.x),
            ]
        self._faces(corners, colour)

    def render(self) -> Picture:
        """The drawing on transparent ground; the scene is removed."""
        result = render(self.scene, self.width, self.height)
        for thing in list(self.scene.collection.objects):
            bpy.data.objects.remove(thing)
        bpy.data.scenes.remove(self.scene)
        return result

    def _faces(self, corners: list[tuple[float, float]], colour: tuple[float, ...]) -> None:
        mesh = bpy.data.meshes.new("Shape")
        mesh.from_pydata(
            [(x, y, 0.0) for x, y in corners],
            [],
            [(i, i + 1, i + 2, i + 3) for i in range(0, len(corners), 4)],
        )
        mesh.materials.append(figure.material(colour))
        self._add(mesh, 0.0, 0.0)

    def _add(self, data: bpy.types.ID, x: float, y: float) -> None:
        self._layer += 1  # what is drawn later lies on top
        thing = bpy.data.objects.new(data.name, data)
        thing.location = (x, y, 0.01 * self._layer)
        self.scene.collection.objects.link(thing)
