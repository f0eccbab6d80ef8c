# SPDX-License-Identifier: GPL-3.0-or-later
"""The balance of a body that helps: its centre of mass stays over what the figure stands on.

A figure stands on the lowest ends of its chains. The body may take the centre of mass to an edge of this
support or beyond. Then the place to which it is eased is a goal of the figure. It comes after what stands,
and before the targets that ask for help.

The centre of mass may stay where it is without the body's help, even if that is beyond the support.

Shapes: R rows, L limbs, J joints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mathutils import Vector

from ...maths.batch import Array, Mask, length, rotate, smooth_step, unit
from ...skeleton.joints import Skeleton
from ...solvers.drag import Support
from ...solvers.problem_tables import Bones
from ..solve.planting import JointPoses

STANDS = 0.15
"""Height of an end above the lowest, in parts of that of the centre of mass, at which it carries nothing."""
SOFTNESS = 1.0
"""Softness of supports: the body leans back from the first, so that no bone has to catch up near an edge.

With that of a drag, 0.2, bones turn up to half as far again in a frame.
"""
LEAST = 1e-4
"""Least distance of the centre of mass that counts, in parts of its height."""


class Balance:
    """The balance of R rows at which the body helps."""

    def __init__(
        self,
        skeleton: Skeleton,
        bones: Bones,
        worlds: Array,
        chains: Sequence[Sequence[int]],
        pulled: Mask,
        base: JointPoses,
        alone: JointPoses,
        helped: JointPoses,
    ) -> None:
        """Prepare the balance.

        Args:
            bones: rest of the joints.
            worlds: (R, 3, 3) armature space to world.
            chains: (L) joints of each chain that has a position to reach or to hold, root first.
            pulled: (R, L) mask of chains that ask for help. They carry no more than in the base poses: a foot
                that steps aside does, and a hand that reaches down does not.
            base: reference poses.
            alone: poses without help.
            helped: poses with it, in which what stands is where it should be.
        """
        self.skeleton, self.bones, self.worlds = skeleton, bones, worlds
        masses = np.array([joint.mass for joint in skeleton.joints])
        if not masses.any():
            masses = np.array([joint.length for joint in skeleton.joints])
        self.masses = masses / masses.sum()  # (J,) parts of the whole mass
        self.centres = np.array([joint.centre for joint in skeleton.joints])  # (J, 3) in the joints' frames
        self.starts = self._centre(*bones.transforms(skeleton, *alone))  # (R, 3) along the world's axes
        heads, turns = bones.transforms(skeleton, *helped)
        self.helped = self._centre(heads, turns)  # (R, 3) with help
        tips = [chain[-1] for chain in chains]
        ends = self._ends(heads, turns, tips)
        before = self._ends(*bones.transforms(skeleton, *base), tips)[..., 2].min(axis=2)
        lowest = ends[..., 2].min(axis=2)
        lowest = np.where(pulled, np.maximum(lowest, before), lowest)
        ground = lowest.min(axis=1)
        self.heights = np.maximum(self.starts[:, 2] - ground, 0.0)  # (R,) above the lowest end
        band = np.maximum(STANDS * self.heights, np.finfo(float).tiny)
        self.weights = 1.0 - smooth_step((lowest - ground[:, None]) / band[:, None])  # (R, L) 0 to 1
        self.supports = self._supports(ends)  # (R) what carries the figure, along the world's axes

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
            Support(tuple(map(Vector, (*row.tolist(), start.tolist()))), softness=SOFTNESS)
            for row, start in zip(points.reshape(len(ends), -1, 3), self.starts, strict=True)
        ]

    def places(self) -> tuple[Array, Array]:
        """Ease the centres of mass of helped poses.

        Returns:
            (R, 3) places to which they are eased, armature space; (R,) mask of those that are elsewhere.
        """
        pairs = zip(self.helped.tolist(), self.starts.tolist(), self.supports, strict=True)
        eased = np.array([support.eased(Vector(here), Vector(start))[:] for here, start, support in pairs])
        leaves = length(eased - self.helped, axis=-1) > LEAST * self.heights
        return np.einsum("rij,rj->ri", np.linalg.inv(self.worlds), eased), leaves

    @property
    def verticals(self) -> Array:
        """(R, 3) directions of the world's Z axis in armature space."""
        return unit(np.linalg.inv(self.worlds)[:, :, 2], axis=-1)
