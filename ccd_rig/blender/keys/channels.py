# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to actions, slots, F-curves and NLA strips in every supported version of Blender.

This module has the branches on Blender's versions. Up to 4.3 an action has F-curves itself. Since 4.4 it has
slots, and the F-curves of one object are in the channel bag of its slot. Since 5.0 there is no
`Action.fcurves`. A bag is either container with `fcurves` and `groups`: the action or the channel bag.

Frames are scene frames and may be fractional. Values are in the units of channels: radians, quaternions
(w, x, y, z), metres.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from . import keyframes


def running() -> str:
    """Return the version of the running Blender, such as "4.2.3 LTS"."""
    version: str = bpy.app.version_string
    return version


def newer_than_blender() -> tuple[str, str] | None:
    """Return the file versions of the open file and of this Blender if the file's is newer; else None."""
    saved: tuple[int, ...] = tuple(bpy.data.version)
    here: tuple[int, ...] = tuple(bpy.app.version_file)
    if saved <= here:
        return None
    return ".".join(map(str, saved)), ".".join(map(str, here))


LEGACY_SLOT = "Legacy Slot"  # Blender's name for the slot of an action from before 4.4


def action_of(datablock: Any) -> Any:
    """Return the present action of a data-block, or None."""
    animation = datablock.animation_data
    return None if animation is None else animation.action


def drivers_of(datablock: Any) -> Sequence[bpy.types.FCurve]:
    """Return the drivers of a data-block."""
    animation = datablock.animation_data
    return () if animation is None else animation.drivers


def fcurves_of(datablock: bpy.types.ID) -> Iterator[bpy.types.FCurve]:
    """Yield the F-curves of a data-block's action, in its slot. Read only."""
    bag = bag_of(datablock)
    if bag is not None:
        yield from bag.fcurves


def fcurves_for(action: bpy.types.Action, datablock: bpy.types.ID) -> Iterator[bpy.types.FCurve]:
    """Yield the F-curves that an action has for a data-block, whether assigned or not. Read only.

    Raises:
        RigError: the action is not for this type of data-block, or several of its slots are.
    """
    slot = slot_for(action, datablock)
    bag = _bag_of_slot(action, slot) if has_slots() else action
    if bag is not None:
        yield from bag.fcurves


def slot_for(action: bpy.types.Action, datablock: bpy.types.ID) -> Any | None:
    """Return the slot that an action has for a data-block; None before slots existed.

    Raises:
        RigError: as `fcurves_for`.
    """
    if not has_slots():
        if action.id_root not in ("", datablock.id_type):
            raise RigError(f"action '{action.name}' is not for objects: choose another action")
        return None
    slots = [slot for slot in action.slots if slot.target_id_type in ("UNSPECIFIED", datablock.id_type)]
    if not slots:
        raise RigError(f"action '{action.name}' is not for objects: choose another action")
    named = [slot for slot in slots if slot.name_display == datablock.name]
    if len(slots) > 1 and len(named) != 1:
        names = ", ".join(slot.name_display for slot in slots)
        raise RigError(
            f"action '{action.name}' has several slots ({names}): give one of them the name of "
            f"'{datablock.name}'"
        )
    return named[0] if len(named) == 1 else slots[0]


def plays(fcurve: bpy.types.FCurve) -> bool:
    """Whether an F-curve is not muted; since 4.4 a muted group does not mute it."""
    return not (fcurve.mute or is_silent(fcurve.group))


def played(armature_object: bpy.types.Object) -> Iterator[tuple[Any, Iterator[bpy.types.FCurve]]]:
    """Yield the actions that play, with their F-curves: the present action, then strips from the top."""
    animation = armature_object.animation_data
    if animation is None:
        return
    if animation.action is not None and not is_solo(animation):
        yield animation.action, fcurves_of(armature_object)
    for strip in reversed(list(playing_strips(animation))):
        yield strip.action or {}, strip_fcurves(strip)


