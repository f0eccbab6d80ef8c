# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose before Solve, stored with an armature as long as channels hold what Solve has written.

Solve goes from that pose again, and so does Live: a second press changes nothing, and a body that has helped
comes back when it is needed no more. A channel that anything else has changed since is taken as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import bpy

from ... import json_text
from ..rig.rotation_modes import rotation_channel
from .baked_action import is_channel

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
        name: {channel: tuple(pair) for channel, pair in channels.items() if _is_pair(channel, pair)}
        for name, channels in bones.items()
        if isinstance(channels, dict)
    }


def _is_pair(channel: str, pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(is_channel(channel, each) for each in pair)
