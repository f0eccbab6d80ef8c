"""The motion that a baked action was made from: a bake can start from it again, not from what it has baked.

A new action of a bake remembers the action that it is a copy of. What influence below 1 blends with, and
where solves start, is then what that one has for bones that were baked; all other channels are the present
ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import bpy

from ...errors import RigError
from ..keys import channels
from ..properties.baked_action import FOLLOWED, POSE, followed, pose_of
from ..scene.evaluation import Samples
from ..solve.frame_settings import Reference, base_rotations
from .noted_motion import Curves, NotedMotion, Values, curves_by_path

REMEMBERED = "ccd_rig_original"
"""Custom property of a baked action: the action that it is a copy of, if there was one."""
SETTINGS = "ccd_rig_bake_settings"
"""Another one: the `fingerprint` of the last bake into the action."""


def fingerprint(*made_with: Any) -> str:
    """A short text for what a bake is made with, of values with a `repr` that says all."""
    return hashlib.sha256("\n".join(map(repr, made_with)).encode()).hexdigest()[:16]


def note_settings(action: bpy.types.Action, fingerprint: str, undo: ExitStack) -> None:
    """Note how an action was baked; `undo` gets what takes that back."""
    properties: Any = action
    before = properties.get(SETTINGS)
    if before is None:
        undo.callback(properties.pop, SETTINGS, None)
    else:
        undo.callback(properties.__setitem__, SETTINGS, before)
    properties[SETTINGS] = fingerprint


def note_followed(action: bpy.types.Action, bone: str, undo: ExitStack) -> None:
    """Note that the keys of a bone in an action come from planted bones; `undo` gets what takes that back."""
    properties: Any = action
    before = followed(action)
    if bone in before:
        return
    properties[FOLLOWED] = [*before, bone]
    if before:
        undo.callback(properties.__setitem__, FOLLOWED, before)
    else:
        undo.callback(properties.pop, FOLLOWED, None)


def was_baked_so(armature_object: bpy.types.Object, fingerprint: str) -> bool:
    """Whether what plays last, the present action or else the strip above all others, was baked like this."""
    animation = armature_object.animation_data
    action: Any = None if animation is None else animation.action
    if animation is not None and action is None and animation.use_nla and len(animation.nla_tracks):
        strips = animation.nla_tracks[-1].strips
        action = strips[0].action if len(strips) else None
    return action is not None and action.get(SETTINGS) == fingerprint


def remember(
    action: bpy.types.Action, original: bpy.types.Action | None, pose: Values, undo: ExitStack
) -> None:
    """Note what an action was made from. A copy of a baked action has that noted already.

    Args:
        pose: what channels of keyed bones hold where no key moves them; only bones that are not noted yet
            are taken over.
        undo: gets what takes that back.
    """
    properties: Any = action  # the stubs do not know that data-blocks hold custom properties
    if POSE not in properties and original is not None and original != action:
        properties[REMEMBERED] = original
    noted = {}
    if POSE in properties:
        noted = pose_of(action)
        undo.callback(properties.__setitem__, POSE, noted)
    properties[POSE] = {**pose, **noted}


def is_baked(armature_object: bpy.types.Object) -> bool:
    """Whether the present action is one that a bake has made, and can be written to."""
    animation = armature_object.animation_data
    action: Any = animation.action if animation is not None else None
    return action is not None and POSE in action and action.is_editable and action.override_library is None


def baked_action(armature_object: bpy.types.Object) -> Any:
    """The present action, which knows what it was baked from.

    Raises:
        RigError: it does not.
    """
    animation = armature_object.animation_data
    action: Any = animation.action if animation is not None else None
    if action is None or POSE not in action:
        raise RigError(
            f"Armature '{armature_object.name}': its action does not know what it was baked from: choose "
            "another way to start, or assign the original action by hand"
        )
    return action


def base_from(armature_object: bpy.types.Object, time: float) -> Callable[[Samples], Samples]:
    """A function that puts the base poses of baked bones in samples back to those before the first bake.

    Args:
        armature_object: its present action is a baked one.
        time: what a frame is multiplied by to give the time of keys.

    Raises:
        RigError: the action was not baked, or what it was baked from is not for this object.
    """
    action = baked_action(armature_object)
    original = action.get(REMEMBERED)
    curves: Curves = {}
    if isinstance(original, bpy.types.Action):
        curves = curves_by_path(channels.fcurves_for(original, armature_object))
    return NotedMotion(armature_object, time, pose_of(action), curves).based


def reference_from(armature_object: bpy.types.Object, time: float) -> Reference:
    """A function that gives the poses to which a bake's joints go back: the base poses before any bake.

    So a second bake leads to what the first one did. The arguments are those of `base_from`.
    """
    animation = armature_object.animation_data
    action: Any = animation.action if animation is not None else None
    if action is None or POSE not in action:
        return base_rotations
    try:
        based = base_from(armature_object, time)
    except RigError:  # what it was baked from is not for this object any more
        return base_rotations
    return lambda samples: base_rotations(based(samples))
