# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake one armature or all, or write the job of a render farm that does; go through what a report lists.

Solve the present frame, switch the live preview, choose a solver preset.
"""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy

from ..ccd_rig.blender.bake.settings import bake_settings, option_properties, take_stored
from ..ccd_rig.blender.farm.settings import CHUNK, PROGRAM
from ..ccd_rig.blender.languages.translation import TOOLTIPS, translated
from ..ccd_rig.blender.properties.active_rig import active_rig, rigs_to_bake
from ..ccd_rig.blender.properties.solver_settings import (
    PRESET_WORDS,
    apply_preset,
    solver_property,
    solver_settings,
)
from ..ccd_rig.blender.registration import HIDDEN, LAST, ONCE
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.settings import PRESETS, SolverSettings
from . import command
from .command import Command, FrameRange, active_constraint

if TYPE_CHECKING:
    from ..ccd_rig.blender.bake.progress import Steps
    from ..ccd_rig.blender.bake.report import BakeReport

SLICE = 0.1  # [s] of solving between two checks for events
BAR = 10.0  # width of the progress bar, in widths of a button
REDRAW = 0.5  # [s] between two updates of the progress: each costs a redraw, for which Esc waits


class ModalCommand(Command):
    """A command that runs in slices of time and shows its progress; Esc cancels it."""

    def take_options(self, context: bpy.types.Context) -> None:
        """Take stored options for a call by the user."""

    def begin(self, context: bpy.types.Context) -> "Steps[Any]":
        """Return the steps of the work, not started."""
        raise NotImplementedError

    def finish(self, result: Any) -> None:
        """Report the result of the steps."""
        raise NotImplementedError

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        try:
            self.take_options(context)
            if bpy.app.background:
                return self.execute(context)
            self._run = _Run(self.begin(context))
        except CCDRigError as error:
            self.tell("ERROR", str(error))
            return {"CANCELLED"}
        self._timer = context.window_manager.event_timer_add(0.001, window=context.window)
        context.window_manager.progress_begin(0, 100)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.solvers.stepping import result_of

        self.finish(result_of(self.begin(context)))

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            self.tell("INFO", f"{self.bl_label} cancelled: nothing was changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}  # all other events are blocked: the file must not change during the bake
        try:
            ended = self._run.advance_slice(context, self.bl_label)
        except CCDRigError as error:
            self.cancel(context)
            self.tell("ERROR", str(error))
            return {"CANCELLED"}
        except BaseException:  # a bug shows its traceback, and leaves no timer and no status text
            self.cancel(context)
            raise
        if not ended:
            return {"RUNNING_MODAL"}
        self.cancel(context)
        self.finish(self._run.items.result)
        return {"FINISHED"}

    def cancel(self, context: bpy.types.Context) -> None:
        """End the modal run; Blender calls this too when it ends the run itself."""
        self._run.steps.close()
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)


def tell_report(command: Command, report: "BakeReport", name: str = "") -> None:
    """Report the outcome of a bake; each message begins with `name`."""
    warnings = [*report.warnings, *report.mismatches()]
    if advice := report.advice():
        warnings.append(advice)
    for warning in warnings:
        command.tell("WARNING", name + warning)
    for run in report.smoothed:
        if run.is_seen:
            command.tell("INFO", name + run.words())
    for helped in [each for each in report.helped if each.is_seen][1:]:
        command.tell("INFO", name + helped.words())
    level = "INFO" if report.is_sound else "WARNING"
    words = "; ".join((report.summary(), f"action '{report.action}'"))
    command.tell(level, name + words)


class _Run:
    """State of a modal run: steps, their items, pace, and time of the last redraw [s]."""

    def __init__(self, steps: "Steps[Any]") -> None:
        from ..ccd_rig.blender.bake.progress import Pace
        from ..ccd_rig.solvers.stepping import Items

        self.steps, self.items, self._pace, self._shown = steps, Items(steps), Pace(), -REDRAW
        self._left = iter(self.items)

    def advance_slice(self, context: bpy.types.Context, label: str) -> bool:
        """Take steps for `SLICE` seconds and show a label and the progress; whether the steps ended."""
        until = time.perf_counter() + SLICE
        for progress in self._left:
            self._pace.take(progress)
            if time.perf_counter() >= until:
                break
        else:
            return True
        if time.perf_counter() < self._shown + REDRAW:
            return False
        self._shown = time.perf_counter()
        context.window_manager.progress_update(self._pace.percent)
        words = self._pace.words(progress)
        status = translated(f"{label}, {words}. Esc cancels, and nothing is changed")
        context.workspace.status_text_set(status_drawer(self._pace.percent, status))
        return False


def status_drawer(percent: float, words: str) -> Callable[[bpy.types.Header, bpy.types.Context], None]:
    """Make a function that draws a progress bar and words; the status bar takes plain functions alone."""

    def draw(header: bpy.types.Header, _context: bpy.types.Context) -> None:
        row = header.layout.row()
        bar = row.row()
        bar.ui_units_x = BAR
        bar.progress(factor=percent / 100.0, text=f"{percent:.0f}%")
        row.label(text=words, translate=False)

    return draw


class CCD_RIG_OT_bake(ModalCommand, FrameRange, bpy.types.Operator):
    bl_label = "Bake to Action"
    bl_description = (
        "Solve each frame of the range and key the chains' rotations. "
        "Nothing is changed before the last frame is solved; Esc cancels"
    )

    # The armature stores the options: SKIP_SAVE keeps those of another armature's bake from being used.
    __annotations__ = option_properties(ONCE)

    why_grey = staticmethod(command.none_enabled)

    def take_options(self, context: bpy.types.Context) -> None:
        take_stored(self.properties, active_rig(context))

    def begin(self, context: bpy.types.Context) -> "Steps[BakeReport]":
        from ..ccd_rig.blender.bake import bake

        scene = context.scene
        self.fill_range(scene)
        rig = active_rig(context)
        settings = bake_settings(scene, self, rig, (self.frame_start, self.frame_end))
        return bake.bake_steps(scene, rig, settings)

    def finish(self, report: "BakeReport") -> None:
        tell_report(self, report)


def no_rig(context: bpy.types.Context) -> str:
    """Reason if no armature of the scene has a constraint to bake."""
    return "" if rigs_to_bake(context.scene) else "No armature has an enabled CCD constraint"


class CCD_RIG_OT_bake_all(ModalCommand, bpy.types.Operator):
    bl_label = "Bake All Rigs"
    bl_description = (
        "Bake all armatures of the scene that have enabled CCD constraints, each with its own options, over "
        "the same frames. Nothing is changed before the last of them is solved; Esc cancels"
    )

    why_grey = staticmethod(no_rig)

    def begin(self, context: bpy.types.Context) -> "Steps[list[BakeReport]]":
        from ..ccd_rig.blender.bake.bake_all import bake_all_steps
        from ..ccd_rig.blender.scene.evaluation import shown_range

        scene, frames = context.scene, shown_range(context.scene)
        settings = {rig: bake_settings(scene, rig.ccd_rig.bake, rig, frames) for rig in rigs_to_bake(scene)}
        return bake_all_steps(scene, settings)

    def finish(self, reports: "list[BakeReport]") -> None:
        for baked in reports:
            tell_report(self, baked, f"{baked.armature}: ")
        missed = [baked.armature for baked in reports if baked.unsolved()]
        faulty = [baked.armature for baked in reports if not baked.is_sound and not baked.unsolved()]
        words = f"Baked {len(reports)} armatures"
        if missed:
            self.tell("WARNING", f"{words}; these miss targets: {', '.join(missed)}")
        if faulty:
            self.tell("WARNING", f"{words}; look at the reports of these: {', '.join(faulty)}")
        if not missed and not faulty:
            self.tell("INFO", f"{words}; all reach their targets")


class CCD_RIG_OT_farm(Command, bpy.types.Operator):
    bl_label = "Write Farm Job"
    bl_description = (
        "Write a job bundle (Open Job Description) that bakes all armatures of the saved file with enabled "
        "CCD constraints on a render farm, each with its own options"
    )
    bl_options = {"REGISTER"}

    directory: LAST.text("Folder", "Where the folder of the job goes", subtype="DIR_PATH")
    filter_folder: LAST.boolean(
        "Folders", "Show folders in the file browser", default=True, options={"HIDDEN"}
    )
    chunk: LAST.integer(
        "Chunk",
        "Share a longer shot out in chunks of at most this many frames; 0 bakes it in one task",
        default=CHUNK,
        min=0,
    )
    program: LAST.text("Program", "What runs Blender on the farm", default=PROGRAM)

    @staticmethod
    @command.after(no_rig)
    def why_grey(context: bpy.types.Context) -> str:
        return "" if bpy.data.filepath else "Save the file: a farm bakes what is on the disk"

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        if not self.directory:
            self.directory = str(Path(bpy.data.filepath).parent)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.atomic_write import real_folder
        from ..ccd_rig.blender.farm import bundle, results, shots
        from ..ccd_rig.blender.farm.bundle import bundle_job
        from ..ccd_rig.blender.scene.evaluation import shown_range

        scene, frames, path = context.scene, shown_range(context.scene), Path(bpy.data.filepath)
        folder = command.absolute(self.directory) / f"{path.stem}_job"
        settings = {rig: bake_settings(scene, rig.ccd_rig.bake, rig, frames) for rig in rigs_to_bake(scene)}
        shot, whole_because = shots.plan(scene, settings, self.chunk)
        farm_job = bundle_job((shot,), (real_folder(path),), results.linked_files(), self.program, False)
        bundle.write(farm_job, folder)
        if whole_because:
            self.tell("INFO", f"One task for the whole shot: {whole_because}")
        if bpy.data.is_dirty:
            self.tell("WARNING", f"{path.name} has changes: save it before the job runs")
        self.tell("INFO", f"Wrote {folder / bundle.TEMPLATE}: {len(farm_job.steps[0].tasks())} tasks")


# Findings of the last bake ----------------------------------------------------------------------------------


def no_report(context: bpy.types.Context) -> str:
    """Reason if no armature is active, or it has no report of a bake."""
    active = active_rig(context)
    if active is None:
        return "Select an armature"
    return "" if active.ccd_rig.report.words else f"'{active.name}' has not been baked yet"


@command.after(no_report)
def no_findings(context: bpy.types.Context) -> str:
    """Reason if the last bake's report has no findings."""
    from ..ccd_rig.blender.bake import report

    active = active_rig(context)
    return "" if report.from_json(active.ccd_rig.report.findings) else "The report has found nothing"


