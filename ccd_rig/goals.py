"""Goals of a solve, and their errors.

A goal constrains bones of a pose in model space. Competing goals share their joints by weight. A goal with a
larger `priority` number gives way to goals with smaller numbers. A class over `Goal` has all answers about
its kind; the kernel measures it (`kernel/goals`).
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from mathutils import Quaternion, Vector

from .defaults import (
    BALANCE_AXES,
    CHAIN_LENGTH,
    EXTENSION_JOINTS,
    MAX_EXTENSION,
    POLE_ANGLE,
    PRIORITY,
    WEIGHT,
)
from .errors import InvalidInput
from .maths.batch import unit_rows
from .maths.validation import angle, frozen_rotation, frozen_vector, is_number, is_whole, shown, store
from .skeleton.joints import Skeleton
from .skeleton.kinematics import BendAxis, Transform, bend_axis_of, forward_kinematics
from .skeleton.pose import Pose

WEIGHTS = 1e-9, 1e9
"""Smallest and largest weight of a goal: beyond this ratio the lighter goal is lost to rounding."""
SHORT = 1e-4
"""Distance from a goal's point, in parts of the reach, above which a joint moves the point."""
END_PART = 0.5
"""Most length of a hand or a foot, in parts of the shorter link of its limb."""
STRAIGHT = 0.01
"""Radians of bend at rest below which a limb is straight."""


class GoalError(NamedTuple):
    """The error of a goal: `distance` in the model's unit, `angle` in radians; 0 where it does not apply."""

    distance: float = 0.0
    angle: float = 0.0


class TargetKind(enum.Enum):
    """Kinds of targets, in model space."""

    POINT = "POINT"
    DIRECTION = "DIRECTION"
    """A vector of length 1."""
    ROTATION = "ROTATION"
    """A unit quaternion (w, x, y, z)."""

    @property
    def has_length_one(self) -> bool:
        return self is not TargetKind.POINT


Limb = tuple[int, Vector]
"""The middle joint of a limb, and the axis about which it is bent at rest, in the joint's frame."""


class ReachWindow(NamedTuple):
    """Part of a chain that must not be stretched past a length."""

    joints: tuple[int, ...]  # of the part, root first
    end: Vector  # the effector in the frame of the last joint


class Goal(ABC):
    """A goal of a solve: its target, its joints, and its row in the kernel's tables.

    A class over it is listed in `GOALS`, and has its case in `kernel/goals` and in `kernel/ccd.gather_pairs`.

    Attributes:
        number: the kernel's number of the kind.
        label: its name in messages, with fields in braces.
        target_kind: kind of the target.
        target: in model space.
        weight, priority: see `PositionGoal`.
        angle, max_extension, two_bone_tip: see `PoleGoal` and `PositionGoal`; other goals have no such field,
            and count as these values.
        takes_shared_joints: whether joints of other goals that also move all joints of this one serve it.
    """

    number: ClassVar[int]
    label: ClassVar[str]
    target_kind: ClassVar[TargetKind]
    takes_shared_joints: ClassVar[bool] = False
    __dataclass_fields__: ClassVar[dict[str, Any]]  # each kind is a dataclass

    target: Vector | Quaternion
    weight: float
    priority: int
    angle = 0.0
    max_extension = MAX_EXTENSION
    two_bone_tip = False

    def __post_init__(self) -> None:
        store(self, "target", _CHECKS[self.target_kind](self.target, f"{self.name}: target"))
        lightest, heaviest = WEIGHTS
        if not (is_number(self.weight) and lightest <= self.weight <= heaviest):
            raise InvalidInput(
                f"{self.name}: weight must be {lightest:g} to {heaviest:g}, not {shown(self.weight)}"
            )
        if not is_whole(self.priority) or self.priority < 0:
            raise InvalidInput(
                f"{self.name}: priority must be a whole number, 0 (served first) or more, not "
                f"{shown(self.priority)}"
            )

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.label.format_map(vars(self))

    @abstractmethod
    def joints(self, skeleton: Skeleton) -> tuple[int, ...]:
        """Indices of the joints that may move for the goal, locked ones too."""

    def serving(self, skeleton: Skeleton) -> set[int]:
        """Indices of the joints that move the goal: `joints` without those that have no effect on it."""
        return set(self.joints(skeleton))

    def chain(self, skeleton: Skeleton) -> tuple[int, ...]:
        """Indices of the joints from the root of the goal's chain to its end."""
        return self.joints(skeleton)

    def reach(self, skeleton: Skeleton) -> float:
        """The length of the goal's stretched chain."""
        chain = self.chain(skeleton)
        return _links(skeleton, chain) + skeleton.joints[chain[-1]].length

    @abstractmethod
    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        """Values in the kernel's tables of goals that differ from those of `GOAL_ROW`."""

    def check(self, _skeleton: Skeleton) -> None:
        """Raise InvalidInput if the goal does not fit a skeleton."""
        return

    @property
    def has_window(self) -> bool:
        """Whether a part of the chain must not be stretched past a length."""
        return self.max_extension < 1.0

    def window(self, _skeleton: Skeleton) -> ReachWindow | None:
        """The part of the chain that `max_extension` applies to; None for goals that have no such part."""
        return None

    def limb(self, _skeleton: Skeleton, _moving: Collection[int]) -> Limb | None:
        """The limb whose joints, all in `moving`, move the goal's point; None without a limb."""
        return None

    def swivelled(self, _skeleton: Skeleton) -> tuple[int, ...]:
        """Indices of the joints, root first, of the chain that the goal turns about its line."""
        return ()

    def with_longer_chain(self, _skeleton: Skeleton, _joints: int, _window: int) -> Self:
        """The goal with so many more joints at the root of its chain, and `window` of its reach window."""
        return self


