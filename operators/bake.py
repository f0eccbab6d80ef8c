# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve a range of frames and key the result."""

import dataclasses
import time

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from ..ccd_rig.blender.bake import bake
from ..ccd_rig.blender.bake.progress import Progress, Steps
from ..ccd_rig.blender.bake.report import BakeReport
from ..ccd_rig.blender.bake.settings import BakeSettings, Keys, Order, Start
from ..ccd_rig.blender.keys import channels, obstacles
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.solver_settings import field_help
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.settings import EVEN_REDUCTION
from . import poll_reasons

SLICE = 0.2  # [s] of solving between two looks at the keyboard; each costs a redraw
DEFAULTS = {field.name: field.default for field in dataclasses.fields(BakeSettings)}
KEYS = (
    (
        "EVERY_FRAME",
        "Every Frame",
        "Key every frame of the range; between solved frames rotations are slerped",
    ),
    (
        "SOLVED_FRAMES",
        "Solved Frames Only",
        "Key only the solved frames; between them Blender interpolates each component by itself, so that "
        "limits and targets hold at the keys alone",
    ),
    (
        "TARGET_KEYS",
        "Where Targets Have Keys",
        "Solve and key only the frames at which a target, a pole or what moves them has keys, and the ends "
        "of the range; between them Blender interpolates",
    ),
    (
        "REFERENCE_KEYS",
        "Where Another Has Keys",
        "Solve and key only the frames at which another object or bone has keys, and the ends of the range; "
        "between them Blender interpolates",
    ),
)
STARTS = (
    (
        "ACTION",
        "Animation",
        "What plays at the frame; bones without keys start from rest, whatever pose they are in",
    ),
    (
        "ORIGINAL",
        "Original Animation",
        "Of an action that was baked, what played before it was first baked, so that influence does not add "
        "up from bake to bake",
    ),
    ("REST", "Rest Pose", "The rest pose, at every frame"),
    ("POSE", "Present Pose", "The pose as it stands now, at every frame"),
)
ORDERS = (
    ("FORWARDS", "Forwards", "From the first frame to the last: a chain keeps to the way of the first"),
    (
        "BACKWARDS",
        "Backwards",
        "From the last frame to the first: a chain keeps to the way of the last",
    ),
    (
        "BOTH",
        "Both Ways",
        "Both ways, joined where they are nearest to each other; what jumps least is kept",
    ),
)
DESTINATIONS = (
    (
        "NEW_ACTION",
        "New Action",
        "A copy of the present action, with the chains' keys in the range replaced; the old one is kept",
    ),
    ("CURRENT_ACTION", "Present Action", "The present action itself"),
    (
        "NLA_STRIP",
        "NLA Strip Above",
        "A new action with these keys alone, in a strip above all others; the present action goes into a "
        "strip below it and plays on as before",
    ),
)


