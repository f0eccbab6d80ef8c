"""Solve many poses of one skeleton at once, by least squares over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import ArrayLike

from ..goals import Goal
from ..maths.batch import Array, Indices, Mask
from ..settings import SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from .least_squares.optimality import STATIONARY
from .least_squares.state import Poses
from .many_input import ManyInput, PoseBatch, checked
from .many_search import search
from .many_stages import Found, Stage

UNMOVED = 1e-12
"""Components of a quaternion that differ by less are the same."""
SINGLE = 1e-6
"""What the rotations of a hinge in single precision may be beside its axis."""


@dataclass(frozen=True, eq=False)
class ManyResult:
    """What `solve_many` found for B poses of n joints.

    Attributes:
        rotations: (B, n, 4) unit quaternions (w, x, y, z), relative to rest, double precision.
        translations: (B, n, 3) relative to rest, model units.
        statuses: how each solve ended.
        iterations: (B,) steps of least squares, of all starts that were tried.
        distances: (B, goals) how far off each goal is, model units; 0 where it asks for none.
        angles: (B, goals) the same in radians.
    """

    rotations: Array
    translations: Array
    statuses: tuple[SolveStatus, ...]
    iterations: Indices
    distances: Array
    angles: Array

    def __len__(self) -> int:
        return len(self.rotations)

    def pose(self, k: int) -> Pose:
        """Pose number `k`, rounded to single precision."""
        return Pose(
            tuple(Quaternion(q) for q in self.rotations[k].tolist()),
            tuple(Vector(t) for t in self.translations[k].tolist()),
        )


def solve_many(
    skeleton: Skeleton,
    poses: PoseBatch,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    *,
    targets: Sequence[ArrayLike | None] = (),
    reference: PoseBatch | None = None,
) -> ManyResult:
    """The poses nearest to the goals, each from its own start and inside all limits.

    A pose is solved as if it were alone: its result has the same bits in every batch. Joints take part as in
    `solve`: only those of the goals' chains move, comfort regions are left where the goals cannot be met in
    them, goals with larger `priority` numbers give way. A pose that meets its goals and is inside its limits
    stays as it is, to the bit. The result is never farther from the goals than the start inside its limits.

    Of the settings `max_iterations` (steps of least squares from one start), both tolerances, `restarts`,
    `seed` and `comfort` count; the others are about sweeps. OPTIMAL is the status of a pose that misses its
    goals where no small motion inside the limits comes nearer.

    Args:
        skeleton: the joints.
        poses: where to start: B poses, or rotations (B, n, 4) and translations (B, n, 3) relative to rest.
        goals: what to achieve, at least one; shared by all poses but for their targets.
        settings: how; None for `SolverSettings()`.
        targets: per goal (B, 3) points or directions, or (B, 4) unit quaternions, in model space; None for
            the goal's own target. Without any, all goals keep their own.
        reference: B poses that joints go back to as far as the goals leave them room; None: joints rotate no
            more than they must from where they start.

    Raises:
        InvalidInput: names what is wrong with the input, or what only `solve` knows: `two_bone_tip`.
    """
    given = checked(skeleton, poses, goals, settings, targets, reference)
    if given.size == 0:
        none = np.zeros((0, len(given.goals)))
        return ManyResult(given.rotations, given.translations, (), np.zeros(0, np.intp), none, none.copy())
    # Errors are measured on what is returned, whose joints are taken as they are.
    free = Stage(given, [None] * len(skeleton))
    best, start, proper = search(given)
    rotations, translations = _returned(given, start.poses.rotations, best.poses)
    final = Poses(
        np.ascontiguousarray(rotations.transpose(2, 1, 0)),
        np.ascontiguousarray(translations.transpose(2, 1, 0)),
    )
    distances, angles, excess = free.misses(np.arange(given.size), final)
    statuses = _statuses(given, proper, best, excess <= 1.0)
    return ManyResult(rotations, translations, statuses, best.iterations, distances, angles)


def _returned(given: ManyInput, start: Array, best: Poses) -> tuple[Array, Array]:
    """Rotations (B, n, 4) and translations (B, n, 3); what has not moved keeps the bits that were given.

    `start` are the rotations (4, n, B) of the given poses inside the limits.
    """
    same_side = np.where((start * given.poses.rotations).sum(0) < 0.0, -1.0, 1.0)
    inside = np.abs(same_side * start - given.poses.rotations).max(0) <= SINGLE
    unmoved = np.abs(best.rotations - start).max(0) <= UNMOVED
    kept = (inside & unmoved).T[..., None]
    rotations = np.where(kept, given.rotations, best.rotations.transpose(2, 1, 0))
    still = np.abs(best.translations - given.poses.translations).max(0) <= UNMOVED
    return rotations, np.where(still.T[..., None], given.translations, best.translations.transpose(2, 1, 0))


def _statuses(given: ManyInput, proper: Stage, best: Found, met: Mask) -> tuple[SolveStatus, ...]:
    missed = np.flatnonzero(~met)
    found = [SolveStatus.CONVERGED] * given.size
    if len(missed):
        steep = proper.steepness(missed, best.poses.at(missed))
        for k, each in zip(missed.tolist(), steep.tolist(), strict=True):
            ended = SolveStatus.ITERATION_LIMIT if best.late[k] else SolveStatus.STALLED
            found[k] = SolveStatus.OPTIMAL if each <= STATIONARY else ended
    return tuple(found)
