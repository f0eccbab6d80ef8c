"""Settings of a walk."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import InvalidInput
from ...maths.validation import is_number
from ..contacts import ContactThresholds
from ..retargeting.settings import RetargetSettings


@dataclass(frozen=True, kw_only=True)
class WalkSettings:
    """Settings of a walk.

    Attributes:
        start, stop: whether it begins, and ends, standing.
        ease: seconds in which it comes to its speed, and to rest.
        cycles: periods that it walks; 0 walks to the end of the curve.
        stride: factor on the length of steps, whose time stays.
        fit_steps: whether steps on stairs are as long as treads, and in bends no foot steps farther than in
            the cycle.
        offset: metres along the curve where it begins.
        steepest: radians up to which a foot is turned to a slope.
        clearance: leg lengths by which a foot in the air stays above what lies between two footfalls.
        adjust: leg lengths by which a footfall may go along the curve to where the foot has more to stand on.
        extension: part of a leg's length up to which it is stretched before the hips sink.
        thresholds: when a foot of the cycle is down.

    Raises:
        InvalidInput: names the field.
    """

    start: bool = True
    stop: bool = True
    ease: float = 0.6
    cycles: float = 0.0
    stride: float = 1.0
    fit_steps: bool = True
    offset: float = 0.0
    steepest: float = math.radians(35.0)
    clearance: float = 0.03
    adjust: float = 0.2
    extension: float = RetargetSettings.extension
    thresholds: ContactThresholds = RetargetSettings.thresholds

    def __post_init__(self) -> None:
        for name, lower, upper in (
            ("ease", 0.0, math.inf),
            ("cycles", 0.0, math.inf),
            ("stride", 0.1, 3.0),
            ("offset", 0.0, math.inf),
            ("steepest", 0.0, math.radians(80.0)),
            ("clearance", 0.0, 1.0),
            ("adjust", 0.0, 0.5),
            ("extension", 0.5, 1.0),
        ):
            value = getattr(self, name)
            if not (is_number(value) and math.isfinite(value) and lower <= value <= upper):
                allowed = f"{lower:g} to {upper:.4g}" if math.isfinite(upper) else f"{lower:g} or more"
                raise InvalidInput(f"{name} must be {allowed}, not {value!r}")
