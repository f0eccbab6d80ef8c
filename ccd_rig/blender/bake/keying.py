"""Keys of a solved motion, and their reduction.

Reduced keys hold each bone within an angle of its full motion, and each effector within a distance. Between
keys channels are linear. Errors add up along a chain, so a bone's first tolerance comes from its lever. It is
then scaled by the forward kinematics of the whole figure. Keys come back where an effector is still too far
off, or where a line leaves a joint's limit.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Quaternion

from ...limits.shapes import contains
from ...maths.batch import Array, runs
from ...motion import key_reduction
from ...motion.key_reduction import PLACE, Mask
from ...solvers.stepping import Items, T, Work
from ..keys import channels
from ..keys.destination import Destination
from ..keys.writer import ChannelKeys, write
from ..properties.stored_poses import MODE, is_baked
from ..rig import rotation_modes
from ..rig.bone_space import translations_of
from ..solve.methods import chain_joints
from . import measuring, start
from .bake_frames import BakeFrames, Motion
from .frame_selection import key_time
from .keyed_motion import keyed_joints, keyed_locations, rotated_joints
from .progress import Progress, Steps
from .settings import BakeSettings
from .shot import Task
from .start import Values


def keys_of(task: Task, bake_frames: BakeFrames, motion: Motion) -> Work[list[ChannelKeys]]:
    """Keys of all moved channels at all frames, in the time of keys; yields per bone.

    Keys outside the range stay. The new ones continue from them, or lead to them, by the short way round.
    """
    armature_object, settings = task.armature_object, task.settings
    interpolation = "BEZIER" if settings.keys.is_sparse else "LINEAR"
    time, joints = key_time(task.scene), keyed_joints(bake_frames)
    times = bake_frames.frames * time
    pose_bones = [armature_object.pose.bones[bake_frames.skeleton.joints[j].name] for j in joints]
    rotations_at = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in pose_bones]
    before, after = (
        channels.values_beside(armature_object, rotations_at, edge * time, way, time)
        for edge, way in ((settings.frame_start, -1), (settings.frame_end, 1))
    )
    keys, locations = [], keyed_locations(bake_frames, motion)
    rotated = set(rotated_joints(bake_frames))
    for j, pose_bone, (bone, channel) in zip(joints, pose_bones, rotations_at, strict=True):
        yield
        path, places = pose_bone.path_from_id, list[ChannelKeys]()
        if j in locations:
            places = [ChannelKeys(bone, path("location"), times, locations[j], interpolation)]
        if j not in rotated:
            keys += places
            continue
        rotations, mode = motion.rotations[:, j], pose_bone.rotation_mode
        held = rotation_modes.locked_angles(pose_bone, (limits[j] for limits in bake_frames.limits))
        previous, later = before.get((bone, channel)), after.get((bone, channel))
        values, twin = rotation_modes.values_between(mode, rotations, previous, later, held)
        keys += [ChannelKeys(bone, path(channel), times, values, interpolation, twin), *places]
    return keys


def write_keys(
    task: Task, keys: Sequence[ChannelKeys], switches: Sequence[ChannelKeys], undo: ExitStack
) -> Work[bpy.types.Action]:
    """Write the keys, and note the source of a new action; `undo` gets the callbacks that take it back."""
    armature_object, time, settings = task.armature_object, key_time(task.scene), task.settings
    name = f"{armature_object.name} CCD"
    span = settings.frame_start * time, settings.frame_end * time
    original = channels.action_of(armature_object)
    bones = [each.group for each in keys]
    pose = _without_keys(armature_object, bones, task.start.values)
    is_by_strips = start.moved_by_strips(armature_object, bones)
    yield
    action = yield from write(
        armature_object, [*keys, *switches], settings.destination, span, name, undo, time
    )
    # Only a copy, or an action that was baked before, still knows the motion before the bake.
    if settings.destination is Destination.NEW_ACTION or (action == original and is_baked(armature_object)):
        start.remember(action, original, pose, is_by_strips, undo)
    return action


def _without_keys(armature_object: bpy.types.Object, bones: Sequence[str], started: Values) -> Values:
    """Rotation mode and values of channels without keys: where the bake started, or else present ones."""
    values: Values = {}
    for bone in bones:
        pose_bone = armature_object.pose.bones[bone]
        names = (rotation_modes.rotation_channel(pose_bone)[0], "location")
        present = {name: [float(value) for value in getattr(pose_bone, name)] for name in names}
        present[MODE] = [float(rotation_modes.number_of_mode(pose_bone.rotation_mode))]
        values[bone] = present | started.get(bone, {})
    return values


def nothing_to_key(bake_frames: BakeFrames, settings: BakeSettings) -> str:
    """The message for a bake that would write no key."""
    span = f"frames {settings.frame_start} to {settings.frame_end}"
    names = ", ".join(constraint.name for constraint in bake_frames.constraints)
    if not (bake_frames.influences > 0.0).any():
        return f"no constraint ({names}) has influence above 0 in {span}: raise it, or change the range"
    return all_locked(bake_frames)


def all_locked(bake_frames: BakeFrames) -> str:
    """The message for chains whose bones are all locked."""
    names = ", ".join(constraint.name for constraint in bake_frames.constraints)
    return (
        f"every bone in the chains of {names} is locked: lower Stiffness, raise Max Step or unlock the "
        "rotation of at least one"
    )


# Key reduction ----------------------------------------------------------------------------------------------


WIDEST = 0.1  # [rad] largest tolerance of a bone with hardly any lever
FINEST = 1e-7  # [rad] and length; a smaller tolerance keeps all keys
FACTORS = (2.0, 1.4, 1.0, 0.7)  # of the tolerances that would do without outliers
INSIDE = 1e-5  # [rad] outside a limit by less is float32


@dataclass(frozen=True)
class _Channel:
    """A keyed channel of a joint."""

    joint: int  # its index
    kind: str  # rotation mode, or `PLACE`
    keys: ChannelKeys  # a key on every frame
    shifts: Array | None  # (F, 3, 3) location channel to the joint's translations; None for rotations


def reduce_steps(
    task: Task, bake_frames: BakeFrames, motion: Motion, keys: Sequence[ChannelKeys]
) -> Steps[tuple[list[ChannelKeys], Motion]]:
    """Choose which keys to keep.

    Args:
        task: its settings `reduce_angle` and `reduce_error` are not both 0.
        keys: on every frame.

    Returns:
        The keys that are kept, and the motion that they play.
    """
    thinning = _thin(task, bake_frames, motion, keys)
    total, items = len(bake_frames.frames), Items(thinning)
    with contextlib.closing(thinning):
        for part in items:
            done = int(total * part)
            yield Progress(float(bake_frames.frames[min(done, total - 1)]), done, total, "reduced")
    return items.result


def _thin(
    task: Task, bake_frames: BakeFrames, motion: Motion, keys: Sequence[ChannelKeys]
) -> Generator[float, None, tuple[list[ChannelKeys], Motion]]:
    """Like `reduce_steps`; yields the share of work that is done, 0 to 1."""
    settings, channels = task.settings, [_channel(task.armature_object, bake_frames, each) for each in keys]
    first, wide = _tolerances(bake_frames, motion, channels, settings)
    size = 1.0 / (1 + len(FACTORS)) if settings.reduce_error > 0.0 else 1.0
    kept = yield from _share(_chosen(channels, first), 0.0, size)
    if settings.reduce_error > 0.0:
        errors = _errors(bake_frames, motion, _played(bake_frames, motion, channels, kept))
        # Outliers get keys below, so the rest sets the scale.
        largest = float(np.quantile(errors, 0.99)) if errors.size else 0.0
        scale = 0.9 * settings.reduce_error / largest if largest > 0.0 else math.inf
        tries = []
        # Finer tolerances need fewer keys back, coarser ones keep fewer at first.
        for k, factor in enumerate(FACTORS, 1):
            tolerances = np.clip(first * scale * factor, FINEST, wide)
            masks = yield from _share(_chosen(channels, tolerances), k * size, size)
            back = _near(bake_frames, motion, channels, masks, settings.reduce_error)
            tries.append((yield from _share(back, (k + 1) * size, 0.0)))
        kept = min(tries, key=lambda masks: sum(int(mask.sum()) for mask in masks))
    _inside(bake_frames, motion, channels, kept)
    if settings.reduce_error > 0.0:  # a key for a limit may move an effector away
        back = _near(bake_frames, motion, channels, kept, settings.reduce_error)
        kept = yield from _share(back, 1.0, 0.0)
    thin = [
        replace(channel.keys, frames=channel.keys.frames[mask], values=channel.keys.values[mask])
        for channel, mask in zip(channels, kept, strict=True)
    ]
    return thin, _played(bake_frames, motion, channels, kept)


def _share(work: Generator[float, None, T], begin: float, size: float) -> Generator[float, None, T]:
    """Work whose progress, 0 to 1, is a share of a longer one's."""
    items = Items(work)
    for part in items:
        yield begin + size * part
    return items.result


