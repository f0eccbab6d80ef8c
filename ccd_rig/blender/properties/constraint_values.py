# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints as values, their targets at a frame, and what their kinds answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
from mathutils import Quaternion, Vector

from ...goals import Goal
from ...skeleton.joints import Skeleton

PLANT = "PLANT"
"""Identifier of the kind that plants bones."""
PLANTED = 0.5
"""Influence above which a bone is planted; it is planted fully or not at all."""
AXES = {
    f"{name}_{axis}": Vector([sign * (i == k) for i in range(3)]).freeze()
    for name, sign in (("POS", 1.0), ("NEG", -1.0))
    for k, axis in enumerate("XYZ")
}
"""The values of `Constraint.bone_axis` and `target_axis` as unit vectors."""


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
        fixed: fields of `Constraint` with the values that the kind fixes, whatever is stored from a kind that
            the constraint had before.
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
            constraint: as it is stored.
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


class Holds(NamedTuple):
    """Components of a planted bone that stay fixed; the remaining ones keep their animation."""

    ground: bool = True  # position along the world's X and Y
    height: bool = True  # position along the world's Z
    rotation: bool = True


WHOLE = Holds()


@dataclass(frozen=True)
class Constraint:
    """Value of a stored constraint."""

    name: str  # unique on its armature
    tip: str  # name of the last bone of the chain
    chain_length: int  # number of bones, counted from the tip; 0 goes to the root
    target: str  # name of the target object, empty if there is none
    target_bone: str  # name of the target's bone, empty for the object itself
    offset: tuple[float, float, float]  # from the target, in the axes and unit of `offset_space`
    influence: float  # 0 keeps the pose, 1 is fully solved
    weight: float  # relative to other constraints, above 0
    enabled: bool  # whether it is solved
    use_tail: bool  # whether the effector is the tail of the tip, or its head
    kind: Kind  # see `Kind`
    use_position: bool = True  # whether the effector is brought to the target
    rotation: str = "NONE"  # "NONE"; "ORIENTATION" copies the target's rotation; "DIRECTION" points an axis
    rotation_weight: float = 1.0  # weight of the rotation relative to the position, above 0
    bone_axis: str = "POS_Y"  # for DIRECTION, axis of the bone: "POS_X" to "NEG_Z"
    target_axis: str = "POS_Y"  # for DIRECTION, axis of the target
    pole_target: str = ""  # name of the object that the chain bends towards, empty for none
    pole_bone: str = ""  # name of its bone, empty for the object itself
    pole_angle: float = 0.0  # radians by which the bend is turned from the pole, see `goals.PoleGoal`
    priority: int = 0  # 0 is met first; larger numbers never worsen smaller ones
    max_extension: float = 1.0  # fraction of its length past which the chain is never stretched; 1 is off
    # Number of bones, counted from the tip, that `max_extension` applies to; 0 is the entire chain.
    extension_joints: int = 0
    # For BALANCE, world axes along which the centre of mass is kept.
    balance_axes: tuple[bool, bool, bool] = (True, True, False)
    # For REACH, "CCD"; "TWO_BONE_TIP", with the last two bones solved at once; "TWO_BONE" or "TRIANGLE": see
    # `constraint_kinds.METHODS`.
    method: str = "CCD"
    soft: float = 0.0  # fraction of the chain's length over which it eases into straight; TRIANGLE does not
    # Of the effector from the tail or head of the tip, along the bone's axes, in armature units.
    effector_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation_bone: str = ""  # name of the bone of the chain that `rotation` applies to, empty for the tip
    holds: Holds = WHOLE  # for PLANT, components of the bone that stay fixed
    on_ground: bool = False  # for PLANT, whether the sole lies on the armature's Ground, turned to its slope
    offset_space: str = "TARGET"  # of `offset`, "TARGET" (axes and unit of the target), "ARMATURE" or "WORLD"
    # For PLANT, whether the bone that carries the figure keeps its animation; else it follows planted bones.
    # Set by `body.settled`.
    keeps_body: bool = False
    # For REACH, number of bones, counted from the tip, that may move if the chain alone misses its target:
    # the chain and the body above it; 0 if no body helps. Set by `checks.helped`.
    body_length: int = 0
    body_still: tuple[str, ...] = ()  # names of bones of that body that do not turn. Set by `checks.helped`.
    # Name of the constraint whose target carries the target of this one, which has no motion relative to it;
    # empty for none. Set by `checks.helped`.
    carrier: str = ""
    is_animated: bool = False  # whether F-curves move its target. Set by `checks.helped`.


SAMPLED = ("offset", "weight", "rotation_weight", "pole_angle", "max_extension", "soft")
"""Fields of constraints that are read at every frame of a bake if keys or drivers move them."""


class TargetSample(NamedTuple):
    """Target and pole of one constraint at a frame, armature space."""

    point: Vector  # goal of the effector; for BALANCE, of the centre of mass
    rotation: Quaternion | None = None  # of the target, for ORIENTATION (see `orthonormal`)
    direction: Vector | None = None  # unit vector of the target's axis, for DIRECTION
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
