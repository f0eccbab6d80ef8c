# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing keys into actions, all of them or none: they replace keys in a range, or play in a strip on top.

Obstacles are reasons why keys could not be written, or would not play.

A new action is a copy of the present one with the chains' keys replaced in the range; the old one is kept by
a fake user. An NLA strip has only the new keys; the former animation continues below it.

A new action is assigned when it is complete, and each step in a present action can be undone. Esc or a
failure therefore leaves the file unchanged.

Frames are times of keys (see `frame_selection.key_time`) and may be fractional. Values are in the units of
channels: radians, quaternions (w, x, y, z), metres.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...solvers.stepping import Work, result_of
from ..rig.rotation_modes import WIDTHS, Twin, foreach, number_of_mode
from . import channels, keyframes
from .channels import fcurves_of
from .destination import Destination


def obstacles(
    armature_object: bpy.types.Object,
    keyed: Sequence[tuple[str, str]],
    destination: Destination,
    span: tuple[float, float] | None = None,
    frame: float = 1.0,
) -> tuple[str, ...]:
    """List the reasons why keys of channels could not be written or would not play, in sentences.

    Args:
        keyed: pairs of bone name and channel name.
        span: first and last frame to write, in the time of keys; None: whatever the range.
        frame: length of a scene frame in the time of keys.
    """
    sentences = [*_object_obstacles(armature_object, destination)]
    paths = [channels.data_path(armature_object, *each) for each in keyed]
    if span is not None and hides_strips(armature_object, paths, destination, span, frame):
        sentences.append(
            f"Armature '{armature_object.name}': keys of an action would hide its NLA strips at frames that "
            "are not baked: choose NLA Strip Above"
        )
    bones = {channels.data_path(armature_object, bone, channel): bone for bone, channel in keyed}
    sentences += driver_obstacles(armature_object, keyed)
    sentences += _mode_obstacles(armature_object, {bone for bone, _ in keyed})
    sentences += _numbered_obstacles(armature_object, bones)
    # A strip gets a new action with new F-curves; the present action continues below it.
    bag = None if destination is Destination.NLA_STRIP else channels.bag_of(armature_object)
    if bag is not None:
        sentences += _group_obstacles(armature_object, bag, bones)
    for fcurve in () if bag is None else bag.fcurves:
        if fcurve.data_path in bones:
            sentences += [
                f"Bone '{bones[fcurve.data_path]}': {text}" for text in curve_obstacles(fcurve, span)
            ]
    return tuple(sentences)


