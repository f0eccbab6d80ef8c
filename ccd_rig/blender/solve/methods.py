# SPDX-License-Identifier: GPL-3.0-or-later
"""Other ways than the loop to bring one chain to one point: two bones at once, or every bone just once."""

from __future__ import annotations

from dataclasses import replace

from mathutils import Vector

from ...errors import InvalidInput, RigError
from ...goals import PositionGoal
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import placed_joints
from ...skeleton.pose import Pose
from ...solvers.analytic.target_triangle import target_triangle
from ...solvers.analytic.two_bone import TwoBoneOptions, eased_target, two_bone
from ...solvers.problem_tables import measure_goals
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetSample
from .constraint_goals import goals

SINGLE_PASS = ("TWO_BONE", "TRIANGLE")
"""Methods that pose a chain by themselves: nothing else can be asked of its bones."""


def solve_once(
    skeleton: Skeleton, pose: Pose, constraint: Constraint, target: TargetSample, settings: SolverSettings
) -> SolveResult:
    """Solve a constraint whose method poses its chain alone; the errors are in the order of its goals.

    Args:
        skeleton: the joints.
        pose: where to start: bends keep their side.
        constraint: its method is one of `SINGLE_PASS`.
        target: of the constraint.
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
    """Where the target of a constraint has to be for its Softness to leave the end where the pose has it.

    Raises:
        RigError: the chain does not fit.
    """
    constraint = target.settings_of(constraint)
    position = next(g for g in goals(skeleton, constraint, target) if isinstance(g, PositionGoal))
    try:
        return eased_target(skeleton, pose, position, constraint.soft)
    except InvalidInput as error:
        raise RigError(f"Constraint '{constraint.name}': {panel_words(error)}") from error


def panel_words(error: InvalidInput) -> str:
    """The core's message with the panel's words."""
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
