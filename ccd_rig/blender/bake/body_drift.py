# SPDX-License-Identifier: GPL-3.0-or-later
"""A body that leaves its animation while bones are planted, in words: it climbs, tips or floats.

Knows nothing of Blender.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .finding import Finding, Trouble

CLIMBS = 0.05
"""Part of a leg's length by which a body is seen to climb or sink, and a planted bone to float."""
TIPS = math.radians(15.0)
"""Lean beside its animation that is seen."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Where something is largest.

    Attributes:
        bone: its name.
        frame: where that is.
        amount: world metres, above 0 upwards; or radians.
    """

    bone: str
    frame: float
    amount: float


@dataclass(frozen=True, slots=True)
class BodyDrift:
    """How far a figure with planted bones is from its animation.

    Attributes:
        leg: the length of its shortest leg, world metres.
        rise: of the bone that carries it beside its animation, since the first frame; None where that bone
            keeps its animation or is placed by a constraint.
        lean: the angle between its upright and that of its animation; None likewise.
        hover: the planted bone that is held highest above where it is animated; None if none is held in
            height.
    """

    leg: float
    rise: Peak | None
    lean: Peak | None
    hover: Peak | None

    def findings(self) -> tuple[Finding, ...]:
        """What is seen of it."""
        seen, found = CLIMBS * self.leg, []
        if self.rise is not None and abs(self.rise.amount) > seen:
            trouble = Trouble.CLIMB if self.rise.amount > 0.0 else Trouble.SINK
            found.append(_finding(trouble, self.rise, distance=abs(self.rise.amount)))
        if self.lean is not None and self.lean.amount > TIPS:
            found.append(_finding(Trouble.TIP, self.lean, angle=self.lean.amount))
        # A body that climbs takes its feet along.
        if not found and self.hover is not None and self.hover.amount > seen:
            found.append(_finding(Trouble.FLOAT, self.hover, distance=self.hover.amount))
        return tuple(found)

    def words(self) -> str:
        """What is seen of it, such as "'hips' climbs 0.21 m by frame 40"; or nothing."""
        return "; ".join(map(_words, self.findings()))


def _finding(trouble: Trouble, peak: Peak, distance: float = 0.0, angle: float = 0.0) -> Finding:
    return Finding(trouble, "", peak.bone, peak.frame, peak.frame, peak.frame, distance, angle)


def _words(found: Finding) -> str:
    """Of a body: more at length than the finding's own."""
    amount, degrees = found.distance, math.degrees(found.angle)
    match found.trouble:
        case Trouble.TIP:
            return f"'{found.bone}' tips by {degrees:.0f} degrees at frame {found.frame:g}"
        case Trouble.FLOAT:
            return f"'{found.bone}' floats, held {amount:.2f} m above its animation at frame {found.frame:g}"
        case _:
            does = "climbs" if found.trouble is Trouble.CLIMB else "sinks"
            return f"'{found.bone}' {does} {amount:.2f} m by frame {found.frame:g}"
