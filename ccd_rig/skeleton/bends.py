"""How a chain bends, as pole goals see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from mathutils import Quaternion, Vector

from ..limits.hinges import FULL_TURN, as_hinge
from .joints import Joint, Skeleton
from .kinematics import forward_kinematics
from .pose import Pose

BEND_RANGE = 0.05
"""Mean offset of the heads between, in parts of the chain's length, from which only the actual bend counts.

At this bend, 11.5 degrees in the knee of two equal bones, the end's error of 0.1 % of the length (a usual
tolerance) is seen as a rotation of 1.1 degrees; a straight chain would see any rotation.
"""
REST_BEND = 1e-3
"""Least mean offset of the heads at rest, in parts of the chain's length, that is a bend."""
SQUARE_ON = 0.1
"""Least sine between a hinge's axis and what hangs on it; below, it twists rather than bends."""
IN_LINE = 0.2
"""Sine between a chain's line and its pole up to which the pole tells no side."""
OFF_LINE = 0.5
"""The same from which it tells one exactly."""
POLE_NOISE = 1e-5
"""Part of a chain's scale (or of a target's distance) below which its line (or side) is float32 noise."""


class BendAxis(NamedTuple):
    """The axis about which a chain bends where its pose does not tell; the bend is then line x axis.

    Attributes:
        joint: index of the joint that carries the axis.
        axis: unit, in the frame of that joint; 0 where neither a hinge nor the rest pose tells a side.
        scale: (heads between root and end) x (length of the chain at rest): what bends are measured in.
    """

    joint: int
    axis: Vector
    scale: float


class PoleBend(NamedTuple):
    """What a pole goal asks for: that `bend` points along `side`.

    Attributes:
        bend: across the chain's line, the model's unit.
        side: unit, across the line: towards the pole target, turned by the goal's angle, and from there
            to the bend as far as its play goes.
        weight: 0 to 1, how much it is asked for.
    """

    bend: Vector
    side: Vector
    weight: float

    @property
    def error(self) -> float:
        """The angle between bend and side times the weight, radians."""
        return self.weight * angle_apart(self.bend, self.side) if self.weight > 0.0 else 0.0

    def swivel(self, line: Vector) -> float:
        """The angle about `line`, radians, by which the bend has to turn to point along the side."""
        if self.weight == 0.0:
            return 0.0
        return math.copysign(angle_apart(self.bend, self.side), line.dot(_cross(self.bend, self.side)))


NO_BEND = PoleBend(Vector().freeze(), Vector().freeze(), 0.0)
"""Nothing is asked for: there is no line, no bend, or the target is on the line."""


def smooth_step(x: float) -> float:
    """3 x^2 - 2 x^3 between 0 and 1, constant outside: continuous with its slope."""
    x = min(max(x, 0.0), 1.0)
    return x * x * (3.0 - 2.0 * x)


def pole_bend(
    heads: Sequence[Vector], end: Vector, target: Vector, axis: Vector, scale: float, angle: float = 0.0
) -> PoleBend:
    """The bend of a chain, the side its pole target is on, and how much the one should point along the other.

    With l the unit line from the first head to the end, B the part across l of the sum of the heads from the
    first, t = BEND_RANGE scale, f = smooth_step:

        bend = B + (1 - f(|B| / t)) t (l x axis)        weight = f(|bend| / t)

    So a clear bend (|B| >= t) is B with weight 1, and a straight chain bends along l x axis. The weight fades
    where the two cancel, which is a bend against the axis, and where a straight chain has no axis. The bend
    may be off the pole's side by its play (`pole_play`).

    Args:
        heads: of the chain's joints, root first, model space.
        end: of the chain.
        target: the pole target.
        axis: `BendAxis.axis` in model space.
        scale: `BendAxis.scale`.
        angle: `PoleGoal.angle`, by which the side is turned about l.
    """
    bend = chain_bend(heads, end, axis, scale)
    if bend is None:
        return NO_BEND
    line = (end - heads[0]).normalized()
    side = target - heads[0]
    away = side - line * side.dot(line)
    if away.length <= POLE_NOISE * side.length:
        return NO_BEND
    play = pole_play(away.length / side.length)
    side = away.normalized()
    if angle != 0.0:
        side = Quaternion(line, angle) @ side
    turned = math.atan2(line.dot(_cross(side, bend)), side.dot(bend))
    side = Quaternion(line, min(max(turned, -play), play)) @ side
    return PoleBend(bend, side, smooth_step(bend.length / (BEND_RANGE * scale)))


