# SPDX-License-Identifier: GPL-3.0-or-later
"""What an animator would see in a baked motion, frame ranges first, as words and as JSON.

Knows nothing of Blender; `findings` finds them.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace


class Trouble(enum.StrEnum):
    """What is wrong."""

    SHORT = "SHORT"
    """The target is out of reach."""
    OFF = "OFF"
    """The target is missed for another reason: limits, or other constraints."""
    JUMP = "JUMP"
    """A bone turns far more from one frame to the next than in the frames around."""
    SLIDE = "SLIDE"
    """What should be held in the world moves."""
    GROUND = "GROUND"
    """A bone is below the ground."""
    LIMIT = "LIMIT"
    """A limit holds a bone for long."""
    LOOP = "LOOP"
    """Base poses and targets end as they begin, the bake does not."""
    IK = "IK"
    """A switch of the rig is at IK, so that what is baked moves nothing."""


class Fix(enum.StrEnum):
    """A setting that helps."""

    NONE = ""
    EXTENSION = "EXTENSION"
    """Max Extension: the chain is never quite straight."""
    SOFT = "SOFT"
    """Softness, which is the same for the method Two Bones."""
    POLE = "POLE"
    """A pole, so that the chain does not swing about the line to its target."""
    LEAST_SQUARES = "LEAST_SQUARES"
    """The solver that spreads sudden changes over the frames around."""
    FK = "FK"
    """The rig's switch to FK."""

    @classmethod
    def _missing_(cls, value: object) -> Fix:
        """None for what another version names: reports are stored in files."""
        return cls.NONE


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing at frames in a row.

    Attributes:
        trouble: what is wrong.
        constraint: name of the constraint that it is about; empty for a loop.
        bone: name of the bone that shows it most.
        frame_start: the first of the frames.
        frame_end: the last of them.
        frame: where it is worst.
        distance: how far, world metres, at that frame; 0 where it is no distance.
        angle: how far, radians, at that frame; 0 where it is no angle.
        more: how many other bones of the constraint show it.
        follows: of a jump, whether the target jumps too.
        fix: the setting that helps.
    """

    trouble: Trouble
    constraint: str
    bone: str
    frame_start: float
    frame_end: float
    frame: float
    distance: float = 0.0
    angle: float = 0.0
    more: int = 0
    follows: bool = False
    fix: Fix = Fix.NONE

    def words(self) -> str:
        """Such as "112-120 tail.tip 0.48 m out of reach"."""
        return f"{self.span()} {self.label()}"

    def span(self) -> str:
        """Such as "57" or "112-120"."""
        first, last = f"{self.frame_start:g}", f"{self.frame_end:g}"
        return first if first == last else f"{first}-{last}"

    def label(self) -> str:
        """The words without the frames."""
        more = f" (and {self.more} more)" if self.more else ""
        far, wide = _length(self.distance), f"{_figure(math.degrees(self.angle))}°"
        match self.trouble:
            case Trouble.SHORT | Trouble.OFF:
                what = "out of reach" if self.trouble is Trouble.SHORT else "off"
                if self.distance and self.angle:
                    return f"{self.constraint} {far} {what}, turned {wide} off"
                if self.angle:
                    return f"{self.constraint} turned {wide} off"
                return f"{self.constraint} {far} {what}"
            case Trouble.JUMP:
                return f"{self.bone} jumps {wide}{more}" + (", as its target does" if self.follows else "")
            case Trouble.SLIDE:
                return f"{self.constraint} slides {far}"
            case Trouble.GROUND:
                return f"{self.bone} {far} below the ground{more}"
            case Trouble.LIMIT:
                return f"{self.bone} held by its limit{more}"
            case Trouble.LOOP:
                return f"loop does not close: {self.bone} {wide} off"
            case Trouble.IK:
                return f"{self.constraint} moves nothing: {self.bone} is at IK"


def to_json(findings: Iterable[Finding]) -> str:
    """Findings as one line of JSON."""
    return json.dumps([asdict(each) for each in findings], allow_nan=False)


def from_json(text: str) -> tuple[Finding, ...]:
    """Findings that `to_json` has written; none of an empty text."""
    rows = json.loads(text) if text else []
    found = (Finding(**row) for row in rows)
    return tuple(replace(each, trouble=Trouble(each.trouble), fix=Fix(each.fix)) for each in found)


def _length(metres: float) -> str:
    """Such as "0.48 m" or "2.1 mm"."""
    if metres >= 0.01:
        return f"{_figure(metres)} m"
    return f"{_figure(1000.0 * metres)} mm" if metres >= 5e-5 else "below 0.1 mm"


def _figure(value: float) -> str:
    """To two digits, all of them if it has more before its point: "0.48", "2.1", "148"."""
    return f"{value:.0f}" if value >= 10.0 else f"{value:.2g}"
