"""Actions, slots and F-curves: the keys of an object, read and written, on every supported Blender.

This is the only module that knows how Blender's versions differ. Up to 4.3 an action holds F-curves itself.
Since 4.4 it holds slots, and the F-curves of one object are in the channel bag of its slot; since 5.0
`Action.fcurves` is gone. All of these are containers with `fcurves` and `groups`: here they are called bags.

Frames are scene frames and may be fractional. Values are what a channel holds: radians, quaternions
(w, x, y, z), metres.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, RigError
from . import keyframes

LEGACY_SLOT = "Legacy Slot"  # Blender's name for the slot of an action that was saved before there were slots


class Destination(Enum):
    """Where the keys go."""

    NEW_ACTION = "NEW_ACTION"
    CURRENT_ACTION = "CURRENT_ACTION"


@dataclass(frozen=True)
class BoneKeys:
    """The keys of one channel of one bone.

    Attributes:
        bone: name of the pose bone; its F-curves are grouped under this name.
        channel: property of the pose bone, for example "rotation_quaternion".
        frames: (F,) scene frames, increasing, at least `keyframes.MERGE_DISTANCE` apart.
        values: (F, C) values in the channel's own units, one column per component.
        interpolation: "LINEAR" or "BEZIER" (with auto-clamped handles).
    """

    bone: str
    channel: str
    frames: NDArray[Any]
    values: NDArray[Any]
    interpolation: str = "LINEAR"


@dataclass(frozen=True)
class _Curve:
    """What one F-curve gets."""

    data_path: str
    index: int
    group: str
    keys: keyframes.Keys


def write(
    armature_object: bpy.types.Object,
    keys: Sequence[BoneKeys],
    destination: Destination,
    frame_start: float,
    frame_end: float,
    name: str,
) -> bpy.types.Action:
    """Write keys in place of those in [frame_start, frame_end]: all of them, or none if anything goes wrong.

    Keys outside the range keep every bit, handles included. Other F-curves and the slots of other objects are
    not touched.

    Args:
        destination: NEW_ACTION copies the present action with this object's slot only, writes there, and
            assigns the copy; the old action stays in the file with a fake user. CURRENT_ACTION writes into
            the present action; if there is none, one is made.
        name: name of the action, if one is made.

    Returns:
        The action that holds the keys; it is assigned to the object, with its slot.

    Raises:
        InvalidInput: the keys themselves are not usable; the message names the bone and the channel.
        RigError: the object or the action cannot take them (see `obstacles`).
    """
    curves = _curves(armature_object, keys, frame_start, frame_end)
    found = obstacles(armature_object, [(item.bone, item.channel) for item in keys], destination)
    if found:
        raise RigError(found[0])
    span = (frame_start, frame_end)
    animation = armature_object.animation_data
    if destination is Destination.CURRENT_ACTION and animation is not None and animation.action is not None:
        return _write_in_place(armature_object, curves, span)
    return _write_new(armature_object, curves, span, name)


def obstacles(
    armature_object: bpy.types.Object, channels: Sequence[tuple[str, str]], destination: Destination
) -> tuple[str, ...]:
    """Why keys on these channels could not be written or would not play: a sentence each, or none.

    Args:
        channels: pairs of bone name and channel name.
    """
    found = [*_object_obstacles(armature_object, destination)]
    bones = {_data_path(armature_object, bone, channel): bone for bone, channel in channels}
    animation = armature_object.animation_data
    for driver in animation.drivers if animation is not None else ():
        if driver.data_path in bones and not driver.mute:
            found.append(
                f"Bone '{bones[driver.data_path]}': {_label(driver)} has a driver, so keys would not play: "
                "delete or mute the driver"
            )
    for fcurve in fcurves_of(armature_object):
        if fcurve.data_path in bones:
            found += [f"Bone '{bones[fcurve.data_path]}': {text}" for text in _curve_obstacles(fcurve)]
    return tuple(found)


def fcurves_of(datablock: bpy.types.ID) -> Iterator[bpy.types.FCurve]:
    """The F-curves that animate a data-block now: those of its action, in its slot. Read only."""
    bag = _bag(datablock)
    if bag is not None:
        yield from bag.fcurves


def fcurves_for(action: bpy.types.Action, datablock: bpy.types.ID) -> Iterator[bpy.types.FCurve]:
    """The F-curves that would animate a data-block if it got this action. Read only.

    Raises:
        RigError: the action is not for this kind of data-block, or it is not clear which of its slots is.
    """
    if not _has_slots():
        if action.id_root not in ("", datablock.id_type):
            raise RigError(f"action '{action.name}' is not for objects: choose another action")
        yield from action.fcurves
        return
    slots = [slot for slot in action.slots if slot.target_id_type in ("UNSPECIFIED", datablock.id_type)]
    if not slots:
        raise RigError(f"action '{action.name}' is not for objects: choose another action")
    own = [slot for slot in slots if slot.name_display == datablock.name]
    if len(slots) > 1 and len(own) != 1:
        names = ", ".join(slot.name_display for slot in slots)
        raise RigError(
            f"action '{action.name}' has several slots ({names}): give one of them the name of "
            f"'{datablock.name}'"
        )
    bag = _bag_of_slot(action, own[0] if len(own) == 1 else slots[0])
    if bag is not None:
        yield from bag.fcurves


def plays(fcurve: bpy.types.FCurve) -> bool:
    """Whether an F-curve has an effect; since 4.4 muted groups play nevertheless."""
    return not (fcurve.mute or (fcurve.group is not None and fcurve.group.mute and not _has_slots()))


def span(fcurves: Sequence[bpy.types.FCurve]) -> tuple[float, float]:
    """First and last frame of the keys of F-curves, of which at least one has a key."""
    ranges = [fcurve.range() for fcurve in fcurves if len(fcurve.keyframe_points)]
    return min(ends[0] for ends in ranges), max(ends[1] for ends in ranges)


def present_keys(armature_object: bpy.types.Object, bones: Sequence[str] = ()) -> NDArray[np.float32]:
    """Frames at which the object's action has keys, increasing, each once; with `bones`, only their keys."""
    prefixes = tuple(armature_object.pose.bones[bone].path_from_id() + "." for bone in bones)
    frames = [
        keyframes.times(fcurve)
        for fcurve in fcurves_of(armature_object)
        if not prefixes or fcurve.data_path.startswith(prefixes)
    ]
    return np.unique(np.concatenate(frames)) if frames else np.zeros(0, np.float32)