def _channel(armature_object: bpy.types.Object, bake_frames: BakeFrames, keys: ChannelKeys) -> _Channel:
    joint = bake_frames.skeleton.index(keys.group)
    if keys.channel != "location":
        return _Channel(joint, armature_object.pose.bones[keys.group].rotation_mode, keys, None)
    if joint in bake_frames.located:
        return _Channel(joint, PLACE, keys, bake_frames.shifts[:, bake_frames.located.index(joint)])
    return _Channel(joint, PLACE, keys, bake_frames.planted_tracks.shifts)


def _tolerances(
    bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], settings: BakeSettings
) -> tuple[Array, Array]:
    """First and largest tolerance of each channel, in radians or in the unit of its location."""
    error, angle = settings.reduce_error, settings.reduce_angle
    wide = np.full(len(channels), angle if angle > 0.0 else WIDEST)
    first = wide.copy()
    if error <= 0.0:
        for t, channel in enumerate(channels):
            if channel.kind == PLACE:  # no bound is set: rounding alone
                wide[t] = first[t] = 1e-6 * max(float(np.abs(channel.keys.values).max()), 1e-3)
        return first, wide
    heads, axes = measuring.transforms(bake_frames, motion)
    effectors = _effectors(bake_frames)
    for t, channel in enumerate(channels):
        if channel.kind == PLACE:
            unit = np.linalg.norm(
                np.einsum("fij,fjk->fik", bake_frames.worlds, channel.shifts), axis=(1, 2)
            ).max()
            wide[t] = error / unit  # above 0: armatures of scale 0 are refused
            first[t] = 0.25 * wide[t]
            continue
        for c in effectors:
            chain = chain_joints(bake_frames.skeleton, bake_frames.constraints[c])
            if channel.joint in chain:
                arm = (
                    measuring.points(bake_frames, bake_frames.constraints[c], heads, axes)
                    - heads[:, channel.joint]
                )
                lever = float(np.linalg.norm(np.einsum("fij,fj->fi", bake_frames.worlds, arm), axis=1).max())
                first[t] = min(first[t], error / max(math.sqrt(len(chain)) * lever, 1e-30))
    return np.maximum(first, FINEST), np.maximum(wide, FINEST)


