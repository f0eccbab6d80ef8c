# SPDX-License-Identifier: GPL-3.0-or-later
"""Write which bone follows which to a JSON file."""

from pathlib import Path

import bpy
from bpy_extras.io_utils import ExportHelper

from ..ccd_rig.blender import whole_files
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import bone_map
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .json_file import JsonFile
from .telling import tell


class CCD_RIG_OT_retarget_map_save(JsonFile, bpy.types.Operator, ExportHelper):
    bl_idname = "ccd_rig.retarget_map_save"
    bl_label = "Save Map"
    bl_description = "Write which bone follows which to a JSON file, for other files and the command line"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_pairs(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        pairs = {pair.name: pair.source for pair in active_rig(context).ccd_rig.retarget.pairs}
        path = Path(bpy.path.abspath(self.filepath))
        try:
            with whole_files.replacing(path) as temporary:
                temporary.write_text(bone_map.map_as_text(pairs), encoding="utf-8")
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        tell(self, {"INFO"}, f"Saved {len(pairs)} pairs to {path.name}")
        return {"FINISHED"}
