# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyed motion: solved poses, slerps between them, blended by influence.

Frames between solved ones are slerps of the solved rotations, brought back inside the limits. Influence
below 1 blends each joint from its base pose to the solved pose, as Blender's constraints do. The location of
a coupled offset follows from the keyed rotations at every frame.

Pure functions of `BakeFrames`, which states the letters of shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...limits.shapes import BatchLimits
from ...maths import batch
from ...maths.batch import Array, Mask
from ...motion import interpolation
from ...skeleton.joints import coupled_angles
from ..rig.bone_space import locations_of, translations_of
from ..scene.targets import TargetRows
from ..solve.planting import JointPoses, placed, seen
from .bake_frames import BakeFrames, Motion, Tracks

ROUNDING = 1e-6
"""Rounding of a stored location."""


class KeyedMotion(NamedTuple):
    """The motion of a bake."""

    bake_frames: BakeFrames  # with the targets of planted bones where these are held, at influence 1
    keyed: Motion  # the motion that keys play
    blended: Motion  # the motion before key reduction
    full: Motion  # the motion at full influence


def keyed_motion(bake_frames: BakeFrames) -> KeyedMotion:
    """Slerp between solved frames, and blend by influence."""
    full = interpolation.slerp_rotations(bake_frames.solved_frames, bake_frames.solved, bake_frames.frames)
    chains = {j for c in range(len(bake_frames.constraints)) for j in bake_frames.moved_by(c)}
    still = [j for j in range(len(bake_frames.skeleton.joints)) if j not in chains]
    # Joints that nothing moves keep their base poses between solves.
    full[:, still] = bake_frames.base[:, still]
    influences, located = joint_influences(bake_frames), _base_locations(bake_frames)
    # A slerp may leave limits, and a solve does not touch joints without a goal.
    _hold_limits(bake_frames, full, influences > 0.0)
    rotations = _blended(bake_frames, full, influences)
    keyed = Motion(rotations, *_shifted(bake_frames, influences, rotations, located))
    shifting = [*bake_frames.located, *(each.driver for each in bake_frames.couplings)]
    if (influences[:, shifting] == 1.0).all():
        at_full = Motion(full, keyed.translations.copy(), keyed.locations.copy())
    else:
        at_full = Motion(full, *_shifted(bake_frames, np.ones_like(influences), full, located))
    if bake_frames.tracks is not None:
        bake_frames = _hold_planted(bake_frames, bake_frames.tracks, keyed, at_full)
    keyed = keyed._replace(rotations=interpolation.same_side(rotations))
    return KeyedMotion(bake_frames, keyed, keyed, at_full)


def motion_between(bake_frames: BakeFrames, played: BakeFrames) -> KeyedMotion:
    """The motion that frames between keys would have as keys of their own.

    Base poses of keyed joints are interpolated between keys. Other joints have what plays.

    Args:
        bake_frames: solved.
        played: frames as they play, within the range.
    """
    frames, keyed = played.frames, keyed_joints(bake_frames)
    base, translations = played.base.copy(), played.translations.copy()
    base[:, keyed] = interpolation.slerp_rotations(bake_frames.frames, bake_frames.base[:, keyed], frames)
    for j, axis in itertools.product(keyed, range(3)):
        along = bake_frames.translations[:, j, axis]
        translations[:, j, axis] = np.interp(frames, bake_frames.frames, along)
    tracks = bake_frames.tracks
    if tracks is not None and played.tracks is not None:
        tracks = replace(tracks, worlds=played.tracks.worlds, shifts=played.tracks.shifts)
    return keyed_motion(
        replace(
            played,
            base=base,
            translations=translations,
            solved_frames=bake_frames.solved_frames,
            solved=bake_frames.solved,
            solved_slides=bake_frames.solved_slides,
            tracks=tracks,
            returning=bake_frames.returning,
            helped=bake_frames.helped,
        )
    )


