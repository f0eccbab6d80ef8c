"""Joints and their tree, and offsets that depend on the angle of a hinge: rolling joints, as a knee.

Model space is the armature's space. A joint's frame has its origin at the head and points along +Y, as in
Blender.

The table of an offset is a cubic spline: shifts at angles, and slopes there. Beyond its ends the spline
continues along a straight line, as OpenSim's SimmSpline does.

A translation is the sum of shifts along axes. A slide's shift is an unknown inside bounds, a coupled offset's
shift a function of a hinge's angle. Both move the bones below the joint along an axis. In the Jacobian a
slide has a column. The slope of a coupled offset, times the slope of its spline, is added to its hinge's
column. The pose holds the free values: rotations, and translations with the slides' shifts. Slides of one
joint are at right angles to each other, so each shift is a projection of the translation. The hinge is the
joint itself or an ancestor, so chains stay the same.

Reach windows, re-rooting and the closed forms of single chains need links of constant length: they refuse
coupled offsets by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from mathutils import Quaternion, Vector

from ..defaults import MASS, MAX_STEP, STIFFNESS
from ..errors import InvalidInput
from ..kernel import evaluate_spline
from ..limits.shapes import LIMITS, Comfort, Hinge, Limit, Slide, clamp, outside
from ..maths.batch import Array, twist_angles
from ..maths.rotations import FULL_TURN, twist_angle, wrapped
from ..maths.validation import (
    SIZES,
    Triple,
    angle,
    coordinate,
    frozen_rotation,
    frozen_vector,
    is_number,
    is_size,
    is_whole,
    listed,
    numbers,
    shown,
    store,
    unit,
)

T = TypeVar("T")
Place: TypeAlias = tuple[Vector, Quaternion]
"""Offset and rest rotation of a joint."""

SQUARE = 1e-6
"""Cosine between two axes up to which they are at right angles: rounding of single precision."""

MOST_KEPT = 256
"""Most results that a skeleton keeps: a search of goals needs four or five."""


@dataclass(frozen=True)
class CoupledOffset:
    """A shift of a joint along one direction, as a function of the angle of a hinge.

    The shift adds to the joint's translation; the pose holds the angle alone.

    Attributes:
        hinge: name of the driving joint: the joint itself or one of its ancestors. Its limit is a `Hinge` of
            less than a full turn.
        axis: direction of the shift in the joint's frame at rest, as `Slide.axis`; stored with length 1.
        angles: of the hinge from rest, radians, rising; two at least.
        shifts: along `axis` at these angles, the model's unit.
        slopes: of the spline at these angles, model units per radian; None: those of the natural cubic
            spline, whose curvature is 0 at both ends (two angles: a straight line).

    Raises:
        InvalidInput: names the field.
    """

    hinge: str
    axis: Triple
    angles: tuple[float, ...]
    shifts: tuple[float, ...]
    slopes: tuple[float, ...] | None = None
    knots: Array = field(init=False, repr=False, compare=False)
    """(3 N) angle, shift and slope of each knot: the kernel's table."""

    def __post_init__(self) -> None:
        if not isinstance(self.hinge, str) or not self.hinge:
            raise InvalidInput(f"CoupledOffset.hinge is {self.hinge!r}; give the name of a joint")
        store(self, "axis", unit("CoupledOffset.axis", self.axis))
        count = len(self.angles) if isinstance(self.angles, tuple | list) else 0
        if count < 2:
            raise InvalidInput(f"CoupledOffset.angles is {self.angles!r}; give two angles at least")
        angles = tuple(
            [angle("CoupledOffset.angles", a) for a in numbers("CoupledOffset.angles", self.angles, count)]
        )
        shifts = numbers("CoupledOffset.shifts", self.shifts, count)
        if any(after <= before for before, after in pairwise(angles)):
            raise InvalidInput("CoupledOffset.angles must rise from each to the next (radians)")
        slopes = natural_slopes(angles, shifts)
        if self.slopes is not None:
            slopes = numbers("CoupledOffset.slopes", self.slopes, count)
            store(self, "slopes", slopes)
        for name, values in (("shifts", shifts), ("slopes", slopes)):
            for value in values:
                coordinate(f"CoupledOffset.{name}", value)
        store(self, "angles", angles)
        store(self, "shifts", shifts)
        store(self, "knots", np.column_stack((angles, shifts, slopes)).reshape(-1))

    def shift(self, angle: float) -> float:
        """The shift at an angle, model units."""
        values, _ = self.evaluate(np.array([angle]))
        return float(values[0])

    def evaluate(self, angles: Array) -> tuple[Array, Array]:
        """Shifts (model units) and slopes (per radian) at angles (B,) in radians."""
        values, slopes = np.empty(len(angles)), np.empty(len(angles))
        evaluate_spline(self.knots, np.ascontiguousarray(angles), values, slopes)
        return values, slopes


