# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of armature objects, and the switch of the live preview.

`Object.ccd_rig` on an armature object holds the constraints, the solver's settings and the last report.
`PoseBone.ccd_rig` holds the limits and settings of a joint. Defaults that the core has are read from its
dataclasses.

Undo and redo carry the switch of the preview, files do not. Copying an object copies its switch too: an
object is live only if it was switched on itself, see `switched_on`.
"""

from collections.abc import Callable
from typing import Any

import bpy

from ...motion.settings import WalkSettings
from ..languages.translation import CONTEXT
from ..registration import STORED, Calls, use
from . import body, constraint_kinds, pose_library, renamed_bones, retarget_group
from .constraint_kinds import CCD_RIG_PG_constraint
from .joints import CCD_RIG_PG_comfort, CCD_RIG_PG_coupled_offset, CCD_RIG_PG_joint, CCD_RIG_PG_offset_point
from .limits import CCD_RIG_PG_limit
from .pose_library import CCD_RIG_PG_pose, CCD_RIG_PG_pose_bone
from .retarget_group import CCD_RIG_PG_bone_pair, CCD_RIG_PG_retarget
from .solver_settings import CCD_RIG_PG_solver

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
        use()
        switched_on.add(armature_object.session_uid)
        for callback in begin:
            callback()
    armature_object.update_tag()


def is_live(armature_object: Any) -> bool:
    """Whether an armature object is live: switched on itself, not copied from a live one."""
    return armature_object.session_uid in switched_on and armature_object.ccd_rig.live


class CCD_RIG_PG_report(bpy.types.PropertyGroup):
    """Report of the last bake."""

    words: STORED.text("Report", "What the last bake came to")
    worst_frame: STORED.number("Worst Frame", "The frame that is farthest off")
    worst_constraint: STORED.text("Worst Constraint", "The constraint that is farthest off")
    unsolved: STORED.integer("Frames Not Reached", "How many frames the last bake left off the target", min=0)
    findings: STORED.text("Findings", "What an animator would see in the last bake, as JSON")
    state: STORED.text(
        "State", "What the last bake was made from: where it differs now, the report is out of date"
    )
    check: STORED.text("Check", "What plays after the last bake, evaluated by Blender")
    show_all: STORED.boolean("More", "Show the whole report, or only its first lines")
    mismatches: STORED.integer(
        "Constraints That Do Not Play as Baked",
        "How many constraints do not play as the last bake has keyed them",
        min=0,
    )


class CCD_RIG_PG_ground(bpy.types.PropertyGroup):
    """Ground on which an armature stands."""

    kind: STORED.enum(
        "Ground",
        "What this armature stands on, in Walk Along, Retarget, Find Contacts and the report of bakes",
        items=GROUNDS,
    )
    height: STORED.number(
        "Height", "World height of the ground", default=0.0, subtype="DISTANCE", translation_context=CONTEXT
    )
    object: STORED.pointer("Object", "The object whose faces are the ground", type=bpy.types.Object)
    collection: STORED.pointer(
        "Collection", "The collection whose objects are the ground", type=bpy.types.Collection
    )


class CCD_RIG_PG_walk(bpy.types.PropertyGroup):
    """Settings of Walk Along, and the report of the last walk."""

    cycle: STORED.pointer(
        "Cycle",
        "The action with the cycle, in place or moving; empty for the one that plays",
        type=bpy.types.Action,
        translation_context=CONTEXT,
    )
    curve: STORED.pointer("Curve", "The curve to walk along, from its start on", type=bpy.types.Object)
    use_range: STORED.boolean(
        "Frame Range", "Take only these frames of the action; otherwise its most even period is looked for"
    )
    cycle_start: STORED.integer("Start", "First frame of the cycle", default=1)
    cycle_end: STORED.integer("End", "Last frame of the cycle", default=25)
    frame_start: STORED.integer("First Key", "The scene's frame at which the walk begins", default=1)
    use_end: STORED.boolean("Last Key", "End at this frame at the latest; otherwise where the curve ends")
    frame_end: STORED.integer("Last Key", "The scene's frame at which the walk ends", default=250)
    speed: STORED.enum("Speed", "How fast the figure walks", items=SPEEDS, translation_context=CONTEXT)
    cycles: STORED.of(WalkSettings, "cycles", soft_max=100.0)
    stride: STORED.of(WalkSettings, "stride")
    fit_steps: STORED.of(WalkSettings, "fit_steps")
    stands: STORED.enum(
        "Stand",
        "How the figure stands before and after the walk",
        items=STANDS,
        translation_context=CONTEXT,
    )
    stand_action: STORED.pointer(
        "Standing Pose", "The action whose first frame is how the figure stands", type=bpy.types.Action
    )
    offset: STORED.of(WalkSettings, "offset", name="Begin At", subtype="DISTANCE")
    start: STORED.of(WalkSettings, "start", name="From Standing")
    stop: STORED.of(WalkSettings, "stop", name="To Standing")
    ease: STORED.of(WalkSettings, "ease", soft_max=3.0, subtype="TIME_ABSOLUTE")
    steepest: STORED.of(WalkSettings, "steepest", subtype="ANGLE")
    clearance: STORED.of(WalkSettings, "clearance")
    extension: STORED.of(WalkSettings, "extension", subtype="FACTOR", translation_context=CONTEXT)
    report: STORED.text("Report", "What the last walk came to, in words")


class CCD_RIG_PG_armature(bpy.types.PropertyGroup):
    """Properties of an armature object. `bake.settings` adds `bake`."""

    constraints: STORED.rows(
        "CCD Constraints", "The bones that should reach a target", type=CCD_RIG_PG_constraint
    )
    active_index: STORED.integer("Active Constraint", "The constraint that is shown below the list")
    body: STORED.enum(
        "Body",
        "What becomes of the bone that carries the figure while bones are planted",
        items=body.BODIES,
        default=body.AUTO,
    )
    body_helps: STORED.boolean(
        "Body Helps",
        "Where a chain alone misses its target, spine, clavicles and hips go along; other targets are held",
    )
    pin_feet: STORED.boolean(
        "Pin Standing Feet", "While other bones are dragged, feet on the ground stay where they are"
    )
    keep_balance: STORED.boolean(
        "Keep Balance",
        "While bones are dragged with pins, the centre of mass stays above the pinned bones. "
        "Bones count by their Mass; where none has one, those that deform count by their length",
    )
    solver: STORED.pointer("Solver", "How the armature is solved", type=CCD_RIG_PG_solver)
    poses: STORED.rows(
        "Pose Library",
        "Poses to start again from where the targets are not reached",
        type=CCD_RIG_PG_pose,
    )
    active_pose: STORED.integer("Active Pose", "The pose that is chosen in the pose library")
    kept_setup: STORED.text(
        "Kept Set-Up",
        "On a metarig: constraints and limits of the rig generated from it, as JSON",
        options={"HIDDEN"},
    )
    solved_pose: STORED.text(
        "Pose Before Solve",
        "Of channels as Solve has left them: what they held before, as JSON",
        options={"HIDDEN"},
    )
    saved_order: STORED.text(
        "Saved Order",
        "Names of an override's constraints in the order to which its keys refer, as JSON",
        options={"HIDDEN"},
    )
    report: STORED.pointer("Report", "What the last bake came to", type=CCD_RIG_PG_report)
    retarget: STORED.pointer("Retarget", "Motion of another armature on this one", type=CCD_RIG_PG_retarget)
    ground: STORED.pointer("Ground", "What this armature stands on", type=CCD_RIG_PG_ground)
    walk: STORED.pointer("Walk Along", "A cycle along a curve", type=CCD_RIG_PG_walk)
    live: STORED.boolean(
        "Live",
        "The rig follows its targets while they move; keys and channels stay as they are. Files keep nothing "
        "of it",
        options={"SKIP_SAVE"},
    )


CALLS = Calls()
CLASSES = (
    CCD_RIG_PG_constraint,
    CCD_RIG_PG_limit,
    CCD_RIG_PG_comfort,
    CCD_RIG_PG_offset_point,
    CCD_RIG_PG_coupled_offset,
    CCD_RIG_PG_joint,
    CCD_RIG_PG_solver,
    CCD_RIG_PG_report,
    CCD_RIG_PG_pose_bone,
    CCD_RIG_PG_pose,
    CCD_RIG_PG_bone_pair,
    CCD_RIG_PG_retarget,
    CCD_RIG_PG_ground,
    CCD_RIG_PG_walk,
    CCD_RIG_PG_armature,
)


def register() -> None:
    """Register the property groups and attach them to objects and pose bones."""
    CALLS.attach(CCD_RIG_PG_constraint, ("name",), update=constraint_kinds.keep_name_unique)
    CALLS.attach(CCD_RIG_PG_constraint, renamed_bones.CALLERS, update=renamed_bones.on_named)
    CALLS.attach(CCD_RIG_PG_pose, ("name",), update=pose_library.keep_name_unique)
    CALLS.attach(CCD_RIG_PG_retarget, retarget_group.SETTINGS, update=retarget_group.update_preview)
    source = {"update": retarget_group.update_source, "poll": retarget_group.is_armature}
    CALLS.attach(CCD_RIG_PG_retarget, ("source",), **source)
    CALLS.attach(CCD_RIG_PG_bone_pair, ("source",), update=renamed_bones.on_paired)
    CALLS.attach(CCD_RIG_PG_armature, ("live",), update=on_switch)
    for group in CLASSES:
        bpy.utils.register_class(group)
    bpy.types.Object.ccd_rig = STORED.pointer(
        "CCD Rig", "Constraints and settings of CCD Rig", type=CCD_RIG_PG_armature
    )
    bpy.types.PoseBone.ccd_rig = STORED.pointer(
        "CCD Rig", "What CCD Rig may do with this bone", type=CCD_RIG_PG_joint
    )


def unregister() -> None:
    """Unregister the property groups. Values that a file has stored stay in it."""
    del bpy.types.PoseBone.ccd_rig
    del bpy.types.Object.ccd_rig
    for group in reversed(CLASSES):
        bpy.utils.unregister_class(group)
    CALLS.detach()
