# SPDX-License-Identifier: GPL-3.0-or-later
"""The constraints of an armature as values."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy


class Kind(enum.StrEnum):
    """What a constraint is about. The words are those of `constraint_group.KINDS`."""

    REACH = "REACH"
    """The tip's end, its rotation or both go to a target."""
    BALANCE = "BALANCE"
    """The centre of mass goes over a target; the chain says which bones move for it."""
    PLANT = "PLANT"
    """The tip stays put while the influence is above 0.5, held by its head and its rotation; the chain goes
    up to the root bone."""


class Holds(NamedTuple):
    """Which parts of a planted bone are held; the others are as the bone is animated."""

    ground: bool = True  # its place along the world's X and Y
    height: bool = True  # along the world's Z
    rotation: bool = True


WHOLE = Holds()


@dataclass(frozen=True)
class Constraint:
    """One constraint, as a value.

    Attributes:
        name: unique on its armature.
        tip: name of the last bone of the chain.
        chain_length: how many bones, counted from the tip; 0 goes to the root.
        target: name of the target object, empty if there is none.
        target_bone: name of the target's bone, empty for the object itself.
        offset: from the target, in the axes and the unit that `offset_space` says.
        influence: 0 keeps the pose, 1 is fully solved.
        weight: how much it counts against other constraints, above 0.
        enabled: whether it is solved at all.
        use_tail: whether the tip's tail is brought to the target, or its head.
        kind: what it is about.
        use_position: whether the tip's end is brought to the target.
        rotation: "NONE"; "ORIENTATION" copies the target's rotation; "DIRECTION" points an axis.
        rotation_weight: of the rotation beside the position, above 0.
        bone_axis: for DIRECTION, of the bone: "POS_X" to "NEG_Z".
        target_axis: for DIRECTION, of the target.
        pole_target: name of the object that the chain bends towards, empty for none.
        pole_bone: name of its bone, empty for the object itself.
        pole_angle: radians by which the bend is turned from the pole, see `goals.PoleGoal`.
        priority: 0 is served first.
        max_extension: part of its length past which the chain is never stretched; 1 is off.
        extension_joints: how many bones, counted from the tip, `max_extension` is about; 0 is the whole
            chain.
        balance_axes: for BALANCE, which of the world's axes count.
        method: for REACH, "CCD"; "TWO_BONE_TIP", with the last two bones solved at once; "TWO_BONE" or
            "TRIANGLE": see `METHODS`.
        soft: part of the chain's length over which it eases into straight; TRIANGLE does not.
        effector_offset: of the point that is brought to the target, from the tip's tail or head, along the
            bone's axes, in armature units.
        rotation_bone: name of the chain's bone that `rotation` is about, empty for the tip.
        holds: for PLANT, which parts of the bone are held.
        offset_space: of `offset`, "TARGET" (its own axes and unit), "ARMATURE" or "WORLD".
        keeps_body: for PLANT, whether the bone that carries the figure keeps its animation; else it follows
            planted bones. Set by `body.settled`.
        body_length: for REACH, how many bones, counted from the tip, may move where the chain alone misses
            its target: the chain and the body above it; 0 where no body helps. Set by `body_help.helped`.
        carrier: name of the constraint whose target carries this one's, which has no motion of its own;
            empty for none. Set likewise.
    """

    name: str
    tip: str
    chain_length: int
    target: str
    target_bone: str
    offset: tuple[float, float, float]
    influence: float
    weight: float
    enabled: bool
    use_tail: bool
    kind: Kind = Kind.REACH
    use_position: bool = True
    rotation: str = "NONE"
    rotation_weight: float = 1.0
    bone_axis: str = "POS_Y"
    target_axis: str = "POS_Y"
    pole_target: str = ""
    pole_bone: str = ""
    pole_angle: float = 0.0
    priority: int = 0
    max_extension: float = 1.0
    extension_joints: int = 0
    balance_axes: tuple[bool, bool, bool] = (True, True, False)
    method: str = "CCD"
    soft: float = 0.0
    effector_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation_bone: str = ""
    holds: Holds = WHOLE
    offset_space: str = "TARGET"
    keeps_body: bool = False
    body_length: int = 0
    carrier: str = ""


def constraints(armature_object: bpy.types.Object) -> tuple[Constraint, ...]:
    """The constraints of the list as values, in their order, disabled ones included."""
    return tuple(map(value_of, armature_object.ccd_rig.constraints))


def value_of(stored: Any) -> Constraint:
    """A constraint of the list as a value; its kind is a known one."""
    constraint = Constraint(
        name=stored.name,
        tip=stored.tip,
        chain_length=stored.chain_length,
        target=stored.target.name if stored.target else "",
        target_bone=stored.target_bone,
        offset=tuple(stored.offset),
        influence=stored.influence,
        weight=stored.weight,
        enabled=stored.enabled,
        use_tail=stored.use_tail,
        kind=Kind(stored.kind),
        use_position=stored.use_position,
        rotation=stored.rotation,
        rotation_weight=stored.rotation_weight,
        bone_axis=stored.bone_axis,
        target_axis=stored.target_axis,
        pole_target=stored.pole_target.name if stored.pole_target else "",
        pole_bone=stored.pole_bone,
        pole_angle=stored.pole_angle,
        priority=stored.priority,
        max_extension=stored.max_extension,
        extension_joints=stored.extension_joints,
        balance_axes=tuple(stored.balance_axes),
        method=stored.method,
        soft=stored.soft,
        effector_offset=tuple(stored.effector_offset),
        rotation_bone=stored.rotation_bone,
        holds=Holds(stored.plant_ground, stored.plant_height, stored.plant_rotation),
        offset_space=stored.offset_space,
    )
    return replace(constraint, **ASKED[constraint.kind])


ASKED: Mapping[Kind, Mapping[str, Any]] = MappingProxyType(
    {
        Kind.REACH: {"holds": WHOLE},
        Kind.BALANCE: {
            "use_position": True,
            "rotation": "NONE",
            "pole_target": "",
            "pole_bone": "",
            "max_extension": 1.0,
            "extension_joints": 0,
            "method": "CCD",
            "holds": WHOLE,
        },
        Kind.PLANT: {
            "use_tail": False,
            "use_position": True,
            "rotation": "ORIENTATION",
            "rotation_weight": 1.0,
            "pole_target": "",
            "pole_bone": "",
            "priority": 0,
            "weight": 1.0,
            "max_extension": 1.0,
            "extension_joints": 0,
            "method": "CCD",
            "effector_offset": (0.0, 0.0, 0.0),
            "rotation_bone": "",
        },
    }
)
"""What a constraint of a kind asks for, whatever is left over in it from another kind."""
