"""A whole pass from root to tip for one position goal, in one loop: the commonest case, three times as fast.

The moves are those of `WorkingPose.step`; what is saved are the calls between them. mathutils works them out
in single precision where that is exact enough. Forward kinematics runs along, so that nothing has to be
recomputed after the pass.
"""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

from mathutils import Quaternion, Vector

from ...limits.shapes import Hinge, Limit, clamp
from ...maths.alignment import FULL_TURN, nearest_turn
from ...maths.rotations import between, power
from .effectors import PositionEffector
from .working_pose import WorkingPose

IDENTITY = Quaternion((1.0, 0.0, 0.0, 0.0))


class Kind(enum.IntEnum):
    """How a joint is moved in a pass."""

    STILL = 0
    BALL = 1
    HINGE = 2
    OTHER = 3
    """By `WorkingPose.step`: it slides, is slow or comfortable, or could stretch a reach window."""


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


def plan_pass(working: WorkingPose) -> list[Visit]:
    """The visits of a pass; none if the goals are not one position whose chain turns rigidly."""
    effector = working.effectors[0]
    if len(working.effectors) != 1 or not isinstance(effector, PositionEffector) or effector.pivots:
        return []
    if any(i in effector.ancestors for i in working.coupled):
        return []
    moved = set(working.movable)
    found = []
    for i in effector.ancestors:
        joint, limit = working.joints[i], working.limits[i]
        if i not in moved:
            kind = Kind.STILL
        elif (
            joint.slides or working.tolerances[i] != 0.0 or joint.max_step < math.pi or i in working.stretches
        ):
            kind = Kind.OTHER
        else:
            kind = Kind.HINGE if isinstance(limit, Hinge) else Kind.BALL
        mobility = working.parts[i] * (1.0 - joint.stiffness)
        rest = None if working.inherits[i] and working.rests[i] == IDENTITY else working.rests[i]
        found.append(Visit(i, kind, working.parents[i], working.offsets[i], rest, limit, mobility))
    return found


def run_pass(working: WorkingPose, visits: list[Visit], fraction: float, enough: float) -> float:
    """One pass: `fraction` (at most 1) of every joint's best step, until the effector is within
    sqrt(`enough`).

    Returns:
        The longest way that the effector was moved by one step, in the model's unit.
    """
    effector = working.effectors[0]
    assert isinstance(effector, PositionEffector)
    heads, frames, bases, rotations = working.heads, working.frames, working.bases, working.rotations
    target, position = effector.target, effector.points[0]
    longest = 0.0
    for i, kind, parent, offset, rest, limit, mobility in visits:
        if parent == -1:
            head, base = working.offsets[i], working.rests[i]
        else:
            frame = frames[parent]
            # A slide may have changed the offset since the plan was made.
            head = heads[parent] + frame @ (working.offsets[i] if kind == Kind.OTHER else offset)
            base = frame if rest is None else frame @ rest
        heads[i], bases[i] = head, base
        if kind == Kind.BALL:
            a, b = position - head, target - head
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
            a, b = position - head, target - head
            moved = _turn_hinge(working, i, limit, base, a, b, fraction * mobility)
        else:
            frames[i] = (base @ rotations[i]).normalized()
            if kind == Kind.OTHER:
                working.valid = working.place[i]
                effector.points[0] = position
                longest = max(longest, working.step(i, fraction))
                position = effector.points[0]
            continue
        way = (moved - a).length_squared
        if way > longest * longest:
            longest = math.sqrt(way)
        position = head + moved
        if (moved - b).length_squared <= enough:
            working.recompute()
            return longest
    working.valid = len(working.order) - 1
    effector.points[0] = heads[effector.tip] + frames[effector.tip] @ effector.point
    working.is_exact = True
    return longest


def _turn_hinge(
    working: WorkingPose, i: int, limit: Limit | None, base: Quaternion, a: Vector, b: Vector, part: float
) -> Vector:
    """Turns a hinge by a part of its best turn; returns where `a`, the effector seen from its head, is
    then."""
    assert isinstance(limit, Hinge)
    axis = base @ working.axes[i]
    across: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
    sine = axis.dot(across)
    cosine = a.dot(b) - a.dot(axis) * b.dot(axis)
    before = after = working.turns[i]
    if sine * sine + cosine * cosine > 1e-12 * a.length_squared * b.length_squared:
        turn = math.atan2(sine, cosine)
        if limit.upper - limit.lower < FULL_TURN:
            turn = nearest_turn(before + turn, limit.lower, limit.upper) - before
        working.turns[i] = after = nearest_turn(before + turn * part, limit.lower, limit.upper)
        working.rotations[i] = Quaternion(working.axes[i], after)
    working.frames[i] = (base @ working.rotations[i]).normalized()
    return Quaternion(axis, after - before) @ a if after != before else a
