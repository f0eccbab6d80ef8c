# SPDX-License-Identifier: GPL-3.0-or-later
"""How far planted bones slide: by the keys, and as Blender plays them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import bpy
import numpy as np

from ...maths.rotations import angle_between
from ..scene import evaluation
from ..solve.planting import inverse, upright
from .bake_frames import BakeFrames
from .report import Entry, FootSlip


def foot_slips(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, take: BakeFrames, stands: Sequence[Entry]
) -> tuple[FootSlip, ...]:
    """One per constraint that plants a bone at some frame; the keys are written by now.

    Args:
        scene: in which the armature plays.
        armature_object: plays the keys.
        take: finished, so that the aims of planted bones are where they are held.
        stands: how each constraint stands at each frame, by the keys.
    """
    if take.tracks is None:
        return ()
    rows = [c for c in take.tracks.support_chains.constraints if (take.influences[:, c] > 0.0).any()]
    frames = take.frames.astype(int).tolist()
    far, turned = {c: [(0.0, frames[0])] for c in rows}, {c: [0.0] for c in rows}
    tips = {c: armature_object.pose.bones.find(take.constraints[c].tip) for c in rows}
    with evaluation.playback(scene, armature_object, take.constraints) as play:
        for frame in range(frames[0], frames[-1] + 1):
            planted = _planted(take, rows, frames, frame)
            if not planted:
                continue
            shown = play(float(frame), False, False)
            for c, f in planted.items():
                here, aim = shown.world @ shown.matrices[tips[c]], take.targets[f][c]
                assert aim.rotation is not None
                held = take.tracks.worlds[f]
                head = held[:3, :3] @ np.array(aim.point[:]) + held[:3, 3]
                far[c].append((float(np.linalg.norm(here[:3, 3] - head)), frame))
                rotation = upright(inverse(held)[:3, :3] @ here[:3, :3])
                turned[c].append(angle_between(rotation, aim.rotation))
    return tuple(
        FootSlip(
            take.constraints[c].name,
            max(row.keyed_residual for row in stands if row.constraint == take.constraints[c].name),
            max(row.keyed_angle for row in stands if row.constraint == take.constraints[c].name),
            max(far[c])[0],
            max(turned[c]),
            max(far[c])[1],
        )
        for c in rows
    )


def _planted(take: BakeFrames, rows: Sequence[int], frames: Sequence[int], frame: int) -> dict[int, int]:
    """Rows whose bone is planted at a frame, each with the row of the take that says where.

    Between two keys that is where both hold it, if it is held without a target.
    """
    after = bisect.bisect_left(frames, frame)
    if frames[after] == frame:
        return {c: after for c in rows if take.influences[after, c] > 0.0}
    return {
        c: after
        for c in rows
        if min(take.influences[after - 1 : after + 1, c]) > 0.0 and not take.constraints[c].target
    }
