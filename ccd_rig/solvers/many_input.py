"""What `solve_many` is given, checked and brought to arrays with the batch last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..goals import GOALS, Goal, PositionGoal, TargetKind
from ..maths.batch import Array, unit
from ..maths.validation import FARTHEST, UNIT_TOLERANCE
from ..settings import SolverSettings
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from .ccd.working_pose import WorkingPose
from .least_squares.state import Poses

PoseBatch = Sequence[Pose] | tuple[ArrayLike, ArrayLike]
"""Poses, or their rotations (B, n, 4) and translations (B, n, 3)."""


@dataclass(frozen=True)
class ManyInput:
    """The arguments of `solve_many`.

    Attributes:
        skeleton, goals, settings: as they were given.
        rotations, translations: (B, n, 4) and (B, n, 3) as they were given, double precision.
        poses: the same with the batch last, rotations of length 1.
        targets: per goal (3, B or 1) a point or a unit vector, or (4, B or 1) a unit quaternion;
            two alike of a lone pose that has its own.
        reference: poses that joints are held near to, or None.
        movable: indices of the joints that may move, locked ones left out.
    """

    skeleton: Skeleton
    goals: tuple[Goal, ...]
    settings: SolverSettings
    rotations: Array
    translations: Array
    poses: Poses
    targets: tuple[Array, ...]
    reference: Poses | None
    movable: tuple[int, ...]

    @property
    def tolerances(self) -> Array:
        """(movable,) radians, the comfort tolerances of the joints that may move, where they count."""
        comforts = [self.skeleton.joints[i].comfort for i in self.movable]
        used = self.settings.comfort
        return np.array([each.tolerance if used and each is not None else 0.0 for each in comforts])

    @property
    def size(self) -> int:
        """How many poses there are."""
        return len(self.rotations)


def checked(
    skeleton: Skeleton,
    poses: PoseBatch,
    goals: Sequence[Goal],
    settings: SolverSettings | None,
    targets: Sequence[ArrayLike | None],
    reference: PoseBatch | None,
) -> ManyInput:
    """The input as arrays; InvalidInput names the pose, the joint, the goal or the field that is wrong."""
    if not isinstance(settings, SolverSettings | None):
        raise InvalidInput(f"settings must be SolverSettings or None, not {settings!r}")
    goals, how = tuple(goals), settings or SolverSettings()
    movable = _movable(skeleton, goals)
    _refuse_unknown(goals)
    rotations, translations = _pose_arrays(skeleton, poses, "pose")
    size = len(rotations)
    held = None
    if reference is not None:
        held = _batch_last(*_pose_arrays(skeleton, reference, "reference pose"))
        if (count := held.rotations.shape[-1]) != size:
            raise InvalidInput(f"give a reference pose for each of {size} poses, not {count}")
    if len(targets) not in (0, len(goals)):
        raise InvalidInput(f"give targets or None for each of {len(goals)} goals, not {len(targets)}")
    each = targets or (None,) * len(goals)
    found = [_targets(goal, value, size) for goal, value in zip(goals, each, strict=True)]
    return ManyInput(
        skeleton,
        goals,
        how,
        rotations,
        translations,
        _batch_last(rotations, translations),
        tuple(found),
        held,
        movable,
    )


def _movable(skeleton: Skeleton, goals: Sequence[object]) -> tuple[int, ...]:
    """Indices of the joints that may move for a goal, locked ones left out."""
    if not goals:
        raise InvalidInput("there is nothing to solve: give at least one goal")
    known = [goal for goal in goals if isinstance(goal, GOALS)]
    if len(known) < len(goals):
        wrong = next(goal for goal in goals if not isinstance(goal, GOALS))
        allowed = ", ".join(kind.__name__ for kind in GOALS)
        raise InvalidInput(f"a goal must be one of {allowed}, not {wrong!r}")
    moved = WorkingPose(skeleton, Pose.rest(skeleton), known).movable
    return tuple(sorted(set(moved) - skeleton.locked))


def _refuse_unknown(goals: Sequence[Goal]) -> None:
    """Raises InvalidInput for what only `solve` knows."""
    for goal in goals:
        if isinstance(goal, PositionGoal) and goal.two_bone_tip:
            raise InvalidInput(
                f"{goal.name}: two_bone_tip is on; solve_many does not know it: use solve for each pose"
            )


def _batch_last(rotations: Array, translations: Array) -> Poses:
    lengths = np.sqrt((rotations * rotations).sum(2, keepdims=True))
    turned = (rotations / lengths).transpose(2, 1, 0)
    return Poses(np.ascontiguousarray(turned), np.ascontiguousarray(translations.transpose(2, 1, 0)))


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
    rotations = np.array([[q[:] for q in pose.rotations] for pose in poses], dtype=np.float64)
    translations = np.array([[t[:] for t in pose.translations] for pose in poses], dtype=np.float64)
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
    """(3, B or 1) or (4, B or 1); the goal's own target where there are none.

    A lone pose's own stands there twice, as poses do in `Stage`: of one target NumPy sums in another order.
    """
    if value is None:
        own: Array = np.array(goal.target[:], dtype=np.float64)[:, None]
        return unit(own) if goal.target_kind.has_length_one else own
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
    return np.ascontiguousarray(np.repeat(found, 2, axis=0).T if size == 1 else found.T)


def _check_targets(good: ArrayLike, goal: Goal, must: str) -> None:
    """Raises InvalidInput that names the goal and the first pose of (B,) that are not good."""
    if not np.all(good):
        raise InvalidInput(f"{goal.name}: target of pose {int(np.argmin(good))} {must}")
