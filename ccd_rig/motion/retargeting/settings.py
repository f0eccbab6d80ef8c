"""How a motion is carried over."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from ...errors import InvalidInput
from ...maths.validation import is_number
from ..contacts import ContactThresholds


class HandSpace(enum.Enum):
    """Where hands are to be."""

    LIMB = "LIMB"
    """As far from the shoulder, in lengths of the arm, as the source's."""
    WORLD = "WORLD"
    """Where the source's are in the world, scaled as its way through the world is."""


@dataclass(frozen=True, kw_only=True)
class RetargetSettings:
    """How a motion is carried over.

    Attributes:
        scale: of the way through the world; 0 takes the ratio of the legs' lengths.
        in_place: whether the mean velocity along the ground is taken off.
        feet: 0 to 1, how far ankles are taken from where rotations alone lead to where the source has them.
        hands: the same of wrists.
        hand_space: where the source has its hands.
        contacts: whether feet that are down are locked at their balls, and soles kept above the ground.
        thresholds: when a foot is down.
        blend: seconds before and after a contact in which the foot goes over into its own motion.
        extension: part of a leg's length up to which it is stretched before the hips move towards the foot.

    Raises:
        InvalidInput: names the field.
    """

    scale: float = 0.0
    in_place: bool = False
    feet: float = 1.0
    hands: float = 1.0
    hand_space: HandSpace = HandSpace.LIMB
    contacts: bool = True
    thresholds: ContactThresholds = ContactThresholds(speed=1.0 / 3.0)  # noqa: RUF009  (it is frozen)
    blend: float = 0.2
    extension: float = 0.995

    def __post_init__(self) -> None:
        for name, lower, upper in (
            ("scale", 0.0, math.inf),
            ("feet", 0.0, 1.0),
            ("hands", 0.0, 1.0),
            ("blend", 0.0, math.inf),
            ("extension", 0.5, 1.0),
        ):
            value = getattr(self, name)
            if not (is_number(value) and math.isfinite(value) and lower <= value <= upper):
                allowed = f"{lower:g} to {upper:g}" if math.isfinite(upper) else f"{lower:g} or more"
                raise InvalidInput(f"{name} must be {allowed}, not {value!r}")
