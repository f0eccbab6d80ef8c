# SPDX-License-Identifier: GPL-3.0-or-later
"""What a retargeting came to, in words and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...motion.retargeting.measures import Measures
from .retarget import Retargeted

NOTICED = 0.02
"""Part of a limb by which its end may be off before the report warns of it."""

TOUCHES = 5e-4
"""Metres above the ground up to which a sole is on it."""

NO_LEGS = "No leg of the two is alike: bones turn as the source's do, and feet are not held"

GROUPS = ("knee", "elbow", "head")
"""How names of effectors begin that the report tells in words of its own."""
WORDS = ("worse knee", "worse elbow", "the head")


def lines(done: Retargeted) -> tuple[str, ...]:
    """A sentence each, the most important first."""
    found = done.measures
    first, last = done.frames[0], done.frames[-1]
    return (
        f"{len(done.frames)} frames, {first:g} to {last:g}; {len(done.found.bones)} bones follow",
        *_missing(done),
        *((_feet(found),) if found.has_legs else (NO_LEGS,)),
        *((_limbs(found),) if found.errors else ()),
        *((_ground(found), _hips(found)) if found.has_legs else ()),
        f"Largest turn {math.degrees(found.turn):.1f}° a frame, the source's "
        f"{math.degrees(found.source_turn):.1f}°",
        f"Jerk of hands and feet {_ratio(found.jerk, found.source_jerk)} the source's",
        *_faults(found),
    )


def as_values(done: Retargeted) -> Mapping[str, Any]:
    """The same for a JSON file: metres, degrees, seconds."""
    found = done.measures
    return {
        "frames": len(done.frames),
        "bones": dict(done.found.bones),
        "missing": list(done.found.missing),
        "errors": dict(found.errors),
        "followed": sorted(found.followed),
        "stances": [stance.__dict__ for stance in found.stances],
        "ground": found.ground,
        "penetration": found.penetration,
        "hover": found.hover,
        "turn": math.degrees(found.turn),
        "source_turn": math.degrees(found.source_turn),
        "jerk": found.jerk,
        "source_jerk": found.source_jerk,
        "flipped": found.flipped,
        "broken": found.broken,
        "moved_frames": found.moved_frames,
        "moved": found.moved,
    }


def _missing(done: Retargeted) -> tuple[str, ...]:
    missing = done.found.missing
    if not missing:
        return ()
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return (f"Nothing to follow for: {', '.join(missing[:4])}{more}",)


def _feet(found: Measures) -> str:
    if not found.stances:
        return "No foot is ever down"
    drift = 1000.0 * max(stance.drift for stance in found.stances)
    slide = 1000.0 * sum(stance.slide for stance in found.stances) / len(found.stances)
    own = 1000.0 * sum(stance.source_slide for stance in found.stances) / len(found.stances)
    return (
        f"{_count(len(found.stances), 'contact')}: feet drift {drift:.1f} mm at most and slide "
        f"{slide:.0f} mm/s, "
        f"the source's {own:.0f} mm/s"
    )


def _limbs(found: Measures) -> str:
    """Ends of limbs each, then the worse side of knees and of elbows, and the head."""
    worst: dict[str, float] = {}
    for name, error in found.errors.items():
        pairs = zip(GROUPS, WORDS, strict=True)
        group = next((words for start, words in pairs if name.startswith(start)), name)
        worst[group] = max(error, worst.get(group, 0.0))
    parts = [f"{name}: {100.0 * error:.1f} %" for name, error in worst.items()]
    return f"Off the source's, in parts of the limb: {', '.join(parts)}"


def _faults(found: Measures) -> tuple[str, ...]:
    told = []
    if found.flipped:
        told.append(f"Knees and elbows bend to another side in {_count(found.flipped, 'frame')}")
    if found.broken:
        told.append(f"Limits are broken {_count(found.broken, 'time')}")
    return tuple(told) or ("No knee or elbow bends to another side, and no limit is broken",)


def _ground(found: Measures) -> str:
    start = f"Ground at a height of {found.ground:.3f} m: soles "
    if found.hover > TOUCHES:
        return f"{start}stay {1000.0 * found.hover:.1f} mm above it at least"
    return f"{start}get {1000.0 * found.penetration:.1f} mm below it at most"


def _hips(found: Measures) -> str:
    if not found.moved_frames:
        return "Hips are where the source has them"
    return (
        f"Hips are moved in {_count(found.moved_frames, 'frame')}, by {1000.0 * found.moved:.1f} mm at most, "
        "for legs to reach"
    )


def warnings(done: Retargeted) -> tuple[str, ...]:
    """What a user should look at."""
    found, told = done.measures, []
    if not found.has_legs:
        told.append(NO_LEGS)
    elif not found.stances:
        told.append("No foot is ever down: raise Speed or Height, or switch Lock Feet off")
    for limb, error in found.errors.items():
        if error > NOTICED and limb in found.followed:
            told.append(f"{limb}: {100.0 * error:.1f} % of the limb's length off the source's")
    if found.flipped:
        told.append(f"A knee or elbow bends to another side in {_count(found.flipped, 'frame')}")
    return tuple(told)


def _ratio(value: float, own: float) -> str:
    return f"{value / own:.2f} of" if own > 0.0 else "is as"


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