class CCD_RIG_OT_bake(bpy.types.Operator):
    bl_idname = "ccd_rig.bake"
    bl_label = "Bake to Action"
    bl_description = (
        "Solve each frame of the range and key the chains' rotations. "
        "Nothing is changed before the last frame is solved; Esc cancels"
    )
    bl_options = {"REGISTER", "UNDO"}

    frame_start: IntProperty(
        name="Start Frame",
        description="First frame; when not set, that of the scene or its preview range",
        default=1,
        options={"SKIP_SAVE"},
    )
    frame_end: IntProperty(
        name="End Frame",
        description="Last frame; when not set, that of the scene or its preview range",
        default=250,
        options={"SKIP_SAVE"},
    )
    step: IntProperty(
        name="Frame Step",
        description="Frames from one solve to the next; the last frame is always solved",
        default=DEFAULTS["step"],
        min=1,
        soft_max=10,
    )
    only_selected: BoolProperty(
        name="Only Selected Bones", description="Bake only constraints whose chain has a selected bone"
    )
    destination: EnumProperty(
        name="Bake Into",
        description="Where the keys go",
        items=DESTINATIONS,
        default=DEFAULTS["destination"].name,
    )
    keys: EnumProperty(
        name="Keys", description="Which frames get keys", items=KEYS, default=DEFAULTS["keys"].name
    )
    order: EnumProperty(
        name="Order",
        description="In which order CCD solves frames one by one; least squares solve all frames at once",
        items=ORDERS,
        default=DEFAULTS["order"].name,
    )
    preroll: IntProperty(
        name="Preroll",
        description=field_help(BakeSettings, "preroll"),
        default=DEFAULTS["preroll"],
        min=0,
        soft_max=250,
    )
    reference_object: StringProperty(
        name="Reference Object", description="The object whose keys say where to key"
    )
    reference_bone: StringProperty(
        name="Reference Bone",
        description="Bone of the reference object whose keys count; empty: all that the object has keys for",
    )
    error_reduction: FloatProperty(
        name="Error Reduction",
        description=field_help(BakeSettings, "error_reduction"),
        default=DEFAULTS["error_reduction"],
        min=0.1,
        max=EVEN_REDUCTION,
        subtype="FACTOR",
    )

    reduce_angle: FloatProperty(
        name="Reduce, Angle",
        description="Leave out keys where each bone stays within this angle of the full motion; 0 is no such "
        "bound, and keeps all keys if Reduce, Error is 0 too",
        default=DEFAULTS["reduce_angle"],
        min=0.0,
        soft_max=0.1,
        subtype="ANGLE",
        precision=3,
    )
    reduce_error: FloatProperty(
        name="Reduce, Error",
        description="Leave out keys where the end of each chain stays within this distance of the full "
        "motion, in world units; 0 is no such bound",
        default=DEFAULTS["reduce_error"],
        min=0.0,
        soft_max=0.1,
        subtype="DISTANCE",
        precision=4,
    )
    start: EnumProperty(
        name="Start",
        description="Where each frame starts from: the pose that it stays near to",
        items=STARTS,
        default=DEFAULTS["start"].name,
    )
    verify: BoolProperty(
        name="Check Afterwards",
        description="Evaluate the range once more after the bake: say what really plays, and what keeps keys "
        "from playing as baked",
        default=DEFAULTS["verify"],
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.none_enabled(context))

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        if bpy.app.background:
            return self.execute(context)
        try:
            self._run = self._begin(context)
        except CCDRigError as error:
            self.report({"ERROR"}, str(error))
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
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return self._finish(report)

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, "Bake cancelled: nothing was changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}  # nothing else may happen meanwhile: the file must stay as it was read
        try:
            report = self._run.advance_slice(context)
        except CCDRigError as error:
            self.cancel(context)
            self.report({"ERROR"}, str(error))
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
        settings = BakeSettings(
            frame_start=self.frame_start,
            frame_end=self.frame_end,
            step=self.step,
            keys=Keys[self.keys],
            destination=obstacles.Destination[self.destination],
            constraints=_selected(active_rig(context)) if self.only_selected else (),
            error_reduction=self.error_reduction,
            order=Order[self.order],
            preroll=self.preroll,
            verify=self.verify,
            start=Start[self.start],
            # Of a bake on a few frames nothing is left out, whatever was chosen for the last one.
            reduce_angle=self.reduce_angle if self.keys == "EVERY_FRAME" else 0.0,
            reduce_error=self.reduce_error if self.keys == "EVERY_FRAME" else 0.0,
            reference_object=self.reference_object,
            reference_bone=self.reference_bone,
        )
        return _Run(bake.bake_steps(scene, active_rig(context), settings))

    def _finish(self, report: BakeReport) -> set[str]:
        for message in report.warnings:
            self.report({"WARNING"}, message)
        for mismatch in report.check.mismatches() if report.check is not None else ():
            self.report({"WARNING"}, mismatch)
        if advice := report.advice(both_ways=self.order == "BOTH"):
            self.report({"WARNING"}, advice)
        for ways in report.several_ways:
            if ways.is_seen:
                self.report({"INFO"}, ways.words())
        level = "WARNING" if report.unsolved() else "INFO"
        self.report({level}, f"{report.summary()} (action '{report.action}')")
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
        context.workspace.status_text_set(f"Baking, {words}. Esc cancels, and nothing is changed")
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
