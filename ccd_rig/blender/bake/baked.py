# SPDX-License-Identifier: GPL-3.0-or-later
"""A baked motion as it is looked at afterwards: where its bones, targets and frames are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...maths.batch import Array
from ...settings import SolverSettings
from ..solve.constraint_goals import chain_joints
from . import measuring
from .bake_frames import BakeFrames, Motion
from .report_parts import number

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Baked:
    """A baked motion, as it is looked at.

    Attributes:
        bake_frames: the frames.
        motion: what is keyed.
        solver: its tolerances say what is missed.
        misses: (F, C) distances, world metres, and angles, radians, of what was solved.
        heads: (F, J, 3) of the keyed joints, armature space.
        axes: (F, J, 4) their rotations, armature space.
        chains: the joints of each constraint.
    """

    bake_frames: BakeFrames
    motion: Motion
    solver: SolverSettings
    misses: tuple[Array, Array]
    heads: Array
    axes: Array
    chains: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, bake_frames: BakeFrames, motion: Motion, solver: SolverSettings, misses: tuple[Array, Array]
    ) -> Baked:
        """The motion with what follows from it."""
        chains = tuple(chain_joints(bake_frames.skeleton, row) for row in bake_frames.constraints)
        return cls(bake_frames, motion, solver, misses, *measuring.transforms(bake_frames, motion), chains)

    def world(self, points: Array) -> Array:
        """(F, 3) points of armature space in the world."""
        turned: Array = np.einsum("fij,fj->fi", self.bake_frames.worlds, points)
        return turned + self.bake_frames.places

    def reached(self, c: int) -> Array:
        """(F, 3) armature space: what constraint `c` brings to its target."""
        return measuring.points(self.bake_frames, self.bake_frames.constraints[c], self.heads, self.axes)

    def targets(self, c: int) -> Array:
        """(F, 3) armature space: where the target of constraint `c` is."""
        return self.bake_frames.targets.points[:, c]

    def size(self, c: int) -> float:
        """How long a chain is at most, world metres."""
        lengths = self.bake_frames.lengths[:, list(self.chains[c])].sum(axis=1)
        return float(lengths.max()) * float(np.abs(self.bake_frames.worlds).max())

    def bone(self, j: int) -> str:
        """The name of a joint's bone."""
        return self.bake_frames.skeleton.joints[j].name


def runs(mask: Mask) -> Iterator[slice]:
    """The runs of what is true in (F,)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    yield from (slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True))


def span(frames: Array, run: slice, values: Array) -> tuple[float, float, float, int]:
    """First and last frame of a run, the frame where (F,) values are largest in it, and that row."""
    row = run.start + int(np.argmax(values[run]))
    return number(frames[run.start]), number(frames[run.stop - 1]), number(frames[row]), row
