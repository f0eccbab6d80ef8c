# SPDX-License-Identifier: GPL-3.0-or-later
"""The extension's entry. Imports stand inside the functions, so that reading this file never needs Blender."""


def register() -> None:
    """Make the properties, operators and panels known to Blender, in the order in which they build on each other."""
    from . import operators, panels
    from .ccd_rig import blender

    blender.register()
    operators.register()
    panels.register()


def unregister() -> None:
    """Take everything away again, last first."""
    from . import operators, panels
    from .ccd_rig import blender

    panels.unregister()
    operators.unregister()
    blender.unregister()
