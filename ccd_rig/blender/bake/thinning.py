"""Fewer keys of a bake: each bone within an angle of its full motion, each effector within a distance.

Between keys bones play straight lines of their channels. Their errors add up along a chain, so what each bone
may be off comes from its lever first, is then scaled by what forward kinematics says of the whole, and where
the effectors are still too far off, and where a line leaves a joint's limit, keys come back.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Quaternion

from ...limits.shapes import contains
from ...motion import key_reduction
from ...motion.interpolation import Array
from ...motion.key_reduction import PLACE, Mask
from ..keys.writer import BoneKeys
from ..solve.constraint_goals import chain_joints
from . import measuring
from .bake_frames import BakeFrames, Motion
from .settings import BakeSettings

WIDEST = 0.1  # [rad] a bone with next to no lever turns no farther away than this
FINEST = 1e-7  # [rad] and length: a tolerance below this keeps all keys
PARTS = (2.0, 1.4, 1.0, 0.7)  # of the tolerances that would do if none were an outlier
INSIDE = 1e-5  # [rad] outside a limit by less is float32


@dataclass(frozen=True)
class _Channel:
    """One channel of a joint that is keyed.

    Attributes:
        joint: index in the take.
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
    take: BakeFrames,
    motion: Motion,
    keys: Sequence[BoneKeys],
    settings: BakeSettings,
) -> Generator[float, None, tuple[list[BoneKeys], Motion]]:
    """Choose which keys to keep; gives the part that is done.

    Args:
        armature_object: its bones have the rotation modes of the keys.
        take: of the bake.
        motion: what the keys are of.
        keys: on every frame.
        settings: `reduce_angle` and `reduce_error`, of which at least one is above 0.

    Returns:
        The keys that are kept, and the motion that they play.
    """
    tracks = [_channel(armature_object, take, each) for each in keys]
    first, wide = _tolerances(take, motion, tracks, settings)
    kept = yield from _chosen(tracks, first, 0.0)
    if settings.reduce_error > 0.0:
        off = _off(take, motion, _played(take, motion, tracks, kept))
        # Outliers get keys of their own below: the rest decides.
        largest = float(np.quantile(off, 0.99)) if off.size else 0.0
        scale = 0.9 * settings.reduce_error / largest if largest > 0.0 else math.inf
        tries = []
        for part in PARTS:  # finer lines need fewer keys to come back, coarser ones have fewer to begin with
            again = yield from _chosen(tracks, np.clip(first * scale * part, FINEST, wide), 0.4)
            tries.append((yield from _near(take, motion, tracks, again, settings.reduce_error)))
        kept = min(tries, key=lambda masks: sum(int(mask.sum()) for mask in masks))
    _inside(take, motion, tracks, kept)
    if settings.reduce_error > 0.0:  # a key more is not always nearer
        kept = yield from _near(take, motion, tracks, kept, settings.reduce_error)
    thin = [
        replace(track.keys, frames=track.keys.frames[mask], values=track.keys.values[mask])
        for track, mask in zip(tracks, kept, strict=True)
    ]
    return thin, _played(take, motion, tracks, kept)


def _channel(armature_object: bpy.types.Object, take: BakeFrames, keys: BoneKeys) -> _Channel:
    joint = take.skeleton.index(keys.bone)
    if keys.channel != "location":
        return _Channel(joint, armature_object.pose.bones[keys.bone].rotation_mode, keys, None)
    if joint in take.sliding:
        return _Channel(joint, PLACE, keys, take.shifts[:, take.sliding.index(joint)])
    assert take.tracks is not None  # what carries planted bones
    return _Channel(joint, PLACE, keys, np.array(take.tracks.shifts))


def _tolerances(
    take: BakeFrames, motion: Motion, tracks: Sequence[_Channel], settings: BakeSettings
) -> tuple[Array, Array]:
    """What each channel may be off to begin with, and at most: radians, or the unit of its location."""
    error, angle = settings.reduce_error, settings.reduce_angle
    wide = np.full(len(tracks), angle if angle > 0.0 else WIDEST)
    first = wide.copy()
    if error <= 0.0:
        for t, track in enumerate(tracks):
            if track.kind == PLACE:  # nobody said how far: as it was, but for rounding
                wide[t] = first[t] = 1e-6 * max(float(np.abs(track.keys.values).max()), 1e-3)
        return first, wide
    heads, turned = measuring.transforms(take, motion)
    reached = _effectors(take)
    for t, track in enumerate(tracks):
        if track.kind == PLACE:
            unit = np.linalg.norm(np.einsum("fij,fjk->fik", take.worlds, track.shifts), axis=(1, 2)).max()
            wide[t] = error / max(float(unit), 1e-30)
            first[t] = 0.25 * wide[t]
            continue
        for c in reached:
            chain = chain_joints(take.skeleton, take.constraints[c])
            if track.joint in chain:
                arm = measuring.points(take, take.constraints[c], heads, turned) - heads[:, track.joint]
                lever = float(np.linalg.norm(np.einsum("fij,fj->fi", take.worlds, arm), axis=1).max())
                first[t] = min(first[t], error / max(math.sqrt(len(chain)) * lever, 1e-30))
    return np.maximum(first, FINEST), np.maximum(wide, FINEST)


