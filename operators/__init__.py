# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators, one file per subject. Imports stand inside the functions: nothing loads early."""


def _classes() -> list[type]:
    import sys

    from ..ccd_rig.blender.registration import classes_in

    return classes_in(sys.modules[__name__])


def register() -> None:
    """Register the operators."""
    import bpy

    for operator in _classes():
        bpy.utils.register_class(operator)


def unregister() -> None:
    """Unregister the operators."""
    import bpy

    for operator in reversed(_classes()):
        bpy.utils.unregister_class(operator)