def natural_slopes(angles: tuple[float, ...], shifts: tuple[float, ...]) -> tuple[float, ...]:
    """Slopes of the natural cubic spline: twice differentiable, no curvature at the ends.

    The system has three diagonals and is solved by elimination (Thomas): results of LAPACK depend on the
    processor.
    """
    widths = [after - before for before, after in pairwise(angles)]
    chords = [
        (after - before) / width for (before, after), width in zip(pairwise(shifts), widths, strict=True)
    ]
    rows = [(0.0, 2.0, 1.0, 3.0 * chords[0])]  # coefficients of three slopes in turn, and the right side
    for (before, after), (chord, next_chord) in zip(pairwise(widths), pairwise(chords), strict=True):
        rows.append((after, 2.0 * (before + after), before, 3.0 * (after * chord + before * next_chord)))
    rows.append((1.0, 2.0, 0.0, 3.0 * chords[-1]))
    eliminated: list[tuple[float, float]] = []  # a slope is right - upper * (the next slope)
    upper = right = 0.0
    for lower, middle, above, side in rows:
        pivot = middle - lower * upper
        upper, right = above / pivot, (side - lower * right) / pivot
        eliminated.append((upper, right))
    slopes, slope = [], 0.0
    for upper, right in reversed(eliminated):
        slope = right - upper * slope
        slopes.append(slope)
    return tuple(reversed(slopes))


def coupled_angle(hinge: Hinge, rotation: Quaternion) -> float:
    """The twist of a rotation about a hinge's axis, radians, within half a turn of its range's middle."""
    return wrapped(twist_angle(rotation, hinge.axis), 0.5 * (hinge.lower + hinge.upper))


def coupled_angles(hinge: Hinge, rotations: Array) -> Array:
    """(B,) the twists of rotations (4, B), see `coupled_angle`."""
    middle = 0.5 * (hinge.lower + hinge.upper)
    off = twist_angles(rotations, hinge.axis) - middle
    return np.asarray(middle + off - FULL_TURN * np.round(off / FULL_TURN))


