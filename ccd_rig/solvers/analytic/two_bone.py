"""Two bones by the law of cosines.

It takes the skeleton, pose and goal of `solve`, turns each joint once, and returns a `SolveResult`. Locked
joints are rigid parts of the bone below them. Limits hold; comfort, stiffness below 1, `max_step` and slides
are not used. A target out of reach is a status, never an exception.

Degenerate cases:

- A straight chain bends towards the pole, without one about the middle joint's X axis.
- A bone without length cannot bend: the root joint aims.
- A target at the root joint's head gives no direction: the chain folds along its present one.
- A target straight behind is reached by a half turn in the plane of the bend.
- A pole on the line to the target gives no side.
- A target too far or too near is aimed at with the chain stretched or folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import PositionGoal
from ...limits.shapes import Hinge, clamp, contains, hinge_turn, violation
from ...maths.alignment import best_hinge_turn, nearest_turn
from ...maths.rotations import NOISE, perpendicular, slerp
from ...maths.validation import finite, frozen_vector, store
from ...settings import SolveResult, SolverSettings
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ..soft_reach import softened
from .single_pass import Seen, cross, inside_limits, seen_joint, shortest_arc, single_pass_result
from .single_pass import turning_joints as turning_joints

SWIVEL = math.radians(10.0)
SWIVEL_STEPS = 18
"""Swivel angles about the line to the target, to either side, tried when a limit forbids the wanted one."""
HALVINGS = 20
"""Bisections of the border of allowed swivel angles between two of them: to a millionth of a step."""


@dataclass(frozen=True, kw_only=True)
class TwoBoneOptions:
    """Options of `two_bone`.

    Attributes:
        pole: a point in model space to which the bend points, or None to keep the bend's plane.
        pole_angle: radians by which the bend is turned from the pole about the line to the target.
        soft: part of the chain's length over which it eases into straight, 0 to 1. From d_a = (1 - soft)
            length on the distance is d_a + s (1 - exp(-(d - d_a) / s)), s = soft length (A. Nicholas,
            xsi-blog.com/archives/108). The chain does not snap at full reach; the effector stays behind a
            target farther than d_a.
        weight: part of each joint's rotation that is taken (slerp), clamped to 0..1; 0 keeps the pose.
        accept_limited: whether to return a pose that misses the target because of a limit; if not, the start
            is returned.

    Raises:
        InvalidInput: a number is not finite; soft is outside 0..1.
    """

    pole: Vector | None = None
    pole_angle: float = 0.0
    soft: float = 0.0
    weight: float = 1.0
    accept_limited: bool = True

    def __post_init__(self) -> None:
        finite("two_bone: pole_angle", self.pole_angle)
        soft, weight = self.soft, self.weight
        if not (math.isfinite(soft) and 0.0 <= soft <= 1.0):
            raise InvalidInput(f"two_bone: soft must be 0 to 1 (a part of the chain's length), not {soft:g}")
        if not math.isfinite(weight):
            raise InvalidInput(f"two_bone: weight must be a finite number, not {weight:g}")
        if self.pole is not None:
            store(self, "pole", frozen_vector(self.pole, "two_bone: pole"))


def two_bone(
    skeleton: Skeleton,
    pose: Pose,
    goal: PositionGoal,
    options: TwoBoneOptions | None = None,
    *,
    position_tolerance: float = SolverSettings.position_tolerance,
) -> SolveResult:
    """Bend the middle joint until the effector is as far away as the target, then aim the root joint.

    Let u lead from the root joint to the middle one, v from there to the effector, and d be the distance of
    the target. The middle joint turns about its axis n until u.v = (d^2 - |u|^2 - |v|^2) / 2 (law of cosines;
    the parts of u and v along n do not change). n is a hinge's axis, otherwise the normal of the bend; the
    bend keeps its side. Then the root joint turns by the shortest arc, and about the line to the target until
    the bend points to the pole. The head of this module lists the degenerate cases.

    Limits always hold. Candidates are bends to the present side, to the other, and for a ball joint about
    other axes. For each the root joint swivels about the line to the target, as little off the pole's side
    (or the shortest arc) as its limit allows. The first candidate that meets the target is taken, or the
    nearest.

    Args:
        skeleton: the joints. pose: the start; rotations of the whole chain outside a limit are clamped first.
        goal: the last two joints of its chain that are not locked turn; any effector. Its `max_extension`
        caps
            the stretch.
        options: None for the defaults.
        position_tolerance: of CONVERGED, in the model's unit.

    Returns:
        CONVERGED or STALLED, 1 iteration, and the error of the returned pose.

    Raises:
        InvalidInput: the chain has no two joints that can turn, or one that does not inherit rotation.
    """
    options = options or TwoBoneOptions()
    chain = turning_joints(skeleton, pose, goal, "two_bone", 2)
    start = inside_limits(skeleton, pose, chain)
    transforms = forward_kinematics(skeleton, start)
    root, middle = (seen_joint(skeleton, start, transforms, i) for i in chain[-2:])
    effector = transforms[skeleton.index(goal.joint)].point(goal.effector(skeleton))
    arm = _Arm(root, middle, effector, goal.target, options.pole, options.pole_angle)
    to_target = (goal.target - root.head).length
    eased = float(softened(np.array([to_target]), np.array([arm.length]), options.soft)[0])
    distance = arm.within(min(eased, goal.max_extension * arm.length))
    # `soft`, `max_extension` and the bones' lengths may leave a miss whatever the limits.
    bent, aimed, limited = _best(arm, distance, abs(to_target - distance) + 10.0 * NOISE * arm.length)
    part = min(max(options.weight, 0.0), 1.0)
    turned = {}
    for seen, rotation in ((root, aimed), (middle, bent)):
        taken = rotation if part == 1.0 else slerp(seen.rotation, rotation, part)
        turned[seen.index] = seen.joint.allowed(taken)
    if limited and not options.accept_limited:
        turned = {}
    return single_pass_result(skeleton, start.with_rotations(turned), goal, position_tolerance)


@dataclass(frozen=True)
class _Arm:
    """Two bones in model space."""

    root: Seen
    middle: Seen
    effector: Vector
    target: Vector
    pole: Vector | None
    pole_angle: float

    @property
    def upper(self) -> Vector:
        """From the root joint to the middle one."""
        return self.middle.head - self.root.head

    @property
    def lower(self) -> Vector:
        """From the middle joint to the effector."""
        return self.effector - self.middle.head

    @property
    def length(self) -> float:
        return float(self.upper.length + self.lower.length)

    def swung(self, rotation: Quaternion) -> Vector:
        """From the root joint to the effector with a rotation of the middle joint relative to rest."""
        turn = self.middle.base @ rotation @ self.middle.frame.conjugated()
        return self.upper + turn @ self.lower

    def within(self, distance: float) -> float:
        """`distance` clamped to the range between folded and stretched bones."""
        folded = abs(self.upper.length - self.lower.length)
        return float(min(max(distance, folded), self.length))

    def miss(self, bent: Quaternion, aimed: Quaternion) -> float:
        """The effector's distance from the target for rotations of middle and root joint."""
        turn = self.root.base @ aimed @ self.root.frame.conjugated()
        return float((turn @ self.swung(bent) - (self.target - self.root.head)).length)


