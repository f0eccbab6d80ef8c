# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings of the last bake: go to their frames, apply fixes, set markers."""

import math
from typing import Any

import bpy

from ..ccd_rig.blender.bake import findings, report
from ..ccd_rig.blender.bake.report import Finding, Fix
from ..ccd_rig.blender.bake.target_motion import pole_place
from ..ccd_rig.blender.languages.translation import TOOLTIPS, translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_kinds import value_of
from ..ccd_rig.blender.properties.new_targets import new_target
from ..ccd_rig.blender.registration import HIDDEN, ONCE
from ..ccd_rig.errors import RigError
from ..ccd_rig.settings import Solver
from .command import Command


def no_findings(context: bpy.types.Context) -> str:
    """Reason if the last bake's report has no findings."""
    active = active_rig(context)
    if active is None:
        return "Select an armature"
    if not active.ccd_rig.report.words:
        return f"'{active.name}' has not been baked yet"
    return "" if report.from_json(active.ccd_rig.report.findings) else "The report has found nothing"


class CCD_RIG_OT_go_to_frame(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.go_to_frame"
    bl_label = "Go to Frame of Report"
    bl_description = "Go to the frame where this is worst, and show the constraint that it is about"

    finding: HIDDEN.integer(
        "Finding",
        "Which line of the report; -1 is the frame that is farthest off its target",
        default=-1,
        min=-1,
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        active = active_rig(context)
        reason = "" if active is not None else "Select an armature"
        if not reason and not active.ccd_rig.report.words:
            reason = f"'{active.name}' has not been baked yet"
        return reason

    def run(self, context: bpy.types.Context) -> None:
        group = active_rig(context).ccd_rig
        frame, constraint = group.report.worst_frame, group.report.worst_constraint
        if self.finding >= 0:
            entries = report.from_json(group.report.findings)
            if self.finding >= len(entries):
                raise RigError("The report has no such line: bake again")
            frame, constraint = entries[self.finding].frame, entries[self.finding].constraint
        integer = math.floor(frame)
        context.scene.frame_set(integer, subframe=frame - integer)
        index = group.constraints.find(constraint)
        if index >= 0:  # it may have been removed or renamed since
            group.active_index = index


SOFT = 0.05
"""Part of its length over which a limb eases into straightness."""


class CCD_RIG_OT_report_fix(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.report_fix"
    bl_label = "Fix"
    bl_description = "Change the setting that helps here; then bake again"

    finding: HIDDEN.integer("Finding", "Which line of the report", min=0)

    @classmethod
    def description(cls, context: bpy.types.Context, properties: Any) -> str:
        rig = active_rig(context)
        entries = () if rig is None else report.from_json(rig.ccd_rig.report.findings)
        is_known = properties.finding < len(entries)
        words = WORDS[entries[properties.finding].fix] if is_known else cls.bl_description
        return translated(words, TOOLTIPS)

    why_grey = staticmethod(no_findings)

    def run(self, context: bpy.types.Context) -> None:
        rig = active_rig(context)
        entries = report.from_json(rig.ccd_rig.report.findings)
        if self.finding >= len(entries) or not entries[self.finding].fix:
            raise RigError("There is nothing to set for this line of the report")
        chosen = entries[self.finding]
        row = rig.ccd_rig.constraints.get(chosen.constraint)
        if row is None:
            raise RigError(f"Constraint '{chosen.constraint}' is not there any more: bake again")
        said = _apply_fix(context, row, chosen)
        self.tell("INFO", f"{said}: bake again")


WORDS = {
    Fix.NONE: "Nothing to set",
    Fix.EXTENSION: f"Set Max Extension of the constraint to {findings.REACH:g}: the limb is never quite "
    "straight, where it would snap",
    Fix.SOFT: f"Set Softness of the constraint to {SOFT:g}: the limb eases into straight",
    Fix.POLE: "Add an empty as the constraint's pole, on the side to which the chain is bent before it jumps",
    Fix.LEAST_SQUARES: "Set Solver to CCD and Least Squares, which spreads sudden changes over frames",
    Fix.FK: "Let the bake key the rig's switch between IK and FK to FK over its range: baked bones then move "
    "the others",
}


def _apply_fix(context: bpy.types.Context, row: Any, finding: Finding) -> str:
    """Apply the fix of a finding to its constraint, and describe the change."""
    group = row.id_data.ccd_rig
    if finding.fix is Fix.EXTENSION:
        row.max_extension = findings.REACH
        return f"Max Extension of '{row.name}' is {findings.REACH:g}"
    if finding.fix is Fix.SOFT:
        row.soft = SOFT
        return f"Softness of '{row.name}' is {SOFT:g}"
    if finding.fix is Fix.LEAST_SQUARES:
        group.solver.solver = Solver.CCD_LEAST_SQUARES.name
        return "Solver is CCD and Least Squares"
    if finding.fix is Fix.FK:
        group.bake.switch_to_fk = True
        return "Switch to FK is on"
    place = pole_place(context.scene, row.id_data, value_of(row), finding.frame_start - 1.0)
    pole = new_target(context, row.id_data, f"Pole {row.tip}", row.tip)
    pole.parent, pole.location = row.id_data, place.location
    if place.bone:
        pole.parent_type, pole.parent_bone = "BONE", place.bone
    row.pole_target, row.pole_bone, row.pole_angle = pole, "", 0.0
    return f"'{pole.name}' is the pole of '{row.name}'"


PREFIX = "CCD: "
"""Prefix of the markers' names, by which later calls remove them."""


class CCD_RIG_OT_report_markers(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.report_markers"
    bl_label = "Mark Findings"
    bl_description = "Mark what the report has found in the timeline, in place of such markers of before"

    clear: ONCE.boolean("Clear", "Only take such markers away", default=False)

    why_grey = staticmethod(no_findings)

    def run(self, context: bpy.types.Context) -> None:
        markers = context.scene.timeline_markers
        for marker in [marker for marker in markers if marker.name.startswith(PREFIX)]:
            markers.remove(marker)
        if self.clear:
            return
        entries = report.from_json(active_rig(context).ccd_rig.report.findings)
        for finding in entries:
            upto = "" if finding.frame_start == finding.frame_end else f" to {finding.frame_end:g}"
            words = translated(f"{PREFIX}{finding.label()}{upto}")  # translations keep the prefix
            markers.new(words, frame=round(finding.frame_start))
        self.tell("INFO", f"{len(entries)} marker{'' if len(entries) == 1 else 's'} in the timeline")
