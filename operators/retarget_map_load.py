# SPDX-License-Identifier: GPL-3.0-or-later
"""Read which bone follows which from a JSON file."""

from pathlib import Path

import bpy
from bpy_extras.io_utils import ImportHelper

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import bone_map, chosen
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .json_file import JsonFile
from .telling import tell


class CCD_RIG_OT_retarget_map_load(JsonFile, bpy.types.Operator, ImportHelper):
    bl_idname = "ccd_rig.retarget_map_load"
    bl_label = "Load Map"
    bl_description = "Read pairs of bones from a JSON file; they replace those of the same target bones"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            pairs = bone_map.read_map(Path(bpy.path.abspath(self.filepath)))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        chosen.set_pairs(active_rig(context), pairs)
        tell(self, {"INFO"}, f"Read {len(pairs)} pairs")
        return {"FINISHED"}
