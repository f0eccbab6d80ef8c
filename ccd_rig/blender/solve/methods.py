# SPDX-License-Identifier: GPL-3.0-or-later
"""Other ways than the loop to bring one chain to one point: two bones at once, or every bone just once."""

from __future__ import annotations

from dataclasses import replace

from mathutils import Vector

from ...errors import InvalidInput, RigError
from ...goals import PositionGoal, measure
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...solvers.analytic.target_triangle import target_triangle
from ...solvers.analytic.two_bone import TwoBoneOptions, eased_target, turning_joints, two_bone
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetSample
from .constraint_goals import effector, goals

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
    transforms = forward_kinematics(skeleton, result.pose)
    errors = tuple(measure(goal, skeleton, transforms) for goal in all_goals)
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


def spare_length(skeleton: Skeleton, pose: Pose, constraint: Constraint) -> float:
    """By how much the last two bones that turn would reach further, straight, than in a pose."""
    position = PositionGoal(constraint.tip, Vector(), effector(skeleton, constraint))
    position = replace(position, chain_length=constraint.chain_length)
    root, middle = turning_joints(skeleton, pose, position, constraint.name, 2)[-2:]
    transforms = forward_kinematics(skeleton, pose)
    start, bend = (transforms[j].translation for j in (root, middle))
    end = transforms[skeleton.index(constraint.tip)].point(position.effector(skeleton))
    return float((bend - start).length + (end - bend).length - (end - start).length)


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
