"""What each goal looks like from a joint: the pairs of vectors that one step has to bring together.

An effector follows while joints turn, so that a step needs no forward kinematics. With R the rotation about
a joint's head, the goals above the joint ask for the smallest `sum w |R a - b|^2` over their pairs (a, b, w):

- position: a = effector - head, b = target - head;
- orientation: a, b = the three axes of the two frames; direction: the one axis and its target; both times a
  lever, a length that makes radians and the model's unit comparable;
- pole: the chain's bend, and the same length towards the pole's side, with a weight that fades with the bend;
- balance: a = (m_above / m_total) (centre_above - head), b = target - what of the centre of mass does not
  move.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from mathutils import Quaternion, Vector

from ...goals import Goal, GoalError
from ...maths.alignment import Pair
from ...skeleton.joints import Skeleton

SlideTarget = tuple[Vector, float, float]
"""The shift that a goal wants (model axes), the part of a joint's slide that reaches it, and a weight."""


class Joints(Protocol):
    """What an effector reads of the pose that is being solved: model transforms, valid up to the joint that
    is visited."""

    heads: list[Vector]
    frames: list[Quaternion]

    def update_to(self, last: int) -> None:
        """Makes the transforms of the joints up to index `last` valid."""


class Effector(ABC):
    """CCD's side of a goal: what joints bring to its target.

    Attributes:
        goal: the goal.
        weight: what it weighs in a step: its own weight, or more while it is served before others.
        moving_joints: joints that turn for it.
        ancestors: joints whose turns move it, whether they turn for it or not.
        reads: the last joints of the chains whose transforms it looks at.
        multipliers: of each vector pair what is added to its target, see `aim_past`; none: nothing.
    """

    goal: Goal
    weight: float
    multipliers: Sequence[Vector] = ()
    moving_joints: Sequence[int]
    ancestors: Sequence[int]
    reads: Sequence[int]

    @abstractmethod
    def recompute(self, joints: Joints) -> None:
        """Takes the effector from valid transforms."""

    @abstractmethod
    def vector_pairs(self, joints: Joints, i: int, found: list[Pair]) -> None:
        """Adds what a turn about joint `i` has to bring together."""

    @abstractmethod
    def misses(self) -> list[Vector]:
        """What each vector pair is off its target, model axes, from valid transforms."""

    def aim_past(self, scale: float) -> None:
        """Lets joints aim past the target by all that passes have missed so far, times `scale`.

        The method of multipliers (Hestenes 1969, Powell 1969): a goal is met although a reference pose pulls
        at the joints too.
        """
        misses = self.misses()
        before = self.multipliers or [Vector()] * len(misses)
        self.multipliers = [scale * (old + miss) for old, miss in zip(before, misses, strict=True)]

    def aim_at_target(self) -> None:
        """Lets joints aim at the target itself again."""
        self.multipliers = ()

    @abstractmethod
    def slide_targets(self, joints: Joints, i: int, found: list[SlideTarget]) -> None:
        """Adds what a slide of joint `i` should bring about."""

    @abstractmethod
    def follow_rotation(self, joints: Joints, i: int, step: Quaternion) -> float:
        """Joint `i` was turned by `step` (model axes): carries the effector; returns the length of its
        way."""

    @abstractmethod
    def follow_slide(self, joints: Joints, i: int, shift: Vector) -> None:
        """The head of joint `i` and all above it was shifted (model axes): carries the effector."""

    @abstractmethod
    def error(self) -> GoalError:
        """How far off the goal is."""

    @abstractmethod
    def square(self) -> float:
        """The goal's part of the sum that is minimised, in squared model units."""


def movable(skeleton: Skeleton, chain: Sequence[int]) -> list[int]:
    """The joints of a chain that are not locked."""
    locked = skeleton.locked
    return [i for i in chain if i not in locked]