def pole_play(sine: float) -> float:
    """Radians by which a bend may be off its pole, by the sine between the chain's line and the pole.

    The pole's side turns about the line as fast as the line turns beside the pole, divided by this sine: a
    pole in line would turn a chain by half a turn at once. From OFF_LINE on there is no play; up to IN_LINE
    the pole asks for nothing, and the reference and the frames beside say to which side the chain bends.

    Between them it falls evenly, which turns a chain least fast. A hand that goes by a pole in line by 2
    degrees a frame turns its arm by up to 170 degrees at once without play, by 21 with this one. The further
    out the play ends the less it is, 13 where it ends at 0.7, but poles 30 to 44 degrees off are then missed
    by up to 72: those that animators place are to be met.
    """
    return math.pi * min(max((OFF_LINE - sine) / (OFF_LINE - IN_LINE), 0.0), 1.0)


def chain_bend(heads: Sequence[Vector], end: Vector, axis: Vector, scale: float) -> Vector | None:
    """The bend of a chain across its line; see `pole_bend`. None where there is no line."""
    root = heads[0]
    line = end - root
    full = BEND_RANGE * scale
    if full <= 0.0 or line.length <= POLE_NOISE * scale:
        return None
    line = line.normalized()
    bend = Vector()
    for head in heads[1:]:
        bend += head - root
    bend -= line * bend.dot(line)
    bend += (1.0 - smooth_step(bend.length / full)) * full * _cross(line, axis)
    return bend


def bend_axis_of(skeleton: Skeleton, chain: Sequence[int], effector: Vector) -> BendAxis:
    """The axis about which a chain bends where it is nearly straight; see `PoleGoal.bend_axis`.

    Args:
        skeleton: whose hinges and rest pose tell it.
        chain: joints, root first.
        effector: the chain's end in the last joint's frame.
    """
    rest = forward_kinematics(skeleton, Pose.rest(skeleton))
    heads = [rest[i].translation for i in chain]
    points = [*heads, rest[chain[-1]].point(effector)]
    root, end, between = points[0], points[-1], len(chain) - 1
    length = math.fsum((after - before).length for before, after in pairwise(points))
    best = BendAxis(chain[0], Vector().freeze(), between * length)
    largest = 0.0
    for i, head in zip(chain[1:], heads[1:], strict=True):
        to_joint = rest[i].rotation.conjugated()
        found = _hinge_bend(skeleton.joints[i], to_joint @ (head - root), to_joint @ (end - head))
        if found is not None and found[1] > largest:
            axis, largest = found
            best = best._replace(**_carried(skeleton, i, axis))
    line = end - root
    if largest > 0.0 or line.length <= POLE_NOISE * best.scale:
        return best
    line = line.normalized()
    bend = sum((head - root for head in heads[1:]), Vector())
    bend -= line * bend.dot(line)
    if bend.length <= REST_BEND * best.scale:
        return best
    axis = rest[chain[0]].rotation.conjugated() @ _cross(bend, line).normalized()
    return best._replace(axis=axis.freeze())


def _carried(skeleton: Skeleton, hinge: int, axis: Vector) -> dict[str, Any]:
    """Joint and axis of `BendAxis`, for the axis of a hinge in its own frame.

    A hinge does not turn its own axis, so its parent carries it, unless the hinge does not inherit rotation.
    """
    joint = skeleton.joints[hinge]
    if not joint.inherit_rotation:
        return {"joint": hinge, "axis": axis.freeze()}
    return {"joint": joint.parent, "axis": (joint.rest_rotation @ axis).freeze()}


def _hinge_bend(joint: Joint, before: Vector, after: Vector) -> tuple[Vector, float] | None:
    """The axis of a hinge, turned so that it bends to the positive side, and how far; None if it has no side.

    Args:
        joint: the joint that bends.
        before: from the root's head to the joint, at rest, in the joint's frame.
        after: from the joint to the chain's end, alike.
    """
    hinge = None if joint.locked else as_hinge(joint.limit)
    if hinge is None or hinge.upper - hinge.lower >= FULL_TURN or after.length == 0.0:
        return None
    axis = Vector(hinge.axis)
    straight = math.atan2(
        axis.dot(_cross(after, before)), after.dot(before) - axis.dot(after) * axis.dot(before)
    )
    middle = 0.5 * (hinge.lower + hinge.upper) - straight
    # Bends to one side must go at least twice as far as to the other.
    if 6.0 * abs(middle) <= hinge.upper - hinge.lower:
        return None
    across = _cross(axis, after).length / after.length
    if across < SQUARE_ON:
        return None
    return math.copysign(1.0, middle) * axis, abs(middle) * across


def _cross(a: Vector, b: Vector) -> Vector:
    product: Any = a.cross(b)  # a number only for two-dimensional vectors, which these are not
    return Vector(product)


def angle_apart(a: Vector, b: Vector) -> float:
    """The angle between two vectors, radians, 0 to pi; 0 if one of them is zero."""
    return math.atan2(_cross(a, b).length, a.dot(b))
