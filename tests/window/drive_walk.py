"""A cycle along a curve over hills and up stairs, by the panel Walk Along: curve, ground, twice, undo.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Quaternion

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PATIENCE, REDRAW, buttons, install, key, note, open_tab, photograph, sh, start, until, view
from drive_figures import press
from drive_retarget import LAST, capture
from drive_rigs import empty_scene, metarig

HEADER = 60  # [pixels] from the button Set Up Figure to the header Retarget
NEXT = 27  # [pixels] from that header to the next
WALK = "bpy.ops.ccd_rig.walk_along("
GROUP, GROUND = (f'bpy.data.objects["Hero"].ccd_rig.{name}.' for name in ("walk", "ground"))
SIDE, ABOVE = Quaternion((0.5, 0.5, 0.5, 0.5)), Quaternion((1.0, 0.0, 0.0, 0.0))
OBLIQUE = Quaternion((0.74, 0.48, 0.27, 0.4)).normalized()
RISE, TREAD, STAIRS, FIRST = 0.17, 0.32, 5, -5.0  # [m] the stairs, and where they begin
END = -9.0

places: dict[str, tuple[int, int]] = {}


def hero() -> bpy.types.Object:
    return bpy.data.objects["Hero"]


def height(x: float, y: float) -> float:
    """Waves, then stairs along -Y."""
    wave = 0.16 * math.sin(1.6 * y) * min(1.0, max(0.0, (y - FIRST - 0.4) / 1.5))
    stairs = 0 if y > FIRST else min(STAIRS, 1 + math.floor((FIRST - y) / TREAD))
    return wave + 0.08 * x * min(1.0, max(0.0, (y - FIRST - 0.4) / 1.5)) + RISE * stairs


def terrain() -> bpy.types.Object:
    """A mesh with its own edge for each stair."""
    edges = [FIRST - TREAD * k for k in range(STAIRS)]
    lines = [3.0 - 0.1 * k for k in range(131)]
    lines = sorted({*lines, *edges, *(edge + 1e-4 for edge in edges)}, reverse=True)
    sides = [-2.0, -1.0, 0.0, 1.0, 2.0]
    vertices = [(x, y, height(x, y - 5e-5 if y in edges else y)) for y in lines for x in sides]
    wide = len(sides)
    faces = [
        (i * wide + j, i * wide + j + 1, (i + 1) * wide + j + 1, (i + 1) * wide + j)
        for i in range(len(lines) - 1)
        for j in range(wide - 1)
    ]
    data = bpy.data.meshes.new("Terrain")
    data.from_pydata(vertices, [], faces)
    made = bpy.data.objects.new("Terrain", data)
    bpy.context.scene.collection.objects.link(made)
    return made


def path() -> bpy.types.Object:
    data = bpy.data.curves.new("Path", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("POLY")
    count = 40
    spline.points.add(count)
    for k, point in enumerate(spline.points):
        y = END * k / count
        bend = math.sin(math.pi * min(1.0, y / FIRST)) if y > FIRST else 0.0
        point.co = (0.6 * bend, y, 0.02, 1.0)
    made = bpy.data.objects.new("Path", data)
    bpy.context.scene.collection.objects.link(made)
    return made


def look(rotation: Quaternion, place: tuple[float, float, float], distance: float) -> Iterator[float]:
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_perspective, seen.view_rotation = "ORTHO", rotation
    seen.view_location, seen.view_distance = place, distance
    area.tag_redraw()
    yield 2 * REDRAW


def prepare() -> None:
    """Rigify's basic human with a walk of a capture, a curve and a ground; the human is active."""
    empty_scene()
    bpy.context.scene.frame_end = LAST
    source = capture()
    rig = metarig("Basic.basic_human")
    rig.name = "Hero"
    bpy.context.view_layer.objects.active = rig
    source.select_set(False)
    rig.select_set(True)
    chosen = rig.ccd_rig.retarget
    chosen.source, chosen.reference = source, "FRAME"
    bpy.ops.ccd_rig.retarget()
    rig.animation_data.action.name = "Walk"
    bpy.data.objects.remove(source)
    terrain()
    path()
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    bpy.ops.ed.undo_push(message="Prepared")


def find(wanted: str, low: int, high: int) -> Iterator[float]:
    yield from buttons(wanted, places, (low, high))
    if not any(name.startswith(wanted) for name in places):
        raise LookupError(f"no {wanted} in the sidebar; found: {sorted(places)}")


def place(name: str) -> tuple[int, int]:
    return next(each for found, each in places.items() if found.startswith(name))


def keys(*names: str) -> Iterator[float]:
    for name in names:
        sh("xdotool", "key", name)
        yield 0.3
    yield REDRAW


def choose(name: str, words: str) -> Iterator[float]:
    """Pick an object in a field of the panel by typing its name."""
    yield from press(*place(name))
    sh("xdotool", "type", words)
    yield from keys("Return")


def state() -> dict[str, object]:
    data = hero().animation_data
    group = hero().ccd_rig.walk
    return {
        "action": data.action.name if data and data.action else "",
        "actions": sorted(action.name for action in bpy.data.actions),
        "cycle": group.cycle.name if group.cycle else "",
        "report": group.report.split("\n"),
    }


