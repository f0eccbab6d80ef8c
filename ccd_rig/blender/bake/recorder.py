# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples of frames into the arrays of a bake: what is as in the frame before costs next to nothing."""

from __future__ import annotations

import numpy as np

from ...errors import RigError
from ..scene.evaluation import FrameSample
from .bake_frames import BakeFrames, numbers
from .repeated_rows import RepeatedRows


class FrameRecorder:
    """Fills the rows of bake frames in order."""

    def __init__(self, bake_frames: BakeFrames) -> None:
        self.bake_frames = bake_frames
        self._last: FrameSample | None = None  # the one stored last
        self._bones = RepeatedRows((bake_frames.offsets, bake_frames.rests))
        self._lengths = RepeatedRows((bake_frames.lengths,))
        self._poses = RepeatedRows((bake_frames.base, bake_frames.translations))
        self._worlds = RepeatedRows((bake_frames.worlds, bake_frames.places))
        self._influences = RepeatedRows((bake_frames.influences,))

    def store(self, row: int, sample: FrameSample) -> None:
        """Keep what was evaluated at the frame of this row."""
        bake_frames, reading, last = self.bake_frames, sample.reading, self._last
        is_known = last is not None and reading is last.reading  # while nothing about the bones changes
        bake_frames.since.append(bake_frames.since[-1] if is_known else row)
        if last is not None and reading.pose is last.reading.pose:
            self._poses.keep(row)
        else:
            self._poses.set(row, numbers(reading.pose.rotations), numbers(reading.pose.translations))
        if last is not None and reading.skeleton is last.reading.skeleton:
            self._bones.keep(row)
            self._lengths.keep(row)
            bake_frames.limits.append(bake_frames.limits[-1])
        else:
            self._store_bones(row, sample)
        if last is not None and sample.matrix_world is last.matrix_world:  # shared while the object stays
            self._worlds.keep(row)
        else:
            matrix = sample.matrix_world
            self._worlds.set(row, np.array(matrix.to_3x3()), np.array(matrix.translation))
        if last is not None and sample.influences == last.influences:
            self._influences.keep(row)
        else:
            self._influences.set(row, sample.influences)
        self._last = sample
        bake_frames.targets.append(sample.targets)
        if bake_frames.located:
            bake_frames.shifts[row] = reading.shifts[list(bake_frames.located)]
        if bake_frames.tracks is not None:
            bake_frames.tracks.store(sample)

    def _store_bones(self, row: int, sample: FrameSample) -> None:
        """Keep the bones of a row; of most frames only those are others that stand on a moving parent."""
        bake_frames, last = self.bake_frames, self._last
        if last is not None and sample.reading.bones != last.reading.bones:
            raise RigError(f"frame {sample.frame:g}: the chains have other bones than at the first frame")
        skeleton, limits = sample.reading.skeleton, bake_frames.limits
        moved = None if last is None else skeleton.moved_since(last.reading.skeleton)
        if moved is not None:
            offsets, rests = ([place[k] for place in moved.values()] for k in range(2))
            self._bones.change(row, list(moved), numbers(offsets), numbers(rests))
            self._lengths.keep(row)
            limits.append(limits[-1])
            return
        joints = skeleton.joints
        before = (None,) * len(joints) if last is None else last.reading.skeleton.joints
        others = [j for j, (joint, old) in enumerate(zip(joints, before, strict=True)) if joint is not old]
        offsets, rests = [joints[j].offset for j in others], [joints[j].rest_rotation for j in others]
        self._bones.change(row, others, numbers(offsets), numbers(rests))
        self._lengths.change(row, others, [joints[j].length for j in others])
        same = limits and all(joints[j].limit == limits[-1][j] for j in others)
        limits.append(limits[-1] if same else tuple(joint.limit for joint in joints))
