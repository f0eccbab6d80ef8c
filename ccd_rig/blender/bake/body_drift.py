# SPDX-License-Identifier: GPL-3.0-or-later
"""A body that leaves its animation while bones are planted: it climbs, tips or floats."""

from __future__ import annotations

import numpy as np

from ...maths.batch import Array, conjugate, inverse, rotate, unit
from ...skeleton.kinematics import forward_kinematics_of_frames
from .bake_frames import BakeFrames, Motion
from .report import BodyDrift, Peak, number


def body_drift(bake_frames: BakeFrames, keyed: Motion) -> BodyDrift:
    """How far the figure is off; some constraint plants a bone.

    Args:
        bake_frames: the base poses of a body that walks on have its travel.
        keyed: what is keyed.
    """
    tracks, skeleton = bake_frames.tracks, bake_frames.skeleton
    assert tracks is not None
    worlds, rests = np.array(tracks.worlds), unit(bake_frames.rests, axis=-1)
    poses = (bake_frames.base, bake_frames.translations), (keyed.rotations, keyed.translations)
    (heads, axes), (keyed_heads, keyed_axes) = (
        forward_kinematics_of_frames(skeleton, bake_frames.offsets, rests, unit(q, axis=-1), t)
        for q, t in poses
    )
    root_bone, frames = tracks.support_chains.root_bone, [number(each) for each in bake_frames.frames]
    name = skeleton.joints[root_bone].name
    rise = lean = None
    if not tracks.keeps_body and not any(constraint.tip == name for constraint in bake_frames.constraints):
        rises = np.einsum("fj,fj->f", worlds[:, 2, :3], (keyed_heads - heads)[:, root_bone])
        rises -= rises[0]
        highest = int(np.argmax(np.abs(rises)))
        rise = Peak(name, frames[highest], float(rises[highest]))
        up = inverse(worlds)[:, :3, 2]
        ways = [rotate(conjugate(each[:, root_bone].T), up.T) for each in (axes, keyed_axes)]
        leans = np.linalg.norm(np.cross(*ways, axis=0), axis=0), (ways[0] * ways[1]).sum(axis=0)
        angles = np.arctan2(*leans)
        most = int(np.argmax(angles))
        lean = Peak(name, frames[most], float(angles[most]))
    return BodyDrift(_leg(bake_frames, worlds), rise, lean, _hover(bake_frames, worlds, heads))


def _leg(bake_frames: BakeFrames, worlds: Array) -> float:
    """World metres of the shortest leg, along its bones in the first frame."""
    tracks, skeleton = bake_frames.tracks, bake_frames.skeleton
    assert tracks is not None
    size = float(np.cbrt(abs(np.linalg.det(worlds[0, :3, :3]))))
    lengths = np.linalg.norm(bake_frames.offsets[0], axis=-1)
    planted = [bake_frames.constraints[c] for c in tracks.support_chains.constraints]
    chains = [skeleton.chain(row.tip, row.chain_length)[2:] for row in planted]
    return size * min(float(lengths[list(chain)].sum()) for chain in chains)


def _hover(bake_frames: BakeFrames, worlds: Array, heads: Array) -> Peak | None:
    """The planted bone that is held highest above where it is animated, (F, J, 3) heads of the base poses."""
    tracks, found = bake_frames.tracks, []
    assert tracks is not None
    rows = np.searchsorted(bake_frames.frames, bake_frames.solved_frames).tolist()
    for row, state in zip(rows, tracks.contact_states, strict=True):
        for c, anchor in state.anchors.items():
            constraint = bake_frames.constraints[c]
            if constraint.target or not constraint.holds.height:
                continue
            head = heads[row, bake_frames.skeleton.index(constraint.tip)]
            animated = float(worlds[row, 2, :3] @ head + worlds[row, 2, 3])
            found.append(
                Peak(constraint.tip, number(bake_frames.frames[row]), float(anchor.head[2]) - animated)
            )
    return max(found, key=lambda each: each.amount, default=None)
