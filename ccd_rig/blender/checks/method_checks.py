# SPDX-License-Identifier: GPL-3.0-or-later
"""What a constraint asks for that its method cannot do, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mathutils import Vector

from ...errors import InvalidInput
from ...goals import PositionGoal
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...solvers.analytic.single_pass import turning_joints
from ..properties.constraint_group import METHODS
from ..properties.constraint_values import Constraint, Kind
from ..solve.constraint_goals import chain_joints
from ..solve.methods import SINGLE_PASS, panel_words
from .problem import Problem

LABELS = {name: label for name, label, _, _ in METHODS}


def method_problems(constraint: Any) -> Iterator[Problem]:
    """What a constraint, as it is stored, asks for that its method cannot do."""

    def error(message: str) -> Problem:
        return Problem("ERROR", constraint.name, message)

    if constraint.method == "CCD":
        return
    if constraint.method not in LABELS:  # the file holds a number that is not in the list
        yield error(f"Constraint '{constraint.name}': its method is not known to this version: choose one")
        return
    does = f"Constraint '{constraint.name}': method {LABELS[constraint.method]}"
    if not (constraint.use_position and constraint.use_tail):
        ends = "brings the tail of a bone to the target: switch on Position and Use Tail"
        yield error(f"{does} {ends}, or choose Loop")
    if any(constraint.effector_offset):
        yield error(f"{does} knows no Bone Offset: set it to 0, or choose Loop")
    if constraint.method not in SINGLE_PASS:
        return
    if constraint.rotation != "NONE":
        yield error(f"{does} does not turn the bone as its target is: set Rotation to Free, or choose Loop")
    if constraint.method == "TRIANGLE" and constraint.pole_target is not None:
        yield error(f"{does} has no pole: clear the pole target, or choose Loop or Two Bones")
    if constraint.method == "TRIANGLE" and constraint.max_extension < 1.0:
        yield error(f"{does} has no reach window: set Max Extension to 1, or choose Loop or Two Bones")


def skeleton_problems(skeleton: Skeleton, pose: Pose, constraints: Sequence[Constraint]) -> Iterator[Problem]:
    """What does not fit the chain of a constraint's method."""
    for constraint in constraints:
        yield from _window_problems(skeleton, constraint)
        if constraint.method == "CCD":
            continue
        what = f"Constraint '{constraint.name}': method {LABELS[constraint.method]}"
        least = 1 if constraint.method == "TRIANGLE" else 2
        goal = PositionGoal(constraint.tip, Vector(), chain_length=constraint.chain_length)
        try:
            turning = turning_joints(skeleton, pose, goal, what, least)
        except InvalidInput as error:
            yield Problem("ERROR", constraint.name, f"{panel_words(error)}; or choose Loop")
            continue
        used = turning if constraint.method == "TRIANGLE" else turning[-2:]
        for j in used:
            joint = skeleton.joints[j]
            unused = [
                name
                for name, on in (
                    ("Stiffness", joint.stiffness > 0.0),
                    ("Comfort", joint.comfort is not None),
                    ("Slide", bool(joint.slides)),
                    ("Coupled Offset", bool(joint.coupled_offsets)),
                )
                if on
            ]
            if unused:
                effect = "does without" if constraint.method in SINGLE_PASS else "leaves to the loop, for its"
                message = f"{what} {effect} {' and '.join(unused)} of bone '{joint.name}'"
                yield Problem("WARNING", constraint.name, f"{message}: clear it, or choose Loop")
        if constraint.method in SINGLE_PASS:
            yield from _shared(skeleton, constraints, constraint, what)


def _window_problems(skeleton: Skeleton, constraint: Constraint) -> Iterator[Problem]:
    """A part of a chain that may not be stretched needs links that keep their lengths."""
    if constraint.kind is not Kind.REACH or not constraint.use_position or constraint.max_extension >= 1.0:
        return
    top = chain_joints(skeleton, constraint)[-constraint.extension_joints :][:1]
    for j in skeleton.chain(constraint.tip):
        if top and j > top[0] and skeleton.joints[j].coupled_offsets:
            message = (
                f"Constraint '{constraint.name}': Max Extension is below 1, but bone "
                f"'{skeleton.joints[j].name}' has a coupled offset, so the chain's length changes"
            )
            yield Problem(
                "ERROR", constraint.name, f"{message}: set Max Extension to 1, or remove the offset"
            )


def _shared(
    skeleton: Skeleton, constraints: Sequence[Constraint], constraint: Constraint, what: str
) -> Iterator[Problem]:
    joints = set(chain_joints(skeleton, constraint))
    for other in constraints:
        common = joints & set(chain_joints(skeleton, other))
        # A planted bone is let go before anything reaches with it.
        if other.name != constraint.name and common and other.kind is not Kind.PLANT:
            bone = skeleton.joints[min(common)].name
            message = f"{what} poses its bones alone, but '{other.name}' turns bone '{bone}' too"
            yield Problem("ERROR", constraint.name, f"{message}: shorten a chain, or choose Loop")
