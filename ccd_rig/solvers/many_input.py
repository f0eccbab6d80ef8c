"""What `solve_many` is given, checked and brought to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..goals import Goal, TargetKind
from ..maths.batch import Array
from ..maths.validation import FARTHEST, UNIT_TOLERANCE
from ..settings import SolverSettings
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from .pose_search import check_goals
from .problem_tables import own_targets

PoseBatch = Sequence[Pose] | tuple[ArrayLike, ArrayLike]
"""Poses, or their rotations (B, n, 4) and translations (B, n, 3)."""


@dataclass(frozen=True)
class ManyInput:
    """The arguments of `solve_many`, checked.

    Attributes:
        goals, settings: as they were given.
        rotations, translations: (B, n, 4) and (B, n, 3), double precision.
        targets: per goal (B or 1, 3) points or unit vectors, or (B or 1, 4) unit quaternions.
        reference: rotations and translations that joints stay near to, or None.
    """

    goals: tuple[Goal, ...]
    settings: SolverSettings
    rotations: Array
    translations: Array
    targets: list[Array]
    reference: tuple[Array, Array] | None


def checked_input(
    skeleton: Skeleton,
    poses: PoseBatch,
    goals: Sequence[Goal],
    settings: SolverSettings | None,
    targets: Sequence[ArrayLike | None],
    reference: PoseBatch | None,
) -> ManyInput:
    """The input as arrays; InvalidInput names the pose, the joint, the goal or the field that is wrong."""
    if not isinstance(skeleton, Skeleton):
        raise InvalidInput(f"the skeleton must be a Skeleton, not {skeleton!r}")
    if not isinstance(settings, SolverSettings | None):
        raise InvalidInput(f"settings must be SolverSettings or None, not {settings!r}")
    for what, values in (("goals", goals), ("targets", targets)):
        if not isinstance(values, Sequence):
            raise InvalidInput(f"{what} must be a sequence, not {values!r}")
    check_goals(skeleton, goals)
    rotations, translations = _pose_arrays(skeleton, poses, "pose")
    size = len(rotations)
    near = None
    if reference is not None:
        near = _pose_arrays(skeleton, reference, "reference pose")
        if len(near[0]) != size:
            raise InvalidInput(f"give a reference pose for each of {size} poses, not {len(near[0])}")
    if len(targets) not in (0, len(goals)):
        raise InvalidInput(f"give targets or None for each of {len(goals)} goals, not {len(targets)}")
    each = targets or (None,) * len(goals)
    rows = [_targets(goal, value, size) for goal, value in zip(goals, each, strict=True)]
    return ManyInput(tuple(goals), settings or SolverSettings(), rotations, translations, rows, near)


# Poses ----------------------------------------------------------------------------------------------


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
    _check_joints(skeleton, np.isfinite(rotations).all(2), what, "rotation", "is not finite")
    sizes = np.sqrt((rotations * rotations).sum(2))
    _check_joints(
        skeleton,
        np.abs(sizes - 1.0) <= UNIT_TOLERANCE,
        what,
        "rotation",
        "must be a unit quaternion (w, x, y, z)",
    )
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
        found = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be an array ({expected}) of numbers") from None
    if found.ndim == 1 + len(shape) and found.shape[1:] == shape:
        return found
    raise InvalidInput(f"{what} must be an array ({expected}), not {found.shape}")


def _check_joints(skeleton: Skeleton, good: ArrayLike, what: str, field: str, must: str) -> None:
    """Raises InvalidInput that names the first pose and joint of (B, n) that are not good."""
    bad = np.argwhere(~np.asarray(good, dtype=np.bool_))
    if not len(bad):
        return
    pose, joint = bad[0].tolist()
    raise InvalidInput(f"{what} {pose}: {field} of joint '{skeleton.joints[joint].name}' {must}")


# Targets --------------------------------------------------------------------------------------------


def _targets(goal: Goal, value: ArrayLike | None, size: int) -> Array:
    """(B or 1, 3) or (B or 1, 4); the goal's own target where there are none."""
    if value is None:
        return own_targets([goal])[0]
    what = f"targets of the {goal.name}"
    found = _numbers(value, what, (len(goal.target),))
    if len(found) != size:
        raise InvalidInput(f"{what}: give one for each of {size} poses, not {len(found)}")
    _check_targets(np.isfinite(found).all(1), goal, "is not finite")
    sizes = np.sqrt((found * found).sum(1))
    if goal.target_kind is TargetKind.ROTATION:
        _check_targets(np.abs(sizes - 1.0) <= UNIT_TOLERANCE, goal, "must be a unit quaternion (w, x, y, z)")
    elif goal.target_kind is TargetKind.DIRECTION:
        _check_targets(sizes > 1e-12, goal, "must not be zero: it has no direction")
    else:
        near = (np.abs(found) <= FARTHEST).all(1)
        _check_targets(near, goal, f"must not be farther away than {FARTHEST:g}")
    if goal.target_kind.has_length_one:
        found = found / sizes[:, None]
    return found


def _check_targets(good: ArrayLike, goal: Goal, must: str) -> None:
    """Raises InvalidInput that names the goal and the first pose of (B,) that are not good."""
    if not np.all(good):
        raise InvalidInput(f"{goal.name}: target of pose {int(np.argmin(good))} {must}")
