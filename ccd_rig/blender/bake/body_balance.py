# SPDX-License-Identifier: GPL-3.0-or-later
"""The balance of a body that helps: its centre of mass stays over what the figure stands on.

A figure stands on the lowest ends of its chains. The body may take the centre of mass to an edge of this
support or beyond. Then the figure is solved again from a pose with the bone that carries it farther on the
other side. Standing limbs are turned there to where they stand. The nearest pose to that which meets the
targets is nearer to balance, and no target is missed for it. It moves as steadily as the centre of mass. A
goal of balance would turn legs suddenly where a target takes all that the body can give.

The centre of mass may stay where it is without the body's help, even if that is beyond the support.

Shapes: R rows, L limbs, J joints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mathutils import Vector

from ...maths.batch import (
    Array,
    Mask,
    conjugate,
    cross,
    dot,
    length,
    multiply,
    rotate,
    slerp,
    smooth_step,
    unit,
)
from ...skeleton.joints import Skeleton
from ...solvers.drag import Support
from ...solvers.problem_tables import Bones
from ..solve.planting import JointPoses

ROUNDS = 3
"""Solves in which the body comes nearer to balance: about a fifth of its distance in each."""
STANDS = 0.15
"""Height of an end above the lowest, in parts of that of the centre of mass, at which it carries nothing."""
FALLS = 0.2, 0.4
"""Distances of the centre of mass from where it is eased to, in parts of its height, between which the body
gives up its balance. So nothing jumps where a target gets out of the body's reach."""
LEAST = 1e-4
"""Least distance of the centre of mass that counts, in parts of its height."""
IDENTITY = np.array(((1.0,), (0.0,), (0.0,), (0.0,)))


