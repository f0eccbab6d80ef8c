# SPDX-License-Identifier: GPL-3.0-or-later
"""The property group of one constraint, and the items of its menus."""

from math import pi

import bpy

from ...goals import BalanceGoal, PoleGoal, PositionGoal
from ...solvers.closed_forms import TwoBoneOptions
from ..languages.translation import CONTEXT
from ..registration import STORED
from .constraint_kinds import KINDS, METHODS
from .names import unique_name

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


def keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    """Number a name that another constraint has, after it was set."""
    names = self.id_data.ccd_rig.constraints.keys()
    if not self.name or names.count(self.name) > 1:
        # Setting the name calls this function once more, which then changes nothing.
        self.name = unique_name(self.name or DEFAULT_NAME, names)


class CCD_RIG_PG_constraint(bpy.types.PropertyGroup):
    """A stored constraint, perhaps converted from a constraint of Blender (`original_bone`)."""

    pole_target: STORED.pointer(
        "Pole Target",
        "The object that the chain bends towards. It comes after the position: the target is "
        "reached first, and limits hold",
        type=bpy.types.Object,
    )
    pole_bone: STORED.text(
        "Pole Bone", "The bone of the pole armature whose head is the pole; empty: the object's origin"
    )
    pole_angle: STORED.number(
        "Pole Angle",
        "By how much the bend is turned from the pole, about the line from the chain's root to its end",
        default=PoleGoal.angle,
        soft_min=-pi,
        soft_max=pi,
        subtype="ANGLE",
    )
    original_bone: STORED.text(
        "Original Bone", "The bone of Blender's constraint that this one was converted from"
    )
    original_constraint: STORED.text(
        "Original Constraint",
        "Name of Blender's constraint that this one was converted from, and that is muted for it",
    )
    tip: STORED.text("Bone", "The bone to move: the last one of the chain")
    chain_length: STORED.integer(
        "Chain Length",
        "How many bones may turn, counted from this one, locked ones too; 0 goes up to the "
        "root. A planted bone's chain ends at the bone that carries the figure",
        default=PositionGoal.chain_length,
        min=0,
        soft_max=255,
    )
    target: STORED.pointer("Target", "The object that the bone should reach", type=bpy.types.Object)
    target_bone: STORED.text(
        "Target Bone", "The bone of the target armature whose head is the target; empty: the object's origin"
    )
    offset: STORED.vector(
        "Target Offset",
        "Shift of the point to reach, along the axes that Offset Space says. Keyed, it is a "
        "layer over the motion of the target",
        size=3,
        subtype="XYZ_LENGTH",
    )
    offset_space: STORED.enum(
        "Offset Space", "Along whose axes Target Offset shifts the point", items=OFFSET_SPACES
    )
    influence: STORED.number(
        "Influence",
        "How much of the solved rotations is used: 0 keeps the pose, 1 reaches for the target",
        default=1.0,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
    )
    weight: STORED.number(
        "Weight",
        "How much this constraint counts where several pull at the same bones",
        default=PositionGoal.weight,
        translation_context=CONTEXT,
        min=0.001,
        max=10_000.0,
        soft_max=10.0,
    )
    enabled: STORED.boolean("Enabled", "Solve and bake this constraint", default=True)
    use_tail: STORED.boolean(
        "Use Tail", "Bring the bone's tail to the target; when off, its head", default=True
    )
    effector_offset: STORED.vector(
        "Bone Offset",
        "Shift of the point that is brought to the target, from the bone's tail or head, along "
        "the bone's own axes, in the armature's unit: the sole of a foot, the grip of a hand",
        size=3,
        subtype="XYZ_LENGTH",
    )
    kind: STORED.enum("Kind", "What the constraint is about", items=KIND_ITEMS)
    use_position: STORED.boolean("Position", "Bring the bone's end to the target", default=True)
    rotation: STORED.enum(
        "Rotation",
        "How the bone follows the target's rotation. Under mirroring or shear the bone's Y axis points "
        "exactly as the target's, and Z as near as it can",
        items=ROTATIONS,
    )
    rotation_bone: STORED.text(
        "Rotation Bone", "The bone of the chain that is turned as the target is; empty: the last one"
    )
    rotation_weight: STORED.number(
        "Rotation Weight",
        "How much the rotation counts beside the position where the bone cannot have both",
        default=1.0,
        min=0.001,
        max=10_000.0,
        soft_max=10.0,
    )
    bone_axis: STORED.enum(
        "Bone Axis",
        "The axis of the bone that points along the target's; Y is its length",
        items=AXES,
        default="POS_Y",
    )
    target_axis: STORED.enum(
        "Target Axis", "The axis of the target that the bone's axis points along", items=AXES, default="POS_Y"
    )
    priority: STORED.integer(
        "Priority",
        "Constraints with priority 0 are served first; those with larger numbers never worsen them",
        default=PositionGoal.priority,
        min=0,
        soft_max=9,
    )
    max_extension: STORED.number(
        "Max Extension",
        "Part of its length past which the chain is never stretched; 1 is off",
        default=PositionGoal.max_extension,
        min=0.01,
        max=1.0,
        subtype="FACTOR",
    )
    extension_joints: STORED.integer(
        "Extension Bones",
        "How many bones, counted from this one, Max Extension applies to; 0 is the whole chain. Bones "
        "further up do the rest",
        default=PositionGoal.extension_joints,
        min=0,
        soft_max=255,
    )
    method: STORED.enum(
        "Method", "How the chain is brought to the target", items=METHODS, translation_context=CONTEXT
    )
    soft: STORED.number(
        "Softness",
        "Part of the chain's length over which it eases into straight, so that an elbow or a "
        "knee does not snap at the end of its reach: the bone stays a little behind its target there",
        default=TwoBoneOptions.soft,
        min=0.0,
        max=1.0,
        soft_max=0.2,
        subtype="FACTOR",
    )
    plant_ground: STORED.boolean(
        "Hold Place", "The planted bone keeps its place along the ground", default=True
    )
    plant_height: STORED.boolean(
        "Hold Height",
        "The planted bone keeps its height; when off, it rises and sinks as it is animated",
        default=True,
    )
    plant_rotation: STORED.boolean(
        "Hold Rotation",
        "The planted bone keeps its rotation; when off, it turns as it is animated, so that a foot rolls",
        default=True,
    )
    plant_on_ground: STORED.boolean(
        "On Ground",
        "The planted bone lies on the armature's Ground: its sole on the surface, turned to the "
        "slope up to Steepest of Walk Along. On ground that moves it goes along",
        default=False,
    )
    balance_axes: STORED.booleans(
        "Balance Axes",
        "Which of the world's axes count: X and Y keep the centre of mass over a point of "
        "the ground, one axis alone over a line",
        default=BalanceGoal.axes,
        size=3,
        subtype="XYZ",
    )
    name: STORED.text("Name", "Name of the constraint")
