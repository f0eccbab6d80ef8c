"""The tool Drag: bones are pressed and pulled with the real pointer, taken back, pinned.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PACKAGE, REDRAW, install, make_rig, note, photograph, rig, sh, start, view
from drive_limit_figure import RIG as FIGURE
from drive_limit_figure import make_figure
from drive_viewport import OBLIQUE, look, screen

TOOL, KEYMAP = "ccd_rig.drag_tool", "3D View Tool: Pose, Drag Bones"
FRONT = Quaternion((0.70710678, 0.70710678, 0.0, 0.0))
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
BENT = 0.15  # [rad] of each bone, so that the chain can give


def held() -> list[list[float]]:
    """All channels of the rig, to the bit."""
    return [list(getattr(bone, name)) for bone in rig().pose.bones for name in CHANNELS]


def turned(start_at: list[list[float]]) -> list[str]:
    """Names of bones whose channels differ from those at the start."""
    count = len(CHANNELS)
    pairs = zip(held(), start_at, strict=True)
    names = [bone.name for bone in rig().pose.bones for _ in range(count)]
    return sorted({name for name, (a, b) in zip(names, pairs, strict=True) if a != b})


def evaluated(name: str, owner: str = "Rig") -> bpy.types.PoseBone:
    depsgraph = bpy.context.evaluated_depsgraph_get()
    return bpy.data.objects[owner].evaluated_get(depsgraph).pose.bones[name]


def tail(name: str = "Bone7", owner: str = "Rig") -> Vector:
    bone = evaluated(name, owner)
    return (bone.id_data.matrix_world @ bone.tail).copy()


def middle(name: str = "Bone7", owner: str = "Rig") -> Vector:
    bone = evaluated(name, owner)
    return bone.id_data.matrix_world @ bone.head.lerp(bone.tail, 0.5)


def point_at(place: Vector) -> Iterator[float]:
    sh("xdotool", "mousemove", *screen(place))
    yield 0.2


def press(place: Vector) -> Iterator[float]:
    yield from point_at(place + Vector((0.0, 0.0, 0.3)))
    yield from point_at(place)
    yield REDRAW
    sh("xdotool", "mousedown", 1)
    yield REDRAW


def let_go() -> Iterator[float]:
    sh("xdotool", "mouseup", 1)
    yield REDRAW


def keys(*names: str) -> Iterator[float]:
    for name in names:
        sh("xdotool", "key", name)
        yield 0.4


def tools() -> list[str]:
    """The tools of Pose Mode's toolbar, by their names."""
    from bl_ui.space_toolsystem_toolbar import VIEW3D_PT_tools_active as toolbar

    flat = toolbar._tools_flatten(toolbar._tools["POSE"])
    return [each.idname for each in flat if each is not None]


def tool_keymaps() -> list[list[str]]:
    """Of each configuration that has a keymap of the tool, the commands that stand there."""
    configurations = bpy.context.window_manager.keyconfigs
    each = [configurations.default, configurations.addon]
    keymaps = [one.keymaps[KEYMAP] for one in each if KEYMAP in one.keymaps]
    return [[item.idname for item in keymap.keymap_items] for keymap in keymaps]


def choose_tool() -> Iterator[float]:
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    area.spaces.active.show_region_toolbar = True
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.tool_set_by_id(name=TOOL)
        active = bpy.context.workspace.tools.from_space_view3d_mode("POSE").idname
    yield 2 * REDRAW
    note("tool", active=active, offered=TOOL in tools(), keymaps=tool_keymaps())


def pull() -> Iterator[float]:
    """Out and back with the button down, then let go elsewhere."""
    before, place = held(), middle()
    yield from press(place)
    for part in (0.3, 0.6, 1.0):
        yield from point_at(place + part * Vector((-0.4, 0.0, 0.9)))
    yield REDRAW
    photograph("pulled")
    away, at = turned(before), middle()
    wanted = place + Vector((-0.4, 0.0, 0.9))
    yield from point_at(place)
    yield REDRAW
    note("back", same=held() == before)
    yield from point_at(wanted)
    yield from let_go()
    note(
        "pull",
        turned=away,
        off=(at - wanted).length,
        kept=(middle() - wanted).length,
        objects=len(bpy.data.objects),
    )
    note(
        "left",
        constraints=sum(len(bone.constraints) for bone in rig().pose.bones),
        rows=len(rig().ccd_rig.constraints),
    )
    yield from keys("ctrl+z")
    yield REDRAW
    note("undo", same=held() == before)


def take_back(button: str) -> Iterator[float]:
    """Esc or the right button while a bone is pulled."""
    before, place = held(), middle()
    yield from press(place)
    yield from point_at(place + Vector((-0.7, 0.0, 0.6)))
    yield REDRAW
    moved = turned(before)
    if button == "Escape":
        yield from keys("Escape")
    else:
        sh("xdotool", "click", 3)
        yield REDRAW
    taken = held() == before
    yield from let_go()
    note(f"taken_back_by_{button}", moved=moved, same=taken and held() == before)


