# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a JSON file into the pose library."""

import bpy
from bpy_extras.io_utils import ImportHelper

from ..ccd_rig.blender.properties import pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError, RigError
from . import poll_reasons
from .json_file import JsonFile
from .telling import tell


class CCD_RIG_OT_poses_import(JsonFile, bpy.types.Operator, ImportHelper):
    bl_idname = "ccd_rig.poses_import"
    bl_label = "Import Pose Library"
    bl_description = "Add the poses of a JSON file to the pose library"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        owner, path = active_rig(context), bpy.path.abspath(self.filepath)
        try:
            entries = pose_library.load(path)
            for entry in entries:
                if len(pose_library.missing(owner, entry)) == len(entry.rotations):
                    raise RigError(f"{path}: {pose_library.strangers(owner, entry)}")
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        pose_library.add(owner, entries)
        strangers = [words for entry in entries if (words := pose_library.strangers(owner, entry))]
        if strangers:
            more = f" (and {len(strangers) - 1} more poses with such bones)" if len(strangers) > 1 else ""
            tell(self, {"WARNING"}, strangers[0] + more)
        tell(self, {"INFO"}, f"Read {len(entries)} pose{'' if len(entries) == 1 else 's'} from {path}")
        return {"FINISHED"}