def _chosen(channels: Sequence[_Channel], tolerances: Array) -> Generator[float, None, list[Mask]]:
    """Masks of the keys that channels keep within tolerances; channels of one kind at once."""
    kept: list[Mask] = [np.zeros(0, np.bool_)] * len(channels)
    kinds = dict.fromkeys(channel.kind for channel in channels)
    for k, kind in enumerate(kinds):
        members = [t for t, channel in enumerate(channels) if channel.kind == kind]
        values = np.array([channels[t].keys.values for t in members], np.float64)
        must = np.zeros(values.shape[:2], np.bool_)
        frames = np.asarray(channels[members[0]].keys.frames, np.float64)
        steps = key_reduction.choose(kind, frames, values, tolerances[members], must)
        masks = yield from _share(steps, k / len(kinds), 1.0 / len(kinds))
        for t, mask in zip(members, masks, strict=True):
            kept[t] = mask
    return kept


def _played(
    bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], kept: Sequence[Mask]
) -> Motion:
    """The motion that kept keys play, at all frames."""
    rotations, translations = motion.rotations.copy(), motion.translations.copy()
    locations = motion.locations.copy()
    for channel, mask in zip(channels, kept, strict=True):
        keys = channel.keys
        values = key_reduction.interpolated(keys.frames, np.asarray(keys.values, np.float64), mask)
        if channel.shifts is None:
            rotations[:, channel.joint] = key_reduction.rotations_of(channel.kind, values)
        else:
            translations[:, channel.joint] = translations_of(channel.shifts, values)
            if channel.joint in bake_frames.located:
                locations[:, bake_frames.located.index(channel.joint)] = values
    return Motion(rotations, translations, locations)


