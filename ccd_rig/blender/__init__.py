# SPDX-License-Identifier: GPL-3.0-or-later
"""The only code of the solver's package that imports bpy. Imports stand inside the functions."""


def register() -> None:
    """Put the properties on Blender's objects and pose bones, and the command on Blender's command line."""
    from . import cli, overrides, properties

    properties.register()
    overrides.register()
    cli.register()


def unregister() -> None:
    """Take everything away again."""
    from . import cli, overrides, properties

    cli.unregister()
    overrides.unregister()
    properties.unregister()
