# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user can do: one file per verb. Imports stand inside the functions: nothing loads early."""


def _classes() -> tuple[type, ...]:
    from .bake import CCD_RIG_OT_bake
    from .constraint_add import CCD_RIG_OT_constraint_add
    from .constraint_kind import CCD_RIG_OT_constraint_kind
    from .constraint_move import CCD_RIG_OT_constraint_move
    from .constraint_remove import CCD_RIG_OT_constraint_remove
    from .contacts_find import CCD_RIG_OT_contacts_find
    from .coupled_offset_add import CCD_RIG_OT_coupled_offset_add
    from .coupled_offset_remove import CCD_RIG_OT_coupled_offset_remove
    from .feet_plant import CCD_RIG_OT_feet_plant
    from .figure_set_up import CCD_RIG_OT_figure_set_up
    from .go_to_frame import CCD_RIG_OT_go_to_frame
    from .ik_convert import CCD_RIG_OT_ik_convert
    from .ik_restore import CCD_RIG_OT_ik_restore
    from .live import CCD_RIG_OT_live
    from .offset_point_add import CCD_RIG_OT_offset_point_add
    from .offset_point_remove import CCD_RIG_OT_offset_point_remove
    from .pose_apply import CCD_RIG_OT_pose_apply
    from .pose_capture import CCD_RIG_OT_pose_capture
    from .pose_remove import CCD_RIG_OT_pose_remove
    from .poses_export import CCD_RIG_OT_poses_export
    from .poses_import import CCD_RIG_OT_poses_import
    from .report_fix import CCD_RIG_OT_report_fix
    from .report_markers import CCD_RIG_OT_report_markers
    from .solve import CCD_RIG_OT_solve
    from .solver_preset import CCD_RIG_OT_solver_preset
    from .target_select import CCD_RIG_OT_rig_select, CCD_RIG_OT_target_select
    from .targets_from_motion import CCD_RIG_OT_targets_from_motion
    from .targets_match import CCD_RIG_OT_targets_match

    return (
        CCD_RIG_OT_constraint_add,
        CCD_RIG_OT_constraint_remove,
        CCD_RIG_OT_constraint_kind,
        CCD_RIG_OT_constraint_move,
        CCD_RIG_OT_ik_convert,
        CCD_RIG_OT_ik_restore,
        CCD_RIG_OT_figure_set_up,
        CCD_RIG_OT_feet_plant,
        CCD_RIG_OT_contacts_find,
        CCD_RIG_OT_target_select,
        CCD_RIG_OT_rig_select,
        CCD_RIG_OT_targets_match,
        CCD_RIG_OT_targets_from_motion,
        CCD_RIG_OT_coupled_offset_add,
        CCD_RIG_OT_coupled_offset_remove,
        CCD_RIG_OT_offset_point_add,
        CCD_RIG_OT_offset_point_remove,
        *_limit_classes(),
        CCD_RIG_OT_live,
        CCD_RIG_OT_solve,
        CCD_RIG_OT_solver_preset,
        CCD_RIG_OT_bake,
        CCD_RIG_OT_go_to_frame,
        CCD_RIG_OT_report_fix,
        CCD_RIG_OT_report_markers,
        CCD_RIG_OT_pose_capture,
        CCD_RIG_OT_pose_remove,
        CCD_RIG_OT_pose_apply,
        CCD_RIG_OT_poses_export,
        CCD_RIG_OT_poses_import,
    )


def _limit_classes() -> tuple[type, ...]:
    from .limit_from_pose import CCD_RIG_OT_limit_from_pose
    from .limits_copy import CCD_RIG_OT_limits_copy
    from .limits_from_action import CCD_RIG_OT_limits_from_action
    from .limits_from_constraints import CCD_RIG_OT_limits_from_constraints
    from .limits_from_ik import CCD_RIG_OT_limits_from_ik
    from .limits_mirror import CCD_RIG_OT_limits_mirror
    from .setup_load import CCD_RIG_OT_setup_load
    from .setup_restore import CCD_RIG_OT_setup_restore
    from .setup_save import CCD_RIG_OT_setup_save

    return (
        CCD_RIG_OT_limit_from_pose,
        CCD_RIG_OT_limits_copy,
        CCD_RIG_OT_limits_mirror,
        CCD_RIG_OT_limits_from_ik,
        CCD_RIG_OT_limits_from_constraints,
        CCD_RIG_OT_limits_from_action,
        CCD_RIG_OT_setup_save,
        CCD_RIG_OT_setup_load,
        CCD_RIG_OT_setup_restore,
    )


def register() -> None:
    """Make the operators known to Blender."""
    import bpy

    for operator in _classes():
        bpy.utils.register_class(operator)


def unregister() -> None:
    """Take them away again."""
    import bpy

    for operator in reversed(_classes()):
        bpy.utils.unregister_class(operator)