def values_before(
    armature_object: bpy.types.Object, bone: str, channel: str, frame: float
) -> NDArray[np.float32] | None:
    """Values (C,) of a channel at its last key before a frame; None if a component has no key there.

    A quaternion that continues kept keys takes its sign from here, or the F-curves between would cross zero.
    """
    path = _data_path(armature_object, bone, channel)
    curves = {item.array_index: item for item in fcurves_of(armature_object) if item.data_path == path}
    width = _width(armature_object, bone, channel)
    earlier = [times[times < np.float32(frame)] for times in map(keyframes.times, curves.values())]
    if len(curves) < width or any(len(times) == 0 for times in earlier):
        return None
    last = max(float(times[-1]) for times in earlier)
    return np.array([curves[index].evaluate(last) for index in range(width)], np.float32)


def shared_users(datablock: bpy.types.ID) -> tuple[str, ...]:
    """Names of the other data-blocks that move when the keys of this one are edited in place, sorted."""
    animation = datablock.animation_data
    if animation is None or animation.action is None:
        return ()
    if _has_slots():  # only what uses the same slot moves with it
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


# Which F-curves are meant -------------------------------------------------------------------------


def _curves(
    armature_object: bpy.types.Object, keys: Sequence[BoneKeys], frame_start: float, frame_end: float
) -> list[_Curve]:
    """What each F-curve gets, after every value has been looked at."""
    if not (np.isfinite(frame_start) and np.isfinite(frame_end) and frame_start <= frame_end):
        raise InvalidInput(f"frames {frame_start} to {frame_end}: the start must not lie after the end")
    if not keys:
        raise InvalidInput("there are no keys to write")
    curves: dict[str, list[_Curve]] = {}
    for item in keys:
        path = _data_path(armature_object, item.bone, item.channel)
        where = f"keys of bone '{item.bone}', {item.channel}"
        width = _width(armature_object, item.bone, item.channel)
        frames, values = np.asarray(item.frames, np.float64), np.asarray(item.values, np.float64)
        if path in curves:
            raise InvalidInput(f"{where}: given twice")
        if frames.ndim != 1 or len(frames) == 0 or values.shape != (len(frames), width):
            shapes = f"{frames.shape} and {values.shape}"
            raise InvalidInput(f"{where}: needs (F,) frames and (F, {width}) values, not {shapes}")
        if not (np.isfinite(frames).all() and np.isfinite(values).all()):
            raise InvalidInput(f"{where}: a frame or a value is not a finite number")
        if frames[0] < frame_start or frames[-1] > frame_end:
            raise InvalidInput(f"{where}: frames outside {frame_start} to {frame_end}")
        stored = frames.astype(np.float32)
        if np.any(np.diff(stored) < np.float32(keyframes.MERGE_DISTANCE)):
            raise InvalidInput(f"{where}: frames must increase by at least {keyframes.MERGE_DISTANCE}")
        if item.interpolation not in ("LINEAR", "BEZIER"):
            raise InvalidInput(f"{where}: interpolation '{item.interpolation}' is neither LINEAR nor BEZIER")
        curves[path] = [
            _Curve(path, index, item.bone, keyframes.new(stored, values[:, index], item.interpolation))
            for index in range(width)
        ]
    return [curve for group in curves.values() for curve in group]


