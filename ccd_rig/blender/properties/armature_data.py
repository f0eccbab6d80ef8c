# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of armature objects, and the switch of the live preview.

`Object.ccd_rig` on an armature object holds the constraints, the solver's settings and the last report.
`PoseBone.ccd_rig` holds the limits and settings of a joint. Defaults that the core has are read from its
dataclasses.

Undo and redo carry the switch of the preview, files do not. Copying an object copies its switch too: an
object is live only if it was switched on itself, see `switched_on`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...motion.walking.settings import WalkSettings
from ..languages.translation import CONTEXT
from . import body, constraint_group, pose_library, retarget_group
from .coupled_offsets import CCD_RIG_PG_coupled_offset, CCD_RIG_PG_offset_point
from .joints import CCD_RIG_PG_comfort, CCD_RIG_PG_joint
from .limits import CCD_RIG_PG_limit
from .retarget_group import CCD_RIG_PG_bone_pair, CCD_RIG_PG_retarget
from .solver_settings import OVERRIDE, CCD_RIG_PG_solver

WALK = WalkSettings()
# Files store the numbers: an item keeps its number for good.
GROUNDS = (
    ("REST", "At Rest", "Level, at the height on which this armature stands at rest", 0),
    ("HEIGHT", "Height", "Level, at a height of the world", 1),
    ("OBJECT", "Object", "The faces of an object, with its modifiers; it may move", 2),
    ("COLLECTION", "Collection", "The faces of all objects of a collection; they may move", 3),
)
SURFACES = ("MESH", "CURVE", "SURFACE", "META", "FONT")
"""Types of objects whose evaluation has faces."""
STANDS = (
    ("CYCLE", "Cycle", "As it is in the cycle on average, upright", 0),
    ("REST", "Rest Pose", "As at rest", 1),
    ("ACTION", "Action", "As in the first frame of an action, such as a pose of the library", 2),
)
SPEEDS = (
    ("CYCLE", "Cycle", "As fast as the cycle goes over its ground", 0),
    ("CURVE", "Evaluation Time", "As the curve's Evaluation Time is keyed: the cycle goes as fast", 1),
)

switched_on: set[int] = set()
"""`session_uid` of the armature objects that were switched on since the file was opened."""

begin: list[Callable[[], None]] = []
"""Callbacks for an armature object that is switched on."""


def on_switch(group: Any, _context: bpy.types.Context | None = None) -> None:
    """Tag the object for evaluation after its switch was set, so that the preview begins or ends."""
    armature_object = group.id_data
    if group.live:
        switched_on.add(armature_object.session_uid)
        for callback in begin:
            callback()
    armature_object.update_tag()


def is_live(armature_object: Any) -> bool:
    """Whether an armature object is live: switched on itself, not copied from a live one."""
    return armature_object.session_uid in switched_on and armature_object.ccd_rig.live


