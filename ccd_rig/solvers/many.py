"""Solve many poses of one skeleton, each as `solve` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..goals import Goal, TargetKind
from ..maths.batch import Array, Indices, length
from ..maths.validation import FARTHEST, UNIT_TOLERANCE
from ..settings import SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from .pose_search import STATUSES, PoseSearch, check_call, check_goals
from .problem_tables import stored_targets

PoseBatch = Sequence[Pose] | tuple[ArrayLike, ArrayLike]
"""Poses, or their rotations (B, n, 4) and translations (B, n, 3)."""


@dataclass(frozen=True, eq=False)
class ManyResult:
    """Result of `solve_many` for B poses of n joints.

    Attributes:
        rotations: (B, n, 4) unit quaternions (w, x, y, z), relative to rest, double precision.
        translations: (B, n, 3) relative to rest, model units.
        statuses: outcome of each solve.
        iterations: (B,) passes and steps of least squares, over all tries.
        distances: (B, goals) errors in model units; 0 for goals of angles.
        angles: (B, goals) errors in radians; 0 for goals of distances.
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
    """Solve B poses for the same goals, each from its start and inside all limits.

    Each pose is solved by itself: its result has the same bits in every batch. As in `solve`, only joints of
    the goals' chains move, and goals with larger `priority` numbers give way. A pose leaves comfort regions
    where its goals are missed inside. A pose that meets its goals inside its limits stays the same, to the
    bit. The result is never farther from the goals than the start inside its limits.

    OPTIMAL is the status of a pose that misses its goals where no small motion inside the limits comes
    nearer, each joint moved for its own goals.

    Args:
        skeleton: the joints.
        poses: B start poses, or rotations (B, n, 4) and translations (B, n, 3) relative to rest.
        goals: at least one; poses differ in targets only.
        settings: None for `SolverSettings()`.
        targets: per goal (B, 3) points or directions, or (B, 4) unit quaternions, in model space; None for
            the target that the goal stores. Empty: all goals keep theirs.
        reference: B poses; joints stay as near to them as the goals allow. None: joints rotate no more than
            the steps need.

    Raises:
        InvalidInput: names the wrong argument.
    """
    checked = _checked_input(skeleton, poses, goals, settings, targets, reference)
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


# Checks ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Input:
    """Checked arguments of `solve_many`."""

    goals: tuple[Goal, ...]  # of all poses
    settings: SolverSettings  # of all solves
    rotations: Array  # (B, n, 4), double precision
    translations: Array  # (B, n, 3), double precision
    targets: list[Array]  # per goal (B or 1, 3) points or unit vectors, or (B or 1, 4) unit quaternions
    reference: tuple[Array, Array] | None  # rotations and translations of the reference poses, or None


def _checked_input(
    skeleton: Skeleton,
    poses: PoseBatch,
    goals: Sequence[Goal],
    settings: SolverSettings | None,
    targets: Sequence[ArrayLike | None],
    reference: PoseBatch | None,
) -> _Input:
    """Check the arguments; InvalidInput names the wrong pose, joint, goal or field."""
    check_call(skeleton, settings, goals=goals, targets=targets)
    check_goals(skeleton, goals)
    rotations, translations = _pose_arrays(skeleton, poses, "pose")
    size = len(rotations)
    near = (rotations, translations) if reference is poses else None
    if reference is not None and near is None:
        near = _pose_arrays(skeleton, reference, "reference pose")
        if len(near[0]) != size:
            raise InvalidInput(f"give a reference pose for each of {size} poses, not {len(near[0])}")
    if len(targets) not in (0, len(goals)):
        raise InvalidInput(f"give targets or None for each of {len(goals)} goals, not {len(targets)}")
    each = targets or (None,) * len(goals)
    rows = [_targets(goal, value, size) for goal, value in zip(goals, each, strict=True)]
    return _Input(tuple(goals), settings or SolverSettings(), rotations, translations, rows, near)