GOAL_ROW = {
    "goal_kind": 0,
    "goal_joint": 0,
    "goal_root": 0,
    "goal_rank": 0,
    "goal_point": (0.0, 0.0, 0.0),
    "goal_weight": 1.0,
    "goal_axis": (0.0, 0.0, 0.0),
    "goal_axis_joint": 0,
    "goal_scale": 0.0,
    "goal_angle": 0.0,
    "goal_tip": 0,
}
"""The kernel's tables of goals, see `kernel.Problem`, with the values of a goal that has none of its own."""


class ChainGoal(Goal):
    """A goal of one joint, served by a chain from it towards the root."""

    joint: str
    chain_length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count(self, "chain_length")

    def joints(self, skeleton: Skeleton) -> tuple[int, ...]:
        return skeleton.chain(self.joint, self.chain_length)

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        joint = skeleton.index(self.joint)
        return {"goal_joint": joint, "goal_root": skeleton.chain(joint)[0], "goal_axis_joint": joint}

    def with_longer_chain(self, skeleton: Skeleton, joints: int, _window: int) -> Self:
        return replace(self, chain_length=len(self.joints(skeleton)) + joints)


class EffectorGoal(Goal):
    """A goal of a point that a joint carries."""

    joint: str
    offset: Vector | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.offset is not None:
            store(self, "offset", frozen_vector(self.offset, f"{self.name}: offset"))

    def effector(self, skeleton: Skeleton) -> Vector:
        """The point in the joint's frame: what should reach the target, or a chain's end."""
        if self.offset is not None:
            return self.offset
        return Vector((0.0, skeleton.joints[skeleton.index(self.joint)].length, 0.0))


class FrameGoal(ChainGoal):
    """A goal of the rotation of a joint's frame."""

    def serving(self, skeleton: Skeleton) -> set[int]:
        # Rotations below a joint that does not inherit them do not turn the frame.
        pivots = [i for i in skeleton.chain(self.joint) if i in skeleton.pivots]
        return set(self.joints(skeleton)).difference(range(max(pivots, default=0)))


