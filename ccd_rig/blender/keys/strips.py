"""NLA strips: a baked action above all that plays, which goes on below it as it did.

Frames are what keys have (see `frame_selection.key_time`).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from typing import Any, Literal

import bpy
import numpy as np

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
    is_alone = not channels.has_strips(animation)
    keyed = [curve for curve in curves if len(curve.keyframe_points)]
    start, end = channels.span(keyed) if keyed else span
    # A strip holds its ends, which is what such curves do by themselves; others, and strips above others,
    # have to go on.
    has_ends = is_alone and all(c.extrapolation == "CONSTANT" and not len(c.modifiers) for c in curves)
    blend = "REPLACE" if is_alone else animation.action_blend_type
    influence = 1.0 if is_alone else animation.action_influence
    extrapolation: Any = "HOLD" if is_alone else animation.action_extrapolation
    if extrapolation == "NOTHING":  # above strips an action with this plays from its first key to its last
        start, end = action.frame_range
    elif not has_ends:
        start, end = min(start, span[0]) - MARGIN, max(end, span[1]) + MARGIN
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


def go_on_below(armature_object: bpy.types.Object, paths: Collection[str], span: tuple[float, float]) -> bool:
    """Whether strips should go on before and after an action with keys in this span alone, which would hold
    its ends otherwise.

    Not where one of its channels is in no strip: outside Blender would show its default. And not where the
    span has ends that Blender rounds.
    """
    animation = armature_object.animation_data
    return (
        animation is not None
        and bool(animation.use_nla)
        and channels.has_strips(animation)
        and played(armature_object).issuperset(paths)
        and all(float(end).is_integer() for end in span)
    )


def reaching(span: tuple[float, float]) -> tuple[float, float]:
    """A span that Blender finds both ends inside: where time is remapped it rounds them to either side."""
    if all(float(end).is_integer() for end in span):
        return span
    rounding = 4.0 * float(np.spacing(np.float32(max(map(abs, span)))))
    return span[0] - rounding, span[1] + rounding


def played(armature_object: bpy.types.Object) -> frozenset[str]:
    """Data paths of the channels that the object's strips animate."""
    return frozenset(
        curve.data_path
        for track in armature_object.animation_data.nla_tracks
        if not track.mute
        for strip in track.strips
        if not strip.mute
        for curve in channels.strip_fcurves(strip)
        if channels.plays(curve)
    )
