"""From what was solved to keys."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import bpy

from ...solvers.stepping import Work
from ..keys import channels
from ..keys.obstacles import Destination
from ..keys.writer import BoneKeys, PropertyKeys, write
from ..rig import rotation_modes
from . import start
from .bake_frames import BakeFrames, Motion
from .frame_selection import key_time
from .keyed_motion import keyed_joints, keyed_locations, rotated_joints
from .settings import BakeSettings
from .shot import Task
from .start import Values


def keys_of(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    motion: Motion,
    settings: BakeSettings,
) -> Work[list[BoneKeys]]:
    """Keys of all that a bake moves, at all its frames, in the time of keys; an item per bone."""
    interpolation = "BEZIER" if settings.keys.is_sparse else "LINEAR"
    time = key_time(scene)  # at a frame Blender shows the keys of this part of it
    times = bake_frames.frames * time
    joints = keyed_joints(bake_frames)
    pose_bones = [armature_object.pose.bones[bake_frames.skeleton.joints[j].name] for j in joints]
    rotations_at = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in pose_bones]
    # Keys outside the range stay: the new ones go on from there, or else lead there, without a turn the long
    # way round.
    before = channels.values_before(armature_object, rotations_at, settings.frame_start * time)
    after = channels.values_after(armature_object, rotations_at, settings.frame_end * time)
    keys, locations = [], keyed_locations(bake_frames, motion)
    rotated = set(rotated_joints(bake_frames))
    for j, pose_bone, (bone, channel) in zip(joints, pose_bones, rotations_at, strict=True):
        yield
        places = [BoneKeys(bone, "location", times, locations[j], interpolation)] if j in locations else []
        if j not in rotated:
            keys += places
            continue
        rotations, mode = motion.rotations[:, j], pose_bone.rotation_mode
        held = rotation_modes.locked_angles(pose_bone, [limits[j] for limits in bake_frames.limits])
        previous, later = before.get((bone, channel)), after.get((bone, channel))
        if previous is None and later is not None:
            values = rotation_modes.channel_values(
                mode, rotations[::-1], later, None if held is None else held[::-1]
            )
            values = values[::-1]
        else:
            values = rotation_modes.channel_values(mode, rotations, previous, held)
        opposed = mode == "QUATERNION" and later is not None and float(values[-1] @ later) < 0.0
        keys += [BoneKeys(bone, channel, times, values, interpolation, opposed), *places]
    return keys


def write_keys(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    keys: Sequence[BoneKeys],
    switches: Sequence[PropertyKeys],
    task: Task,
    undo: ExitStack,
) -> Work[bpy.types.Action]:
    """Write the keys, and note what a new action is made from; `undo` gets what takes that back."""
    time, settings = key_time(scene), task.settings
    name = f"{armature_object.name} CCD"
    span = settings.frame_start * time, settings.frame_end * time
    animation = armature_object.animation_data
    original = animation.action if animation is not None else None
    pose = _without_keys(armature_object, [each.bone for each in keys], task.start.values)
    yield
    action = yield from write(armature_object, [*keys, *switches], settings.destination, span, name, undo)
    # Others are not copies: nothing remains of before, but in an action that has noted it.
    if settings.destination is Destination.NEW_ACTION or (
        action == original and start.is_baked(armature_object)
    ):
        start.remember(action, original, pose, undo)
    return action


def _without_keys(armature_object: bpy.types.Object, bones: Sequence[str], started: Values) -> Values:
    """What the channels of bones held where no key moved them: what the bake started from, or else present
    values."""
    values: Values = {}
    for bone in bones:
        pose_bone = armature_object.pose.bones[bone]
        names = (rotation_modes.rotation_channel(pose_bone)[0], "location")
        present = {name: [float(value) for value in getattr(pose_bone, name)] for name in names}
        values[bone] = present | started.get(bone, {})
    return values


def nothing_to_key(bake_frames: BakeFrames, settings: BakeSettings) -> str:
    span = f"frames {settings.frame_start} to {settings.frame_end}"
    names = ", ".join(constraint.name for constraint in bake_frames.constraints)
    if not (bake_frames.influences > 0.0).any():
        return f"no constraint ({names}) has influence above 0 in {span}: raise it, or change the range"
    return all_locked(bake_frames)


def all_locked(bake_frames: BakeFrames) -> str:
    names = ", ".join(constraint.name for constraint in bake_frames.constraints)
    return (
        f"every bone in the chains of {names} is locked: lower Stiffness, raise Max Step or unlock the "
        "rotation of at least one"
    )
