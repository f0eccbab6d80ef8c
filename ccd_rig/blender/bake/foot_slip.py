# SPDX-License-Identifier: GPL-3.0-or-later
"""How far planted bones slide: by the keys, and as Blender plays them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import bpy
import numpy as np

from ...maths.batch import inverse
from ...maths.rotations import angle_between
from ..scene.played_frames import playback
from ..solve.planting import upright
from .bake_frames import BakeFrames
from .entries import Entries
from .report_parts import FootSlip


def foot_slips(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    entries: Entries,
) -> tuple[FootSlip, ...]:
    """One per constraint that plants a bone at some frame; the keys are written by now.

    Args:
        scene: in which the armature plays.
        armature_object: plays the keys.
        bake_frames: of `keyed_motion`, so that the targets of planted bones are where they are held.
        entries: how each constraint stands at each frame, by the keys.
    """
    if bake_frames.tracks is None:
        return ()
    planting = [
        c for c in bake_frames.tracks.support_chains.constraints if (bake_frames.influences[:, c] > 0.0).any()
    ]
    frames = bake_frames.frames.astype(int).tolist()
    distances = {c: [(0.0, frames[0])] for c in planting}
    angles = {c: [0.0] for c in planting}
    tips = {c: armature_object.pose.bones.find(bake_frames.constraints[c].tip) for c in planting}
    with playback(scene, armature_object, bake_frames.constraints) as playing:
        for frame in range(frames[0], frames[-1] + 1):
            planted = _planted(bake_frames, planting, frames, frame)
            if not planted:
                continue
            matrices, now = playing.pose(float(frame))
            for c, f in planted.items():
                tip, target = now @ matrices[tips[c]], bake_frames.targets.sample(f, c)
                assert target.rotation is not None
                world = bake_frames.tracks.worlds[f]
                head = world[:3, :3] @ np.array(target.point[:]) + world[:3, 3]
                distances[c].append((float(np.linalg.norm(tip[:3, 3] - head)), frame))
                rotation = upright(inverse(world)[:3, :3] @ tip[:3, :3])
                angles[c].append(angle_between(rotation, target.rotation))
    return tuple(
        FootSlip(
            bake_frames.constraints[c].name,
            float(entries.keyed_residual[entries.constraint == c].max()),
            float(entries.keyed_angle[entries.constraint == c].max()),
            max(distances[c])[0],
            max(angles[c]),
            max(distances[c])[1],
        )
        for c in planting
    )


def _planted(
    bake_frames: BakeFrames, planting: Sequence[int], frames: Sequence[int], frame: int
) -> dict[int, int]:
    """Constraints whose bone is planted at a frame, each with the row of `bake_frames` that says where.

    Between two keys that is where both hold it, if it is held without a target and as a whole.
    """
    after = bisect.bisect_left(frames, frame)
    if frames[after] == frame:
        return {c: after for c in planting if bake_frames.influences[after, c] > 0.0}
    return {
        c: after
        for c in planting
        if min(bake_frames.influences[after - 1 : after + 1, c]) > 0.0
        and not bake_frames.constraints[c].target
        and all(bake_frames.constraints[c].holds)
    }
