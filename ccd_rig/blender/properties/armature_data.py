# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature object stores in the .blend file, and the switch of the live preview.

Undo and redo carry it, files do not. A copy of an object has its switch too: only objects that were switched
on by themselves are live.

`Object.ccd_rig` on an armature object holds the constraints, the solver's settings and the last report;
`PoseBone.ccd_rig` holds what each joint may do. Defaults that the core has are read from its dataclasses.
"""

from __future__ import annotations

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

from . import body, constraint_group, pose_library, retarget_group
from .coupled_offsets import CCD_RIG_PG_coupled_offset, CCD_RIG_PG_offset_point
from .joints import CCD_RIG_PG_comfort, CCD_RIG_PG_joint, CCD_RIG_PG_limit
from .retarget_group import CCD_RIG_PG_bone_pair, CCD_RIG_PG_retarget
from .solver_settings import OVERRIDE, CCD_RIG_PG_solver
from .walk_group import CCD_RIG_PG_ground, CCD_RIG_PG_walk

switched_on: set[int] = set()
"""`session_uid` of the armature objects that were switched on since the file was opened."""

begin: list[Callable[[], None]] = []
"""What is called when an armature object is switched on."""


def on_switch(group: Any, _context: bpy.types.Context | None = None) -> None:
    """The switch was set: let Blender evaluate the object, so that the preview begins or ends."""
    armature_object = group.id_data
    if group.live:
        switched_on.add(armature_object.session_uid)
        for listen in begin:
            listen()
    armature_object.update_tag()


def is_live(armature_object: Any) -> bool:
    """Whether an armature object was switched on itself."""
    return armature_object.session_uid in switched_on and armature_object.ccd_rig.live


def register_on(group: type[Any]) -> None:
    """Give a group of properties that is not registered yet the switch."""
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
    """Take the switch away again."""
    del group.__annotations__["live"]


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


class CCD_RIG_PG_armature(bpy.types.PropertyGroup):
    """All that an armature object stores. Its property `live` is added by `live_switch`."""

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
    """Register the groups and put them on objects and pose bones."""
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
    """Take the properties away again; what a file has stored stays in it."""
    del bpy.types.PoseBone.ccd_rig
    del bpy.types.Object.ccd_rig
    for group in reversed(CLASSES):
        bpy.utils.unregister_class(group)
    unregister_from(CCD_RIG_PG_armature)
    retarget_group.unregister_calls()
    pose_library.unregister_names()
    constraint_group.unregister_calls()