class CCD_RIG_OT_go_to_frame(Command, bpy.types.Operator):
    bl_label = "Go to Frame of Report"
    bl_description = "Go to the frame where this is worst, and show the constraint that it is about"

    finding: HIDDEN.integer(
        "Finding",
        "Which line of the report; -1 is the frame that is farthest off its target",
        default=-1,
        min=-1,
    )

    why_grey = staticmethod(no_report)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.bake import report

        group = active_rig(context).ccd_rig
        frame, constraint = group.report.worst_frame, group.report.worst_constraint
        if self.finding >= 0:
            entries = report.from_json(group.report.findings)
            if self.finding >= len(entries):
                raise RigError("The report has no such line: bake again")
            frame, constraint = entries[self.finding].frame, entries[self.finding].constraint
        integer = math.floor(frame)
        context.scene.frame_set(integer, subframe=frame - integer)
        index = group.constraints.find(constraint)
        if index >= 0:  # it may have been removed or renamed since
            group.active_index = index


class CCD_RIG_OT_report_fix(Command, bpy.types.Operator):
    bl_label = "Fix"
    bl_description = "Change the setting that helps here; then bake again"

    finding: HIDDEN.integer("Finding", "Which line of the report", min=0)

    @classmethod
    def description(cls, context: bpy.types.Context, properties: Any) -> str:
        from ..ccd_rig.blender.bake import fixes, report

        rig = active_rig(context)
        entries = () if rig is None else report.from_json(rig.ccd_rig.report.findings)
        is_known = properties.finding < len(entries)
        words = fixes.FIX_WORDS[entries[properties.finding].fix] if is_known else cls.bl_description
        return translated(words, TOOLTIPS)

    why_grey = staticmethod(no_findings)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.bake import fixes, report

        rig = active_rig(context)
        entries = report.from_json(rig.ccd_rig.report.findings)
        if self.finding >= len(entries) or not entries[self.finding].fix:
            raise RigError("There is nothing to set for this line of the report")
        chosen = entries[self.finding]
        row = rig.ccd_rig.constraints.get(chosen.constraint)
        if row is None:
            raise RigError(f"Constraint '{chosen.constraint}' is not there any more: bake again")
        said = fixes.apply_fix(context, row, chosen)
        self.tell("INFO", f"{said}: bake again")


