# SPDX-License-Identifier: GPL-3.0-or-later
"""The constraints of an armature as values."""

from dataclasses import dataclass, replace
from typing import Any

import bpy


@dataclass(frozen=True)
class Constraint:
    """One constraint, as a value.

    Attributes:
        name: unique on its armature.
        tip: name of the last bone of the chain.
        chain_length: how many bones, counted from the tip; 0 goes to the root.
        target: name of the target object, empty if there is none.
        target_bone: name of the target's bone, empty for the object itself.
        offset: from the target, in its own axes, in its own unit.
        influence: 0 keeps the pose, 1 is fully solved.
        weight: how much it counts against other constraints, above 0.
        enabled: whether it is solved at all.
        use_tail: whether the tip's tail is brought to the target, or its head.
        kind: "REACH"; "BALANCE" for the centre of mass, where the chain says which bones move for it;
            "PLANT" for a bone that stays put while the influence is above 0.5, where the chain goes up to the
            bone that carries the figure. A planted bone is held by its head and its rotation.
        use_position: whether the tip's end is brought to the target.
        rotation: "NONE"; "ORIENTATION" copies the target's rotation; "DIRECTION" points an axis.
        rotation_weight: of the rotation beside the position, above 0.
        bone_axis: for DIRECTION, of the bone: "POS_X" to "NEG_Z".
        target_axis: for DIRECTION, of the target.
        pole_target: name of the object that the chain bends towards, empty for none.
        pole_bone: name of its bone, empty for the object itself.
        priority: 0 is served first.
        max_extension: part of its length past which the chain is never stretched; 1 is off.
        extension_joints: how many bones, counted from the tip, `max_extension` is about; 0 is the whole
            chain.
        balance_axes: for BALANCE, which of the world's axes count.
        method: for REACH, "CCD"; "TWO_BONE_TIP", with the last two bones solved at once; "TWO_BONE" or
            "TRIANGLE": see `METHODS`.
        soft: for TWO_BONE, part of the chain's length over which it eases into straight.
        effector_offset: of the point that is brought to the target, from the tip's tail or head, along the
            bone's axes, in armature units.
        rotation_bone: name of the chain's bone that `rotation` is about, empty for the tip.
        keeps_body: for PLANT, whether the bone that carries the figure keeps its animation; else it follows
            planted bones. Set by `body.settled`.
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
    kind: str = "REACH"
    use_position: bool = True
    rotation: str = "NONE"
    rotation_weight: float = 1.0
    bone_axis: str = "POS_Y"
    target_axis: str = "POS_Y"
    pole_target: str = ""
    pole_bone: str = ""
    priority: int = 0
    max_extension: float = 1.0
    extension_joints: int = 0
    balance_axes: tuple[bool, bool, bool] = (True, True, False)
    method: str = "CCD"
    soft: float = 0.0
    effector_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation_bone: str = ""
    keeps_body: bool = False


def constraints(armature_object: bpy.types.Object) -> tuple[Constraint, ...]:
    """The constraints of the list as values, in their order, disabled ones included."""
    found = (
        Constraint(
            name=constraint.name,
            tip=constraint.tip,
            chain_length=constraint.chain_length,
            target=constraint.target.name if constraint.target else "",
            target_bone=constraint.target_bone,
            offset=tuple(constraint.offset),
            influence=constraint.influence,
            weight=constraint.weight,
            enabled=constraint.enabled,
            use_tail=constraint.use_tail,
            kind=constraint.kind,
            use_position=constraint.use_position,
            rotation=constraint.rotation,
            rotation_weight=constraint.rotation_weight,
            bone_axis=constraint.bone_axis,
            target_axis=constraint.target_axis,
            pole_target=constraint.pole_target.name if constraint.pole_target else "",
            pole_bone=constraint.pole_bone,
            priority=constraint.priority,
            max_extension=constraint.max_extension,
            extension_joints=constraint.extension_joints,
            balance_axes=tuple(constraint.balance_axes),
            method=constraint.method,
            soft=constraint.soft,
            effector_offset=tuple(constraint.effector_offset),
            rotation_bone=constraint.rotation_bone,
        )
        for constraint in armature_object.ccd_rig.constraints
    )
    return tuple(
        replace(constraint, **_HELD) if constraint.kind == "PLANT" else constraint for constraint in found
    )


_HELD: dict[str, Any] = {
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
}
"""What a planted bone asks for, whatever is left over in it from another kind."""
