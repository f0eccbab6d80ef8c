# SPDX-License-Identifier: GPL-3.0-or-later
"""What is keyed of a bake's frames: solved poses, what stands between them, and influence below 1.

Frames between solved ones are true slerps of the solved rotations, brought back inside the limits. Influence
below 1 blends each joint from its base pose to the solved one, as Blender's constraints do. A coupled offset
has no motion of its own: its location is what it says of the rotations that are keyed, at every frame.

Pure functions of `BakeFrames`; see there for the letters in the shapes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...limits.batch import BatchLimits
from ...maths import batch
from ...maths.batch import Array, Mask
from ...motion import interpolation
from ...skeleton.coupled_offset import coupled_angles
from ..properties.constraint_values import Kind
from ..rig.locations import locations_of, translations_of
from .bake_frames import BakeFrames, Motion, numbers
from .tracks import Tracks

ROUNDING = 1e-6
"""Of a location, as it is stored."""


class KeyedMotion(NamedTuple):
    """What a bake keys.

    Attributes:
        bake_frames: with the targets of planted bones where these are held, and their influences 1 there.
        keyed: what is keyed.
        blended: the same before keys are left out.
        full: the same at full influence.
    """

    bake_frames: BakeFrames
    keyed: Motion
    blended: Motion
    full: Motion


def keyed_motion(bake_frames: BakeFrames) -> KeyedMotion:
    """What is to be keyed of frames that are solved: slerps between them, blended by influence."""
    full = interpolation.slerp_rotations(bake_frames.solved_frames, bake_frames.solved, bake_frames.frames)
    between = ~np.isin(bake_frames.frames, bake_frames.solved_frames)
    chains = {j for c in range(len(bake_frames.constraints)) for j in bake_frames.moved_by(c)}
    still = [j for j in range(len(bake_frames.skeleton.joints)) if j not in chains]
    # Between solves these are where they are, not where a slerp leads.
    full[:, still] = bake_frames.base[:, still]
    influences = joint_influences(bake_frames)
    # A slerp leaves limits, and a solve leaves alone what serves no goal.
    _hold_limits(bake_frames, full, influences > 0.0)
    rotations = _blended(bake_frames, full, influences)
    keyed = Motion(rotations, *_shifted(bake_frames, influences, rotations))
    at_full = Motion(full, *_shifted(bake_frames, np.ones_like(influences), full))
    if bake_frames.tracks is not None:
        bake_frames = _hold_planted(bake_frames, bake_frames.tracks, between, (keyed, at_full))
    keyed = keyed._replace(rotations=interpolation.same_side(rotations))
    return KeyedMotion(bake_frames, keyed, keyed, at_full)


def _blended(bake_frames: BakeFrames, full: Array, influences: Array) -> Array:
    """(F, J, 4) rotations between the base poses and those at full influence, under (F, J) influences."""
    rotations = np.where(influences[..., None] > 0.0, full, bake_frames.base)
    partly = (influences > 0.0) & (influences < 1.0)
    if partly.any():
        base, solved = batch.unit(bake_frames.base[partly], axis=-1), batch.unit(full[partly], axis=-1)
        rotations[partly] = batch.slerp(base, solved, influences[partly], axis=-1)
        _hold_limits(bake_frames, rotations, partly, bake_frames.base)
    return rotations


def with_chain_at(motion: KeyedMotion, c: int, influences: Array) -> Motion:
    """The blended motion, but for the chain of constraint `c`, which has (F,) influences."""
    bake_frames, blended = motion.bake_frames, motion.blended
    joints = list(bake_frames.moved_by(c))
    of_joints = joint_influences(bake_frames)
    of_joints[:, joints] = influences[:, None]
    rotations, translations = blended.rotations.copy(), blended.translations.copy()
    rotations[:, joints] = _blended(bake_frames, motion.full.rotations, of_joints)[:, joints]
    shifted, locations = _shifted(bake_frames, of_joints, rotations)
    translations[:, joints] = shifted[:, joints]
    return Motion(rotations, translations, locations)


def base_motion(bake_frames: BakeFrames) -> Motion:
    """The base poses, with the shifts that coupled offsets give them."""
    still = np.zeros(bake_frames.base.shape[:2])
    return Motion(bake_frames.base, *_shifted(bake_frames, still, bake_frames.base))


def keyed_joints(bake_frames: BakeFrames) -> list[int]:
    """Joints that a constraint moves at some frame; if there are any, also all that have coupled offsets."""
    moved = _moved_joints(bake_frames)
    return sorted(moved.union(each.joint for each in bake_frames.couplings) if moved else moved)


def _moved_joints(bake_frames: BakeFrames) -> set[int]:
    """Joints that a constraint moves at some frame."""
    joints = {int(j) for j in np.flatnonzero((joint_influences(bake_frames) > 0.0).any(axis=0))}
    if bake_frames.tracks is not None:
        joints = joints.difference(bake_frames.tracks.joints()) | set(bake_frames.tracks.keyed())
    return joints


def rotated_joints(bake_frames: BakeFrames) -> list[int]:
    """Those of them whose rotation is keyed. A root bone that keeps its animation is only moved, and so is a
    bone whose coupled offset follows another one."""
    tracks = bake_frames.tracks
    kept = tracks.support_chains.root_bone if tracks is not None and tracks.keeps_body else -1
    return sorted(_moved_joints(bake_frames) - {kept})


def keyed_locations(bake_frames: BakeFrames, motion: Motion) -> dict[int, Array]:
    """(F, 3) of each joint whose location is keyed: what the location channel of its bone holds."""
    locations = {j: motion.locations[:, k] for k, j in enumerate(bake_frames.located)}
    tracks = bake_frames.tracks
    if tracks is not None and tracks.support_chains.root_bone in tracks.keyed():
        j = tracks.support_chains.root_bone
        locations[j] = locations_of(np.array(tracks.shifts), motion.translations[:, j])
    return locations


def joint_influences(bake_frames: BakeFrames) -> Array:
    """(F, J): the largest influence among the constraints that move a joint."""
    influences = np.zeros(bake_frames.base.shape[:2])
    for c, constraint in enumerate(bake_frames.constraints):
        if constraint.kind is Kind.PLANT:  # it moves the legs, which have their own way
            continue
        for j in bake_frames.moved_by(c):
            influences[:, j] = np.maximum(influences[:, j], bake_frames.influences[:, c])
    return influences


def _shifted(bake_frames: BakeFrames, influences: Array, rotations: Array) -> tuple[Array, Array]:
    """Translations (F, J, 3) and locations (F, L, 3) of rotations (F, J, 4) under (F, J) influences.

    Slides are lerped between solves.
    """
    translations = bake_frames.translations.copy()
    locations = np.empty((len(bake_frames.frames), len(bake_frames.located), 3))
    for place, j in enumerate(bake_frames.located):
        own = [k for k, joint in enumerate(bake_frames.sliding) if joint == j]
        shifts, moved = bake_frames.shifts[:, place], (influences[:, j] > 0.0)[:, None]
        base = locations_of(shifts, translations[:, j])
        location = base
        for k in own:
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
    """(F,) shifts of slide `k` inside its range under (F,) influences; `along`: of the base poses."""
    slide = bake_frames.slides[k]
    solved = np.interp(bake_frames.frames, bake_frames.solved_frames, bake_frames.solved_slides[:, k])
    blended = along + influences * (np.clip(solved, slide.lower, slide.upper) - along)
    # As with limits: where the animator's own pose is outside the range, it wins.
    inside = (along >= slide.lower - ROUNDING) & (along <= slide.upper + ROUNDING)
    return np.asarray(np.where(inside, np.clip(blended, slide.lower, slide.upper), blended))


def _hold_planted(
    bake_frames: BakeFrames, tracks: Tracks, between: Array, motions: tuple[Motion, Motion]
) -> BakeFrames:
    """Put support chains and root bone of both motions, what is keyed and what is at full influence, where
    planted bones are held; in place. The frames then have these places as the targets of planted bones."""
    keyed, full = motions
    frames, solved_frames = bake_frames.frames, bake_frames.solved_frames
    joints, root_bone = tracks.joints(), tracks.support_chains.root_bone
    poses = [contact_state.pose for contact_state in tracks.contact_states]
    solved = np.array([numbers(pose.rotations) for pose in poses])[:, joints]
    keyed.rotations[:, joints] = interpolation.slerp_rotations(solved_frames, solved, frames)
    where = np.zeros(keyed.rotations.shape[:2], dtype=bool)
    where[np.ix_(between, joints)] = True
    _hold_limits(bake_frames, keyed.rotations, where)
    root = np.array([pose.translations[root_bone][:] for pose in poses])
    for axis in range(3):
        along = np.interp(frames, solved_frames, root[:, axis])
        keyed.translations[:, root_bone, axis] = full.translations[:, root_bone, axis] = along
    held = tracks.held(frames, solved_frames, bake_frames.targets)
    for motion in () if tracks.keeps_body else motions:
        bones = bake_frames.offsets, batch.unit(bake_frames.rests, axis=-1)
        tracks.carry(held, (frames, solved_frames), motion.rotations, motion.translations, bones)
    influences = bake_frames.influences.copy()
    for f, planted in enumerate(held):
        for c in tracks.support_chains.constraints:
            influences[f, c] = 1.0 if c in planted else 0.0
    targets = bake_frames.targets.copy()
    for f, planted in enumerate(held):
        for c, target in planted.items():
            targets.set(f, c, target)
    return replace(bake_frames, targets=targets, influences=influences)


def _hold_limits(bake_frames: BakeFrames, rotations: Array, where: Mask, base: Array | None = None) -> None:
    """Bring rotations back inside the limits, in place: the way between allowed ones may lead outside.

    Args:
        bake_frames: whose limits hold.
        rotations: (F, J, 4).
        where: (F, J) which of them to look at.
        base: (F, J, 4) poses that were blended from. Where such a pose itself breaks the limit, the
            animator's pose wins: a clamp would make the joint jump as soon as the influence leaves 0.
    """
    turning = np.array([not joint.locked for joint in bake_frames.skeleton.joints])
    rows_by_limits: dict[int, list[int]] = {}
    for f, limits in enumerate(bake_frames.limits):
        rows_by_limits.setdefault(id(limits), []).append(f)
    for rows in rows_by_limits.values():
        limits = bake_frames.limits[rows[0]]
        joints = [j for j in np.flatnonzero(where[rows].any(0) & turning) if limits[j] is not None]
        shapes, places = BatchLimits([limits[j] for j in joints]), np.ix_(rows, joints)
        projected, outside = shapes.project(rotations[places].transpose(2, 1, 0))
        if outside is None:
            continue
        changed = outside & where[places].T
        if base is not None:
            changed &= shapes.contains(batch.unit(base[places].transpose(2, 1, 0)))
        inside = projected.transpose(2, 1, 0)
        rotations[places] = np.where(changed.T[..., None], inside, rotations[places])
