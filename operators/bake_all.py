# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake every armature of the scene in one pass."""

import bpy

from ..ccd_rig.blender.bake import options
from ..ccd_rig.blender.bake.bake_all import bake_all_steps, rigs
from ..ccd_rig.blender.bake.progress import Steps
from ..ccd_rig.blender.bake.report import BakeReport
from . import poll_reasons
from .modal_steps import ModalSteps, shown_range, tell_report
from .telling import tell


class CCD_RIG_OT_bake_all(ModalSteps, bpy.types.Operator):
    bl_idname = "ccd_rig.bake_all"
    bl_label = "Bake All Rigs"
    bl_description = (
        "Bake all armatures of the scene that have enabled CCD constraints, each with its own options, over "
        "the same frames. Nothing is changed before the last of them is solved; Esc cancels"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(
            cls, "" if rigs(context.scene) else "No armature has an enabled CCD constraint"
        )

    def begin(self, context: bpy.types.Context) -> Steps[list[BakeReport]]:
        frames = shown_range(context.scene)
        settings = {
            each: options.bake_settings(each.ccd_rig.bake, each, frames) for each in rigs(context.scene)
        }
        return bake_all_steps(context.scene, settings)

    def finish(self, reports: list[BakeReport]) -> set[str]:
        for report in reports:
            tell_report(self, report, f"{report.armature}: ")
        missed = [report.armature for report in reports if report.unsolved()]
        words = f"Baked {len(reports)} armatures"
        if missed:
            tell(self, {"WARNING"}, f"{words}; these miss targets: {', '.join(missed)}")
        else:
            tell(self, {"INFO"}, f"{words}; all reach their targets")
        return {"FINISHED"}