def register_on(group: type[Any]) -> None:
    """Add the switch to a property group that is not registered yet."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    group.__annotations__["live"] = BoolProperty(
        name="Live",
        description="The rig follows its targets while they move; keys and channels stay as they are. Files "
        "keep nothing of it",
        update=on_switch,
        options={"SKIP_SAVE"},
        override=OVERRIDE,
    )


def unregister_from(group: type[Any]) -> None:
    """Remove the switch from a property group that is not registered any more."""
    del group.__annotations__["live"]


class CCD_RIG_PG_report(bpy.types.PropertyGroup):
    """Report of the last bake."""

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
    findings: StringProperty(
        name="Findings", description="What an animator would see in the last bake, as JSON", override=OVERRIDE
    )
    state: StringProperty(
        name="State",
        description="What the last bake was made from: where it differs now, the report is out of date",
        override=OVERRIDE,
    )
    check: StringProperty(
        name="Check", description="What plays after the last bake, evaluated by Blender", override=OVERRIDE
    )
    show_all: BoolProperty(
        name="More", description="Show the whole report, or only its first lines", override=OVERRIDE
    )
    mismatches: IntProperty(
        name="Constraints That Do Not Play as Baked",
        description="How many constraints do not play as the last bake has keyed them",
        min=0,
        override=OVERRIDE,
    )


class CCD_RIG_PG_ground(bpy.types.PropertyGroup):
    """Ground on which an armature stands."""

    kind: EnumProperty(
        name="Ground",
        description="What this armature stands on, in Walk Along, Retarget, Find Contacts and the report of "
        "bakes",
        items=GROUNDS,
        override=OVERRIDE,
    )
    height: FloatProperty(
        name="Height",
        description="World height of the ground",
        default=0.0,
        subtype="DISTANCE",
        translation_context=CONTEXT,
        override=OVERRIDE,
    )
    object: PointerProperty(
        name="Object",
        description="The object whose faces are the ground",
        type=bpy.types.Object,
        override=OVERRIDE,
    )
    collection: PointerProperty(
        name="Collection",
        description="The collection whose objects are the ground",
        type=bpy.types.Collection,
        override=OVERRIDE,
    )


class CCD_RIG_PG_walk(bpy.types.PropertyGroup):
    """Settings of Walk Along, and the report of the last walk."""

    cycle: PointerProperty(
        name="Cycle",
        description="The action with the cycle, in place or moving; empty for the one that plays",
        type=bpy.types.Action,
        override=OVERRIDE,
    )
    curve: PointerProperty(
        name="Curve",
        description="The curve to walk along, from its start on",
        type=bpy.types.Object,
        override=OVERRIDE,
    )
    use_range: BoolProperty(
        name="Frame Range",
        description="Take these frames of the action alone; without, its most even period is looked for",
        override=OVERRIDE,
    )
    cycle_start: IntProperty(
        name="Start", description="First frame of the cycle", default=1, override=OVERRIDE
    )
    cycle_end: IntProperty(name="End", description="Last frame of the cycle", default=25, override=OVERRIDE)
    frame_start: IntProperty(
        name="First Key",
        description="The scene's frame at which the walk begins",
        default=1,
        override=OVERRIDE,
    )
    use_end: BoolProperty(
        name="Last Key",
        description="End at this frame at the latest; without, where the curve ends",
        override=OVERRIDE,
    )
    frame_end: IntProperty(
        name="Last Key",
        description="The scene's frame at which the walk ends",
        default=250,
        override=OVERRIDE,
    )
    speed: EnumProperty(
        name="Speed", description="How fast the figure walks", items=SPEEDS, override=OVERRIDE
    )
    cycles: FloatProperty(
        name="Cycles",
        description="How many periods it walks; 0 for as many as the curve has room for",
        default=WALK.cycles,
        min=0.0,
        soft_max=100.0,
        override=OVERRIDE,
    )
    stride: FloatProperty(
        name="Stride",
        description="Length of steps, in those of the cycle",
        default=WALK.stride,
        min=0.1,
        max=3.0,
        override=OVERRIDE,
    )
    fit_steps: BoolProperty(
        name="Fit Steps",
        description="Steps on stairs are as long as treads, or as several that are low; in bends the outer "
        "feet step no farther than in the cycle, and the body goes slower",
        default=WALK.fit_steps,
        override=OVERRIDE,
    )
    stands: EnumProperty(
        name="Stand",
        description="How the figure stands before and after the walk",
        items=STANDS,
        override=OVERRIDE,
    )
    stand_action: PointerProperty(
        name="Standing Pose",
        description="The action whose first frame is how the figure stands",
        type=bpy.types.Action,
        override=OVERRIDE,
    )
    offset: FloatProperty(
        name="Begin At",
        description="How far along the curve the walk begins",
        default=WALK.offset,
        min=0.0,
        subtype="DISTANCE",
        override=OVERRIDE,
    )
    start: BoolProperty(
        name="From Standing",
        description="Begin at rest, with all feet on the ground",
        default=WALK.start,
        override=OVERRIDE,
    )
    stop: BoolProperty(
        name="To Standing",
        description="End at rest, with all feet on the ground",
        default=WALK.stop,
        override=OVERRIDE,
    )
    ease: FloatProperty(
        name="Ease",
        description="Time in which it comes to its speed, and to rest",
        default=WALK.ease,
        min=0.0,
        soft_max=3.0,
        subtype="TIME_ABSOLUTE",
        override=OVERRIDE,
    )
    steepest: FloatProperty(
        name="Steepest",
        description="Slope up to which feet are turned to the ground",
        default=WALK.steepest,
        min=0.0,
        max=math.radians(80.0),
        subtype="ANGLE",
        override=OVERRIDE,
    )
    clearance: FloatProperty(
        name="Clearance",
        description="How far a foot in the air stays above what lies between two steps, in lengths of a leg",
        default=WALK.clearance,
        min=0.0,
        max=1.0,
        override=OVERRIDE,
    )
    extension: FloatProperty(
        name="Extension",
        description="Part of a leg's length up to which it is stretched before the hips sink",
        default=WALK.extension,
        min=0.5,
        max=1.0,
        subtype="FACTOR",
        override=OVERRIDE,
    )
    report: StringProperty(
        name="Report", description="What the last walk came to, in words", override=OVERRIDE
    )


class CCD_RIG_PG_armature(bpy.types.PropertyGroup):
    """Properties of an armature object. `register_on` adds `live`."""

    constraints: CollectionProperty(
        name="CCD Constraints",
        description="The bones that should reach a target",
        type=constraint_group.CCD_RIG_PG_constraint,
        override=OVERRIDE | {"USE_INSERTION"},
    )
    active_index: IntProperty(
        name="Active Constraint", description="The constraint that is shown below the list", override=OVERRIDE
    )
    body: EnumProperty(
        name="Body",
        description="What becomes of the bone that carries the figure while bones are planted",
        items=body.BODIES,
        default=body.AUTO,
        override=OVERRIDE,
    )
    body_helps: BoolProperty(
        name="Body Helps",
        description="Where a chain alone misses its target, spine, clavicles and hips go along; other "
        "targets are held",
        override=OVERRIDE,
    )
    pin_feet: BoolProperty(
        name="Pin Standing Feet",
        description="While other bones are dragged, feet on the ground stay where they are",
        override=OVERRIDE,
    )
    keep_balance: BoolProperty(
        name="Keep Balance",
        description="While bones are dragged with pins, the centre of mass stays above the pinned bones. "
        "Bones count by their Mass; where none has one, those that deform count by their length",
        override=OVERRIDE,
    )
    solver: PointerProperty(
        name="Solver", description="How the armature is solved", type=CCD_RIG_PG_solver, override=OVERRIDE
    )
    poses: CollectionProperty(
        name="Pose Library",
        description="Poses to start again from where the targets are not reached",
        type=pose_library.CCD_RIG_PG_pose,
        override=OVERRIDE | {"USE_INSERTION"},
    )
    active_pose: IntProperty(
        name="Active Pose", description="The pose that is chosen in the pose library", override=OVERRIDE
    )
    kept_setup: StringProperty(
        name="Kept Set-Up",
        description="On a metarig: constraints and limits of the rig generated from it, as JSON",
        override=OVERRIDE,
        options={"HIDDEN"},
    )
    solved_pose: StringProperty(
        name="Pose Before Solve",
        description="Of channels as Solve has left them: what they held before, as JSON",
        override=OVERRIDE,
        options={"HIDDEN"},
    )
    report: PointerProperty(
        name="Report", description="What the last bake came to", type=CCD_RIG_PG_report, override=OVERRIDE
    )
    retarget: PointerProperty(
        name="Retarget",
        description="Motion of another armature on this one",
        type=CCD_RIG_PG_retarget,
        override=OVERRIDE,
    )
    ground: PointerProperty(
        name="Ground",
        description="What this armature stands on",
        type=CCD_RIG_PG_ground,
        override=OVERRIDE,
    )
    walk: PointerProperty(
        name="Walk Along", description="A cycle along a curve", type=CCD_RIG_PG_walk, override=OVERRIDE
    )


CLASSES = (
    constraint_group.CCD_RIG_PG_constraint,
    CCD_RIG_PG_limit,
    CCD_RIG_PG_comfort,
    CCD_RIG_PG_offset_point,
    CCD_RIG_PG_coupled_offset,
    CCD_RIG_PG_joint,
    CCD_RIG_PG_solver,
    CCD_RIG_PG_report,
    pose_library.CCD_RIG_PG_pose_bone,
    pose_library.CCD_RIG_PG_pose,
    CCD_RIG_PG_bone_pair,
    CCD_RIG_PG_retarget,
    CCD_RIG_PG_ground,
    CCD_RIG_PG_walk,
    CCD_RIG_PG_armature,
)


def register() -> None:
    """Register the property groups and attach them to objects and pose bones."""
    constraint_group.register_calls()
    pose_library.register_names()
    retarget_group.register_calls()
    register_on(CCD_RIG_PG_armature)
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
    """Unregister the property groups. Values that a file has stored stay in it."""
    del bpy.types.PoseBone.ccd_rig
    del bpy.types.Object.ccd_rig
    for group in reversed(CLASSES):
        bpy.utils.unregister_class(group)
    unregister_from(CCD_RIG_PG_armature)
    retarget_group.unregister_calls()
    pose_library.unregister_names()
    constraint_group.unregister_calls()
