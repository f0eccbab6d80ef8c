# SPDX-License-Identifier: GPL-3.0-or-later
"""What a baked action keeps about bones, in custom properties of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..rig.rotation_modes import CHANNELS

FOLLOWED = "ccd_rig_followed"
"""Names of the bones whose keys come from planted bones."""
POSE = "ccd_rig_pose"
"""What keyed channels held that had no keys in the action that was baked: bone -> channel -> values."""


WIDTHS = {"location": 3, **dict(CHANNELS.values())}
"""Channel -> how many values it has."""


def followed(action: Any) -> list[str]:
    """Names of the bones whose keys in an action come from planted bones."""
    names = action.get(FOLLOWED)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def pose_of(action: Any) -> dict[str, dict[str, list[float]]]:
    """What an action keeps as `POSE`; without what is no channel of a bone."""
    try:
        bones = action[POSE].to_dict()
    except (AttributeError, KeyError):
        bones = {}
    return {
        bone: {name: list(values) for name, values in held.items() if _is_channel(name, values)}
        for bone, held in bones.items()
        if isinstance(held, dict)
    }


def _is_channel(name: str, values: Any) -> bool:
    """Whether these may be the values of a channel of a bone."""
    is_numbers = isinstance(values, list) and all(
        isinstance(each, int | float) and math.isfinite(each) for each in values
    )
    return is_numbers and len(values) == WIDTHS.get(name)


def rename_bones(action: Any, renamed: Mapping[str, str]) -> None:
    """Let what an action keeps be about the bones under their new names: {old: new}."""
    if names := followed(action):
        action[FOLLOWED] = [renamed.get(name, name) for name in names]
    if pose := pose_of(action):
        action[POSE] = {renamed.get(name, name): held for name, held in pose.items()}
