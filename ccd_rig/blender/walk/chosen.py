# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored settings of ground and Walk Along, as values."""

from __future__ import annotations

from typing import Any

import bpy

from ...errors import InvalidInput, RigError
from ...motion.walking.settings import WalkSettings
from ..scene.ground import ground_of_rig
from .walk import Stands, WalkChoice

SETTINGS = (
    *("start", "stop", "ease", "cycles", "stride", "fit_steps", "offset"),
    *("steepest", "clearance", "extension"),
)
"""Fields of `WalkSettings` that an armature stores."""


def choice_of(rig: bpy.types.Object) -> WalkChoice:
    """Read the choices of an armature.

    Raises:
        RigError: a number is out of range, or no ground is chosen.
    """
    group: Any = rig.ccd_rig.walk
    try:
        settings = WalkSettings(**{name: getattr(group, name) for name in SETTINGS})
    except InvalidInput as error:
        raise RigError(str(error)) from error
    height, meshes = ground_of_rig(rig)
    return WalkChoice(
        cycle=group.cycle,
        cycle_frames=(group.cycle_start, group.cycle_end) if group.use_range else None,
        height=height,
        meshes=meshes,
        start=group.frame_start,
        end=group.frame_end if group.use_end else None,
        stands=Stands(group.stands),
        stand_action=group.stand_action,
        keyed=group.speed == "CURVE",
        settings=settings,
    )
