"""Two rigs of a scene baked by one button, and by Esc not.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import (
    BONES,
    FRAMES,
    LONG_FRAMES,
    PATIENCE,
    REDRAW,
    buttons,
    click,
    install,
    key,
    make_rig,
    note,
    open_tab,
    photograph,
    start,
    until,
    view,
)

BUTTON = "bpy.ops.ccd_rig.bake_all("


def make_two() -> None:
    """Two chains with the same target motion, two metres apart."""
    first = make_rig()
    bpy.ops.object.mode_set(mode="OBJECT")
    target = bpy.data.objects["Target"]
    for each in (first, target):
        copy = each.copy()
        copy.name = f"Other {each.name}"
        if each.animation_data is not None:
            copy.animation_data.action = each.animation_data.action
        bpy.context.scene.collection.objects.link(copy)
    other = bpy.data.objects["Other Rig"]
    for rig, its in ((first, target), (other, bpy.data.objects["Other Target"])):
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.target = "Hand", f"Bone{BONES - 1}", its
    parent = bpy.data.objects.new("Place", None)
    parent.location.y = 2.0
    bpy.context.scene.collection.objects.link(parent)
    for each in (other, bpy.data.objects["Other Target"]):
        each.parent = parent
    bpy.context.view_layer.objects.active = first
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ed.undo_push(message="Two rigs")


def rigs() -> list[bpy.types.Object]:
    return [bpy.data.objects[name] for name in ("Rig", "Other Rig")]


def actions() -> list[str]:
    """The names of the rigs' actions; empty for one without keys."""
    return [
        each.animation_data.action.name if each.animation_data and each.animation_data.action else ""
        for each in rigs()
    ]


def run() -> Iterator[float]:
    install()
    make_two()
    yield REDRAW
    yield from open_tab()
    found: dict[str, tuple[int, int]] = {}
    yield from buttons(BUTTON, found)
    bpy.context.scene.frame_end = LONG_FRAMES
    yield REDRAW
    yield from click(found, BUTTON)
    yield from until(lambda: bpy.context.window.modal_operators, PATIENCE)
    yield 10.0  # until other lines have faded, so that the progress shows
    photograph("baking_all")
    running = [operator.bl_idname for operator in bpy.context.window.modal_operators]
    pressed = time.monotonic()
    yield from key("Escape")
    yield from until(lambda: not bpy.context.window.modal_operators, PATIENCE)
    took = time.monotonic() - pressed - REDRAW - 0.3
    scenes = [scene.name for scene in bpy.data.scenes]
    note("escape", running=running, seconds=took, actions=actions(), scenes=scenes)

    bpy.context.scene.frame_end = FRAMES
    yield REDRAW
    yield from click(found, BUTTON)
    yield from until(lambda: all(actions()), PATIENCE)
    yield 2 * REDRAW
    view()[1].tag_redraw()
    yield REDRAW
    photograph("baked_all")
    note("bake", actions=actions(), words=[each.ccd_rig.report.words for each in rigs()])
    yield from key("ctrl+z")
    yield 2 * REDRAW
    note("undo", actions=actions())


if __name__ == "__main__":
    start(run())
