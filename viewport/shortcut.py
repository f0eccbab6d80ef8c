# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of Live: none until a user sets one in the preferences, as for Blender's own commands."""

from typing import Any

import bpy

COMMAND = "ccd_rig.live"
KEYMAP = "3D View"

_made: list[tuple[Any, Any]] = []
"""The keymap that holds the entry, and the entry, as long as the extension is enabled."""


def draw(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """The entry as Blender draws it in its preferences' Keymap."""
    import rna_keymap_ui  # part of Blender; it asks for a window's modules, so not before it is drawn

    configuration = context.window_manager.keyconfigs.user
    keymap = configuration.keymaps.get(KEYMAP) if configuration is not None else None
    items = () if keymap is None else keymap.keymap_items
    entry = next((item for item in items if item.idname == COMMAND), None)
    if entry is None or context.region is None:
        layout.label(text="Keys are set in a window of Blender", icon="INFO")
        return
    layout.context_pointer_set("keymap", keymap)
    rna_keymap_ui.draw_kmi([], configuration, keymap, entry, layout, 0)


def register() -> None:
    """Add the entry without a key. Blender keeps what the user makes of it with the preferences."""
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:  # a Blender without keys, as in the background
        return
    keymap = configuration.keymaps.new(name=KEYMAP, space_type="VIEW_3D")
    _made.append((keymap, keymap.keymap_items.new(COMMAND, type="NONE", value="PRESS")))


def unregister() -> None:
    """Take it away again."""
    for keymap, entry in _made:
        keymap.keymap_items.remove(entry)
    _made.clear()
