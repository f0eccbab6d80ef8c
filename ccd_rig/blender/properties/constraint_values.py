# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints as values: the table of their settings, their targets at a frame, what their kinds answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import pi
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import bpy
from mathutils import Quaternion, Vector

from ...defaults import (
    BALANCE_AXES,
    CHAIN_LENGTH,
    EXTENSION_JOINTS,
    MAX_EXTENSION,
    POLE_ANGLE,
    PRIORITY,
    SOFT,
    WEIGHT,
)
from ..languages.translation import CONTEXT
from ..registration import KEYED, SETTING, properties_of

if TYPE_CHECKING:
    from ...goals import Goal
    from ...skeleton.joints import Skeleton

PLANT = "PLANT"
"""Identifier of the kind that plants bones."""
PLANTED = 0.5
"""Influence above which a bone is planted; it is planted fully or not at all."""


@dataclass(frozen=True)
class Problem:
    """Error or warning about a set-up."""

    # "ERROR" keeps the armature from being solved; "WARNING" does not, but the result may surprise.
    severity: str
    where: str  # name of the constraint, bone or object
    message: str  # the fault and its remedy, with the name


class Kind(str):
    """Kind of a constraint, by its identifier in files: all that differs between kinds.

    A class over it is listed in `constraint_kinds.KINDS`. The base class stands for a kind that this version
    does not know.

    Attributes:
        number: of the identifier in files, for good.
        label, description: in menus.
        icon: in the list of constraints.
        unused: fields of `Constraint` without effect, which have their defaults, whatever is stored from a
            kind that the constraint had before.
        fixed: further fields with the values that the kind fixes.
        reaches: whether a bone of the chain is brought to a target by position, rotation or both.
        balances: whether the centre of mass of all bones is brought to the target.
        plants: whether the bone stays put in the world, and the figure moves over it.
        needs_target: whether it can do nothing without a target.
        panels: names of the folded panels that the kind has.
    """

    __slots__ = ()

    number = -1
    label = ""
    description = ""
    icon = "ERROR"
    unused: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = MappingProxyType({})
    reaches = False
    balances = False
    plants = False
    needs_target = True
    panels: tuple[str, ...] = ("importance",)

    def __repr__(self) -> str:
        # Baked actions store a hash of this text, see `bake.start.fingerprint`.
        return "".join(("<Kind.", self, ": ", super().__repr__(), ">"))

    def chain_length(self, _armature_object: bpy.types.Object, _tip: str) -> int:
        """Number of bones in the chain of a new constraint, counted from the tip; 0 goes to the root."""
        return 0

    def sampled(self, _constraint: Constraint) -> tuple[str, ...]:
        """Fields that a bake reads at every frame if keys or drivers move them, in the order of `SAMPLED`."""
        return ("offset", "weight")

    def goals(self, _skeleton: Skeleton, _constraint: Constraint, _target: TargetSample) -> list[Goal]:
        """The goals of a constraint at a frame, at least one for a known kind.

        Priorities are doubled, so that a pole stands between its own position and what is served after that.

        Raises:
            RigError: there is no bend for a pole; names the constraint.
        """
        return []

    def problems(
        self, _armature_object: bpy.types.Object, constraint: Any, _scene: bpy.types.Scene, _keeps_body: bool
    ) -> Iterator[Problem]:
        """Yield the problems of a stored constraint besides those that every kind has.

        Args:
            _keeps_body: whether the bone that carries the figure keeps its animation over planted bones.
        """
        message = f"Constraint '{constraint.name}': its kind is not known to this version: choose one"
        yield Problem("ERROR", constraint.name, message)

    def subject(self, constraint: Any) -> str:
        """What stored constraints may contradict each other about: a bone, or "" for the centre of mass."""
        return str(constraint.tip)

    def pair_problems(self, _one: Any, _other: Any) -> Iterator[Problem]:
        """Yield contradictions of two stored constraints of this kind with the same subject and priority."""
        yield from ()

    def chain_words(self, chain: Sequence[bpy.types.PoseBone]) -> str:
        """Describe a constraint's chain, tip first."""
        locked = sum(all(bone.lock_rotation) or bone.ccd_rig.stiffness >= 1.0 for bone in chain)
        count = f"{len(chain)} bone{'' if len(chain) == 1 else 's'}"
        return f"{count} up to '{chain[-1].name}'{f', {locked} locked' if locked else ''}"

    def lines(self, _constraint: Any) -> Iterator[Line]:
        """Yield the lines of the panel that only this kind has."""
        yield from ()