@dataclass(frozen=True)
class PositionGoal(ChainGoal, EffectorGoal):
    """A point of a joint's bone should be at a point of model space.

    Attributes:
        joint: name of the joint that carries the point.
        target: the point's target, in model space.
        offset: the point in the joint's frame; None means the bone's tail.
        weight: beside competing goals of the same priority, 1e-9 to 1e9.
        priority: 0 is served first; a goal never worsens a goal with a smaller number.
        chain_length: number of joints, counted from `joint`, that may move for the goal; 0 means all up to
            the root (Kenwright 2012, section 6).
        max_extension: largest part of its length to which the chain may be stretched; joints further up do
            the rest (Kenwright 2012, section 10, reach windows). 1 sets no window.
        extension_joints: number of joints, counted from `joint`, inside the reach window; 0 means the whole
            chain.
        two_bone_tip: whether the last two joints are solved together by the law of cosines, before and after
            the others are visited. Other joints stay where the two reach the target alone (Kenwright 2012,
            5.2).

    Raises:
        InvalidInput: on numbers that are not finite or out of range.
    """

    number: ClassVar[int] = 0
    label: ClassVar[str] = "position goal on joint '{joint}'"
    target_kind: ClassVar[TargetKind] = TargetKind.POINT

    joint: str
    target: Vector
    offset: Vector | None = None
    weight: float = WEIGHT
    priority: int = PRIORITY
    chain_length: int = CHAIN_LENGTH
    max_extension: float = MAX_EXTENSION
    extension_joints: int = EXTENSION_JOINTS
    two_bone_tip: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count(self, "extension_joints")
        if not (is_number(self.max_extension) and 0.0 < self.max_extension <= 1.0):
            raise InvalidInput(
                f"{self.name}: max_extension must be above 0 and at most 1, not {shown(self.max_extension)}"
            )

    def reach(self, skeleton: Skeleton) -> float:
        return _links(skeleton, self.joints(skeleton)) + self.effector(skeleton).length

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        point = self.effector(skeleton)[:]
        return {**super().row(skeleton), "goal_point": point, "goal_tip": self.two_bone_tip}

    def check(self, skeleton: Skeleton) -> None:
        if not self.has_window:
            return
        rolling = {each.joint for each in skeleton.couplings}
        for i in self.window(skeleton).joints[1:]:
            if i in rolling:
                raise InvalidInput(
                    f"{self.name}: max_extension is {self.max_extension:g}, but joint "
                    f"'{skeleton.joints[i].name}' has coupled offsets: set max_extension to 1"
                )

    def window(self, skeleton: Skeleton) -> ReachWindow:
        joints = self.joints(skeleton)[-self.extension_joints :]
        return ReachWindow(joints, self.effector(skeleton))

    def limb(self, skeleton: Skeleton, moving: Collection[int]) -> Limb | None:
        """The limb among the joints in `moving` that move the goal's point.

        A limb is two links of similar length in a row, such as upper arm and forearm. Links above them, such
        as a clavicle, are shorter, and links below, such as a hand, at most `END_PART` as long. None for
        other chains and straight limbs.
        """
        skeleton = skeleton.shape
        transforms = skeleton.computed_once(
            "transforms at rest", lambda: forward_kinematics(skeleton, Pose.rest(skeleton))
        )
        end = transforms[skeleton.index(self.joint)].point(self.effector(skeleton))
        short = SHORT * self.reach(skeleton)
        turning = [
            i
            for i in self.joints(skeleton)
            if i in moving and (end - transforms[i].translation).length > short
        ]
        places = [*(transforms[i].translation for i in turning), end]
        links = [after - before for before, after in pairwise(places)]
        for k, (upper, lower) in enumerate(pairwise(links)):
            shorter, longer = sorted((upper.length, lower.length))
            is_limb = shorter >= END_PART * longer or len(links) == 2
            is_limb = is_limb and all(link.length < shorter for link in links[:k])
            if is_limb and all(link.length <= END_PART * shorter for link in links[k + 2 :]):
                (a, b, c), (x, y, z) = upper[:], lower[:]  # in double precision
                axis = Vector((b * z - c * y, c * x - a * z, a * y - b * x))
                if axis.length <= STRAIGHT * upper.length * lower.length:
                    return None
                middle = turning[k + 1]
                return middle, (transforms[middle].rotation.inverted() @ axis).normalized()
        return None

    def with_longer_chain(self, skeleton: Skeleton, joints: int, window: int) -> Self:
        longer = super().with_longer_chain(skeleton, joints, window)
        return replace(longer, extension_joints=self.extension_joints or window)


@dataclass(frozen=True)
class OrientationGoal(FrameGoal):
    """A joint's frame should be turned like a frame of model space.

    Attributes:
        joint: name of the joint.
        target: rotation of the joint's frame in model space.
        weight, priority, chain_length: as in `PositionGoal`.
    """

    number: ClassVar[int] = 1
    label: ClassVar[str] = "orientation goal on joint '{joint}'"
    target_kind: ClassVar[TargetKind] = TargetKind.ROTATION

    joint: str
    target: Quaternion
    weight: float = WEIGHT
    priority: int = PRIORITY
    chain_length: int = CHAIN_LENGTH