def wheel_and_axis() -> Iterator[float]:
    """The wheel shortens the chain; Z binds the motion; Shift and Ctrl change it."""
    before, place = held(), middle()
    yield from press(place)
    yield from point_at(place + Vector((-0.3, 0.0, 0.5)))
    long = turned(before)
    for _ in range(5):
        sh("xdotool", "click", 5)
        yield 0.3
    short = turned(before)
    photograph("shortened")
    for _ in range(5):
        sh("xdotool", "click", 4)
        yield 0.3
    note("wheel", long=long, short=short, again=turned(before))
    free = middle() - place
    yield from keys("z")
    yield from point_at(place + Vector((-0.3, 0.0, 0.501)))
    yield REDRAW
    photograph("along_z")
    bound = middle() - place
    yield from keys("Escape")
    yield from let_go()
    note("axis", free=list(free), bound=list(bound), same=held() == before)
    yield from press(place)
    sh("xdotool", "keydown", "shift")
    yield 0.2
    yield from point_at(place + Vector((-1.0, 0.0, 0.0)))
    yield REDRAW
    precise = middle() - place
    sh("xdotool", "keyup", "shift")
    yield from keys("Escape")
    yield from let_go()
    note("precise", moved=list(precise), same=held() == before)


def pin() -> Iterator[float]:
    """P over a bone, three times; a pull while it is pinned."""
    kinds = []
    for count in range(3):
        yield from point_at(middle("Bone3") + Vector((0.0, 0.0, 0.4)))
        yield from point_at(middle("Bone3"))
        yield REDRAW
        yield from keys("p")
        yield REDRAW
        kinds.append(rig().pose.bones["Bone3"].ccd_rig.pin)
        photograph(f"pin_{count}")
        if count == 0:
            before, held_at = middle(), tail("Bone3")
            yield from press(before)
            yield from point_at(before + Vector((-0.6, 0.0, 0.6)))
            yield REDRAW
            photograph("pulled_with_pin")
            note("with_pin", drift=(tail("Bone3") - held_at).length, moved=(middle() - before).length)
            yield from keys("Escape")
            yield from let_go()
    note("pin", kinds=kinds)


def refused() -> Iterator[float]:
    """A bone whose rotation is locked, with all that carries it."""
    before, place = held(), middle()
    for bone in rig().pose.bones:
        bone.lock_rotation, bone.lock_location = (True,) * 3, (True,) * 3
    yield from press(place)
    photograph("refused")
    yield from keys("Escape")
    yield from point_at(place + Vector((-0.3, 0.0, 0.5)))
    yield from let_go()
    note("refused", same=held() == before)
    for bone in rig().pose.bones:
        bone.lock_rotation, bone.lock_location = (False,) * 3, (False,) * 3


def figure() -> Iterator[float]:
    """A hand of a human is pulled; feet that stand are pinned by themselves, and the hips follow."""
    make_figure()
    made = bpy.data.objects[FIGURE]
    bpy.ops.pose.select_all(action="DESELECT")
    for side in "LR":
        made.pose.bones[f"thigh.{side}"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), -0.3)
        made.pose.bones[f"shin.{side}"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 0.6)
    look(OBLIQUE, (0.1, 0.0, 0.9), 3.5)
    yield 2 * REDRAW
    yield from choose_tool()
    photograph("figure_without_pins")
    made.ccd_rig.pin_feet = True
    view()[1].tag_redraw()  # as a click on its box does
    yield 2 * REDRAW
    at = {name: tail(name, FIGURE) for name in ("hand.L", "foot.L", "foot.R")}
    hips = made.pose.bones["spine"].matrix.translation.copy()
    photograph("figure_at_rest")
    yield from press(middle("hand.L", FIGURE))
    for part in (0.4, 0.7, 1.0):
        yield from point_at(at["hand.L"] + part * Vector((-0.1, -0.5, -0.7)))
    yield 2 * REDRAW
    photograph("figure")
    made = bpy.data.objects[FIGURE]
    note(
        "figure",
        hand=(tail("hand.L", FIGURE) - at["hand.L"]).length,
        feet=[(tail(name, FIGURE) - at[name]).length for name in ("foot.L", "foot.R")],
        hips=(evaluated("spine", FIGURE).matrix.translation - hips).length,
    )
    yield from keys("Escape")
    yield from let_go()


def come_and_go() -> Iterator[float]:
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    yield REDRAW
    note("disabled", offered=TOOL in tools(), keymaps=tool_keymaps())
    bpy.ops.preferences.addon_enable(module=PACKAGE)
    yield REDRAW
    note("enabled", offered=TOOL in tools(), keymaps=tool_keymaps())


def run() -> Iterator[float]:
    install()
    made = make_rig()
    for bone in made.pose.bones:
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion((0.0, 0.0, 1.0), BENT)
    made.location = (0.0, 0.0, 0.0)
    bpy.data.objects["Target"].hide_set(True)
    look(FRONT, (1.5, 0.0, 1.0), 8.0)
    yield REDRAW
    bpy.ops.ed.undo_push(message="Rig")
    yield from choose_tool()
    photograph("tool")
    yield from pull()
    yield from take_back("Escape")
    yield from take_back("right_button")
    yield from wheel_and_axis()
    yield from pin()
    yield from refused()
    yield from figure()
    yield from come_and_go()


if __name__ == "__main__":
    start(run())