def soles() -> list[float]:
    """Height of both balls above the ground in each fourth frame of the walk."""
    first, last = hero().animation_data.action.frame_range
    found = []
    for frame in range(int(first), int(last) + 1, 4):
        bpy.context.scene.frame_set(frame)
        posed = hero().evaluated_get(bpy.context.evaluated_depsgraph_get())
        for side in "LR":
            ball = posed.matrix_world @ posed.pose.bones[f"toe.{side}"].head
            found.append(ball.z - height(ball.x, ball.y))
    return found


def set_up() -> Iterator[float]:
    """Unfold the panel and choose curve and ground."""
    window, _, region = view()
    top = window.height - region.y - region.height
    yield from find("bpy.ops.ccd_rig.figure_set_up(", top + 130, top + 190)
    header = place("bpy.ops.ccd_rig.figure_set_up(")[1] + HEADER + NEXT
    yield from press(region.x + 60, header)
    yield 2 * REDRAW
    photograph("panel")
    yield from find(WALK, header + 18, header + 220)
    yield from choose(f"{GROUP}curve", "Path")
    yield from press(*place(f"{GROUND}kind"))
    yield from keys("Down", "Down", "Down", "Return")
    note("kind", kind=hero().ccd_rig.ground.kind)
    places.clear()
    yield from find(WALK, header + 18, header + 240)
    yield from choose(f"{GROUND}object", "Terr")
    group = hero().ccd_rig
    note(
        "chosen",
        curve=group.walk.curve.name if group.walk.curve else "",
        ground=group.ground.object.name if group.ground.object else "",
    )
    photograph("chosen")


def walk() -> Iterator[float]:
    """Press the button, look at the figure from all sides, and press again with another setting."""
    yield from press(*place(WALK))
    yield from until(lambda: hero().ccd_rig.walk.report, PATIENCE)
    yield 2 * REDRAW
    note("walked", soles=soles(), **state())
    first, last = hero().animation_data.action.frame_range
    for k in range(6):
        bpy.context.scene.frame_set(round(first + (k + 1) * (last - first) / 7.0))
        y = hero().pose.bones["spine"].head.y
        yield from look(SIDE, (0.0, y, 0.9), 3.0)
        photograph(f"side_{k}")
    bpy.context.scene.frame_set(round(0.5 * (first + last)))
    yield from look(OBLIQUE, (0.0, -4.0, 0.6), 11.0)
    photograph("walked")
    yield from look(ABOVE, (0.0, -4.0, 0.6), 11.0)
    photograph("above")
    hero().ccd_rig.walk.stands = "REST"
    hero().ccd_rig.walk.report = ""
    yield from look(OBLIQUE, (0.0, 0.0, 0.6), 5.0)
    yield from press(*place(WALK))
    yield from until(lambda: hero().ccd_rig.walk.report, PATIENCE)
    bpy.context.scene.frame_set(1)
    yield 2 * REDRAW
    photograph("stands")
    note("again", **state())
    bpy.context.preferences.view.language = "de_DE"
    yield 3 * REDRAW
    photograph("german")
    bpy.context.preferences.view.language = "en_US"
    yield from key("ctrl+z")
    note("undone", **state())


def escape() -> Iterator[float]:
    """Press the button over a moving ground of so many faces that it takes seconds, and Esc meanwhile."""
    ground, group = bpy.data.objects["Terrain"], hero().ccd_rig.walk
    fine = ground.modifiers.new("Fine", "SUBSURF")
    fine.subdivision_type, fine.levels = "SIMPLE", 5
    for frame, lift in ((1, 0.0), (LAST, 0.1)):
        ground.location.z = lift
        ground.keyframe_insert("location", frame=frame)
    bpy.ops.ed.undo_push(message="Ground")
    yield 2 * REDRAW
    before, stored, poses = state(), group.report, played()
    window, _, _ = view()
    yield from press(*place(WALK))
    yield 1.5
    running = bool(window.modal_operators)
    photograph("walking")
    pressed = time.monotonic()
    sh("xdotool", "key", "Escape")
    yield from until(lambda: not window.modal_operators, PATIENCE)
    note(
        "escaped",
        running=running,
        delay=time.monotonic() - pressed,
        same=(state(), hero().ccd_rig.walk.report, played()) == (before, stored, poses),
        scenes=len(bpy.data.scenes),
    )


def played() -> list[list[float]]:
    """The rows of the hips' matrix in each tenth frame; the frame of the scene stays."""
    scene, poses = bpy.context.scene, []
    current = scene.frame_current
    for frame in range(1, LAST, 10):
        scene.frame_set(frame)
        poses.extend([list(row) for row in hero().pose.bones["spine"].matrix])
    scene.frame_set(current)
    return poses


def run() -> Iterator[float]:
    install()
    prepare()
    yield REDRAW
    yield from open_tab()
    yield from set_up()
    yield from walk()
    yield from escape()


if __name__ == "__main__":
    start(run())
