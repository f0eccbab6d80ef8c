# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the 3D viewport itself: the overlay and the handles. Imports stand inside the functions."""


def register() -> None:
    """Make the preferences known to Blender, then what asks for them."""
    from . import (
        active_row,
        drag_tool,
        limit_handles,
        new_rigs,
        online_manual,
        overlay,
        preferences,
        shortcut,
        target_handles,
    )

    new_rigs.register()
    preferences.register()
    overlay.register()
    target_handles.register()
    limit_handles.register()
    active_row.register()
    online_manual.register()
    shortcut.register()
    drag_tool.register()


def unregister() -> None:
    """Take everything away again."""
    from . import (
        active_row,
        drag_tool,
        limit_handles,
        new_rigs,
        online_manual,
        overlay,
        preferences,
        shortcut,
        target_handles,
    )

    drag_tool.unregister()
    shortcut.unregister()
    online_manual.unregister()
    active_row.unregister()
    limit_handles.unregister()
    target_handles.unregister()
    overlay.unregister()
    preferences.unregister()
    new_rigs.unregister()