def numbered(obj: bpy.types.Object) -> Iterator[tuple[str, str]]:
    """Yield data paths of F-curves and drivers that play on a bone by its number, each with that by its name.

    Scripts may write them. Blender itself and all that compares data paths name the bone.
    """
    bones = () if obj.pose is None else obj.pose.bones
    curves = [curve for _, curves in played(obj) for curve in curves] + list(drivers_of(obj))
    for curve in curves:
        match = _NUMBERED.match(curve.data_path)
        if match is not None and int(match[1]) < len(bones):
            bone = bones[int(match[1])]
            yield curve.data_path, bone.path_from_id() + curve.data_path[match.end() :]


_NUMBERED = re.compile(r"pose\.bones\[\s*(\d+)\s*\]")


def played_paths(datablock: bpy.types.Object) -> set[str]:
    """Return the data paths of `played` F-curves."""
    return {curve.data_path for _, curves in played(datablock) for curve in curves}


OBJECT_CHANNELS = (
    *("location", "rotation_euler", "rotation_quaternion", "rotation_axis_angle", "scale"),
    *("delta_location", "delta_rotation_euler", "delta_rotation_quaternion", "delta_scale"),
)
"""Data paths of an object's own transform."""


def keyed_transform(obj: bpy.types.Object) -> list[str]:
    """Return the `OBJECT_CHANNELS` that an action or strips move and no driver does."""
    driven = {driver.data_path for driver in drivers_of(obj)}
    keyed = played_paths(obj) - driven
    return [path for path in OBJECT_CHANNELS if path in keyed]


def played_ranges(obj: bpy.types.Object) -> list[tuple[float, float]]:
    """Return first and last frames of an object's action and of each strip that plays, in times of keys.

    Curves of keys or samples count, or the action's manual frame range. A strip counts unless the action
    replaces all that it plays.
    """
    animation = obj.animation_data
    if animation is None:
        return []
    ranges, replaced = list[tuple[float, float]](), set[tuple[str, int]]()
    curves = () if is_solo(animation) else [curve for curve in fcurves_of(obj) if not curve.is_empty]
    if curves:
        action: Any = animation.action
        spans: list[Any] = [action.frame_range] if action.use_frame_range else [c.range() for c in curves]
        ranges += [(float(each[0]), float(each[1])) for each in spans]
        if animation.action_blend_type == "REPLACE" and animation.action_influence == 1.0:
            replaced = {(curve.data_path, curve.array_index) for curve in curves}
    for strip in playing_strips(animation):
        if any((curve.data_path, curve.array_index) not in replaced for curve in strip_fcurves(strip)):
            ranges.append((strip.frame_start, strip.frame_end))
    return ranges


def animated_components(armature_object: bpy.types.Object) -> set[tuple[str, int]]:
    """Return data path and component of all properties that actions, strips and drivers animate."""
    animated = {
        (curve.data_path, curve.array_index)
        for _, curves in played(armature_object)
        for curve in curves
        if plays(curve)
    }
    drivers = drivers_of(armature_object)
    return animated | {(driver.data_path, driver.array_index) for driver in drivers if plays(driver)}


def span(fcurves: Iterable[bpy.types.FCurve]) -> tuple[float, float]:
    """Return first and last frame of the keys or samples of F-curves; (inf, -inf) without any."""
    ranges = [fcurve.range() for fcurve in fcurves if fcurve.keyframe_points or fcurve.sampled_points]
    return (
        min((float(ends[0]) for ends in ranges), default=math.inf),
        max((float(ends[1]) for ends in ranges), default=-math.inf),
    )


def range_in_nla(fcurves: Sequence[bpy.types.FCurve]) -> tuple[float, float]:
    """Return first and last frame at which an action plays above strips if it does not extrapolate.

    As Blender has it (BKE_action_frame_range_calc), muted F-curves count, and the last modifier of each. Ends
    may be infinite; (inf, -inf) without any keys, samples and modifiers.
    """
    first, last = span(fcurves)
    for fcurve in fcurves:
        modifier: Any = fcurve.modifiers[-1] if fcurve.modifiers else None
        if modifier is None:
            continue
        if modifier.type == "LIMITS":
            first = min(first, modifier.min_x) if modifier.use_min_x else first
            last = max(last, modifier.max_x) if modifier.use_max_x else last
            continue
        is_cycle = modifier.type == "CYCLES"
        first = first if is_cycle and modifier.mode_before == "NONE" else -math.inf
        last = last if is_cycle and modifier.mode_after == "NONE" else math.inf
    return first, last


