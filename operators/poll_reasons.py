# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a button is grey: the questions that polls share. Each gives the reason in words, or none."""

import bpy

from ..ccd_rig.blender.bake import report
from ..ccd_rig.blender.languages.translation import TOOLTIPS, translated
from ..ccd_rig.blender.properties import pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig, linked


def no_armature(context: bpy.types.Context) -> str:
    """No armature is active, or it cannot be changed."""
    active = active_rig(context)
    if active is None:
        return "Select an armature"
    if reason := linked(active):
        return reason
    if active.mode == "EDIT":
        return "Leave Edit Mode: go to Pose Mode"
    return ""


def not_posing(context: bpy.types.Context) -> str:
    """No armature is in Pose Mode, or its pose is not shown."""
    if reason := no_armature(context):
        return reason
    if context.mode != "POSE" or context.object.mode != "POSE":
        return "Go to Pose Mode"
    if context.object.data.pose_position == "REST":
        return f"'{context.object.name}' is shown in Rest Position: switch it to Pose Position"
    return ""


def no_pose_bone(context: bpy.types.Context) -> str:
    """There is no armature in Pose Mode with an active bone."""
    if reason := no_armature(context):
        return reason
    if context.active_pose_bone is None:
        return "Select a bone in Pose Mode"
    return ""


def no_coupled_offset(context: bpy.types.Context) -> str:
    """There is no active bone, or it has no coupled offset."""
    if reason := no_pose_bone(context):
        return reason
    if not context.active_pose_bone.ccd_rig.coupled_offsets:
        return f"Bone '{context.active_pose_bone.name}' has no coupled offset: add one"
    return ""


def no_constraint(context: bpy.types.Context) -> str:
    """There is no armature, or no constraint on it."""
    if reason := no_armature(context):
        return reason
    if not active_rig(context).ccd_rig.constraints:
        return f"'{active_rig(context).name}' has no CCD constraint: select a bone in Pose Mode and add one"
    return ""


def none_enabled(context: bpy.types.Context) -> str:
    """There is no constraint to solve."""
    if reason := no_constraint(context):
        return reason
    if not any(constraint.enabled for constraint in active_rig(context).ccd_rig.constraints):
        return f"All constraints of '{active_rig(context).name}' are disabled: enable one"
    return ""


def no_poses(context: bpy.types.Context) -> str:
    """There is no armature, or its pose library is empty."""
    if reason := no_armature(context):
        return reason
    if not active_rig(context).ccd_rig.poses:
        return f"The pose library of '{active_rig(context).name}' is empty: capture a pose first"
    return ""


def no_pose(context: bpy.types.Context) -> str:
    """No pose of the library is chosen."""
    if reason := no_poses(context):
        return reason
    return "" if pose_library.active(active_rig(context)) is not None else "Choose a pose in the list"


def no_source(context: bpy.types.Context) -> str:
    """There is no armature, or no other one whose motion it could get."""
    if reason := no_armature(context):
        return reason
    source = active_rig(context).ccd_rig.retarget.source
    return "" if source is not None else "Choose the source: the armature that has the motion"


def no_pairs(context: bpy.types.Context) -> str:
    """There is no armature, or its map is empty."""
    if reason := no_armature(context):
        return reason
    return "" if active_rig(context).ccd_rig.retarget.pairs else "The map is empty: find bones first"


def no_findings(context: bpy.types.Context) -> str:
    """The last bake's report has nothing to show."""
    active = active_rig(context)
    if active is None:
        return "Select an armature"
    if not active.ccd_rig.report.words:
        return f"'{active.name}' has not been baked yet"
    return "" if report.from_json(active.ccd_rig.report.findings) else "The report has found nothing"


def selected_bones(context: bpy.types.Context, rig: bpy.types.Object) -> list[str]:
    """Names of an armature's bones that are selected in Pose Mode, in its order; none outside that."""
    selected = {bone.name for bone in context.selected_pose_bones or () if bone.id_data == rig}
    return [bone.name for bone in rig.pose.bones if bone.name in selected]


def poll(operator: type[bpy.types.Operator], reason: str) -> bool:
    """Whether there is no reason to be grey; a reason goes to the button's tooltip."""
    if reason:
        operator.poll_message_set(translated(reason, TOOLTIPS))
    return not reason