UNKNOWN = Kind("")


class Holds(NamedTuple):
    """Components of a planted bone that stay fixed; the remaining ones keep their animation."""

    ground: bool = True  # position along the world's X and Y
    height: bool = True  # position along the world's Z
    rotation: bool = True


WHOLE = Holds()


# Items of menus. Files store the numbers: an item keeps its number for good.
ROTATIONS = (
    ("NONE", "Free", "The bone may be turned in any way", 0),
    ("ORIENTATION", "Copy", "The bone is turned as the target is", 1),
    ("DIRECTION", "Point Along", "One axis of the bone points along an axis of the target", 2),
)
OFFSET_SPACES = (
    ("TARGET", "Target", "Along the target's own axes, in its unit", 0),
    ("ARMATURE", "Armature", "Along the axes of the armature object, in its unit", 1),
    ("WORLD", "World", "Along the world's axes", 2),
)
AXIS_ITEMS = tuple(
    (f"{sign}_{axis}", f"{'-' if sign == 'NEG' else ''}{axis}", f"The {axis} axis{words}", number)
    for number, (sign, axis, words) in enumerate(
        (sign, axis, words) for sign, words in (("POS", ""), ("NEG", ", backwards")) for axis in "XYZ"
    )
)
AXES = {
    name: Vector([(-1.0 if number > 2 else 1.0) * (number % 3 == k) for k in range(3)]).freeze()
    for name, _, _, number in AXIS_ITEMS
}
"""The axes of the menu as unit vectors."""
METHODS = (
    ("CCD", "Loop", "All bones of the chain together, by the solver of the armature's settings", 0),
    (
        "TWO_BONE_TIP",
        "Two-Bone Tip",
        "By CCD, bone by bone, but the last two bones at once: bones further down stay still where the two "
        "reach the target alone",
        1,
    ),
    (
        "TWO_BONE",
        "Two Bones",
        "Only the last two bones that can turn, exactly and at once, as an arm or a leg; limits hold",
        2,
    ),
    (
        "TRIANGLE",
        "Target Triangle",
        "Each bone is turned just once, from the root on, so that it closes a triangle with the rest of the "
        "chain and the target; limits hold, and may keep it from the target",
        3,
    ),
)


