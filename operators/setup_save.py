# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the constraints and limits of a rig to a JSON file."""

from pathlib import Path
from typing import Any

import bpy
from bpy_extras.io_utils import ExportHelper

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.names_in_words import named
from ..ccd_rig.blender.setup_files import influence_curves, setup_file
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .json_file import JsonFile
from .telling import tell


class CCD_RIG_OT_setup_save(JsonFile, bpy.types.Operator, ExportHelper):
    bl_idname = "ccd_rig.setup_save"
    bl_label = "Save Set-Up"
    bl_description = (
        "Write all constraints, limits and solver settings of the armature to a JSON file, for this rig "
        "generated anew and for others"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def invoke(self: Any, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if not self.filepath:
            name = f"{bpy.path.clean_name(active_rig(context).name)}{self.filename_ext}"
            self.filepath = str(Path(bpy.data.filepath).parent / name) if bpy.data.filepath else name
        helper: Any = ExportHelper  # which is not typed alike in all versions
        answer: set[str] = helper.invoke(self, context, event)
        return answer

    def execute(self, context: bpy.types.Context) -> set[str]:
        owner, path = active_rig(context), bpy.path.abspath(self.filepath)
        try:
            setup = setup_file.with_roles(owner, setup_file.setup_of(owner))
            setup_file.save(path, setup)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        counts = {"bone": len(setup.bones), "constraint": len(setup.constraints)}
        words = " and ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())
        tell(self, {"INFO"}, f"Wrote {words} to {path}")
        if driven := influence_curves.driven(owner):
            where = f"The driver of Influence of {named(driven)}"
            tell(self, {"WARNING"}, f"{where} is not in the file: make it anew on the other rig")
        for setting, names in influence_curves.left_out(owner).items():
            where = f"What moves '{setting}' of {named(names)}, keys or a driver,"
            tell(self, {"WARNING"}, f"{where} is not in the file: make it anew on the other rig")
        return {"FINISHED"}
