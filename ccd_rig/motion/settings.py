"""Settings of contacts of feet with the ground (see `contacts`), of retargetings and of walks."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from ..errors import InvalidInput
from ..maths.validation import is_number, ranged, require_ranges


@dataclass(frozen=True)
class ContactThresholds:
    """Thresholds of contacts; lengths are in leg lengths, for figures of any size.

    Of feet that go fast the speed is higher, see above, and the times are shorter, see `shortest_contact`.

    Attributes:
        speed: a contact begins where the bone is slower than this, in lengths of its leg per second.
        height: a contact begins where the bone is nearer than this to the ground, in lengths of its leg.
        release: a contact ends at this many times Speed or Height, so that noise does not break it.
        shortest: shorter gaps between contacts are closed, and shorter contacts are left out [seconds].

    Raises:
        InvalidInput: names the field.
    """

    speed: float = ranged(0.4, 0.001)
    height: float = ranged(0.1, 0.001)
    release: float = ranged(1.5, 1.0)
    shortest: float = ranged(0.1, 0.0)

    def __post_init__(self) -> None:
        require_ranges(self)


# Retargeting ------------------------------------------------------------------------------------------------


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
    thresholds: ContactThresholds = ContactThresholds(speed=1.0 / 3.0)
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


# Walks ------------------------------------------------------------------------------------------------------


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
    # 1 - `soft_reach.SOFTNESS`: at 0.995 a fox's elbow snaps straight, by 1.4 times the cycle's largest turn.
    extension: float = ranged(0.98, 0.5, 1.0)
    thresholds: ContactThresholds = RetargetSettings.thresholds

    def __post_init__(self) -> None:
        require_ranges(self)
