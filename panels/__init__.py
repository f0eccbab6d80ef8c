# SPDX-License-Identifier: GPL-3.0-or-later
"""Tab "CCD Rig" of the 3D viewport's sidebar, and menus. Imports stand inside the functions."""

ORDER = (
    "CCD_RIG_PT_bake",  # first: it is in sight also in a low window
    "CCD_RIG_PT_bake_options",
    "CCD_RIG_PT_bake_more",
    "CCD_RIG_PT_fk_ik",
    "CCD_RIG_UL_constraints",
    "CCD_RIG_MT_constraints",
    "CCD_RIG_PT_constraints",
    "CCD_RIG_PT_rotation",
    "CCD_RIG_PT_pole",
    "CCD_RIG_PT_importance",
    "CCD_RIG_PT_method",
    "CCD_RIG_PT_effector",
    "CCD_RIG_PT_contacts",
    "CCD_RIG_MT_limit_presets",
    "CCD_RIG_MT_limit_presets_remove",
    "CCD_RIG_MT_limits",
    "CCD_RIG_PT_bone",
    "CCD_RIG_PT_comfort",
    "CCD_RIG_PT_slide",
    "CCD_RIG_PT_coupled_offsets",
    "CCD_RIG_PT_mass",
    "CCD_RIG_PT_solver",
    "CCD_RIG_PT_solver_steps",
    "CCD_RIG_UL_poses",
    "CCD_RIG_MT_poses",
    "CCD_RIG_PT_pose_library",
    "CCD_RIG_UL_bone_pairs",
    "CCD_RIG_PT_retarget",
    "CCD_RIG_PT_retarget_map",
    "CCD_RIG_PT_retarget_effectors",
    "CCD_RIG_PT_retarget_options",
    "CCD_RIG_PT_walk",
    "CCD_RIG_PT_walk_options",
    "CCD_RIG_MT_pose",
)
"""Order of registration: panels come after their parents, and appear in this order."""


def _classes() -> list[type]:
    import sys

    from ..ccd_rig.blender.registration import classes_in

    return sorted(classes_in(sys.modules[__name__]), key=lambda each: ORDER.index(each.__name__))


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
