"""Fewer keys of a bake: each bone within an angle of its full motion, each effector within a distance.

Between keys bones play straight lines of their channels. Their errors add up along a chain, so what each bone
may be off comes from its lever first, is then scaled by what forward kinematics says of the whole, and where
the effectors are still too far off, and where a line leaves a joint's limit, keys come back.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Quaternion

from ...limits.shapes import contains
from ...maths.batch import Array
from ...motion import key_reduction
from ...motion.key_reduction import PLACE, Mask
from ...solvers.stepping import Ended, advance
from ..keys.writer import BoneKeys
from ..rig.locations import translations_of
from ..solve.constraint_goals import chain_joints
from . import measuring
from .bake_frames import BakeFrames, Motion
from .progress import Progress, Steps
from .settings import BakeSettings

WIDEST = 0.1  # [rad] a bone with next to no lever turns no farther away than this
FINEST = 1e-7  # [rad] and length: a tolerance below this keeps all keys
PARTS = (2.0, 1.4, 1.0, 0.7)  # of the tolerances that would do if none were an outlier
INSIDE = 1e-5  # [rad] outside a limit by less is float32


@dataclass(frozen=True)
class _Channel:
    """One channel of a joint that is keyed.

    Attributes:
        joint: index in the bake_frames.
        kind: one of `key_reduction.KINDS`.
        keys: with a key on every frame.
        shifts: (F, 3, 3) from the location channel to the joint's translations; None for rotations.
    """

    joint: int
    kind: str
    keys: BoneKeys
    shifts: Array | None


def reduce_steps(
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    motion: Motion,
    keys: Sequence[BoneKeys],
    settings: BakeSettings,
) -> Steps[tuple[list[BoneKeys], Motion]]:
    """Choose which keys to keep.

    Args:
        armature_object: its bones have the rotation modes of the keys.
        bake_frames: of the bake.
        motion: what the keys are of.
        keys: on every frame.
        settings: `reduce_angle` and `reduce_error`, of which at least one is above 0.

    Returns:
        The keys that are kept, and the motion that they play.
    """
    thinning = _thin(armature_object, bake_frames, motion, keys, settings)
    total = len(bake_frames.frames)
    with contextlib.closing(thinning):
        while not isinstance(part := advance(thinning), Ended):
            done = int(total * part)
            yield Progress(float(bake_frames.frames[min(done, total - 1)]), done, total, "reduced")
    return part.result


def _thin(
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    motion: Motion,
    keys: Sequence[BoneKeys],
    settings: BakeSettings,
) -> Generator[float, None, tuple[list[BoneKeys], Motion]]:
    """As `reduce_steps`; gives the part that is done."""
    channels = [_channel(armature_object, bake_frames, each) for each in keys]
    first, wide = _tolerances(bake_frames, motion, channels, settings)
    kept = yield from _chosen(channels, first, 0.0)
    if settings.reduce_error > 0.0:
        errors = _errors(bake_frames, motion, _played(bake_frames, motion, channels, kept))
        # Outliers get keys of their own below: the rest decides.
        largest = float(np.quantile(errors, 0.99)) if errors.size else 0.0
        scale = 0.9 * settings.reduce_error / largest if largest > 0.0 else math.inf
        tries = []
        for part in PARTS:  # finer lines need fewer keys to come back, coarser ones have fewer to begin with
            masks = yield from _chosen(channels, np.clip(first * scale * part, FINEST, wide), 0.4)
            tries.append((yield from _near(bake_frames, motion, channels, masks, settings.reduce_error)))
        kept = min(tries, key=lambda masks: sum(int(mask.sum()) for mask in masks))
    _inside(bake_frames, motion, channels, kept)
    if settings.reduce_error > 0.0:  # a key more is not always nearer
        kept = yield from _near(bake_frames, motion, channels, kept, settings.reduce_error)
    thin = [
        replace(channel.keys, frames=channel.keys.frames[mask], values=channel.keys.values[mask])
        for channel, mask in zip(channels, kept, strict=True)
    ]
    return thin, _played(bake_frames, motion, channels, kept)


def _channel(armature_object: bpy.types.Object, bake_frames: BakeFrames, keys: BoneKeys) -> _Channel:
    joint = bake_frames.skeleton.index(keys.bone)
    if keys.channel != "location":
        return _Channel(joint, armature_object.pose.bones[keys.bone].rotation_mode, keys, None)
    if joint in bake_frames.located:
        return _Channel(joint, PLACE, keys, bake_frames.shifts[:, bake_frames.located.index(joint)])
    assert bake_frames.tracks is not None  # what carries planted bones
    return _Channel(joint, PLACE, keys, np.array(bake_frames.tracks.shifts))


def _tolerances(
    bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], settings: BakeSettings
) -> tuple[Array, Array]:
    """What each channel may be off to begin with, and at most: radians, or the unit of its location."""
    error, angle = settings.reduce_error, settings.reduce_angle
    wide = np.full(len(channels), angle if angle > 0.0 else WIDEST)
    first = wide.copy()
    if error <= 0.0:
        for t, channel in enumerate(channels):
            if channel.kind == PLACE:  # nobody said how far: as it was, but for rounding
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


def _chosen(
    channels: Sequence[_Channel], tolerances: Array, begin: float
) -> Generator[float, None, list[Mask]]:
    """Which keys each channel keeps, channels of one kind at once."""
    kept: list[Mask] = [np.zeros(0, np.bool_)] * len(channels)
    for kind in dict.fromkeys(channel.kind for channel in channels):
        members = [t for t, channel in enumerate(channels) if channel.kind == kind]
        values = np.array([channels[t].keys.values for t in members], np.float64)
        must = np.zeros(values.shape[:2], np.bool_)
        frames = np.asarray(channels[members[0]].keys.frames, np.float64)
        steps = key_reduction.choose(kind, frames, values, tolerances[members], must)
        while not isinstance(part := advance(steps), Ended):
            yield begin + 0.4 * part
        for t, mask in zip(members, part.result, strict=True):
            kept[t] = mask
    return kept


def _played(
    bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], kept: Sequence[Mask]
) -> Motion:
    """What the kept keys play, at all frames."""
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
    """Constraints that are about a place."""
    return [c for c, row in enumerate(bake_frames.constraints) if row.use_position]


def _errors(bake_frames: BakeFrames, motion: Motion, played: Motion) -> Array:
    """(F, E) world metres that effectors are from where the full motion has them."""
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
    """Bring keys back where an effector is too far off, until none is: with all of them it is 0 off."""
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
            for f in _worst_of_runs(over, errors[:, e]):
                for channel, mask in zip(channels, masks, strict=True):
                    if channel.joint in above and not mask[f]:
                        mask[f] = changed = True
        yield 0.95
        if not changed:
            return masks


def _worst_of_runs(over: Mask, errors: Array) -> list[int]:
    """The worst frame of each run of frames that are over."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], over, [False])).astype(np.int8)))
    runs = edges.reshape(-1, 2)
    return [int(first + np.argmax(errors[first:end])) for first, end in runs]


def _inside(bake_frames: BakeFrames, motion: Motion, channels: Sequence[_Channel], kept: list[Mask]) -> None:
    """Bring keys back where a straight line leaves a joint's limit that the full motion keeps; in place."""
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
