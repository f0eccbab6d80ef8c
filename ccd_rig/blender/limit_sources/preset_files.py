# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of limits that users keep: presets of Blender, in scripts/presets/ccd_rig/limit."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import bpy

from ...errors import RigError
from ..properties.active_rig import keep_overrides
from ..properties.limits import CCD_RIG_PG_limit, copy_limit, limit_of

if TYPE_CHECKING:
    from .bones import Outcome

FOLDER = "ccd_rig/limit"
"""Folder of presets, relative to Blender's folders of presets."""

MENU = "CCD_RIG_MT_limit_presets"
"""Menu of the presets; Blender sets its label to the last one chosen."""

VALUES = [f"bpy.context.active_pose_bone.ccd_rig.limit.{name}" for name in CCD_RIG_PG_limit.__annotations__]
"""Values in a preset, as Blender's presets write them."""


def file_names() -> list[str]:
    """Return the names of the presets' files, without suffix, sorted."""
    folders = [Path(folder) for folder in bpy.utils.preset_paths(FOLDER)]
    return sorted((file.stem for folder in folders for file in folder.glob("*.py")), key=str.casefold)


def apply_file(active: bpy.types.PoseBone, pose_bones: Sequence[bpy.types.PoseBone], path: str) -> Outcome:
    """Apply the limit of a preset file to bones, and to the active one, on which presets run.

    Raises:
        RigError: there is no such file, it does not run, or its limit cannot be. Nothing has changed then.
    """
    from .bones import Outcome

    if not Path(path).is_file():
        raise RigError(f"there is no preset {path or 'without a name'}: choose one of the menu")
    menu, limit = getattr(bpy.types, MENU), active.ccd_rig.limit
    label = menu.bl_label
    values = {name: getattr(limit, name) for name in CCD_RIG_PG_limit.__annotations__}
    before = {k: v if isinstance(v, str | float | bool) else v[:] for k, v in values.items()}
    unset = [name for name in before if not limit.is_property_set(name)]
    try:
        bpy.ops.script.execute_preset(filepath=path, menu_idname=MENU)
        _require_possible(active)
    except (RuntimeError, RigError) as error:
        menu.bl_label = label  # Blender sets the label before it runs the file
        for name, value in before.items():
            setattr(limit, name, value)
        for name in unset:
            limit.property_unset(name)
        raise RigError(f"preset {path}: {error}".strip()) from error
    keep_overrides(active.id_data)
    for bone in pose_bones:
        if bone != active:
            copy_limit(active, bone)
    return Outcome(tuple(dict.fromkeys((active.name, *(bone.name for bone in pose_bones)))))


def _require_possible(pose_bone: bpy.types.PoseBone) -> None:
    """Raises RigError, which names the field, unless a stored limit can be solved with."""
    limit = pose_bone.ccd_rig.limit
    for prop in limit.bl_rna.properties:
        value = getattr(limit, prop.identifier)
        if prop.type == "FLOAT" and not all(map(isfinite, value if prop.is_array else (value,))):
            raise RigError(f"bone '{pose_bone.name}', limit: {prop.name} is not a finite number")
    limit_of(pose_bone.name, "limit", limit)
