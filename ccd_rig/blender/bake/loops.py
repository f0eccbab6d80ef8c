# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a range is a loop, base poses and targets alike at both ends, and whether its bake closes."""

from __future__ import annotations

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..properties.constraint_values import Kind
from .bake_frames import number
from .baked import Baked
from .keyed_motion import rotated_joints
from .report_parts import Loop

ALIKE = 1e-3
"""Radians, and parts of a chain's length, that both ends of a loop may differ by."""


def loop(baked: Baked) -> Loop | None:
    """The range as a loop; None if its ends differ, or if nothing moves in between.

    Targets are compared in armature space: a cycle that travels with its armature is a loop. Where planted
    bones are held does not count.
    """
    bake_frames = baked.bake_frames
    joints = rotated_joints(bake_frames)
    if len(bake_frames.frames) < 3 or not joints:
        return None
    base = batch.unit(bake_frames.base[:, joints], axis=-1)
    turned = batch.angles_between(base, base[:1], axis=-1).max(axis=1)
    moved = np.maximum(turned, _targets_moved(baked))
    if moved[-1] > ALIKE or moved.max() <= ALIKE:
        return None
    keyed = batch.unit(baked.motion.rotations[:, joints], axis=-1)
    gaps = batch.angles_between(keyed[-1], keyed[0], axis=-1)
    k = int(np.argmax(gaps))
    frames = bake_frames.frames
    return Loop(number(frames[0]), number(frames[-1]), baked.bone(joints[k]), float(gaps[k]))


def _targets_moved(baked: Baked) -> Array:
    """(F,) how far targets and influences are from those of the first frame.

    Parts of chains' lengths and radians, whichever is most.
    """
    bake_frames = baked.bake_frames
    influences = bake_frames.influences
    moved = np.abs(influences - influences[:1]).max(axis=1)
    for c, constraint in enumerate(bake_frames.constraints):
        if constraint.kind is Kind.PLANT or not baked.chains[c]:
            continue
        samples = [row[c] for row in bake_frames.targets]
        points = [baked.targets(c)]
        if samples[0].pole is not None:
            points.append(np.array([sample.pole[:] for sample in samples if sample.pole is not None]))
        length = float(bake_frames.lengths[0, list(baked.chains[c])].sum())
        for each in points:
            moved = np.maximum(moved, np.linalg.norm(each - each[:1], axis=-1) / length)
        if samples[0].rotation is not None:
            turns = batch.unit(np.array([s.rotation[:] for s in samples if s.rotation is not None]), axis=-1)
            moved = np.maximum(moved, batch.angles_between(turns, turns[:1], axis=-1))
        if samples[0].direction is not None:
            ways = np.array([s.direction[:] for s in samples if s.direction is not None])
            moved = np.maximum(moved, np.linalg.norm(ways - ways[:1], axis=-1))
    return np.asarray(moved)
