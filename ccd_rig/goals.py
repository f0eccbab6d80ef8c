"""What must be achieved, and how far off it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mathutils import Vector

from .errors import InvalidInput
from .skeleton import Skeleton, Transform, frozen_vector


class GoalError(NamedTuple):
    """How far off a goal is: `distance` in the model's unit, `angle` in radians."""

    distance: float
    angle: float = 0.0


@dataclass(frozen=True)
class PositionGoal:
    """A point of a joint's bone should be at a point of model space.

    Attributes:
        joint: name of the joint that carries the point.
        target: where the point should be, in model space.
        offset: the point in the joint's frame; None means the bone's tail.
        weight: how much this goal counts where it competes with others, above 0.
        chain_length: how many joints, counted from `joint`, may move for it; 0 means all up to the root
            (Kenwright 2012, section 6).

    Raises:
        InvalidInput: on numbers that are not finite, or a weight that is not above 0.
    """

    joint: str
    target: Vector
    offset: Vector | None = None
    weight: float = 1.0
    chain_length: int = 0

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "target", frozen_vector(self.target, f"goal on joint '{self.joint}': target"))
        if self.offset is not None:
            store(self, "offset", frozen_vector(self.offset, f"goal on joint '{self.joint}': offset"))
        if not (math.isfinite(self.weight) and self.weight > 0.0):
            raise InvalidInput(f"goal on joint '{self.joint}': weight must be above 0, not {self.weight:g}")
        if self.chain_length < 0:
            raise InvalidInput(
                f"goal on joint '{self.joint}': chain_length must be 0 (to the root) or more, not {self.chain_length}"
            )

    def effector(self, skeleton: Skeleton) -> Vector:
        """The point that should reach the target, in the joint's frame."""
        if self.offset is not None:
            return self.offset
        return Vector((0.0, skeleton.joints[skeleton.index(self.joint)].length, 0.0))


Goal = PositionGoal


def measure(goal: Goal, skeleton: Skeleton, transforms: Sequence[Transform]) -> GoalError:
    """How far off `goal` is, given `forward_kinematics(skeleton, pose)`."""
    effector = transforms[skeleton.index(goal.joint)].point(goal.effector(skeleton))
    return GoalError((effector - goal.target).length)
