# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels of constraints: list, first steps, settings of the active one, contacts; menus of a rig."""

from typing import Any

import bpy

from ..ccd_rig.blender.languages.translation import CONTEXT, translated
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig, linked
from ..ccd_rig.blender.properties.constraint_kinds import CCD_RIG_PG_constraint, body_words, kind_of
from ..ccd_rig.blender.properties.constraint_list import influence_curve, planted_spans
from ..ccd_rig.blender.properties.constraint_values import PLANT
from .sidebar import Folded, Rows, Sidebar, draw_line, draw_words, wrapped

ICONS = {"ERROR": "CANCEL", "WARNING": "ERROR"}  # as Blender names its icons


class CCD_RIG_UL_constraints(Rows, bpy.types.UIList):
    """List of constraints: name, problems, and the switch of each."""

    def draw_row(self, context: bpy.types.Context, line: bpy.types.UILayout, data: Any, item: Any) -> None:
        from ..ccd_rig.blender import checks

        line.active = item.enabled
        line.prop(item, "name", text="", emboss=False, icon=kind_of(item).icon)
        worst = min(
            (problem.severity for problem in checks.constraint_problems(item.id_data, item, context.scene)),
            default="",
        )
        if worst and item.enabled:
            line.label(text="", icon=ICONS[worst])
        line.prop(
            item, "enabled", text="", emboss=False, icon="CHECKBOX_HLT" if item.enabled else "CHECKBOX_DEHLT"
        )


class CCD_RIG_MT_constraints(bpy.types.Menu):
    """Commands for all constraints."""

    bl_label = "CCD Constraints"

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.operator("ccd_rig.figure_set_up", icon="OUTLINER_OB_ARMATURE")
        self.layout.operator("ccd_rig.ik_convert", icon="CON_KINEMATIC")
        self.layout.operator("ccd_rig.ik_restore", icon="LOOP_BACK")
        self.layout.separator()
        draw_setup(self.layout, context)