def present_keys(armature_object: bpy.types.Object, bones: Sequence[str] = ()) -> NDArray[np.float32]:
    """Return the frames of the keys of an object's action, or of its `bones`: unique and increasing."""
    prefixes = tuple(armature_object.pose.bones[bone].path_from_id() + "." for bone in bones)
    frames = [
        keyframes.times(fcurve)
        for fcurve in fcurves_of(armature_object)
        if not prefixes or fcurve.data_path.startswith(prefixes)
    ]
    return np.unique(np.concatenate(frames)) if frames else np.zeros(0, np.float32)


def values_beside(
    obj: bpy.types.Object, keyed: Iterable[tuple[str, str]], edge: float, way: int, frame: float
) -> dict[tuple[str, str], NDArray[np.float32]]:
    """Return the values (C,) of channels beside a range, as they play before it is written.

    A quaternion that continues the motion beside takes its sign from it, or the F-curves in between would
    cross zero. Empty if none of the channels has keys on that side, where the range is to hold its end.

    Args:
        keyed: pairs of bone name, empty for the object itself, and channel name.
        edge: first or last frame of the range.
        way: -1 for the frame before it, 1 for the frame after it.
        frame: length of a scene frame; a key nearer to the range counts instead.
    """
    curves: dict[str, dict[int, bpy.types.FCurve]] = {}
    for fcurve in fcurves_of(obj):
        curves.setdefault(fcurve.data_path, {})[fcurve.array_index] = fcurve
    rows = [
        (
            key,
            curves.get(data_path(obj, *key) if key[0] else key[1], {}),
            getattr(obj.pose.bones[key[0]] if key[0] else obj, key[1]),
        )
        for key in (keyed if curves else ())
    ]
    beyond = [
        way * keyframes.times(curve)
        for _, components, _ in rows
        for curve in components.values()
        if len(curve.keyframe_points) and way * curve.range()[max(way, 0)] > way * np.float32(edge)
    ]
    if not beyond:
        return {}
    nearest = min(float(each[each > way * np.float32(edge)].min()) for each in beyond)
    place = way * min(nearest, way * edge + frame)
    return {
        key: np.array(
            [
                components[i].evaluate(place)
                if i in components and not components[i].is_empty
                else present[i]
                for i in range(len(present))
            ],
            np.float32,
        )
        for key, components, present in rows
    }


def is_system_override(data_block: bpy.types.ID) -> bool:
    """Whether an override is not editable: it is there for others, and a resync drops what scripts change."""
    return data_block.override_library is not None and data_block.override_library.is_system_override


def shared_users(datablock: bpy.types.ID) -> tuple[str, ...]:
    """Return the sorted names of other data-blocks that use the same action and slot."""
    animation = datablock.animation_data
    if animation is None or animation.action is None:
        return ()
    if has_slots():  # only what uses the same slot moves with it
        users = animation.action_slot.users() if animation.action_slot is not None else ()
    else:
        data: Any = bpy.data
        users = data.user_map(subset=[animation.action])[animation.action]
    return tuple(sorted(user.name_full for user in users if user != datablock))


def is_bone_selected(pose_bone: bpy.types.PoseBone) -> bool:
    """Whether a bone is selected in Pose Mode."""
    return bool((pose_bone if _selects_pose_bones() else pose_bone.bone).select)


def select_bone(pose_bone: bpy.types.PoseBone, state: bool) -> None:
    """Select or deselect a bone in Pose Mode."""
    (pose_bone if _selects_pose_bones() else pose_bone.bone).select = state


def _selects_pose_bones() -> bool:
    """Since 5.0 the selection of Pose Mode belongs to the pose bone, before that to the armature's bone."""
    return "select" in bpy.types.PoseBone.bl_rna.properties


def addon_properties(owner: Any, is_made: bool = False) -> Any:
    """Return what a data-block or bone stores for add-ons: since 5.0 apart from its custom properties.

    Args:
        is_made: whether it is made if there is none; else it is None.
    """
    return owner.bl_system_properties_get(do_create=is_made) if _stores_apart() else owner


@cache
def _stores_apart() -> bool:
    return "bl_system_properties_get" in bpy.types.PoseBone.bl_rna.functions  # type: ignore[attr-defined]


