# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of constraints, what the active one does, and what to do where there is none yet."""

import bpy

from ..ccd_rig.blender import checks, rows
from .sidebar import Sidebar, active_armature, draw_words

ICONS = {"ERROR": "CANCEL", "WARNING": "ERROR"}  # as Blender names its icons


class CCD_RIG_UL_constraints(bpy.types.UIList):
    """One line per constraint: its name, whether it is sound, and whether it is on."""

    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index, flt_flag):
        line = layout.row(align=True)
        line.active = item.enabled
        line.prop(item, "name", text="", emboss=False, icon="CON_KINEMATIC")
        worst = min(
            (each.severity for each in checks.constraint_problems(item.id_data, item, context.scene)),
            default="",
        )
        if worst and item.enabled:
            line.label(text="", icon=ICONS[worst])
        line.prop(
            item, "enabled", text="", emboss=False, icon="CHECKBOX_HLT" if item.enabled else "CHECKBOX_DEHLT"
        )


class CCD_RIG_PT_constraints(Sidebar, bpy.types.Panel):
    bl_label = "CCD Constraints"

    def draw(self, context):
        armature_object = active_armature(context)
        if armature_object is None or not armature_object.ccd_rig.constraints:
            _draw_first_steps(self.layout, context)
            return
        _draw_list(self.layout, armature_object)
        row = rows.active(armature_object)
        if row is not None:
            if row.enabled:
                _draw_problems(self.layout, context, row)
            _draw_row(self.layout, armature_object, row)


def first_steps(context):
    """What to do until there is a constraint: (done, words) of each step."""
    armature_object = active_armature(context)
    posing = armature_object is not None and context.mode == "POSE"
    return (
        (armature_object is not None, "Select an armature"),
        (posing, "Go to Pose Mode"),
        (posing and context.active_pose_bone is not None, "Select the bone to move"),
        (False, "Add a constraint for it"),
    )


def _draw_first_steps(layout, context):
    steps = first_steps(context)
    lines = layout.column(align=True)
    for done, words in steps:
        lines.label(text=words, icon="CHECKMARK" if done else "LAYER_USED")
    (is_armature, _), (posing, _), *_ = steps
    if is_armature and not posing:
        layout.operator("object.posemode_toggle", text="Pose Mode", icon="POSE_HLT")
    else:
        layout.operator("ccd_rig.constraint_add", text="Add", icon="ADD")


def _draw_list(layout, armature_object):
    group = armature_object.ccd_rig
    line = layout.row()
    line.template_list(
        "CCD_RIG_UL_constraints",
        "",
        group,
        "constraints",
        group,
        "active_index",
        rows=4 if len(group.constraints) > 1 else 3,
    )
    side = line.column(align=True)
    side.operator("ccd_rig.constraint_add", text="", icon="ADD")
    side.operator("ccd_rig.constraint_remove", text="", icon="REMOVE")
    if len(group.constraints) > 1:
        side.separator()
        side.operator("ccd_rig.constraint_move", text="", icon="TRIA_UP").direction = "UP"
        side.operator("ccd_rig.constraint_move", text="", icon="TRIA_DOWN").direction = "DOWN"


def _draw_problems(layout, context, row):
    found = sorted(
        checks.constraint_problems(row.id_data, row, context.scene), key=lambda problem: problem.severity
    )
    if not found:
        return
    box = layout.box()
    for problem in found:
        # The list shows the name already.
        words = problem.message.removeprefix(f"Constraint '{row.name}'").lstrip(": ")
        draw_words(box, context, words[:1].upper() + words[1:], ICONS[problem.severity])


def _draw_row(layout, armature_object, row):
    layout.use_property_split = True
    layout.use_property_decorate = False
    lines = _column(layout, row)
    lines.prop_search(row, "tip", armature_object.pose, "bones")
    lines.prop(row, "chain_length")
    lines.prop(row, "use_tail")
    lines = _column(layout, row)
    lines.prop(row, "target")
    if row.target is not None and row.target.type == "ARMATURE":
        lines.prop_search(row, "target_bone", row.target.pose, "bones", text="Bone")
    elif row.target_bone:  # left over from another target: it can be cleared here
        lines.prop(row, "target_bone", text="Bone")
    lines.prop(row, "offset")
    lines = _column(layout, row)
    influence = lines.column()
    influence.use_property_decorate = True
    influence.prop(row, "influence")
    lines.prop(row, "weight")


def _column(layout, row):
    """A group of fields; pale while the constraint is off."""
    lines = layout.column()
    lines.active = row.enabled
    return lines
