# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators, one file per subject. Imports stand inside the functions: nothing loads early."""


def register() -> None:
    """Register the operators."""
    from ..ccd_rig.blender.registration import register_classes

    register_classes(__name__)


def unregister() -> None:
    """Unregister the operators."""
    from ..ccd_rig.blender.registration import unregister_classes

    unregister_classes(__name__)
