# SPDX-License-Identifier: GPL-3.0-or-later
"""The constraints of an armature as values."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy


class Kind(enum.StrEnum):
    """Kind of a constraint, an identifier of `constraint_group.KINDS`."""

    REACH = "REACH"
    """The tail or head of the tip, its rotation, or both reach a target."""
    BALANCE = "BALANCE"
    """The centre of mass is kept over a target by the bones of the chain."""
    PLANT = "PLANT"
    """The head and rotation of the tip stay fixed in the world while the influence is above 0.5. The chain
    ends at the root bone, which carries the figure."""


class Holds(NamedTuple):
    """Components of a planted bone that stay fixed; the remaining ones keep their animation."""

    ground: bool = True  # position along the world's X and Y
    height: bool = True  # position along the world's Z
    rotation: bool = True


WHOLE = Holds()


@dataclass(frozen=True)
class Constraint:
    """Value of a stored constraint.

    Attributes:
        name: unique on its armature.
        tip: name of the last bone of the chain.
        chain_length: number of bones, counted from the tip; 0 goes to the root.
        target: name of the target object, empty if there is none.
        target_bone: name of the target's bone, empty for the object itself.
        offset: from the target, in the axes and unit of `offset_space`.
        influence: 0 keeps the pose, 1 is fully solved.
        weight: relative to other constraints, above 0.
        enabled: whether it is solved.
        use_tail: whether the effector is the tail of the tip, or its head.
        kind: see `Kind`.
        use_position: whether the effector is brought to the target.
        rotation: "NONE"; "ORIENTATION" copies the target's rotation; "DIRECTION" points an axis.
        rotation_weight: weight of the rotation relative to the position, above 0.
        bone_axis: for DIRECTION, axis of the bone: "POS_X" to "NEG_Z".
        target_axis: for DIRECTION, axis of the target.
        pole_target: name of the object that the chain bends towards, empty for none.
        pole_bone: name of its bone, empty for the object itself.
        pole_angle: radians by which the bend is turned from the pole, see `goals.PoleGoal`.
        priority: 0 is met first; larger numbers never worsen smaller ones.
        max_extension: fraction of its length past which the chain is never stretched; 1 is off.
        extension_joints: number of bones, counted from the tip, that `max_extension` applies to; 0 is the
            entire chain.
        balance_axes: for BALANCE, world axes along which the centre of mass is kept.
        method: for REACH, "CCD"; "TWO_BONE_TIP", with the last two bones solved at once; "TWO_BONE" or
            "TRIANGLE": see `METHODS`.
        soft: fraction of the chain's length over which it eases into straight; TRIANGLE does not.
        effector_offset: of the effector from the tail or head of the tip, along the bone's axes, in
            armature units.
        rotation_bone: name of the bone of the chain that `rotation` applies to, empty for the tip.
        holds: for PLANT, components of the bone that stay fixed.
        on_ground: for PLANT, whether the sole lies on the armature's Ground, turned to its slope.
        offset_space: of `offset`, "TARGET" (axes and unit of the target), "ARMATURE" or "WORLD".
        keeps_body: for PLANT, whether the bone that carries the figure keeps its animation; else it follows
            planted bones. Set by `body.settled`.
        body_length: for REACH, number of bones, counted from the tip, that may move if the chain alone
            misses its target: the chain and the body above it; 0 if no body helps. Set by
            `body_help.helped`.
        carrier: name of the constraint whose target carries the target of this one, which has no motion
            relative to it; empty for none. Set by `body_help.helped`.
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
    on_ground: bool = False
    offset_space: str = "TARGET"
    keeps_body: bool = False
    body_length: int = 0
    carrier: str = ""


def constraints(armature_object: bpy.types.Object) -> tuple[Constraint, ...]:
    """Return the values of all constraints of an armature in their order, disabled ones included."""
    return tuple(map(value_of, armature_object.ccd_rig.constraints))


def value_of(stored: Any) -> Constraint:
    """Return the value of a stored constraint. `stored.kind` must be a `Kind`."""
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
        on_ground=stored.plant_on_ground,
        offset_space=stored.offset_space,
    )
    return replace(constraint, **FIXED_FIELDS[constraint.kind])


FIXED_FIELDS: Mapping[Kind, Mapping[str, Any]] = MappingProxyType(
    {
        Kind.REACH: {"holds": WHOLE, "on_ground": False},
        Kind.BALANCE: {
            "use_position": True,
            "rotation": "NONE",
            "pole_target": "",
            "pole_bone": "",
            "max_extension": 1.0,
            "extension_joints": 0,
            "method": "CCD",
            "holds": WHOLE,
            "on_ground": False,
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
"""Fields that the kind of a constraint fixes, whatever is stored from a kind that it had before."""
