"""Obstacles to keys: reasons why keys could not be written, or would not play."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import Enum

import bpy

from . import channels
from .channels import fcurves_of


class Destination(Enum):
    """Destination of keys."""

    NEW_ACTION = "NEW_ACTION"
    CURRENT_ACTION = "CURRENT_ACTION"
    NLA_STRIP = "NLA_STRIP"


def obstacles(
    armature_object: bpy.types.Object, keyed: Sequence[tuple[str, str]], destination: Destination
) -> tuple[str, ...]:
    """List the reasons why keys of channels could not be written or would not play, in sentences.

    Args:
        armature_object: gets the keys.
        keyed: pairs of bone name and channel name.
        destination: of the keys.
    """
    sentences = [*_object_obstacles(armature_object, destination)]
    bones = {channels.data_path(armature_object, bone, channel): bone for bone, channel in keyed}
    animation = armature_object.animation_data
    for driver in animation.drivers if animation is not None else ():
        if driver.data_path in bones and not driver.mute:
            sentences.append(
                f"Bone '{bones[driver.data_path]}': {_label(driver)} has a driver, so keys would not play: "
                "delete or mute the driver"
            )
    sentences += _mode_obstacles(armature_object, {bone for bone, _ in keyed})
    # A strip gets a new action with new F-curves; the present action continues below it.
    present = () if destination is Destination.NLA_STRIP else fcurves_of(armature_object)
    for fcurve in present:
        if fcurve.data_path in bones:
            sentences += [f"Bone '{bones[fcurve.data_path]}': {text}" for text in curve_obstacles(fcurve)]
    return tuple(sentences)


def _mode_obstacles(armature_object: bpy.types.Object, bones: Collection[str]) -> Iterator[str]:
    """Yield obstacles by rotation modes: keys are for the present mode of a bone, and play in no other."""
    animation = armature_object.animation_data
    if animation is None:
        return
    paths = {channels.data_path(armature_object, bone, "rotation_mode"): bone for bone in sorted(bones)}
    for driver in animation.drivers:
        if driver.data_path in paths and not driver.mute:
            bone = paths[driver.data_path]
            yield f"Bone '{bone}': its rotation mode has a driver, so keys would not play: delete the driver"
    curves = list(fcurves_of(armature_object))
    for track in animation.nla_tracks:
        strips = [strip for strip in track.strips if not (track.mute or strip.mute)]
        curves += [curve for strip in strips for curve in channels.strip_fcurves(strip)]
    for curve in curves:
        if curve.data_path in paths and channels.plays(curve):
            pose_bone = armature_object.pose.bones[paths[curve.data_path]]
            known = pose_bone.bl_rna.properties["rotation_mode"].enum_items
            present = known[pose_bone.rotation_mode].value
            if any(round(key.co[1]) != present for key in curve.keyframe_points):
                yield (
                    f"Bone '{pose_bone.name}': its rotation mode changes by keys, so keys of one mode would "
                    "not play throughout: delete the keys of Rotation Mode"
                )


def _label(fcurve: bpy.types.FCurve) -> str:
    return f"{fcurve.data_path.rpartition('.')[2]}[{fcurve.array_index}]"


def _object_obstacles(armature_object: bpy.types.Object, destination: Destination) -> Iterator[str]:
    """Yield obstacles that concern the entire object."""
    where = f"Armature '{armature_object.name}'"
    override, library = armature_object.override_library, armature_object.library
    if library is not None:
        yield f"{where} is linked from '{library.filepath}': make a library override of it first"
    elif override is not None and override.is_system_override:
        yield f"{where} is an override that is not editable: use Library Override > Make > Selected first"
    animation = armature_object.animation_data
    if animation is None:
        return
    if animation.use_tweak_mode:
        # In tweak mode the strip's action takes the place of the action, which cannot be checked.
        yield f"{where}: an NLA strip is being tweaked: leave tweak mode (Tab in the NLA editor) first"
        return
    solo = any(track.is_solo for track in animation.nla_tracks)
    if destination is Destination.NLA_STRIP:
        if not animation.use_nla:
            yield f"{where}: its NLA is off, so a strip would not play: switch it on in the NLA editor"
        elif solo:
            yield f"{where}: an NLA track is solo, so another strip would not play: switch solo off"
        return
    if animation.use_nla and (solo or channels.has_strips(animation)):
        yield from _nla_obstacles(where, animation, solo)
    action = animation.action
    if action is None or destination is Destination.NEW_ACTION:
        return
    if action.library is not None:
        yield f"Action '{action.name}' is linked from '{action.library.filepath}': choose New Action"
    elif action.override_library is not None:
        yield f"Action '{action.name}' is a library override, whose keys cannot be edited: choose New Action"


def _nla_obstacles(where: str, animation: bpy.types.AnimData, solo: bool) -> Iterator[str]:
    """Yield obstacles by the NLA: the action is its top layer and must replace the layers below."""
    blend, influence = animation.action_blend_type, animation.action_influence
    if solo:
        yield f"{where}: an NLA track is solo, so keys of the action would not play: switch solo off"
    if blend != "REPLACE":
        yield f"{where}: the action blends with the NLA by {blend}: set its blending to Replace"
    if influence < 1.0:
        yield f"{where}: the action's influence in the NLA is {influence:.3f}: set it to 1"


def curve_obstacles(fcurve: bpy.types.FCurve) -> Iterator[str]:
    """Yield obstacles of one F-curve, in clauses."""
    what = f"the F-curve of {_label(fcurve)}"
    group = fcurve.group
    if fcurve.lock:
        yield f"{what} is locked: unlock it in the Graph Editor"
    elif group is not None and group.lock:
        yield f"{what} is in the locked group '{group.name}': unlock the group in the Graph Editor"
    if fcurve.mute:
        yield f"{what} is muted, so its keys would not play: unmute it in the Graph Editor"
    elif group is not None and channels.is_group_silent(fcurve):
        yield f"{what} is in the muted group '{group.name}', so its keys would not play: unmute the group"
    if len(fcurve.sampled_points) > 0:
        yield f"{what} holds samples instead of keys: use Key > Samples to Keys in the Graph Editor"
    for modifier in fcurve.modifiers:
        # The modifier Cycles does not change the values between the first and the last key.
        if not modifier.mute and modifier.type != "CYCLES":
            yield f"{what} has the modifier {modifier.type}, which would change its keys: mute or remove it"