def data_path(armature_object: bpy.types.Object, bone: str, channel: str) -> str:
    """Return the data path of a channel of a bone, as in F-curves.

    Raises:
        RigError: there is no such bone.
    """
    pose_bone = armature_object.pose.bones.get(bone) if armature_object.pose is not None else None
    if pose_bone is None:
        raise RigError(f"Armature '{armature_object.name}' has no bone '{bone}': it was removed or renamed")
    return str(pose_bone.path_from_id(channel))


# Bags: branches on versions ---------------------------------------------------------------------------------


@cache
def has_slots() -> bool:
    """Whether actions have slots: since 4.4 (4.5 among the supported releases)."""
    return "slots" in bpy.types.Action.bl_rna.properties


def bag_of(datablock: bpy.types.ID) -> Any | None:
    """Return the container of the F-curves that a data-block's action has for it, or None."""
    animation = datablock.animation_data
    if animation is None or animation.action is None:
        return None
    return _bag_of_slot(animation.action, animation.action_slot) if has_slots() else animation.action


def every_bag(datablock: bpy.types.ID) -> list[tuple[Any, Any]]:
    """Return the actions that a data-block uses, each with its bag, once.

    They are the present action, those of all NLA strips, and the one set aside in tweak mode.
    """
    animation = datablock.animation_data
    if animation is None:
        return []
    pairs = [(animation.action, bag_of(datablock))]
    pairs += [(strip.action, _bag_of_strip(strip)) for strip in _every_strip(animation)]
    aside = animation.action_tweak_storage
    if aside is not None:
        bag = aside
        if has_slots():
            handle = animation.action_slot_handle_tweak_storage
            bag = _bag_of_slot(aside, next((slot for slot in aside.slots if slot.handle == handle), None))
        pairs.append((aside, bag))
    return list({bag.as_pointer(): (action, bag) for action, bag in pairs if bag is not None}.values())


def idle_bags(datablock: bpy.types.ID) -> Iterator[tuple[Any, Any]]:
    """Yield the actions that nothing uses, each with a bag that may be for a data-block.

    Since actions have slots, those with the name of another data-block are left out.
    """
    used = {bag.as_pointer() for _, bag in every_bag(datablock)}  # that in tweak storage has no user
    for action in bpy.data.actions:
        if not has_slots():
            if action.users == int(action.use_fake_user) and action.id_root in ("", datablock.id_type):
                yield action, action
            continue
        for slot in action.slots:
            is_named = slot.name_display in (datablock.name, LEGACY_SLOT)
            is_for = slot.target_id_type in ("UNSPECIFIED", datablock.id_type) and is_named
            bag = _bag_of_slot(action, slot) if is_for and not slot.users() else None
            if bag is not None and bag.as_pointer() not in used:
                yield action, bag


def _bag_of_slot(action: bpy.types.Action, slot: Any | None) -> Any | None:
    if slot is None:
        return None
    bags = (strip.channelbag(slot) for layer in action.layers for strip in layer.strips)
    return next((bag for bag in bags if bag is not None), None)


def is_animated(datablock: bpy.types.ID) -> bool:
    """Whether a data-block has an action, and a slot in it if actions have slots."""
    animation = datablock.animation_data
    return (
        animation is not None
        and animation.action is not None
        and (not has_slots() or animation.action_slot is not None)
    )


def is_silent(group: bpy.types.ActionGroup | None) -> bool:
    """Whether a group mutes its F-curves; since 4.4 groups do not."""
    return group is not None and group.mute and not has_slots()


def is_solo(animation: bpy.types.AnimData) -> bool:
    """Whether an NLA track is solo: the action and all other tracks are silent."""
    return bool(animation.use_nla) and any(track.is_solo for track in animation.nla_tracks)


def playing_tracks(animation: bpy.types.AnimData) -> list[bpy.types.NlaTrack]:
    """Return the NLA tracks that play, from the lowest."""
    solo, tracks = is_solo(animation), animation.nla_tracks if animation.use_nla else ()
    return [track for track in tracks if (track.is_solo if solo else not track.mute)]


