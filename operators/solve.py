# SPDX-License-Identifier: GPL-3.0-or-later
"""The present frame: solved once, or live."""

import dataclasses
import math
from collections.abc import Sequence

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty

from ..ccd_rig.blender.bake import bake
from ..ccd_rig.blender.checks import setup
from ..ccd_rig.blender.keys import auto_keys
from ..ccd_rig.blender.live import handlers
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_values import Constraint
from ..ccd_rig.blender.properties.solver_settings import (
    PRESET_WORDS,
    apply_preset,
    field_help,
    solver_settings,
)
from ..ccd_rig.blender.rig import clamps
from ..ccd_rig.errors import RigError
from ..ccd_rig.settings import PRESETS, SolveResult, SolverSettings, SolveStatus
from ..ccd_rig.solvers.stepping import result_of
from . import command
from .command import Command

OVERRIDES = ("max_iterations", "step_fraction", "comfort")
WORDS = {
    SolveStatus.CONVERGED: "Reached",
    SolveStatus.STALLED: "Not reached: stuck, another start may help",
    SolveStatus.OPTIMAL: "Not reached: out of reach or held by limits, as near as it gets",
    SolveStatus.ITERATION_LIMIT: "Not reached yet: more iterations may help",
}
DEFAULTS = {field.name: field.default for field in dataclasses.fields(SolverSettings)}


class CCD_RIG_OT_solve(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.solve"
    bl_label = "Solve Pose"
    bl_description = (
        "Pose the chains so that they reach their targets at this frame; keys are set only with Auto Keying"
    )

    only_active: BoolProperty(
        name="Only Active", description="Solve the active constraint alone", options={"SKIP_SAVE"}
    )
    max_iterations: IntProperty(
        name="Iterations",
        description=field_help(SolverSettings, "max_iterations"),
        default=DEFAULTS["max_iterations"],
        min=1,
        soft_max=500,
        options={"SKIP_SAVE"},
    )
    step_fraction: FloatProperty(
        name="Step Size",
        description=field_help(SolverSettings, "step_fraction"),
        default=DEFAULTS["step_fraction"],
        min=0.1,
        max=1.3,
        subtype="FACTOR",
        options={"SKIP_SAVE"},
    )
    comfort: BoolProperty(
        name="Comfort",
        description=field_help(SolverSettings, "comfort"),
        default=DEFAULTS["comfort"],
        options={"SKIP_SAVE"},
    )

    why_grey = staticmethod(command.none_enabled)

    def run(self, context: bpy.types.Context) -> None:
        active = constraint_list.active(active_rig(context))
        if self.only_active and active is None:
            raise RigError("No constraint is active: choose one in the list")
        names = (active.name,) if self.only_active else ()
        settings = self._settings(active_rig(context))
        with clamps.suspended():  # other rigs that are live may move its targets
            depsgraph = context.evaluated_depsgraph_get()
            posed = bake.solve_current(depsgraph, active_rig(context), names, settings)
        bones = active_rig(context).pose.bones
        if refusal := auto_keys.insert(context, [(bones[bone], channel) for bone, channel in posed.channels]):
            self.tell("WARNING", refusal)
        self.tell(*_words(posed.result, posed.constraints, active_rig(context), settings))

    def _settings(self, armature_object: bpy.types.Object) -> SolverSettings:
        """The armature's settings with what was set here; the rest is filled in, for the redo panel."""
        settings = solver_settings(armature_object)
        for name in OVERRIDES:
            if not self.properties.is_property_set(name):
                setattr(self, name, getattr(settings, name))
        return dataclasses.replace(settings, **{name: getattr(self, name) for name in OVERRIDES})


def _words(
    result: SolveResult,
    constraints: Sequence[Constraint],
    armature_object: bpy.types.Object,
    settings: SolverSettings,
) -> tuple[str, str]:
    """The level and the words of the report: how far off the worst constraint is, in metres and degrees."""
    scale = max(abs(each) for each in armature_object.matrix_world.to_scale())
    worst, name = max(
        zip(result.errors, (constraint.name for constraint in constraints), strict=True),
        key=lambda pair: max(
            pair[0].distance * scale / settings.position_tolerance, pair[0].angle / settings.angle_tolerance
        ),
    )
    turned = any(error.angle > 0.0 for error in result.errors)
    angle = f" / {math.degrees(worst.angle):.2g} degrees" if turned else ""
    miss = f"{worst.distance * scale:.2g} m{angle}"
    passes = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    level = "INFO" if result.status is SolveStatus.CONVERGED else "WARNING"
    return level, f"{WORDS[result.status]}. {miss} off at worst ({name}), {passes}"


class CCD_RIG_OT_live(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.live"
    bl_label = "CCD Live"
    bl_description = (
        "The rig follows its targets while they are dragged, typed, scrubbed or played. "
        "Keys and channels stay as they are, and files keep nothing of it"
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        rig = active_rig(context)
        is_on = rig is not None and handlers.preview_of(rig) is not None
        return "" if is_on else command.none_enabled(context)

    def run(self, context: bpy.types.Context) -> None:
        rig = active_rig(context)
        if rig.ccd_rig.live:
            handlers.switch(rig, False)
            return
        result_of(setup.require(rig, context.scene))
        handlers.switch(rig, True)


ITEMS = tuple((name, *PRESET_WORDS[name], number) for number, name in enumerate(PRESETS))


class CCD_RIG_OT_solver_preset(Command, bpy.types.Operator):
    bl_idname = "ccd_rig.solver_preset"
    bl_label = "Solver Preset"
    bl_description = "Set the order and the size of the solver's steps to what suits a kind of chain"

    preset: EnumProperty(name="Preset", description="The kind of chain", items=ITEMS)

    why_grey = staticmethod(command.no_armature)

    def run(self, context: bpy.types.Context) -> None:
        apply_preset(active_rig(context), self.preset)
