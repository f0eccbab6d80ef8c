"""Settings of a bake and their choices, and its options as properties of the operator and of armatures."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields
from typing import Any

import bpy

from ...errors import InvalidInput, RigError
from ...maths.validation import ranged, require_ranges, single
from ...settings import EVEN_REDUCTION, MOST_SMOOTHNESS, PRESETS, SMOOTHNESS, Solver
from ..keys.destination import Destination
from ..languages.translation import CONTEXT
from ..properties import constraint_list
from ..properties.armature_data import CCD_RIG_PG_armature
from ..properties.body import require_known
from ..registration import STORED, Declare


class Keys(enum.Enum):
    """Choice of keyed frames."""

    EVERY_FRAME = "EVERY_FRAME"
    """All frames, with slerps between solved ones; linear between keys."""
    SOLVED_FRAMES = "SOLVED_FRAMES"
    """Solved frames; Blender interpolates between them (Bezier), and limits hold at the keys."""
    TARGET_KEYS = "TARGET_KEYS"
    """Frames at which targets, poles or their movers have keys; solved there, and Bezier between."""
    REFERENCE_KEYS = "REFERENCE_KEYS"
    """Frames at which another object, or a bone of it, has keys; solved there, and Bezier between."""

    @property
    def is_sparse(self) -> bool:
        """Whether Blender interpolates between solved frames."""
        return self is not Keys.EVERY_FRAME


class Start(enum.Enum):
    """Choice of the base pose of each frame, for bones that constraints move."""

    ACTION = "ACTION"
    """The animation; rest for bones without animation, whatever their present pose.

    Bones of converted IK start from the pose that this had.
    """
    ORIGINAL = "ORIGINAL"
    """The animation before the first bake of the action."""
    REST = "REST"
    """The rest pose."""
    POSE = "POSE"
    """The present pose, at every frame."""


@dataclass(frozen=True)
class BakeSettings:
    """Settings of a bake.

    Attributes:
        frame_start: first frame.
        frame_end: last frame, not before the first.
        step: frames from one solve to the next; the last frame is always solved. Without effect where frames
            are taken from other keys.
        keys: choice of keyed frames.
        destination: action for the keys.
        constraints: names of constraints; empty for all enabled ones.
        error_reduction: part of the error that one pass of CCD removes, shared out over a chain's joints, 0.1
            to 0.97. Smaller bends chains more evenly and takes longer. From root to tip, chains with a
            rotation or a pole take the armature's own steps.
        reference_object: for REFERENCE_KEYS, name of the object with the keys.
        reference_bone: name of a bone of it; empty for all keys of the object.
        start: choice of base poses. A root bone that follows planted bones always starts from its animation.
        reduce_angle: radians that key reduction may turn a bone off the full motion; 0 for no such bound, and
            for all keys if `reduce_error` is 0 too.
        reduce_error: world metres that key reduction may move the end of a chain; 0 as above.
        verify: whether playback is evaluated after the bake, and compared with the keys.
        preroll: frames before the first that are solved without keys, to find where feet came down.
        smoothness: how strongly sudden turns between frames are smoothed, where the nearest pose jumps.
            Frames that need none keep their poses to the bit. 0 solves each frame for itself.
        solver: None for the armature's own setting.
        ground: height of level ground in the world, metres, for the report; None for the ground of the
            armature.
        body: mode of the bone that carries the figure while bones are planted: "AUTO", "KEEP_ANIMATION",
            "WALK_ON" or "FOLLOW_FEET"; empty for the armature's own setting.
        body_helps: whether spine, clavicles and hips move where chains miss their targets alone; None for the
            armature's own setting.
        switch_to_fk: whether IK switches of the rig are keyed to FK where they disable the baked bones.

    Raises:
        InvalidInput: the range is empty, a number is out of its range, or the body is none of these.
    """

    frame_start: int
    frame_end: int
    step: int = 1
    keys: Keys = Keys.EVERY_FRAME
    destination: Destination = Destination.NEW_ACTION
    constraints: tuple[str, ...] = ()
    # Properties are single precision.
    error_reduction: float = ranged(PRESETS["TAIL"].error_reduction, 0.1, single(EVEN_REDUCTION))
    preroll: int = ranged(0, 0)
    smoothness: float = ranged(SMOOTHNESS, 0.0, MOST_SMOOTHNESS)
    verify: bool = True
    start: Start = Start.ACTION
    reduce_angle: float = ranged(0.0, 0.0)
    reduce_error: float = ranged(0.0, 0.0)
    reference_object: str = ""
    reference_bone: str = ""
    solver: Solver | None = None
    body: str = ""
    body_helps: bool | None = None
    ground: float | None = None
    switch_to_fk: bool = True

    def __post_init__(self) -> None:
        from ...motion import interpolation

        for name in ("error_reduction", "smoothness", "reduce_angle", "reduce_error"):
            object.__setattr__(self, name, float(getattr(self, name)))  # scripts and files give whole numbers
        require_ranges(self)
        known = bpy.types.Scene.bl_rna.properties["frame_current"]
        first, last = known.hard_min, known.hard_max
        earliest = self.frame_start - self.preroll
        if earliest < first or self.frame_end > last:  # it would evaluate its last frame instead
            raise InvalidInput(
                f"frames {earliest} to {self.frame_end}: Blender has frames {first} to {last} only"
            )
        interpolation.solve_frames(self.frame_start, self.frame_end, self.step)
        require_known(self.body)
        if self.ground is not None and not math.isfinite(self.ground):
            raise InvalidInput(f"ground must be a height, not {self.ground:g}")
        if self.reduces and self.keys.is_sparse:
            raise InvalidInput(
                "Keys are left out only of a bake that keys every frame: set Keys to Every Frame"
            )

    @property
    def reduces(self) -> bool:
        """Whether keys are reduced."""
        return self.reduce_angle > 0.0 or self.reduce_error > 0.0

    def solved_frames(self) -> list[int]:
        """Solved frames, unless these are taken from other keys."""
        from ...motion import interpolation

        return interpolation.solve_frames(self.frame_start, self.frame_end, self.step)

    def preroll_frames(self) -> list[int]:
        """Solved frames before the range."""
        return list(range(self.frame_start - self.step, self.frame_start - self.preroll - 1, -self.step))[
            ::-1
        ]


# Options ----------------------------------------------------------------------------------------------------


DEFAULTS = {each.name: each.default for each in fields(BakeSettings)}
AUTO = "AUTO"

# Files store the numbers, so these never change.
ITEMS = {
    "destination": (
        (
            AUTO,
            "Automatic",
            "A copy of the present action, with the chains' keys in the range replaced; the old one is kept. "
            "An action that CCD Rig has baked is overwritten. Where keys of an action would hide NLA strips "
            "outside the range, NLA Strip Above",
            3,
        ),
        (
            "NEW_ACTION",
            "New Action",
            "A copy of the present action, with the chains' keys in the range replaced; the old one is kept",
            0,
        ),
        ("CURRENT_ACTION", "Present Action", "The present action itself", 1),
        (
            "NLA_STRIP",
            "NLA Strip Above",
            "A new action with these keys alone, in a strip above all others; the present action goes into a "
            "strip below it and plays on as before",
            2,
        ),
    ),
    "start": (
        (
            "ACTION",
            "Animation",
            "What plays at the frame; bones without keys start from rest, whatever pose they are in",
            0,
        ),
        (
            "ORIGINAL",
            "Original Animation",
            "Of an action that was baked, what played before it was first baked, so that influence does not "
            "add up from bake to bake",
            1,
        ),
        ("REST", "Rest Pose", "The rest pose, at every frame", 2),
        ("POSE", "Present Pose", "The pose as it stands now, at every frame", 3),
    ),
    "keys": (
        (
            "EVERY_FRAME",
            "Every Frame",
            "Key every frame of the range; between solved frames rotations are slerped",
            0,
        ),
        (
            "SOLVED_FRAMES",
            "Solved Frames Only",
            "Key only the solved frames; between them Blender interpolates each component by itself, so that "
            "limits and targets hold at the keys alone",
            1,
        ),
        (
            "TARGET_KEYS",
            "Where Targets Have Keys",
            "Solve and key only the frames at which a target, a pole, what moves them or a setting that is "
            "keyed has keys, and the ends of the range; between them Blender interpolates",
            2,
        ),
        (
            "REFERENCE_KEYS",
            "Where Another Has Keys",
            "Solve and key only the frames at which another object or bone has keys, and the ends of the "
            "range; between them Blender interpolates",
            3,
        ),
    ),
}


# Keywords of properties that do not follow from the fields of settings; None: the setting has no property.
_SHOWN: dict[str, dict[str, Any] | None] = {
    "step": {
        "name": "Frame Step",
        "description": "Frames from one solve to the next; the last frame is always solved",
        "min": 1,
        "soft_max": 10,
    },
    "preroll": None,
    "smoothness": {"soft_max": 50.0},
    "error_reduction": {"name": "Even Bend", "subtype": "FACTOR"},
    "reduce_angle": {
        "name": "Reduce Keys, Angle",
        "description": "Leave out keys where each bone stays within this angle of the full motion; 0 is no "
        "such bound, and keeps all keys if Reduce Keys, Distance is 0 too",
        "soft_max": 0.1,
        "subtype": "ANGLE",
        "precision": 3,
    },
    "reduce_error": {
        "name": "Reduce Keys, Distance",
        "description": "Leave out keys where the end of each chain stays within this distance of the full "
        "motion, in world units; 0 is no such bound",
        "soft_max": 0.1,
        "subtype": "DISTANCE",
        "precision": 4,
    },
    "verify": {
        "name": "Check Afterwards",
        "description": "Evaluate the range once more after the bake: say what really plays, and what keeps "
        "keys from playing as baked",
    },
    "switch_to_fk": {
        "name": "Switch to FK",
        "description": "Where a switch of the rig shows IK, and baked bones would move nothing, key it to "
        "FK over the range; outside the range it stays as it is",
    },
}
BY_HAND = (
    *("frame_start", "frame_end", "constraints", "destination", "keys", "start", "solver", "body"),
    *("body_helps", "reference_object", "reference_bone", "ground"),
)
"""Settings whose options do not follow from their fields."""
PLAIN = (*_SHOWN, *(name for name in DEFAULTS if name not in _SHOWN and name not in BY_HAND))
"""Settings that are numbers and switches: property and word of the command line follow from the field."""
OPTIONS = tuple(name for name in PLAIN if _SHOWN.get(name, {}) is not None)
"""Those with a property."""


def option_properties(declare: Declare) -> dict[str, Any]:
    """Declare the properties of all options, by name."""
    plain = {name: declare.of(BakeSettings, name, **(_SHOWN.get(name) or {})) for name in OPTIONS}
    return {
        "destination": declare.enum(
            "Bake Into",
            "Where the keys go",
            items=ITEMS["destination"],
            default=AUTO,
            translation_context=CONTEXT,
        ),
        "start": declare.enum(
            "Start",
            "Where each frame starts from: the pose that it stays near to",
            items=ITEMS["start"],
            default=DEFAULTS["start"].name,
            translation_context=CONTEXT,
        ),
        "keys": declare.enum(
            "Keys",
            "Which frames get keys",
            items=ITEMS["keys"],
            default=DEFAULTS["keys"].name,
            translation_context=CONTEXT,
        ),
        "step": plain.pop("step"),
        "only_selected": declare.boolean(
            "Only Selected Bones", "Bake only constraints whose chain has a selected bone"
        ),
        "reference_object": declare.text("Reference Object", "The object whose keys say where to key"),
        "reference_bone": declare.text(
            "Reference Bone",
            "Bone of the reference object whose keys count; empty: all that the object has keys for",
        ),
        **plain,
        "use_ground": declare.boolean(
            "Check Ground",
            "Let the report name bones below a height of the bake's own. Otherwise it names those below the "
            "armature's Ground, unless that is At Rest",
        ),
        "ground": declare.number(
            "Ground Height", "Height of the ground, along the world's Z axis", subtype="DISTANCE"
        ),
    }


class CCD_RIG_PG_bake(bpy.types.PropertyGroup):
    """The options of the next bake of an armature."""

    __annotations__ = option_properties(STORED)


def bake_settings(
    scene: bpy.types.Scene, options: Any, armature_object: bpy.types.Object, frames: tuple[int, int]
) -> BakeSettings:
    """Settings from options.

    Args:
        scene: where it is baked.
        options: the operator, or the options of the armature.
        frames: first and last frame.

    Raises:
        RigError: Only Selected Bones is on, and no bone is selected.
    """
    plain = {name: getattr(options, name) for name in OPTIONS}
    if options.keys != Keys.EVERY_FRAME.name:  # sparse bakes keep all their keys
        plain |= {"reduce_angle": 0.0, "reduce_error": 0.0}
    return BakeSettings(
        frame_start=frames[0],
        frame_end=frames[1],
        keys=Keys[options.keys],
        destination=_destination(options.destination, scene, armature_object, frames),
        constraints=_selected(armature_object) if options.only_selected else (),
        start=Start[options.start],
        reference_object=options.reference_object,
        reference_bone=options.reference_bone,
        ground=options.ground if options.use_ground else None,
        **plain,
    )


def _selected(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the enabled constraints whose chain has a selected bone."""
    from ..keys import channels

    names = tuple(
        constraint.name
        for constraint in armature_object.ccd_rig.constraints
        if constraint.enabled
        and any(map(channels.is_bone_selected, constraint_list.chain_of(armature_object, constraint)))
    )
    if not names:
        raise RigError(
            "No constraint's chain has a selected bone: select one, or switch off Only Selected Bones"
        )
    return names