def pose_obstacles(armature_object: bpy.types.Object, posed: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield reasons why a pose of channels without keys could not be kept or would not show."""
    yield from _edit_obstacles(armature_object)
    yield from driver_obstacles(armature_object, posed)


def driver_obstacles(armature_object: bpy.types.Object, keyed: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield obstacles to channels, pairs of bone and channel, by their drivers."""
    bones = {channels.data_path(armature_object, bone, channel): bone for bone, channel in keyed}
    for driver in channels.drivers_of(armature_object):
        if driver.data_path in bones and not driver.mute:
            yield (
                f"Bone '{bones[driver.data_path]}': {_label(driver)} has a driver, so keys would not play: "
                "delete or mute the driver"
            )


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
    for strip in channels.playing_strips(animation):
        curves += channels.strip_fcurves(strip)
    for curve in curves:
        if curve.data_path in paths and channels.plays(curve):
            pose_bone = armature_object.pose.bones[paths[curve.data_path]]
            present = number_of_mode(pose_bone.rotation_mode)
            if any(round(key.co[1]) != present for key in curve.keyframe_points):
                yield (
                    f"Bone '{pose_bone.name}': its rotation mode changes by keys, so keys of one mode would "
                    "not play throughout: delete the keys of Rotation Mode"
                )


def _numbered_obstacles(obj: bpy.types.Object, paths: Collection[str]) -> Iterator[str]:
    """Yield obstacles by F-curves that play on bones by number; `paths`: of the channels to write."""
    for path, named in dict(channels.numbered(obj)).items():
        if named in paths:
            yield (
                f"'{obj.name}': an F-curve or driver has the data path {path}: change it to {named} in the "
                "sidebar of its editor"
            )


def _group_obstacles(obj: bpy.types.Object, bag: Any, groups: Mapping[str, str]) -> Iterator[str]:
    """Yield obstacles by the groups that new F-curves of a bag join.

    `groups`: data path of each channel to write -> name of its group.
    """
    present = {(curve.data_path, curve.array_index) for curve in bag.fcurves}
    joined = {groups[path] for path, _ in _components(obj, groups) - present}
    for group in bag.groups:
        if group.name in joined and channels.is_silent(group):
            yield f"Group '{group.name}' is muted, so keys of new F-curves would not play: unmute the group"
        elif group.name in joined and group.lock:
            yield f"Group '{group.name}' is locked, so it takes no new F-curves: unlock the group"


def _label(fcurve: bpy.types.FCurve) -> str:
    return f"{fcurve.data_path.rpartition('.')[2]}[{fcurve.array_index}]"


def _edit_obstacles(armature_object: bpy.types.Object) -> Iterator[str]:
    where = f"Armature '{armature_object.name}'"
    library = armature_object.library
    if library is not None:
        yield f"{where} is linked from '{library.filepath}': make a library override of it first"
    elif channels.is_system_override(armature_object):
        yield f"{where} is an override that is not editable: use Library Override > Make > Selected first"


def _object_obstacles(armature_object: bpy.types.Object, destination: Destination) -> Iterator[str]:
    """Yield obstacles that concern the entire object."""
    where = f"Armature '{armature_object.name}'"
    yield from _edit_obstacles(armature_object)
    animation = armature_object.animation_data
    if animation is None:
        return
    if animation.use_tweak_mode:
        # In tweak mode the strip's action takes the place of the action, which cannot be checked.
        yield f"{where}: an NLA strip is being tweaked: leave tweak mode (Tab in the NLA editor) first"
        return
    solo = channels.is_solo(animation)
    if destination is Destination.NLA_STRIP:
        if not animation.use_nla:
            yield f"{where}: its NLA is off, so a strip would not play: switch it on in the NLA editor"
        elif solo:
            yield f"{where}: an NLA track is solo, so another strip would not play: switch solo off"
        return
    if solo or channels.has_strips(animation):
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


def curve_obstacles(fcurve: bpy.types.FCurve, span: tuple[float, float] | None = None) -> Iterator[str]:
    """Yield obstacles of one F-curve to keys in a span (None: in any), in clauses."""
    what = f"the F-curve of {_label(fcurve)}"
    group = fcurve.group
    if fcurve.lock:
        yield f"{what} is locked: unlock it in the Graph Editor"
    elif group is not None and group.lock:
        yield f"{what} is in the locked group '{group.name}': unlock the group in the Graph Editor"
    if fcurve.mute:
        yield f"{what} is muted, so its keys would not play: unmute it in the Graph Editor"
    elif group is not None and channels.is_silent(group):
        yield f"{what} is in the muted group '{group.name}', so its keys would not play: unmute the group"
    if fcurve.sampled_points:
        yield f"{what} holds samples instead of keys: use Key > Samples to Keys in the Graph Editor"
    for modifier in fcurve.modifiers:
        if not modifier.mute and modifier.type != "CYCLES":
            yield f"{what} has the modifier {modifier.type}, which would change its keys: mute or remove it"
    # Cycles repeats what is between the first and the last key, and does not change it.
    if span is not None and not fcurve.is_empty and repeats(fcurve):
        ends = fcurve.range()
        first, last = float(ends[0]), float(ends[1])
        if span[0] < first - keyframes.MERGE_DISTANCE or span[1] > last + keyframes.MERGE_DISTANCE:
            yield (
                f"{what} repeats frames {first:.7g} to {last:.7g} by the modifier Cycles, which keys at "
                "other frames would change: use Channel > Bake Channels in the Graph Editor first, or, for "
                "bones, choose NLA Strip Above"
            )


def repeats(fcurve: bpy.types.FCurve) -> bool:
    """Whether the modifier Cycles repeats an F-curve."""
    return any(each.type == "CYCLES" and not each.mute for each in fcurve.modifiers)


def repeated_bones(armature_object: bpy.types.Object, keyed: Sequence[tuple[str, str]]) -> list[str]:
    """Return the bones of channels, pairs of bone and channel, with F-curves that repeat in the action."""
    bones = {channels.data_path(armature_object, bone, channel): bone for bone, channel in keyed}
    curves = [curve for curve in fcurves_of(armature_object) if curve.data_path in bones and repeats(curve)]
    return list(dict.fromkeys(bones[curve.data_path] for curve in curves))


# Strips ----------------------------------------------------------------------------------------------------

MARGIN = 10000.0  # [frames] added at both ends of a strip whose action extrapolates


def push_down(armature_object: bpy.types.Object, span: tuple[float, float], undo: ExitStack) -> None:
    """Move the object's action to a strip above the others, in which it plays as before.

    Args:
        span: frames at which it must play at least.
        undo: gets callbacks that restore the action.
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
    start, end = channels.span(curves)
    if start > end:
        start, end = span
    wide = min(start, span[0]) - MARGIN, max(end, span[1]) + MARGIN
    # A strip holds its ends, like curves with constant extrapolation. Other curves, and strips above others,
    # must continue beyond their keys.
    has_ends = is_alone and all(c.extrapolation == "CONSTANT" and not len(c.modifiers) for c in curves)
    blend = "REPLACE" if is_alone else animation.action_blend_type
    influence = 1.0 if is_alone else animation.action_influence
    extrapolation: Any = "HOLD" if is_alone else animation.action_extrapolation
    if extrapolation == "NOTHING":
        first, last = channels.range_in_nla(curves)  # a manual range does not count
        start, end = max(min(start, first), wide[0]), min(max(end, last), wide[1])
    elif not has_ends:
        start, end = wide
    animation.action = None
    strip = add_strip(armature_object, action, slot, (start, end), extrapolation, undo)
    strip.blend_type = blend
    if influence < 1.0:
        strip.use_animated_influence = True
        strip.influence = influence
        strip.fcurves.find("influence").keyframe_points.insert(start, influence)


def add_strip(
    armature_object: bpy.types.Object,
    action: bpy.types.Action,
    slot: Any | None,
    span: tuple[float, float],
    extrapolation: Literal["NOTHING", "HOLD", "HOLD_FORWARD"],
    undo: ExitStack,
    blend: Literal["REPLACE", "ADD"] = "REPLACE",
) -> bpy.types.NlaStrip:
    """Add a strip in a new track above all others, which replaces the strips below or adds to them."""
    tracks = armature_object.animation_data.nla_tracks
    undo.callback(setattr, tracks, "active", tracks.active)
    track = tracks.new()
    undo.callback(tracks.remove, track)
    track.name = action.name
    strip = channels.strip_of(track, action, slot, *span)
    strip.blend_type, strip.extrapolation = blend, extrapolation
    strip.use_auto_blend = False
    return strip


def plays_below(armature_object: bpy.types.Object, paths: Collection[str], span: tuple[float, float]) -> bool:
    """Whether strips should play outside the span of a new action, instead of its held ends.

    They cannot if Blender rounds an end of the span, or if a component of a channel of the action is in no
    strip: Blender would show its default.
    """
    animation = armature_object.animation_data
    return (
        animation is not None
        and channels.has_strips(animation)
        and not _components(armature_object, paths) - played(armature_object)
        and all(float(end).is_integer() for end in span)
    )


def hides_strips(
    armature_object: bpy.types.Object,
    paths: Collection[str],
    destination: Destination,
    span: tuple[float, float],
    frame: float,
) -> bool:
    """Whether keys in the object's action would hide strips at frames that are not written.

    The action hides them on the components that it has F-curves for: at all frames, or from its first key
    on, or between its first and last key, as its extrapolation says. The ends that a strip holds do not count
    before and after all.

    Args:
        paths: data paths of the channels to write.
        span: first and last frame to write.
        frame: length of a scene frame in the time of keys.
    """
    animation = armature_object.animation_data
    strips = [] if animation is None else [*channels.playing_strips(animation)]
    if destination is Destination.NLA_STRIP or animation is None or not strips:
        return False
    written, keyed = _components(armature_object, paths), frozenset[tuple[str, int]]()
    first, last = math.inf, -math.inf  # frames at which the action hides strips
    extrapolation = "HOLD"
    if channels.is_animated(armature_object):
        curves = [curve for curve in fcurves_of(armature_object) if not curve.is_empty]
        keyed = _moved(curves)
        extrapolation = animation.action_extrapolation
        first, last = channels.range_in_nla(curves)
    elif plays_below(armature_object, paths, span):
        extrapolation = "NOTHING"
    start, end = min(first, span[0]), max(last, span[1])
    if extrapolation != "NOTHING":
        last = end = math.inf
    if extrapolation == "HOLD":
        first = start = -math.inf
    before, after = span[0] - frame, span[1] + frame
    hidden = [
        (written - keyed, (start, before)),
        (written - keyed, (after, end)),
        (written & keyed, (after, first - frame)),
        (written & keyed, (last + frame, before)),
        (keyed - written, (start, first - frame)),
        (keyed - written, (last + frame, end)),
    ]
    near = keyframes.MERGE_DISTANCE
    for strip in strips:
        moved = _moved(channels.strip_fcurves(strip))
        for hiding, (low, high) in hidden:
            holds = strip.extrapolation != "NOTHING" and math.isfinite(low) and math.isfinite(high)
            is_seen = holds or (strip.frame_start <= high + near and strip.frame_end >= low - near)
            if low <= high + near and is_seen and hiding & moved:
                return True
    return False


def reaching(span: tuple[float, float]) -> tuple[float, float]:
    """Return a span that includes both ends after Blender's rounding, which occurs if time is remapped."""
    if all(float(end).is_integer() for end in span):
        return span
    rounding = 4.0 * float(np.spacing(np.float32(max(map(abs, span)))))
    return span[0] - rounding, span[1] + rounding


def played(armature_object: bpy.types.Object) -> frozenset[tuple[str, int]]:
    """Return data path and index of the components that the object's strips animate."""
    strips = channels.playing_strips(armature_object.animation_data)
    return frozenset().union(*(_moved(channels.strip_fcurves(strip)) for strip in strips))


def _moved(curves: Iterable[bpy.types.FCurve]) -> frozenset[tuple[str, int]]:
    """Return the components that F-curves move in the NLA, which moves quaternions as a whole."""
    return frozenset(
        (curve.data_path, index)
        for curve in curves
        if channels.plays(curve)
        for index in (range(4) if curve.data_path.endswith("rotation_quaternion") else (curve.array_index,))
    )


def _components(obj: bpy.types.Object, paths: Iterable[str]) -> frozenset[tuple[str, int]]:
    """Return data path and index of all components of channels."""
    return frozenset((path, index) for path in paths for index in range(len(_present(obj, path))))


@dataclass(frozen=True)
class ChannelKeys:
    """Keys of one channel of a bone, or of another property of an object."""

    group: str  # name of the group of its F-curves, that of the bone if there is one
    path: str  # data path from the object
    frames: NDArray[Any]  # (F,) scene frames, increasing, more than `keyframes.MERGE_DISTANCE` apart
    values: NDArray[Any]  # (F, C) values in the units of the channel, one column per component
    interpolation: str = "LINEAR"  # "LINEAR", "BEZIER" (with auto-clamped handles) or "CONSTANT"
    # What kept keys after these get, so that the F-curves lead to them by the short way.
    twin: Twin | None = None
    # (C,) values before and after the span, where an F-curve without keys is to show them; None: the present
    # ones.
    beside: tuple[NDArray[Any], NDArray[Any]] | None = None

    @property
    def channel(self) -> str:
        """Name of the channel, such as "rotation_quaternion"."""
        return self.path.rpartition(".")[2]


def write(
    armature_object: bpy.types.Object,
    keys: Sequence[ChannelKeys],
    destination: Destination,
    span: tuple[float, float],
    name: str,
    undo: ExitStack | None = None,
    frame: float = 1.0,
) -> Work[bpy.types.Action]:
    """Replace the keys in a span: write all keys, or none if anything fails.

    Yields once per channel and F-curve; if the generator is closed, nothing is written.

    On a side of the span where one of the bones has keys, all of them play as before at whole frames: keys
    at the frame beside the span keep their motion, see `keyframes.write`. On a side without keys the F-curves
    of bones hold the outermost new key. Keys after those with a `twin` change by it, and rotate as before.
    Other F-curves and the slots of other objects are not changed.

    Args:
        keys: of channels of bones; of properties with CONSTANT interpolation, which nothing below refuses.
        destination: NEW_ACTION copies the present action with this object's slot only, writes there, and
            assigns the copy; the old action stays in the file with a fake user. CURRENT_ACTION writes into
            the present action, or a new one if there is none. NLA_STRIP puts a new action with only these
            keys into a strip above all others.
        span: first and last frame of keys to replace.
        name: name of a new action.
        undo: gets a callback that takes everything back.
        frame: length of a scene frame in the time of keys.

    Returns:
        The action with the keys; it is assigned to the object, with its slot, or to the new strip.

    Raises:
        InvalidInput: keys are not usable; the message names the bone and the channel.
        RigError: the object or the action cannot take them (see `obstacles`).
    """
    yield from _require_usable(keys, span)
    keyed = [(item.group, item.channel) for item in keys if item.interpolation != "CONSTANT"]
    problems = obstacles(armature_object, keyed, destination, span, frame)
    if problems:
        raise RigError(problems[0])
    animation = armature_object.animation_data
    pose = {channel: foreach(armature_object.pose.bones, channel, width) for channel, width in WIDTHS.items()}
    with ExitStack() as steps:
        steps.callback(_restore, armature_object, pose)  # runs last: keys may have been evaluated
        if destination is Destination.NLA_STRIP:
            action = yield from _write_strip(armature_object, keys, span, name, steps)
        elif destination is Destination.NEW_ACTION or animation is None or animation.action is None:
            action = yield from _write_new(armature_object, keys, span, frame, name, steps)
        else:
            action = yield from _write_in_place(armature_object, keys, span, frame, steps)
        done = steps.pop_all()
        if undo is not None:
            undo.callback(done.close)
    return action


def write_in_place(
    obj: bpy.types.Object, keys: Sequence[ChannelKeys], undo: ExitStack, frame: float = 1.0
) -> None:
    """Replace keys of channels of any object in its present action, or a new one, in the range of the keys.

    Outside the range it plays as `write` leaves it.

    Args:
        keys: all at the same frames.
        undo: gets callbacks that take everything back.
        frame: length of a scene frame in the time of keys.

    Raises:
        RigError: the action or an F-curve cannot take keys.
    """
    span = float(keys[0].frames[0]), float(keys[0].frames[-1])
    result_of(_require_usable(keys, span))
    for sentence in _refusals_in_place(obj, {item.path: item.group for item in keys}, span, frame):
        raise RigError(sentence)
    if channels.action_of(obj) is None:
        result_of(_write_new(obj, keys, span, frame, f"{obj.name} CCD", undo))
        return
    result_of(_write_in_place(obj, keys, span, frame, undo))


def _refusals_in_place(
    obj: bpy.types.Object, groups: Mapping[str, str], span: tuple[float, float], frame: float
) -> Iterator[str]:
    """Yield reasons why keys in the action of an object could not be written, would not play, or do harm.

    `groups`: as in `_group_obstacles`.
    """
    animation, where = obj.animation_data, f"'{obj.name}'"
    if animation is None:
        return
    if animation.use_tweak_mode:
        yield f"{where}: an NLA strip is being tweaked: leave tweak mode (Tab in the NLA editor) first"
    solo = channels.is_solo(animation)
    if solo or channels.has_strips(animation):
        yield from _nla_obstacles(where, animation, solo)
    if hides_strips(obj, groups, Destination.CURRENT_ACTION, span, frame):
        yield (
            f"{where}: keys of its action would hide its NLA strips at other frames: bake the strips to keys "
            "first (Edit > Bake Action in the NLA editor)"
        )
    action = animation.action
    if action is not None and (not action.is_editable or action.override_library is not None):
        yield f"Action '{action.name}' of '{obj.name}' cannot be edited: assign another one"
    if others := channels.shared_users(obj):
        names = ", ".join(f"'{name}'" for name in others)
        yield f"Action '{action.name}' of '{obj.name}' moves {names} too: make it a single user first"
    yield from _numbered_obstacles(obj, groups)
    bag = channels.bag_of(obj)
    if bag is not None:
        yield from _group_obstacles(obj, bag, groups)
    for fcurve in () if bag is None else bag.fcurves:
        if fcurve.data_path in groups:
            for sentence in curve_obstacles(fcurve, span):
                yield f"'{obj.name}': {sentence}"


def _restore(armature_object: bpy.types.Object, pose: dict[str, NDArray[np.float32]]) -> None:
    """Restore the channels of bones, in which Blender leaves the values of keys that it has evaluated."""
    context: Any = bpy.context
    context.view_layer.update()  # a pending evaluation would otherwise follow
    for name, values in pose.items():
        armature_object.pose.bones.foreach_set(name, values.ravel())
    armature_object.update_tag(refresh={"DATA"})
    context.view_layer.update()


# Checking keys ----------------------------------------------------------------------------------------------


def _require_usable(keys: Sequence[ChannelKeys], span: tuple[float, float]) -> Work[None]:
    """Raise InvalidInput for keys that no F-curve can hold, or outside a span; yields once per channel."""
    checked: set[int] = set()  # the channels of a bake share their frames
    for item in keys:
        yield
        where = f"keys of '{item.group}', {item.channel}"
        if not (np.isfinite(item.frames).all() and np.isfinite(item.values).all()):
            raise InvalidInput(f"{where}: a frame or a value is not a finite number")
        if id(item.frames) in checked:
            continue
        checked.add(id(item.frames))
        if item.frames[0] < span[0] or item.frames[-1] > span[1]:
            raise InvalidInput(f"{where}: frames outside {span[0]} to {span[1]}")
        if np.any(np.diff(item.frames.astype(np.float32)) <= np.float32(keyframes.MERGE_DISTANCE)):
            raise InvalidInput(f"{where}: frames must increase by more than {keyframes.MERGE_DISTANCE}")


def _present(obj: bpy.types.Object, path: str) -> tuple[float, ...]:
    """Return the present values of the components of a channel."""
    value: Any = obj.path_resolve(path)
    return tuple(value) if hasattr(value, "__len__") else (value,)


# Writing ----------------------------------------------------------------------------------------------------


def _write_new(
    armature_object: bpy.types.Object,
    keys: Sequence[ChannelKeys],
    span: tuple[float, float],
    frame: float,
    name: str,
    undo: ExitStack,
) -> Work[bpy.types.Action]:
    """Write to a new action, which is assigned to the object when it is complete."""
    animation = armature_object.animation_data
    old, old_slot = (animation.action, channels.slot_of(animation)) if animation is not None else (None, None)
    is_copy = old is not None and channels.is_animated(armature_object)
    action = old.copy() if old is not None and is_copy else bpy.data.actions.new(name)
    undo.callback(bpy.data.actions.remove, action)
    if action.override_library is not None:  # a copied override would refuse new keys
        action = action.make_local()
    action.name = name
    action.use_fake_user = False
    slot = channels.only_slot(armature_object, action, old_slot)
    paths = [item.path for item in keys]
    is_between = animation is not None and not is_copy and plays_below(armature_object, paths, span)
    bag = channels.ensure_bag(action, slot, ExitStack())
    yield from _fill(armature_object, bag, keys, span, None if is_between else frame, None)
    if animation is None:
        armature_object.animation_data_create()
        undo.callback(armature_object.animation_data_clear)
    else:
        undo.callback(channels.assign, armature_object, old, old_slot)
    if old is not None:
        undo.callback(setattr, old, "use_fake_user", old.use_fake_user)
        old.use_fake_user = True
    if is_between:
        undo.callback(setattr, animation, "action_extrapolation", animation.action_extrapolation)
        animation.action_extrapolation = "NOTHING"
    channels.assign(armature_object, action, slot)
    return action


def _write_in_place(
    armature_object: bpy.types.Object,
    keys: Sequence[ChannelKeys],
    span: tuple[float, float],
    frame: float,
    undo: ExitStack,
) -> Work[bpy.types.Action]:
    """Edit the present action; `undo` gets a callback for each step."""
    animation: Any = armature_object.animation_data
    action, old_slot = animation.action, channels.slot_of(animation)
    undo.callback(action.update_tag)
    slot = channels.ensure_slot(armature_object, action, undo)
    yield from _fill(armature_object, channels.ensure_bag(action, slot, undo), keys, span, frame, undo)
    undo.callback(channels.assign, armature_object, action, old_slot)
    channels.assign(armature_object, action, slot)
    action.update_tag()
    return action


def add_layer(obj: bpy.types.Object, keys: ChannelKeys, undo: ExitStack) -> None:
    """Add the values of keys to what the strips of an object play, by a strip above all others.

    Nothing is added outside their range. The present action stays above.

    Args:
        undo: gets callbacks that take everything back.
    """
    span = float(keys.frames[0]), float(keys.frames[-1])
    result_of(_require_usable([keys], span))
    result_of(_write_strip(obj, [keys], span, f"{obj.name} {keys.group}", undo, "ADD"))


def _write_strip(
    armature_object: bpy.types.Object,
    keys: Sequence[ChannelKeys],
    span: tuple[float, float],
    name: str,
    undo: ExitStack,
    blend: Literal["REPLACE", "ADD"] = "REPLACE",
) -> Work[bpy.types.Action]:
    """Write to a new action in a strip above all others.

    The former animation plays below it; an added layer leaves the present action above.
    """
    action = bpy.data.actions.new(name)
    undo.callback(bpy.data.actions.remove, action)
    slot = channels.only_slot(armature_object, action, None)
    yield from _fill(armature_object, channels.ensure_bag(action, slot, ExitStack()), keys, span, None, None)
    if armature_object.animation_data is None:
        armature_object.animation_data_create()
        undo.callback(armature_object.animation_data_clear)
    if blend == "REPLACE":
        push_down(armature_object, span, undo)
    bare = _components(armature_object, [item.path for item in keys]) - played(armature_object)
    if bare:
        # Blender would show the defaults of components that are not animated outside the new strip.
        rest = bpy.data.actions.new(f"{name} Rest")
        undo.callback(bpy.data.actions.remove, rest)
        rest_slot = channels.only_slot(armature_object, rest, None)
        bag, groups = channels.ensure_bag(rest, rest_slot, ExitStack()), dict[str, Any]()
        for item in keys:
            yield
            for index, value in enumerate(_present(armature_object, item.path)):
                if (item.path, index) in bare:
                    key = np.array([(0.0, value)], np.float32)
                    keyframes.write(_new_fcurve(bag, groups, item, index, None), key, "LINEAR", *span)
        add_strip(armature_object, rest, rest_slot, (span[0], span[0]), "HOLD", undo)
    add_strip(armature_object, action, slot, reaching(span), "NOTHING", undo, blend)
    return action


def _fill(
    obj: bpy.types.Object,
    bag: Any,
    keys: Sequence[ChannelKeys],
    span: tuple[float, float],
    frame: float | None,
    undo: ExitStack | None,
) -> Work[None]:
    """Write all channels into a bag. Without `undo` the bag itself is discarded on failure.

    `frame`: length of a scene frame in the time of keys; None: the bag plays nothing outside the span.

    All F-curves are added before any gets keys. Blender searches all F-curves for each new one. This is up to
    two times slower if keys lie between them in memory.
    """
    present = {(fcurve.data_path, fcurve.array_index): fcurve for fcurve in bag.fcurves}
    shown = [_present(obj, item.path) for item in keys]  # by components without keys
    groups, added = {group.name: group for group in bag.groups}, set()
    paths = {item.path for item in keys if item.beside is None}
    ranges = [c.range() for (path, _), c in present.items() if path in paths and not c.is_empty]
    near = keyframes.MERGE_DISTANCE
    is_led = any(first < span[0] - near for first, _ in ranges)
    is_followed = any(last > span[1] + near for _, last in ranges)
    for item in keys:
        for index in range(item.values.shape[1]):
            place = item.path, index
            if place not in present:
                present[place] = _new_fcurve(bag, groups, item, index, undo)
                added.add(place)
                yield
    for item, values in zip(keys, shown, strict=True):
        curves = []
        yield
        points = np.empty((len(values), len(item.frames), 2), np.float32)
        points[..., 0], points[..., 1] = item.frames, item.values.T
        for index, co in enumerate(points):
            place, before = (item.path, index), None
            fcurve = present[place]
            if undo is not None and place not in added:
                before = keyframes.read(fcurve)
                undo.callback(keyframes.store, fcurve, before, np.ones(len(before["co"]), np.bool_))
            if item.beside is None:
                still = values[index] if is_led else None, values[index] if is_followed else None
            else:
                still = item.beside[0][index], item.beside[1][index]
            keyframes.write(fcurve, co, item.interpolation, *span, before, frame, still)
            curves.append(fcurve)
        # A Cycles modifier would repeat the changed keys.
        if item.twin is not None and not any(map(repeats, curves)):
            for fcurve, factor, offset in zip(curves, *item.twin, strict=True):
                keyframes.change_after(fcurve, span[1], factor, offset)


def _new_fcurve(
    bag: Any, groups: dict[str, Any], item: ChannelKeys, index: int, undo: ExitStack | None
) -> bpy.types.FCurve:
    """Add an F-curve to its bone's group, with the colours that Blender gives to such a channel.

    `groups`: of the bag, by name; a new one is added.
    """
    group = groups.get(item.group)
    if group is None:
        group = groups[item.group] = bag.groups.new(item.group)
        if undo is not None:
            undo.callback(_remove_group, bag, item.group)
    # Before 4.4, assigning the group afterwards takes twice as long.
    in_group = {} if channels.has_slots() else {"action_group": item.group}
    fcurve = bag.fcurves.new(item.path, index=index, **in_group)
    if undo is not None:
        undo.callback(bag.fcurves.remove, fcurve)
    if not in_group:
        fcurve.group = group
    fcurve.color_mode = "AUTO_YRGB" if item.path.endswith(".rotation_quaternion") else "AUTO_RGB"
    return fcurve


def _remove_group(bag: Any, name: str) -> None:
    group = bag.groups.get(name)
    if group is not None:  # since 4.4 a group goes with its last F-curve
        bag.groups.remove(group)
