# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that help against findings of a report."""

from __future__ import annotations

from typing import Any

import bpy

from ...settings import Solver
from ..properties.constraint_kinds import value_of
from ..properties.new_constraints import new_target
from .findings import REACH
from .report import Finding
from .target_motion import pole_place
from .trouble import Fix

SOFT = 0.05
"""Part of its length over which a limb eases into straightness."""

FIX_WORDS = {
    Fix.NONE: "Nothing to set",
    Fix.EXTENSION: f"Set Max Extension of the constraint to {REACH:g}: the limb is never quite "
    "straight, where it would snap",
    Fix.SOFT: f"Set Softness of the constraint to {SOFT:g}: the limb eases into straight",
    Fix.POLE: "Add an empty as the constraint's pole, on the side to which the chain is bent before it jumps",
    Fix.LEAST_SQUARES: "Set Solver to CCD and Least Squares, which spreads sudden changes over frames",
    Fix.FK: "Let the bake key the rig's switch between IK and FK to FK over its range: baked bones then move "
    "the others",
}


def apply_fix(context: bpy.types.Context, row: Any, finding: Finding) -> str:
    """Apply the fix of a finding to its constraint, and describe the change."""
    group = row.id_data.ccd_rig
    if finding.fix is Fix.EXTENSION:
        row.max_extension = REACH
        return f"Max Extension of '{row.name}' is {REACH:g}"
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
