# SPDX-License-Identifier: GPL-3.0-or-later
"""The property group of one constraint, and the items of its menus."""

from math import pi

import bpy
from bpy.props import (
    BoolProperty,
    BoolVectorProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...goals import BalanceGoal, PoleGoal, PositionGoal
from ...solvers.closed_forms import TwoBoneOptions
from ..languages.translation import CONTEXT
from . import renamed_bones
from .constraint_kinds import KINDS, METHODS
from .names import unique_name
from .solver_settings import OVERRIDE, from_core

DEFAULT_NAME = "CCD"

# Files store the numbers: an item keeps its number for good.
KIND_ITEMS = tuple((str(kind), kind.label, kind.description, kind.number) for kind in KINDS.values())
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
AXES = tuple(
    (f"{sign}_{axis}", f"{'-' if sign == 'NEG' else ''}{axis}", f"The {axis} axis{words}", number)
    for number, (sign, axis, words) in enumerate(
        (sign, axis, words) for sign, words in (("POS", ""), ("NEG", ", backwards")) for axis in "XYZ"
    )
)


def _keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    names = self.id_data.ccd_rig.constraints.keys()
    if not self.name or names.count(self.name) > 1:
        # Setting the name calls this function once more, which then changes nothing.
        self.name = unique_name(self.name or DEFAULT_NAME, names)


class PoleProperties:
    """Pole of a constraint: its chain bends towards it."""

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
    pole_angle: FloatProperty(
        **from_core(
            PoleGoal,
            "angle",
            name="Pole Angle",
            description="By how much the bend is turned from the pole, about the line from the chain's root "
            "to its end",
        ),
        soft_min=-pi,
        soft_max=pi,
        subtype="ANGLE",
    )


class OriginalProperties:
    """Name of the Blender constraint that a constraint was converted from."""

    original_bone: StringProperty(
        name="Original Bone",
        description="The bone of Blender's constraint that this one was converted from",
        override=OVERRIDE,
    )
    original_constraint: StringProperty(
        name="Original Constraint",
        description="Name of Blender's constraint that this one was converted from, and that is muted for it",
        override=OVERRIDE,
    )


class CCD_RIG_PG_constraint(PoleProperties, OriginalProperties, bpy.types.PropertyGroup):
    """A stored constraint. `register_calls` adds `name`."""

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
        name="Target Offset",
        description="Shift of the point to reach, along the axes that Offset Space says. Keyed, it is a "
        "layer over the motion of the target",
        size=3,
        subtype="XYZ_LENGTH",
        override=OVERRIDE,
    )
    offset_space: EnumProperty(
        name="Offset Space",
        description="Along whose axes Target Offset shifts the point",
        items=OFFSET_SPACES,
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
            translation_context=CONTEXT,
            description="How much this constraint counts where several pull at the same bones",
        ),
        min=0.001,
        max=10_000.0,
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
    effector_offset: FloatVectorProperty(
        name="Bone Offset",
        description="Shift of the point that is brought to the target, from the bone's tail or head, along "
        "the bone's own axes, in the armature's unit: the sole of a foot, the grip of a hand",
        size=3,
        subtype="XYZ_LENGTH",
        override=OVERRIDE,
    )
    kind: EnumProperty(
        name="Kind", description="What the constraint is about", items=KIND_ITEMS, override=OVERRIDE
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
    rotation_bone: StringProperty(
        name="Rotation Bone",
        description="The bone of the chain that is turned as the target is; empty: the last one",
        override=OVERRIDE,
    )
    rotation_weight: FloatProperty(
        name="Rotation Weight",
        description="How much the rotation counts beside the position where the bone cannot have both",
        default=1.0,
        min=0.001,
        max=10_000.0,
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
    max_extension: FloatProperty(
        **from_core(
            PositionGoal,
            "max_extension",
            description="Part of its length past which the chain is never stretched; 1 is off",
        ),
        min=0.01,
        max=1.0,
        subtype="FACTOR",
    )
    extension_joints: IntProperty(
        **from_core(
            PositionGoal,
            "extension_joints",
            name="Extension Bones",
            description="How many bones, counted from this one, Max Extension is about; 0 is the whole "
            "chain, and bones further up do the rest",
        ),
        min=0,
        soft_max=255,
    )
    method: EnumProperty(
        name="Method",
        description="How the chain is brought to the target",
        items=METHODS,
        override=OVERRIDE,
        translation_context=CONTEXT,
    )
    soft: FloatProperty(
        name="Softness",
        description="Part of the chain's length over which it eases into straight, so that an elbow or a "
        "knee does not snap at the end of its reach: the bone stays a little behind its target there",
        default=TwoBoneOptions.soft,
        min=0.0,
        max=1.0,
        soft_max=0.2,
        subtype="FACTOR",
        override=OVERRIDE,
    )
    plant_ground: BoolProperty(
        name="Hold Place",
        description="The planted bone keeps its place along the ground",
        default=True,
        override=OVERRIDE,
    )
    plant_height: BoolProperty(
        name="Hold Height",
        description="The planted bone keeps its height; when off, it rises and sinks as it is animated",
        default=True,
        override=OVERRIDE,
    )
    plant_rotation: BoolProperty(
        name="Hold Rotation",
        description="The planted bone keeps its rotation; when off, it turns as it is animated, so that a "
        "foot rolls",
        default=True,
        override=OVERRIDE,
    )
    plant_on_ground: BoolProperty(
        name="On Ground",
        description="The planted bone lies on the armature's Ground: its sole on the surface, turned to the "
        "slope up to Steepest of Walk Along. On ground that moves it goes along",
        default=False,
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


def register_calls() -> None:
    """Add `name`, and the callbacks of properties that name bones."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    CCD_RIG_PG_constraint.__annotations__["name"] = StringProperty(
        name="Name", description="Name of the constraint", update=_keep_name_unique, override=OVERRIDE
    )
    renamed_bones.register_on(CCD_RIG_PG_constraint)


def unregister_calls() -> None:
    """Remove `name` and the callbacks."""
    renamed_bones.unregister_from(CCD_RIG_PG_constraint)
    del CCD_RIG_PG_constraint.__annotations__["name"]
