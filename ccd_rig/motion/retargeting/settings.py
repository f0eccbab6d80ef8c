"""Settings of a retargeting."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from ...errors import InvalidInput
from ...maths.validation import is_number
from ..contacts import ContactThresholds


class EffectorSpace(enum.Enum):
    """Spaces in which an effector follows its source."""

    LIMB = "LIMB"
    """Relative to the start of its limb, in lengths of the limb."""
    WORLD = "WORLD"
    """In the world, scaled as the source's path through the world."""


Weight = float | tuple[float, float]
"""One weight for both sides, or (left, right)."""
WEIGHTS = ("feet", "hands", "head", "knees", "elbows")
"""Fields of `RetargetSettings` that weigh an effector."""
PAIRED = tuple(name for name in WEIGHTS if name != "head")
"""Fields of effectors that a figure has on both sides."""
SPACES = ("foot_space", "hand_space", "head_space", "knee_space", "elbow_space")
"""Fields with the space of each effector."""


@dataclass(frozen=True, kw_only=True)
class RetargetSettings:
    """Settings of a retargeting.

    Weights, 0 to 1, move an effector from its place after rotations are carried over to its place on the
    source. Pairs have one number, or (left, right). Knees and elbows are poles: the limb turns about the line
    between its ends.

    Attributes:
        scale: of the way through the world; 0 takes the ratio of the legs' lengths.
        in_place: whether the mean velocity along the ground is taken off.
        feet, hands, head, knees, elbows: weights.
        foot_space, hand_space, head_space, knee_space, elbow_space: where the source has each; limbs start
            at the hip joint, at the shoulder, and for the head at the hips.
        ground: world height on which feet are to stand, metres; None takes that on which the target stands in
            its reference pose.
        contacts: whether feet that are down are locked at what they roll on, and soles kept above the ground.
        thresholds: when a foot is down.
        blend: seconds before and after a contact in which the foot goes over into its own motion.
        extension: part of a leg's length up to which it is stretched before the hips move towards the foot.

    Raises:
        InvalidInput: names the field.
    """

    scale: float = 0.0
    in_place: bool = False
    feet: Weight = 1.0
    hands: Weight = 1.0
    head: float = 0.0
    knees: Weight = 0.0
    elbows: Weight = 0.0
    foot_space: EffectorSpace = EffectorSpace.WORLD
    hand_space: EffectorSpace = EffectorSpace.LIMB
    head_space: EffectorSpace = EffectorSpace.LIMB
    knee_space: EffectorSpace = EffectorSpace.LIMB
    elbow_space: EffectorSpace = EffectorSpace.LIMB
    ground: float | None = None
    contacts: bool = True
    # 0.3 m/s for a leg of 0.9 m
    thresholds: ContactThresholds = ContactThresholds(speed=1.0 / 3.0)  # noqa: RUF009  (it is frozen)
    blend: float = 0.15
    extension: float = 0.995

    def __post_init__(self) -> None:
        for name, lower, upper in (
            ("scale", 0.0, math.inf),
            *((name, 0.0, 1.0) for name in WEIGHTS),
            ("blend", 0.0, math.inf),
            ("extension", 0.5, 1.0),
        ):
            value = getattr(self, name)
            values = value if name in PAIRED and isinstance(value, tuple) and len(value) == 2 else (value,)
            if not all(is_number(each) and math.isfinite(each) and lower <= each <= upper for each in values):
                allowed = f"{lower:g} to {upper:g}" if math.isfinite(upper) else f"{lower:g} or more"
                two = ", or a pair of these for left and right" if name in PAIRED else ""
                raise InvalidInput(f"{name} must be {allowed}{two}, not {value!r}")
        if self.ground is not None and not (is_number(self.ground) and math.isfinite(self.ground)):
            raise InvalidInput(f"ground must be a height in metres, or None, not {self.ground!r}")

    def weight(self, name: str, is_right: bool) -> float:
        """The weight of a field of `PAIRED` on one side."""
        value = getattr(self, name)
        return float(value[is_right] if isinstance(value, tuple) else value)