PREFIX = "CCD: "
"""Begin of the markers' names; the armature's name follows, by which later calls remove them."""
LONGEST_NAME = 24
"""Bytes of an armature's name in a marker's, which has 63 at most."""


def _short(name: str) -> str:
    """A name in a marker's: no other armature's begins with it and a colon, and it leaves room for words."""
    import hashlib

    name = name.replace(": ", ":")
    if len(name.encode()) <= LONGEST_NAME:
        return name
    end = hashlib.sha256(name.encode()).hexdigest()[:4]
    return name.encode()[: LONGEST_NAME - 5].decode(errors="ignore") + "~" + end


class CCD_RIG_OT_report_markers(Command, bpy.types.Operator):
    bl_label = "Mark Findings"
    bl_description = "Mark what the report has found in the timeline, in place of its earlier markers"

    clear: ONCE.boolean("Clear", "Only remove these markers", default=False)

    why_grey = staticmethod(no_findings)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.bake import report

        rig, markers = active_rig(context), context.scene.timeline_markers
        prefix = PREFIX + _short(rig.name) + ": "
        for marker in [marker for marker in markers if marker.name.startswith(prefix)]:
            markers.remove(marker)
        if self.clear:
            return
        entries = report.from_json(rig.ccd_rig.report.findings)
        for finding in entries:
            upto = "" if finding.frame_start == finding.frame_end else f" to {finding.frame_end:.7g}"
            words = translated(f"{PREFIX}{finding.label()}{upto}")  # translations keep the prefix
            markers.new(prefix + words.removeprefix(PREFIX), frame=round(finding.frame_start))
        self.tell("INFO", f"{len(entries)} marker{'' if len(entries) == 1 else 's'} in the timeline")


