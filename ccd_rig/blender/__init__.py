# SPDX-License-Identifier: GPL-3.0-or-later
"""The only code of the solver's package that imports bpy. Imports stand inside the functions."""


def other_copy(package: str) -> str:
    """The package of another copy whose names Blender knows already; empty if there is none."""
    from bpy import types

    known = types.PropertyGroup.bl_rna_get_subclass_py("CCD_RIG_PG_armature", None)
    module = "" if known is None else known.__module__
    return "" if module.startswith(f"{package}.") else module.partition(".ccd_rig.blender.")[0]


def register() -> None:
    """Put the properties on Blender's objects and pose bones, and the command on Blender's command line."""
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
    """Take everything away again."""
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
