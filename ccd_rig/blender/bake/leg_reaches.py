# SPDX-License-Identifier: GPL-3.0-or-later
"""What legs ask of a body that keeps its animation: how far they reach, from where.

A planted bone is within reach while the head of its leg is inside a ball about the place where it is held,
as large as the leg's largest extension. A ball goes along with the body where the leg hung on it alone as the
foot came down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from mathutils import Vector

from ...goals import PositionGoal
from ...maths.batch import Array
from ...settings import SolverSettings
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...solvers.solve import solve
from ..scene.evaluation import FrameSample
from .bake_frames import BakeFrames
from .least_shifts import Reaches

REACHES = 0.9998
"""Part of a leg's largest extension to which it is stretched: a straight knee could bend either way."""
BENT = 0.999
"""A leg whose limits leave it this part of its bones' length counts as straight."""
FAR = 10.0
"""Lengths of a leg at which a target is out of reach in any pose."""


def leg_reaches(
    bake_frames: BakeFrames,
    samples: Sequence[tuple[int, FrameSample]],
    shifts: Array,
    extensions: dict[tuple[object, ...], float],
) -> Reaches:
    """What legs ask of the body, as the frames are solved now.

    Args:
        bake_frames: as solved with the shifts.
        samples: of the solved frames.
        shifts: (S, 3) of the body, in the solved poses.
        extensions: of each constraint and shape of its leg; what is missing is added.
    """
    tracks = bake_frames.tracks
    assert tracks is not None
    planted = tracks.support_chains.constraints
    shape = (len(samples), len(planted))
    centres, radii, origins = np.zeros((*shape, 3)), np.full(shape, np.inf), np.full(shape, -1, np.intp)
    for s, ((_, sample), contact_state) in enumerate(zip(samples, tracks.contact_states, strict=True)):
        skeleton = sample.reading.skeleton
        heads = forward_kinematics(skeleton, contact_state.pose) if contact_state.anchors else ()
        for k, c in enumerate(planted):
            if c not in contact_state.anchors:
                continue
            row = bake_frames.constraints[c]
            leg = _leg(skeleton, skeleton.chain(row.tip, row.chain_length))
            known = (c, *(tuple(skeleton.joints[j].offset) for j in leg[1:]))
            if known not in extensions:
                extensions[known] = _largest_extension(skeleton, contact_state.pose, leg)
            head = np.array(heads[leg[0]].translation[:]) - shifts[s]
            if s > 0:
                origins[s, k] = _origin(bake_frames, sample, s, c, int(origins[s - 1, k]))
            origin = int(origins[s, k])
            place = np.array(contact_state.anchors[c].seen(contact_state.world).point[:])
            centres[s, k] = place - (shifts[origin] if origin >= 0 else 0.0) - head
            radii[s, k] = extensions[known]
    return Reaches(centres, radii, origins)


def _origin(bake_frames: BakeFrames, sample: FrameSample, s: int, c: int, before: int) -> int:
    """`Reaches.origins` of constraint `c` in a solved frame after the first; `before` is its last one."""
    assert bake_frames.tracks is not None
    row, last = bake_frames.constraints[c], bake_frames.tracks.contact_states[s - 1]
    if row.target:
        return -1
    if c in last.anchors:
        return before
    leg = sample.reading.skeleton.chain(row.tip, row.chain_length)[1:]
    return s - 1 if last.moved.isdisjoint(leg) else -1


def _leg(skeleton: Skeleton, chain: Sequence[int]) -> list[int]:
    """Joints of a leg from the first that turns to the planted one: those that turn, and the last."""
    *between, tip = chain[1:]
    return [*(j for j in between if not skeleton.joints[j].locked), tip]


def _largest_extension(skeleton: Skeleton, pose: Pose, leg: Sequence[int]) -> float:
    """How far the head of the last joint gets from that of the first, other than at the very end."""
    heads = [joint.translation for joint in (forward_kinematics(skeleton, pose)[j] for j in leg)]
    length = math.fsum((after - before).length for before, after in pairwise(heads))
    if all(skeleton.joints[j].limit is None for j in leg[1:-1]):
        return REACHES * length
    free = skeleton.replace({skeleton.joints[leg[0]].name: {"limit": None, "comfort": None}})
    name, count = (
        skeleton.joints[leg[-1]].name,
        len(skeleton.chain(leg[-1])) - len(skeleton.chain(leg[0])) + 1,
    )
    way = heads[-1] - heads[0]
    way = way.normalized() if way.length > 0.0 else Vector((0.0, 0.0, -1.0))
    far = heads[0] + FAR * length * way
    goal = PositionGoal(name, far, Vector((0.0, 0.0, 0.0)), chain_length=count)
    settings = SolverSettings(position_tolerance=1e-6 * length, comfort=False)
    stretched = forward_kinematics(free, solve(free, pose, [goal], settings).pose)
    most = (stretched[leg[-1]].translation - stretched[leg[0]].translation).length
    return REACHES * (length if most > BENT * length else most)
