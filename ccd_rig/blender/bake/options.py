# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a bake as properties of the operator, and as stored with each armature for the panel."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...errors import RigError
from ...settings import EVEN_REDUCTION
from ..keys import channels
from ..keys.obstacles import Destination
from ..languages.translation import CONTEXT
from ..properties import constraint_list
from ..properties.armature_data import CCD_RIG_PG_armature
from ..properties.solver_settings import OVERRIDE, field_help
from . import start
from .settings import MOST_SMOOTHNESS, BakeSettings, Keys, Start

DEFAULTS = {field.name: field.default for field in fields(BakeSettings)}
AUTO = "AUTO"

# Files store the numbers, so these never change.
ITEMS = {
    "destination": (
        (
            AUTO,
            "Automatic",
            "A copy of the present action, with the chains' keys in the range replaced; the old one is kept. "
            "An action that CCD Rig has baked is overwritten",
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


def properties(**more: Any) -> dict[str, Any]:
    """Properties of all options by name; `more`: arguments of each property."""
    return {
        **{name: _choice(name, more) for name in ITEMS},
        "step": IntProperty(
            name="Frame Step",
            description="Frames from one solve to the next; the last frame is always solved",
            default=DEFAULTS["step"],
            min=1,
            soft_max=10,
            **more,
        ),
        "only_selected": BoolProperty(
            name="Only Selected Bones",
            description="Bake only constraints whose chain has a selected bone",
            **more,
        ),
        "reference_object": StringProperty(
            name="Reference Object", description="The object whose keys say where to key", **more
        ),
        "reference_bone": StringProperty(
            name="Reference Bone",
            description="Bone of the reference object whose keys count; empty: all that the object has keys "
            "for",
            **more,
        ),
        "smoothness": FloatProperty(
            name="Smoothness",
            description=field_help(BakeSettings, "smoothness"),
            default=DEFAULTS["smoothness"],
            min=0.0,
            max=MOST_SMOOTHNESS,
            soft_max=50.0,
            **more,
        ),
        "error_reduction": FloatProperty(
            name="Even Bend",
            description=field_help(BakeSettings, "error_reduction"),
            default=DEFAULTS["error_reduction"],
            min=0.1,
            max=EVEN_REDUCTION,
            subtype="FACTOR",
            **more,
        ),
        **_reductions(more),
        "verify": BoolProperty(
            name="Check Afterwards",
            description="Evaluate the range once more after the bake: say what really plays, and what keeps "
            "keys from playing as baked",
            default=DEFAULTS["verify"],
            **more,
        ),
        "switch_to_fk": BoolProperty(
            name="Switch to FK",
            description="Where a switch of the rig shows IK, and baked bones would move nothing, key it to "
            "FK over the range; outside the range it stays as it is",
            default=DEFAULTS["switch_to_fk"],
            **more,
        ),
        **_ground(more),
    }


def _ground(more: dict[str, Any]) -> dict[str, Any]:
    """Properties of the ground for the report."""
    return {
        "use_ground": BoolProperty(
            name="Check Ground",
            description="Let the report find bones below a height of the bake's own; without, it finds those "
            "below the armature's Ground, where that is not At Rest",
            **more,
        ),
        "ground": FloatProperty(
            name="Ground Height",
            description="Of the ground, along the world's Z axis",
            subtype="DISTANCE",
            **more,
        ),
    }


def _choice(name: str, more: dict[str, Any]) -> Any:
    words = {
        "destination": ("Bake Into", "Where the keys go"),
        "start": ("Start", "Where each frame starts from: the pose that it stays near to"),
        "keys": ("Keys", "Which frames get keys"),
    }
    label, description = words[name]
    default = AUTO if name == "destination" else DEFAULTS[name].name
    words_of = {"name": label, "description": description, "translation_context": CONTEXT}
    return EnumProperty(**words_of, items=ITEMS[name], default=default, **more)


def _reductions(more: dict[str, Any]) -> dict[str, Any]:
    """Properties of key reduction."""
    return {
        "reduce_angle": FloatProperty(
            name="Reduce Keys, Angle",
            description="Leave out keys where each bone stays within this angle of the full motion; 0 is no "
            "such bound, and keeps all keys if Reduce Keys, Distance is 0 too",
            default=DEFAULTS["reduce_angle"],
            min=0.0,
            soft_max=0.1,
            subtype="ANGLE",
            precision=3,
            **more,
        ),
        "reduce_error": FloatProperty(
            name="Reduce Keys, Distance",
            description="Leave out keys where the end of each chain stays within this distance of the full "
            "motion, in world units; 0 is no such bound",
            default=DEFAULTS["reduce_error"],
            min=0.0,
            soft_max=0.1,
            subtype="DISTANCE",
            precision=4,
            **more,
        ),
    }


class CCD_RIG_PG_bake(bpy.types.PropertyGroup):
    """The options of the next bake of an armature."""

    __annotations__ = properties(override=OVERRIDE)


def bake_settings(options: Any, armature_object: bpy.types.Object, frames: tuple[int, int]) -> BakeSettings:
    """Settings from options.

    Args:
        options: the operator, or the options of the armature.
        armature_object: to be baked.
        frames: first and last frame.

    Raises:
        RigError: Only Selected Bones is on, and no bone is selected.
    """
    every = options.keys == Keys.EVERY_FRAME.name  # sparse bakes keep all their keys
    return BakeSettings(
        frame_start=frames[0],
        frame_end=frames[1],
        step=options.step,
        keys=Keys[options.keys],
        destination=_destination(options.destination, armature_object),
        constraints=_selected(armature_object) if options.only_selected else (),
        error_reduction=options.error_reduction,
        smoothness=options.smoothness,
        verify=options.verify,
        start=Start[options.start],
        reduce_angle=options.reduce_angle if every else 0.0,
        reduce_error=options.reduce_error if every else 0.0,
        reference_object=options.reference_object,
        reference_bone=options.reference_bone,
        ground=options.ground if options.use_ground else None,
        switch_to_fk=options.switch_to_fk,
    )


def _selected(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the enabled constraints whose chain has a selected bone."""
    names = tuple(
        constraint.name
        for constraint in armature_object.ccd_rig.constraints
        if constraint.enabled
        and any(
            map(
                channels.is_bone_selected,
                constraint_list.chain(armature_object, constraint.tip, constraint.chain_length),
            )
        )
    )
    if not names:
        raise RigError(
            "No constraint's chain has a selected bone: select one, or switch off Only Selected Bones"
        )
    return names


def _destination(name: str, armature_object: bpy.types.Object) -> Destination:
    if name != AUTO:
        return Destination[name]
    shared = channels.shared_users(armature_object)
    overwrites = start.is_baked(armature_object) and not shared
    return Destination.CURRENT_ACTION if overwrites else Destination.NEW_ACTION


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
    CCD_RIG_PG_armature.__annotations__["bake"] = PointerProperty(
        name="Bake", description="The options of the next bake", type=CCD_RIG_PG_bake, override=OVERRIDE
    )


def unregister() -> None:
    """Remove the options from the group; values stored in files stay there."""
    del CCD_RIG_PG_armature.__annotations__["bake"]
    bpy.utils.unregister_class(CCD_RIG_PG_bake)