def playing_strips(animation: bpy.types.AnimData) -> Iterator[bpy.types.NlaStrip]:
    """Yield the strips that play, from the lowest track."""
    for track in playing_tracks(animation):
        yield from (strip for strip in track.strips if not strip.mute)


def has_strips(animation: bpy.types.AnimData) -> bool:
    """Whether strips play below the action; without any, Blender ignores the action's blending.

    Muted strips of a track that plays count as well.
    """
    return any(len(track.strips) > 0 for track in playing_tracks(animation))


def strip_fcurves(strip: bpy.types.NlaStrip) -> Iterator[bpy.types.FCurve]:
    """Yield the F-curves of an NLA strip; for a meta strip, of all strips in it. Read only."""
    for inner in strip.strips:
        yield from strip_fcurves(inner)
    yield from _curves_of_strip(strip)


def strip_key_times(
    animation: bpy.types.AnimData, counts: Callable[[bpy.types.FCurve], bool]
) -> Iterator[NDArray[np.float64]]:
    """Yield the times of keys of the strips that play, in scene frames of the NLA.

    If the time of a strip is animated, the keys of that animation count instead.

    Args:
        counts: selects F-curves.
    """
    for strip in playing_strips(animation):
        yield from _times_in(strip, counts)


def _times_in(
    strip: bpy.types.NlaStrip, counts: Callable[[bpy.types.FCurve], bool]
) -> Iterator[NDArray[np.float64]]:
    if strip.mute:
        return
    if strip.type == "META":
        for inner in strip.strips:
            yield from _times_in(inner, counts)
        return
    curves = [curve for curve in _curves_of_strip(strip) if counts(curve)]
    if not curves:
        return
    if strip.use_animated_time:
        yield from (keyframes.times(c).astype(np.float64) for c in strip.fcurves if "time" in c.data_path)
        return
    first, last, scale = strip.action_frame_start, strip.action_frame_end, strip.scale
    times = np.unique(np.concatenate([keyframes.times(curve).astype(np.float64) for curve in curves]))
    times = times[(times >= first) & (times <= last)]
    into = (last - times if strip.use_reverse else times - first) * scale
    for turn in range(math.ceil(strip.repeat)):
        times_in_strips = strip.frame_start + into + turn * (last - first) * scale
        yield np.sort(times_in_strips[times_in_strips <= strip.frame_end])


def _every_strip(animation: bpy.types.AnimData) -> Iterator[bpy.types.NlaStrip]:
    """Yield all strips, muted ones and those in meta strips too."""
    strips = [strip for track in animation.nla_tracks for strip in track.strips]
    while strips:
        strip = strips.pop()
        strips += strip.strips
        yield strip


def _bag_of_strip(strip: bpy.types.NlaStrip) -> Any | None:
    if strip.action is None:
        return None
    return _bag_of_slot(strip.action, strip.action_slot) if has_slots() else strip.action


def _curves_of_strip(strip: bpy.types.NlaStrip) -> Iterator[bpy.types.FCurve]:
    bag = _bag_of_strip(strip)
    if bag is not None:
        yield from bag.fcurves


def strip_of(
    track: bpy.types.NlaTrack, action: bpy.types.Action, slot: Any | None, start: float, end: float
) -> bpy.types.NlaStrip:
    """Add an NLA strip to an empty track, which plays an action unscaled from frame `start` to `end`."""
    strip = track.strips.new(action.name, 0, action)
    if slot is not None:
        strip.action_slot = slot
    # Setting one of these changes others: in this order nothing is scaled.
    strip.action_frame_start, strip.action_frame_end = start, end
    strip.frame_start, strip.frame_end = start, end
    return strip


def slot_of(animation: bpy.types.AnimData | None) -> Any | None:
    """Return the slot in use; None before slots existed."""
    return animation.action_slot if animation is not None and has_slots() else None


def ensure_bag(action: bpy.types.Action, slot: Any | None, undo: ExitStack) -> Any:
    """Return the bag of a slot, adding it if it is missing; `undo` removes it again."""
    if not has_slots():
        return action
    bag = _bag_of_slot(action, slot)
    if bag is not None:
        return bag
    if not action.layers:
        undo.callback(action.layers.remove, action.layers.new("Layer"))
    layer = action.layers[0]  # Blender allows one layer with one strip
    if not layer.strips:
        undo.callback(layer.strips.remove, layer.strips.new(type="KEYFRAME"))
    strip = layer.strips[0]
    bag = strip.channelbag(slot, ensure=True)
    undo.callback(strip.channelbags.remove, bag)
    return bag


