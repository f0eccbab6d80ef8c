# SPDX-License-Identifier: GPL-3.0-or-later
"""The ground of an armature and what is chosen for Walk Along, stored on it. Defaults are the core's."""

import math

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...motion.walking.settings import WalkSettings
from ..languages.translation import CONTEXT
from .solver_settings import OVERRIDE

DEFAULTS = WalkSettings()
SURFACES = ("MESH", "CURVE", "SURFACE", "META", "FONT")
"""Types of objects whose evaluation has faces."""
# Files store the number: it stays with its item for good.
GROUNDS = (
    ("REST", "At Rest", "Level, at the height on which this armature stands at rest", 0),
    ("HEIGHT", "Height", "Level, at a height of the world", 1),
    ("OBJECT", "Object", "The faces of an object, with its modifiers; it may move", 2),
    ("COLLECTION", "Collection", "The faces of all objects of a collection; they may move", 3),
)
STANDS = (
    ("CYCLE", "Cycle", "As it is in the cycle on average, upright", 0),
    ("REST", "Rest Pose", "As at rest", 1),
    ("ACTION", "Action", "As in the first frame of an action, such as a pose of the library", 2),
)
SPEEDS = (
    ("CYCLE", "Cycle", "As fast as the cycle goes over its ground", 0),
    ("CURVE", "Evaluation Time", "As the curve's Evaluation Time is keyed: the cycle goes as fast", 1),
)


def _is_curve(_group: object, thing: bpy.types.Object) -> bool:
    return bool(thing.type == "CURVE")


def _has_faces(_group: object, thing: bpy.types.Object) -> bool:
    return thing.type in SURFACES


class CCD_RIG_PG_ground(bpy.types.PropertyGroup):
    """What an armature stands on."""

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
        poll=_has_faces,
        override=OVERRIDE,
    )
    collection: PointerProperty(
        name="Collection",
        description="The collection whose objects are the ground",
        type=bpy.types.Collection,
        override=OVERRIDE,
    )


class CCD_RIG_PG_walk(bpy.types.PropertyGroup):
    """What is chosen for Walk Along, and what the last walk came to."""

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
        poll=_is_curve,
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
        default=DEFAULTS.cycles,
        min=0.0,
        soft_max=100.0,
        override=OVERRIDE,
    )
    stride: FloatProperty(
        name="Stride",
        description="Length of steps, in those of the cycle",
        default=DEFAULTS.stride,
        min=0.1,
        max=3.0,
        override=OVERRIDE,
    )
    fit_steps: BoolProperty(
        name="Fit Steps",
        description="Steps on stairs are as long as treads, or as several that are low; in bends the outer "
        "feet step no farther than in the cycle, and the body goes slower",
        default=DEFAULTS.fit_steps,
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
        default=DEFAULTS.offset,
        min=0.0,
        subtype="DISTANCE",
        override=OVERRIDE,
    )
    start: BoolProperty(
        name="From Standing",
        description="Begin at rest, with all feet on the ground",
        default=DEFAULTS.start,
        override=OVERRIDE,
    )
    stop: BoolProperty(
        name="To Standing",
        description="End at rest, with all feet on the ground",
        default=DEFAULTS.stop,
        override=OVERRIDE,
    )
    ease: FloatProperty(
        name="Ease",
        description="Time in which it comes to its speed, and to rest",
        default=DEFAULTS.ease,
        min=0.0,
        soft_max=3.0,
        subtype="TIME_ABSOLUTE",
        override=OVERRIDE,
    )
    steepest: FloatProperty(
        name="Steepest",
        description="Slope up to which feet are turned to the ground",
        default=DEFAULTS.steepest,
        min=0.0,
        max=math.radians(80.0),
        subtype="ANGLE",
        override=OVERRIDE,
    )
    clearance: FloatProperty(
        name="Clearance",
        description="How far a foot in the air stays above what lies between two steps, in lengths of a leg",
        default=DEFAULTS.clearance,
        min=0.0,
        max=1.0,
        override=OVERRIDE,
    )
    extension: FloatProperty(
        name="Extension",
        description="Part of a leg's length up to which it is stretched before the hips sink",
        default=DEFAULTS.extension,
        min=0.5,
        max=1.0,
        subtype="FACTOR",
        override=OVERRIDE,
    )
    report: StringProperty(
        name="Report", description="What the last walk came to, in words", override=OVERRIDE
    )
