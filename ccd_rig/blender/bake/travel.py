# SPDX-License-Identifier: GPL-3.0-or-later
"""The travel of a body that walks on: its way along the ground, as planted bones push it.

A bone that is planted at a frame must not move along the ground from the frame before to it. So the body goes
by as much the other way as its animation moves the planted bones, on average over them:

    travel[f] = travel[f - 1] - sum w[f] (animated[f] - animated[f - 1]) / sum w[f]

The weight w of a bone counts frames from where it comes down and to where it leaves, whichever are fewer: as
one foot takes over from another the body goes over smoothly, and feet that land or leave say little. Where
nothing is planted it goes on at the speeds before and after. What bones still differ by is left to the legs.
Height and rotation stay as they are animated, so no error of a step adds up to a climb. A walk that goes
through the world already has no travel but what its feet slide. In the shapes F counts the frames, P the
constraints that plant bones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...maths.batch import Array, conjugate, inverse, rotate, unit
from ...skeleton.kinematics import forward_kinematics_of_frames
from ...skeleton.pose import Pose
from ..properties.constraint_values import Kind
from ..scene.evaluation import FrameSample
from .bake_frames import BakeFrames


def walk_on(
    bake_frames: BakeFrames, samples: Sequence[tuple[int, FrameSample]]
) -> list[tuple[int, FrameSample]]:
    """The samples with the body where its travel brings it, as are the bake's frames; nothing is solved yet.

    Args:
        bake_frames: the body keeps its animation; its base poses are moved in place.
        samples: row and sample of every frame, in order.

    Raises:
        RigError: no constraint plants a bone along the ground at any of the frames.
    """
    tracks = bake_frames.tracks
    assert tracks is not None
    pushing = [
        c
        for c, constraint in enumerate(bake_frames.constraints)
        if constraint.kind is Kind.PLANT and constraint.holds.ground and not constraint.target
    ]
    planted = bake_frames.influences[:, pushing] > 0.0
    if not planted.any():
        raise RigError(
            "Body is Walk On, but no bone is planted along the ground in these frames: press Find Contacts, "
            "or set Body to Keep Animation"
        )
    worlds, root_bone = np.array(tracks.worlds), tracks.support_chains.root_bone
    rests = unit(bake_frames.rests, axis=-1)
    heads, _ = forward_kinematics_of_frames(
        bake_frames.skeleton, bake_frames.offsets, rests, bake_frames.base, bake_frames.translations
    )
    tips = [bake_frames.skeleton.index(bake_frames.constraints[c].tip) for c in pushing]
    places = np.einsum("fij,fpj->fpi", worlds[:, :3, :3], heads[:, tips]) + worlds[:, None, :3, 3]
    ways = travel(bake_frames.frames, places, planted)
    tracks.travel = float(np.linalg.norm(ways[-1]))
    shifts = np.einsum("fij,fj->fi", inverse(worlds)[:, :3, :3], ways)
    shifts = rotate(conjugate(rests[:, root_bone].T), shifts.T).T
    # As poses hold it: what float32 rounds off is no shift of the body.
    bake_frames.translations[:, root_bone] = np.float32(bake_frames.translations[:, root_bone] + shifts)
    return [
        (row, _moved(sample, root_bone, bake_frames.translations[row, root_bone])) for row, sample in samples
    ]


def travel(frames: Array, places: Array, planted: NDArray[np.bool_]) -> Array:
    """(F, 3) how far the body has gone along the ground at each frame, world metres; 0 at the first.

    Args:
        frames: (F,) increasing.
        places: (F, P, 3) of the bones as they are animated, world metres.
        planted: (F, P) where each is held.
    """
    steps = np.diff(frames)[:, None]
    speeds = np.diff(places, axis=0) / steps[..., None]
    weights = _weights(planted)[1:]
    sums = weights.sum(axis=1)
    known = np.flatnonzero(sums)
    ways = np.zeros((len(frames), 3))
    if len(known):
        mean = (speeds[known] * weights[known, :, None]).sum(axis=1) / sums[known, None]
        times = (frames[1:] + frames[:-1]) / 2.0
        for axis in range(2):
            along = np.interp(times, times[known], mean[:, axis])
            ways[1:, axis] = -np.cumsum(along * steps[:, 0])
    return ways


def _weights(planted: NDArray[np.bool_]) -> Array:
    """(F, P) frames to the nearer end of the span in which a bone is planted; one cut off has one end."""
    count = len(planted)
    since, until = (np.zeros(planted.shape) for _ in range(2))
    for f in range(count):
        since[f] = np.where(planted[f], since[f - 1] + 1.0 if f else count, 0.0)
        g = count - 1 - f
        until[g] = np.where(planted[g], until[g + 1] + 1.0 if f else count, 0.0)
    return np.minimum(since, until)


def _moved(sample: FrameSample, root_bone: int, translation: Array) -> FrameSample:
    reading = sample.reading
    translations = list(reading.pose.translations)
    translations[root_bone] = Vector(translation.tolist()).freeze()
    pose = Pose(reading.pose.rotations, tuple(translations))
    return sample._replace(reading=replace(reading, pose=pose))
