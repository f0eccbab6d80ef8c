"""NLA strips: a baked action above all that plays, which goes on below it as it did.

Frames are what keys have (see `wanted_frames.key_time`).
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Literal

import bpy

from . import channels

SHORTEST = 0.1  # [frames] a strip that Blender keeps as it is; one baked frame needs one
MARGIN = 10000.0  # [frames] before and after everything: where a strip stands for an action that has no ends


def push_down(armature_object: bpy.types.Object, span: tuple[float, float], undo: ExitStack) -> None:
    """Put the object's action into a strip above the others, where it plays as before, and unassign it.

    Args:
        span: frames at which it has to play at least.
    """
    animation = armature_object.animation_data
    if animation is None or animation.action is None:
        return
    action, slot = animation.action, channels.slot_of(animation)
    undo.callback(channels.assign, armature_object, action, slot)
    if not channels.is_animated(armature_object):
        animation.action = None
        return
    curves = list(channels.fcurves_of(armature_object))
    is_alone = len(animation.nla_tracks) == 0
    keyed = [curve for curve in curves if len(curve.keyframe_points)]
    start, end = channels.span(keyed) if keyed else span
    # A strip holds its ends, which is what such curves do by themselves; others, and strips above others,
    # have to go on.
    has_ends = is_alone and all(c.extrapolation == "CONSTANT" and not len(c.modifiers) for c in curves)
    if not has_ends:
        start, end = min(start, span[0]) - MARGIN, max(end, span[1]) + MARGIN
    blend = "REPLACE" if is_alone else animation.action_blend_type
    influence = 1.0 if is_alone else animation.action_influence
    extrapolation: Any = "HOLD" if is_alone else animation.action_extrapolation
    animation.action = None
    strip = add(armature_object, action, slot, (start, end), extrapolation, undo)
    strip.blend_type = blend
    if influence < 1.0:
        strip.use_animated_influence = True
        strip.influence = influence
        strip.fcurves.find("influence").keyframe_points.insert(start, influence)


def add(
    armature_object: bpy.types.Object,
    action: bpy.types.Action,
    slot: Any | None,
    span: tuple[float, float],
    extrapolation: Literal["NOTHING", "HOLD", "HOLD_FORWARD"],
    undo: ExitStack,
) -> bpy.types.NlaStrip:
    """A strip in a new track above all others, which replaces what is below it."""
    tracks = armature_object.animation_data.nla_tracks
    undo.callback(setattr, tracks, "active", tracks.active)
    track = tracks.new()
    undo.callback(tracks.remove, track)
    track.name = action.name
    strip = channels.strip_of(track, action, slot, span[0], max(span[1], span[0] + SHORTEST))
    strip.blend_type, strip.extrapolation = "REPLACE", extrapolation
    strip.use_auto_blend = False
    return strip


def plays(armature_object: bpy.types.Object, data_path: str) -> bool:
    """Whether any strip of the object has an F-curve for this channel."""
    return any(
        curve.data_path == data_path
        for track in armature_object.animation_data.nla_tracks
        for strip in track.strips
        for curve in channels.strip_fcurves(strip)
    )
