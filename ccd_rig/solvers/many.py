"""Solve many poses of one skeleton, each as `solve` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import ArrayLike

from ..goals import Goal
from ..maths.batch import Array, Indices
from ..settings import SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from .many_input import PoseBatch, checked_input
from .pose_search import STATUSES, PoseSearch


@dataclass(frozen=True, eq=False)
class ManyResult:
    """What `solve_many` found for B poses of n joints.

    Attributes:
        rotations: (B, n, 4) unit quaternions (w, x, y, z), relative to rest, double precision.
        translations: (B, n, 3) relative to rest, model units.
        statuses: how each solve ended.
        iterations: (B,) passes and steps of least squares, of all starts that were tried.
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

    OPTIMAL is the status of a pose that misses its goals where no small motion inside the limits comes
    nearer.

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
        InvalidInput: names what is wrong with the input.
    """
    checked = checked_input(skeleton, poses, goals, settings, targets, reference)
    search = PoseSearch(skeleton, checked.goals, checked.settings)
    if not len(checked.rotations):
        none = np.zeros((0, len(checked.goals)))
        return ManyResult(
            checked.rotations, checked.translations, (), np.zeros(0, np.intp), none, none.copy()
        )
    solved = search.solve(
        checked.rotations,
        checked.translations,
        checked.targets,
        checked.reference,
        search.templates if checked.settings.restarts else None,
    )
    return ManyResult(
        solved.rotations,
        solved.translations,
        tuple([STATUSES[status] for status in solved.statuses]),
        solved.steps.astype(np.intp),
        solved.distances,
        solved.angles,
    )
