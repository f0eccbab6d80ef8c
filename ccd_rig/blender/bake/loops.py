# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a range is a loop, and whether its bake closes.

A loop has base poses and targets that come back to where they began: at its last frame, or at the frame
after it, which starts the next round, as in cycles for games. Its motion is solved round and round. Base
poses are those before any bake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..properties.constraint_values import Kind
from ..scene.evaluation import Samples
from ..scene.targets import TargetRows
from ..solve.constraint_goals import chain_joints
from ..solve.methods import Reference
from .bake_frames import BakeFrames
from .findings import Baked
from .keyed_motion import rotated_joints
from .report import Loop, number

ALIKE = 1e-3
"""Radians, and parts of a chain's length, that both ends of a loop may differ by."""


class Ends(NamedTuple):
    """The first and the last frame of a range, and the one after it if it is there: samples of one each."""

    first: Samples
    last: Samples
    after: Samples | None


def note_loop(bake_frames: BakeFrames, ends: Ends, reference: Reference) -> None:
    """Note in the frames whether they are a loop.

    Targets are compared in armature space: a cycle that travels with its armature is a loop. Where planted
    bones are held does not count, and what they carry is not solved beyond the range.

    Args:
        bake_frames: all of them are evaluated.
        ends: of the range.
        reference: gives the base pose before any bake.
    """
    joints = rotated_joints(bake_frames)
    if len(bake_frames.frames) < 3 or not joints or not _moves(bake_frames, joints):
        return

    def comes_back(end: Samples) -> bool:
        poses = np.concatenate([reference(each) for each in (ends.first, end)])[:, joints]
        targets = TargetRows.empty(2, end.targets)
        for k, each in enumerate((ends.first, end)):
            targets.put([k], each.targets)
        influences = np.concatenate([ends.first.influences, end.influences])
        return bool(max(_turned(poses)[1], _targets_moved(bake_frames, targets, influences)[1]) <= ALIKE)

    bake_frames.is_loop = comes_back(ends.last)
    if not bake_frames.is_loop and ends.after is not None and bake_frames.tracks is None:
        bake_frames.is_loop = bake_frames.repeats_after = comes_back(ends.after)


def loop(baked: Baked) -> Loop | None:
    """The range as a loop; None if it is none.

    One whose first frame comes again after its last closes: that frame is keyed already.
    """
    bake_frames = baked.bake_frames
    if not bake_frames.is_loop:
        return None
    joints, frames = rotated_joints(bake_frames), bake_frames.frames
    ends = [0, 0] if bake_frames.repeats_after else [0, -1]
    first, last = batch.unit(baked.motion.rotations[ends][:, joints], axis=-1)
    gaps = batch.angles_between(first, last, axis=-1)
    k = int(np.argmax(gaps))
    name = baked.bone(joints[k])
    return Loop(number(frames[0]), number(frames[-1]), name, float(gaps[k]), bake_frames.repeats_after)


def _moves(bake_frames: BakeFrames, joints: Sequence[int]) -> bool:
    """Whether base poses, targets or influences change over the range."""
    targets = _targets_moved(bake_frames, bake_frames.targets, bake_frames.influences)
    return bool(np.maximum(_turned(bake_frames.base[:, joints]), targets).max() > ALIKE)


def _turned(rotations: Array) -> Array:
    """(F,) radians by which the rotations (F, J, 4) of joints are from the first ones, whichever is most."""
    rotations = batch.unit(rotations, axis=-1)
    return np.asarray(batch.angles_between(rotations, rotations[:1], axis=-1).max(axis=1))


def _targets_moved(bake_frames: BakeFrames, targets: TargetRows, influences: Array) -> Array:
    """(R,) how far the targets, influences and keyed settings of rows are from those of the first row.

    Parts of chains' lengths and radians, whichever is most.
    """
    moved = np.abs(influences - influences[:1]).max(axis=1)
    for c, constraint in enumerate(bake_frames.constraints):
        joints = list(chain_joints(bake_frames.skeleton, constraint))
        if constraint.kind is Kind.PLANT or not joints:
            continue
        for name, column in targets.keyed.get(c, {}).items():
            apart = np.abs(column - column[0])
            if name == "pole_angle":  # whole turns come to nothing
                apart = np.abs(np.remainder(column - column[0] + np.pi, 2.0 * np.pi) - np.pi)
            moved = np.maximum(moved, apart)
        size = float(bake_frames.lengths[0, joints].sum())
        # What is not asked for is not a number.
        for each in (targets.points[:, c], targets.poles[:, c]):
            moved = np.fmax(moved, batch.length(each - each[:1], axis=-1) / size)
        moved = np.fmax(moved, _turned(targets.rotations[:, c, None]))
        ways = targets.directions[:, c]
        moved = np.fmax(moved, batch.length(ways - ways[:1], axis=-1))
    return np.asarray(moved)
