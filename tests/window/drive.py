"""What visits to a real Blender window share: its pointer and keyboard, the sidebar, photographs, and a rig.

A visit runs as Blender's --python script. The environment names CCD_RIG_ZIP, the package, and CCD_RIG_OUT,
where the photographs and result.json go. Each step writes what it saw into result.json; a test judges it.
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

PACKAGE = "bl_ext.user_default.ccd_rig"
TAB = "CCD Rig"
OUT = Path(os.environ["CCD_RIG_OUT"])
BONES, FRAMES = 8, 24
LONG_FRAMES = 500_000  # a bake that is still running when Esc comes, on fast machines too
BUTTON = 20  # [pixels] height of a button
REDRAW = 0.7  # [s] Blender draws, and software OpenGL is slow
PATIENCE = 60.0  # [s] for a bake
ROUNDS = 3  # of Blender's main loop until a pointer that leaves one button lights up the next

result: dict[str, object] = {"steps": {}}


def note(step: str, **seen: object) -> None:
    result["steps"][step] = seen
    (OUT / "result.json").write_text(json.dumps(result, indent=1))


def sh(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, timeout=30)


def photograph(name: str) -> None:
    """Blender's own screenshot is black under software OpenGL: take the screen's."""
    sh("import", "-window", "root", "-quality", 10, OUT / f"{name}.png")  # half the time, for a larger file


def view() -> tuple[bpy.types.Window, bpy.types.Area, bpy.types.Region]:
    """The window, its 3D view, and the view's sidebar."""
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    return window, area, next(region for region in area.regions if region.type == "UI")


def until(condition: Callable[[], object], patience: float, pause: float = 0.1) -> Iterator[float]:
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        yield pause


class PointerSeen(bpy.types.Operator):
    """Takes down where Blender has last seen the pointer, and passes every event on."""

    bl_idname = "wm.pointer_seen"
    bl_label = "Pointer Seen"
    place: tuple[int, int] | None = None  # [pixels] from the window's upper left corner
    ends = False

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        PointerSeen.place, PointerSeen.ends = None, False
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        PointerSeen.place = event.mouse_x, context.window.height - 1 - event.mouse_y
        return {"FINISHED", "PASS_THROUGH"} if self.ends else {"PASS_THROUGH"}


def buttons(
    wanted: str | tuple[str, ...],
    found: dict[str, tuple[int, int]],
    rows: tuple[int, int] | None = None,
    alone: bool = False,
) -> Iterator[float]:
    """Look for buttons in the sidebar, more patiently each time, until a command begins with each `wanted`.

    With `rows`, only between these heights of the screen and in the middle; what was found elsewhere stays.
    `alone`: not below them, once they are met.
    """
    beginnings = (wanted,) if isinstance(wanted, str) else wanted

    def are_met() -> bool:
        return all(any(name.startswith(each) for name in found) for each in beginnings)

    for pause in (0.0, 0.2, 0.6):
        if rows is None:
            found.clear()
        yield from sweep(found, pause, rows, are_met if alone else lambda: False)
        if are_met():
            return


def sweep(
    found: dict[str, tuple[int, int]],
    pause: float,
    rows: tuple[int, int] | None,
    ends: Callable[[], bool],
) -> Iterator[float]:
    """Move the pointer over the sidebar and ask Blender what lies below it: `found` gets command -> place.

    Each question waits until Blender has seen the pointer there, and `pause` seconds more. Both count y from
    the window's top. It `ends` before the last row where that comes true.
    """
    window, area, region = view()
    manager = bpy.context.window_manager
    columns = [region.x + region.width // 2 - 12, region.x + region.width - 40][: 2 if rows is None else 1]
    whole = window.height - region.y - region.height + 4, window.height - region.y
    heights = range(whole[0], whole[1], BUTTON - 4) if rows is None else range(*rows, BUTTON // 2 - 2)
    with bpy.context.temp_override(window=window):
        bpy.ops.wm.pointer_seen("INVOKE_DEFAULT")
    for place in ((x, y) for y in heights for x in columns):
        sh("xdotool", "mousemove", *place)
        yield from until(lambda place=place: PointerSeen.place == place, 5.0, 0.0)
        for _ in range(ROUNDS):
            yield 0.0
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
                found.setdefault(manager.clipboard, (place[0], place[1] + 2))
        if ends():
            break
    PointerSeen.ends = True
    sh("xdotool", "mousemove_relative", "--", 1, 0)
    yield from until(lambda: not window.modal_operators, 5.0)


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


def maximise() -> Iterator[float]:
    """Give the 3D view the whole window."""
    window, area, _ = view()
    with bpy.context.temp_override(window=window, area=area):
        bpy.ops.screen.screen_full_area()
    yield 2 * REDRAW


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

    bpy.utils.register_class(PointerSeen)
    preferences = bpy.context.preferences
    preferences.view.show_splash = False  # before the first redraw
    preferences.system.viewport_aa = "OFF"  # else software OpenGL draws each view eight times
    preferences.system.use_overlay_smooth_wire = False  # and the grid covers the view
    for screen in bpy.data.screens:
        for space in (area.spaces.active for area in screen.areas if area.type == "VIEW_3D"):
            space.overlay.show_floor = space.overlay.show_axis_x = space.overlay.show_axis_y = False
    preferences.use_preferences_save = False  # else quitting writes the user's preferences
    bpy.app.timers.register(step, first_interval=1.0)