def _data_path(armature_object: bpy.types.Object, bone: str, channel: str) -> str:
    pose_bone = armature_object.pose.bones.get(bone) if armature_object.pose is not None else None
    if pose_bone is None:
        raise RigError(f"Armature '{armature_object.name}' has no bone '{bone}': it was removed or renamed")
    return str(pose_bone.path_from_id(channel))


def _width(armature_object: bpy.types.Object, bone: str, channel: str) -> int:
    """Number of components of a channel."""
    return max(1, armature_object.pose.bones[bone].bl_rna.properties[channel].array_length)


def _label(fcurve: bpy.types.FCurve) -> str:
    return f"{fcurve.data_path.rpartition('.')[2]}[{fcurve.array_index}]"


# What stands in the way ---------------------------------------------------------------------------


def _object_obstacles(armature_object: bpy.types.Object, destination: Destination) -> Iterator[str]:
    """What keeps the whole object from taking or playing keys."""
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
        # What stands in the action's place now is the strip's action, so nothing more can be said.
        yield f"{where}: an NLA strip is being tweaked: leave tweak mode (Tab in the NLA editor) first"
        return
    if animation.use_nla and len(animation.nla_tracks) > 0:
        yield from _nla_obstacles(where, animation)
    action = animation.action
    if action is None or destination is Destination.NEW_ACTION:
        return
    if action.library is not None:
        yield f"Action '{action.name}' is linked from '{action.library.filepath}': choose New Action"
    elif action.override_library is not None:
        yield f"Action '{action.name}' is a library override, whose keys cannot be edited: choose New Action"


def _nla_obstacles(where: str, animation: bpy.types.AnimData) -> Iterator[str]:
    """The action is the top layer of the NLA: it must replace what is below it."""
    blend, influence = animation.action_blend_type, animation.action_influence
    if any(track.is_solo for track in animation.nla_tracks):
        yield f"{where}: an NLA track is solo, so keys of the action would not play: switch solo off"
    if blend != "REPLACE":
        yield f"{where}: the action blends with the NLA by {blend}: set its blending to Replace"
    if influence < 1.0:
        yield f"{where}: the action's influence in the NLA is {influence:.3f}: set it to 1"


