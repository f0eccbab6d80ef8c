# SPDX-License-Identifier: GPL-3.0-or-later
"""The extension's entry. Imports stand inside the functions: reading this file never needs Blender."""


def register() -> None:
    """Make properties, operators, panels and what the viewport shows known, each after what it builds on.

    Raises:
        RuntimeError: another copy is enabled, from another repository: their names are the same.
    """
    from contextlib import ExitStack

    from . import operators, panels, viewport
    from .ccd_rig import blender
    from .ccd_rig.blender.languages import translation

    if other := blender.other_copy(__package__ or __name__):
        raise RuntimeError(f"CCD Rig is enabled as '{other}' already: disable or remove that copy first")
    with ExitStack() as undo:
        for part in (translation, blender, operators, panels, viewport):
            part.register()
            undo.callback(part.unregister)
        undo.pop_all()


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