def _pose_arrays(skeleton: Skeleton, poses: PoseBatch, what: str) -> tuple[Array, Array]:
    """Rotations (B, n, 4) and translations (B, n, 3), checked."""
    count = len(skeleton)
    if isinstance(poses, tuple) and len(poses) == 2 and not any(isinstance(each, Pose) for each in poses):
        rotations = _numbers(poses[0], f"rotations of the {what}s", (count, 4))
        translations = _numbers(poses[1], f"translations of the {what}s", (count, 3))
        if len(rotations) != len(translations):
            raise InvalidInput(
                f"give as many translations as rotations of the {what}s: {len(rotations)}, "
                f"not {len(translations)}"
            )
    else:
        rotations, translations = _listed(skeleton, poses, what)
    sizes = length(rotations, -1)
    _check_joints(skeleton, np.isfinite(sizes), what, "rotation", "is not finite")
    _check_joints(
        skeleton,
        np.abs(sizes - 1.0) <= UNIT_TOLERANCE,
        what,
        "rotation",
        "must be a unit quaternion (w, x, y, z)",
    )
    # Those that are unit to float32 keep their bits.
    rotations = np.where(np.abs(sizes - 1.0)[..., None] > 1e-6, rotations / sizes[..., None], rotations)
    _check_joints(skeleton, np.isfinite(translations).all(2), what, "translation", "is not finite")
    near = (np.abs(translations) <= FARTHEST).all(2)
    _check_joints(skeleton, near, what, "translation", f"must not be farther away than {FARTHEST:g}")
    return rotations, translations


def _listed(skeleton: Skeleton, poses: object, what: str) -> tuple[Array, Array]:
    """The arrays of a sequence of Pose."""
    count = len(skeleton)
    if not isinstance(poses, Sequence) or not all(isinstance(pose, Pose) for pose in poses):
        raise InvalidInput(
            f"the {what}s must be a sequence of Pose, or rotations (B, {count}, 4) and translations "
            f"(B, {count}, 3)"
        )
    for k, pose in enumerate(poses):
        if len(pose.rotations) != count:
            raise InvalidInput(
                f"{what} {k} is for {len(pose.rotations)} joints, but the skeleton has {count}"
            )
    rotations = np.array([pose.arrays[0] for pose in poses], np.float64)
    translations = np.array([pose.arrays[1] for pose in poses], np.float64)
    return rotations.reshape(-1, count, 4), translations.reshape(-1, count, 3)


def _numbers(values: object, what: str, shape: tuple[int, ...]) -> Array:
    """An array (B, *shape) of a user's numbers, copied."""
    expected = ", ".join(map(str, ("B", *shape)))
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be an array ({expected}) of numbers") from None
    if array.ndim == 1 + len(shape) and array.shape[1:] == shape:
        return array
    raise InvalidInput(f"{what} must be an array ({expected}), not {array.shape}")


def _check_joints(skeleton: Skeleton, good: ArrayLike, what: str, field: str, must: str) -> None:
    """Raise InvalidInput that names the first pose and joint where `good` (B, n) is False."""
    bad = np.argwhere(~np.asarray(good, dtype=np.bool_))
    if not len(bad):
        return
    pose, joint = bad[0].tolist()
    raise InvalidInput(f"{what} {pose}: {field} of joint '{skeleton.joints[joint].name}' {must}")


def _targets(goal: Goal, value: ArrayLike | None, size: int) -> Array:
    """(B or 1, 3) or (B or 1, 4); the target that the goal stores where `value` is None."""
    if value is None:
        return stored_targets([goal])[0]
    what = f"targets of the {goal.name}"
    rows = _numbers(value, what, (len(goal.target),))
    if len(rows) != size:
        raise InvalidInput(f"{what}: give one for each of {size} poses, not {len(rows)}")
    _check_targets(np.isfinite(rows).all(1), goal, "is not finite")
    sizes = np.sqrt((rows * rows).sum(1))
    if goal.target_kind is TargetKind.ROTATION:
        _check_targets(np.abs(sizes - 1.0) <= UNIT_TOLERANCE, goal, "must be a unit quaternion (w, x, y, z)")
    elif goal.target_kind is TargetKind.DIRECTION:
        _check_targets(sizes > 1e-12, goal, "must not be zero: it has no direction")
    else:
        near = (np.abs(rows) <= FARTHEST).all(1)
        _check_targets(near, goal, f"must not be farther away than {FARTHEST:g}")
    if goal.target_kind.has_length_one:
        rows = rows / sizes[:, None]
    return rows


def _check_targets(good: ArrayLike, goal: Goal, must: str) -> None:
    """Raise InvalidInput that names the goal and the first pose where `good` (B,) is False."""
    if not np.all(good):
        raise InvalidInput(f"{goal.name}: target of pose {int(np.argmin(good))} {must}")
