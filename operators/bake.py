# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve a range of frames and key the result."""

import dataclasses
import time

import bpy
from bpy.props import IntProperty

from ..ccd_rig.blender.bake import bake, options
from ..ccd_rig.blender.bake.progress import Progress, Steps
from ..ccd_rig.blender.bake.report import BakeReport
from ..ccd_rig.blender.keys import channels
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import CCDRigError, RigError
from . import poll_reasons
from .telling import tell

SLICE = 0.2  # [s] of solving between two looks at the keyboard; each costs a redraw


class CCD_RIG_OT_bake(bpy.types.Operator):
    bl_idname = "ccd_rig.bake"
    bl_label = "Bake to Action"
    bl_description = (
        "Solve each frame of the range and key the chains' rotations. "
        "Nothing is changed before the last frame is solved; Esc cancels"
    )
    bl_options = {"REGISTER", "UNDO"}

    # The armature stores the options: what is left over from a bake of another one must not count.
    __annotations__ = {
        "frame_start": IntProperty(
            name="Start Frame",
            description="First frame; when not set, that of the scene or its preview range",
            default=1,
            options={"SKIP_SAVE"},
        ),
        "frame_end": IntProperty(
            name="End Frame",
            description="Last frame; when not set, that of the scene or its preview range",
            default=250,
            options={"SKIP_SAVE"},
        ),
        **options.properties(options={"SKIP_SAVE"}),
    }

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.none_enabled(context))

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        try:
            options.take_stored(self.properties, active_rig(context))
            if bpy.app.background:
                return self.execute(context)
            self._run = self._begin(context)
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        self._timer = context.window_manager.event_timer_add(0.001, window=context.window)
        context.window_manager.progress_begin(0, 100)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            run = self._begin(context)
            while (report := run.advance()) is None:
                pass
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return self._finish(report)

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            tell(self, {"INFO"}, "Bake cancelled: nothing was changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}  # nothing else may happen meanwhile: the file must stay as it was read
        try:
            report = self._run.advance_slice(context)
        except CCDRigError as error:
            self.cancel(context)
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        except BaseException:  # a bug is shown as one, but leaves no timer and no status text behind
            self.cancel(context)
            raise
        if report is None:
            return {"RUNNING_MODAL"}
        self.cancel(context)
        return self._finish(report)

    def cancel(self, context: bpy.types.Context) -> None:
        """Leave the modal run; Blender calls this too when it ends the run by itself."""
        self._run.steps.close()
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)

    def _begin(self, context: bpy.types.Context) -> "_Run":
        scene = context.scene
        if not self.properties.is_property_set("frame_start"):
            self.frame_start = scene.frame_preview_start if scene.use_preview_range else scene.frame_start
        if not self.properties.is_property_set("frame_end"):
            self.frame_end = scene.frame_preview_end if scene.use_preview_range else scene.frame_end
        rig = active_rig(context)
        chosen = _selected(rig) if self.only_selected else ()
        settings = options.bake_settings(self, rig, (self.frame_start, self.frame_end), chosen)
        return _Run(bake.bake_steps(scene, rig, settings))

    def _finish(self, report: BakeReport) -> set[str]:
        for message in report.warnings:
            tell(self, {"WARNING"}, message)
        for mismatch in report.check.mismatches() if report.check is not None else ():
            tell(self, {"WARNING"}, mismatch)
        if advice := report.advice(both_ways=self.order == "BOTH"):
            tell(self, {"WARNING"}, advice)
        for ways in report.several_ways:
            if ways.is_seen:
                tell(self, {"INFO"}, ways.words())
        level = "WARNING" if report.unsolved() else "INFO"
        tell(self, {level}, f"{report.summary()} (action '{report.action}')")
        return {"FINISHED"}


@dataclasses.dataclass
class _Run:
    """A bake under way: its steps, the last of them, and when its present part began."""

    steps: Steps[BakeReport]
    progress: Progress | None = None
    started: float = 0.0

    def advance(self) -> BakeReport | None:
        """One more step; the report after the last one, else None."""
        try:
            progress = next(self.steps)
        except StopIteration as end:
            report: BakeReport = end.value
            return report
        if self.progress is None or progress.verb != self.progress.verb:
            self.started = time.perf_counter()  # each part of a bake has its own pace
        self.progress = progress
        return None

    def advance_slice(self, context: bpy.types.Context) -> BakeReport | None:
        """Go on for a moment and show how far it came."""
        until = time.perf_counter() + SLICE
        while time.perf_counter() < until:
            if (report := self.advance()) is not None:
                return report
        assert self.progress is not None
        context.window_manager.progress_update(100 * self.progress.done / self.progress.total)
        words = self.progress.words(time.perf_counter() - self.started)
        status = translated(f"Baking, {words}. Esc cancels, and nothing is changed")
        context.workspace.status_text_set(status)
        return None


def _selected(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the enabled constraints whose chain has a selected bone."""
    names = tuple(
        constraint.name
        for constraint in armature_object.ccd_rig.constraints
        if constraint.enabled
        and any(
            map(
                channels.is_bone_selected,
                constraint_list.chain(armature_object, constraint.tip, constraint.chain_length),
            )
        )
    )
    if not names:
        raise RigError(
            "No constraint's chain has a selected bone: select one, or switch off Only Selected Bones"
        )
    return names
