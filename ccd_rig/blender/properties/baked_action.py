# SPDX-License-Identifier: GPL-3.0-or-later
"""Custom properties of a baked action: bones that planted bones moved, and the pose before the bake."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..rig.rotation_modes import CHANNELS

FOLLOWED = "ccd_rig_followed"
"""Names of the bones whose keys come from planted bones."""
POSE = "ccd_rig_pose"
"""Values before the bake of channels that had no keys then and have some now: bone -> channel -> values."""


WIDTHS = {"location": 3, **dict(CHANNELS.values())}
"""Channel -> number of its components."""


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


def is_channel(name: str, values: Any) -> bool:
    """Return whether the values are finite numbers, as many as the channel has components."""
    are_numbers = isinstance(values, list) and all(
        isinstance(value, int | float) and math.isfinite(value) for value in values
    )
    return are_numbers and len(values) == WIDTHS.get(name)


def rename_bones(action: Any, renamed: Mapping[str, str]) -> None:
    """Rename bones in the custom properties of an action: {old name: new name}."""
    if names := followed(action):
        action[FOLLOWED] = [renamed.get(name, name) for name in names]
    if pose := pose_of(action):
        action[POSE] = {renamed.get(name, name): channels for name, channels in pose.items()}
