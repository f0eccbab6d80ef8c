# SPDX-License-Identifier: GPL-3.0-or-later
"""Report of a walk, as messages and as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..properties.names import named
from .walk import Walked

SLIDES, SINKS = 5e-4, 2e-3
"""Metres of a slide, and of a sole in or above the ground, that cause a warning."""


def lines(done: Walked) -> tuple[str, ...]:
    """Return the sentences of the report, the most important first."""
    measures, cycle = done.measures, done.cycle
    first, last = done.frames[0], done.frames[-1]
    start, end = done.cycle_frames
    walked = (
        f"{len(done.frames)} frames, {first:g} to {last:g}: {done.length:.2f} m in "
        f"{measures.footfalls} footfalls"
    )
    return (
        f"{walked}, instead of the walk made before" if done.replaced else walked,
        f"Cycle of frames {start:g} to {end:g}: {done.speed:.2f} m/s, {len(cycle.legs)} legs",
        *(
            (f"On stairs and in bends steps are {100.0 * done.shortest:.0f} % as long, at least",)
            if done.shortest < 1.0
            else ()
        ),
        f"Planted balls slide {1000.0 * measures.slide:.2f} mm at most",
        f"Soles get {1000.0 * measures.penetration:.1f} mm into the ground at most, planted ones stay "
        f"{1000.0 * measures.floating:.1f} mm above it",
        _reach(done),
        f"Knees bend to the other side in {measures.flipped} frames",
        f"Beside the cycle: largest turn {_ratio(measures.turn, measures.cycle_turn)}, of a joint "
        f"{_ratio(measures.bend, measures.cycle_bend)}, jerk of feet "
        f"{_ratio(measures.jerk, measures.cycle_jerk)}",
    )


def warnings(done: Walked) -> tuple[str, ...]:
    """Return warnings to the user."""
    measures, told = done.measures, []
    if measures.stretched:
        told.append(
            f"Legs are too short for their feet in {measures.stretched} frames, by "
            f"{1000.0 * measures.missed:.0f} mm at most: lower Stride, or make the way flatter"
        )
    if measures.slide > SLIDES:
        told.append(f"Planted balls slide {1000.0 * measures.slide:.1f} mm")
    if max(measures.penetration, measures.floating) > SINKS:
        told.append(
            f"Soles get {1000.0 * measures.penetration:.0f} mm into the ground, planted ones stay "
            f"{1000.0 * measures.floating:.0f} mm above it: lower Stride, or lead the curve over evener "
            "ground"
        )
    if never := [leg.limb.name for leg in done.cycle.legs if not done.cycle.feet[leg.limb.name].stances]:
        told.append(f"Never down in the cycle, and so never planted: {named(never)}")
    if measures.airborne > measures.cycle_airborne:
        told.append(
            f"{measures.airborne} feet are in the air at once, in the cycle {measures.cycle_airborne}: "
            "lower Stride or Ease"
        )
    if measures.flipped:
        told.append(f"Knees bend to the other side in {measures.flipped} frames")
    return tuple(told)


def as_values(done: Walked) -> Mapping[str, Any]:
    """Return the report for a JSON file: metres, degrees, seconds."""
    measures = done.measures
    return {
        "frames": [float(done.frames[0]), float(done.frames[-1])],
        "length": done.length,
        "shortest": done.shortest,
        "cycle": list(done.cycle_frames),
        "speed": done.speed,
        "legs": [leg.limb.name for leg in done.cycle.legs],
        "footfalls": measures.footfalls,
        "slide": measures.slide,
        "penetration": measures.penetration,
        "floating": measures.floating,
        "stretched": measures.stretched,
        "missed": measures.missed,
        "flipped": measures.flipped,
        "turn": math.degrees(measures.turn),
        "cycle_turn": math.degrees(measures.cycle_turn),
        "bend": math.degrees(measures.bend),
        "cycle_bend": math.degrees(measures.cycle_bend),
        "airborne": measures.airborne,
        "cycle_airborne": measures.cycle_airborne,
        "jerk": measures.jerk,
        "cycle_jerk": measures.cycle_jerk,
        "moved": measures.moved,
    }


def _reach(done: Walked) -> str:
    measures = done.measures
    hips = f"hips are lowered or shifted {1000.0 * measures.moved:.0f} mm at most"
    if not measures.stretched:
        return f"All legs reach their feet; {hips}"
    missed = f"{1000.0 * measures.missed:.1f} mm at most"
    return f"Legs are too short in {measures.stretched} frames, by {missed}; {hips}"


def _ratio(value: float, of_cycle: float) -> str:
    return f"{value / of_cycle:.2f}" if of_cycle > 0.0 else "-"