def _curve_obstacles(fcurve: bpy.types.FCurve) -> Iterator[str]:
    """What keeps one F-curve from taking or playing keys."""
    what = f"the F-curve of {_label(fcurve)}"
    group = fcurve.group
    if fcurve.lock:
        yield f"{what} is locked: unlock it in the Graph Editor"
    elif group is not None and group.lock:
        yield f"{what} is in the locked group '{group.name}': unlock the group in the Graph Editor"
    if fcurve.mute:
        yield f"{what} is muted, so its keys would not play: unmute it in the Graph Editor"
    elif group is not None and group.mute and not _has_slots():  # since 4.4 muted groups play nevertheless
        yield f"{what} is in the muted group '{group.name}', so its keys would not play: unmute the group"
    if len(fcurve.sampled_points) > 0:
        yield f"{what} holds samples instead of keys: use Key > Samples to Keys in the Graph Editor"
    for modifier in fcurve.modifiers:
        # Cycles repeats what lies between the first and the last key, and leaves that as it is.
        if not modifier.mute and modifier.type != "CYCLES":
            yield f"{what} has the modifier {modifier.type}, which would change its keys: mute or remove it"


# Bags: where actions of all versions are opened ---------------------------------------------------


def _has_slots() -> bool:
    """Since 4.4 (4.5 among the supported releases) an action holds slots."""
    return "slots" in bpy.types.Action.bl_rna.properties


def _bag(datablock: bpy.types.ID) -> Any | None:
    """The container of the F-curves that animate a data-block now, or None."""
    animation = datablock.animation_data
    if animation is None or animation.action is None:
        return None
    return _bag_of_slot(animation.action, animation.action_slot) if _has_slots() else animation.action


def _bag_of_slot(action: bpy.types.Action, slot: Any | None) -> Any | None:
    if slot is None:
        return None
    bags = (strip.channelbag(slot) for layer in action.layers for strip in layer.strips)
    return next((bag for bag in bags if bag is not None), None)


def _slot(animation: bpy.types.AnimData | None) -> Any | None:
    """The slot in use; None also where there are no slots."""
    return animation.action_slot if animation is not None and _has_slots() else None


def _ensure_bag(action: bpy.types.Action, slot: Any | None, undo: ExitStack) -> Any:
    """The bag of a slot, made if it is not there; `undo` takes it away again."""
    if not _has_slots():
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


def _ensure_slot(armature_object: bpy.types.Object, action: bpy.types.Action, undo: ExitStack) -> Any | None:
    """The object's slot in its action: that in use, else one that was its own or nobody's, else a new one."""
    if not _has_slots():
        return None
    animation = armature_object.animation_data
    if animation.action_slot is not None:
        return animation.action_slot
    for slot in animation.action_suitable_slots:
        was_own = slot.identifier in (animation.last_slot_identifier, f"OB{armature_object.name}")
        if (was_own or slot.name_display == LEGACY_SLOT) and not slot.users():
            return slot
    slot = action.slots.new(armature_object.id_type, armature_object.name)
    undo.callback(action.slots.remove, slot)
    return slot


def _assign(armature_object: bpy.types.Object, action: bpy.types.Action | None, slot: Any | None) -> None:
    """Give an object its action and its slot; Blender by itself assigns only a slot of the same name."""
    animation = armature_object.animation_data
    animation.action = action
    if action is not None and _has_slots():
        animation.action_slot = slot


# Writing ------------------------------------------------------------------------------------------


