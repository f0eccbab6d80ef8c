# SPDX-License-Identifier: GPL-3.0-or-later
"""Base classes of operators: disabled buttons with reasons, errors as messages, redo panels."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import bpy

from ..ccd_rig.blender.languages.translation import REPORTS, TOOLTIPS, lines_within, translated
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig, linked, with_settings
from ..ccd_rig.blender.registration import LAST, ONCE, use
from ..ccd_rig.errors import CCDRigError, RigError

DIALOG = 300  # width of a dialog, at interface scale 1 [pixels]; Blender's default
MARGIN = 40  # [pixels] width of the edges of panel and box at scale 1


# Reasons why buttons are grey; empty where they are not -----------------------------------------------------

Reason = TypeVar("Reason", bound=Callable[[bpy.types.Context], str])


def after(earlier: Callable[[bpy.types.Context], str]) -> Callable[[Reason], Reason]:
    """Decorate a reason that counts where there is none of an earlier one."""

    def joined(reason: Reason) -> Reason:
        first: Any = functools.wraps(reason)(lambda context: earlier(context) or reason(context))
        return first

    return joined


def no_armature(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or it cannot be changed."""
    active = active_rig(context)
    if active is None:
        return "Select an armature"
    if reason := linked(active):
        return reason
    if active.mode == "EDIT":
        return "Leave Edit Mode: go to Pose Mode"
    return ""


@after(no_armature)
def not_posing(context: bpy.types.Context) -> str:
    """Reason if no armature is in Pose Mode, or its pose is not shown."""
    if context.mode != "POSE" or context.object.mode != "POSE":
        return "Go to Pose Mode"
    if context.object.data.pose_position == "REST":
        return f"'{context.object.name}' is shown in Rest Position: switch it to Pose Position"
    return ""


@after(no_armature)
def no_pose_bone(context: bpy.types.Context) -> str:
    """Reason if no armature in Pose Mode has an active bone."""
    return "Select a bone in Pose Mode" if context.active_pose_bone is None else ""


