# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators whose work goes on in steps: a slice at a time, with its progress shown, until Esc cancels it."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import bpy

from ..ccd_rig.blender.bake.progress import Pace, Progress, Steps
from ..ccd_rig.blender.bake.report import BakeReport
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.errors import CCDRigError
from ..ccd_rig.solvers.stepping import Ended, advance
from .telling import tell

SLICE = 0.1  # [s] of solving between two looks at the keyboard
BAR = 10.0  # width of the bar of progress, in widths of a button
REDRAW = 0.5  # [s] from one line of progress to the next: each costs a redraw, and Esc waits for it


class ModalSteps:
    """What such operators share: `begin` gives the steps, `finish` says what they came to."""

    def take_options(self, context: bpy.types.Context) -> None:
        """Take over options that are stored, where the operator was called by the user."""

    def begin(self, context: bpy.types.Context) -> Steps[Any]:
        """The work, of which nothing is done yet."""
        raise NotImplementedError

    def finish(self, result: Any) -> set[str]:
        """Say what it came to."""
        raise NotImplementedError

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        try:
            self.take_options(context)
            if bpy.app.background:
                return self.execute(context)
            self._run = _Run(self.begin(context))
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        self._timer = context.window_manager.event_timer_add(0.001, window=context.window)
        context.window_manager.progress_begin(0, 100)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            run = _Run(self.begin(context))
            while not run.advance():
                pass
        except CCDRigError as error:
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        return self.finish(run.result)

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            tell(self, {"INFO"}, "Bake cancelled: nothing was changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}  # nothing else may happen meanwhile: the file must stay as it was read
        try:
            ended = self._run.advance_slice(context)
        except CCDRigError as error:
            self.cancel(context)
            tell(self, {"ERROR"}, str(error))
            return {"CANCELLED"}
        except BaseException:  # a bug is shown as one, but leaves no timer and no status text behind
            self.cancel(context)
            raise
        if not ended:
            return {"RUNNING_MODAL"}
        self.cancel(context)
        return self.finish(self._run.result)

    def cancel(self, context: bpy.types.Context) -> None:
        """Leave the modal run; Blender calls this too when it ends the run by itself."""
        self._run.steps.close()
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)


def shown_range(scene: bpy.types.Scene) -> tuple[int, int]:
    """The first and the last frame of the preview range, or of the scene."""
    if scene.use_preview_range:
        return scene.frame_preview_start, scene.frame_preview_end
    return scene.frame_start, scene.frame_end


def tell_report(operator: bpy.types.Operator, report: BakeReport, name: str = "") -> None:
    """Show what a bake came to; `name` stands before each sentence."""
    found = list(report.warnings)
    found += report.check.mismatches() if report.check is not None else ()
    if advice := report.advice():
        found.append(advice)
    for words in found:
        tell(operator, {"WARNING"}, name + words)
    for each in report.smoothed:
        if each.is_seen:
            tell(operator, {"INFO"}, name + each.words())
    for helped in report.helped[1:]:
        tell(operator, {"INFO"}, name + helped.words())
    level = "WARNING" if report.unsolved() else "INFO"
    tell(operator, {level}, f"{name}{report.summary()} (action '{report.action}')")


@dataclasses.dataclass
class _Run:
    """Work under way: its steps, the last of them, how fast it goes, and what it came to."""

    steps: Steps[Any]
    progress: Progress | None = None
    pace: Pace = dataclasses.field(default_factory=Pace)
    result: Any = None
    shown: float = -REDRAW

    def advance(self) -> bool:
        """One more step; whether it was the last."""
        progress = advance(self.steps)
        if isinstance(progress, Ended):
            self.result = progress.result
            return True
        self.pace.take(progress)
        self.progress = progress
        return False

    def advance_slice(self, context: bpy.types.Context) -> bool:
        """Go on for a moment, and show now and then how far it came; whether it has ended."""
        until = time.perf_counter() + SLICE
        while time.perf_counter() < until:
            if self.advance():
                return True
        assert self.progress is not None
        if time.perf_counter() < self.shown + REDRAW:
            return False
        self.shown = time.perf_counter()
        context.window_manager.progress_update(self.pace.percent)
        words = self.pace.words(self.progress)
        status = translated(f"Baking, {words}. Esc cancels, and nothing is changed")
        context.workspace.status_text_set(status_drawer(self.pace.percent, status))
        return False


def status_drawer(percent: float, words: str) -> Callable[[bpy.types.Header, bpy.types.Context], None]:
    """A function that draws a bar and words in the status bar; Blender calls functions only, no other callable."""

    def draw(header: bpy.types.Header, _context: bpy.types.Context) -> None:
        row = header.layout.row()
        bar = row.row()
        bar.ui_units_x = BAR
        bar.progress(factor=percent / 100.0, text=f"{percent:.0f}%")
        row.label(text=words, translate=False)

    return draw
