"""Joints, the tree they make, a pose of it, and forward kinematics.

Model space is the armature's space. A joint's frame has its origin at the head and points along +Y, as in
Blender.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mathutils import Quaternion, Vector

from .errors import InvalidInput
from .limits import LIMITS, Comfort, Limit, Slide, clamp
from .nesting import outside

UNIT_TOLERANCE = 1e-3
"""How far from length 1 a quaternion may be and still be taken (and normalised)."""

FARTHEST = 1e15
"""Largest coordinate: the squares of larger ones leave single precision."""


class Transform(NamedTuple):
    """Where a joint is: `translation` of its head and `rotation` of its frame, in model space."""

    translation: Vector
    rotation: Quaternion

    def point(self, local: Vector) -> Vector:
        """A point given in the joint's frame, in model space."""
        return self.translation + self.rotation @ local


def frozen_vector(value: Vector | Sequence[float], what: str) -> Vector:
    """`value` as a frozen 3-vector; raises InvalidInput naming `what` if it is not three finite numbers."""
    numbers = _numbers(value, f"{what} must be three finite numbers")
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise InvalidInput(f"{what} must be three finite numbers, not {_shown(numbers)}")
    if max(map(abs, numbers)) > FARTHEST:
        raise InvalidInput(f"{what} must not be farther away than {FARTHEST:g}, but is {_shown(numbers)}")
    return Vector(numbers).freeze()


def frozen_rotation(value: Quaternion | Sequence[float], what: str) -> Quaternion:
    """`value` as a frozen unit quaternion (w, x, y, z); raises InvalidInput naming `what` if it is not
    one."""
    numbers = _numbers(value, f"{what} must be four finite numbers (w, x, y, z)")
    if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers):
        raise InvalidInput(f"{what} must be four finite numbers (w, x, y, z), not {_shown(numbers)}")
    length = math.sqrt(sum(number * number for number in numbers))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise InvalidInput(f"{what} must be a unit quaternion, but its length is {length:.6g}")
    rotation = Quaternion(numbers)
    # A quaternion that is unit to float32 is kept bit for bit: normalising it again could move its last bit.
    if abs(length - 1.0) > 1e-6:
        rotation.normalize()
    return rotation.freeze()


def _numbers(value: object, must: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in value[:])  # type: ignore[index]
    except (TypeError, ValueError):
        raise InvalidInput(f"{must}, not {value!r}") from None


