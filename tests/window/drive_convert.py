"""Constraints from elsewhere: Blender's IK converted and restored, set-ups kept in files and in metarigs.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import (
    PATIENCE,
    REDRAW,
    buttons,
    install,
    key,
    note,
    open_tab,
    photograph,
    sh,
    start,
    until,
    view,
)
from drive_figures import button, frame_view, press
from drive_menus import choose_for_rig
from drive_rigs import FRAMES, armature, empty_scene, generated, metarig

LINE = 21  # [pixels] between the buttons beside the list of constraints
FROM_RIGHT_EDGE = 40  # [pixels] where these buttons are
WAIT = 20.0  # [s] for what a click or key does
SHOWN = 8  # the frame of the photographs
FILE = Path.home() / "setup.json"  # where the file browser opens
LIMITED = {"forearm_fk.L": 1.0, "shin_fk.R": 2.0}  # bone -> where its hinge ends, radians


# --- Blender's IK -------------------------------------------------------------------------------------------


def creature() -> bpy.types.Object:
    """A leg under IK with a pole, an eye under Damped Track, a tail under Spline IK; all targets move."""
    tail = [Vector((0.0, 0.1 + 0.12 * i, 1.0 + 0.05 * math.sin(i))) for i in range(10)]
    bones = [
        ("hips", Vector((0, 0, 1.0)), Vector((0, 0, 1.3)), ""),
        ("thigh", Vector((0.1, 0, 1.0)), Vector((0.1, -0.06, 0.52)), "hips"),
        ("shin", Vector((0.1, -0.06, 0.52)), Vector((0.1, 0, 0.08)), "thigh"),
        ("foot", Vector((0.1, 0, 0.08)), Vector((0.1, -0.18, 0)), "shin"),
        ("head", Vector((0, 0, 1.3)), Vector((0, 0, 1.6)), "hips"),
        ("eye", Vector((0, -0.08, 1.5)), Vector((0, -0.28, 1.5)), "head"),
    ]
    bones += [
        (f"tail.{i}", tail[i], tail[i + 1], f"tail.{i - 1}" if i else "hips") for i in range(len(tail) - 1)
    ]
    rig = armature("Creature", bones)
    ik = rig.pose.bones["shin"].constraints.new("IK")
    ik.target = moved("Step", (0.1, 0.0, 0.08), (0.1, -0.35, 0.3), (0.15, -0.15, 0.14))
    ik.chain_count, ik.pole_angle = 2, -math.pi / 2
    ik.pole_target = moved("Knee", (0.1, -1.0, 0.6), (0.3, -1.0, 0.7))
    track = rig.pose.bones["eye"].constraints.new("DAMPED_TRACK")
    track.target = moved("Seen", (-0.5, -1.0, 1.3), (0.5, -1.0, 1.9))
    spline = rig.pose.bones[f"tail.{len(tail) - 2}"].constraints.new("SPLINE_IK")
    spline.target, spline.chain_count = curve(tail), len(tail) - 1
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    return rig


def moved(name: str, *places: tuple[float, float, float]) -> bpy.types.Object:
    """An empty that goes from place to place over the scene's frames."""
    empty = bpy.data.objects.new(name, None)
    empty.empty_display_size = 0.08
    bpy.context.scene.collection.objects.link(empty)
    for k, place in enumerate(places):
        empty.location = place
        empty.keyframe_insert("location", frame=1 + k * (FRAMES - 1) / (len(places) - 1))
    return empty