@dataclass(frozen=True)
class DirectionGoal(FrameGoal):
    """An axis of a joint's frame should point along a direction of model space (Zalo, "Direction").

    Attributes:
        joint: name of the joint.
        axis: in the joint's frame, any length but 0; stored with length 1. (0, 1, 0) is the bone.
        target: direction in model space, any length but 0; stored with length 1.
        weight, priority, chain_length: as in `PositionGoal`.
    """

    number: ClassVar[int] = 2
    label: ClassVar[str] = "direction goal on joint '{joint}'"
    target_kind: ClassVar[TargetKind] = TargetKind.DIRECTION

    joint: str
    axis: Vector
    target: Vector
    weight: float = WEIGHT
    priority: int = PRIORITY
    chain_length: int = CHAIN_LENGTH

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, "axis", _unit(self.axis, f"{self.name}: axis"))

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        return {**super().row(skeleton), "goal_axis": unit_rows([self.axis[:]])}


@dataclass(frozen=True)
class PoleGoal(EffectorGoal):
    """A chain should bend towards a point.

    The root turns the chain about the line from its head to the chain's end. The bend is the sum of the heads
    between, seen from that line. A small bend blends into the bend about the chain's axis (`bend_axis`), see
    `kernel/goals.chain_bend`. A straight chain without an axis has no error, and neither has a target on the
    line. A target less than 44 degrees off the line leaves the bend play, the more the nearer it is to the
    line (`kernel/goals.pole_play`): inside the play the goal is met.

    Attributes:
        root: name of the first joint of the chain, which turns.
        joint: name of the last joint of the chain.
        target: point in model space.
        weight, priority: as in `PositionGoal`.
        offset: the chain's end in the last joint's frame; None means the bone's tail.
        angle: radians by which the bend is turned from the target, about the line from the root's head to
            the chain's end.
    """

    number: ClassVar[int] = 3
    label: ClassVar[str] = "pole goal on the chain '{root}' to '{joint}'"
    target_kind: ClassVar[TargetKind] = TargetKind.POINT
    takes_shared_joints: ClassVar[bool] = True

    root: str
    joint: str
    target: Vector
    weight: float = WEIGHT
    priority: int = PRIORITY
    offset: Vector | None = None
    angle: float = POLE_ANGLE

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, "angle", angle(f"{self.name}: angle", self.angle))

    def chain(self, skeleton: Skeleton) -> tuple[int, ...]:
        """Indices of the joints from `root` to `joint`."""
        joints = skeleton.chain(self.joint)
        root = skeleton.index(self.root)
        if root not in joints[:-1]:
            raise InvalidInput(
                f"pole goal: '{self.root}' must be above '{self.joint}' in the skeleton: "
                "name a chain of two or more joints"
            )
        return joints[joints.index(root) :]

    def bend_axis(self, skeleton: Skeleton) -> BendAxis:
        """The axis about which the chain bends where it is nearly straight.

        It is the axis of the hinge that bends the chain farthest to one side, signed so that the allowed bend
        is positive. Without such a hinge it is the axis of the rest bend, in the root joint's frame.
        """
        chain, end = self.chain(skeleton), self.effector(skeleton)
        key, skeleton = ("bend axis", chain, end[:]), skeleton.shape
        return skeleton.computed_once(key, lambda: bend_axis_of(skeleton, chain, end))

    def placed(
        self, skeleton: Skeleton, transforms: Sequence[Transform]
    ) -> tuple[list[Vector], Vector, Vector, float]:
        """Arguments of `kinematics.chain_bend` in model space: heads, end, axis and scale."""
        chain, bend = self.chain(skeleton), self.bend_axis(skeleton)
        heads = [transforms[i].translation for i in chain]
        end = transforms[chain[-1]].point(self.effector(skeleton))
        return heads, end, transforms[bend.joint].rotation @ bend.axis, bend.scale

    def joints(self, skeleton: Skeleton) -> tuple[int, ...]:
        return self.chain(skeleton)[:1]

    def swivelled(self, skeleton: Skeleton) -> tuple[int, ...]:
        return self.chain(skeleton)

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        chain, bend = self.chain(skeleton), self.bend_axis(skeleton)
        return {
            "goal_joint": chain[-1],
            "goal_root": chain[0],
            "goal_point": self.effector(skeleton)[:],
            "goal_axis": bend.axis[:],
            "goal_axis_joint": bend.joint,
            "goal_scale": bend.scale,
            "goal_angle": self.angle,
        }


