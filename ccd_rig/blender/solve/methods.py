# SPDX-License-Identifier: GPL-3.0-or-later
"""Solving of one frame: settings, groups of constraints, and methods with a closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from mathutils import Vector

from ...errors import InvalidInput, RigError
from ...goals import PositionGoal
from ...maths.batch import Array
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics, placed_joints
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ...solvers.closed_forms import (
    TwoBoneOptions,
    eased_target,
    target_triangle,
    turning_joints,
    two_bone,
)
from ...solvers.problem_tables import measure_goals
from ..properties.constraint_kinds import SINGLE_PASS, effector
from ..properties.constraint_values import Constraint, TargetSample
from ..scene.evaluation import Samples
from .constraint_goals import chain_joints, goals


def solve_once(
    skeleton: Skeleton, pose: Pose, constraint: Constraint, target: TargetSample, settings: SolverSettings
) -> SolveResult:
    """Solve a constraint by a closed form; the errors are in the order of its goals.

    Args:
        pose: the start, whose bends keep their side.
        constraint: its method is one of `SINGLE_PASS`.
        settings: the tolerances.

    Raises:
        RigError: the chain does not fit.
    """
    constraint = target.settings_of(constraint)
    all_goals = goals(skeleton, constraint, target)
    position = next(goal for goal in all_goals if isinstance(goal, PositionGoal))
    try:
        if constraint.method == "TWO_BONE":
            options = TwoBoneOptions(pole=target.pole, pole_angle=constraint.pole_angle, soft=constraint.soft)
            result = two_bone(skeleton, pose, position, options)
        else:
            result = target_triangle(skeleton, pose, position)
    except InvalidInput as error:
        raise RigError(f"Constraint '{constraint.name}': {panel_words(error)}") from error
    errors = measure_goals(skeleton, all_goals, *placed_joints(skeleton, result.pose))
    met = all(settings.in_tolerances(error) <= 1.0 for error in errors)
    status = SolveStatus.CONVERGED if met else SolveStatus.STALLED
    return replace(result, status=status, errors=errors)


def eased_point(skeleton: Skeleton, pose: Pose, constraint: Constraint, target: TargetSample) -> Vector:
    """The target that Softness eases to the present end of the chain.

    Raises:
        RigError: the chain does not fit.
    """
    constraint = target.settings_of(constraint)
    position = next(g for g in goals(skeleton, constraint, target) if isinstance(g, PositionGoal))
    try:
        return eased_target(skeleton, pose, position, constraint.soft)
    except InvalidInput as error:
        raise RigError(f"Constraint '{constraint.name}': {panel_words(error)}") from error


def spare_length(skeleton: Skeleton, pose: Pose, constraint: Constraint) -> float:
    """The length that the last two turning bones gain from a pose when straight."""
    position = PositionGoal(constraint.tip, Vector(), effector(skeleton, constraint))
    position = replace(position, chain_length=constraint.chain_length)
    root, middle = turning_joints(skeleton, pose, position, constraint.name, 2)[-2:]
    transforms = forward_kinematics(skeleton, pose)
    start, bend = (transforms[j].translation for j in (root, middle))
    end = transforms[skeleton.index(constraint.tip)].point(position.effector(skeleton))
    return float((bend - start).length + (end - bend).length - (end - start).length)


def panel_words(error: InvalidInput) -> str:
    """The core's message in the words of the panel."""
    words = str(error)
    for core, panel in (
        ("joints that can turn", "bones that can turn"),
        ("unlock a joint (stiffness below 1, max_step above 0)", "unlock a bone"),
        ("make chain_length larger", "raise Chain Length"),
        ("joint '", "bone '"),
        (": use solve", ""),
    ):
        words = words.replace(core, panel)
    return words


# Groups -----------------------------------------------------------------------------------------------------


class Group(NamedTuple):
    """Constraints that are solved together, by index, and the joints that they involve."""

    joints: frozenset[int]
    members: tuple[int, ...]


def groups(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int]) -> list[Group]:
    """Groups of constraints with joints in common, parents first.

    Chains are paths, so of two groups without a common joint at most one carries the other. A balance
    involves all joints that carry mass.
    """
    group_of: dict[int, tuple[set[int], list[int]]] = {}  # by joint
    for c in active:
        joints = _moved(skeleton, constraints, active, c)
        met = {id(group_of[j]): group_of[j] for j in joints if j in group_of}
        # The largest takes the others in, so that no joint changes its group often.
        largest, *others = sorted((*met.values(), (joints, [c])), key=lambda group: -len(group[0]))
        for other_joints, members in others:
            largest[0].update(other_joints)
            largest[1].extend(members)
            group_of.update(dict.fromkeys(other_joints, largest))
        group_of.update(dict.fromkeys(joints, largest))
    distinct = {id(group): group for group in group_of.values()}.values()
    parents_first = sorted(distinct, key=lambda group: min(group[0]))
    return [Group(frozenset(joints), tuple(sorted(members))) for joints, members in parents_first]


def _moved(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int], c: int) -> set[int]:
    """Joints that constraint `c` involves."""
    constraint = constraints[c]
    joints = set(chain_joints(skeleton, constraint))
    if constraint.kind.balances:
        heavy = {j for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0 for j in skeleton.chain(i)}
        joints |= {j for a in active for j in chain_joints(skeleton, constraints[a]) if j in heavy}
    return joints or set(skeleton.chain(constraint.tip, constraint.chain_length))


def are_solved_at_once(group: Iterable[Constraint]) -> bool:
    """Whether no constraint of a group has a closed form."""
    return all(each.kind.balances or each.method not in SINGLE_PASS for each in group)


# Settings of every frame ------------------------------------------------------------------------------------


Reference: TypeAlias = Callable[[Samples], Array]
"""Gives the reference poses of R frames: (R, J, 4) rotations."""


@dataclass(frozen=True)
class FrameSolveSettings:
    """Settings of the solves of all frames."""

    solver: SolverSettings  # position tolerance in world metres
    error_reduction: float | None  # `SolverSettings.error_reduction` of each solve; None for full steps
    poses: Sequence[PoseEntry] = ()  # the pose library; entries for other bones are left out
    reference: Reference | None = None  # gives reference poses
    smoothness: float = 0.0  # weight of changes between frames, see `solvers.motion`
