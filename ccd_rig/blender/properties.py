# SPDX-License-Identifier: GPL-3.0-or-later
"""What is stored in the .blend file, and the way from there to the core's values.

`Object.ccd_rig` on an armature object holds the constraints, the solver's settings and the last report;
`PoseBone.ccd_rig` holds what each joint may do. Defaults that the core has are read from its dataclasses.
"""

import inspect
from dataclasses import dataclass, replace
from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    BoolVectorProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ..analytic import two_bone
from ..goals import BalanceGoal, PositionGoal
from . import library
from .joints import CCD_RIG_PG_comfort, CCD_RIG_PG_joint, CCD_RIG_PG_limit, joint_settings
from .names import unique_name
from .report import BakeReport
from .settings import OVERRIDE, CCD_RIG_PG_solver, from_core, solver_settings

__all__ = [
    "Constraint",
    "constraints",
    "joint_settings",
    "register",
    "solver_settings",
    "store_report",
    "unregister",
]

DEFAULT_NAME = "CCD"
_SOFT = inspect.signature(two_bone).parameters["soft"].default

# Files store the numbers: they stay with their words for good.
KINDS = (
    ("REACH", "Reach", "The bone reaches for a target: with its end, its rotation, or both", 0),
    ("BALANCE", "Balance", "The centre of mass of all bones that have a mass stays over a target", 1),
    (
        "PLANT",
        "Plant",
        "The bone stays put in the world while Influence is above 0.5, and the figure moves over it",
        2,
    ),
)
ROTATIONS = (
    ("NONE", "Free", "The bone may be turned in any way", 0),
    ("ORIENTATION", "Copy", "The bone is turned as the target is", 1),
    ("DIRECTION", "Point Along", "One axis of the bone points along an axis of the target", 2),
)
METHODS = (
    ("CCD", "Loop", "All bones of the chain by turns, until the target is reached", 0),
    (
        "LEAF",
        "Two-Bone Leaf",
        "In the loop, but the last two bones are solved at once: bones further down stay still where the two "
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
AXES = tuple(
    (f"{sign}_{axis}", f"{'-' if sign == 'NEG' else ''}{axis}", f"The {axis} axis{words}", number)
    for number, (sign, axis, words) in enumerate(
        (sign, axis, words) for sign, words in (("POS", ""), ("NEG", ", backwards")) for axis in "XYZ"
    )
)


@dataclass(frozen=True)
class Constraint:
    """One row of the list, as values.

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
        reach: part of its length past which the chain is never stretched; 1 is off.
        reach_joints: how many bones, counted from the tip, `reach` is about; 0 is the whole chain.
        balance_axes: for BALANCE, which of the world's axes count.
        method: for REACH, "CCD"; "LEAF", with the last two bones solved at once; "TWO_BONE" or "TRIANGLE":
            see `METHODS`.
        soft: for TWO_BONE, part of the chain's length over which it eases into straight.
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
    reach: float = 1.0
    reach_joints: int = 0
    balance_axes: tuple[bool, bool, bool] = (True, True, False)
    method: str = "CCD"
    soft: float = 0.0


def _keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    taken = {row.name for row in self.id_data.ccd_rig.constraints if row != self}
    free = unique_name(self.name or DEFAULT_NAME, taken)
    if free != self.name:
        self.name = free  # runs this function once more, which then finds nothing to do


class CCD_RIG_PG_constraint(bpy.types.PropertyGroup):
    """A bone, and where and how it should be. Its property `name` is added by `register`."""

    tip: StringProperty(
        name="Bone", description="The bone to move: the last one of the chain", override=OVERRIDE
    )
    chain_length: IntProperty(
        **from_core(
            PositionGoal,
            "chain_length",
            name="Chain Length",
            description="How many bones may turn, counted from this one, locked ones too; 0 goes up to the "
            "root. A planted bone's chain ends at the bone that carries the figure",
        ),
        min=0,
        soft_max=255,
    )
    target: PointerProperty(
        name="Target",
        description="The object that the bone should reach",
        type=bpy.types.Object,
        override=OVERRIDE,
    )
    target_bone: StringProperty(
        name="Target Bone",
        description="The bone of the target armature whose head is the target; empty: the object's origin",
        override=OVERRIDE,
    )
    offset: FloatVectorProperty(
        name="Offset",
        description="Shift of the point to reach, along the target's own axes",
        size=3,
        subtype="XYZ_LENGTH",
        override=OVERRIDE,
    )
    influence: FloatProperty(
        name="Influence",
        description="How much of the solved rotations is used: 0 keeps the pose, 1 reaches for the target",
        default=1.0,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
        override=OVERRIDE,
    )
    weight: FloatProperty(
        **from_core(
            PositionGoal,
            "weight",
            name="Weight",
            description="How much this constraint counts where several pull at the same bones",
        ),
        min=0.001,
        soft_max=10.0,
    )
    enabled: BoolProperty(
        name="Enabled", description="Solve and bake this constraint", default=True, override=OVERRIDE
    )
    use_tail: BoolProperty(
        name="Use Tail",
        description="Bring the bone's tail to the target; when off, its head",
        default=True,
        override=OVERRIDE,
    )
    kind: EnumProperty(
        name="Kind", description="What the constraint is about", items=KINDS, override=OVERRIDE
    )
    use_position: BoolProperty(
        name="Position", description="Bring the bone's end to the target", default=True, override=OVERRIDE
    )
    rotation: EnumProperty(
        name="Rotation",
        description="What the target's rotation is to the bone. Under mirroring or shear the bone's Y axis "
        "points exactly as the target's, and Z as near as it can",
        items=ROTATIONS,
        override=OVERRIDE,
    )
    rotation_weight: FloatProperty(
        name="Rotation Weight",
        description="How much the rotation counts beside the position where the bone cannot have both",
        default=1.0,
        min=0.001,
        soft_max=10.0,
        override=OVERRIDE,
    )
    bone_axis: EnumProperty(
        name="Bone Axis",
        description="The axis of the bone that points along the target's; Y is its length",
        items=AXES,
        default="POS_Y",
        override=OVERRIDE,
    )
    target_axis: EnumProperty(
        name="Target Axis",
        description="The axis of the target that the bone's axis points along",
        items=AXES,
        default="POS_Y",
        override=OVERRIDE,
    )
    pole_target: PointerProperty(
        name="Pole Target",
        description="The object that the chain bends towards. It comes after the position: the target is "
        "reached first, and limits hold",
        type=bpy.types.Object,
        override=OVERRIDE,
    )
    pole_bone: StringProperty(
        name="Pole Bone",
        description="The bone of the pole armature whose head is the pole; empty: the object's origin",
        override=OVERRIDE,
    )
    priority: IntProperty(
        **from_core(
            PositionGoal,
            "priority",
            name="Priority",
            description="Constraints with priority 0 are served first; those with larger numbers never "
            "worsen them",
        ),
        min=0,
        soft_max=9,
    )
    reach: FloatProperty(
        **from_core(
            PositionGoal,
            "reach",
            name="Reach",
            description="Part of its length past which the chain is never stretched; 1 is off",
        ),
        min=0.01,
        max=1.0,
        subtype="FACTOR",
    )
    reach_joints: IntProperty(
        **from_core(
            PositionGoal,
            "reach_joints",
            name="Reach Bones",
            description="How many bones, counted from this one, Reach is about; 0 is the whole chain, and "
            "bones further up do the rest",
        ),
        min=0,
        soft_max=255,
    )
    method: EnumProperty(
        name="Method", description="How the chain is brought to the target", items=METHODS, override=OVERRIDE
    )
    soft: FloatProperty(
        name="Soft",
        description="Part of the two bones' length over which they ease into straight, so that the knee does "
        "not snap; the bone then stays behind a target that is far away",
        default=_SOFT,
        min=0.0,
        max=1.0,
        soft_max=0.2,
        subtype="FACTOR",
        override=OVERRIDE,
    )
    balance_axes: BoolVectorProperty(
        **from_core(
            BalanceGoal,
            "axes",
            name="Balance Axes",
            description="Which of the world's axes count: X and Y keep the centre of mass over a point of "
            "the ground, one axis alone over a line",
        ),
        size=3,
        subtype="XYZ",
    )


class CCD_RIG_PG_report(bpy.types.PropertyGroup):
    """What the last bake came to, in words."""

    words: StringProperty(name="Report", description="What the last bake came to", override=OVERRIDE)
    worst_frame: FloatProperty(
        name="Worst Frame", description="The frame that is farthest off", override=OVERRIDE
    )
    worst_constraint: StringProperty(
        name="Worst Constraint", description="The constraint that is farthest off", override=OVERRIDE
    )
    unsolved: IntProperty(
        name="Frames Not Reached",
        description="How many frames the last bake left off the target",
        min=0,
        override=OVERRIDE,
    )

    check: StringProperty(
        name="Check", description="What plays after the last bake, evaluated by Blender", override=OVERRIDE
    )
    faults: IntProperty(
        name="Constraints That Do Not Play as Baked",
        description="How many constraints do not play as the last bake has keyed them",
        min=0,
        override=OVERRIDE,
    )


class CCD_RIG_PG_armature(bpy.types.PropertyGroup):
    """All that an armature object stores."""

    constraints: CollectionProperty(
        name="CCD Constraints",
        description="The bones that should reach a target",
        type=CCD_RIG_PG_constraint,
        override=OVERRIDE | {"USE_INSERTION"},
    )
    active_index: IntProperty(
        name="Active Constraint", description="The constraint that is shown below the list", override=OVERRIDE
    )
    solver: PointerProperty(
        name="Solver", description="How the armature is solved", type=CCD_RIG_PG_solver, override=OVERRIDE
    )
    poses: CollectionProperty(
        name="Pose Library",
        description="Poses to start again from where the targets are not reached",
        type=library.CCD_RIG_PG_pose,
        override=OVERRIDE | {"USE_INSERTION"},
    )
    active_pose: IntProperty(
        name="Active Pose", description="The pose that is chosen in the pose library", override=OVERRIDE
    )
    report: PointerProperty(
        name="Report", description="What the last bake came to", type=CCD_RIG_PG_report, override=OVERRIDE
    )


CLASSES = (
    CCD_RIG_PG_constraint,
    CCD_RIG_PG_limit,
    CCD_RIG_PG_comfort,
    CCD_RIG_PG_joint,
    CCD_RIG_PG_solver,
    CCD_RIG_PG_report,
    library.CCD_RIG_PG_pose_bone,
    library.CCD_RIG_PG_pose,
    CCD_RIG_PG_armature,
)


def constraints(armature_object: bpy.types.Object) -> tuple[Constraint, ...]:
    """The rows of the list as values, in their order, disabled ones included."""
    found = (
        Constraint(
            name=row.name,
            tip=row.tip,
            chain_length=row.chain_length,
            target=row.target.name if row.target else "",
            target_bone=row.target_bone,
            offset=tuple(row.offset),
            influence=row.influence,
            weight=row.weight,
            enabled=row.enabled,
            use_tail=row.use_tail,
            kind=row.kind,
            use_position=row.use_position,
            rotation=row.rotation,
            rotation_weight=row.rotation_weight,
            bone_axis=row.bone_axis,
            target_axis=row.target_axis,
            pole_target=row.pole_target.name if row.pole_target else "",
            pole_bone=row.pole_bone,
            priority=row.priority,
            reach=row.reach,
            reach_joints=row.reach_joints,
            balance_axes=tuple(row.balance_axes),
            method=row.method,
            soft=row.soft,
        )
        for row in armature_object.ccd_rig.constraints
    )
    return tuple(replace(row, **_HELD) if row.kind == "PLANT" else row for row in found)


_HELD: dict[str, Any] = {
    "use_tail": False,
    "use_position": True,
    "rotation": "ORIENTATION",
    "rotation_weight": 1.0,
    "pole_target": "",
    "pole_bone": "",
    "priority": 0,
    "weight": 1.0,
    "reach": 1.0,
    "reach_joints": 0,
    "method": "CCD",
}
"""What a planted bone asks for, whatever is left over in the row from another kind."""


def store_report(armature_object: bpy.types.Object, report: BakeReport) -> None:
    """Keep what a bake came to, in words, for the panel."""
    group, worst = armature_object.ccd_rig.report, report.worst()
    group.words = report.summary()
    group.worst_frame = worst.frame
    group.worst_constraint = worst.constraint
    group.unsolved = len({row.frame for row in report.unsolved()})
    group.check = "" if report.check is None else report.check.words()
    group.faults = 0 if report.check is None else len(report.check.faults())


def register() -> None:
    """Register the groups and put them on objects and pose bones."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    CCD_RIG_PG_constraint.__annotations__["name"] = StringProperty(
        name="Name", description="Name of the constraint", update=_keep_name_unique, override=OVERRIDE
    )
    library.register_names()
    for group in CLASSES:
        bpy.utils.register_class(group)
    bpy.types.Object.ccd_rig = PointerProperty(
        name="CCD Rig",
        description="Constraints and settings of CCD Rig",
        type=CCD_RIG_PG_armature,
        override=OVERRIDE,
    )
    bpy.types.PoseBone.ccd_rig = PointerProperty(
        name="CCD Rig",
        description="What CCD Rig may do with this bone",
        type=CCD_RIG_PG_joint,
        override=OVERRIDE,
    )


def unregister() -> None:
    """Take the properties away again; what a file has stored stays in it."""
    del bpy.types.PoseBone.ccd_rig
    del bpy.types.Object.ccd_rig
    for group in reversed(CLASSES):
        bpy.utils.unregister_class(group)
    library.unregister_names()
    del CCD_RIG_PG_constraint.__annotations__["name"]
