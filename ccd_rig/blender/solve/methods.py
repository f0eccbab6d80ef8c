# SPDX-License-Identifier: GPL-3.0-or-later
"""Other ways than the loop to bring one chain to one point: two bones at once, or every bone just once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mathutils import Vector

from ...errors import InvalidInput, RigError
from ...goals import Goal, PositionGoal, measure
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...solvers.analytic.single_pass import turning_joints
from ...solvers.analytic.target_triangle import target_triangle
from ...solvers.analytic.two_bone import two_bone
from ..properties.constraint_group import METHODS
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetSample
from .constraint_goals import chain_joints

LABELS = {name: label for name, label, _, _ in METHODS}
SINGLE_PASS = ("TWO_BONE", "TRIANGLE")
"""Methods that pose a chain by themselves: nothing else can be asked of its bones."""


def method_problems(constraint: Any) -> Iterator[str]:
    """What a row asks for that its method cannot do, in words."""
    if constraint.method == "CCD":
        return
    if constraint.method not in LABELS:  # the file holds a number that is not in the list
        yield f"Constraint '{constraint.name}': its method is not known to this version: choose one"
        return
    does = f"Constraint '{constraint.name}': method {LABELS[constraint.method]}"
    if not (constraint.use_position and constraint.use_tail):
        ends = "brings the tail of a bone to the target: switch on Position and Use Tail"
        yield f"{does} {ends}, or choose Loop"
    if any(constraint.effector_offset):
        yield f"{does} knows no Effector Offset: set it to 0, or choose Loop"
    if constraint.method not in SINGLE_PASS:
        return
    if constraint.rotation != "NONE":
        yield f"{does} does not turn the bone as its target is: set Rotation to Free, or choose Loop"
    if constraint.method == "TRIANGLE" and constraint.pole_target is not None:
        yield f"{does} has no pole: clear the pole target, or choose Loop or Two Bones"
    if constraint.method == "TRIANGLE" and constraint.max_extension < 1.0:
        yield f"{does} has no reach window: set Max Extension to 1, or choose Loop or Two Bones"


def skeleton_problems(
    skeleton: Skeleton, pose: Pose, constraints: Sequence[Constraint]
) -> Iterator[tuple[str, str, str]]:
    """What does not fit a chain: (severity, name of the constraint, message)."""
    for constraint in constraints:
        if constraint.kind != "REACH" or constraint.method == "CCD":
            continue
        what = f"Constraint '{constraint.name}': method {LABELS[constraint.method]}"
        least = 1 if constraint.method == "TRIANGLE" else 2
        goal = PositionGoal(constraint.tip, Vector(), chain_length=constraint.chain_length)
        try:
            turning = turning_joints(skeleton, pose, goal, what, least)
        except InvalidInput as error:
            yield "ERROR", constraint.name, f"{_in_our_words(error)}; or choose Loop"
            continue
        used = turning if constraint.method == "TRIANGLE" else turning[-2:]
        for j in used:
            joint = skeleton.joints[j]
            left = [
                name
                for name, on in (
                    ("Stiffness", joint.stiffness > 0.0),
                    ("Comfort", joint.comfort is not None),
                    ("Slide", bool(joint.slides)),
                )
                if on
            ]
            if left:
                effect = "does without" if constraint.method in SINGLE_PASS else "leaves to the loop, for its"
                message = f"{what} {effect} {' and '.join(left)} of bone '{joint.name}'"
                yield "WARNING", constraint.name, f"{message}: clear it, or choose Loop"
        if constraint.method in SINGLE_PASS:
            yield from _shared(skeleton, constraints, constraint, what)


def _shared(
    skeleton: Skeleton, constraints: Sequence[Constraint], constraint: Constraint, what: str
) -> Iterator[tuple[str, str, str]]:
    own = set(chain_joints(skeleton, constraint))
    for other in constraints:
        common = own & set(chain_joints(skeleton, other))
        # A planted bone is let go before anything reaches with it.
        if other.name != constraint.name and common and other.kind != "PLANT":
            bone = skeleton.joints[min(common)].name
            message = f"{what} poses its bones alone, but '{other.name}' turns bone '{bone}' too"
            yield "ERROR", constraint.name, f"{message}: shorten a chain, or choose Loop"


def solve_once(
    skeleton: Skeleton,
    pose: Pose,
    constraint: Constraint,
    aim: TargetSample,
    wanted: Sequence[Goal],
    settings: SolverSettings,
) -> SolveResult:
    """Solve a row whose method poses its chain alone.

    Args:
        skeleton: the joints.
        pose: where to start: bends keep their side.
        constraint: its method is one of `SINGLE_PASS`.
        aim: of the row.
        wanted: all its goals; the errors are in their order.
        settings: the tolerances.

    Raises:
        RigError: the chain does not fit.
    """
    goal = next(each for each in wanted if isinstance(each, PositionGoal))
    try:
        if constraint.method == "TWO_BONE":
            result = two_bone(skeleton, pose, goal, pole=aim.pole, soft=constraint.soft)
        else:
            result = target_triangle(skeleton, pose, goal)
    except InvalidInput as error:
        raise RigError(f"Constraint '{constraint.name}': {_in_our_words(error)}") from error
    transforms = forward_kinematics(skeleton, result.pose)
    errors = tuple(measure(each, skeleton, transforms) for each in wanted)
    met = all(
        error.distance <= settings.position_tolerance and error.angle <= settings.angle_tolerance
        for error in errors
    )
    status = SolveStatus.CONVERGED if met else SolveStatus.STALLED
    return replace(result, status=status, errors=errors)


def _in_our_words(error: InvalidInput) -> str:
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