@dataclass(frozen=True)
class Constraint:
    """Value of a stored constraint, and the table of its settings.

    An entry has the type of a setting's value, and the property that stores it. Objects are their names,
    empty for none. Angles are in radians.
    """

    name: str = SETTING.text("Name", "Name of the constraint")
    tip: str = SETTING.text("Bone", "The bone to move: the last one of the chain")
    chain_length: int = SETTING.integer(
        "Chain Length",
        "How many bones may turn, counted from this one, locked ones too; 0 goes up to the "
        "root. A planted bone's chain ends at the bone that carries the figure",
        default=CHAIN_LENGTH,
        min=0,
        soft_max=255,
    )
    target: str = SETTING.pointer("Target", "The object that the bone should reach", type=bpy.types.Object)
    target_bone: str = SETTING.text(
        "Target Bone",
        "The bone of the target armature whose head is the target; empty: the object's origin",
    )
    offset: tuple[float, float, float] = KEYED.vector(
        "Target Offset",
        "Shift of the point to reach, along the axes that Offset Space says. Keyed, it is a "
        "layer over the motion of the target",
        size=3,
        subtype="XYZ_LENGTH",
    )
    influence: float = SETTING.number(
        "Influence",
        "How much of the solved rotations is used: 0 keeps the pose, 1 reaches for the target",
        default=1.0,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
    )
    weight: float = KEYED.number(
        "Weight",
        "How much this constraint counts where several pull at the same bones",
        default=WEIGHT,
        translation_context=CONTEXT,
        min=0.001,
        max=10_000.0,
        soft_max=10.0,
    )
    enabled: bool = SETTING.boolean("Enabled", "Solve and bake this constraint", default=True)
    use_tail: bool = SETTING.boolean(
        "Use Tail", "Bring the bone's tail to the target; when off, its head", default=True
    )
    kind: Kind = UNKNOWN  # see `Kind`; stored by its identifier
    use_position: bool = SETTING.boolean("Position", "Bring the bone's end to the target", default=True)
    rotation: str = SETTING.enum(
        "Rotation",
        "How the bone follows the target's rotation. Under mirroring or shear the bone's Y axis points "
        "exactly as the target's, and Z as near as it can",
        items=ROTATIONS,
    )
    rotation_weight: float = KEYED.number(
        "Rotation Weight",
        "How much the rotation counts beside the position where the bone cannot have both",
        default=1.0,
        min=0.001,
        max=10_000.0,
        soft_max=10.0,
    )
    bone_axis: str = SETTING.enum(
        "Bone Axis",
        "The axis of the bone that points along the target's; Y is its length",
        items=AXIS_ITEMS,
        default="POS_Y",
    )
    target_axis: str = SETTING.enum(
        "Target Axis",
        "The axis of the target that the bone's axis points along",
        items=AXIS_ITEMS,
        default="POS_Y",
    )
    pole_target: str = SETTING.pointer(
        "Pole Target",
        "The object that the chain bends towards. It comes after the position: the target is "
        "reached first, and limits hold",
        type=bpy.types.Object,
    )
    pole_bone: str = SETTING.text(
        "Pole Bone", "The bone of the pole armature whose head is the pole; empty: the object's origin"
    )
    pole_angle: float = KEYED.number(
        "Pole Angle",
        "By how much the bend is turned from the pole, about the line from the chain's root to its end",
        default=POLE_ANGLE,
        soft_min=-pi,
        soft_max=pi,
        subtype="ANGLE",
    )
    priority: int = SETTING.integer(
        "Priority",
        "Constraints with priority 0 are served first; those with larger numbers never worsen them",
        default=PRIORITY,
        min=0,
        soft_max=9,
    )
    max_extension: float = KEYED.number(
        "Max Extension",
        "Part of its length past which the chain is never stretched; 1 is off",
        default=MAX_EXTENSION,
        min=0.01,
        max=1.0,
        subtype="FACTOR",
    )
    extension_joints: int = SETTING.integer(
        "Extension Bones",
        "How many bones, counted from this one, Max Extension applies to; 0 is the whole chain. Bones "
        "further up do the rest",
        default=EXTENSION_JOINTS,
        min=0,
        soft_max=255,
    )
    balance_axes: tuple[bool, bool, bool] = SETTING.booleans(
        "Balance Axes",
        "Which of the world's axes count: X and Y keep the centre of mass over a point of "
        "the ground, one axis alone over a line",
        default=BALANCE_AXES,
        size=3,
        subtype="XYZ",
    )
    method: str = SETTING.enum(
        "Method", "How the chain is brought to the target", items=METHODS, translation_context=CONTEXT
    )
    soft: float = KEYED.number(
        "Softness",
        "Part of the chain's length over which it eases into straight, so that an elbow or a "
        "knee does not snap at the end of its reach: the bone stays a little behind its target there",
        default=SOFT,
        min=0.0,
        max=1.0,
        soft_max=0.2,
        subtype="FACTOR",
    )
    effector_offset: tuple[float, float, float] = SETTING.vector(
        "Bone Offset",
        "Shift of the point that is brought to the target, from the bone's tail or head, along "
        "the bone's own axes, in the armature's unit: the sole of a foot, the grip of a hand",
        size=3,
        subtype="XYZ_LENGTH",
    )
    rotation_bone: str = SETTING.text(
        "Rotation Bone", "The bone of the chain that is turned as the target is; empty: the last one"
    )
    holds: Holds = WHOLE  # for PLANT, components of the bone that stay fixed; stored as `plant_ground` etc.
    on_ground: bool = False  # for PLANT, whether the sole lies on the Ground; stored as `plant_on_ground`
    offset_space: str = SETTING.enum(
        "Offset Space",
        "Along whose axes Target Offset shifts the point",
        items=OFFSET_SPACES,
        translation_context=CONTEXT,
    )

    # For PLANT, whether the bone that carries the figure keeps its animation; else it follows planted bones.
    # Set by `body.with_body_mode`.
    keeps_body: bool = False
    # For REACH, number of bones, counted from the tip, that may move if the chain alone misses its target:
    # the chain and the body above it; 0 if no body helps. Set by `checks.helped`.
    body_length: int = 0
    body_still: tuple[str, ...] = ()  # names of bones of that body that do not turn. Set by `checks.helped`.
    # Name of the constraint whose target carries the target of this one, which has no motion relative to it;
    # empty for none. Set by `checks.helped`.
    carrier: str = ""
    is_animated: bool = False  # whether F-curves move its target. Set by `checks.helped`.

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Hash of all values, computed once: solved groups are looked up by their constraints."""
        return hash(tuple([getattr(self, each.name) for each in fields(self)]))


PROPERTIES = properties_of(Constraint)
"""The properties of settings that are stored by the names of their fields."""
SAMPLED = tuple(each.name for each in fields(Constraint) if each.metadata.get("declare") is KEYED)
"""Fields of constraints that are read at every frame of a bake if keys or drivers move them."""


class TargetSample(NamedTuple):
    """Target and pole of one constraint at a frame, armature space."""

    point: Vector  # goal of the effector; for BALANCE, of the centre of mass
    rotation: Quaternion | None = None  # of the target, for ORIENTATION (see `orthonormal`)
    # Unit vector: for DIRECTION of the target's axis; for BALANCE of the only world axis that counts, or of
    # the only one that does not.
    direction: Vector | None = None
    pole: Vector | None = None  # position of the pole target, if there is one
    # The Target Offset, if keys or drivers move it; `point` includes it.
    offset: tuple[float, float, float] | None = None
    # The remaining fields of the constraint that keys or drivers move, with their values.
    keyed: tuple[tuple[str, float], ...] = ()

    def settings_of(self, constraint: Constraint) -> Constraint:
        """Return the constraint with the values of keys and drivers at the frame."""
        fields: dict[str, Any] = dict(self.keyed)
        if self.offset is not None:
            fields["offset"] = self.offset
        return replace(constraint, **fields) if fields else constraint


class Shown(NamedTuple):
    """A property in a line of a panel."""

    group: Any  # the property group that has it
    name: str  # of the property
    text: str | None = None  # its label; None: its name
    is_active: bool = True  # whether it is drawn at full strength


class Line(NamedTuple):
    """A line of a panel: properties side by side or below each other, or a sentence."""

    shown: tuple[Shown, ...] = ()  # the properties
    heading: str = ""  # words before them
    toggle: bool = False  # whether switches are drawn as buttons
    is_wide: bool = False  # whether the properties take the full width, without a column for labels
    is_column: bool = False  # whether the properties stand below each other
    words: str = ""  # the sentence
    icon: str = "INFO"  # before the sentence
