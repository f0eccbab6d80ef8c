# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a retargeting, stored on the armature that gets the motion. Defaults are the core's."""

from collections.abc import Callable
from typing import Any

import bpy

from ...motion.settings import PAIRED, SPACES, WEIGHTS, ContactThresholds, EffectorSpace, RetargetSettings
from ..languages.translation import CONTEXT
from ..registration import STORED, UNANIMATED

MOST_FPS: float = bpy.types.RenderSettings.bl_rna.properties["fps"].hard_max
LAST_FRAME: int = bpy.types.Scene.bl_rna.properties["frame_current"].hard_max
"""Last frame in Blender; the first has the opposite sign."""

# Files store the numbers: an item keeps its number for good.
REFERENCES = (
    ("REST", "Rest Pose", "The source's rest pose is a pose of its body that stands, such as a T pose", 0),
    ("FRAME", "Frame", "The rest pose is no pose: take a frame of the motion, in which limbs can be seen", 1),
)
_SPACES = (
    (
        EffectorSpace.LIMB.value,
        "Limb",
        "As far from where the limb starts, in its lengths, as the source's",
        0,
    ),
    (EffectorSpace.WORLD.value, "World", "Where the source has them, scaled as its way is", 1),
)


def _weight(name: str, /, **shown: Any) -> Any:
    return UNANIMATED.of(RetargetSettings, name, subtype="FACTOR", translation_context=CONTEXT, **shown)


def _space(name: str) -> Any:
    return UNANIMATED.of(RetargetSettings, name, items=_SPACES, translation_context=CONTEXT)


class CCD_RIG_PG_bone_pair(bpy.types.PropertyGroup):
    """Pair of bones: the target's, which is the name of the row, and the source's that it follows."""

    source: UNANIMATED.text("Source Bone", "The bone of the source that this bone follows; empty for none")


class CCD_RIG_PG_retarget(bpy.types.PropertyGroup):
    """Settings of a retargeting, and the report of the last one."""

    source: UNANIMATED.pointer(
        "Source",
        "The armature whose motion is carried over",
        type=bpy.types.Object,
    )
    pairs: UNANIMATED.rows(
        "Map", "Which bone follows which", type=CCD_RIG_PG_bone_pair, translation_context=CONTEXT
    )
    active_pair: UNANIMATED.integer("Active Pair", "The pair that is chosen")
    reference: UNANIMATED.enum(
        "Reference",
        "The pose of the source that is brought in line with this armature's rest pose",
        items=REFERENCES,
    )
    reference_frame: UNANIMATED.number(
        "Frame", "The source's frame that is the reference", default=1.0, min=-LAST_FRAME, max=LAST_FRAME
    )
    source_fps: UNANIMATED.number(
        "Source Rate",
        "Frames per second of the source's keys; 0 for the scene's",
        default=0.0,
        min=0.0,
        max=MOST_FPS,
        soft_max=240.0,
    )
    in_place: UNANIMATED.of(RetargetSettings, "in_place")
    scale: UNANIMATED.of(RetargetSettings, "scale", soft_max=10.0, translation_context=CONTEXT)
    feet: _weight("feet")
    hands: _weight("hands")
    head: _weight("head")
    knees: _weight("knees")
    elbows: _weight("elbows")
    sides_apart: UNANIMATED.boolean("Sides Apart", "Weigh the effectors of the right side by themselves")
    feet_right: _weight(
        "feet", name="Right", description="How far the right ankle is taken to where the source has it"
    )
    hands_right: _weight(
        "hands", name="Right", description="How far the right wrist is taken to where the source has it"
    )
    knees_right: _weight(
        "knees",
        name="Right",
        description="How far the right leg turns for its knee to be on the source's side",
    )
    elbows_right: _weight(
        "elbows",
        name="Right",
        description="How far the right arm turns for its elbow to be on the source's side",
    )
    foot_space: _space("foot_space")
    hand_space: _space("hand_space")
    head_space: _space("head_space")
    knee_space: _space("knee_space")
    elbow_space: _space("elbow_space")
    contacts: UNANIMATED.of(RetargetSettings, "contacts", name="Lock Feet")
    speed: UNANIMATED.of(
        ContactThresholds,
        "speed",
        description="A foot is down where it is slower than this, in lengths of its leg per second",
        default=RetargetSettings.thresholds.speed,
        soft_max=2.0,
    )
    height: UNANIMATED.of(
        ContactThresholds,
        "height",
        description="A foot is down where it is nearer than this to the ground, in lengths of its leg",
        default=RetargetSettings.thresholds.height,
        soft_max=1.0,
    )
    use_ground: UNANIMATED.boolean(
        "Set Ground",
        "Let feet stand at a height of your own. Otherwise they stand at the height of this armature's "
        "Ground below its origin, level everywhere; with At Rest, where the armature stands at rest",
    )
    ground: UNANIMATED.number(
        "Ground",
        "Height in the world on which feet are to stand",
        subtype="DISTANCE",
        unit="LENGTH",
    )
    blend: UNANIMATED.of(
        RetargetSettings, "blend", soft_max=1.0, subtype="TIME_ABSOLUTE", unit="TIME_ABSOLUTE"
    )
    extension: UNANIMATED.of(
        RetargetSettings, "extension", precision=3, subtype="FACTOR", translation_context=CONTEXT
    )
    preview: STORED.boolean(
        "Show Changes",
        "Pose this armature as the present frame would be retargeted, whenever a setting "
        "changes; keys stay as they are",
        options={"SKIP_SAVE"},
    )
    no_pose: STORED.text(
        "No Pose", "The source whose rest pose was found to be no pose of a body", options={"SKIP_SAVE"}
    )
    report: UNANIMATED.text("Report", "What the last retargeting came to")


SETTINGS = (
    *("reference", "reference_frame", "source_fps", "in_place", "scale", *WEIGHTS, *SPACES),
    *("sides_apart", *(f"{name}_right" for name in PAIRED)),
    *("use_ground", "ground", "contacts", "speed", "height", "blend", "extension", "preview"),
)
"""Settings that update the preview when they change."""

shows: list[Callable[[bpy.types.Object], None]] = []
"""Callbacks that show the present frame of an armature's retargeting, added by the package `retarget`."""


def is_armature(group: Any, candidate: bpy.types.Object) -> bool:
    """Whether an object may be the source: an armature beside the one that the motion goes to."""
    return candidate.type == "ARMATURE" and candidate != group.id_data


def update_source(group: Any, context: bpy.types.Context) -> None:
    """Forget the frame rate of the source before, and show the preview."""
    group.property_unset("source_fps")
    update_preview(group, context)


def update_preview(group: Any, _context: bpy.types.Context) -> None:
    """Show the present frame with a setting that has changed, if the preview is on."""
    if group.preview:
        for show in shows:
            show(group.id_data)
