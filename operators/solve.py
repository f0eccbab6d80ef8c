# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve the present frame, switch the live preview, choose a solver preset."""

import dataclasses
import math

import bpy

from ..ccd_rig.blender import checks, live
from ..ccd_rig.blender.bake import bake
from ..ccd_rig.blender.bake.report import EASED, GAVE_WAY, REACHED, two_digits
from ..ccd_rig.blender.bake.single_frame import SolvedFrame
from ..ccd_rig.blender.keys import auto_keys
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.solver_settings import (
    PRESET_WORDS,
    apply_preset,
    solver_property,
    solver_settings,
)
from ..ccd_rig.blender.registration import LAST, ONCE
from ..ccd_rig.blender.rig import clamps
from ..ccd_rig.blender.scene.evaluation import metres_per_unit
from ..ccd_rig.settings import PRESETS, SolverSettings, SolveStatus
from ..ccd_rig.solvers.stepping import result_of
from . import command
from .command import Command, active_constraint

OVERRIDES = ("max_iterations", "step_fraction", "comfort")
WORDS = {
    REACHED: "Reached",
    SolveStatus.STALLED.name: "Not reached: stuck, another start may help",
    SolveStatus.OPTIMAL.name: "Not reached: out of reach or held by limits, as near as it gets",
    SolveStatus.ITERATION_LIMIT.name: "Not reached yet: more iterations may help",
    EASED: "Reached, eased short of straight",
    GAVE_WAY: "Reached, with targets that give way to the body",
}
"""By how a solve ended, or of one that meets its targets the constraint that is farthest off."""


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
        self.tell(*_words(posed, context, settings))
        if causes:
            self.tell("WARNING", f"What Blender shows is not the solved pose: {causes[0]}")

    def _settings(self, armature_object: bpy.types.Object) -> SolverSettings:
        """Return the armature's settings with the overrides of this call, and fill in the others."""
        settings = solver_settings(armature_object)
        for name in OVERRIDES:
            if not self.properties.is_property_set(name):
                setattr(self, name, getattr(settings, name))
        return dataclasses.replace(settings, **{name: getattr(self, name) for name in OVERRIDES})


def _words(
    posed: SolvedFrame,
    context: bpy.types.Context,
    settings: SolverSettings,
) -> tuple[str, str]:
    """Return level and words of the report, with the largest error in metres and degrees."""
    result, scale = posed.result, max(abs(each) for each in active_rig(context).matrix_world.to_scale())
    is_missed = result.status is not SolveStatus.CONVERGED
    worst, name, state = max(
        zip(result.errors, (each.name for each in posed.constraints), posed.states, strict=True),
        key=lambda row: (
            # Of targets that are missed, none that gives way for them is named.
            not (is_missed and row[2] in (EASED, GAVE_WAY)),
            max(
                row[0].distance * scale / settings.position_tolerance, row[0].angle / settings.angle_tolerance
            ),
        ),
    )
    turned = any(error.angle > 0.0 for error in result.errors)
    angle = f" / {two_digits(math.degrees(worst.angle))} degrees" if turned else ""
    miss = f"{two_digits(worst.distance * scale * metres_per_unit(context.scene))} m{angle}"
    passes = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    is_off = worst.distance * scale > settings.position_tolerance or worst.angle > settings.angle_tolerance
    level, ended = "WARNING", result.status.name
    if result.status is SolveStatus.CONVERGED:
        level, ended = "INFO", state if is_off and state in (EASED, GAVE_WAY) else ended
    return level, f"{WORDS[ended]}. {miss} off at worst ({name}), {passes}"


class CCD_RIG_OT_live(Command, bpy.types.Operator):
    bl_label = "CCD Live"
    bl_description = (
        "The rig follows its targets while they are dragged, typed, scrubbed or played. "
        "Keys and channels stay as they are, and files keep nothing of it"
    )

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        rig = active_rig(context)
        is_on = rig is not None and live.preview_of(rig) is not None
        return "" if is_on else command.none_enabled(context)

    def run(self, context: bpy.types.Context) -> None:
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
