# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the pose library to a JSON file."""

import bpy
from bpy_extras.io_utils import ExportHelper

from ..ccd_rig.blender.properties import pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .json_file import JsonFile
from .telling import tell


class CCD_RIG_OT_poses_export(JsonFile, bpy.types.Operator, ExportHelper):
    bl_idname = "ccd_rig.poses_export"
    bl_label = "Export Pose Library"
    bl_description = "Write all poses of the pose library to a JSON file, for other armatures and programs"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_poses(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        path = bpy.path.abspath(self.filepath)
        try:
            entries = pose_library.entries(active_rig(context))
            pose_library.save(path, entries)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        tell(self, {"INFO"}, f"Wrote {len(entries)} pose{'' if len(entries) == 1 else 's'} to {path}")
        return {"FINISHED"}
