"""What a user does, done inside a real Blender window by the real pointer and keyboard of a virtual screen.

Runs as Blender's --python script. The environment names CCD_RIG_ZIP, the package, and CCD_RIG_OUT, where
the photographs and result.json go. Each step writes what it saw into result.json; test_window.py judges it.
Blender's exit code tells nothing, so a step that is missing from the file has failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import bpy
from mathutils import Vector

PACKAGE = "bl_ext.user_default.ccd_rig"
TAB = "CCD Rig"
OUT = Path(os.environ["CCD_RIG_OUT"])
BONES, FRAMES = 8, 24
LONG_FRAMES = 500_000  # a bake that is still running when Esc comes, on fast machines too
REDRAW = 0.7  # [s] Blender draws, and software OpenGL is slow
PATIENCE = 60.0  # [s] for a bake

result: dict[str, object] = {"steps": {}}


def note(step: str, **seen: object) -> None:
    result["steps"][step] = seen
    (OUT / "result.json").write_text(json.dumps(result, indent=1))


def sh(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, timeout=30)


def photograph(name: str) -> None:
    """Blender's own screenshot is black under software OpenGL: take the screen's."""
    sh("import", "-window", "root", OUT / f"{name}.png")


def view() -> tuple[bpy.types.Window, bpy.types.Area, bpy.types.Region]:
    """The window, its 3D view, and the view's sidebar."""
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    return window, area, next(region for region in area.regions if region.type == "UI")


def until(condition: Callable[[], object], patience: float) -> Iterator[float]:
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        yield 0.1


