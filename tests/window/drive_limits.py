"""Limits without numbers: each entry of the menu in the sidebar, chosen by pointer and keys.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PACKAGE, install, note, open_tab, photograph, sh, start, until, view
from drive_limit_figure import (
    FINGER,
    RIG,
    TAIL,
    arrow,
    bend,
    clear,
    find_arrow,
    held,
    hinge,
    make_figure,
    menu,
    posed,
    select,
)
from drive_menus import DRAWN, PATIENCE, choose_for_rig, done, keys, last_done, pause, point_at, write

PRESETS = {"HUMAN": 0, "QUADRUPED": 1, "SPINE": 2, "TAIL": 3, "FINGER": 4}
MARGIN, NAME, TITLE = 118, 4, -36  # [pixels] below the arrow: rows of the dialogs that open there


def from_pose() -> Iterator[float]:
    hinge("shin.L", "shin.R")
    bend("shin.L", 100.0)
    bend("shin.R", 60.0)
    yield from select("shin.R", "shin.L")
    yield from menu("Max from Pose")
    note("max", **held("shin.L", "shin.R"))
    bend("shin.L", -10.0)
    bend("shin.R", 15.0)
    yield DRAWN
    yield from menu("Min from Pose")
    note("min", **held("shin.L", "shin.R"))
    sh("xdotool", "mousemove", 500, 700)
    yield 0.2
    keys("ctrl+z")
    yield from until(lambda: posed("shin.R").ccd_rig.limit.hinge_lower < 0.1, PATIENCE)
    note("undo", **held("shin.L", "shin.R"))


def from_action() -> Iterator[float]:
    """The knee moves; a margin is typed into the dialog."""
    for frame, degrees in ((1, 3.0), (10, 78.0), (20, 20.0)):
        bend("shin.L", degrees)
        posed("shin.L").keyframe_insert("rotation_quaternion", frame=frame)
    yield from select("shin.L")
    yield from menu("From Action...", ends=False)
    yield from until_below_pointer(MARGIN, "5")
    sh("xdotool", "click", "--repeat", 2, "--delay", 80, 1)
    yield 0.3
    keys("ctrl+a")
    write("10")
    keys("Return")
    yield DRAWN
    photograph("action_dialog")
    sh("xdotool", "mousemove", arrow[0] - 60, arrow[1] + TITLE)
    yield 0.2
    yield from done("Return")
    note("action", **held("shin.L"))
    bpy.data.objects[RIG].animation_data_clear()
    bend("shin.L", 0.0)
    bend("shin.R", 0.0)


def from_blender() -> Iterator[float]:
    """IK limits of a thigh, a Limit Rotation constraint of a forearm, which is muted."""
    thigh = posed("thigh.L")
    thigh.lock_ik_y = thigh.use_ik_limit_x = thigh.use_ik_limit_z = True
    thigh.ik_min_x, thigh.ik_max_x = math.radians(-25.0), math.radians(60.0)
    thigh.ik_min_z, thigh.ik_max_z = math.radians(-50.0), math.radians(30.0)
    yield from select("thigh.L")
    yield from menu("From Blender's IK")
    note("blenders_ik", **held("thigh.L"))
    bound = posed("forearm.R").constraints.new("LIMIT_ROTATION")
    bound.owner_space, bound.use_limit_x, bound.mute = "LOCAL", True, True
    bound.min_x, bound.max_x = math.radians(-10.0), math.radians(120.0)
    yield from select("spine.005", "forearm.R")
    yield from menu("From Limit Rotation")
    yield DRAWN  # panels slide to their places
    photograph("limit_rotation")
    note("limit_rotation", **held("spine.005", "forearm.R"))
    posed("forearm.R").constraints.remove(posed("forearm.R").constraints[0])


def presets() -> Iterator[float]:
    """A human's joints, then rows of bones; the redo panel, unfolded, says where the ranges come from."""
    rows = {
        "HUMAN": [bone.name for bone in bpy.data.objects[RIG].pose.bones if bone.name not in TAIL],
        "SPINE": [f"spine.{i:03d}" for i in (1, 2, 3)],
        "TAIL": TAIL,
        "FINGER": FINGER,
    }
    for name, bones in rows.items():
        clear()
        yield from select(*bones)
        yield from menu("Preset", PRESETS[name])
        if name == "HUMAN":
            words = words_of_redo()
            yield from unfold_redo()
            photograph("preset")
            note("redo", words=sorted(set(words)))
        note(name, **held(*bones))


