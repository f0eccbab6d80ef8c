# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a job for a render farm that bakes the open file."""

from pathlib import Path

import bpy
from bpy.props import BoolProperty, IntProperty, StringProperty

from ..ccd_rig.blender.bake import options
from ..ccd_rig.blender.bake.bake_all import rigs
from ..ccd_rig.blender.farm import bundle, job, records
from ..ccd_rig.blender.farm.bundle import bundle_job
from ..ccd_rig.blender.farm.job import Shot
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .modal_steps import shown_range
from .telling import tell


def _reason(context: bpy.types.Context) -> str:
    if not rigs(context.scene):
        return "No armature has an enabled CCD constraint"
    return "" if bpy.data.filepath else "Save the file: a farm bakes what is on the disk"


class CCD_RIG_OT_farm(bpy.types.Operator):
    bl_idname = "ccd_rig.farm"
    bl_label = "Write Farm Job"
    bl_description = (
        "Write a job bundle (Open Job Description) that bakes all armatures of the saved file with enabled "
        "CCD constraints on a render farm, each with its own options"
    )
    bl_options = {"REGISTER"}

    directory: StringProperty(
        name="Folder", description="Where the folder of the job goes", subtype="DIR_PATH"
    )
    filter_folder: BoolProperty(
        name="Folders", description="Show folders in the file browser", default=True, options={"HIDDEN"}
    )
    chunk: IntProperty(
        name="Chunk",
        description="Share a longer shot out in chunks of at most this many frames; 0 bakes it in one task",
        default=Shot.chunk,
        min=0,
    )
    program: StringProperty(
        name="Program", description="What runs Blender on the farm", default=bundle.PROGRAM
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, _reason(context))

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        if not self.directory:
            self.directory = str(Path(bpy.data.filepath).parent)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        frames, path = shown_range(context.scene), Path(bpy.data.filepath)
        folder = Path(bpy.path.abspath(self.directory)) / f"{path.stem}_job"
        try:
            settings = {
                each: options.bake_settings(each.ccd_rig.bake, each, frames) for each in rigs(context.scene)
            }
            shot, whole_because = job.plan(context.scene, settings, self.chunk)
            made = bundle_job((shot,), (path.resolve(),), records.linked_files(), self.program, False)
            bundle.write(made, folder)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        if whole_because:
            tell(self, {"INFO"}, f"One task for the whole shot: {whole_because}")
        if bpy.data.is_dirty:
            tell(self, {"WARNING"}, f"{path.name} has changes: save it before the job runs")
        tell(self, {"INFO"}, f"Wrote {folder / bundle.TEMPLATE}: {len(made.steps[0].tasks())} tasks")
        return {"FINISHED"}
