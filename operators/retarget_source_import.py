# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the source of a retargeting from a file, with the rate that the file has."""

from pathlib import Path

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import ImportHelper

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.retarget import clips
from ..ccd_rig.errors import CCDRigError, RigError
from . import poll_reasons
from .telling import tell


class CCD_RIG_OT_retarget_source_import(bpy.types.Operator, ImportHelper):
    bl_idname = "ccd_rig.retarget_source_import"
    bl_label = "Import Source"
    bl_description = (
        "Read an armature with its motion from a BVH, FBX, glTF or .blend file and take it as the source, with "
        "the rate of frames that the file has; the scene keeps its own"
    )
    bl_options = {"REGISTER", "UNDO"}

    filter_glob: StringProperty(
        name="Files",
        description="Which files are listed",
        default=";".join(f"*{ending}" for ending in clips.CLIPS),
        options={"HIDDEN"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_armature(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig, path = active_rig(context), Path(bpy.path.abspath(self.filepath))
        active, selected = context.view_layer.objects.active, list(context.selected_objects)
        mode = active.mode
        # Importers work in Object Mode, and select what they have made.
        bpy.ops.object.mode_set(mode="OBJECT")
        try:
            if path.is_dir():
                raise RigError(f"{path} is a folder: choose a file in it")
            source, rate = clips.read_source(*clips.clips(path))
        except CCDRigError as error:
            tell(self, {"ERROR"}, f"{path.name}: {error}")
            return {"CANCELLED"}
        finally:
            for thing in context.view_layer.objects:
                thing.select_set(thing in selected)
            context.view_layer.objects.active = active
            bpy.ops.object.mode_set(mode=mode)
        group = rig.ccd_rig.retarget
        group.source, group.source_fps = source, rate
        shown = f", {rate:g} frames a second" if rate else ""
        tell(self, {"INFO"}, f"Source: {source.name}{shown}")
        return {"FINISHED"}
