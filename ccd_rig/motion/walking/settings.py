"""Settings of a walk."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...maths.validation import ranged, require_ranges
from ..retargeting.settings import RetargetSettings
from ..settings import ContactThresholds


@dataclass(frozen=True, kw_only=True)
class WalkSettings:
    """Settings of a walk.

    Attributes:
        start: begin at rest, with all feet on the ground.
        stop: end at rest, with all feet on the ground.
        ease: time in which the figure comes to its speed, and to rest [seconds].
        cycles: how many periods the figure walks; 0 for as many as the curve has room for.
        stride: length of steps, as a factor on those of the cycle.
        fit_steps: steps on stairs are as long as treads, or as several that are low; in bends the outer feet
            step no farther than in the cycle, and the body goes slower.
        offset: how far along the curve the walk begins [metres].
        steepest: slope up to which feet are turned to the ground [radians].
        clearance: how far a foot in the air stays above what lies between two steps, in lengths of a leg.
        adjust: leg lengths by which a footfall may go along the curve to where the foot has more to stand on.
        extension: part of a leg's length up to which it is stretched before the hips sink.
        thresholds: when a foot of the cycle is down.

    Raises:
        InvalidInput: names the field.
    """

    start: bool = True
    stop: bool = True
    ease: float = ranged(0.6, 0.0)
    cycles: float = ranged(0.0, 0.0)
    stride: float = ranged(1.0, 0.1, 3.0)
    fit_steps: bool = True
    offset: float = ranged(0.0, 0.0)
    steepest: float = ranged(math.radians(35.0), 0.0, math.radians(80.0))
    clearance: float = ranged(0.03, 0.0, 1.0)
    adjust: float = ranged(0.2, 0.0, 0.5)
    extension: float = ranged(RetargetSettings.extension, 0.5, 1.0)
    thresholds: ContactThresholds = RetargetSettings.thresholds

    def __post_init__(self) -> None:
        require_ranges(self)
