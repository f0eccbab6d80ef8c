# SPDX-License-Identifier: GPL-3.0-or-later
"""Tool Drag Bones of Pose Mode's toolbar: press on a bone and pull; P over a bone pins it."""

from typing import Any

import bpy

AFTER = "builtin.transform"
KEYMAP = "3D View Tool: Pose, Drag Bones"
"""Blender's name of the tool's keymap, made of mode and label."""


class CCD_RIG_WT_drag(bpy.types.WorkSpaceTool):
    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "ccd_rig.drag_tool"
    bl_label = "Drag Bones"
    bl_description = (
        "Press on a bone and pull: its chain follows inside limits. P over a bone pins it: its place, again "
        "its rotation too, again frees it"
    )
    bl_icon = "ops.transform.bone_size"
    bl_keymap = (
        ("ccd_rig.drag", {"type": "LEFTMOUSE", "value": "PRESS"}, {"properties": [("pick", True)]}),
        (
            "view3d.select",
            {"type": "LEFTMOUSE", "value": "PRESS", "shift": True},
            {"properties": [("toggle", True)]},
        ),
        ("ccd_rig.pin", {"type": "P", "value": "PRESS"}, {"properties": [("pick", True)]}),
    )

    @staticmethod
    def draw_settings(context: bpy.types.Context, layout: bpy.types.UILayout, _tool: object) -> None:
        rig = context.object
        if rig is not None and rig.type == "ARMATURE":
            layout.prop(rig.ccd_rig, "pin_feet")
            layout.prop(rig.ccd_rig, "keep_balance")
            layout.operator("ccd_rig.pins_clear", icon="UNPINNED")


def is_chosen(context: bpy.types.Context) -> bool:
    """Whether the tool is active: handles of targets are then hidden, and automatic pins are drawn."""
    tool: Any = context.workspace.tools.from_space_view3d_mode("POSE", create=False)
    return tool is not None and tool.idname == CCD_RIG_WT_drag.bl_idname


_registered: list[type] = []
"""The tool, while the toolbar has it."""


def register() -> None:
    """Add the tool to the toolbar, which Blender has with a window alone."""
    if not bpy.app.background:
        bpy.utils.register_tool(CCD_RIG_WT_drag, after={AFTER}, separator=True)
        _registered.append(CCD_RIG_WT_drag)


def unregister() -> None:
    """Remove the tool and its keymaps."""
    while _registered:
        bpy.utils.unregister_tool(_registered.pop())
        configurations = bpy.context.window_manager.keyconfigs
        for configuration in (configurations.addon, configurations.default):  # Blender does not remove them
            keymap = configuration.keymaps.get(KEYMAP)
            if keymap is not None:
                configuration.keymaps.remove(keymap)
