# SPDX-License-Identifier: GPL-3.0-or-later
"""What a baked action keeps about bones, in custom properties of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOLLOWED = "ccd_rig_followed"
"""Names of the bones whose keys come from planted bones."""
POSE = "ccd_rig_pose"
"""What keyed channels held that had no keys in the action that was baked: bone -> channel -> values."""


def followed(action: Any) -> list[str]:
    """Names of the bones whose keys in an action come from planted bones."""
    return list(action.get(FOLLOWED, ()))


def rename_bones(action: Any, renamed: Mapping[str, str]) -> None:
    """Let what an action keeps be about the bones under their new names: {old: new}."""
    if FOLLOWED in action:
        action[FOLLOWED] = [renamed.get(name, name) for name in action[FOLLOWED]]
    if POSE in action:
        pose = action[POSE].to_dict()
        action[POSE] = {renamed.get(name, name): held for name, held in pose.items()}