def eased_target(skeleton: Skeleton, pose: Pose, goal: PositionGoal, soft: float) -> Vector:
    """The target for which `two_bone` with this softness leaves the effector in place.

    A straight chain belongs to an infinite distance: its target is at the distance where the rest is noise.

    Args:
        skeleton: the joints.
        pose: of the whole skeleton.
        goal: its chain and effector are used.
        soft: see `TwoBoneOptions`.

    Raises:
        InvalidInput: as `two_bone`.
    """
    chain = turning_joints(skeleton, pose, goal, "two_bone", 2)
    transforms = forward_kinematics(skeleton, pose)
    root, middle = (transforms[i].translation for i in chain[-2:])
    effector = transforms[skeleton.index(goal.joint)].point(goal.effector(skeleton))
    length = (middle - root).length + (effector - middle).length
    eased, line = soft * length, effector - root
    beyond = line.length - (length - eased)
    if eased <= 0.0 or beyond <= 0.0:
        return effector
    distance = length - eased - eased * math.log(max(1.0 - beyond / eased, NOISE))
    return root + line * (distance / line.length)


def _best(arm: _Arm, distance: float, good: float) -> tuple[Quaternion, Quaternion, bool]:
    """Rotations relative to rest of middle and root joint, and whether limits keep them off target.

    The first bend that misses the target by no more than `good`, or the bend with the least miss.
    """
    best, least = (arm.middle.rotation, arm.root.rotation), math.inf
    for bent in _bends(arm, distance):
        aimed = _aimed(arm, bent)
        miss = arm.miss(bent, aimed)
        if miss <= good:
            return bent, aimed, False
        if miss < least:
            best, least = (bent, aimed), miss
    return *best, True


