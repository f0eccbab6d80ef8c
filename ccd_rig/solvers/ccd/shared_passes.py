"""A pass of shared steps for one position goal: all joints take their parts of the least turns at once.

A push v at the effector turns joint i, seen from which the effector is at r_i, by the rotation vector
m_i r_i x v (m_i: its mobility; of a hinge the part along its axis). To first order this moves the effector
by A v with A = sum m_i (|r_i|^2 - r_i r_i^T), and of all turns that move it so these have the least sum of
squares over mobility. v follows from A v = way, damped by the square error (Sugihara 2011), so that a target
out of reach does no harm. What a joint that is held at its limit would turn outwards is left to the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mathutils import Quaternion, Vector

from ...limits.shapes import Hinge, Limit, clamp, locked_axis
from .chain_length import levers_of
from .effectors import PositionEffector
from .passes import Kind, Visit
from .working_pose import WorkingPose

DAMPING, LEAST_DAMPING = 0.1, 1e-6
"""Parts of the square error and of A's trace that are added to A: far away steps are small, and a straight
chain has a push too."""
BEYOND = 1e-6
"""Half of the radians by which a joint must have wanted to leave its limit to be held there."""
EVEN = 0.3
"""Mobility falls with this power of a joint's lever along the chain: with 0 the joints far from the effector
turn most, with 1 all turn about alike, but farther in sum."""
TRAVEL = 2.0
"""Lengths of the chain over which a target moves until joints are home, if it leaves them all room."""
SHORT = 1e-2
"""Part of the chain's length below which a lever makes a joint no more mobile."""
LONGEST = 1.0
"""Longest turn in one pass, radians, of a joint and of all of them together: farther away the linear picture
means little, and a long chain whose joints turn by a little each is rolled up."""
SMALL = 1e-12
"""Radians: a shorter turn is none."""


class PassPlan(NamedTuple):
    """What does not change from pass to pass.

    Attributes:
        visits: the joints from the root to the effector; mobility is worked out for shared steps.
        length: of the links from the first joint that moves to the effector, the model's unit.
    """

    visits: Sequence[Visit]
    length: float


class Lever(NamedTuple):
    """What a joint can do for the effector; all in model space.

    Attributes:
        visit: the joint.
        arm: from its head to the effector.
        axis: of a hinge.
        locked: of a ball joint of one single twist, see `shapes.locked_axis`.
        border: unit normal, outwards, of the limit that holds the joint; None while it is free.
    """

    visit: Visit
    arm: Vector
    axis: Vector | None
    locked: Vector | None
    border: Vector | None


def plan_pass(working: WorkingPose, visits: Sequence[Visit]) -> PassPlan | None:
    """The plan of shared passes over these visits; None if joints do more than turn."""
    if not visits or any(visit.kind == Kind.OTHER for visit in visits):
        return None
    effector = working.effectors[0]
    assert isinstance(effector, PositionEffector)
    levers = dict(zip(effector.moving_joints, levers_of(working, effector), strict=True))
    length = max(levers.values(), default=0.0) or 1.0
    shared = []
    for i, kind, parent, offset, rest, limit, _ in visits:
        lever = max(levers.get(i, length) / length, SHORT)
        mobility = (1.0 - working.joints[i].stiffness) / lever**EVEN
        shared.append(Visit(i, kind, parent, offset, rest, limit, mobility))
    return PassPlan(shared, length)


def run_pass(working: WorkingPose, plan: PassPlan) -> float:
    """One pass.

    Returns:
        How far the effector was moved, in the model's unit.
    """
    effector = working.effectors[0]
    assert isinstance(effector, PositionEffector)
    before, visits = effector.position, plan.visits
    way = effector.target - before
    part = min(1.0, way.length / (TRAVEL * plan.length))
    levers = _levers(working, visits, before)
    eased = [_eased(working, lever, part) for lever in levers]
    push = _push(levers, eased, way)
    released = [arm.visit.joint for arm in levers if arm.border is not None and _inwards(arm, push)]
    if released:
        for i in released:
            working.release_limit(i)
        levers = _levers(working, visits, before)
        push = _push(levers, eased, way)
    turns = {lever.visit.joint: back + _turn(lever, push) for lever, back in zip(levers, eased, strict=True)}
    _move(working, visits, turns)
    return (working.end_pass(effector) - before).length


def _levers(working: WorkingPose, visits: Iterable[Visit], position: Vector) -> list[Lever]:
    heads, frames, active_limits = working.heads, working.frames, working.active_limits
    found = []
    for visit in visits:
        i = visit.joint
        if visit.kind == Kind.STILL:
            continue
        frame = frames[i]
        axis = frame @ working.axes[i] if visit.kind == Kind.HINGE else None
        locked = locked_axis(visit.limit, working.rotations[i])
        border = frame @ active_limits[i] if i in active_limits else None
        locked = None if locked is None else frame @ locked
        found.append(Lever(visit, position - heads[i], axis, locked, border))
    return found


def _eased(working: WorkingPose, lever: Lever, part: float) -> Vector:
    """The rotation vector (model space) by which a joint goes home while others take over what it did.

    Chains that only turn least from pose to pose end up with joints at their limits and in corners from which
    the next target is out of reach, and where they end depends on the way there. So they go home as the
    target moves, as far as it leaves them room, and rest when it rests.
    """
    i, stiffness = lever.visit.joint, working.joints[lever.visit.joint].stiffness
    if working.reference is None:
        return Vector()
    axis, angle = (working.reference_rotation(i).conjugated() @ working.rotations[i]).to_axis_angle()
    if angle > math.pi:
        angle -= 2.0 * math.pi
    back = working.frames[i] @ (-part * (1.0 - stiffness) * angle * axis)
    return back - lever.locked.dot(back) * lever.locked if lever.locked is not None else back