def _blended(bake_frames: BakeFrames, full: Array, influences: Array) -> Array:
    """(F, J, 4) rotations from the base poses to full influence, by (F, J) influences."""
    rotations = np.where(influences[..., None] > 0.0, full, bake_frames.base)
    partly = (influences > 0.0) & (influences < 1.0)
    if partly.any():
        base, solved = batch.unit(bake_frames.base[partly], axis=-1), batch.unit(full[partly], axis=-1)
        rotations[partly] = batch.slerp(base, solved, influences[partly], axis=-1)
        _hold_limits(bake_frames, rotations, partly, bake_frames.base)
    return rotations


def with_chain_at(motion: KeyedMotion, c: int, influences: Array) -> Motion:
    """The blended motion with the chain of constraint `c` at other (F,) influences."""
    bake_frames, blended = motion.bake_frames, motion.blended
    joints = list(bake_frames.moved_by(c))
    of_joints = joint_influences(bake_frames)
    of_joints[:, joints] = influences[:, None]
    rotations, translations = blended.rotations.copy(), blended.translations.copy()
    rotations[:, joints] = _blended(bake_frames, motion.full.rotations, of_joints)[:, joints]
    shifted, locations = _shifted(bake_frames, of_joints, rotations, _base_locations(bake_frames))
    translations[:, joints] = shifted[:, joints]
    return Motion(rotations, translations, locations)


def base_motion(bake_frames: BakeFrames) -> Motion:
    """The base poses, with coupled offsets."""
    still = np.zeros(bake_frames.base.shape[:2])
    return Motion(
        bake_frames.base,
        *_shifted(bake_frames, still, bake_frames.base, _base_locations(bake_frames)),
    )


def keyed_joints(bake_frames: BakeFrames) -> list[int]:
    """Joints that a constraint moves at any frame, and then all joints with coupled offsets too."""
    moved = moved_joints(bake_frames)
    return sorted(moved.union(each.joint for each in bake_frames.couplings) if moved else moved)


def moved_joints(bake_frames: BakeFrames) -> set[int]:
    """Joints that a constraint moves at any frame."""
    in_force = np.flatnonzero((bake_frames.influences > 0.0).any(axis=0)).tolist()
    moving = [c for c in in_force if not bake_frames.constraints[c].kind.plants]
    joints = {j for c in moving for j in bake_frames.moved_by(c)}
    if bake_frames.tracks is not None:
        joints = joints.difference(bake_frames.tracks.joints()) | set(bake_frames.tracks.keyed())
    return joints


def rotated_joints(bake_frames: BakeFrames) -> list[int]:
    """Joints with a keyed rotation: no coupled offset alone, and no root bone that keeps its animation unless
    the body helps."""
    tracks = bake_frames.tracks
    is_kept = tracks is not None and tracks.keeps_body and not tracks.turns_body
    kept = tracks.support_chains.root_bone if tracks is not None and is_kept else -1
    return sorted(moved_joints(bake_frames) - {kept})


def keyed_locations(bake_frames: BakeFrames, motion: Motion) -> dict[int, Array]:
    """(F, 3) values of each keyed location channel, by joint."""
    locations = {j: motion.locations[:, k] for k, j in enumerate(bake_frames.located)}
    tracks = bake_frames.tracks
    if tracks is not None and tracks.support_chains.root_bone in tracks.keyed():
        j = tracks.support_chains.root_bone
        locations[j] = locations_of(tracks.shifts, motion.translations[:, j])
    return locations


def joint_influences(bake_frames: BakeFrames) -> Array:
    """(F, J): the largest influence among the constraints that move a joint."""
    influences = np.zeros(bake_frames.base.shape[:2])
    for c, constraint in enumerate(bake_frames.constraints):
        if constraint.kind.plants:  # legs are blended by the planted solver
            continue
        joints = list(bake_frames.moved_by(c))
        influences[:, joints] = np.maximum(influences[:, joints], bake_frames.influences[:, [c]])
    return influences


