"""Settings of a retargeting."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ...errors import InvalidInput
from ...maths.validation import is_number, ranged, require_ranges
from ..settings import ContactThresholds


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


HIGHEST = (2.0 - 2.0**-23) * 2.0**127
"""Largest height in single precision, in which keys and vectors are stored."""


@dataclass(frozen=True, kw_only=True)
class RetargetSettings:
    """Settings of a retargeting.

    Weights, 0 to 1, move an effector from its place after rotations are carried over to its place on the
    source. Pairs have one number, or (left, right). Knees and elbows are poles: the limb turns about the line
    between its ends.

    Attributes:
        scale: scale of the way through the world; 0 takes the ratio of the legs' lengths.
        in_place: remove the mean velocity along the ground.
        feet: how far ankles are taken to where the source has them.
        hands: how far wrists are taken to where the source has them.
        head: how far the spine bends for the head to be where the source has it.
        knees: how far legs turn for knees to be on the source's side.
        elbows: how far arms turn for elbows to be on the source's side.
        foot_space: where feet are to be; limbs start at the hip.
        hand_space: where hands are to be; limbs start at the shoulder.
        head_space: where the head is to be; its limb starts at the hips.
        knee_space: where knees are to point; limbs start at the hip.
        elbow_space: where elbows are to point; limbs start at the shoulder.
        ground: world height on which feet are to stand, metres; None takes that on which the target stands in
            its reference pose.
        contacts: lock feet that are down at heel, ball or toes, and keep soles above the ground.
        thresholds: when a foot is down.
        blend: time before and after a contact in which a foot changes over to its own motion [seconds].
        extension: part of a leg's length up to which it is stretched before the hips sink.

    Raises:
        InvalidInput: names the field.
    """

    scale: float = ranged(0.0, 0.0)
    in_place: bool = False
    feet: float | tuple[float, float] = ranged(1.0, 0.0, 1.0, may_be_pair=True)
    hands: float | tuple[float, float] = ranged(1.0, 0.0, 1.0, may_be_pair=True)
    head: float = ranged(0.0, 0.0, 1.0)
    knees: float | tuple[float, float] = ranged(0.0, 0.0, 1.0, may_be_pair=True)
    elbows: float | tuple[float, float] = ranged(0.0, 0.0, 1.0, may_be_pair=True)
    foot_space: EffectorSpace = EffectorSpace.WORLD
    hand_space: EffectorSpace = EffectorSpace.LIMB
    head_space: EffectorSpace = EffectorSpace.LIMB
    knee_space: EffectorSpace = EffectorSpace.LIMB
    elbow_space: EffectorSpace = EffectorSpace.LIMB
    ground: float | None = None
    contacts: bool = True
    # 0.3 m/s for a leg of 0.9 m
    thresholds: ContactThresholds = ContactThresholds(speed=1.0 / 3.0)  # noqa: RUF009  (it is frozen)
    blend: float = ranged(0.15, 0.0)
    extension: float = ranged(0.995, 0.5, 1.0)

    def __post_init__(self) -> None:
        require_ranges(self)
        if self.ground is not None and not (is_number(self.ground) and abs(self.ground) <= HIGHEST):
            raise InvalidInput(f"ground must be a height in metres, or None, not {self.ground!r}")

    def weight(self, name: str, is_right: bool) -> float:
        """The weight of a field of `PAIRED` on one side."""
        value = getattr(self, name)
        return float(value[is_right] if isinstance(value, tuple) else value)