@after(no_armature)
def no_constraint(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or it has no constraint."""
    if not any(rig.ccd_rig.constraints for rig in with_settings([active_rig(context)])):
        return f"'{active_rig(context).name}' has no CCD constraint: select a bone in Pose Mode and add one"
    return ""


@after(no_constraint)
def no_active_constraint(context: bpy.types.Context) -> str:
    """Reason if there is no constraint, or none is active."""
    chosen = constraint_list.active(active_rig(context))
    return "" if chosen is not None else "Choose a constraint in the list"


@after(no_constraint)
def none_enabled(context: bpy.types.Context) -> str:
    """Reason if no constraint is enabled."""
    if not any(constraint.enabled for constraint in active_rig(context).ccd_rig.constraints):
        return f"All constraints of '{active_rig(context).name}' are disabled: enable one"
    return ""


# Base classes ----------------------------------------------------------------------------------------------


class Command:
    """An operator that gives a reason when it is disabled, and reports errors as messages.

    It precedes `bpy.types.Operator` in the bases of a class that defines `run`, and `why_grey` if the command
    needs more than an armature. Class CCD_RIG_OT_solve is the operator ccd_rig.solve.
    """

    bl_options: Any = {"REGISTER", "UNDO"}

    why_grey = staticmethod(no_armature)
    """Reason why the button is grey, for its tooltip; empty if the command can be called."""

    def __init_subclass__(cls) -> None:
        kind, _, name = cls.__name__.partition("_OT_")
        if kind == "CCD_RIG":
            cls.bl_idname = f"ccd_rig.{name}"

    @classmethod
    def poll(cls: Any, context: bpy.types.Context) -> bool:
        reason = cls.why_grey(context)
        if reason:
            cls.poll_message_set(translated(reason, TOOLTIPS))
        return not reason

    def run(self, context: bpy.types.Context) -> set[str] | None:
        """Do the work; returns the operator's result if it is not FINISHED.

        Raises:
            CCDRigError: the work cannot be done, and nothing was changed.
        """
        raise NotImplementedError

    def execute(self, context: bpy.types.Context) -> set[str]:
        from ..ccd_rig.blender import live

        use()
        try:
            result = self.run(context) or {"FINISHED"}
        except CCDRigError as error:
            self.tell("ERROR", str(error))
            return {"CANCELLED"}
        if (rig := active_rig(context)) is not None:
            live.show_edit(rig)
        return result

    def ask(self: Any, context: bpy.types.Context) -> set[str]:
        """Ask for the options in a dialog before the work; in the background use the present ones."""
        use()
        if bpy.app.background:
            return set(self.execute(context))
        return set(context.window_manager.invoke_props_dialog(self, width=DIALOG))

    def ask_at(
        self: Any, context: bpy.types.Context, event: bpy.types.Event, place: tuple[int, int]
    ) -> set[str]:
        """Like `ask`, with the dialog at a place in the window, where Blender opens it below the pointer."""
        context.window.cursor_warp(*place)
        answer = set(self.ask(context))
        context.window.cursor_warp(event.mouse_x, event.mouse_y)
        return answer

    def tell(self: Any, level: str, words: str) -> None:
        """Show a message in Blender's status bar, and an error beside the pointer, in the user's language.

        The status bar shows the last message alone: warnings follow the result.

        Args:
            level: one of INFO, WARNING and ERROR.
        """
        self.report({level}, translated(words, REPORTS))

    def tell_done(self, words: str, warnings: Iterable[str]) -> None:
        """Show the result, and then its warnings."""
        self.tell("INFO", words)
        for warning in warnings:
            self.tell("WARNING", warning)


class Dialog(Command):
    """A command with options and the messages of its last run in the redo panel.

    Attributes:
        fields: names of the options in the redo panel.
        messages: text of the dialog, a line each.
    """

    fields: tuple[str, ...] = ()
    messages = ""

    def draw(self: Any, context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        for name in self.fields:
            self.layout.prop(self, name)
        if self.messages:
            draw_lines(self.layout, context, self.messages)


class FrameRange(Command):
    """A command over a range of frames."""

    frame_start: ONCE.integer(
        "Start Frame", "First frame; when not set, that of the scene or its preview range", default=1
    )
    frame_end: ONCE.integer(
        "End Frame", "Last frame; when not set, that of the scene or its preview range", default=250
    )

    def fill_range(self: Any, scene: bpy.types.Scene) -> None:
        """Set `frame_start` and `frame_end`, unless they are set, to `shown_range`."""
        from ..ccd_rig.blender.scene.evaluation import shown_range

        first, last = shown_range(scene)
        if not self.properties.is_property_set("frame_start"):
            self.frame_start = first
        if not self.properties.is_property_set("frame_end"):
            self.frame_end = last


def absolute(path: str) -> Path:
    """Return a path that was chosen; raises RigError for one beside a file that was never saved."""
    if path.startswith("//") and not bpy.data.filepath:
        raise RigError(f"'{path}' lies beside the .blend file, which is not saved yet: save it first")
    return Path(bpy.path.abspath(path))


class JsonFile(Command):
    """A command that asks for a JSON file; the file browser lists no other files."""

    filename_ext = ".json"
    filter_glob: LAST.text("Files", "Which files are listed", default="*.json", options={"HIDDEN"})

    @property
    def path(self: Any) -> Path:
        """The chosen file."""
        return absolute(self.filepath)


def draw_lines(layout: bpy.types.UILayout, context: bpy.types.Context, words: str) -> None:
    """Draw the messages of a command in its redo panel or dialog, a line each, broken to its width.

    A command keeps the words as an attribute, which lasts as long as the panel. A property would appear in
    Blender's Info log with every call, and as an argument to scripts.
    """
    region, scale = context.region, context.preferences.system.ui_scale
    width = region.width if region is not None and region.type == "HUD" else DIALOG * scale
    lines = layout.box().column(align=True)
    for line in words.splitlines():
        for text in lines_within(context.preferences, line, width - MARGIN * scale):
            lines.label(text=text, translate=False)


def redraw_views(context: bpy.types.Context) -> None:
    """Redraw all areas of the window; views draw what is in no data-block only when they are redrawn."""
    for area in context.screen.areas if context.screen is not None else ():
        area.tag_redraw()


def active_constraint(rig: bpy.types.Object) -> Any:
    """Return the active constraint of a rig; raises RigError if none is active."""
    if (row := constraint_list.active(rig)) is None:
        raise RigError("No constraint is active: choose one in the list")
    return row


def require_visible(context: bpy.types.Context, obj: bpy.types.Object) -> None:
    """Raise RigError if an object is not visible: Blender neither selects it nor changes its mode."""
    if not obj.visible_get(view_layer=context.view_layer):
        raise RigError(f"'{obj.name}' is hidden or not in this view layer: show it first")


def leave_mode(context: bpy.types.Context) -> str:
    """Go to Object Mode; returns the mode of the active object before.

    Raises:
        RigError: the active object is in another mode, and hidden.
    """
    active = context.view_layer.objects.active
    if active is None or active.mode == "OBJECT":
        return "OBJECT"
    require_visible(context, active)
    mode: str = active.mode
    bpy.ops.object.mode_set(mode="OBJECT")
    return mode


def selected_bones(context: bpy.types.Context, rig: bpy.types.Object) -> list[str]:
    """Names of the bones selected in Pose Mode, in the armature's order; none in other modes."""
    selected = {bone.name for bone in context.selected_pose_bones or () if bone.id_data == rig}
    return [bone.name for bone in rig.pose.bones if bone.name in selected]
