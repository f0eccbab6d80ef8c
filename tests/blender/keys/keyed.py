"""Armatures with keys, and what an action holds, for the tests of keys."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

FIELDS = (
    "co",
    "handle_left",
    "handle_right",
    "handle_left_type",
    "handle_right_type",
    "interpolation",
    "easing",
    "type",
    "back",
    "amplitude",
    "period",
    "select_control_point",
    "select_left_handle",
    "select_right_handle",
)
FLOAT32 = 1e-6


def make_armature(name="Rig", bones=("upper", 'lo"wer')):
    """An armature object in the scene, a chain of unit bones along +Y."""
    data = bpy.data.armatures.new(name)
    armature_object = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(armature_object)
    bpy.context.view_layer.objects.active = armature_object
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for index, bone in enumerate(bones):
        edit_bone = data.edit_bones.new(bone)
        edit_bone.head, edit_bone.tail = (0, index, 0), (0, index + 1, 0)
        edit_bone.parent = parent
        parent = edit_bone
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature_object


def quaternions(frames, seed=0):
    values = np.random.default_rng(seed).normal(size=(len(frames), 4))
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def keys_for(writing, frames, bones=("upper", 'lo"wer'), interpolation="LINEAR", seed=0):
    frames = np.asarray(frames, float)
    return [
        keys_of(writing, bone, "rotation_quaternion", frames, quaternions(frames, seed + i), interpolation)
        for i, bone in enumerate(bones)
    ]


def keys_of(writing, bone, channel, frames, values, interpolation="LINEAR"):
    """Keys of a channel of a bone."""
    path = f'pose.bones["{bpy.utils.escape_identifier(bone)}"].{channel}'
    return writing.ChannelKeys(bone, path, frames, values, interpolation)


def write_keys(writing, *arguments, **keywords):
    """What `writer.write` returns once all its items are taken."""
    return writing.result_of(writing.write(*arguments, **keywords))


def key_richly(armature_object, frames=(0, 3, 5, 10, 12.25, 15, 20, 30), seed=5):
    """Keys of every kind of handle and interpolation, on the chain, on another channel, and on the object."""
    random = np.random.default_rng(seed)
    for frame in frames:
        for pose_bone in armature_object.pose.bones:
            pose_bone.rotation_quaternion = random.normal(size=4)
            pose_bone.keyframe_insert("rotation_quaternion", frame=frame, group=pose_bone.name)
        armature_object.pose.bones[0].location = random.normal(size=3)
        armature_object.pose.bones[0].keyframe_insert("location", frame=frame, group="Other")
        armature_object.location = random.normal(size=3)
        armature_object.keyframe_insert("location", frame=frame)


def vary(fcurves, seed=6):
    """Give each key its own handles, easing, interpolation and selection."""
    random = np.random.default_rng(seed)
    properties = bpy.types.Keyframe.bl_rna.properties
    for fcurve in fcurves:
        for key in fcurve.keyframe_points:
            key.handle_left_type = random.choice(properties["handle_left_type"].enum_items.keys())
            key.handle_right_type = random.choice(properties["handle_right_type"].enum_items.keys())
            key.interpolation = random.choice(["CONSTANT", "LINEAR", "BEZIER", "ELASTIC", "BACK"])
            key.easing = random.choice(["AUTO", "EASE_IN", "EASE_OUT"])
            key.type = random.choice(["KEYFRAME", "BREAKDOWN", "EXTREME"])
            key.back, key.amplitude, key.period = random.random(3)
            key.handle_left = (key.co[0] - random.random(), key.co[1] + random.random())
            key.handle_right = (key.co[0] + random.random(), key.co[1] - random.random())
            key.select_control_point, key.select_left_handle, key.select_right_handle = (
                random.random(3) < 0.5
            ).tolist()
        fcurve.update()


def key_tuples(fcurve):
    """Every field of every key, as comparable values."""
    flat = []
    for key in fcurve.keyframe_points:
        values = (getattr(key, field) for field in FIELDS)
        flat.append(tuple(tuple(v) if hasattr(v, "to_tuple") else v for v in values))
    return flat


def bags(action):
    """(name, container) of every set of F-curves of an action, on any version."""
    if not hasattr(action, "slots"):
        return [("", action)]
    return [
        (bag.slot.identifier, bag)
        for layer in action.layers
        for strip in layer.strips
        for bag in strip.channelbags
    ]


def state(action):
    """All that an action holds."""
    return {
        "name": action.name,
        "fake": action.use_fake_user,
        "slots": [s.identifier for s in getattr(action, "slots", ())],
        "layers": [len(layer.strips) for layer in getattr(action, "layers", ())],
        "bags": {
            name: (
                [group.name for group in bag.groups],
                {
                    (c.data_path, c.array_index): (
                        c.group.name if c.group else None,
                        c.extrapolation,
                        c.lock,
                        c.mute,
                        c.color_mode,
                        key_tuples(c),
                    )
                    for c in bag.fcurves
                },
            )
            for name, bag in bags(action)
        },
    }


def whole_state(*objects):
    """All actions of the file, and what the objects use."""
    used = []
    for item in objects:
        animation = item.animation_data
        if animation is None:
            used.append(None)
            continue
        slot = getattr(animation, "action_slot", None)
        used.append((animation.action and animation.action.name, slot and slot.identifier, animation.use_nla))
    return used, {action.name: state(action) for action in bpy.data.actions}


def assert_keys_play(armature_object, keys):
    """What Blender itself shows at each keyed frame is what was given."""
    scene = bpy.context.scene
    for item in keys:
        for frame, value in zip(item.frames, item.values, strict=True):
            scene.frame_set(int(frame // 1), subframe=float(frame % 1))
            shown = getattr(armature_object.pose.bones[item.group], item.channel)
            assert list(shown) == pytest.approx(list(value), abs=FLOAT32)


def rich_action():
    armature_object = make_armature()
    key_richly(armature_object)
    return [armature_object]


def partly_keyed():
    """One bone has F-curves with odd handles and a group, the other has none."""
    armature_object = make_armature()
    for frame in (0, 6, 7, 20):
        armature_object.pose.bones["upper"].keyframe_insert("rotation_quaternion", index=2, frame=frame)
    return [armature_object]


def link(library, collection, name):
    """A data-block of a file, linked."""
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        setattr(wanted, collection, [name])
    return getattr(wanted, collection)[0]
