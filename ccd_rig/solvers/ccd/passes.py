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

    STILL = enum.auto()
    BALL = enum.auto()
    HINGE = enum.auto()
    OTHER = enum.auto()
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
    heads, frames = working.heads, working.frames
    target, position = effector.target, effector.points[0]
    longest = 0.0
    for i, kind, parent, offset, rest, _, mobility in visits:
        if parent == -1:
            head, base = working.offsets[i], working.rests[i]
        else:
            frame = frames[parent]
            # A slide may have changed the offset since the plan was made.
            head = heads[parent] + frame @ (working.offsets[i] if kind == Kind.OTHER else offset)
            base = frame if rest is None else frame @ rest
        if kind == Kind.BALL:
            a, b = position - head, target - head
            rotation, moved = _turned_ball(working, i, base, a, b, fraction * mobility)
        elif kind == Kind.HINGE:
            a, b = position - head, target - head
            rotation, moved = _turned_hinge(working, i, base, a, b, fraction * mobility)
        else:
            working.set_joint(i, head, base, working.rotations[i])
            if kind == Kind.OTHER:
                working.pause_pass(i, effector, position)
                longest = max(longest, working.step(i, fraction))
                position = effector.points[0]
            continue
        working.set_joint(i, head, base, rotation)
        way = (moved - a).length_squared
        if way > longest * longest:
            longest = math.sqrt(way)
        position = head + moved
        if (moved - b).length_squared <= enough:
            working.recompute()
            return longest
    working.end_pass(effector)
    return longest


def _turned_ball(
    working: WorkingPose, i: int, base: Quaternion, a: Vector, b: Vector, part: float
) -> tuple[Quaternion, Vector]:
    """A ball joint's rotation after a part of its best turn, and where `a`, the effector seen from its head,
    is then."""
    # In single precision a wide turn is not told well from its opposite: those are worked out in double.
    wide = a.dot(b) < 0.0
    turn = power(between(a, b), part) if wide else IDENTITY.slerp(a.rotation_difference(b), part)
    before = base @ working.rotations[i]
    rotation = (base.conjugated() @ turn @ before).normalized()
    limit = working.limits[i]
    if limit is not None:
        free = rotation
        rotation = clamp(limit, free)
        if rotation is not free:
            turn = base @ rotation @ before.conjugated()
    turn.normalize()
    return rotation, turn @ a


def _turned_hinge(
    working: WorkingPose, i: int, base: Quaternion, a: Vector, b: Vector, part: float
) -> tuple[Quaternion, Vector]:
    """A hinge's rotation after a part of its best turn, and where `a`, the effector seen from its head, is
    then."""
    limit = working.limits[i]
    assert isinstance(limit, Hinge)
    axis = base @ working.axes[i]
    across: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
    sine = axis.dot(across)
    cosine = a.dot(b) - a.dot(axis) * b.dot(axis)
    before = after = working.turns[i]
    rotation = working.rotations[i]
    if sine * sine + cosine * cosine > 1e-12 * a.length_squared * b.length_squared:
        turn = math.atan2(sine, cosine)
        if limit.upper - limit.lower < FULL_TURN:
            turn = nearest_turn(before + turn, limit.lower, limit.upper) - before
        after = working.set_hinge_angle(i, before + turn * part)
        rotation = Quaternion(working.axes[i], after)
    return rotation, Quaternion(axis, after - before) @ a if after != before else a
