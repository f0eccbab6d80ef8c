"""What goals about a chain look like from a joint, see `effector`: a point, axes of its end, its bend."""

from __future__ import annotations

from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import (
    GOALS,
    BalanceGoal,
    DirectionGoal,
    Goal,
    GoalError,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
)
from ...maths.alignment import Pair
from ...maths.rotations import angle_between
from ...skeleton.bends import NO_BEND, angle_apart, pole_bend
from ...skeleton.joints import Skeleton
from .balance_effector import BalanceEffector
from .effector import Effector, Joints, SlideTarget, movable

LEVER = 0.3
"""Part of the chain's length that stands for one radian of orientation error."""
SHORTEST_LEVER = 1e-9
"""Model units: squares of areas of shorter vectors leave single precision."""


def effector_of(goal: Goal, skeleton: Skeleton) -> Effector:
    """The effector of `goal`; InvalidInput if it is about joints that `skeleton` does not have."""
    if isinstance(goal, PositionGoal):
        return PositionEffector(goal, skeleton)
    if isinstance(goal, OrientationGoal | DirectionGoal):
        return AxesEffector(goal, skeleton)
    if isinstance(goal, PoleGoal):
        return PoleEffector(goal, skeleton)
    if isinstance(goal, BalanceGoal):
        return BalanceEffector(goal, skeleton)
    raise InvalidInput(f"a goal must be one of {', '.join(kind.__name__ for kind in GOALS)}, not {goal!r}")


class PositionEffector(Effector):
    """The point that a position goal brings to its target."""

    def __init__(self, goal: PositionGoal, skeleton: Skeleton) -> None:
        self.goal = goal
        self.tip = skeleton.index(goal.joint)
        self.reads = (self.tip,)
        self.point = goal.effector(skeleton)
        self.target = goal.target
        self.weight = goal.weight
        self.two_bone_tip = goal.two_bone_tip
        self.max_extension = goal.max_extension
        self.chain = skeleton.chain(self.tip, goal.chain_length)
        self.moving_joints = movable(skeleton, self.chain)
        self.ancestors = skeleton.chain(self.tip)
        # A joint that does not inherit rotation keeps its orientation when joints below it turn: what such a
        # turn carries is the joint's head, and all above it is shifted along. Pivots, from the tip to the
        # root.
        self.pivots = [i for i in reversed(self.ancestors) if i in skeleton.pivots] if skeleton.pivots else []
        self.points: list[Vector] = []

    @property
    def position(self) -> Vector:
        """Where the point is, model space."""
        return self.points[0]

    def recompute(self, joints: Joints) -> None:
        position = joints.heads[self.tip] + joints.frames[self.tip] @ self.point
        self.points = [position, *(joints.heads[i] for i in self.pivots)]

    def vector_pairs(self, joints: Joints, i: int, found: list[Pair]) -> None:
        head = joints.heads[i]
        points, aim = self.points, self._aim()
        if len(points) == 1:
            found.append((points[0] - head, aim - head, self.weight))
        else:
            end = points[self._level(i)]
            found.append((end - head, aim - (points[0] - end) - head, self.weight))

    def misses(self) -> list[Vector]:
        return [self.target - self.points[0]]

    def slide_targets(self, joints: Joints, i: int, found: list[SlideTarget]) -> None:
        found.append((self._aim() - self.points[0], 1.0, self.weight))

    def follow_rotation(self, joints: Joints, i: int, step: Quaternion) -> float:
        head = joints.heads[i]
        points = self.points
        if len(points) == 1:
            old = points[0]
            points[0] = new = head + step @ (old - head)
            return (new - old).length
        level = self._level(i)
        old = points[level]
        new = head + step @ (old - head)
        shift = new - old
        points[level] = new
        for other in range(level):
            points[other] = points[other] + shift
        return shift.length

    def follow_slide(self, joints: Joints, i: int, shift: Vector) -> None:
        for level in range(self._level(i - 1) + 1):
            self.points[level] = self.points[level] + shift

    def error(self) -> GoalError:
        return GoalError(distance=(self.points[0] - self.target).length)

    def square(self) -> float:
        return self.goal.weight * (self.points[0] - self.target).length_squared

    def hangs_on(self, i: int) -> Vector:
        """What a turn of joint `i` swings: the effector, or the head of the first joint on the way to it that
        does not inherit rotation (model space)."""
        return self.points[self._level(i)]

    def _aim(self) -> Vector:
        return self.target + self.multipliers[0] if self.multipliers else self.target

    def _level(self, i: int) -> int:
        """How many joints that do not inherit rotation lie above joint `i` on the way to the effector."""
        return sum(1 for pivot in self.pivots if pivot > i)


