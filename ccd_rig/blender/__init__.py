# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the package that imports bpy, and its registration. Imports are inside the functions."""


def other_copy(package: str) -> str:
    """Return the package of another copy of the extension that is registered; empty if there is none."""
    from bpy import types

    known = types.PropertyGroup.bl_rna_get_subclass_py("CCD_RIG_PG_armature", None)
    module = "" if known is None else known.__module__
    return "" if module.startswith(f"{package}.") else module.partition(".ccd_rig.blender.")[0]


def register() -> None:
    """Register properties, handlers and the command line."""
    from .bake import settings as bake_settings
    from .bake import staleness
    from .cli import command_line
    from .live import handlers
    from .properties import armature_data, coupled_offsets, overrides, renamed_bones
    from .retarget import chosen
    from .scene import isolation
    from .setup_files import regeneration

    bake_settings.register()
    armature_data.register()
    coupled_offsets.register()
    overrides.register()
    renamed_bones.register()
    isolation.register()
    regeneration.register()
    staleness.register()
    chosen.register()
    command_line.register()
    handlers.register()


def unregister() -> None:
    """Unregister everything in reverse order."""
    from .bake import settings as bake_settings
    from .bake import staleness
    from .cli import command_line
    from .live import handlers
    from .properties import armature_data, coupled_offsets, overrides, renamed_bones
    from .retarget import chosen
    from .scene import isolation
    from .setup_files import regeneration

    handlers.unregister()
    command_line.unregister()
    chosen.unregister()
    staleness.unregister()
    regeneration.unregister()
    isolation.unregister()
    renamed_bones.unregister()
    overrides.unregister()
    coupled_offsets.unregister()
    armature_data.unregister()
    bake_settings.unregister()