def is_number(value: object) -> bool:
    """Whether `value` is a finite int or float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(numbers: Sequence[float]) -> str:
    return "(" + ", ".join(f"{number:.6g}" for number in numbers) + ")"


@dataclass(frozen=True)
class Joint:
    """One turning joint, and the bone that hangs on it.

    Attributes:
        name: unique in its skeleton.
        parent: index of the parent joint, or -1 for a root.
        offset: the head in the parent's joint frame; a root's in model space. In the unit of the model.
        rest_rotation: joint frame at rest in the parent's joint frame (a root's, or that of a joint which
            does not inherit rotation, in model space).
        length: from head to tail along +Y of the joint frame.
        limit: allowed rotations relative to rest, or None for a free ball joint.
        comfort: what part of the allowed motion is preferred, or None.
        stiffness: 0 turns freely, 1 is locked; each step is multiplied by 1 - stiffness.
        max_step: largest turn in one step, radians (Lander 1998, damping).
        slide: shifts along one axis that the joint may make besides turning (a prismatic joint), or None.
        mass: of the bone, for balance goals, any unit.
        inherit_rotation: off for a joint whose head follows the parent while its orientation does not.

    Raises:
        InvalidInput: names the joint and the field.
    """

    name: str
    parent: int = -1
    offset: Vector = field(default_factory=lambda: Vector((0.0, 0.0, 0.0)))
    rest_rotation: Quaternion = field(default_factory=lambda: Quaternion((1.0, 0.0, 0.0, 0.0)))
    length: float = 1.0
    limit: Limit | None = None
    comfort: Comfort | None = None
    stiffness: float = 0.0
    max_step: float = math.pi
    mass: float = 0.0
    slide: Slide | None = None
    inherit_rotation: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput("a joint needs a name that is not empty")
        if isinstance(self.parent, bool) or not isinstance(self.parent, int) or self.parent < -1:
            raise InvalidInput(f"joint '{self.name}': parent must be an index or -1, not {self.parent!r}")
        store = object.__setattr__
        store(self, "offset", frozen_vector(self.offset, f"joint '{self.name}': offset"))
        store(
            self, "rest_rotation", frozen_rotation(self.rest_rotation, f"joint '{self.name}': rest_rotation")
        )
        self._check("length", self.length, 0.0, math.inf)
        self._check("stiffness", self.stiffness, 0.0, 1.0)
        self._check("max_step", self.max_step, 0.0, math.inf)
        self._check("mass", self.mass, 0.0, math.inf)
        for what, value, kinds in (
            ("limit", self.limit, LIMITS),
            ("comfort", self.comfort, (Comfort,)),
            ("slide", self.slide, (Slide,)),
        ):
            if value is not None and not isinstance(value, kinds):
                allowed = ", ".join(kind.__name__ for kind in kinds)
                raise InvalidInput(f"joint '{self.name}': {what} must be a {allowed} or None, not {value!r}")
        if self.comfort is not None and self.comfort.region is not None and self.limit is not None:
            found = outside(self.comfort.region, self.limit)
            if found:
                raise InvalidInput(
                    f"joint '{self.name}': the comfort region must lie inside the limit, but {found}"
                )

    def _check(self, what: str, value: float, lower: float, upper: float) -> None:
        if not (is_number(value) and lower <= value <= upper):
            allowed = f"{lower:g} to {upper:g}" if math.isfinite(upper) else f"{lower:g} or more"
            raise InvalidInput(f"joint '{self.name}': {what} must be {allowed}, not {value!r}")

    @property
    def locked(self) -> bool:
        """Whether no step can turn this joint."""
        return self.stiffness >= 1.0 or self.max_step <= 0.0

    def allowed(self, rotation: Quaternion) -> Quaternion:
        """The nearest rotation (relative to rest) inside the limit."""
        return rotation if self.limit is None else clamp(self.limit, rotation)


@dataclass(frozen=True)
class Skeleton:
    """A forest of joints, parents before children.

    Raises:
        InvalidInput: on a name that stands twice, or a parent that does not come before its child.
    """

    joints: tuple[Joint, ...]
    pivots: frozenset[int] = field(init=False, repr=False, compare=False)
    """Joints with a parent whose rotation they do not inherit."""
    locked: frozenset[int] = field(init=False, repr=False, compare=False)
    """Joints that no step can turn."""
    _indices: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _chains: dict[int, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __init__(self, joints: Iterable[Joint]) -> None:
        object.__setattr__(self, "joints", tuple(joints))
        indices: dict[str, int] = {}
        for i, joint in enumerate(self.joints):
            if joint.name in indices:
                raise InvalidInput(f"joint '{joint.name}' stands twice in the skeleton; names must differ")
            if joint.parent >= i:
                raise InvalidInput(
                    f"joint '{joint.name}': its parent ({joint.parent}) must come before it ({i})"
                )
            indices[joint.name] = i
        store = object.__setattr__
        store(self, "_indices", indices)
        store(self, "_chains", {})  # to the root; a solve asks for each of them several times
        each = enumerate(self.joints)
        store(self, "pivots", frozenset(i for i, j in each if j.parent != -1 and not j.inherit_rotation))
        store(self, "locked", frozenset(i for i, joint in enumerate(self.joints) if joint.locked))

    def __len__(self) -> int:
        return len(self.joints)

    def index(self, name: str) -> int:
        """Index of the joint called `name`; raises InvalidInput if there is none."""
        try:
            return self._indices[name]
        except KeyError:
            known = ", ".join(self._indices) or "none"
            raise InvalidInput(
                f"there is no joint '{name}' in the skeleton; its joints are: {known}"
            ) from None

    def chain(self, tip: str | int, length: int = 0) -> tuple[int, ...]:
        """Indices of the joints that move `tip`, root first.

        Args:
            tip: name or index of the last joint.
            length: how many joints, counted from the tip; 0, or more than there are, goes to the root.
        """
        if length < 0:
            raise InvalidInput(f"chain length must be 0 (to the root) or more, not {length}")
        i = self.index(tip) if isinstance(tip, str) else tip
        if not 0 <= i < len(self.joints):
            raise InvalidInput(f"there is no joint {i}; the skeleton has {len(self.joints)}")
        whole = self._chains.get(i)
        if whole is None:
            found, joint = [], i
            while joint != -1:
                found.append(joint)
                joint = self.joints[joint].parent
            whole = self._chains[i] = tuple(reversed(found))
        return whole[-length:]

    def replace(self, changes: Mapping[str, Mapping[str, Any]]) -> Skeleton:
        """The same skeleton with fields of some joints changed: {joint name: {field: value}}."""
        for name in changes:
            self.index(name)
        return Skeleton(
            replace(joint, **changes[joint.name]) if joint.name in changes else joint for joint in self.joints
        )


@dataclass(frozen=True)
class Pose:
    """Rotations and translations relative to rest, one per joint, as Blender's pose bone channels.

    Attributes:
        rotations: unit quaternions (w, x, y, z) in each joint's own rest frame.
        translations: shifts of the head in the joint's own rest frame.
    """

    rotations: tuple[Quaternion, ...]
    translations: tuple[Vector, ...]

    def __post_init__(self) -> None:
        if len(self.rotations) != len(self.translations):
            raise InvalidInput(
                f"a pose needs as many translations as rotations, not {len(self.translations)} "
                f"for {len(self.rotations)}"
            )
        rotations = tuple(
            frozen_rotation(q, f"rotation {i} of the pose") for i, q in enumerate(self.rotations)
        )
        object.__setattr__(self, "rotations", rotations)
        translations = tuple(
            frozen_vector(v, f"translation {i} of the pose") for i, v in enumerate(self.translations)
        )
        object.__setattr__(self, "translations", translations)

    @classmethod
    def rest(cls, skeleton: Skeleton) -> Pose:
        """No joint turned or moved."""
        count = len(skeleton.joints)
        return cls((Quaternion((1.0, 0.0, 0.0, 0.0)),) * count, (Vector((0.0, 0.0, 0.0)),) * count)

    @classmethod
    def trusted(cls, rotations: tuple[Quaternion, ...], translations: tuple[Vector, ...]) -> Pose:
        """A pose from values that are known to be frozen, finite and unit: the solver's own, without the
        checks."""
        pose = object.__new__(cls)
        object.__setattr__(pose, "rotations", rotations)
        object.__setattr__(pose, "translations", translations)
        return pose

    def with_rotations(self, rotations: Mapping[int, Quaternion]) -> Pose:
        """The same pose with some joints' rotations replaced: {joint index: rotation relative to rest}."""
        return Pose(
            tuple(rotations.get(i, rotation) for i, rotation in enumerate(self.rotations)), self.translations
        )


