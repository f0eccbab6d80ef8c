# SPDX-License-Identifier: GPL-3.0-or-later
"""Tab "CCD Rig" of the 3D viewport's sidebar, and menus. Imports stand inside the functions."""

FILES = ("bake", "constraints", "bone", "solver", "motion")
"""Files in the order in which their panels appear: first what is in sight also in a low window."""


def _classes() -> list[type]:
    import sys

    from ..ccd_rig.blender.registration import classes_in

    return classes_in(sys.modules[__name__], FILES)


def register() -> None:
    """Register the panels and the entry of the Pose menu."""
    import bpy

    from .constraints import draw_pose_menu

    for panel in _classes():
        bpy.utils.register_class(panel)
    bpy.types.VIEW3D_MT_pose.append(draw_pose_menu)


def unregister() -> None:
    """Unregister the panels and the entry of the Pose menu."""
    import bpy

    from .constraints import draw_pose_menu

    bpy.types.VIEW3D_MT_pose.remove(draw_pose_menu)
    for panel in reversed(_classes()):
        bpy.utils.unregister_class(panel)
