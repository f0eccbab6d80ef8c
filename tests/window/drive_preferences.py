"""The preferences: they are shown, and a key for Live that is set there works.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import (
    PACKAGE,
    PATIENCE,
    REDRAW,
    install,
    key,
    make_rig,
    note,
    photograph,
    rig,
    sh,
    start,
    until,
    view,
)

KEY = "J"
SCREEN_HEIGHT = 1400  # [pixels]


def entry() -> bpy.types.KeyMapItem:
    """The entry for Live as the preferences show it."""
    keymap = bpy.context.window_manager.keyconfigs.user.keymaps["3D View"]
    return next(item for item in keymap.keymap_items if item.idname == "ccd_rig.live")


def run() -> Iterator[float]:
    install()
    make_rig()
    bpy.ops.ccd_rig.constraint_add()
    yield REDRAW
    note("at_first", type=entry().type)
    window, area, _ = view()
    sh("xdotool", "mousemove", area.x + 200, window.height - area.y - 200)
    yield REDRAW
    sh("xdotool", "click", 1)  # the window has the keyboard only then
    yield REDRAW
    yield from key(KEY.lower())
    note("without_a_key", on=rig().ccd_rig.live)
    entry().type = KEY
    yield REDRAW
    yield from key(KEY.lower())
    yield from until(lambda: rig().ccd_rig.live, PATIENCE / 10.0)
    note("with_a_key", on=rig().ccd_rig.live, type=entry().type, active=entry().active)
    photograph("with_a_key")
    yield from key(KEY.lower())
    note("again", on=rig().ccd_rig.live)
    preferences = bpy.context.preferences.addons[PACKAGE].preferences
    preferences.new_rigs.bake.step = 2
    bpy.ops.preferences.addon_show(module=PACKAGE)
    yield 3 * REDRAW
    photograph("preferences")
    window = bpy.context.window_manager.windows[-1]
    sh("xdotool", "mousemove", window.x + window.width // 2, SCREEN_HEIGHT - window.y - window.height // 2)
    for _ in range(30):
        sh("xdotool", "click", 5)
        yield 0.05
    yield 2 * REDRAW
    photograph("preferences_below")
    note("shown", windows=len(bpy.context.window_manager.windows))


if __name__ == "__main__":
    start(run())
