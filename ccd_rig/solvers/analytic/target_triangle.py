"""Song & Hu's target triangle: a chain of any length, each joint turned once from root to tip.

It takes the skeleton, pose and goal of `solve` and returns a `SolveResult`. Locked joints are rigid parts of
the bone below them. Limits hold; comfort, stiffness below 1, `max_step` and slides are not used.

Song & Hu 2011, section 3. For each joint, a is the length of its link (to the next joint that turns, or to
the effector), b the length of the links after it, and c the distance of the target. V_e is the link, V_t the
vector to the target, and theta the angle between them (eq. 1). The link turns by theta - phi_b about V_r =
V_e x V_t (eq. 2, 5). It ends at phi_b = acos((a^2 + c^2 - b^2) / (2 a c)) from the target (eq. 3), on its
side. With the link itself as V_e the triangle closes from any start; for the straight chain of the paper's
figures it is the same.

Without a triangle: a link whose target is too far (c > a + b) points at the target. So does a long link whose
target is too near (a > b + c). Before a long rest (b > a + c) the link points away from the target, and the
rest comes back from the other side. V_r vanishes where the link is on the line to the target. Then the joint
turns about a hinge's axis, the axis of the joint before, or a fixed perpendicular.

A joint's limit always holds. The next joint may be unable to make its turn inside its limit and omega. Then
phi_b changes in steps of 10 degrees, towards the target and away from it by turns, within 0..180 degrees,
until it can: the paper's two cases, iterated and bounded. If no step helps, the exact triangle is taken and
the next joint is clamped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import PositionGoal
from ...limits.shapes import Hinge, contains, hinge_turn
from ...maths.alignment import best_hinge_turn, nearest_turn
from ...maths.rotations import NOISE, perpendicular
from ...settings import SolveResult, SolverSettings
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from .single_pass import (
    Seen,
    cross,
    inside_limits,
    seen_joint,
    shortest_arc,
    single_pass_result,
    turning_joints,
)

TEN_DEGREES = math.radians(10.0)


def target_triangle(
    skeleton: Skeleton,
    pose: Pose,
    goal: PositionGoal,
    *,
    omega: Mapping[str, float] | None = None,
    position_tolerance: float = SolverSettings.position_tolerance,
) -> SolveResult:
    """Turn each joint once, root first, so that its link, the rest and the target form a triangle.

    The head of this module has the equations, and the cases without a triangle.

    Args:
        skeleton: the joints.
        pose: the start; rotations outside a limit are clamped first.
        goal: the joints of its chain that are not locked turn; any effector.
        omega: largest angle between a joint's link and the link before, radians, by joint name (omega_i of
            the paper).
        position_tolerance: of CONVERGED, in the model's unit.

    Returns:
        CONVERGED or STALLED, 1 iteration, and the error. Each joint turns at most once, so limits may keep
        the effector off a target in reach.

    Raises:
        InvalidInput: the chain has no joint that can turn, or one that does not inherit rotation; omega
            names an unknown joint or is outside 0..pi; the goal has a reach window.
    """
    bends = dict(omega or {})
    for name, angle in bends.items():
        skeleton.index(name)
        if not 0.0 <= angle <= math.pi:
            raise InvalidInput(f"target_triangle: omega of '{name}' must be 0 to pi radians, not {angle:g}")
    chain = turning_joints(skeleton, pose, goal, "target_triangle", 1)
    if goal.max_extension < 1.0:
        raise InvalidInput(
            "target_triangle takes no reach window: give the goal max_extension=1, or use solve"
        )
    start = inside_limits(skeleton, pose, chain)
    transforms = forward_kinematics(skeleton, start)
    seen = [seen_joint(skeleton, start, transforms, i) for i in chain]
    points = [each.head for each in seen[1:]]
    points.append(transforms[skeleton.index(goal.joint)].point(goal.effector(skeleton)))
    links = [
        _Link(
            each,
            each.frame.conjugated() @ (end - each.head),
            each.frame.conjugated() @ above.base,
            bends.get(each.joint.name, math.pi),
        )
        for each, above, end in zip(seen, [*seen[1:], seen[-1]], points, strict=True)
    ]
    stand = _Stand(seen[0].head, seen[0].base, None, None)
    turned: dict[int, Quaternion] = {}
    for place, link in enumerate(links):
        turned[link.seen.index], stand = _turned(stand, links[place:], goal.target)
    return single_pass_result(skeleton, start.with_rotations(turned), goal, position_tolerance)


def _turned(stand: _Stand, links: Sequence[_Link], target: Vector) -> tuple[Quaternion, _Stand]:
    """The rotation of the first link's joint relative to rest, and the stand of the next joint."""
    rests = [math.fsum(link.vector.length for link in links[place + 1 :]) for place in range(2)]
    exact = _triangle(stand, links[0], rests[0], target)
    rotation, _ = _placed(stand, links[0], exact, target)
    chosen = rotation, _above(stand, links[0], rotation, target)
    if len(links) == 1:
        return chosen
    for angle in (exact, *_ten_degree_steps(exact)):
        rotation, fits = _placed(stand, links[0], angle, target)
        after = _above(stand, links[0], rotation, target)
        if not fits:
            continue
        if (target - after.head).length > rests[0] * (1.0 + NOISE) and angle != exact:
            continue  # from there the rest would be too short
        if _placed(after, links[1], _triangle(after, links[1], rests[1], target), target)[1]:
            return rotation, after
    return chosen