def _write_new(
    armature_object: bpy.types.Object, curves: Sequence[_Curve], span: tuple[float, float], name: str
) -> bpy.types.Action:
    """Everything is built in an action that nothing uses; the object gets it when it is complete."""
    animation = armature_object.animation_data
    old, old_slot = (animation.action, _slot(animation)) if animation is not None else (None, None)
    is_animated = old is not None and (old_slot is not None or not _has_slots())
    with ExitStack() as undo:
        action = old.copy() if is_animated else bpy.data.actions.new(name)
        undo.callback(bpy.data.actions.remove, action)
        if action.override_library is not None:  # as its original, it would refuse new keys
            action = action.make_local(clear_liboverride=True)
        action.name = name
        action.use_fake_user = False
        slot = _only_slot(armature_object, action, old_slot)
        # What is made inside the new action goes with it: single steps need not be taken back.
        _fill(_ensure_bag(action, slot, ExitStack()), curves, span, ExitStack())
        if animation is None:
            armature_object.animation_data_create()
            undo.callback(armature_object.animation_data_clear)
        else:
            undo.callback(_assign, armature_object, old, old_slot)
        if old is not None:
            undo.callback(setattr, old, "use_fake_user", old.use_fake_user)
            old.use_fake_user = True
        _assign(armature_object, action, slot)
        undo.pop_all()
    return action


def _only_slot(armature_object: bpy.types.Object, action: bpy.types.Action, wanted: Any | None) -> Any | None:
    """Remove all slots of a copied action but one, and with them their F-curves; without one, make it."""
    if not _has_slots():
        return None
    for slot in list(action.slots):
        if wanted is None or slot.handle != wanted.handle:  # a copy keeps the handles
            action.slots.remove(slot)
    if not action.slots:
        action.slots.new(armature_object.id_type, armature_object.name)
    return action.slots[0]


def _write_in_place(
    armature_object: bpy.types.Object, curves: Sequence[_Curve], span: tuple[float, float]
) -> bpy.types.Action:
    """The present action is edited; each step says how it is taken back."""
    animation: Any = armature_object.animation_data
    action, old_slot = animation.action, _slot(animation)
    with ExitStack() as undo:
        undo.callback(action.update_tag)
        slot = _ensure_slot(armature_object, action, undo)
        _fill(_ensure_bag(action, slot, undo), curves, span, undo)
        if old_slot != slot:
            undo.callback(_assign, armature_object, action, old_slot)
            _assign(armature_object, action, slot)
        undo.pop_all()
    action.update_tag()
    return action


def _fill(bag: Any, curves: Sequence[_Curve], span: tuple[float, float], undo: ExitStack) -> None:
    """Write all curves into a bag."""
    present = {(fcurve.data_path, fcurve.array_index): fcurve for fcurve in bag.fcurves}
    for curve in curves:
        fcurve = present.get((curve.data_path, curve.index))
        if fcurve is None:
            fcurve = _new_fcurve(bag, curve, undo)
            before = keyframes.read(fcurve)
        else:
            before = keyframes.read(fcurve)
            undo.callback(keyframes.store, fcurve, before, np.ones(len(before["co"]), np.bool_))
        keyframes.store(fcurve, *keyframes.merged(before, curve.keys, *span))


def _new_fcurve(bag: Any, curve: _Curve, undo: ExitStack) -> bpy.types.FCurve:
    """An empty F-curve in its bone's group, with the colours that Blender gives to such a channel."""
    group = bag.groups.get(curve.group)
    if group is None:
        group = bag.groups.new(curve.group)
        undo.callback(_remove_group, bag, curve.group)
    fcurve = bag.fcurves.new(curve.data_path, index=curve.index)
    undo.callback(bag.fcurves.remove, fcurve)
    fcurve.group = group
    fcurve.color_mode = "AUTO_YRGB" if curve.data_path.endswith(".rotation_quaternion") else "AUTO_RGB"
    return fcurve


def _remove_group(bag: Any, name: str) -> None:
    group = bag.groups.get(name)
    if group is not None:  # since 4.4 a group goes with its last F-curve
        bag.groups.remove(group)