def _push(levers: Sequence[Lever], eased: Sequence[Vector], way: Vector) -> Vector:
    """The push whose turns move the effector by `way`, with those of joints that go home."""
    xx = yy = zz = xy = xz = yz = 0.0
    for (visit, arm, axis, locked, border), back in zip(levers, eased, strict=True):
        way = way - _cross(back, arm)
        m = visit.mobility
        if axis is None:
            x, y, z = arm[:]
            xx += m * (y * y + z * z)
            yy += m * (x * x + z * z)
            zz += m * (x * x + y * y)
            xy -= m * x * y
            xz -= m * x * z
            yz -= m * y * z
        # Turns about one axis: those that a hinge makes, and those that a ball joint does not make.
        alone = axis if border is None else None
        for about, part in ((alone, m),) if axis is not None else ((locked, -m), (border, -m)):
            if about is not None:
                x, y, z = _cross(about, arm)[:]
                xx += part * x * x
                yy += part * y * y
                zz += part * z * z
                xy += part * x * y
                xz += part * x * z
                yz += part * y * z
    damping = DAMPING * way.length_squared + LEAST_DAMPING * (xx + yy + zz)
    if damping == 0.0:
        return Vector()
    return Vector(_solved((xx + damping, yy + damping, zz + damping, xy, xz, yz), way[:]))


def _cross(a: Vector, b: Vector) -> Vector:
    found: Any = a.cross(b)  # for two-dimensional vectors, which these are not, a number
    product: Vector = found
    return product


def _inwards(lever: Lever, push: Vector) -> bool:
    """Whether a joint that is held at its limit would turn away from it."""
    assert lever.border is not None
    return lever.border.dot(_cross(lever.arm, push)) < 0.0


def _turn(lever: Lever, push: Vector) -> Vector:
    """The rotation vector of a joint's part, model space."""
    turn = lever.visit.mobility * _cross(lever.arm, push)
    if lever.axis is not None:
        return lever.axis.dot(turn) * lever.axis if lever.border is None else Vector()
    for axis in (lever.locked, lever.border):
        if axis is not None:
            turn = turn - axis.dot(turn) * axis
    return turn


def _move(working: WorkingPose, visits: Iterable[Visit], turns: dict[int, Vector]) -> None:
    """Turns joints by rotation vectors (model space), inside their limits; forward kinematics runs along."""
    heads, frames = working.heads, working.frames
    longest = max((turn.length for turn in turns.values()), default=0.0)
    together = sum(turns.values(), Vector()).length
    part = LONGEST / max(LONGEST, longest, together)
    for i, kind, parent, offset, rest, limit, _ in visits:
        rotation = working.rotations[i]
        if i in turns:
            own = frames[i].conjugated() @ turns[i]
            if kind == Kind.HINGE:
                rotation = _turned_hinge(working, i, limit, part * own.dot(working.axes[i]))
            elif own.length > SMALL:
                free = (rotation @ Quaternion(own, part * own.length)).normalized()
                rotation = free if limit is None else _confined(working, i, limit, free)
        if parent == -1:
            head, base = working.offsets[i], working.rests[i]
        else:
            frame = frames[parent]
            head = heads[parent] + frame @ offset
            base = frame if rest is None else frame @ rest
        working.set_joint(i, head, base, rotation)


def _turned_hinge(working: WorkingPose, i: int, limit: Limit | None, turn: float) -> Quaternion:
    assert isinstance(limit, Hinge)
    wanted, axis = working.turns[i] + turn, working.axes[i]
    inside = working.set_hinge_angle(i, wanted)
    if abs(wanted - inside) > BEYOND and limit.lower < limit.upper:  # or it went round
        working.hold_limit(i, axis if wanted > inside else -axis)
    return Quaternion(axis, inside)


def _confined(working: WorkingPose, i: int, limit: Limit, free: Quaternion) -> Quaternion:
    """A ball joint's rotation inside its limit; where that holds it back, its border is kept."""
    inside = clamp(limit, free)
    if inside is not free:
        out = inside.conjugated() @ free
        border = Vector(out[1:]) * math.copysign(1.0, out.w)
        locked = locked_axis(limit, inside)
        if locked is not None:
            border -= locked.dot(border) * locked
        if border.length > BEYOND:
            working.hold_limit(i, border.normalized())
    return inside


def _solved(system: Sequence[Any], way: Iterable[Any]) -> tuple[Any, Any, Any]:
    """The vector that a symmetric system (xx, yy, zz, xy, xz, yz) makes `way`; of numbers or of arrays.

    By cofactors, and so exact to double precision also where a chain is nearly straight.
    """
    a, b, c, xy, xz, yz = system
    aa, bb, cc = b * c - yz * yz, a * c - xz * xz, a * b - xy * xy
    ab, ac, bc = xz * yz - xy * c, xy * yz - xz * b, xy * xz - yz * a
    scale = 1.0 / (a * aa + xy * ab + xz * ac)
    x, y, z = way
    return (
        scale * (aa * x + ab * y + ac * z),
        scale * (ab * x + bb * y + bc * z),
        scale * (ac * x + bc * y + cc * z),
    )
