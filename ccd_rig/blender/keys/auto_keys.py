# SPDX-License-Identifier: GPL-3.0-or-later
"""Auto Keying of channels that an operator has changed, as by Blender's tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy

from ..rig import clamps
from . import channels


def insert(context: bpy.types.Context, moved: Sequence[tuple[Any, str]]) -> str:
    """Key channels at the present frame if Auto Keying is on.

    The preferences and the mode of Auto Keying apply. With *Only Active Keying Set*, this set is applied to
    the moved bones and objects, as by Blender's transforms. Visual keys are those of the new channels,
    without what Live shows.

    Args:
        context: its scene has the switch of Auto Keying.
        moved: pose bones, objects or constraints of the extension, with the name of a channel.

    Returns:
        A message if nothing could be keyed; empty if everything was, or Auto Keying is off.
    """
    settings = context.scene.tool_settings
    if not settings.use_keyframe_insert_auto:
        return ""
    for owner in dict.fromkeys(owner.id_data for owner, _ in moved):
        action = channels.action_of(owner)
        if action is not None and not action.is_editable:
            return f"Auto Keying: action '{action.name}' cannot be edited, so no keys were set"
    if not context.preferences.edit.use_visual_keying:
        return _insert(context, moved)
    with clamps.suspended():
        context.view_layer.update()  # visual keys are read from evaluated bones and objects
        return _insert(context, moved)


def _insert(context: bpy.types.Context, moved: Sequence[tuple[Any, str]]) -> str:
    settings = context.scene.tool_settings
    keying_set = context.scene.keying_sets_all.active if settings.use_keyframe_insert_keyingset else None
    if moved and keying_set is not None:
        return _apply(context, keying_set.bl_label, [owner for owner, _ in moved])
    options = _options(context)
    for owner, channel in moved:
        group = "Object Transforms" if isinstance(owner, bpy.types.Object) else owner.name
        if options & {"INSERTKEY_AVAILABLE", "INSERTKEY_REPLACE"}:
            path = owner.path_from_id(channel)
            if not any(curve.data_path == path for curve in channels.fcurves_of(owner.id_data)):
                continue
        owner.keyframe_insert(channel, group=group, options=options)
    return ""


def _apply(context: bpy.types.Context, label: str, owners: Sequence[Any]) -> str:
    """Apply the active keying set to pose bones and objects; return a message if it keyed nothing."""
    windows = context.window_manager.windows
    area = context.area or next((area for window in windows for area in window.screen.areas), None)
    bones = [owner for owner in dict.fromkeys(owners) if isinstance(owner, bpy.types.PoseBone)]
    objects = list(dict.fromkeys(owner.id_data for owner in owners if owner not in bones))
    # Blender's sets go by the mode of the active object: bones in Pose Mode, else objects.
    groups: list[tuple[Any, list[Any], list[Any]]] = [(bones[0].id_data, bones, [])] if bones else []
    groups += [(objects[0], [], objects)] if objects else []
    try:
        for active, pose_bones, objects in groups:
            with context.temp_override(
                area=area,
                active_object=active,
                object=active,
                selected_pose_bones=pose_bones,
                selected_objects=objects,
            ):
                bpy.ops.anim.keyframe_insert()
    except RuntimeError:  # Blender has reported the reason
        return f"Auto Keying: keying set '{label}' has keyed nothing"
    return ""


def _options(context: bpy.types.Context) -> set[str]:
    """Return the options of `keyframe_insert` that the preferences and the mode of Auto Keying set."""
    settings, edit = context.scene.tool_settings, context.preferences.edit
    chosen = {
        "INSERTKEY_VISUAL": edit.use_visual_keying,
        "INSERTKEY_NEEDED": edit.use_auto_keyframe_insert_needed,
        "INSERTKEY_AVAILABLE": edit.use_keyframe_insert_available,
        "INSERTKEY_CYCLE_AWARE": settings.use_keyframe_cycle_aware,
        "INSERTKEY_REPLACE": settings.auto_keying_mode == "REPLACE_KEYS",
    }
    return {name for name, is_on in chosen.items() if is_on}
