"""Content of the open file by Blender's API alone: F-curves by keys, channels, drivers, strips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bpy

CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
KEY = ("co", "handle_left", "handle_right")


def curves_of(action: Any) -> Iterator[tuple[str, Any]]:
    """(slot, F-curve) of an action, layered or not."""
    if getattr(action, "layers", None) is not None and len(action.layers):
        slots = {slot.handle: slot.identifier for slot in action.slots}
        for layer in action.layers:
            for strip in layer.strips:
                for bag in strip.channelbags:
                    for curve in bag.fcurves:
                        yield slots.get(bag.slot_handle, "?"), curve
    elif hasattr(action, "fcurves"):
        for curve in action.fcurves:
            yield "", curve


def action_content(action: Any) -> dict[Any, Any]:
    """Return an action's F-curves as {(slot, path, index): (keys, other properties)}."""
    content = {}
    for slot, curve in curves_of(action):
        keys = [
            (*(tuple(getattr(point, name)) for name in KEY), point.interpolation, point.easing)
            for point in curve.keyframe_points
        ]
        rest = (curve.extrapolation, curve.mute, len(curve.modifiers))
        content[slot, curve.data_path, curve.array_index] = (keys, rest)
    return content


def content() -> dict[str, Any]:
    """{where: what} of the whole file, as it is once evaluated."""
    bpy.context.view_layer.update()
    entries: dict[str, Any] = {f"action {a.name}": action_content(a) for a in bpy.data.actions}
    for thing in bpy.data.objects:
        where = f"object {thing.name}"
        entries[f"{where} place"] = [tuple(getattr(thing, name)) for name in CHANNELS]
        above = thing.parent and thing.parent.name
        entries[f"{where} ties"] = (thing.data and thing.data.name, above, thing.parent_bone)
        entries[f"{where} constraints"] = [(c.type, c.name, c.mute, c.influence) for c in thing.constraints]
        entries[f"{where} own"] = repr(thing.get("own"))
        entries |= _animation(where, thing.animation_data)
        for bone in thing.pose.bones if thing.pose is not None else ():
            part = f"{where} bone {bone.name}"
            entries[f"{part} constraints"] = [(c.type, c.mute, c.influence) for c in bone.constraints]
            entries[f"{part} mode"] = (
                bone.rotation_mode,
                tuple(bone.lock_rotation),
                tuple(bone.lock_location),
            )
            for name in CHANNELS:
                entries[f"{part} channel {name}"] = tuple(getattr(bone, name))
    for scene in bpy.data.scenes:
        range_ = (scene.frame_start, scene.frame_end, scene.frame_current, scene.frame_subframe)
        things = sorted(thing.name for thing in scene.objects)
        entries[f"scene {scene.name}"] = (range_, things, repr(scene.get("kept")))
    counts = ("scenes", "objects", "armatures", "collections", "texts", "worlds")
    entries["counts"] = {name: len(getattr(bpy.data, name)) for name in counts}
    return entries


def is_baked() -> bool:
    """Whether the open file has the keys of a bake."""
    rig = bpy.data.objects["Rig"]
    return any("rotation" in path for _, path, _ in action_content(rig.animation_data.action))


def stored() -> dict[str, Any]:
    """{where: what} of the extension's values in the whole file."""
    things = [*bpy.data.objects, *bpy.data.armatures, *bpy.data.actions]
    things += [bone for thing in bpy.data.objects if thing.pose is not None for bone in thing.pose.bones]
    content = {}
    for thing in things:
        group = thing.bl_system_properties_get() if hasattr(thing, "bl_system_properties_get") else thing
        values = group.get("ccd_rig") if group is not None else None
        content[repr(thing)] = values.to_dict() if values is not None else {}
    return content


def _animation(where: str, animation: Any) -> dict[str, Any]:
    if animation is None:
        return {f"{where} action": "", f"{where} drivers": [], f"{where} strips": []}
    slot = getattr(animation, "action_slot", None)
    strips = [
        (track.name, track.mute, [_strip(strip) for strip in track.strips]) for track in animation.nla_tracks
    ]
    drivers = [(d.data_path, d.array_index, d.driver.expression) for d in animation.drivers]
    action = animation.action and animation.action.name
    return {
        f"{where} action": (action, slot and slot.identifier),
        f"{where} drivers": drivers,
        f"{where} strips": strips,
    }


def _strip(strip: Any) -> tuple[Any, ...]:
    action = strip.action and strip.action.name
    return (strip.name, action, strip.frame_start, strip.frame_end, strip.blend_type, strip.influence)


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the keys at which two contents differ; NaN equals NaN."""
    keys = [*before, *(key for key in after if key not in before)]
    return [key for key in keys if repr(before.get(key)) != repr(after.get(key))]