def _bends(arm: _Arm, distance: float) -> Iterator[Quaternion]:
    """Candidate rotations of the middle joint for a distance, inside its limit, the preferred ones first."""
    limit = arm.middle.joint.limit
    u, v = arm.upper, arm.lower
    if min(u.length, v.length) <= NOISE * arm.length:
        yield arm.middle.rotation  # a bone without length: no bend changes the distance
        return
    product = 0.5 * (distance * distance - u.length_squared - v.length_squared)
    for axis in _bend_axes(arm):
        along = u.dot(axis) * v.dot(axis)
        across = (u - axis * u.dot(axis)).length * (v - axis * v.dot(axis)).length
        if across <= NOISE * u.length * v.length:
            yield arm.middle.rotation  # a bone along the axis: turning does not bend
            continue
        present = math.atan2(axis.dot(cross(u, v)), u.dot(v) - along)
        wanted = math.acos(min(max((product - along) / across, -1.0), 1.0))
        for bend in (math.copysign(wanted, present), -math.copysign(wanted, present)):
            if isinstance(limit, Hinge):
                angle = hinge_turn(limit, arm.middle.rotation)
                turn = nearest_turn(angle + bend - present, limit.lower, limit.upper)
                yield Quaternion(limit.axis, turn)
            else:
                yield arm.middle.joint.allowed(
                    arm.middle.local(Quaternion(axis, bend - present) @ arm.middle.frame)
                )


def _bend_axes(arm: _Arm) -> Iterator[Vector]:
    """Unit axes in model space about which the middle joint may bend, the preferred one first."""
    limit = arm.middle.joint.limit
    if isinstance(limit, Hinge):
        yield arm.middle.base @ Vector(limit.axis)
        return
    u, v = arm.upper, arm.lower
    normal = cross(u, v)
    if normal.length > NOISE * u.length * v.length:
        yield normal.normalized()
        if limit is None:
            return
    elif arm.pole is not None:
        # Straight or folded: M goes to the pole's side of the line when the bend's normal is pole x line.
        side = cross(arm.pole - arm.root.head, u)
        if side.length > NOISE * (arm.pole - arm.root.head).length * u.length:
            yield Quaternion(u, arm.pole_angle) @ side.normalized()
    for local in (Vector((1.0, 0.0, 0.0)), Vector((0.0, 0.0, 1.0))):
        axis = arm.middle.frame @ local
        across = axis - u * (axis.dot(u) / u.length_squared)
        if across.length > 0.5:
            yield across.normalized()
    yield perpendicular(u)