def _effectors(bake_frames: BakeFrames) -> list[int]:
    """Constraints with a position goal."""
    return [c for c, row in enumerate(bake_frames.constraints) if row.use_position]


def _errors(bake_frames: BakeFrames, motion: Motion, played: Motion) -> Array:
    """(F, E) world metres between effectors and their places in the full motion."""
    before, now = measuring.transforms(bake_frames, motion), measuring.transforms(bake_frames, played)
    errors = []
    for c in _effectors(bake_frames):
        misses = measuring.points(bake_frames, bake_frames.constraints[c], *now) - measuring.points(
            bake_frames, bake_frames.constraints[c], *before
        )
        errors.append(np.linalg.norm(np.einsum("fij,fj->fi", bake_frames.worlds, misses), axis=1))
    return np.array(errors).reshape(-1, len(bake_frames.frames)).T


def _near(
    bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], kept: Sequence[Mask], error: float
) -> Generator[float, None, list[Mask]]:
    """Bring keys back until no effector is too far off; with all keys it is exact."""
    masks = [mask.copy() for mask in kept]
    effectors = _effectors(bake_frames)
    while True:
        errors = _errors(bake_frames, motion, _played(bake_frames, motion, channels, masks))
        changed = False
        for e, c in enumerate(effectors):
            over = errors[:, e] > error
            if not over.any():
                continue
            joints = set(chain_joints(bake_frames.skeleton, bake_frames.constraints[c]))
            above = {j for i in joints for j in bake_frames.skeleton.chain(i)}
            for run in runs(over):
                f = run.start + int(np.argmax(errors[run, e]))
                for channel, mask in zip(channels, masks, strict=True):
                    if channel.joint in above and not mask[f]:
                        mask[f] = changed = True
        yield 1.0
        if not changed:
            return masks


def _inside(bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], kept: list[Mask]) -> None:
    """Bring keys back where a line between keys leaves a limit that the full motion keeps; in place."""
    for channel, mask in zip(channels, kept, strict=True):
        j = channel.joint
        if channel.shifts is not None or bake_frames.skeleton.joints[j].limit is None:
            continue
        values = np.asarray(channel.keys.values, np.float64)
        broken = True
        while broken:
            now = key_reduction.rotations_of(
                channel.kind, key_reduction.interpolated(channel.keys.frames, values, mask)
            )
            over = np.zeros(len(mask), np.bool_)
            for f in np.flatnonzero(~mask):
                limit = bake_frames.limits[f][j]
                if limit is not None and not contains(limit, Quaternion(now[f]), INSIDE):
                    over[f] = contains(limit, Quaternion(motion.rotations[f, j]), INSIDE)
            broken = bool(over.any())
            mask[key_reduction.middles_of_runs(over)] = True
