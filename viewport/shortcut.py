# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of Live and Drag: none until a user sets one in the preferences, as for Blender's own commands."""

from typing import Any

import bpy

COMMANDS = {"ccd_rig.live": ("3D View", "VIEW_3D"), "ccd_rig.drag": ("Pose", "EMPTY")}
"""The commands that may have a key, each with its keymap and the kind of editor that this is for."""

_made: list[tuple[Any, Any]] = []
"""The keymaps that hold the entries, and these, as long as the extension is enabled."""


def draw(layout: bpy.types.UILayout, context: bpy.types.Context, command: str) -> None:
    """The entry of a command as Blender draws it in its preferences' Keymap."""
    import rna_keymap_ui  # part of Blender; it asks for a window's modules, so not before it is drawn

    configuration = context.window_manager.keyconfigs.user
    keymap = configuration.keymaps.get(COMMANDS[command][0]) if configuration is not None else None
    items = () if keymap is None else keymap.keymap_items
    entry = next((item for item in items if item.idname == command), None)
    if entry is None or context.region is None:
        layout.label(text="Keys are set in a window of Blender", icon="INFO")
        return
    layout.context_pointer_set("keymap", keymap)
    rna_keymap_ui.draw_kmi([], configuration, keymap, entry, layout, 0)


def register() -> None:
    """Add the entries without a key. Blender keeps what the user makes of it with the preferences."""
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:  # a Blender without keys, as in the background
        return
    for command, (name, space) in COMMANDS.items():
        keymap = configuration.keymaps.new(name=name, space_type=space)
        _made.append((keymap, keymap.keymap_items.new(command, type="NONE", value="PRESS")))


def unregister() -> None:
    """Take them away again."""
    for keymap, entry in _made:
        keymap.keymap_items.remove(entry)
    _made.clear()
