# SPDX-License-Identifier: GPL-3.0-or-later
"""The extension's entry. Imports stand inside the functions: reading this file never needs Blender."""


def register() -> None:
    """Make properties, operators, panels and what the viewport shows known, each after what it builds on."""
    from . import operators, panels, viewport
    from .ccd_rig import blender
    from .ccd_rig.blender.languages import translation

    translation.register()
    blender.register()
    operators.register()
    panels.register()
    viewport.register()


def unregister() -> None:
    """Take everything away again, last first."""
    from . import operators, panels, viewport
    from .ccd_rig import blender
    from .ccd_rig.blender.languages import translation

    viewport.unregister()
    panels.unregister()
    operators.unregister()
    blender.unregister()
    translation.unregister()