def _base_locations(bake_frames: BakeFrames) -> Array:
    """(F, L, 3) what location channels hold in the base poses, without coupled offsets."""
    if not bake_frames.located:
        return np.empty((len(bake_frames.frames), 0, 3))
    return locations_of(bake_frames.shifts, bake_frames.translations[:, list(bake_frames.located)])


def _shifted(
    bake_frames: BakeFrames, influences: Array, rotations: Array, bases: Array
) -> tuple[Array, Array]:
    """Translations (F, J, 3) and locations (F, L, 3) of rotations (F, J, 4) under (F, J) influences.

    Slides are lerped between solves. `bases`: `_base_locations`.
    """
    translations = bake_frames.translations.copy()
    locations = np.empty_like(bases)
    for place, j in enumerate(bake_frames.located):
        slides = [k for k, joint in enumerate(bake_frames.sliding) if joint == j]
        shifts, moved = bake_frames.shifts[:, place], (influences[:, j] > 0.0)[:, None]
        base = location = bases[:, place]
        for k in slides:
            axis = np.array(bake_frames.slides[k].axis)
            along = base @ axis
            held = _held_slide(bake_frames, k, along, influences[:, j])
            location = location + (held - along)[:, None] * axis
        location = np.where(moved, location, base)
        coupled = [each for each in bake_frames.couplings if each.joint == j]
        for each in coupled:
            angles = coupled_angles(each.hinge, rotations[:, each.driver].T)
            location = location + each.offset.evaluate(angles)[0][:, None] * np.array(each.offset.axis)
        locations[:, place] = location
        if coupled:
            moved = np.ones_like(moved)
        translations[:, j] = np.where(moved, translations_of(shifts, location), translations[:, j])
    return translations, locations


def _held_slide(bake_frames: BakeFrames, k: int, along: Array, influences: Array) -> Array:
    """(F,) shifts of slide `k` by (F,) influences, inside its range; `along`: shifts of the base poses."""
    slide = bake_frames.slides[k]
    solved = np.interp(bake_frames.frames, bake_frames.solved_frames, bake_frames.solved_slides[:, k])
    blended = along + influences * (np.clip(solved, slide.lower, slide.upper) - along)
    # As with limits: an animator's pose outside the range wins.
    inside = (along >= slide.lower - ROUNDING) & (along <= slide.upper + ROUNDING)
    return np.asarray(np.where(inside, np.clip(blended, slide.lower, slide.upper), blended))


def _hold_planted(bake_frames: BakeFrames, tracks: Tracks, keyed: Motion, full: Motion) -> BakeFrames:
    """Put support chains and root bone of the motions where planted bones are held; in place.

    Args:
        keyed, full: the motion that is keyed, and at full influence.

    Returns:
        The frames with these places as the targets of planted bones.
    """
    frames, solved_frames = bake_frames.frames, bake_frames.solved_frames
    joints, root_bone = tracks.keyed(), tracks.support_chains.root_bone
    # Joints of support chains without keys play the animation between solved frames, too.
    unkeyed = sorted(set(tracks.joints()).difference(joints))
    for motion in (keyed, full):
        motion.rotations[:, unkeyed] = bake_frames.base[:, unkeyed]
    solved = tracks.contacts.rotations[:, joints]
    keyed.rotations[:, joints] = interpolation.slerp_rotations(solved_frames, solved, frames)
    where = np.zeros(keyed.rotations.shape[:2], dtype=bool)
    where[np.ix_(~np.isin(frames, solved_frames), joints)] = True
    _hold_limits(bake_frames, keyed.rotations, where)
    has_root_keys = root_bone in joints
    root = tracks.contacts.translations[:, root_bone]
    for axis in range(3) if has_root_keys else ():
        along = np.interp(frames, solved_frames, root[:, axis])
        keyed.translations[:, root_bone, axis] = full.translations[:, root_bone, axis] = along
    planted, targets = _held_targets(bake_frames, tracks)
    if has_root_keys and not tracks.keeps_body:
        _put_on_bases(bake_frames, tracks, planted, targets, (keyed, full))
    influences, planting = bake_frames.influences.copy(), list(tracks.support_chains.constraints)
    influences[:, planting] = planted[:, planting]
    return replace(bake_frames, targets=targets, influences=influences)


