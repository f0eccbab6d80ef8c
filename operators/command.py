# SPDX-License-Identifier: GPL-3.0-or-later
"""What commands share: why a button is grey, how errors and messages are told, what the redo panel says."""

import unicodedata
from typing import Any

import bpy
from bpy.props import StringProperty

from ..ccd_rig.blender.languages.line_breaks import broken
from ..ccd_rig.blender.languages.translation import REPORTS, TOOLTIPS, translated
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig, linked
from ..ccd_rig.errors import CCDRigError

WIDTH = 36  # [letters] that a line of the redo panel takes


class Command:
    """An operator that says why it is grey, and tells an error of its work instead of a traceback.

    It stands before `bpy.types.Operator` in the bases of a class that has `run`, and mostly `why_grey`.
    """

    bl_options: Any = {"REGISTER", "UNDO"}

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        """Why the button is grey, as its tooltip says; empty where the command can be called."""
        return ""

    @classmethod
    def poll(cls: Any, context: bpy.types.Context) -> bool:
        reason = cls.why_grey(context)
        if reason:
            cls.poll_message_set(translated(reason, TOOLTIPS))
        return not reason

    def run(self, context: bpy.types.Context) -> set[str] | None:
        """Do the work; what Blender is told if that is not FINISHED.

        Raises:
            CCDRigError: the work cannot be done, and nothing was changed.
        """
        raise NotImplementedError

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            return self.run(context) or {"FINISHED"}
        except CCDRigError as error:
            self.tell("ERROR", str(error))
            return {"CANCELLED"}

    def ask(self: Any, context: bpy.types.Context) -> set[str]:
        """Ask for the options in a dialog before the work; in the background do it at once."""
        if bpy.app.background:
            return set(self.execute(context))
        return set(context.window_manager.invoke_props_dialog(self))

    def fill_range(self: Any, scene: bpy.types.Scene) -> None:
        """Set `frame_start` and `frame_end`, where they are not set, to the range that the scene shows."""
        first, last = shown_range(scene)
        if not self.properties.is_property_set("frame_start"):
            self.frame_start = first
        if not self.properties.is_property_set("frame_end"):
            self.frame_end = last

    def tell(self: Any, level: str, words: str) -> None:
        """Show a message in Blender's status bar, and an error beside the pointer, in the user's language.

        The status bar shows what comes last: tell what was done first, then what to look at.

        Args:
            level: one of INFO, WARNING and ERROR.
            words: the English message.
        """
        self.report({level}, translated(words, REPORTS))


class JsonFile(Command):
    """A command that asks for a JSON file: the file browser lists no others."""

    filename_ext = ".json"
    filter_glob: StringProperty(
        name="Files", description="Which files are listed", default="*.json", options={"HIDDEN"}
    )


def draw_lines(layout: bpy.types.UILayout, words: str) -> None:
    """Draw what a command has to tell in the panel that follows it, a line a sentence, broken where it ends.

    A command keeps the words as an attribute, which lives as long as the panel. A property would stand in
    Blender's Info log with every call, and be one more argument to scripts.
    """
    lines = layout.box().column(align=True)
    for line in words.splitlines():
        for part in broken(translated(line), lambda text: _letters(text) <= WIDTH):
            lines.label(text=part, translate=False)


def _letters(text: str) -> int:
    """Width of a text in letters; signs of Chinese and Japanese are as wide as two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def shown_range(scene: bpy.types.Scene) -> tuple[int, int]:
    """The first and the last frame of the preview range, or of the scene."""
    if scene.use_preview_range:
        return scene.frame_preview_start, scene.frame_preview_end
    return scene.frame_start, scene.frame_end


def selected_bones(context: bpy.types.Context, rig: bpy.types.Object) -> list[str]:
    """Names of an armature's bones that are selected in Pose Mode, in its order; none outside that."""
    selected = {bone.name for bone in context.selected_pose_bones or () if bone.id_data == rig}
    return [bone.name for bone in rig.pose.bones if bone.name in selected]


# Why buttons are grey. Each function gives the reason in words, or none.


def no_armature(context: bpy.types.Context) -> str:
    """No armature is active, or it cannot be changed."""
    active = active_rig(context)
    if active is None:
        return "Select an armature"
    if reason := linked(active):
        return reason
    if active.mode == "EDIT":
        return "Leave Edit Mode: go to Pose Mode"
    return ""


def not_posing(context: bpy.types.Context) -> str:
    """No armature is in Pose Mode, or its pose is not shown."""
    if reason := no_armature(context):
        return reason
    if context.mode != "POSE" or context.object.mode != "POSE":
        return "Go to Pose Mode"
    if context.object.data.pose_position == "REST":
        return f"'{context.object.name}' is shown in Rest Position: switch it to Pose Position"
    return ""


def no_pose_bone(context: bpy.types.Context) -> str:
    """There is no armature in Pose Mode with an active bone."""
    if reason := no_armature(context):
        return reason
    if context.active_pose_bone is None:
        return "Select a bone in Pose Mode"
    return ""


def no_constraint(context: bpy.types.Context) -> str:
    """There is no armature, or no constraint on it."""
    if reason := no_armature(context):
        return reason
    if not active_rig(context).ccd_rig.constraints:
        return f"'{active_rig(context).name}' has no CCD constraint: select a bone in Pose Mode and add one"
    return ""


def no_active_constraint(context: bpy.types.Context) -> str:
    """There is no constraint, or none is chosen."""
    if reason := no_constraint(context):
        return reason
    chosen = constraint_list.active(active_rig(context))
    return "" if chosen is not None else "Choose a constraint in the list"


def none_enabled(context: bpy.types.Context) -> str:
    """There is no constraint to solve."""
    if reason := no_constraint(context):
        return reason
    if not any(constraint.enabled for constraint in active_rig(context).ccd_rig.constraints):
        return f"All constraints of '{active_rig(context).name}' are disabled: enable one"
    return ""
