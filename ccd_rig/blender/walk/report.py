# SPDX-License-Identifier: GPL-3.0-or-later
"""What a walk came to, in words and as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .walk import Walked

SLIDES, SINKS = 5e-4, 2e-3
"""Metres from which a slide, and a sole in or above the ground, is warned of."""


def lines(done: Walked) -> tuple[str, ...]:
    """A sentence each, the most important first."""
    found, cycle = done.measures, done.cycle
    first, last = done.frames[0], done.frames[-1]
    start, end = done.cycle_frames
    return (
        f"{len(done.frames)} frames, {first:g} to {last:g}: {done.length:.2f} m in "
        f"{found.footfalls} footfalls",
        f"Cycle of frames {start:g} to {end:g}: {cycle.speed:.2f} m/s, {len(cycle.legs)} legs",
        f"Planted balls slide {1000.0 * found.slide:.2f} mm at most",
        f"Soles get {1000.0 * found.penetration:.1f} mm into the ground at most, planted ones stay "
        f"{1000.0 * found.floating:.1f} mm above it",
        _reach(done),
        f"Knees bend to the other side in {found.flipped} frames",
        f"Largest turn {_ratio(found.turn, found.cycle_turn)} the cycle's, jerk of feet "
        f"{_ratio(found.jerk, found.cycle_jerk)} the cycle's",
    )


def warnings(done: Walked) -> tuple[str, ...]:
    """What a user should look at."""
    found, told = done.measures, []
    if found.stretched:
        told.append(
            f"Legs are too short for their feet in {found.stretched} frames, by "
            f"{1000.0 * found.missed:.0f} mm at most: lower Stride, or make the way flatter"
        )
    if found.slide > SLIDES:
        told.append(f"Planted balls slide {1000.0 * found.slide:.1f} mm")
    if max(found.penetration, found.floating) > SINKS:
        told.append(
            f"Soles get {1000.0 * found.penetration:.0f} mm into the ground, planted ones stay "
            f"{1000.0 * found.floating:.0f} mm above it: lower Stride, or lead the curve over evener ground"
        )
    if found.flipped:
        told.append(f"Knees bend to the other side in {found.flipped} frames")
    return tuple(told)


def as_values(done: Walked) -> Mapping[str, Any]:
    """The same for a JSON file: metres, degrees, seconds."""
    found = done.measures
    return {
        "frames": [float(done.frames[0]), float(done.frames[-1])],
        "length": done.length,
        "cycle": list(done.cycle_frames),
        "speed": done.cycle.speed,
        "legs": [leg.limb.name for leg in done.cycle.legs],
        "footfalls": found.footfalls,
        "slide": found.slide,
        "penetration": found.penetration,
        "floating": found.floating,
        "stretched": found.stretched,
        "missed": found.missed,
        "flipped": found.flipped,
        "turn": math.degrees(found.turn),
        "cycle_turn": math.degrees(found.cycle_turn),
        "jerk": found.jerk,
        "cycle_jerk": found.cycle_jerk,
        "moved": found.moved,
    }


def _reach(done: Walked) -> str:
    found = done.measures
    hips = f"hips are lowered or shifted {1000.0 * found.moved:.0f} mm at most"
    if not found.stretched:
        return f"All legs reach their feet; {hips}"
    return (
        f"Legs are too short in {found.stretched} frames, by {1000.0 * found.missed:.1f} mm at most; {hips}"
    )


def _ratio(value: float, own: float) -> str:
    return f"{value / own:.2f} of" if own > 0.0 else "is as"
