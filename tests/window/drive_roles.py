"""Set Up Figure on bones that no name tells: roles are asked for, in a dialog and by colour in the view.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PACKAGE, REDRAW, install, note, photograph, sh, start, view
from drive_figures import frame_view
from drive_rigs import cat, empty_scene, metarig
from drive_viewport import screen

SHOWN = 3 * REDRAW


def nameless_cat() -> bpy.types.Object:
    rig = cat()
    for number, bone in enumerate(rig.data.bones):
        bone.name = f"Bone.{number:03d}"
    for bone in rig.pose.bones:
        bone.rigify_type = ""
    return rig


def command(context_mode: str = "INVOKE_DEFAULT") -> None:
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.ccd_rig.figure_set_up(context_mode, True)


def asked() -> dict[str, dict[str, str]]:
    module = sys.modules[f"{PACKAGE}.ccd_rig.blender.viewport.sketch"]
    return {name: dict(roles) for name, roles in module.dialog_roles.items()}


def seen(step: str, rig: bpy.types.Object) -> None:
    roles = asked().get(rig.name, {})
    counts = {"constraints": len(rig.ccd_rig.constraints), "objects": len(bpy.data.objects)}
    note(step, roles=sum(bool(words) for words in roles.values()), asked=bool(roles), **counts)


def way() -> Iterator[float]:
    install()
    empty_scene()
    rig = nameless_cat()
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.display_type = "STICK"
    frame_view(rig)
    yield SHOWN
    _, area, _ = view()
    sh("xdotool", "mousemove", area.x + area.width // 2, area.height // 2)
    yield REDRAW
    photograph("before")
    command()
    yield SHOWN
    photograph("asked")
    seen("asked", rig)
    sh("xdotool", "key", "Escape")
    yield SHOWN
    photograph("escaped")
    seen("escape", rig)
    command()
    yield SHOWN
    sh("xdotool", "key", "Return")
    yield SHOWN
    photograph("made")
    seen("return", rig)
    x, y = screen(rig.ccd_rig.constraints[0].target.matrix_world.translation)
    for step in (("mousemove", x - 40, y), ("mousemove", x, y), ("mousedown", 1), ("mousemove", x + 30, y)):
        sh("xdotool", *step)
        yield REDRAW
    photograph("dragging")
    sh("xdotool", "mouseup", 1)
    yield REDRAW
    bpy.ops.object.mode_set(mode="OBJECT")
    empty_scene()
    sure = metarig("Basic.basic_human")
    yield SHOWN
    command()
    yield SHOWN
    seen("sure", sure)


start(way())