class AxesEffector(Effector):
    """The frame of an orientation goal, or the one axis of it that a direction goal is about."""

    def __init__(self, goal: OrientationGoal | DirectionGoal, skeleton: Skeleton) -> None:
        self.goal = goal
        self.tip = skeleton.index(goal.joint)
        self.reads = (self.tip,)
        self.weight = goal.weight
        chain = skeleton.chain(self.tip, goal.chain_length)
        ancestors = skeleton.chain(self.tip)
        # Turns below a joint that does not inherit rotation do not turn the frame.
        first = max((place for place, i in enumerate(ancestors) if i in skeleton.pivots), default=0)
        self.ancestors = ancestors[first:]
        self.moving_joints = [i for i in movable(skeleton, chain) if i in self.ancestors]
        joints = skeleton.joints
        links = [joints[i].offset.length for i in chain[1:]] + [joints[self.tip].length]
        self.lever = max(LEVER * sum(links), SHORTEST_LEVER) if sum(links) else 1.0
        if isinstance(goal, OrientationGoal):
            self.axes = [Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))]
            wanted = [goal.target @ axis for axis in self.axes]
        else:
            self.axes = [goal.axis]
            wanted = [goal.target]
        self.wanted = [self.lever * axis for axis in wanted]
        self.now = wanted

    def recompute(self, joints: Joints) -> None:
        frame = joints.frames[self.tip]
        self.frame = frame
        self.now = [self.lever * (frame @ axis) for axis in self.axes]

    def vector_pairs(self, joints: Joints, i: int, found: list[Pair]) -> None:
        aims = self.wanted
        if self.multipliers:
            aims = [wanted + more for wanted, more in zip(aims, self.multipliers, strict=True)]
        found.extend((now, aim, self.weight) for now, aim in zip(self.now, aims, strict=True))

    def misses(self) -> list[Vector]:
        return [wanted - now for now, wanted in zip(self.now, self.wanted, strict=True)]

    def slide_targets(self, joints: Joints, i: int, found: list[SlideTarget]) -> None:
        """No slide turns a frame."""

    def follow_rotation(self, joints: Joints, i: int, step: Quaternion) -> float:
        self.frame = step @ self.frame
        before = self.now
        self.now = [step @ axis for axis in before]
        return max((new - old).length for new, old in zip(self.now, before, strict=True))

    def follow_slide(self, joints: Joints, i: int, shift: Vector) -> None:
        """A shift leaves a frame as it is."""

    def error(self) -> GoalError:
        if isinstance(self.goal, OrientationGoal):
            return GoalError(angle=angle_between(self.frame, self.goal.target))
        (now,), (wanted,) = self.now, self.wanted
        return GoalError(angle=angle_apart(now, wanted))

    def square(self) -> float:
        return self.goal.weight * sum(
            (a - b).length_squared for a, b in zip(self.now, self.wanted, strict=True)
        )


class PoleEffector(Effector):
    """The bend of a chain, and the side it should be on. Only the chain's root turns for it."""

    def __init__(self, goal: PoleGoal, skeleton: Skeleton) -> None:
        self.goal = goal
        self.target = goal.target
        self.angle = goal.angle
        self.chain = goal.chain(skeleton)
        self.reads = self.chain[-1:]
        self.moving_joints = movable(skeleton, self.chain[:1])
        self.ancestors: tuple[int, ...] = ()
        self.end = goal.effector(skeleton)
        self.axis = goal.bend_axis(skeleton)
        self.weight = goal.weight
        self.pole_bend = NO_BEND

    def recompute(self, joints: Joints) -> None:
        heads = [joints.heads[i] for i in self.chain]
        tip = self.chain[-1]
        end = joints.heads[tip] + joints.frames[tip] @ self.end
        axis = joints.frames[self.axis.joint] @ self.axis.axis
        self.pole_bend = pole_bend(heads, end, self.target, axis, self.axis.scale, self.angle)

    def vector_pairs(self, joints: Joints, i: int, found: list[Pair]) -> None:
        joints.update_to(self.chain[-1])
        self.recompute(joints)
        bend, side, weight = self.pole_bend
        if weight > 0.0:
            aim = side * bend.length
            if self.multipliers:
                aim = aim + self.multipliers[0]
            found.append((bend, aim, self.weight * weight * weight))

    def misses(self) -> list[Vector]:
        bend, side, weight = self.pole_bend
        return [side * bend.length - bend if weight > 0.0 else Vector()]

    def slide_targets(self, joints: Joints, i: int, found: list[SlideTarget]) -> None:
        """The root's slide does not change the side of the bend; others do not serve."""

    def follow_rotation(self, joints: Joints, i: int, step: Quaternion) -> float:
        return 0.0

    def follow_slide(self, joints: Joints, i: int, shift: Vector) -> None:
        """Worked out anew when it is asked for."""

    def error(self) -> GoalError:
        return GoalError(angle=self.pole_bend.error)

    def square(self) -> float:
        bend, side, weight = self.pole_bend
        return self.goal.weight * (weight * (bend - side * bend.length)).length_squared