def words_of_redo() -> list[str]:
    """What operators give Blender's panel for the last operation to draw, from now on."""
    result, module = [], sys.modules[f"{PACKAGE}.operators.command"]
    own = module.draw_lines

    def draw(layout: bpy.types.UILayout, context: bpy.types.Context, words: str) -> None:
        result.append(words)
        own(layout, context, words)

    module.draw_lines = draw
    return result


def unfold_redo() -> Iterator[float]:
    """Click the header of Blender's panel for the last operation."""
    window, area, _ = view()
    last = next(region for region in area.regions if region.type == "HUD")
    sh("xdotool", "mousemove", last.x + 50, window.height - last.y - last.height // 2)
    yield 0.2
    sh("xdotool", "click", 1)
    yield 2 * DRAWN


def copies() -> Iterator[float]:
    clear()
    hinge("forearm.L")
    yield from select("forearm.L")
    yield from menu("Copy to Chain")
    note("copied", **held("upper_arm.L", "forearm.L", "hand.L", "shoulder.L"))
    clear()
    hinge("shin.L", "thigh.L")
    limit = posed("thigh.L").ccd_rig.limit
    limit.kind, limit.z_lower, limit.z_upper = "ELLIPSE", math.radians(-10.0), math.radians(30.0)
    yield from select("thigh.L", "shin.L")
    yield from menu("Mirror to Other Side")
    photograph("mirrored")
    note("mirrored", **held("thigh.L", "shin.L", "thigh.R", "shin.R"))


def kept() -> list[str]:
    """The files of own presets."""
    folders = bpy.utils.preset_paths("ccd_rig/limit")
    return [file.name for folder in folders for file in Path(folder).glob("*.py")]


def own_presets() -> Iterator[float]:
    """Kept under a name that is typed, given to another bone, and removed."""
    clear()
    hinge("shin.L")
    yield from select("shin.L")
    yield from menu("Own Presets", 0, ends=False)
    sh("xdotool", "mousemove", arrow[0] - 60, arrow[1] + NAME)
    yield 0.3
    sh("xdotool", "click", 1)
    yield 0.3
    write("My Knee")
    keys("Return")
    yield DRAWN
    sh("xdotool", "mousemove", arrow[0] - 60, arrow[1] + TITLE)
    yield 0.2
    keys("Return")
    yield from until(kept, PATIENCE)
    note("kept", files=kept())
    yield from select("forearm.R")
    yield from menu("Own Presets", 0)
    note("own", **held("forearm.R"))
    yield from point_at((arrow[0], arrow[1]), "Own Presets", 2, 0)
    yield 3 * DRAWN
    photograph("own_preset_remove")
    keys("Return")
    yield from until(lambda: not kept(), PATIENCE)
    note("removed", files=kept())


def until_below_pointer(row: int, words: str) -> Iterator[float]:
    """Wait until the dialog is drawn: a field with these words lies where the pointer is put."""
    manager, end = bpy.context.window_manager, time.monotonic() + PATIENCE
    manager.clipboard = ""
    while manager.clipboard != words and time.monotonic() < end:
        sh("xdotool", "mousemove", arrow[0] - 60, arrow[1] + row)
        yield 0.3
        keys("ctrl+c")
        yield 0.3


def refusals(margin: str = "10") -> Iterator[float]:
    """What there is to read where it can not be done."""
    yield from select("tail.2")
    for entry, words in (
        ("Mirror to Other Side", "no bone on the other side"),
        ("From Limit Rotation", "no Limit Rotation constraint"),
        ("From Blender's IK", "no IK limit"),
        ("Copy to Selected", "no bone but"),
    ):
        yield from menu(entry, ends=False)
        yield from until_told(words)
        if entry.startswith("Mirror"):
            photograph("refused")
        yield from close_message()
    yield from menu("From Action...", ends=False)
    yield from until_below_pointer(MARGIN, margin)
    photograph("no_action")
    sh("xdotool", "mousemove", arrow[0] - 60, arrow[1] + TITLE)
    yield 0.2
    keys("Return")
    yield from until_told("has no action")
    yield from close_message()
    note("refused", **held("tail.2"))


def close_message() -> Iterator[float]:
    """Take away what stands beside the pointer: else the next click only does that."""
    keys("Escape")
    yield pause()
    sh("xdotool", "mousemove", 300, 900)
    yield pause()


def told() -> list[str]:
    """All messages that the user has got, as Blender's Info editor, which is put below the view, has them."""
    window = bpy.context.window_manager.windows[0]
    areas = [each for each in window.screen.areas if each.type in ("DOPESHEET_EDITOR", "INFO")]
    if not areas:  # a file browser fills the screen
        return []
    areas[0].type = "INFO"
    region = next(each for each in areas[0].regions if each.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=areas[0], region=region):
        bpy.ops.info.select_all(action="SELECT")
        bpy.ops.info.report_copy()
    return str(bpy.context.window_manager.clipboard).splitlines()


def until_told(words: str) -> Iterator[float]:
    yield from until(lambda: any(words in line for line in told()), PATIENCE)
    yield DRAWN


def file_named(name: str, picture: str) -> Iterator[float]:
    """Type a file's name into the file browser, and accept it with the button."""
    window = bpy.context.window_manager.windows[0]
    browsers: list[bpy.types.Area] = []

    def opened() -> bool:
        browsers[:] = [area for area in window.screen.areas if area.type == "FILE_BROWSER"]
        return bool(browsers)

    yield from until(opened, PATIENCE)
    yield DRAWN
    bar = next(region for region in browsers[0].regions if region.type == "EXECUTE")
    y = window.height - bar.y - bar.height // 2
    sh("xdotool", "mousemove", bar.x + bar.width // 3, y)
    yield 0.2
    sh("xdotool", "click", "--repeat", 2, "--delay", 80, 1)
    yield 0.3
    keys("ctrl+a")
    write(name)
    keys("Return")
    yield DRAWN
    photograph(picture)
    parameters = browsers[0].spaces.active.params
    note(picture, folder=parameters.directory.decode(), name=parameters.filename)
    sh("xdotool", "mousemove", bar.x + bar.width - 60, y)
    yield 0.2
    before = last_done()
    sh("xdotool", "click", 1)
    yield from until(lambda: last_done() != before and not opened(), PATIENCE)
    yield 2 * DRAWN  # panels slide to their places


def files() -> Iterator[float]:
    """The whole rig's limits written and read: by the names of bones, and by what they are."""
    clear()
    hinge("shin.L", "tail.1")
    limit = posed("thigh.R").ccd_rig.limit
    limit.kind, limit.x_upper = "ELLIPSE", math.radians(70.0)
    wanted = held("shin.L", "thigh.R")
    yield from select("shin.L")
    yield from choose_for_rig("Save Set-Up of Rig...")
    yield from file_named("human", "save")
    yield from until_told("Wrote ")
    clear()
    yield from choose_for_rig("Load Set-Up of Rig...")
    yield from file_named("human.json", "load")
    note("by_name", wanted=wanted, seen=held("shin.L", "thigh.R", "tail.1"))
    clear()
    for name, side in (("thigh", "UpLeg"), ("shin", "Leg"), ("foot", "Foot")):
        for end, word in (("L", "Left"), ("R", "Right")):
            posed(f"{name}.{end}").name = f"{word}{side}"
    yield from choose_for_rig("Load Set-Up of Rig...")
    yield from file_named("human.json", "load_renamed")
    photograph("loaded")
    note("by_part", wanted=wanted, seen=held("LeftLeg", "RightUpLeg"))


def run() -> Iterator[float]:
    bpy.context.preferences.view.filebrowser_display_type = "SCREEN"
    install()
    make_figure()
    yield DRAWN
    yield from open_tab()
    yield from select("shin.L")
    yield from find_arrow()
    for step in (from_pose, from_action, from_blender, presets, copies):
        yield from step()
    for step in (own_presets, refusals, files):
        yield from step()
    note("reports", lines=told())


if __name__ == "__main__":
    start(run())