def _chosen(
    tracks: Sequence[_Channel], tolerances: Array, begin: float
) -> Generator[float, None, list[Mask]]:
    """Which keys each channel keeps, channels of one kind at once."""
    kept: list[Mask] = [np.zeros(0, np.bool_)] * len(tracks)
    for kind in dict.fromkeys(track.kind for track in tracks):
        members = [t for t, track in enumerate(tracks) if track.kind == kind]
        values = np.array([tracks[t].keys.values for t in members], np.float64)
        must = np.zeros(values.shape[:2], np.bool_)
        frames = np.asarray(tracks[members[0]].keys.frames, np.float64)
        steps = key_reduction.choose(kind, frames, values, tolerances[members], must)
        while True:
            try:
                yield begin + 0.4 * next(steps)
            except StopIteration as end:
                for t, mask in zip(members, end.value, strict=True):
                    kept[t] = mask
                break
    return kept


def _played(take: BakeFrames, motion: Motion, tracks: Sequence[_Channel], kept: Sequence[Mask]) -> Motion:
    """What the kept keys play, at all frames."""
    rotations, translations = motion.rotations.copy(), motion.translations.copy()
    locations = motion.locations.copy()
    for track, mask in zip(tracks, kept, strict=True):
        keys = track.keys
        values = key_reduction.interpolated(keys.frames, np.asarray(keys.values, np.float64), mask)
        if track.shifts is None:
            rotations[:, track.joint] = key_reduction.rotations_of(track.kind, values)
        else:
            translations[:, track.joint] = np.einsum("fij,fj->fi", track.shifts, values)
            if track.joint in take.sliding:
                locations[:, take.sliding.index(track.joint)] = values
    return Motion(rotations, translations, locations)


def _effectors(take: BakeFrames) -> list[int]:
    """Constraints that are about a place."""
    return [c for c, row in enumerate(take.constraints) if row.kind != "REACH" or row.use_position]


def _off(take: BakeFrames, motion: Motion, played: Motion) -> Array:
    """(F, E) world metres that effectors are from where the full motion has them."""
    before, now = measuring.transforms(take, motion), measuring.transforms(take, played)
    found = []
    for c in _effectors(take):
        away = measuring.points(take, take.constraints[c], *now) - measuring.points(
            take, take.constraints[c], *before
        )
        found.append(np.linalg.norm(np.einsum("fij,fj->fi", take.worlds, away), axis=1))
    return np.array(found).reshape(-1, len(take.frames)).T


def _near(
    take: BakeFrames, motion: Motion, tracks: Sequence[_Channel], kept: Sequence[Mask], error: float
) -> Generator[float, None, list[Mask]]:
    """Bring keys back where an effector is too far off, until none is: with all of them it is 0 off."""
    masks = [mask.copy() for mask in kept]
    effectors = _effectors(take)
    while True:
        off = _off(take, motion, _played(take, motion, tracks, masks))
        changed = False
        for e, c in enumerate(effectors):
            over = off[:, e] > error
            if not over.any():
                continue
            joints = set(chain_joints(take.skeleton, take.constraints[c]))
            above = {j for i in joints for j in take.skeleton.chain(i)}
            for f in _worst_of_runs(over, off[:, e]):
                for track, mask in zip(tracks, masks, strict=True):
                    if track.joint in above and not mask[f]:
                        mask[f] = changed = True
        yield 0.95
        if not changed:
            return masks


def _worst_of_runs(over: Mask, off: Array) -> list[int]:
    """The worst frame of each run of frames that are over."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], over, [False])).astype(np.int8)))
    runs = edges.reshape(-1, 2)
    return [int(first + np.argmax(off[first:end])) for first, end in runs]


def _inside(take: BakeFrames, motion: Motion, tracks: Sequence[_Channel], kept: list[Mask]) -> None:
    """Bring keys back where a straight line leaves a joint's limit that the full motion keeps; in place."""
    for track, mask in zip(tracks, kept, strict=True):
        j = track.joint
        if track.shifts is not None or take.skeleton.joints[j].limit is None:
            continue
        values = np.asarray(track.keys.values, np.float64)
        broken = True
        while broken:
            now = key_reduction.rotations_of(
                track.kind, key_reduction.interpolated(track.keys.frames, values, mask)
            )
            over = np.zeros(len(mask), np.bool_)
            for f in np.flatnonzero(~mask):
                limit = take.limits[f][j]
                if limit is not None and not contains(limit, Quaternion(now[f]), INSIDE):
                    over[f] = contains(limit, Quaternion(motion.rotations[f, j]), INSIDE)
            broken = bool(over.any())
            mask[key_reduction.middles_of_runs(over)] = True