def _aimed(arm: _Arm, bent: Quaternion) -> Quaternion:
    """The root joint's rotation relative to rest that aims the effector, and turns the bend to the pole."""
    root, limit = arm.root, arm.root.joint.limit
    a, b = arm.swung(bent), arm.target - arm.root.head
    if min(a.length, b.length) <= NOISE * arm.length:
        return root.rotation  # the target, or the effector, is at the root joint's head: nothing to aim
    if isinstance(limit, Hinge):
        turn = best_hinge_turn(root.base @ Vector(limit.axis), [(a, b, 1.0)])
        return Quaternion(
            limit.axis, nearest_turn(hinge_turn(limit, root.rotation) + turn, limit.lower, limit.upper)
        )
    normal = _normal(arm, bent)
    arc = shortest_arc(a, b, normal)
    line = b.normalized()
    twist = 0.0 if arm.pole is None else _twist_to_pole(arm, line, arc @ arm.upper, arc @ normal)

    def turned(angle: float) -> Quaternion:
        return root.local(Quaternion(line, angle) @ arc @ root.frame)

    if limit is None or contains(limit, turned(twist)):
        return turned(twist)
    swivel = _swivel(lambda angle: violation(limit, turned(twist + angle)))
    if swivel is not None:
        return turned(twist + swivel)
    # No turn about the line is inside the limit: the nearest rotations that are miss the target.
    candidates = (clamp(limit, turned(twist)), clamp(limit, turned(0.0)))
    return min(candidates, key=lambda rotation: arm.miss(bent, rotation))


def _swivel(off: Callable[[float], float]) -> float | None:
    """The smallest turn, radians, to either side, at which `off` is 0; None if it is above 0 all around.

    Samples in steps of SWIVEL. Where no sample is 0, it searches a narrower gap beside the smallest one.
    """
    turns = [side * step * SWIVEL for step in range(1, SWIVEL_STEPS + 1) for side in (-1.0, 1.0)]
    least, nearest = math.inf, 0.0
    for turn in turns:
        amount = off(turn)
        if amount == 0.0:
            return _border(off, turn, turn - math.copysign(SWIVEL, turn))
        if amount < least:
            least, nearest = amount, turn
    lower, upper = nearest - SWIVEL, nearest + SWIVEL
    for _ in range(HALVINGS):
        third = (upper - lower) / 3.0
        first, second = off(lower + third), off(upper - third)
        if min(first, second) == 0.0:
            return lower + third if first == 0.0 else upper - third
        if first < second:
            upper -= third
        else:
            lower += third
    return None


def _border(off: Callable[[float], float], inside: float, outside: float) -> float:
    """The border between two turns, on the inside, at which `off` becomes 0 (bisection)."""
    for _ in range(HALVINGS):
        half = 0.5 * (inside + outside)
        if off(half) == 0.0:
            inside = half
        else:
            outside = half
    return inside


def _normal(arm: _Arm, bent: Quaternion) -> Vector:
    """The unit normal of the bend after the middle joint has turned; of a straight chain's next bend."""
    u, there = arm.upper, arm.swung(bent)
    normal = cross(u, there)
    if normal.length > NOISE * arm.length * arm.length:
        return normal.normalized()
    if u.length > NOISE * arm.length:
        # A bent chain that becomes straight keeps its plane and side.
        limit = arm.middle.joint.limit
        side = 1.0
        if isinstance(limit, Hinge):
            axis = arm.middle.base @ Vector(limit.axis)
            bend = axis.dot(cross(u, arm.lower))
            room = 0.5 * (limit.lower + limit.upper) - hinge_turn(limit, bent)
            side = bend if abs(bend) > NOISE * arm.length * arm.length else room
        for axis in _bend_axes(arm):
            across = axis - u * (axis.dot(u) / u.length_squared)
            if across.length > NOISE:
                return across.normalized() * math.copysign(1.0, side)
    return perpendicular(there)


def _twist_to_pole(arm: _Arm, line: Vector, upper: Vector, normal: Vector) -> float:
    """The turn, radians, about the unit `line` to the target that brings the bend to the pole.

    It is 0 where the pole gives no side.
    """
    assert arm.pole is not None
    towards = arm.pole - arm.root.head
    side = towards - line * towards.dot(line)
    if side.length <= 10.0 * NOISE * towards.length:
        return 0.0  # the pole is on the line to the target (or at the root joint's head)
    bend = upper - line * upper.dot(line)
    if bend.length <= 10.0 * NOISE * upper.length:
        bend = cross(line, normal)  # straight: the side to which it would bend
    return math.remainder(math.atan2(line.dot(cross(bend, side)), bend.dot(side)) + arm.pole_angle, math.tau)