@dataclass(frozen=True)
class Joint:
    """A ball joint, hinge or slide, and the bone below it.

    Attributes:
        name: unique in its skeleton.
        parent: index of the parent joint, or -1 for a root.
        offset: the head in the parent's joint frame; a root's in model space. In the unit of the model.
        rest_rotation: joint frame at rest in the parent's joint frame; in model space for a root and for a
            joint that does not inherit rotation.
        length: from head to tail along +Y of the joint frame.
        limit: allowed rotations relative to rest, or None for a free ball joint.
        comfort: the preferred part of the allowed motion, or None.
        stiffness: 0 turns freely, 1 is locked; each step is multiplied by 1 - stiffness.
        max_step: largest turn in one step of CCD, radians (Lander 1998, damping).
        slides: shifts beside the rotation (prismatic joints), along axes at right angles to each other: three
            at most.
        coupled_offsets: shifts of the joint that are functions of a hinge's angle.
        mass: of the bone, for balance goals, any unit.
        mass_point: where the mass sits, in the joint frame; None for halfway along the bone.
        inherit_rotation: off for a joint whose head follows the parent but whose orientation does not.

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
    stiffness: float = STIFFNESS
    max_step: float = MAX_STEP
    mass: float = MASS
    slides: tuple[Slide, ...] = ()
    coupled_offsets: tuple[CoupledOffset, ...] = ()
    inherit_rotation: bool = True
    mass_point: Vector | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput("a joint needs a name that is not empty")
        if not is_whole(self.parent) or self.parent < -1:
            raise InvalidInput(
                f"joint '{self.name}': parent must be an index or -1, not {shown(self.parent)}"
            )
        store(self, "parent", int(self.parent))
        store(self, "offset", frozen_vector(self.offset, f"joint '{self.name}': offset"))
        store(
            self, "rest_rotation", frozen_rotation(self.rest_rotation, f"joint '{self.name}': rest_rotation")
        )
        self._check_size("length", self.length)
        if not (is_number(self.stiffness) and 0.0 <= self.stiffness <= 1.0):
            raise InvalidInput(f"joint '{self.name}': stiffness must be 0 to 1, not {shown(self.stiffness)}")
        self._check_size("max_step", self.max_step)
        self._check_size("mass", self.mass)
        if self.mass_point is not None:
            store(self, "mass_point", frozen_vector(self.mass_point, f"joint '{self.name}': mass_point"))
        for what, value, kinds in (
            ("limit", self.limit, LIMITS),
            ("comfort", self.comfort, (Comfort,)),
        ):
            if value is not None and not isinstance(value, kinds):
                allowed = ", ".join(kind.__name__ for kind in kinds)
                raise InvalidInput(
                    f"joint '{self.name}': {what} must be a {allowed} or None, not {shown(value)}"
                )
        store(self, "slides", self._tuple("slides", self.slides, Slide))
        store(self, "coupled_offsets", self._tuple("coupled_offsets", self.coupled_offsets, CoupledOffset))
        for a, b in combinations(self.slides, 2):
            if abs(sum(u * v for u, v in zip(a.axis, b.axis, strict=True))) > SQUARE:
                raise InvalidInput(
                    f"joint '{self.name}': slides must be at right angles to each other, but {_shown(a)} "
                    f"and {_shown(b)} are not"
                )
        if self.comfort is not None and self.comfort.region is not None and self.limit is not None:
            reason = outside(self.comfort.region, self.limit)
            if reason:
                raise InvalidInput(
                    f"joint '{self.name}': the comfort region must lie inside the limit, but {reason}"
                )

    def _check_size(self, what: str, value: float) -> None:
        if not (is_size(value) or (is_number(value) and value == 0.0)):
            allowed = f"0, or {SIZES[0]:g} to {SIZES[1]:g}"
            raise InvalidInput(f"joint '{self.name}': {what} must be {allowed}, not {shown(value)}")

    def _tuple(self, what: str, values: object, kind: type[T]) -> tuple[T, ...]:
        checked = tuple(values) if isinstance(values, tuple | list) else None
        if checked is None or not all(isinstance(value, kind) for value in checked):
            raise InvalidInput(
                f"joint '{self.name}': {what} must be a tuple of {kind.__name__}, not {shown(values)}"
            )
        return checked

    @property
    def locked(self) -> bool:
        """Whether no step can turn this joint."""
        return self.stiffness >= 1.0 or self.max_step <= 0.0

    @property
    def centre(self) -> tuple[float, float, float]:
        """Where the mass sits, in the joint frame."""
        if self.mass_point is None:
            return 0.0, 0.5 * self.length, 0.0
        return self.mass_point.x, self.mass_point.y, self.mass_point.z

    def at(self, offset: Vector, rest_rotation: Quaternion) -> Joint:
        """The same joint with another frozen, finite offset and unit rest rotation, unchecked."""
        moved = object.__new__(Joint)
        moved.__dict__.update(self.__dict__, offset=offset, rest_rotation=rest_rotation)
        return moved

    def under(self, parent: int) -> Joint:
        """The same joint with the index of another parent, unchecked."""
        moved = object.__new__(Joint)
        moved.__dict__.update(self.__dict__, parent=parent)
        return moved

    def allowed(self, rotation: Quaternion) -> Quaternion:
        """The nearest rotation (relative to rest) inside the limit."""
        return rotation if self.limit is None else clamp(self.limit, rotation)


class Coupling(NamedTuple):
    """A coupled offset in its skeleton."""

    joint: int  # index of the shifted joint
    driver: int  # index of the hinge whose angle drives the shift
    hinge: Hinge  # the driver's limit
    offset: CoupledOffset  # axis and size of the shift

    def shift(self, rotation: Quaternion) -> Vector:
        """The shift in the joint's frame at rest, for the driver's rotation relative to rest."""
        return self.offset.shift(coupled_angle(self.hinge, rotation)) * Vector(self.offset.axis)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Skeleton:
    """A forest of joints, parents before children.

    Raises:
        InvalidInput: on a name that stands twice, or a parent that does not come before its child.
    """

    pivots: frozenset[int]
    """Joints with a parent whose rotation they do not inherit."""
    locked: frozenset[int]
    """Joints that no step can turn."""
    couplings: tuple[Coupling, ...]
    """The coupled offsets of all joints, those of parents first."""
    shifting: tuple[tuple[tuple[Slide, ...], tuple[CoupledOffset, ...]], ...]
    """Slides and coupled offsets by joint."""
    _indices: Mapping[str, int]
    _chains: dict[int, tuple[int, ...]]
    _computed: dict[Hashable, Any]
    _origin: Skeleton | None
    _places: Mapping[int, Place]

    def __init__(self, joints: Iterable[Joint]) -> None:
        store(self, "joints", tuple(listed("Skeleton.joints", joints, "joints")))
        indices: dict[str, int] = {}
        for i, joint in enumerate(self.joints):
            if not isinstance(joint, Joint):
                raise InvalidInput(f"Skeleton.joints holds {shown(joint)}; give Joint alone")
            if joint.name in indices:
                raise InvalidInput(f"joint '{joint.name}' stands twice in the skeleton; names must differ")
            if joint.parent >= i:
                raise InvalidInput(
                    f"joint '{joint.name}': its parent ({joint.parent}) must come before it ({i})"
                )
            indices[joint.name] = i
        store(self, "_indices", indices)
        store(self, "_chains", {})  # to the root, for repeated access
        store(self, "_computed", {})
        each = enumerate(self.joints)
        store(self, "pivots", frozenset(i for i, j in each if j.parent != -1 and not j.inherit_rotation))
        store(self, "locked", frozenset(i for i, joint in enumerate(self.joints) if joint.locked))
        store(self, "couplings", tuple(self._couplings()))
        store(self, "shifting", tuple((joint.slides, joint.coupled_offsets) for joint in self.joints))
        store(self, "_origin", None)
        store(self, "_places", {})

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """All joints; a skeleton that was moved makes them at the first access."""
        assert self._origin is not None  # other skeletons store them in __init__
        places = self._places
        joints = self._origin.joints
        return tuple([joint.at(*places[i]) if i in places else joint for i, joint in enumerate(joints)])

    def __eq__(self, other: object) -> bool:
        return self.joints == other.joints if isinstance(other, Skeleton) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Hash of the joints, computed once: results of solves are looked up by their skeletons."""
        return hash(self.joints)

    def __repr__(self) -> str:
        return f"Skeleton(joints={self.joints!r})"

    def _couplings(self) -> Iterator[Coupling]:
        for i, joint in enumerate(self.joints):
            for offset in joint.coupled_offsets:
                driver = self._indices.get(offset.hinge, -1)
                what = f"joint '{joint.name}': its coupled offset follows '{offset.hinge}', which"
                if driver not in self.chain(i):
                    raise InvalidInput(f"{what} must be the joint itself or one of its ancestors")
                hinge = self.joints[driver].limit
                if not isinstance(hinge, Hinge) or hinge.upper - hinge.lower >= FULL_TURN:
                    raise InvalidInput(f"{what} needs a Hinge of less than a full turn as its limit")
                yield Coupling(i, driver, hinge, offset)

    def __len__(self) -> int:
        return len(self.shifting)

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
            path, joint = [], i
            while joint != -1:
                path.append(joint)
                joint = self.joints[joint].parent
            whole = self._chains[i] = tuple(reversed(path))
        return whole[-length:]

    def computed_once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The cached result of `compute`, a function of this skeleton; the newest `MOST_KEPT` are kept."""
        try:
            result: T = self._computed[key]  # a key's hash takes microseconds
        except KeyError:
            result = self._computed[key] = compute()
            if len(self._computed) > MOST_KEPT:
                with suppress(StopIteration, RuntimeError):  # other threads use it too
                    self._computed.pop(next(iter(self._computed)), None)
        return result

    @property
    def original(self) -> Skeleton:
        """The skeleton from which this one was `moved`; else itself."""
        return self if self._origin is None else self._origin

    @property
    def shape(self) -> Skeleton:
        """The skeleton that tells how chains are bent at rest: the `original` where rotations are inherited.

        Moved roots take their chains along as they are. Chains that do not inherit rotation change.
        """
        return self if self.pivots else self.original

    def moved(self, places: Mapping[int, Place]) -> Skeleton:
        """The same skeleton with other offsets and rest rotations of roots.

        Args:
            places: {joint: (offset, rest rotation)}; frozen, finite, rotations of length 1.

        Raises:
            InvalidInput: a joint that is no root.
        """
        for i in places:
            if self.original.joints[i].parent != -1:
                name = self.original.joints[i].name
                raise InvalidInput(f"joint '{name}' has a parent: only roots can be moved")
        moved = object.__new__(Skeleton)
        moved.__dict__.update(self.__dict__)
        moved.__dict__.pop("joints", None)
        moved.__dict__.update(_computed={}, _origin=self.original, _places={**self._places, **places})
        return moved

    def part(self, joints: Sequence[int]) -> Skeleton:
        """The skeleton of a subset of joints, in rising order and with all their ancestors."""
        if len(joints) == len(self):
            return self

        whole, numbers = self.original.joints, {j: k for k, j in enumerate(joints)} | {-1: -1}

        def part() -> Skeleton:
            return Skeleton(whole[j].under(numbers[whole[j].parent]) for j in joints)

        made = self.original.computed_once(("part", tuple(joints)), part)
        places = {numbers[j]: place for j, place in self._places.items() if j in numbers}
        return made.moved(places) if places else made

    def replace(self, changes: Mapping[str, Mapping[str, Any]]) -> Skeleton:
        """The same skeleton with fields of some joints changed: {joint name: {field: value}}."""
        for name in changes:
            self.index(name)
        return Skeleton(
            replace(joint, **changes[joint.name]) if joint.name in changes else joint for joint in self.joints
        )

    def with_masses(self, masses: Sequence[float]) -> Skeleton:
        """The same skeleton with bones of these masses."""
        whole = self.original

        def massed() -> Skeleton:
            pairs = zip(whole.joints, masses, strict=True)
            return whole.replace({joint.name: {"mass": mass} for joint, mass in pairs})

        made = whole.computed_once(("masses", tuple(masses)), massed)
        return made.moved(self._places) if self._places else made

    def with_lengths(self, lengths: Iterable[float]) -> Skeleton:
        """The same skeleton with bones of these lengths; itself where they have them."""
        changes = {
            joint.name: {"length": float(length)}
            for joint, length in zip(self.joints, lengths, strict=True)
            if joint.length != length
        }
        return self.replace(changes) if changes else self


def slides_of(joint: Joint, translation: Vector) -> tuple[float, ...]:
    """The parts of a joint's translation relative to rest along its slides, model units."""
    return tuple(Vector(slide.axis).dot(translation) for slide in joint.slides)


def shift_of(joint: Joint, along: Sequence[float]) -> Vector:
    """The translation relative to rest that shifts along a joint's slides add up to, model units."""
    shifts = [part * Vector(slide.axis) for part, slide in zip(along, joint.slides, strict=True)]
    return sum(shifts[1:], shifts[0]) if shifts else Vector()


def _shown(slide: Slide) -> str:
    return "(" + ", ".join(f"{part:.4g}" for part in slide.axis) + ")"
