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
from .effectors import PositionView
from .working_pose import Body


def leaves_of(body: Body) -> list[PositionView]:
    """The goals whose last two joints are solved as a leaf: those that ask for it and whose joints may turn
    freely.

    A joint that is stiff, slow or comfortable beside the target is left to the sweeps, as is one that others
    than the goal itself pull at."""
    found: list[PositionView] = []
    for view in body.views:
        if not isinstance(view, PositionView) or not view.leaf or len(view.serves) < 2 or view.pivots:
            continue
        last = view.serves[-2:]
        plain = all(
            body.joints[i].stiffness == 0.0
            and body.joints[i].max_step >= math.pi
            and body.joints[i].slide is None
            and body.tolerances[i] == 0.0
            and i not in body.stretches
            for i in last
        )
        if plain and body.serves[last[1]] == [view]:
            found.append(view)
    return found


def close_leaf(body: Body, view: PositionView) -> None:
    """Solves the last two joints of `view`, inside their limits."""
    first, middle = view.serves[-2:]
    body.walk_to(middle)
    upper = body.heads[middle] - body.heads[first]
    lower = view.effector - body.heads[middle]
    axis = _axis(body, middle, upper, lower)
    turn = _opening(upper, lower, axis, (view.target - body.heads[first]).length)
    if turn != 0.0:
        body.turn(middle, axis, turn)
    body.step(first, 1.0 / (body.parts[first] or 1.0))


def _axis(body: Body, i: int, upper: Vector, lower: Vector) -> Vector:
    """The unit axis (model axes) about which the middle joint bends: a hinge's own, else across the present
    bend."""
    limit = body.limits[i]
    if isinstance(limit, Hinge):
        return (body.bases[i] @ Vector(limit.axis)).normalized()
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