class Balance:
    """The balance of R rows at which the body helps."""

    def __init__(
        self,
        skeleton: Skeleton,
        bones: Bones,
        worlds: Array,
        chains: Sequence[Sequence[int]],
        pulled: Mask,
        carrier: int,
        poses: JointPoses,
    ) -> None:
        """Prepare the balance.

        Args:
            bones: rest of the joints.
            worlds: (R, 3, 3) armature space to world.
            carrier: the joint that carries the figure and slides along all axes.
            chains: (L) joints of each chain that has a position to reach or to hold, root first.
            pulled: (R, L) mask of chains that ask for help, and carry nothing.
            poses: without help.
        """
        self.skeleton, self.bones, self.worlds, self.carrier = skeleton, bones, worlds, carrier
        masses = np.array([joint.mass for joint in skeleton.joints])
        if not masses.any():
            masses = np.array([joint.length for joint in skeleton.joints])
        self.masses = masses / masses.sum()  # (J,) parts of the whole mass
        self.centres = np.array([joint.centre for joint in skeleton.joints])  # (J, 3) in the joints' frames
        heads, turns = self.bones.transforms(self.skeleton, *poses)
        self.starts = self._centre(heads, turns)  # (R, 3) without help, along the world's axes
        shared = {j for k, chain in enumerate(chains) for other in chains[:k] for j in chain if j in other}
        # (L) joints that no other chain has.
        self.limbs = [[j for j in chain if j != carrier and j not in shared] for chain in chains]
        ends = self._ends(heads, turns, [chain[-1] for chain in chains])
        lowest = np.where(pulled, np.inf, ends[..., 2].min(axis=2))
        ground = lowest.min(axis=1)
        self.heights = np.maximum(self.starts[:, 2] - ground, 0.0)  # (R,) above the lowest end
        band = np.maximum(STANDS * self.heights, np.finfo(float).tiny)
        self.weights = 1.0 - smooth_step((lowest - ground[:, None]) / band[:, None])  # (R, L) 0 to 1
        self.supports = self._supports(ends)  # (R) what carries the figure, along the world's axes
        self.shifts = np.zeros_like(self.starts)  # (R, 3) of the carrier, along the world's axes, see `lean`
        # (R,) parts of these that the body does not give up, see `FALLS`; None before the first `lean`.
        self.kept: Array | None = None

    def _centre(self, heads: Array, turns: Array) -> Array:
        """(R, 3) centres of mass along the world's axes."""
        points = heads + rotate(turns, np.broadcast_to(self.centres, heads.shape), axis=-1)
        return np.asarray(np.einsum("rij,rkj,k->ri", self.worlds, points, self.masses))

    def _ends(self, heads: Array, turns: Array, tips: Sequence[int]) -> Array:
        """(R, L, 2, 3) heads and tails of the last joints of chains, along the world's axes."""
        along = np.zeros((len(heads), len(tips), 3))
        along[..., 1] = [self.skeleton.joints[j].length for j in tips]
        tails = heads[:, tips] + rotate(turns[:, tips], along, axis=-1)
        return np.asarray(np.einsum("rij,rlkj->rlki", self.worlds, np.stack((heads[:, tips], tails), axis=2)))

    def _supports(self, ends: Array) -> list[Support]:
        """(R) supports; an end that is lifted goes to the middle of the others, as far as it is lifted."""
        weights = self.weights
        middles = np.einsum("rl,rlki->ri", weights, ends) / (2.0 * weights.sum(axis=1))[:, None]
        middles = middles[:, None, None]
        points = middles + weights[..., None, None] * (ends - middles)
        return [
            Support(tuple(map(Vector, (*row.tolist(), start.tolist()))))
            for row, start in zip(points.reshape(len(ends), -1, 3), self.starts, strict=True)
        ]

    def lean(self, poses: JointPoses) -> bool:
        """Take the shifts that the balance of poses asks for; returns whether it asks for any."""
        centres = self._centre(*self.bones.transforms(self.skeleton, *poses))
        off = np.zeros_like(centres)
        for k, (centre, start, support) in enumerate(zip(centres, self.starts, self.supports, strict=True)):
            point = Vector(centre.tolist())
            off[k] = centre - np.array(support.eased(point, Vector(start.tolist()))[:])
        off[:, 2] = 0.0
        if self.kept is None:
            full, none = (each * np.maximum(self.heights, np.finfo(float).tiny) for each in FALLS)
            self.kept = 1.0 - smooth_step((length(off, axis=-1) - full) / (none - full))
        off *= self.kept[:, None]
        self.shifts = -off
        return bool((length(off, axis=-1) > LEAST * self.heights).any())

    def shifted(self, poses: JointPoses) -> JointPoses:
        """The poses with the carrier shifted, and standing limbs turned to where they stand."""
        heads, turns = self.bones.transforms(self.skeleton, *poses)
        moved = np.einsum("rij,rj->ri", np.linalg.inv(self.worlds), self.shifts)
        changed = poses.at(slice(None))
        carried = conjugate(self._frames(self.carrier, turns).T)
        changed.translations[:, self.carrier] += rotate(carried, moved.T).T
        for limb, weights in zip(self.limbs, self.weights.T, strict=True):
            if len(limb) < 2 or not weights.any():
                continue
            top, tip = limb[0], limb[-1]
            ways = heads[:, tip] - heads[:, top]
            swings = slerp(np.tile(IDENTITY, len(ways)), _between(ways, ways - moved), weights)
            back = conjugate(self._frames(top, turns).T)
            changed.rotations[:, top] = unit(multiply(back, multiply(swings, turns[:, top].T))).T
            above = multiply(swings, self._frames(tip, turns).T)
            changed.rotations[:, tip] = unit(multiply(conjugate(above), turns[:, tip].T)).T
        return changed

    def _frames(self, joint: int, turns: Array) -> Array:
        """(R, 4) rotations of the frame in which a joint turns, by those of joints (R, J, 4)."""
        rests = np.broadcast_to(unit(self.bones.rests, axis=-1), turns.shape)[:, joint]
        parent = self.skeleton.joints[joint].parent
        return rests if parent == -1 else unit(multiply(turns[:, parent].T, rests.T)).T


def _between(starts: Array, ends: Array) -> Array:
    """(4, R) shortest rotations from directions (R, 3) to others; none without a shortest one."""
    real = length(starts, axis=-1) * length(ends, axis=-1) + dot(starts, ends, axis=-1)
    real = np.maximum(real, np.finfo(float).tiny)
    return unit(np.concatenate((real[None], cross(starts, ends, axis=-1).T)))