def _destination(
    name: str, scene: bpy.types.Scene, armature_object: bpy.types.Object, frames: tuple[int, int]
) -> Destination:
    from ..keys import channels
    from ..keys.writer import hides_strips
    from ..properties.stored_poses import is_baked
    from ..rig.rotation_modes import rotation_channel

    if name != AUTO:
        return Destination[name]
    shared = channels.shared_users(armature_object)
    overwrites = is_baked(armature_object) and not shared
    chosen = Destination.CURRENT_ACTION if overwrites else Destination.NEW_ACTION
    rows = (row for row in armature_object.ccd_rig.constraints if row.enabled)
    bones = {bone.name: bone for row in rows for bone in constraint_list.chain_of(armature_object, row)}
    paths = [bone.path_from_id(rotation_channel(bone)[0]) for bone in bones.values()]
    time = scene.render.frame_map_old / scene.render.frame_map_new
    span = frames[0] * time, frames[1] * time
    return Destination.NLA_STRIP if hides_strips(armature_object, paths, chosen, span, time) else chosen


def take_stored(properties: Any, armature_object: bpy.types.Object) -> None:
    """Copy the stored options of the armature to an operator's properties, but for explicitly set ones.

    Raises:
        RigError: a stored option comes from a later version.
    """
    stored = armature_object.ccd_rig.bake
    for name in ITEMS:
        if not getattr(stored, name):  # the file holds a number that is not in the list
            raise RigError(
                f"armature '{armature_object.name}', bake: {stored.bl_rna.properties[name].name} is not "
                "known to this version: choose one, or update CCD Rig"
            )
    for name in CCD_RIG_PG_bake.__annotations__:
        if not properties.is_property_set(name):
            setattr(properties, name, getattr(stored, name))


def register() -> None:
    """Add the options to the armature's property group, before that is registered."""
    bpy.utils.register_class(CCD_RIG_PG_bake)
    CCD_RIG_PG_armature.__annotations__["bake"] = STORED.pointer(
        "Bake", "The options of the next bake", type=CCD_RIG_PG_bake
    )


def unregister() -> None:
    """Remove the options from the group; values stored in files stay there."""
    del CCD_RIG_PG_armature.__annotations__["bake"]
    bpy.utils.unregister_class(CCD_RIG_PG_bake)
