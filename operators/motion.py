# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion for the active figure: retargeted from another armature, or a walk cycle along a curve."""

from typing import TYPE_CHECKING

import bpy
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.registration import LAST
from ..ccd_rig.blender.retarget.choices import CLIPS, ReferenceFrame
from ..ccd_rig.errors import CCDRigError
from . import command
from .bake import ModalCommand
from .command import Command, JsonFile

if TYPE_CHECKING:
    from ..ccd_rig.blender.bake.progress import Steps
    from ..ccd_rig.blender.walk import Walked


@command.after(command.no_armature)
def no_source(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or it has no source of motion."""
    source = active_rig(context).ccd_rig.retarget.source
    return "" if source is not None else "Choose the source: the armature that has the motion"


@command.after(command.no_armature)
def no_pairs(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or its bone map is empty."""
    return "" if active_rig(context).ccd_rig.retarget.pairs else "The map is empty: find bones first"


class CCD_RIG_OT_retarget_source_import(Command, bpy.types.Operator, ImportHelper):
    bl_label = "Import Source"
    bl_description = (
        "Read an armature with its motion from a BVH, FBX, glTF or .blend file and take it as the source, "
        "with the frame rate of the file; the scene keeps its own"
    )

    filter_glob: LAST.text(
        "Files",
        "Which files are listed",
        default=";".join(f"*{ending}" for ending in CLIPS),
        options={"HIDDEN"},
    )

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.retarget import clips

        rig, path = active_rig(context), command.absolute(self.filepath)
        active, selected = context.view_layer.objects.active, list(context.selected_objects)
        # Importers work in Object Mode, and select the imported objects.
        mode = command.leave_mode(context)
        try:
            read = clips.read_source(path)
        finally:
            # To walk through the view layer's objects could crash: a selection frees what was removed.
            for candidate in context.selected_objects:
                candidate.select_set(False)
            for candidate in selected:
                candidate.select_set(True)
            context.view_layer.objects.active = active
            if mode != "OBJECT":
                bpy.ops.object.mode_set(mode=mode)
        group = rig.ccd_rig.retarget
        source, rate = read.armature, read.fps
        group.source, group.source_fps = source, rate
        self.tell_done(f"Source: {source.name}{f', {rate:g} frames a second' if rate else ''}", read.doubts)


class CCD_RIG_OT_retarget_map_fill(Command, bpy.types.Operator):
    bl_label = "Find Bones"
    bl_description = (
        "Recognise both figures by the names of their bones or by how they lie at rest, and list which bone "
        "follows which. Pairs that were changed by hand are found anew"
    )

    why_grey = staticmethod(no_source)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.retarget import retarget

        bone_pairs = retarget.fill_map(active_rig(context))
        if bone_pairs.missing:
            self.tell("WARNING", f"Nothing to follow for: {', '.join(bone_pairs.missing[:6])}")
        self.tell("INFO", f"{len(bone_pairs.bones)} bones follow one of the source")


class CCD_RIG_OT_retarget_map_load(JsonFile, bpy.types.Operator, ImportHelper):
    bl_label = "Load Map"
    bl_description = "Read pairs of bones from a JSON file; they replace those of the same target bones"

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.retarget import bone_map, retarget

        pairs = bone_map.read_map(self.path)
        retarget.set_pairs(active_rig(context), pairs)
        self.tell("INFO", f"Read {len(pairs)} pairs")


class CCD_RIG_OT_retarget_map_save(JsonFile, bpy.types.Operator, ExportHelper):
    bl_label = "Save Map"
    bl_description = "Write which bone follows which to a JSON file, for other files and the command line"
    bl_options = set()

    why_grey = staticmethod(no_pairs)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import atomic_write
        from ..ccd_rig.blender.retarget import bone_map

        path, rows = self.path, active_rig(context).ccd_rig.retarget.pairs
        pairs = {pair.name: pair.source for pair in rows}
        with atomic_write.replacing(path) as temporary:
            temporary.write_text(bone_map.map_as_text(pairs), encoding="utf-8")
        self.tell("INFO", f"Saved {len(pairs)} pairs to {path.name}")


FRAMES = (
    (ReferenceFrame.FIRST.value, "First Frame", "The first frame of the source", 0),
    (ReferenceFrame.CURRENT.value, "This Frame", "The frame at which the scene is", 1),
    (
        ReferenceFrame.STRAIGHTEST.value,
        "Straightest Frame",
        "The frame in which legs stand straight and arms are stretched, most like a T pose",
        2,
    ),
)


class CCD_RIG_OT_retarget_reference(Command, bpy.types.Operator):
    bl_label = "Use Frame as Reference"
    bl_description = "Bring a frame of the source in line with this armature's rest pose"

    frame: LAST.enum("Frame", "Which frame", items=FRAMES)

    why_grey = staticmethod(no_source)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.retarget import retarget

        frame = retarget.use_frame(context.scene, active_rig(context), ReferenceFrame(self.frame))
        self.tell("INFO", f"Frame {frame:.7g} of the source is the reference")


class CCD_RIG_OT_retarget_preview(Command, bpy.types.Operator):
    bl_label = "Show This Frame"
    bl_description = "Pose this armature as the present frame would be retargeted; keys stay as they are"

    why_grey = staticmethod(no_source)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.retarget import retarget
        from ..ccd_rig.blender.retarget.retarget import show_frame

        rig = active_rig(context)
        try:
            show_frame(context.scene, rig.ccd_rig.retarget.source, rig, retarget.choice_of(rig))
        except CCDRigError as error:
            retarget.note_refusal(rig, error)
            raise


class CCD_RIG_OT_retarget(Command, bpy.types.Operator):
    bl_label = "Retarget"
    bl_description = (
        "Bake the source's motion to a new action of this armature: rotations carried over, hips "
        "scaled, feet locked where they are down. The action that played before stays in the file"
    )

    why_grey = staticmethod(no_source)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.retarget import retarget
        from ..ccd_rig.blender.retarget.retarget import retarget_motion

        rig = active_rig(context)
        group = rig.ccd_rig.retarget
        try:
            result = retarget_motion(context.scene, group.source, rig, retarget.choice_of(rig))
        except CCDRigError as error:
            retarget.note_refusal(rig, error)
            raise
        retarget.note_refusal(rig, None)
        lines = retarget.lines(result)
        group.report = "\n".join(lines)
        self.tell_done(lines[0], retarget.warnings(result))


@command.after(command.no_armature)
def no_curve(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or it has no curve to walk along."""
    return "" if active_rig(context).ccd_rig.walk.curve is not None else "Choose the curve to walk along"


class CCD_RIG_OT_walk_along(ModalCommand, bpy.types.Operator):
    bl_label = "Walk Along"
    bl_description = (
        "Bake the cycle along the curve to a new action: steps planted on the ground by arc length, legs "
        "solved, from standing to standing. The action with the cycle stays in the file"
    )

    why_grey = staticmethod(no_curve)

    def begin(self, context: bpy.types.Context) -> "Steps[Walked]":
        from ..ccd_rig.blender import walk
        from ..ccd_rig.blender.walk import choice_of, walk_steps

        rig = active_rig(context)
        self._rig, self._scene = rig, context.scene
        self._cycle = walk.cycle_action(rig, rig.ccd_rig.walk.cycle)
        return walk_steps(context.scene, rig, rig.ccd_rig.walk.curve, choice_of(rig))

    def finish(self, result: "Walked") -> None:
        from ..ccd_rig.blender import walk

        group = self._rig.ccd_rig.walk
        if group.cycle is None:
            group.cycle = self._cycle
        lines = walk.lines(result)
        group.report = "\n".join(lines)
        self.tell("INFO", lines[0])
        end, last = self._scene.frame_end, result.frames[-1]
        if last > end:
            self.tell(
                "WARNING", f"The scene ends at frame {end}, the walk at {last:.7g}: set the scene's End"
            )
        for warning in walk.warnings(result):
            self.tell("WARNING", warning)
