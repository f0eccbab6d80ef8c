# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of the report of a solved frame."""

from __future__ import annotations

import math

import bpy

from ...settings import SolverSettings, SolveStatus
from ..properties.constraint_kinds import SINGLE_PASS
from ..scene.evaluation import metres_per_unit
from .report import EASED, GAVE_WAY, REACHED, two_digits
from .single_frame import SolvedFrame

TURNED_ONCE = "TURNED_ONCE"
WORDS = {
    REACHED: "Reached",
    SolveStatus.STALLED.name: "Not reached: stuck, another start may help",
    TURNED_ONCE: "Not reached: its method turns each bone once. Loop may come nearer",
    SolveStatus.OPTIMAL.name: "Not reached: out of reach or held by limits, as near as it gets",
    SolveStatus.ITERATION_LIMIT.name: "Not reached yet: more iterations may help",
    EASED: "Reached, eased short of straight",
    GAVE_WAY: "Reached, with targets that give way to the body",
}
"""By how a solve ended, or of one that meets its targets the constraint that is farthest off."""


def words_of(
    posed: SolvedFrame, rig: bpy.types.Object, scene: bpy.types.Scene, settings: SolverSettings
) -> tuple[str, str]:
    """Return level and words of the report, with the largest error in metres and degrees."""
    result, scale = posed.result, max(abs(each) for each in rig.matrix_world.to_scale())
    is_missed = result.status is not SolveStatus.CONVERGED
    worst, constraint, state = max(
        zip(result.errors, posed.constraints, posed.states, strict=True),
        key=lambda row: (
            # Of targets that are missed, none that gives way for them is named.
            not (is_missed and row[2] in (EASED, GAVE_WAY)),
            max(
                row[0].distance * scale / settings.position_tolerance, row[0].angle / settings.angle_tolerance
            ),
        ),
    )
    turned, name = any(error.angle > 0.0 for error in result.errors), constraint.name
    angle = f" / {two_digits(math.degrees(worst.angle))} degrees" if turned else ""
    miss = f"{two_digits(worst.distance * scale * metres_per_unit(scene))} m{angle}"
    passes = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    is_off = worst.distance * scale > settings.position_tolerance or worst.angle > settings.angle_tolerance
    level, ended = "WARNING", result.status.name
    if result.status is SolveStatus.CONVERGED:
        level, ended = "INFO", state if is_off and state in (EASED, GAVE_WAY) else ended
    elif result.status is SolveStatus.STALLED and constraint.method in SINGLE_PASS:
        ended = TURNED_ONCE
    return level, f"{WORDS[ended]}. {miss} off at worst ({name}), {passes}"