def ensure_slot(armature_object: bpy.types.Object, action: bpy.types.Action, undo: ExitStack) -> Any | None:
    """Return the object's slot in its action: the one in use, its former or an unused one, or a new one."""
    if not has_slots():
        return None
    animation = armature_object.animation_data
    if animation.action_slot is not None:
        return animation.action_slot
    for slot in animation.action_suitable_slots:
        is_former = slot.identifier in (animation.last_slot_identifier, f"OB{armature_object.name}")
        if (is_former or slot.name_display == LEGACY_SLOT) and not slot.users():
            return slot
    slot = action.slots.new(armature_object.id_type, armature_object.name)
    undo.callback(action.slots.remove, slot)
    return slot


def assign(armature_object: bpy.types.Object, action: bpy.types.Action | None, slot: Any | None) -> None:
    """Assign an action and a slot to an object: Blender itself assigns only a slot of the same name."""
    animation = armature_object.animation_data
    animation.action = action
    if action is not None and has_slots():
        animation.action_slot = slot


def only_slot(armature_object: bpy.types.Object, action: bpy.types.Action, kept: Any | None) -> Any | None:
    """Keep one slot of a copied action and remove the others with their F-curves; None: add a new slot."""
    if not has_slots():
        return None
    for slot in list(action.slots):
        if kept is None or slot.handle != kept.handle:  # a copy keeps the handles
            action.slots.remove(slot)
    if not action.slots:
        action.slots.new(armature_object.id_type, armature_object.name)
    return action.slots[0]


def obstacle(armature_object: bpy.types.Object, path: str) -> str:
    """Say why the animation of a property cannot be copied, as a predicate of its name; empty if it can."""
    curve = _curve(armature_object, path)
    animation = armature_object.animation_data
    if curve is None or animation is None or animation.action is None:
        return ""
    action = animation.action
    if not action.is_editable:
        return f"has keys in action '{action.name}', which is linked from a library: make it local"
    if others := shared_users(armature_object):
        names = ", ".join(f"'{name}'" for name in others)
        return f"has keys in action '{action.name}', which moves {names} too: make it a single user"
    return ""


def is_moved(armature_object: bpy.types.Object, path: str) -> bool:
    """Whether the present action or a driver animates a property."""
    driven = any(driver.data_path == path for driver in drivers_of(armature_object))
    return driven or _curve(armature_object, path) is not None


def in_strips(armature_object: bpy.types.Object, path: str) -> bool:
    """Whether NLA strips animate a property; `copy` does not copy their F-curves."""
    animation = armature_object.animation_data
    strips = () if animation is None else _every_strip(animation)
    return any(curve.data_path == path for strip in strips for curve in _curves_of_strip(strip))


def copy(armature_object: bpy.types.Object, source: str, path: str) -> None:
    """Copy the F-curve and the driver of a property to another one.

    Args:
        armature_object: owns both; `obstacle` returns nothing.
        source: data path of the animated property.
        path: data path of the other one, which is not animated.
    """
    animation = armature_object.animation_data
    if animation is None:
        return
    driver = next((driver for driver in animation.drivers if driver.data_path == source), None)
    if driver is not None:
        animation.drivers.from_existing(src_driver=driver).data_path = path
    curve = _curve(armature_object, source)
    if curve is None:
        return
    copied = bag_of(armature_object).fcurves.new(path)
    keys = keyframes.read(curve)
    keyframes.store(copied, keys, np.ones(len(keys["co"]), np.bool_))
    copied.extrapolation, copied.mute = curve.extrapolation, curve.mute
    for modifier in curve.modifiers:
        copied_modifier = copied.modifiers.new(modifier.type)
        for name, prop in modifier.bl_rna.properties.items():
            if not prop.is_readonly and name != "active":
                setattr(copied_modifier, name, getattr(modifier, name))


def _curve(armature_object: bpy.types.Object, path: str) -> bpy.types.FCurve | None:
    return next((c for c in fcurves_of(armature_object) if c.data_path == path), None)
