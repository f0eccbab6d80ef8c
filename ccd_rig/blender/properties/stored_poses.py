# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses that are stored with their changes: before a bake in its action, and before Solve in the armature.

Solve and Live start from the pose before Solve as long as channels hold what Solve has written: a second
press changes nothing, and a body that has helped comes back when it is needed no more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import bpy

from ... import json_text
from ..keys.channels import action_of
from ..rig.rotation_modes import WIDTHS, rotation_channel

FOLLOWED = "ccd_rig_followed"
"""Names of the bones whose keys come from planted bones."""
POSE = "ccd_rig_pose"
"""Values before the bake of channels that had no keys then and have some now: bone -> channel -> values.

`MODE` is one of these channels; its value is the number of the rotation mode in Blender's list.
"""
MODE = "rotation_mode"


def followed(action: Any) -> list[str]:
    """Return the names of the bones whose keys in an action come from planted bones."""
    names = action.get(FOLLOWED)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def pose_of(action: Any) -> dict[str, dict[str, list[float]]]:
    """Return the `POSE` of an action, valid channels alone: bone -> channel -> values."""
    try:
        bones = action[POSE].to_dict()
    except (AttributeError, KeyError):
        bones = {}
    return {
        bone: {name: list(values) for name, values in channels.items() if is_channel(name, values)}
        for bone, channels in bones.items()
        if isinstance(channels, dict)
    }


def is_baked(armature_object: bpy.types.Object) -> bool:
    """Return whether the present action was baked, and can be written to."""
    action = action_of(armature_object)
    return action is not None and POSE in action and action.is_editable and action.override_library is None


def is_channel(name: str, values: Any) -> bool:
    """Return whether the values are finite numbers, as many as the channel has components."""
    are_numbers = isinstance(values, list) and all(
        isinstance(value, int | float) and math.isfinite(value) for value in values
    )
    return are_numbers and len(values) == (1 if name == MODE else WIDTHS.get(name))


def rename_bones(action: Any, renamed: Mapping[str, str]) -> None:
    """Rename bones in the custom properties of an action: {old name: new name}."""
    if names := followed(action):
        action[FOLLOWED] = [renamed.get(name, name) for name in names]
    if pose := pose_of(action):
        action[POSE] = {renamed.get(name, name): channels for name, channels in pose.items()}


# The pose before Solve --------------------------------------------------------------------------------------


Values = dict[str, dict[str, list[float]]]
"""Bone -> channel -> its values."""
Stored = Mapping[str, Mapping[str, tuple[list[float], list[float]]]]
"""Bone -> channel -> its values before Solve, and those that Solve has written."""


def base_values(armature_object: bpy.types.Object) -> Values:
    """Values before Solve of the channels that still hold what Solve has written."""
    bones, values = armature_object.pose.bones, Values()
    for name, channels in _stored(armature_object.ccd_rig.solved_pose).items():
        bone = bones.get(name)
        for channel, (before, written) in channels.items() if bone is not None else ():
            if channel in ("location", rotation_channel(bone)[0]) and _present(bone, channel) == written:
                values.setdefault(name, {})[channel] = before
    return values


def present_values(armature_object: bpy.types.Object, channels: Iterable[tuple[str, str]]) -> Values:
    """Present values of channels, each with the name of its bone."""
    values = Values()
    for name, channel in channels:
        values.setdefault(name, {})[channel] = _present(armature_object.pose.bones[name], channel)
    return values


def note(armature_object: bpy.types.Object, before: Values) -> None:
    """Store values before Solve of channels that it has written; others keep theirs as long as they hold."""
    bones = armature_object.pose.bones
    kept = base_values(armature_object)
    for name, channels in before.items():
        kept[name] = {**kept.get(name, {}), **channels}
    stored = {
        name: {channel: (values, _present(bones[name], channel)) for channel, values in channels.items()}
        for name, channels in kept.items()
    }
    armature_object.ccd_rig.solved_pose = json.dumps(stored)


def rename_solved(armature_object: bpy.types.Object, renamed: Mapping[str, str]) -> None:
    """Rename bones in the pose before Solve: {old name: new name}."""
    if stored := _stored(armature_object.ccd_rig.solved_pose):
        names = {renamed.get(name, name): channels for name, channels in stored.items()}
        armature_object.ccd_rig.solved_pose = json.dumps(names)


def _present(bone: Any, channel: str) -> list[float]:
    return list(getattr(bone, channel))


@lru_cache(maxsize=8)
def _stored(text: str) -> Stored:
    """What a property holds; nothing where it is damaged."""
    try:
        bones = json_text.parse(text) if text else {}
    except json_text.NotJson:
        bones = {}
    if not isinstance(bones, dict):
        return {}
    return {
        name: {
            channel: tuple(pair)
            for channel, pair in channels.items()
            if isinstance(pair, list) and len(pair) == 2 and all(is_channel(channel, each) for each in pair)
        }
        for name, channels in bones.items()
        if isinstance(channels, dict)
    }