@dataclass(frozen=True)
class _Link:
    """A joint that turns, and the rigid piece to the next joint.

    `vector` and the next joint's rest are in the joint's frame.
    """

    seen: Seen
    vector: Vector
    next_rest: Quaternion
    omega: float


@dataclass(frozen=True)
class _Stand:
    """The state before a joint turns: its head and rest frame, and link and axis of the joint before."""

    head: Vector
    base: Quaternion
    direction: Vector | None
    axis: Vector | None


def _triangle(stand: _Stand, link: _Link, b: float, target: Vector) -> float:
    """phi_b, the angle between link and target, radians (Song & Hu 2011, eq. 3, and the cases without a
    triangle)."""
    a, c = link.vector.length, (target - stand.head).length
    # A chain straight but for rounding counts as straight: acos would turn it by sqrt(NOISE).
    if c >= (a + b) * (1.0 - NOISE) or a >= b + c:
        return 0.0
    if b >= a + c:
        return math.pi
    return math.acos(min(max((a * a + c * c - b * b) / (2.0 * a * c), -1.0), 1.0))


def _ten_degree_steps(angle: float) -> Iterator[float]:
    """`angle` minus and plus 10, 20, ... degrees by turns, inside 0..180 degrees."""
    for step in range(1, 19):
        for other in (angle - step * TEN_DEGREES, angle + step * TEN_DEGREES):
            if -TEN_DEGREES < other < math.pi + TEN_DEGREES:
                yield min(max(other, 0.0), math.pi)


def _axis(stand: _Stand, link: _Link, along: Vector, towards: Vector) -> Vector:
    """V_r, the unit axis from the link to the target (Song & Hu 2011, eq. 2), with a fallback on one line."""
    normal = cross(along, towards)
    if normal.length > NOISE * along.length * towards.length:
        return normal.normalized()
    limit = link.seen.joint.limit
    known = [stand.axis] if stand.axis is not None else []
    if isinstance(limit, Hinge):
        known.insert(0, stand.base @ Vector(limit.axis))
    for axis in known:
        square = axis - along * (axis.dot(along) / along.length_squared)
        if square.length > 0.5:
            return square.normalized()
    return perpendicular(along)


def _placed(stand: _Stand, link: _Link, angle: float, target: Vector) -> tuple[Quaternion, bool]:
    """The rotation relative to rest with the link at `angle` from the target, and whether limits allow it.

    Otherwise the rotation is clamped to them.
    """
    joint = link.seen.joint
    frame = stand.base @ link.seen.rotation
    along, towards = frame @ link.vector, target - stand.head
    if along.length == 0.0 or towards.length == 0.0:
        return link.seen.rotation, True  # no link to turn, or no direction to turn it to
    axis = _axis(stand, link, along, towards)
    theta = math.atan2(axis.dot(cross(along, towards)), along.dot(towards))
    aimed = Quaternion(axis, theta - angle) @ along
    fits = True
    if stand.direction is not None and stand.direction.angle(aimed) > link.omega + NOISE:
        back = cross(stand.direction, aimed)
        back = back.normalized() if back.length > NOISE * aimed.length else axis
        aimed = Quaternion(back, link.omega) @ stand.direction
        fits = False
    limit = joint.limit
    if isinstance(limit, Hinge):
        turn = best_hinge_turn(stand.base @ Vector(limit.axis), [(along, aimed, 1.0)])
        turn = nearest_turn(hinge_turn(limit, link.seen.rotation) + turn, limit.lower, limit.upper)
        rotation = Quaternion(limit.axis, turn)
        reached = stand.base @ rotation @ link.vector
        return rotation, fits and (reached - aimed).length <= 1e-4 * aimed.length
    turned = stand.base.conjugated() @ shortest_arc(along, aimed, axis) @ frame
    rotation = joint.allowed(turned.normalized())
    return rotation, fits and (limit is None or contains(limit, turned.normalized(), 1e-5))


def _above(stand: _Stand, link: _Link, rotation: Quaternion, target: Vector) -> _Stand:
    """The stand of the next joint after this one has taken `rotation`."""
    frame = (stand.base @ rotation).normalized()
    along = stand.base @ link.seen.rotation @ link.vector
    direction = frame @ link.vector
    if direction.length == 0.0:
        return _Stand(stand.head, (frame @ link.next_rest).normalized(), stand.direction, stand.axis)
    towards = target - stand.head
    axis = _axis(stand, link, along, towards) if towards.length > 0.0 else stand.axis
    return _Stand(stand.head + direction, (frame @ link.next_rest).normalized(), direction, axis)
