"""Joints, and the tree they make.

Model space is the armature's space. A joint's frame has its origin at the head and points along +Y, as in
Blender.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..limits.containment import outside
from ..limits.shapes import LIMITS, Comfort, Limit, Slide, clamp
from ..maths.validation import frozen_rotation, frozen_vector, is_number

T = TypeVar("T")


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

    def at(self, offset: Vector, rest_rotation: Quaternion) -> Joint:
        """The same joint elsewhere; a finite offset and a unit rotation are taken as they are."""
        moved = copy(self)
        object.__setattr__(moved, "offset", offset.copy().freeze())
        object.__setattr__(moved, "rest_rotation", rest_rotation.copy().freeze())
        return moved

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
    _computed: dict[Hashable, Any] = field(init=False, repr=False, compare=False)

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
        store(self, "_computed", {})
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

    def computed_once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` makes of this skeleton alone, computed at the first call with this key."""
        if key not in self._computed:
            self._computed[key] = compute()
        found: T = self._computed[key]
        return found

    def replace(self, changes: Mapping[str, Mapping[str, Any]]) -> Skeleton:
        """The same skeleton with fields of some joints changed: {joint name: {field: value}}."""
        for name in changes:
            self.index(name)
        return Skeleton(
            replace(joint, **changes[joint.name]) if joint.name in changes else joint for joint in self.joints
        )