def forward_kinematics(skeleton: Skeleton, pose: Pose) -> tuple[Transform, ...]:
    """Where each joint is in model space, in the order of the skeleton.

    Raises:
        InvalidInput: if the pose was made for a skeleton with another number of joints.
    """
    check_pose(skeleton, pose)
    return _transforms(skeleton, pose.rotations, pose.translations)


def check_pose(skeleton: Skeleton, pose: Pose) -> None:
    """Raises InvalidInput unless `pose` has one entry per joint of `skeleton`."""
    if len(pose.rotations) != len(skeleton.joints):
        raise InvalidInput(
            f"the pose is for {len(pose.rotations)} joints, but the skeleton has {len(skeleton.joints)}"
        )


def _transforms(
    skeleton: Skeleton, rotations: Sequence[Quaternion], translations: Sequence[Vector]
) -> tuple[Transform, ...]:
    found: list[Transform] = []
    for joint, rotation, translation in zip(skeleton.joints, rotations, translations, strict=True):
        local = joint.offset + joint.rest_rotation @ translation
        if joint.parent == -1:
            found.append(Transform(local, (joint.rest_rotation @ rotation).normalized()))
            continue
        parent = found[joint.parent]
        head = parent.translation + parent.rotation @ local
        base = parent.rotation @ joint.rest_rotation if joint.inherit_rotation else joint.rest_rotation
        # Normalised at every joint: float32 products drift in long chains.
        found.append(Transform(head, (base @ rotation).normalized()))
    return tuple(found)
