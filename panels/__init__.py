# SPDX-License-Identifier: GPL-3.0-or-later
"""Tab "CCD Rig" of the 3D viewport's sidebar, and menus. Imports stand inside the functions."""

FILES = ("bake", "constraints", "bone", "solver", "motion")
"""Files in the order in which their panels appear: first what is in sight also in a low window."""


def register() -> None:
    """Register the panels and the entry of the Pose menu."""
    from bpy import types

    from ..ccd_rig.blender.registration import register_classes
    from .constraints import draw_pose_menu

    register_classes(__name__, FILES)
    types.VIEW3D_MT_pose.append(draw_pose_menu)


def unregister() -> None:
    """Unregister the panels and the entry of the Pose menu."""
    from bpy import types

    from ..ccd_rig.blender.registration import unregister_classes
    from .constraints import draw_pose_menu

    types.VIEW3D_MT_pose.remove(draw_pose_menu)
    unregister_classes(__name__, FILES)
