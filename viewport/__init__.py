# SPDX-License-Identifier: GPL-3.0-or-later
"""The 3D viewport's overlay, handles and tool, and the preferences. Imports stand inside the functions."""

from types import ModuleType


def _modules() -> tuple[ModuleType, ...]:
    from . import active_row, drag_tool, limit_handles, online_manual, overlay, preferences, target_handles

    return preferences, overlay, target_handles, limit_handles, active_row, online_manual, drag_tool


def register() -> None:
    """Register the preferences, then the modules that read them."""
    for module in _modules():
        module.register()


def unregister() -> None:
    """Unregister in the opposite order."""
    for module in reversed(_modules()):
        module.unregister()
