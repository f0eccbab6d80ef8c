# SPDX-License-Identifier: GPL-3.0-or-later
"""Read constraints and limits of a rig from a JSON file."""

import bpy
from bpy_extras.io_utils import ImportHelper

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.setup_files import applying, setup_file
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .json_file import JsonFile
from .telling import tell


class CCD_RIG_OT_setup_load(JsonFile, bpy.types.Operator, ImportHelper):
    bl_idname = "ccd_rig.setup_load"
    bl_label = "Load Set-Up"
    bl_description = (
        "Give the armature the constraints, limits and solver settings of a JSON file. Bones are found by "
        "name, else by the part of the body that they are; constraints of the same name are replaced"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            applied = applying.apply(active_rig(context), setup_file.load(bpy.path.abspath(self.filepath)))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        tell(self, {"INFO"}, applied.words())
        for warning in applied.warnings():
            tell(self, {"WARNING"}, warning)
        return {"FINISHED"}
