"""The preferences: they are shown, and a key for Live that is set there works.

Runs as drive.py does, and by its helpers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PACKAGE, PATIENCE, REDRAW, install, key, make_rig, note, photograph, rig, start, until

KEY = "F6"


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
    yield from key(KEY)
    note("without_a_key", on=rig().ccd_rig.live)
    entry().type = KEY
    yield REDRAW
    yield from key(KEY)
    yield from until(lambda: rig().ccd_rig.live, PATIENCE / 10.0)
    note("with_a_key", on=rig().ccd_rig.live)
    yield from key(KEY)
    note("again", on=rig().ccd_rig.live)
    preferences = bpy.context.preferences.addons[PACKAGE].preferences
    preferences.new_rigs.bake.step = 2
    bpy.ops.preferences.addon_show(module=PACKAGE)
    yield 3 * REDRAW
    photograph("preferences")
    note("shown", windows=len(bpy.context.window_manager.windows))


if __name__ == "__main__":
    start(run())