def curve(points: list[Vector]) -> bpy.types.Object:
    """A curve through these points that swings about the first one."""
    data = bpy.data.curves.new("Path", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("BEZIER")
    chosen = points[:: (len(points) - 1) // 3]
    spline.bezier_points.add(len(chosen) - 1)
    for point, place in zip(spline.bezier_points, chosen, strict=True):
        point.co, point.handle_left_type, point.handle_right_type = place - points[0], "AUTO", "AUTO"
    made = bpy.data.objects.new("Path", data)
    made.location = points[0]
    bpy.context.scene.collection.objects.link(made)
    for frame, angle in ((1, -0.4), (FRAMES, 0.5)):
        made.rotation_euler = (0.3 * angle, 0.0, angle)
        made.keyframe_insert("rotation_euler", frame=frame)
    return made


def shown() -> list[list[float]]:
    """At each frame, in metres, the knee, the ankle, the tip of the eye and places along the tail."""
    found = []
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        posed = creature_now().evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        tails = [posed[name].tail for name in ("thigh", "shin", "eye", "tail.2", "tail.5", "tail.8")]
        found.append([value for tail in tails for value in tail])
    bpy.context.scene.frame_set(SHOWN)
    return found


def creature_now() -> bpy.types.Object:
    return bpy.data.objects["Creature"]


def state() -> dict[str, object]:
    """Rows as (name, bone, chain length, target, pole), and which of Blender's constraints are muted."""
    rig = creature_now()
    rows = [
        [row.name, row.tip, row.chain_length, row.target.name, getattr(row.pole_target, "name", "")]
        for row in rig.ccd_rig.constraints
    ]
    muted = {each.name: each.mute for bone in rig.pose.bones for each in bone.constraints}
    return {"rows": rows, "muted": muted, "objects": sorted(each.name for each in bpy.data.objects)}


def convert_and_restore() -> Iterator[float]:
    empty_scene()
    frame_view(creature())
    bpy.context.scene.frame_set(SHOWN)
    bpy.ops.ed.undo_push(message="Creature")
    yield REDRAW
    note("blender_ik", shown=shown(), **state())
    yield from button("bpy.ops.ccd_rig.ik_convert(", (150, 230))
    yield from until(lambda: len(creature_now().ccd_rig.constraints), WAIT)
    yield REDRAW
    photograph("converted")
    note("converted", **state())
    yield from key("ctrl+z")
    note("undone", **state())
    yield from key("ctrl+shift+z")
    note("redone", **state())
    yield from button("bpy.ops.ccd_rig.bake(", (30, 90))
    yield from until(lambda: creature_now().ccd_rig.report.words, PATIENCE)
    yield 2 * REDRAW
    note("baked", shown=shown(), words=creature_now().ccd_rig.report.words, **state())
    yield REDRAW
    photograph("baked")
    yield from list_menu("Creature")
    yield from keys("Home", "Down", "Down", "Return")
    yield from until(lambda: not len(creature_now().ccd_rig.constraints), WAIT)
    yield REDRAW
    photograph("restored")
    note("restored", shown=shown(), **state())
    yield from key("ctrl+z")
    note("restore_undone", **state())


def list_menu(rig: str) -> Iterator[float]:
    """Click the arrow beside the list of constraints: two buttons below the plus, beside the first line."""
    found: dict[str, tuple[int, int]] = {}
    window, _, region = view()
    top = window.height - region.y - region.height
    line = f'bpy.data.objects["{rig}"].ccd_rig.'
    yield from buttons(line, found, (top + 250, top + 330))
    height = min(place[1] for name, place in found.items() if name.startswith(line))
    yield from press(region.x + region.width - FROM_RIGHT_EDGE, height + 2 * LINE)


def keys(*names: str) -> Iterator[float]:
    """Press keys where the pointer is."""
    for name in names:
        sh("xdotool", "key", name)
        yield 0.3
    yield REDRAW


# --- set-ups in files ---------------------------------------------------------------------------------------


def generate(source: bpy.types.Object) -> None:
    """Rigify generates its rig, or generates it anew; it is in Pose Mode then, with an active bone."""
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    source.hide_set(False)
    rig = generated(source)
    source.hide_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["forearm_fk.L"]
    bpy.ops.ed.undo_push(message="Generated")


def figure() -> bpy.types.Object:
    return bpy.data.objects["basic_human"].data.rigify_target_rig


def has_rows() -> bool:
    return len(figure().ccd_rig.constraints) > 0


def kept() -> dict[str, object]:
    """What the generated rig has: constraints with bone and target, and where the hinges of bones end."""
    limits = {name: figure().pose.bones[name].ccd_rig.limit for name in LIMITED}
    return {
        "rows": {row.name: [row.tip, row.target.name] for row in figure().ccd_rig.constraints},
        "limits": {name: limit.hinge_upper for name, limit in limits.items() if limit.kind == "HINGE"},
    }


def in_browser(name: str) -> Iterator[float]:
    """Write the file's name into the field of the file browser, a window of its own, and confirm it."""
    yield 2 * REDRAW
    window = bpy.context.window_manager.windows[-1]
    area = next(area for area in window.screen.areas if area.type == "FILE_BROWSER")
    field = next(region for region in area.regions if region.type == "EXECUTE")
    height = bpy.context.window_manager.windows[0].height
    yield from press(window.x + field.x + 200, height - window.y - field.y - field.height // 2)
    yield from keys("ctrl+a")
    sh("xdotool", "type", FILE.name)
    yield 0.5
    photograph(f"{name}_browser")
    yield from keys("Return")  # the field has it
    sh("xdotool", "mousemove", window.x + area.width // 2, height - window.y - area.height // 2)
    yield 0.3
    yield from keys("Return")  # and the browser
    yield REDRAW


def set_up_files() -> Iterator[float]:
    empty_scene()
    source = metarig("Basic.basic_human")
    generate(source)
    frame_view(figure())
    yield REDRAW
    yield from button("bpy.ops.ccd_rig.figure_set_up(", (130, 190))
    yield from until(has_rows, WAIT)
    for name, upper in LIMITED.items():
        limit = figure().pose.bones[name].ccd_rig.limit
        limit.kind, limit.hinge_upper = "HINGE", upper
    bpy.ops.ed.undo_push(message="Limits")
    yield REDRAW
    photograph("set_up")
    note("set_up", **kept())
    yield from choose_for_rig("Save Set-Up of Rig...")
    yield from in_browser("save")
    yield from until(FILE.is_file, WAIT)
    held = json.loads(FILE.read_text())
    note("saved", bones=list(held["bones"]), rows=[row["name"] for row in held["constraints"]])
    generate(source)
    yield REDRAW
    note("generated_again", **kept())
    bpy.data.objects.remove(figure())
    generate(source)
    yield 2 * REDRAW
    note("generated_anew", **kept())
    yield from choose_for_rig("ccd_rig.setup_restore")
    yield from until(has_rows, WAIT)
    note("restored_set_up", **kept())
    yield from key("ctrl+z")
    yield from until(lambda: not has_rows(), WAIT)
    yield REDRAW
    note("restore_set_up_undone", **kept())
    yield from choose_for_rig("Load Set-Up of Rig...")
    yield from in_browser("load")
    yield from until(has_rows, WAIT)
    yield 2 * REDRAW
    photograph("loaded")
    note("loaded", **kept())
    yield from button("bpy.ops.ccd_rig.bake(", (30, 90))
    yield from until(lambda: figure().ccd_rig.report.words, PATIENCE)
    note("set_up_baked", words=figure().ccd_rig.report.words)


def run() -> Iterator[float]:
    install()
    yield REDRAW
    yield from open_tab()
    yield from convert_and_restore()
    yield from set_up_files()


if __name__ == "__main__":
    start(run())