def _held_targets(bake_frames: BakeFrames, tracks: Tracks) -> tuple[Mask, TargetRows]:
    """(F, C) mask of planted bones, and the targets with their places."""
    contacts, targets = tracks.contacts, bake_frames.targets.copy()
    after = np.searchsorted(bake_frames.solved_frames, bake_frames.frames)
    is_solved = bake_frames.solved_frames[after] == bake_frames.frames
    has_target = np.array([bool(constraint.target) for constraint in bake_frames.constraints])
    is_held = contacts.planted[after] & (is_solved[:, None] | ~has_target)
    heads, rotations = seen(contacts.anchors[after], tracks.worlds[:, None])
    targets.points[is_held], targets.rotations[is_held] = heads[is_held], rotations[is_held]
    # Between solved frames one with a target is at it by now.
    planted = is_held | (contacts.planted[after] & contacts.planted[np.maximum(after - 1, 0)])
    return planted, targets


def _put_on_bases(
    bake_frames: BakeFrames,
    tracks: Tracks,
    planted: Mask,
    targets: TargetRows,
    motions: Sequence[Motion],
) -> None:
    """Put the root bone of motions where the base of each frame is held; in place.

    `planted`, `targets`: of `_held_targets`.
    """
    skeleton, root_bone = bake_frames.skeleton, tracks.support_chains.root_bone
    after = np.searchsorted(bake_frames.solved_frames, bake_frames.frames)
    bases = np.array(tracks.contacts.bases)[after]
    rows = np.flatnonzero((bases >= 0) & planted[np.arange(len(bases)), bases])
    if not len(rows):
        return
    held = rows, bases[rows]
    tips = [skeleton.index(bake_frames.constraints[base].tip) for base in held[1].tolist()]
    places = targets.points[held], batch.unit(targets.rotations[held], axis=-1)
    bones = bake_frames.bones_at(rows)
    for motion in motions:
        poses = JointPoses(motion.rotations, motion.translations).at(rows)
        placed(poses, skeleton, bones, root_bone, tips, places)
        motion.rotations[rows, root_bone] = poses.rotations[:, root_bone]
        motion.translations[rows, root_bone] = poses.translations[:, root_bone]


def _hold_limits(bake_frames: BakeFrames, rotations: Array, where: Mask, base: Array | None = None) -> None:
    """Bring rotations back inside the limits, in place: a slerp of allowed rotations may lead outside.

    Args:
        bake_frames: with the limits.
        rotations: (F, J, 4).
        where: (F, J) mask of rotations to clamp.
        base: (F, J, 4) poses that were blended from. Where one breaks the limit itself, it wins: a clamp
            would make the joint jump as soon as the influence leaves 0.
    """
    skeleton_joints = bake_frames.skeleton.joints
    for rows in batch.alike(map(id, bake_frames.limits)):
        limits = bake_frames.limits[rows[0]]
        turning = (j for j, limit in enumerate(limits) if limit is not None and not skeleton_joints[j].locked)
        joints = [j for j in turning if where[rows, j].any()]
        if not joints:
            continue
        shapes, places = BatchLimits([limits[j] for j in joints]), np.ix_(rows, joints)
        projected, outside = shapes.project(rotations[places].transpose(2, 1, 0))
        if outside is None:
            continue
        changed = outside & where[places].T
        if base is not None:
            changed &= shapes.contains(batch.unit(base[places].transpose(2, 1, 0)))
        inside = projected.transpose(2, 1, 0)
        rotations[places] = np.where(changed.T[..., None], inside, rotations[places])
