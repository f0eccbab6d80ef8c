"""A whole pass from root to tip for one position goal, in one loop: the commonest case, at a third of its
cost.

The moves are those of `Body.step`; what is saved are the calls between them. mathutils works them out in
single precision where that is exact enough, and forward kinematics runs along, so that nothing has to be
rebuilt after the pass."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

from mathutils import Quaternion, Vector

from ...limits.shapes import Hinge, Limit, clamp
from ...maths.alignment import FULL_TURN, nearest_turn
from ...maths.rotations import between, power
from .effectors import PositionView
from .working_pose import Body

IDENTITY = Quaternion((1.0, 0.0, 0.0, 0.0))


class Kind(enum.IntEnum):
    """How a joint is moved in a pass."""

    STILL = 0
    BALL = 1
    HINGE = 2
    OTHER = 3
    """By `Body.step`: it slides, is slow or comfortable, or could stretch a reach window."""


class Visit(NamedTuple):
    """What a pass needs of one joint: index, kind, parent, offset, rest (None: none), limit, 1 -
    stiffness."""

    joint: int
    kind: Kind
    parent: int
    offset: Vector
    rest: Quaternion | None
    limit: Limit | None
    mobility: float


def plan(body: Body) -> list[Visit]:
    """The visits of a pass; none if the goals are not one position whose chain turns rigidly."""
    view = body.views[0]
    if len(body.views) != 1 or not isinstance(view, PositionView) or view.pivots:
        return []
    moved = set(body.movable)
    found = []
    for i in view.carriers:
        joint, limit = body.joints[i], body.limits[i]
        if i not in moved:
            kind = Kind.STILL
        elif (
            joint.slide is not None
            or body.tolerances[i] != 0.0
            or joint.max_step < math.pi
            or i in body.stretches
        ):
            kind = Kind.OTHER
        else:
            kind = Kind.HINGE if isinstance(limit, Hinge) else Kind.BALL
        mobility = body.parts[i] * (1.0 - joint.stiffness)
        rest = None if body.inherits[i] and body.rests[i] == IDENTITY else body.rests[i]
        found.append(Visit(i, kind, body.parents[i], body.offsets[i], rest, limit, mobility))
    return found


def take(body: Body, visits: list[Visit], fraction: float, enough: float) -> float:
    """One pass: `fraction` (at most 1) of every joint's best step, until the effector is within
    sqrt(`enough`).

    Returns:
        The longest way that the effector was moved by one step, in the model's unit.
    """
    view = body.views[0]
    assert isinstance(view, PositionView)
    heads, frames, bases, rotations = body.heads, body.frames, body.bases, body.rotations
    target, effector = view.target, view.points[0]
    longest = 0.0
    for i, kind, parent, offset, rest, limit, mobility in visits:
        if parent == -1:
            head, base = body.offsets[i], body.rests[i]
        else:
            frame = frames[parent]
            # A slide may have changed the offset since the plan was made.
            head = heads[parent] + frame @ (body.offsets[i] if kind == Kind.OTHER else offset)
            base = frame if rest is None else frame @ rest
        heads[i], bases[i] = head, base
        if kind == Kind.BALL:
            a, b = effector - head, target - head
            # In single precision a wide turn is not told well from its opposite: those are worked out in
            # double.
            if a.dot(b) < 0.0:
                turn = power(between(a, b), fraction * mobility)
            else:
                turn = IDENTITY.slerp(a.rotation_difference(b), fraction * mobility)
            before = base @ rotations[i]
            rotation = (base.conjugated() @ turn @ before).normalized()
            if limit is not None:
                free = rotation
                rotation = clamp(limit, free)
                if rotation is not free:
                    turn = base @ rotation @ before.conjugated()
            rotations[i] = rotation
            frames[i] = (base @ rotation).normalized()
            turn.normalize()
            moved = turn @ a
        elif kind == Kind.HINGE:
            a, b = effector - head, target - head
            moved = _turn_hinge(body, i, limit, base, a, b, fraction * mobility)
        else:
            frames[i] = (base @ rotations[i]).normalized()
            if kind == Kind.OTHER:
                body.valid = body.place[i]
                view.points[0] = effector
                longest = max(longest, body.step(i, fraction))
                effector = view.points[0]
            continue
        way = (moved - a).length_squared
        if way > longest * longest:
            longest = math.sqrt(way)
        effector = head + moved
        if (moved - b).length_squared <= enough:
            body.rebuild()
            return longest
    body.valid = len(body.order) - 1
    view.points[0] = heads[view.tip] + frames[view.tip] @ view.point
    body.fresh = True
    return longest


def _turn_hinge(
    body: Body, i: int, limit: Limit | None, base: Quaternion, a: Vector, b: Vector, part: float
) -> Vector:
    """Turns a hinge by a part of its best turn; returns where `a`, the effector seen from its head, is
    then."""
    assert isinstance(limit, Hinge)
    axis = base @ body.axes[i]
    across: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
    sine = axis.dot(across)
    cosine = a.dot(b) - a.dot(axis) * b.dot(axis)
    before = after = body.turns[i]
    if sine * sine + cosine * cosine > 1e-12 * a.length_squared * b.length_squared:
        turn = math.atan2(sine, cosine)
        if limit.upper - limit.lower < FULL_TURN:
            turn = nearest_turn(before + turn, limit.lower, limit.upper) - before
        body.turns[i] = after = nearest_turn(before + turn * part, limit.lower, limit.upper)
        body.rotations[i] = Quaternion(body.axes[i], after)
    body.frames[i] = (base @ body.rotations[i]).normalized()
    return Quaternion(axis, after - before) @ a if after != before else a
