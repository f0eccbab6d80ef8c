# SPDX-License-Identifier: GPL-3.0-or-later
"""The 3D viewport's overlay, handles and tool, and the preferences. Imports stand inside the functions."""

from types import ModuleType


def _modules() -> tuple[ModuleType, ...]:
    from . import drag_tool, limit_handles, online_manual, overlay, preferences, target_handles

    return preferences, overlay, target_handles, limit_handles, online_manual, drag_tool


def _active_row() -> ModuleType:
    from . import active_row

    return active_row


def register() -> None:
    """Register the preferences, then the modules that read them."""
    from ..ccd_rig.blender import listening

    for module in _modules():
        module.register()
    listening.further.append(_active_row)


def unregister() -> None:
    """Unregister in the opposite order."""
    from ..ccd_rig.blender import listening

    listening.further.remove(_active_row)
    for module in reversed(_modules()):
        module.unregister()
