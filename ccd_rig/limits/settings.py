# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of limits that are fitted to motion, see `fitting`."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, radians

from ..errors import InvalidInput
from ..maths.validation import finite, within


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit.

    Attributes:
        margin: by how much limits go beyond the motion [radians].
        percentile: part of the motion's frames that limits hold, before the margin; less than 100 leaves out
            rare extremes.
        hinge_tolerance: how far a bone may turn off one axis and still get a hinge [radians].
        snap_angle: radians within which the axis of a hinge becomes X, Y or Z, as long as the rotations stay
            within the tolerance of it.
        comfort: part of the motion's frames, those in the middle of each range, that becomes the comfort
            region; 0 leaves comfort as it is.

    Raises:
        InvalidInput: an angle outside 0..pi, a percentile outside 50..100, a comfort that is neither 0 nor
            in 50..100.
    """

    margin: float = radians(5.0)
    percentile: float = 100.0
    hinge_tolerance: float = radians(6.0)
    snap_angle: float = radians(12.0)
    comfort: float = 80.0

    def __post_init__(self) -> None:
        for name in ("margin", "hinge_tolerance", "snap_angle"):
            within(f"FitSettings.{name}", getattr(self, name), 0.0, pi)
        if not 50.0 <= finite("FitSettings.percentile", self.percentile) <= 100.0:
            raise InvalidInput(f"FitSettings.percentile is {self.percentile:g}; give 50 to 100")
        if self.comfort != 0.0 and not 50.0 <= finite("FitSettings.comfort", self.comfort) <= 100.0:
            raise InvalidInput(f"FitSettings.comfort is {self.comfort:g}; give 0 for none, or 50 to 100")