@dataclass(frozen=True)
class BalanceGoal(Goal):
    """The centre of mass should be over a point or a line (Kulpa & Multon 2005; Kenwright 2012, section 2).

    A bone's mass (`Joint.mass`) sits halfway between its head and tail, or at `Joint.mass_point`.

    Attributes:
        target: of the centre of mass, in model space.
        axes: whether X, Y and Z count: (True, True, False) is over a point of the ground, one True over a
            line.
        weight, priority: as in `PositionGoal`.
        joint: only joints from this one down to the root turn for the balance; None: all that carry mass.
        chain_length: number of joints, counted from `joint`; 0 means all up to the root.
        direction: in model space, of the only axis that counts, or of the only one that does not; None: it is
            the model's own axis.
    """

    number: ClassVar[int] = 4
    label: ClassVar[str] = "balance goal"
    target_kind: ClassVar[TargetKind] = TargetKind.POINT

    target: Vector
    axes: tuple[bool, bool, bool] = BALANCE_AXES
    weight: float = WEIGHT
    priority: int = PRIORITY
    joint: str | None = None
    chain_length: int = CHAIN_LENGTH
    direction: Vector | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = self.axes if isinstance(self.axes, Sequence | np.ndarray) else ()
        if len(axes) != 3 or not any(axes):
            must = "axes must be three of True and False, one at least True"
            raise InvalidInput(f"balance goal: {must}, not {shown(self.axes)}")
        store(self, "axes", tuple(bool(axis) for axis in axes))
        _check_count(self, "chain_length")
        if self.chain_length and self.joint is None:
            raise InvalidInput("balance goal: chain_length is counted from a joint: name it")
        if self.direction is not None:
            store(self, "direction", _unit(self.direction, "balance goal: direction"))

    def joints(self, skeleton: Skeleton) -> tuple[int, ...]:
        """Indices of the joints that may turn for the balance, parents before children, locked ones too."""
        carrying = {
            i for k, joint in enumerate(skeleton.joints) if joint.mass > 0.0 for i in skeleton.chain(k)
        }
        if self.joint is None:
            return tuple(sorted(carrying))
        return tuple(i for i in skeleton.chain(self.joint, self.chain_length) if i in carrying)

    def reach(self, skeleton: Skeleton) -> float:
        """The length of the longest stretched chain to a mass."""
        reaches = [
            _links(skeleton, skeleton.chain(joint.name)) + Vector(joint.centre).length
            for joint in skeleton.joints
            if joint.mass > 0.0
        ]
        return max(reaches, default=0.0)

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        total_mass(skeleton)
        count = sum(self.axes)
        if count == 3:
            return {"goal_scale": 1.0}
        model_axis = Vector([float(counts == (count == 1)) for counts in self.axes])
        axis = model_axis if self.direction is None else self.direction
        return {"goal_axis": unit_rows([axis[:]]), "goal_scale": float(count == 2)}

    def check(self, skeleton: Skeleton) -> None:
        total_mass(skeleton)


GOALS: tuple[type[Goal], ...] = (PositionGoal, OrientationGoal, DirectionGoal, PoleGoal, BalanceGoal)
"""The kinds of goals."""


def _links(skeleton: Skeleton, chain: Sequence[int]) -> float:
    """The length of the links between the heads of a chain's joints."""
    return math.fsum(skeleton.joints[i].offset.length for i in chain[1:])


def total_mass(skeleton: Skeleton) -> float:
    """The mass of all bones, above 0; InvalidInput if none has mass."""
    total = math.fsum(joint.mass for joint in skeleton.joints)
    if total == 0.0:
        raise InvalidInput("balance goal: no joint has a mass; give at least one joint a mass above 0")
    return total


def centre_of_mass(skeleton: Skeleton, transforms: Sequence[Transform]) -> Vector:
    """The centre of mass of all bones in model space; InvalidInput if no bone has mass."""
    total, sums = total_mass(skeleton), [0.0, 0.0, 0.0]
    for joint, transform in zip(skeleton.joints, transforms, strict=True):
        if joint.mass > 0.0:
            middle = transform.point(Vector(joint.centre))
            for axis in range(3):
                sums[axis] += joint.mass * middle[axis]
    return Vector([component / total for component in sums])


def _unit(value: Vector, what: str) -> Vector:
    vector = frozen_vector(value, what)
    if vector.length < 1e-12:
        raise InvalidInput(f"{what} must not be zero: it has no direction")
    return vector.normalized().freeze()


_CHECKS: dict[TargetKind, Any] = {
    TargetKind.POINT: frozen_vector,
    TargetKind.DIRECTION: _unit,
    TargetKind.ROTATION: frozen_rotation,
}
"""Functions that check and freeze a target."""


def _check_count(goal: Goal, field: str) -> None:
    count = getattr(goal, field)
    if not is_whole(count) or count < 0:
        raise InvalidInput(
            f"{goal.name}: {field} must be a whole number, 0 (the whole chain) or more, not {shown(count)}"
        )
