# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the setting that helps against what the last bake's report has found."""

from typing import Any

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.bake import findings, report
from ..ccd_rig.blender.bake.pole_place import pole_place
from ..ccd_rig.blender.bake.report import Finding, Fix
from ..ccd_rig.blender.languages.translation import TOOLTIPS, translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_values import value_of
from ..ccd_rig.blender.properties.new_targets import new_target
from ..ccd_rig.errors import CCDRigError
from ..ccd_rig.settings import Solver
from . import poll_reasons
from .telling import tell

SOFT = 0.05
"""Part of its length over which a limb eases into straight."""


class CCD_RIG_OT_report_fix(bpy.types.Operator):
    bl_idname = "ccd_rig.report_fix"
    bl_label = "Fix"
    bl_description = "Change the setting that helps here; then bake again"
    bl_options = {"REGISTER", "UNDO"}

    finding: IntProperty(
        name="Finding", description="Which line of the report", min=0, options={"SKIP_SAVE", "HIDDEN"}
    )

    @classmethod
    def description(cls, context: bpy.types.Context, properties: Any) -> str:
        rig = active_rig(context)
        found = () if rig is None else report.from_json(rig.ccd_rig.report.findings)
        known = properties.finding < len(found)
        words = WORDS[found[properties.finding].fix] if known else cls.bl_description
        return translated(words, TOOLTIPS)

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_findings(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig = active_rig(context)
        found = report.from_json(rig.ccd_rig.report.findings)
        if self.finding >= len(found) or not found[self.finding].fix:
            tell(self, {"ERROR"}, "There is nothing to set for this line of the report")
            return {"CANCELLED"}
        chosen = found[self.finding]
        row = rig.ccd_rig.constraints.get(chosen.constraint)
        if row is None:
            tell(self, {"ERROR"}, f"Constraint '{chosen.constraint}' is not there any more: bake again")
            return {"CANCELLED"}
        try:
            said = _set(context, row, chosen)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        tell(self, {"INFO"}, f"{said}: bake again")
        return {"FINISHED"}


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


def _set(context: bpy.types.Context, row: Any, found: Finding) -> str:
    """Change the setting; what was done, in words."""
    group = row.id_data.ccd_rig
    if found.fix is Fix.EXTENSION:
        row.max_extension = findings.REACH
        return f"Max Extension of '{row.name}' is {findings.REACH:g}"
    if found.fix is Fix.SOFT:
        row.soft = SOFT
        return f"Softness of '{row.name}' is {SOFT:g}"
    if found.fix is Fix.LEAST_SQUARES:
        group.solver.solver = Solver.CCD_LEAST_SQUARES.name
        return "Solver is CCD and Least Squares"
    if found.fix is Fix.FK:
        group.bake.switch_to_fk = True
        return "Switch to FK is on"
    place = pole_place(context.scene, row.id_data, value_of(row), found.frame_start - 1.0)
    pole = new_target(context, row.id_data, f"Pole {row.tip}", row.tip)
    pole.parent, pole.location = row.id_data, place.location
    if place.bone:
        pole.parent_type, pole.parent_bone = "BONE", place.bone
    row.pole_target, row.pole_bone, row.pole_angle = pole, "", 0.0
    return f"'{pole.name}' is the pole of '{row.name}'"
