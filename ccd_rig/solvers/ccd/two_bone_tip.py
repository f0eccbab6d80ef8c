"""Two bones at the end of a chain, solved at once by the law of cosines, inside the loop.

Kenwright 2012, section 5.2: for one or two links an analytic solution costs less than iterating, and leaves
joints further down still where the last two bones reach the target alone. The middle joint opens or closes
until the effector is as far from the first joint as the target is; then the first joint points it there,
which is an ordinary step."""

from __future__ import annotations

import math
from typing import Any

from mathutils import Vector

from ...limits.shapes import Hinge
from ...maths.rotations import perpendicular
from ...maths.tolerances import NOISE
from .effectors import PositionEffector
from .working_pose import WorkingPose


def two_bone_tips_of(working: WorkingPose) -> list[PositionEffector]:
    """The goals whose last two joints are solved at once: those that ask for it and whose joints may turn
    freely.

    A joint that is stiff, slow or comfortable beside the target is left to the sweeps, as is one that others
    than the goal itself pull at."""
    found: list[PositionEffector] = []
    for effector in working.effectors:
        if (
            not isinstance(effector, PositionEffector)
            or not effector.two_bone_tip
            or len(effector.moving_joints) < 2
            or effector.pivots
        ):
            continue
        last = effector.moving_joints[-2:]
        plain = all(
            working.joints[i].stiffness == 0.0
            and working.joints[i].max_step >= math.pi
            and not working.joints[i].slides
            and not working.joints[i].coupled_offsets
            and i not in working.drives
            and working.tolerances[i] == 0.0
            and i not in working.stretches
            for i in last
        )
        if plain and working.active_effectors[last[1]] == [effector]:
            found.append(effector)
    return found


def solve_two_bone_tip(working: WorkingPose, effector: PositionEffector) -> None:
    """Solves the last two joints of `effector`, inside their limits."""
    first, middle = effector.moving_joints[-2:]
    working.update_to(middle)
    upper = working.heads[middle] - working.heads[first]
    lower = effector.position - working.heads[middle]
    axis = _axis(working, middle, upper, lower)
    turn = _opening(upper, lower, axis, (effector.target - working.heads[first]).length)
    if turn != 0.0:
        working.turn(middle, axis, turn)
    working.step(first, 1.0 / (working.parts[first] or 1.0))


def _axis(working: WorkingPose, i: int, upper: Vector, lower: Vector) -> Vector:
    """The unit axis (model axes) about which the middle joint bends: a hinge's own, else across the present
    bend."""
    limit = working.limits[i]
    if isinstance(limit, Hinge):
        return (working.bases[i] @ Vector(limit.axis)).normalized()
    across: Any = upper.cross(lower)  # for two-dimensional vectors, which these are not, a number
    if across.length > NOISE * upper.length * lower.length:
        return Vector(across.normalized())
    return perpendicular(upper)  # a straight limb bends to a side that is always the same


def _opening(upper: Vector, lower: Vector, axis: Vector, wanted: float) -> float:
    """The smallest turn of `lower` about `axis` after which |upper + lower| is `wanted`, or as near as it
    can be.

    With the part of `lower` across the axis, upper . R lower = along + a cos t + b sin t has to be
    (wanted^2 - |upper|^2 - |lower|^2) / 2.
    """
    height = axis * lower.dot(axis)
    across = lower - height
    square: Any = axis.cross(across)
    a, b = upper.dot(across), upper.dot(square)
    size = math.hypot(a, b)
    if size <= NOISE * upper.length * lower.length:
        return 0.0  # the limb turns about its own line: its length does not change
    goal = 0.5 * (wanted * wanted - upper.length_squared - lower.length_squared) - upper.dot(height)
    middle, half = math.atan2(b, a), math.acos(min(max(goal / size, -1.0), 1.0))
    turns = (math.remainder(middle + half, 2.0 * math.pi), math.remainder(middle - half, 2.0 * math.pi))
    return min(turns, key=abs)
