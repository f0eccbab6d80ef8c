# SPDX-License-Identifier: GPL-3.0-or-later
"""Auto Keying: keys of what an operator has just posed, as Blender's own tools set them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy

from . import channels


def insert(context: bpy.types.Context, moved: Sequence[tuple[Any, str]]) -> str:
    """Key channels at the present frame if Auto Keying is on.

    The preferences and the mode of Auto Keying hold. With *Only Active Keying Set* that set is applied to the
    bones and objects that were moved, as Blender's own transforms do.

    Args:
        context: its scene says whether Auto Keying is on.
        moved: pose bones, objects or constraints of ours, each with the name of a channel.

    Returns:
        Why nothing could be keyed, in words; empty if all was, or Auto Keying is off.
    """
    settings = context.scene.tool_settings
    if not settings.use_keyframe_insert_auto:
        return ""
    for owner in dict.fromkeys(owner.id_data for owner, _ in moved):
        animation = owner.animation_data
        action = None if animation is None else animation.action
        if action is not None and not action.is_editable:
            return f"Auto Keying: action '{action.name}' cannot be edited, so no keys were set"
    keying_set = context.scene.keying_sets_all.active if settings.use_keyframe_insert_keyingset else None
    if moved and keying_set is not None:
        return _apply(context, keying_set.bl_label, [owner for owner, _ in moved])
    options = _options(context)
    for owner, channel in moved:
        group = "Object Transforms" if isinstance(owner, bpy.types.Object) else owner.name
        if options & {"INSERTKEY_AVAILABLE", "INSERTKEY_REPLACE"} and not _has_keys(owner, channel):
            continue
        owner.keyframe_insert(channel, group=group, options=options)
    return ""


def _apply(context: bpy.types.Context, label: str, owners: Sequence[Any]) -> str:
    """Apply the active keying set to pose bones and objects; why it keyed nothing, in words."""
    windows = context.window_manager.windows
    area = context.area or next((each for window in windows for each in window.screen.areas), None)
    bones = [each for each in dict.fromkeys(owners) if isinstance(each, bpy.types.PoseBone)]
    objects = list(dict.fromkeys(each.id_data for each in owners if each not in bones))
    try:
        with context.temp_override(area=area, selected_pose_bones=bones, selected_objects=objects):
            bpy.ops.anim.keyframe_insert()
    except RuntimeError:  # Blender has told why
        return f"Auto Keying: keying set '{label}' has keyed nothing"
    return ""


def _options(context: bpy.types.Context) -> set[str]:
    """What Blender's own automatic keys follow, as `keyframe_insert` has it."""
    settings, edit = context.scene.tool_settings, context.preferences.edit
    chosen = {
        "INSERTKEY_VISUAL": edit.use_visual_keying,
        "INSERTKEY_NEEDED": edit.use_auto_keyframe_insert_needed,
        "INSERTKEY_AVAILABLE": edit.use_keyframe_insert_available,
        "INSERTKEY_CYCLE_AWARE": settings.use_keyframe_cycle_aware,
        "INSERTKEY_REPLACE": settings.auto_keying_mode == "REPLACE_KEYS",
    }
    return {name for name, is_on in chosen.items() if is_on}


def _has_keys(owner: Any, channel: str) -> bool:
    path = owner.path_from_id(channel)
    return any(curve.data_path == path for curve in channels.fcurves_of(owner.id_data))
