# SPDX-License-Identifier: GPL-3.0-or-later
"""Pose library: capture, apply and remove poses, and exchange them as JSON files."""

import bpy
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ..ccd_rig.blender.properties import pose_library
from ..ccd_rig.blender.properties.active_rig import active_rig, is_from_library
from ..ccd_rig.blender.registration import LAST, ONCE
from ..ccd_rig.errors import RigError
from . import command
from .command import Command, JsonFile

SOURCES = (
    ("POSE", "Current Pose", "The pose as it stands now"),
    ("ACTION", "Action", "Frames of the armature's present action, read without going to them"),
    ("ASSET", "Pose Asset", "An action of one frame that is marked as an asset"),
)
BONES = (
    ("CHAINS", "Chains", "The bones of all constraints' chains"),
    ("SELECTED", "Selected Bones", "The bones that are selected in Pose Mode"),
)


@command.after(command.no_armature)
def no_poses(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or its pose library is empty."""
    if not active_rig(context).ccd_rig.poses:
        return f"The pose library of '{active_rig(context).name}' is empty: capture a pose first"
    return ""


@command.after(no_poses)
def no_pose(context: bpy.types.Context) -> str:
    """Reason if no pose of the library is active."""
    return "" if pose_library.active(active_rig(context)) is not None else "Choose a pose in the list"


class CCD_RIG_OT_pose_capture(Command, bpy.types.Operator):
    bl_label = "Capture Pose"
    bl_description = (
        "Add poses to the pose library: where targets are not reached, solves start again from the nearest"
    )

    source: ONCE.enum("From", "Where the pose is taken from", items=SOURCES)
    bones: LAST.enum("Bones", "Whose rotations are captured", items=BONES)
    name: ONCE.text("Name", "What the library calls the pose", default=pose_library.DEFAULT_NAME)
    step: LAST.integer(
        "Every Nth Frame",
        "Frames from one captured pose to the next; the last frame is always captured",
        default=10,
        min=1,
        soft_max=100,
    )
    asset: ONCE.text("Pose Asset", "Name of the action that is the pose asset")

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        return self.execute(context) if self.source == "POSE" else self.ask(context)

    def draw(self, _context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "bones")
        if self.source == "POSE":
            layout.prop(self, "name")
        elif self.source == "ACTION":
            layout.prop(self, "step")
        else:
            layout.prop_search(self, "asset", bpy.data, "actions")

    def run(self, context: bpy.types.Context) -> None:
        owner = active_rig(context)
        bones = (pose_library.chain_bones if self.bones == "CHAINS" else pose_library.selected_bones)(owner)
        if self.source == "ACTION":
            entries = pose_library.from_action(owner, bones, self.step)
        elif self.source == "ASSET":
            entries = (pose_library.from_asset(owner, bones, self.asset),)
        else:
            entries = (pose_library.from_pose(owner, bones, self.name or pose_library.DEFAULT_NAME),)
        pose_library.add(owner, entries)
        poses, turned = len(entries), len(entries[0].rotations)
        words = f"{poses} pose{'' if poses == 1 else 's'} of {turned} bone{'' if turned == 1 else 's'}"
        self.tell("INFO", f"Captured {words}")


class CCD_RIG_OT_pose_apply(Command, bpy.types.Operator):
    bl_label = "Apply Pose"
    bl_description = (
        "Rotate the bones as the chosen pose has them; limits are not applied, keys are set only with Auto "
        "Keying"
    )

    why_grey = staticmethod(no_pose)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.keys import auto_keys
        from ..ccd_rig.blender.rig.rotation_modes import rotation_channel

        owner = active_rig(context)
        entry = pose_library.entries(owner)[owner.ccd_rig.active_pose]
        pose_library.apply(owner, entry)
        posed = [owner.pose.bones[bone] for bone in entry.rotations if bone in owner.pose.bones]
        if refusal := auto_keys.insert(context, [(bone, rotation_channel(bone)[0]) for bone in posed]):
            self.tell("WARNING", refusal)
        if warnings := pose_library.missing_words(owner, entry):
            self.tell("WARNING", warnings)


class CCD_RIG_OT_pose_remove(Command, bpy.types.Operator):
    bl_label = "Remove Pose"
    bl_description = "Remove the chosen pose, or all poses, from the pose library; bones stay as they are"

    all: ONCE.boolean("All", "Remove all poses but those that come from the library of an override")

    why_grey = staticmethod(no_pose)

    def run(self, context: bpy.types.Context) -> None:
        owner = active_rig(context)
        group = owner.ccd_rig
        removable = [i for i, row in enumerate(group.poses) if not is_from_library(row, "poses")]
        pose_library.remove(owner, removable if self.all else [group.active_pose])


class CCD_RIG_OT_poses_export(JsonFile, bpy.types.Operator, ExportHelper):
    bl_label = "Export Pose Library"
    bl_description = "Write all poses of the pose library to a JSON file, for other armatures and programs"
    bl_options = {"REGISTER"}

    why_grey = staticmethod(no_poses)

    def run(self, context: bpy.types.Context) -> None:
        entries = pose_library.entries(active_rig(context))
        pose_library.save(self.path, entries)
        self.tell("INFO", f"Wrote {len(entries)} pose{'' if len(entries) == 1 else 's'} to {self.path}")


class CCD_RIG_OT_poses_import(JsonFile, bpy.types.Operator, ImportHelper):
    bl_label = "Import Pose Library"
    bl_description = "Add the poses of a JSON file to the pose library"

    def run(self, context: bpy.types.Context) -> None:
        owner, path = active_rig(context), self.path
        entries = pose_library.load(path)
        for entry in entries:
            if len(pose_library.missing(owner, entry)) == len(entry.rotations):
                raise RigError(f"{path}: {pose_library.missing_words(owner, entry)}")
        pose_library.add(owner, entries)
        warnings = [words for entry in entries if (words := pose_library.missing_words(owner, entry))]
        if warnings:
            more = f" (and {len(warnings) - 1} more poses with such bones)" if len(warnings) > 1 else ""
            self.tell("WARNING", warnings[0] + more)
        self.tell("INFO", f"Read {len(entries)} pose{'' if len(entries) == 1 else 's'} from {path}")