# Solving the present frame ----------------------------------------------------------------------------------

OVERRIDES = ("max_iterations", "step_fraction", "comfort")


class CCD_RIG_OT_solve(Command, bpy.types.Operator):
    bl_label = "Solve Pose"
    bl_description = (
        "Pose the chains so that they reach their targets at this frame; keys are set only with Auto Keying"
    )

    only_active: ONCE.boolean("Only Active", "Solve the active constraint alone")
    max_iterations: solver_property(ONCE, "max_iterations")
    step_fraction: solver_property(ONCE, "step_fraction")
    comfort: solver_property(ONCE, "comfort")

    why_grey = staticmethod(command.none_enabled)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.bake import bake
        from ..ccd_rig.blender.keys import auto_keys
        from ..ccd_rig.blender.rig import clamps

        rig = active_rig(context)
        names = (active_constraint(rig).name,) if self.only_active else ()
        settings = self._settings(rig)
        with clamps.suspended():  # other rigs that are live may move its targets
            depsgraph = context.evaluated_depsgraph_get()
            posed = bake.solve_current(depsgraph, rig, names, settings)
            causes = [*bake.overruled(rig, context.evaluated_depsgraph_get, posed, settings)]
        bones = rig.pose.bones
        if refusal := auto_keys.insert(context, [(bones[bone], channel) for bone, channel in posed.channels]):
            self.tell("WARNING", refusal)
        self.tell(*posed.words(rig, context.scene, settings))
        if causes:
            self.tell("WARNING", f"What Blender shows is not the solved pose: {causes[0]}")

    def _settings(self, armature_object: bpy.types.Object) -> SolverSettings:
        """Return the armature's settings with the overrides of this call, and fill in the others."""
        settings = solver_settings(armature_object)
        for name in OVERRIDES:
            if not self.properties.is_property_set(name):
                setattr(self, name, getattr(settings, name))
        return dataclasses.replace(settings, **{name: getattr(self, name) for name in OVERRIDES})


class CCD_RIG_OT_live(Command, bpy.types.Operator):
    bl_label = "CCD Live"
    bl_description = (
        "The rig follows its targets while they are dragged, typed, scrubbed or played. "
        "Keys and channels stay as they are, and files keep nothing of it"
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        from ..ccd_rig.blender import live

        rig = active_rig(context)
        is_on = rig is not None and live.preview_of(rig) is not None
        return "" if is_on else command.none_enabled(context)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import checks, live
        from ..ccd_rig.solvers.stepping import result_of

        rig = active_rig(context)
        if rig.ccd_rig.live:
            live.switch(rig, False)
            return
        result_of(checks.require(rig, context.scene, keyed=False))
        live.switch(rig, True)


ITEMS = tuple((name, *PRESET_WORDS[name], number) for number, name in enumerate(PRESETS))


class CCD_RIG_OT_solver_preset(Command, bpy.types.Operator):
    bl_label = "Solver Preset"
    bl_description = "Set the order and the size of the solver's steps to what suits a kind of chain"

    preset: LAST.enum("Preset", "The kind of chain", items=ITEMS)

    def run(self, context: bpy.types.Context) -> None:
        apply_preset(active_rig(context), self.preset)