def buttons(wanted: str, found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """Look for buttons in the sidebar, more patiently each time, until one's command begins with `wanted`."""
    for pause in (0.06, 0.2, 0.6):
        found.clear()
        yield from sweep(found, pause)
        if any(name.startswith(wanted) for name in found):
            return


def sweep(found: dict[str, tuple[int, int]], pause: float, step: int = 8) -> Iterator[float]:
    """Move the pointer over the sidebar and ask Blender what lies below it: `found` gets command -> place.

    Blender counts y from the bottom, the screen from the top. It notices the pointer within `pause` seconds,
    unless the machine is busy.
    """
    window, area, region = view()
    manager = bpy.context.window_manager
    columns = (region.x + region.width // 2 - 12, region.x + region.width - 40)
    for y in range(window.height - region.y - region.height + 4, window.height - region.y, step):
        for x in columns:
            sh("xdotool", "mousemove", x, y)
            yield pause
            for operator, keywords in (
                (bpy.ops.ui.copy_python_command_button, {}),
                (bpy.ops.ui.copy_data_path_button, {"full_path": True}),
            ):
                manager.clipboard = ""
                with bpy.context.temp_override(window=window, area=area, region=region):
                    if operator.poll():
                        operator(**keywords)
                if manager.clipboard:
                    found.setdefault(manager.clipboard, (x, y + 2))


def click(found: dict[str, tuple[int, int]], command: str) -> Iterator[float]:
    """Click the button whose command begins with these words."""
    places = [place for name, place in found.items() if name.startswith(command)]
    if not places:
        raise LookupError(f"no button for {command} in the sidebar; found: {sorted(found)}")
    sh("xdotool", "mousemove", *places[0])
    yield 0.3
    sh("xdotool", "click", 1)
    yield REDRAW


def key(name: str) -> Iterator[float]:
    """Press a key while the pointer is over the middle of the 3D view."""
    window, area, _ = view()
    sh("xdotool", "mousemove", area.x + area.width // 3, window.height - area.y - area.height // 2)
    yield 0.3
    sh("xdotool", "key", name)
    yield REDRAW


def make_rig() -> bpy.types.Object:
    """A chain of bones along X, and a keyed target that is always within reach; the last bone is active."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, FRAMES
    target = bpy.data.objects.new("Target", None)
    scene.collection.objects.link(target)
    for frame, place in ((1, (3.0, 0.5, 1.0)), (FRAMES // 2, (1.5, -1.0, 2.5)), (FRAMES, (-1.0, 1.0, 2.0))):
        target.location = place
        target.keyframe_insert("location", frame=frame)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for i in range(BONES):
        bone = rig.data.edit_bones.new(f"Bone{i}")
        bone.head, bone.tail, bone.parent = (i * 0.5, 0, 0), (i * 0.5 + 0.5, 0, 0), parent
        bone.use_connect, parent = parent is not None, bone
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[f"Bone{BONES - 1}"]
    target.select_set(True)
    rig.select_set(True)
    return rig


def rig() -> bpy.types.Object:
    """Looked up by name: undo makes old references invalid."""
    return bpy.data.objects["Rig"]


def distance(frame: int) -> float:
    """Metres between the tail of the last bone and the target at a frame, as Blender evaluates them."""
    bpy.context.scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    armature = rig().evaluated_get(graph)
    tail = armature.matrix_world @ armature.pose.bones[f"Bone{BONES - 1}"].tail
    return (tail - bpy.data.objects["Target"].evaluated_get(graph).matrix_world.translation).length


def keyed() -> list[tuple[str, int, list[tuple[float, float]]]]:
    """(data path, component, keys) of every F-curve of the rig's action; empty without one."""
    data = rig().animation_data
    if data is None or data.action is None:
        return []
    curves = [
        c for layer in data.action.layers for s in layer.strips for b in s.channelbags for c in b.fcurves
    ]
    return [(c.data_path, c.array_index, [tuple(k.co) for k in c.keyframe_points]) for c in curves]


def install() -> None:
    done = bpy.ops.extensions.package_install_files(
        filepath=os.environ["CCD_RIG_ZIP"], repo="user_default", enable_on_install=True
    )
    enabled = PACKAGE in bpy.context.preferences.addons
    note("install", finished="FINISHED" in done, enabled=enabled, version=bpy.app.version_string)


def open_tab() -> Iterator[float]:
    _, area, region = view()
    area.spaces.active.show_region_ui = True
    yield REDRAW  # the sidebar gets its size at the next redraw, and only then takes a tab
    region.active_panel_category = TAB
    area.tag_redraw()
    yield REDRAW
    photograph("tab")
    note("tab", active=region.active_panel_category, width=region.width)


def run() -> Iterator[float]:
    install()
    make_rig()
    yield REDRAW
    yield from open_tab()

    found: dict[str, tuple[int, int]] = {}
    yield from buttons("bpy.ops.ccd_rig.constraint_add(", found)
    note("buttons_before", found=sorted(found))
    yield from click(found, "bpy.ops.ccd_rig.constraint_add(")
    yield from until(lambda: len(rig().ccd_rig.constraints), PATIENCE)
    yield REDRAW
    photograph("added")
    rows = rig().ccd_rig.constraints
    note("add", count=len(rows), tip=rows[0].tip, target=rows[0].target.name if rows[0].target else None)

    yield from buttons("bpy.ops.ccd_rig.bake(", found)
    note("buttons_after", found=sorted(found))
    yield from drag_live(found)
    before = [distance(frame) for frame in range(1, FRAMES + 1)]
    bpy.context.scene.frame_set(1)
    yield from click(found, "bpy.ops.ccd_rig.bake(")
    yield from until(keyed, PATIENCE)
    yield REDRAW
    photograph("baked")
    after = [distance(frame) for frame in range(1, FRAMES + 1)]
    note("bake", before=before, after=after, curves=[[path, i, len(keys)] for path, i, keys in keyed()])

    bpy.context.scene.frame_set(FRAMES // 2)
    yield REDRAW
    photograph("posed")

    # Esc in the middle of a long bake leaves every key as it was.
    before_keys = keyed()
    bpy.context.scene.frame_end = LONG_FRAMES
    yield REDRAW
    yield from click(found, "bpy.ops.ccd_rig.bake(")
    yield from until(lambda: bpy.context.window.modal_operators, PATIENCE)
    yield 10.0  # until the line about the bake before has faded, so that the progress shows
    photograph("baking")
    running = [operator.bl_idname for operator in bpy.context.window.modal_operators]
    yield from key("Escape")
    yield from until(lambda: not bpy.context.window.modal_operators, PATIENCE)
    left = [operator.bl_idname for operator in bpy.context.window.modal_operators]
    yield 2 * REDRAW
    photograph("cancelled")
    scenes = [scene.name for scene in bpy.data.scenes]  # the bake works in a scene of its own
    note("escape", running=running, left=left, keys_unchanged=keyed() == before_keys, scenes=scenes)
    bpy.context.scene.frame_end = FRAMES

    yield from key("ctrl+z")
    yield from until(lambda: not keyed(), PATIENCE)
    yield 2 * REDRAW
    photograph("undone")
    note("undo", curves=len(keyed()))


def drag_live(found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """Switch Live on, drag the target with G and the pointer, undo the drag, and switch Live off again."""
    # Blender tells nothing about buttons in a panel's header. This one stands above the list's plus.
    _, _, region = view()
    _, y = found["bpy.ops.ccd_rig.constraint_add()"]
    found["live"] = region.x + region.width - 90, y - 30
    yield from click(found, "live")
    note("live_on", on=rig().ccd_rig.live, off=shown_error())
    bpy.ops.object.mode_set(mode="OBJECT")
    target = bpy.data.objects["Target"]
    held = [tuple(bone.rotation_quaternion) for bone in rig().pose.bones]
    for thing in bpy.data.objects:
        thing.select_set(thing == target)
    bpy.context.view_layer.objects.active = target
    yield REDRAW
    place = tuple(target.location)
    yield from key("g")
    dragged = []
    for _ in range(6):
        sh("xdotool", "mousemove_relative", "--", -8, 4)
        yield 0.2
        dragged.append(shown_error())
    photograph("live_drag")
    moved = (bpy.data.objects["Target"].matrix_world.translation - Vector(place)).length
    sh("xdotool", "click", 1)
    yield 3 * REDRAW
    photograph("live_rest")
    kept = [tuple(bone.rotation_quaternion) for bone in rig().pose.bones] == held
    note(
        "live_drag", moved=moved, dragged=dragged, rest=shown_error(), channels_kept=kept, curves=len(keyed())
    )
    yield from key("ctrl+z")
    yield 2 * REDRAW
    back = (bpy.data.objects["Target"].location - Vector(place)).length
    note("live_undo", back=back, on=rig().ccd_rig.live, off=shown_error())
    yield from click(found, "live")
    bones = [bone for bone in rig().pose.bones if len(bone.constraints)]
    note("live_off", on=rig().ccd_rig.live, clamped=len(bones), off=shown_error())
    bpy.context.view_layer.objects.active = rig()
    rig().select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    yield REDRAW


def shown_error() -> float:
    """Metres between the tail of the last bone and the target, as the window shows them."""
    graph = bpy.context.evaluated_depsgraph_get()
    armature = rig().evaluated_get(graph)
    tail = armature.matrix_world @ armature.pose.bones[f"Bone{BONES - 1}"].tail
    return (tail - bpy.data.objects["Target"].evaluated_get(graph).matrix_world.translation).length


def start(work: Iterator[float]) -> None:
    """Go through a visit, which yields the seconds until its next step, then quit Blender."""

    def step() -> float | None:
        try:
            return next(work)
        except StopIteration:
            result["finished"] = True
        except Exception:  # whatever it was, it goes into the file for the tests to show
            result["error"] = traceback.format_exc()
            photograph("error")
        (OUT / "result.json").write_text(json.dumps(result, indent=1))
        bpy.ops.wm.quit_blender()
        return None

    preferences = bpy.context.preferences
    preferences.view.show_splash = False  # before the first redraw
    preferences.use_preferences_save = False  # else quitting writes the user's preferences
    bpy.app.timers.register(step, first_interval=1.0)


if __name__ == "__main__":
    start(run())