def draw_setup(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the commands for set-up files."""
    from ..ccd_rig.blender.figures.rigify import is_generated

    layout.operator_context = "INVOKE_DEFAULT"  # asks for a file, wherever the menu is opened
    layout.operator("ccd_rig.setup_save", text="Save Set-Up of Rig...", icon="EXPORT")
    layout.operator("ccd_rig.setup_load", text="Load Set-Up of Rig...", icon="IMPORT")
    layout.operator("ccd_rig.constraints_remove", icon="X")
    rig = active_rig(context)
    if rig is not None and is_generated(rig.data):
        layout.operator("ccd_rig.setup_restore")


class CCD_RIG_MT_pose(bpy.types.Menu):
    """Commands for a rig, in the viewport's Pose menu; menu search lists them too."""

    bl_label = "CCD Rig"

    def draw(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import convert

        layout, rig = self.layout, active_rig(context)
        if rig is None:
            return
        layout.operator("ccd_rig.figure_set_up", icon="OUTLINER_OB_ARMATURE")
        layout.operator("ccd_rig.constraint_add", icon="ADD")
        if convert.is_offered(rig):
            layout.operator("ccd_rig.ik_convert", icon="CON_KINEMATIC")
        if next(convert.converted(rig), None) is not None:
            layout.operator("ccd_rig.ik_restore", icon="LOOP_BACK")
        layout.menu("CCD_RIG_MT_limits")
        layout.separator()
        layout.operator("ccd_rig.drag")
        layout.operator("ccd_rig.pin", icon="PINNED")
        draw_setup(layout, context)
        if not len(rig.ccd_rig.constraints):
            return
        layout.separator()
        layout.operator("ccd_rig.feet_plant")
        layout.operator("ccd_rig.contacts_find")
        layout.operator("ccd_rig.targets_match")
        layout.operator("ccd_rig.targets_from_motion")
        layout.separator()
        layout.operator("ccd_rig.live", icon="CHECKBOX_HLT" if rig.ccd_rig.live else "CHECKBOX_DEHLT")
        layout.operator("ccd_rig.solve")
        layout.operator("ccd_rig.bake", icon="ACTION")
        layout.operator("ccd_rig.bake_all", icon="ARMATURE_DATA")
        layout.operator("ccd_rig.farm", text="Farm...", icon="EXPORT")


def draw_pose_menu(self: bpy.types.Menu, context: bpy.types.Context) -> None:
    """Draw the entry "CCD Rig" of the viewport's Pose menu."""
    if active_rig(context) is not None:
        self.layout.separator()
        self.layout.menu("CCD_RIG_MT_pose")


class CCD_RIG_PT_constraints(Sidebar, bpy.types.Panel):
    bl_label = "CCD Constraints"

    @classmethod
    def poll(cls, _context: bpy.types.Context) -> bool:
        return True  # without an armature it shows the first steps

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        armature_object = active_rig(context)
        if armature_object is not None and armature_object.ccd_rig.constraints:
            on = armature_object.ccd_rig.live
            icon = "RADIOBUT_ON" if on else "RADIOBUT_OFF"
            self.layout.operator("ccd_rig.live", text="Live", icon=icon, depress=on)

    def draw(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import live

        armature_object = active_rig(context)
        shown = instanced_rig(context) if armature_object is None else armature_object
        if shown is not None and (words := linked(shown)):
            draw_words(self.layout, context, words, "LIBRARY_DATA_DIRECT")
        if armature_object is None or not armature_object.ccd_rig.constraints:
            _draw_first_steps(self.layout, context)
            return
        if armature_object != context.object:
            line = self.layout.row()
            line.label(text=translated(f"Target of '{armature_object.name}'"), icon="EMPTY_DATA")
            line.operator("ccd_rig.rig_select", icon="BACK")
        if preview := live.preview_of(armature_object):
            for note in preview.notes():
                draw_words(self.layout, context, note, "CANCEL" if preview.failure else "INFO")
        _draw_list(self.layout, armature_object)
        constraint = constraint_list.active(armature_object)
        if constraint is not None:
            if constraint.enabled:
                _draw_problems(self.layout, context, constraint)
            _draw_row(self.layout, context, armature_object, constraint)


class _ConstraintPanel(Folded):
    """A folded panel of the active constraint, for the kinds that have it; see `Kind.panels`."""

    bl_parent_id = "CCD_RIG_PT_constraints"
    panel_name = ""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        armature_object = active_rig(context)
        constraint = None if armature_object is None else constraint_list.active(armature_object)
        return constraint is not None and cls.panel_name in kind_of(constraint).panels

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.fields()
        constraint = constraint_list.active(active_rig(context))
        self.draw_fields(_column(layout, constraint), constraint)


class CCD_RIG_PT_rotation(_ConstraintPanel, bpy.types.Panel):
    bl_label = "Rotation"
    panel_name = "rotation"

    def draw_fields(self, lines: bpy.types.UILayout, constraint: Any) -> None:
        lines.prop(constraint, "rotation")
        if constraint.rotation == "DIRECTION":
            lines.prop(constraint, "bone_axis")
            lines.prop(constraint, "target_axis")
        weight = lines.column()
        weight.active = constraint.rotation != "NONE"
        weight.prop(constraint, "rotation_weight", text="Weight", text_ctxt=CONTEXT)


class CCD_RIG_PT_pole(_ConstraintPanel, bpy.types.Panel):
    bl_label = "Pole"
    bl_translation_context = CONTEXT
    panel_name = "pole"

    def draw_fields(self, lines: bpy.types.UILayout, constraint: Any) -> None:
        lines.prop(constraint, "pole_target", text="Target")
        _draw_bone(lines, constraint, constraint.pole_target, "pole_bone")
        angle = lines.column()
        angle.active = constraint.pole_target is not None
        angle.prop(constraint, "pole_angle", text="Angle")


class CCD_RIG_PT_importance(_ConstraintPanel, bpy.types.Panel):
    bl_label = "Priority and Extension"
    panel_name = "importance"

    def draw_fields(self, lines: bpy.types.UILayout, constraint: Any) -> None:
        lines.prop(constraint, "priority")
        lines.prop(constraint, "weight")
        if "extension" in kind_of(constraint).panels:
            lines.prop(constraint, "max_extension")
            bones = lines.column()
            bones.active = constraint.max_extension < 1.0
            bones.prop(constraint, "extension_joints")


class CCD_RIG_PT_method(_ConstraintPanel, bpy.types.Panel):
    bl_label = "Method"
    panel_name = "method"

    def draw_fields(self, lines: bpy.types.UILayout, constraint: Any) -> None:
        lines.prop(constraint, "method")
        soft = lines.column()
        soft.active = constraint.method != "TRIANGLE" and constraint.use_position
        soft.prop(constraint, "soft")


class CCD_RIG_PT_effector(_ConstraintPanel, bpy.types.Panel):
    bl_label = "Effector"
    panel_name = "effector"

    def draw_fields(self, lines: bpy.types.UILayout, constraint: Any) -> None:
        place = lines.column()
        place.active = constraint.use_position
        place.prop(constraint, "effector_offset", text="Offset")
        turned = lines.column()
        turned.active = constraint.rotation != "NONE"
        turned.prop_search(constraint, "rotation_bone", constraint.id_data.pose, "bones")


def instanced_rig(context: bpy.types.Context) -> bpy.types.Object | None:
    """Armature that the active object shows by an instance of its collection; None for none."""
    shown = None if context.object is None else context.object.instance_collection
    objects = () if shown is None else shown.all_objects
    return next((each for each in objects if each.type == "ARMATURE"), None)


UNBOXED = -16  # [pixels] what words need beside them without a box, less than with one, at scale 1


def first_steps(context: bpy.types.Context) -> tuple[tuple[bool, str], ...]:
    """Steps to a first constraint: (done, words)."""
    armature_object = active_rig(context)
    posing = armature_object is not None and context.mode == "POSE"
    return (
        (armature_object is not None, "Select an armature"),
        (posing, "Go to Pose Mode"),
        (posing and context.active_pose_bone is not None, "Select the bone to move"),
        (False, "Add a constraint for it"),
    )


def _draw_first_steps(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    from ..ccd_rig.blender import convert

    steps = first_steps(context)
    lines = layout.column(align=True)
    for done, words in steps:
        for i, line in enumerate(wrapped(context, words, UNBOXED)):
            icon = "BLANK1" if i else "CHECKMARK" if done else "LAYER_USED"
            lines.label(text=line, icon=icon, translate=False)
    (is_armature, _), (posing, _), *_ = steps
    if is_armature and not posing:
        layout.operator("object.posemode_toggle", text="Pose Mode", icon="POSE_HLT")
    else:
        layout.operator("ccd_rig.constraint_add", text="Add", icon="ADD")
    if is_armature:
        layout.operator("ccd_rig.figure_set_up", icon="OUTLINER_OB_ARMATURE")
    rig = active_rig(context)
    if rig is not None and convert.is_offered(rig):
        layout.operator("ccd_rig.ik_convert", icon="CON_KINEMATIC")


def _draw_list(layout: bpy.types.UILayout, armature_object: bpy.types.Object) -> None:
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
    side.menu("CCD_RIG_MT_constraints", text="", icon="DOWNARROW_HLT")
    if len(group.constraints) > 1:
        side.separator()
        side.operator("ccd_rig.constraint_move", text="", icon="TRIA_UP").direction = "UP"
        side.operator("ccd_rig.constraint_move", text="", icon="TRIA_DOWN").direction = "DOWN"


def _draw_problems(layout: bpy.types.UILayout, context: bpy.types.Context, constraint: Any) -> None:
    from ..ccd_rig.blender import checks

    problems = sorted(
        checks.constraint_problems(constraint.id_data, constraint, context.scene),
        key=lambda problem: problem.severity,
    )
    if not problems:
        return
    box = layout.box()
    for problem in problems:
        # The list has the name.
        name = translated(f"Constraint '{constraint.name}'")
        words = translated(problem.message).removeprefix(name).lstrip(": \uff1a")
        draw_words(box, context, words[:1].upper() + words[1:], ICONS[problem.severity])


def _draw_row(
    layout: bpy.types.UILayout,
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    constraint: Any,
) -> None:
    layout.use_property_split = True
    layout.use_property_decorate = False
    lines = _column(layout, constraint)
    _draw_kind(lines, constraint)
    lines.prop_search(constraint, "tip", armature_object.pose, "bones")
    lines.prop(constraint, "chain_length")
    _draw_chain(lines, armature_object, constraint)
    lines = _column(layout, constraint)
    target = lines.row(align=True)
    target.prop(constraint, "target")
    if constraint.target is not None:
        target.operator("ccd_rig.target_select", text="", icon="RESTRICT_SELECT_OFF")
    _draw_bone(lines, constraint, constraint.target, "target_bone")
    kind = kind_of(constraint)
    if kind.needs_target or constraint.target is not None:
        lines.prop(constraint, "offset")
        lines.prop(constraint, "offset_space")
        if constraint.target is not None:
            lines.operator("ccd_rig.offset_raise", icon="ACTION_TWEAK")
    for line in kind.lines(constraint):
        draw_line(lines, context, line)
    lines = _column(layout, constraint)
    influence = lines.column()
    influence.use_property_decorate = True
    influence.prop(constraint, "influence")


def _draw_kind(lines: bpy.types.UILayout, constraint: Any) -> None:
    """Draw the kind as a menu of a command, which changes chain and target too."""
    line = lines.split(factor=0.4)
    label = line.row()
    label.alignment = "RIGHT"
    label.label(text="Kind")
    words = constraint.bl_rna.properties["kind"].enum_items
    name = words[constraint.kind].name if constraint.kind in words else "Choose"
    line.operator_menu_enum("ccd_rig.constraint_kind", "kind", text=name, icon=kind_of(constraint).icon)


def _draw_bone(
    lines: bpy.types.UILayout, constraint: Any, target: bpy.types.Object | None, field: str
) -> None:
    """Draw the bone of a target; a bone that is left from another target can be cleared."""
    if target is not None and target.type == "ARMATURE":
        lines.prop_search(constraint, field, target.pose, "bones", text="Bone")
    elif getattr(constraint, field):
        lines.prop(constraint, field, text="Bone")


def _draw_chain(lines: bpy.types.UILayout, armature_object: bpy.types.Object, constraint: Any) -> None:
    """Draw a line about the chain: its end, and the bones that do not turn."""
    chain = constraint_list.chain_of(armature_object, constraint)
    if not chain:
        return
    kind = kind_of(constraint)
    words = [kind.chain_words(chain)]
    if not kind.plants:
        words += body_words(armature_object, chain)
    for i, line in enumerate(words):
        lines.label(text=translated(line), icon="BLANK1" if i else "INFO")


def _column(layout: bpy.types.UILayout, constraint: Any) -> bpy.types.UILayout:
    """Make a column of fields, pale while the constraint is disabled."""
    lines = layout.column()
    lines.active = constraint.enabled
    return lines


class CCD_RIG_PT_contacts(Folded, bpy.types.Panel):
    bl_label = "Feet and Contacts"
    bl_parent_id = "CCD_RIG_PT_constraints"

    def draw(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.bake.frame_selection import key_time

        layout = self.layout
        layout.operator("ccd_rig.feet_plant", icon="PINNED")
        plants = [row for row in active_rig(context).ccd_rig.constraints if row.kind == PLANT]
        if not plants:
            return
        layout.operator("ccd_rig.contacts_find", icon="VIEWZOOM")
        for row in plants:
            draw_words(layout, context, f"{row.name}: {when_planted(row, key_time(context.scene))}", "PINNED")


def when_planted(row: CCD_RIG_PG_constraint, time: float) -> str:
    """Describe the frames in which a bone is planted; `time`: from frames to the time of keys."""
    if spans := planted_spans(row, time):
        return ", ".join(f"{first}–{'' if last is None else last}" for first, last in spans)
    return "in all frames" if row.influence > 0.5 and influence_curve(row) is None else "in no frame"
