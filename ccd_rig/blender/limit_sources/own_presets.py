# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of single bones that users keep as Blender's presets, under scripts/presets/ccd_rig/limit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import bpy

from ...errors import RigError
from ..properties import overrides
from ..properties.joints import CCD_RIG_PG_limit
from ..properties.limit_groups import copy_limit
from .chosen_bones import Outcome

FOLDER = "ccd_rig/limit"
"""Where presets lie, below Blender's folders of presets."""

MENU = "CCD_RIG_MT_limit_presets"
"""The menu that lists them; Blender gives it the name of the last one chosen."""

VALUES = [f"bpy.context.active_pose_bone.ccd_rig.limit.{name}" for name in CCD_RIG_PG_limit.__annotations__]
"""What a preset holds, as Blender's presets write it."""


def file_names() -> list[str]:
    """The names of the presets' files, without their ending, in the order of the alphabet."""
    folders = [Path(folder) for folder in bpy.utils.preset_paths(FOLDER)]
    return sorted((file.stem for folder in folders for file in folder.glob("*.py")), key=str.casefold)


def apply_own(active: bpy.types.PoseBone, pose_bones: Sequence[bpy.types.PoseBone], path: str) -> Outcome:
    """Give bones the limit of a preset file; the active one, which presets speak of, gets it too.

    Raises:
        RigError: there is no such file, or it does not run.
    """
    if not Path(path).is_file():
        raise RigError(f"there is no preset {path or 'without a name'}: choose one of the menu")
    menu = getattr(bpy.types, MENU)
    label = menu.bl_label
    try:
        bpy.ops.script.execute_preset(filepath=path, menu_idname=MENU)
    except RuntimeError as error:
        menu.bl_label = label  # Blender has named the menu before it ran the file
        raise RigError(f"preset {path}: {error}".strip()) from error
    overrides.keep(active.id_data)
    for bone in pose_bones:
        if bone != active:
            copy_limit(active, bone)
    return Outcome(tuple(dict.fromkeys((active.name, *(bone.name for bone in pose_bones)))))
