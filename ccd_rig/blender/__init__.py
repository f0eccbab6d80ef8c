# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the package that imports bpy, and its registration. Imports are inside the functions."""

from typing import Any


def other_copy(package: str) -> str:
    """Return the package of another copy of the extension that is registered; empty if there is none."""
    from bpy import types

    known = types.PropertyGroup.bl_rna_get_subclass_py("CCD_RIG_PG_armature", None)
    module = "" if known is None else known.__module__
    return "" if module.startswith(f"{package}.") else module.partition(".ccd_rig.blender.")[0]


def _modules() -> tuple[Any, ...]:
    """Return the modules that register something, in order."""
    from . import live, setup_files
    from .bake import settings, staleness
    from .cli import command_line
    from .properties import active_rig, armature_data, constraint_list, joints, renamed_bones
    from .retarget import clips, retarget
    from .scene import isolation

    return (
        settings,
        armature_data,
        joints,
        constraint_list,
        active_rig,
        renamed_bones,
        isolation,
        setup_files,
        staleness,
        clips,
        retarget,
        command_line,
        live,
    )


def register() -> None:
    """Register properties, handlers and the command line."""
    for module in _modules():
        module.register()


def unregister() -> None:
    """Unregister everything in reverse order."""
    for module in reversed(_modules()):
        module.unregister()
