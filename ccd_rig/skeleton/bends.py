"""Bends of chains, for pole goals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from mathutils import Vector

from ..kernel import POLE_NOISE, measure_bend
from ..limits.shapes import as_hinge
from ..maths.alignment import FULL_TURN
from .joints import Joint, Skeleton
from .kinematics import forward_kinematics
from .pose import Pose

REST_BEND = 1e-3
"""Least mean offset of the heads at rest, in parts of the chain's length, that is a bend."""
SQUARE_ON = 0.1
"""Least sine between a hinge's axis and the bones below it; below, the hinge twists rather than bends."""


class BendAxis(NamedTuple):
    """The axis about which a chain bends where its pose is straight; the bend is then line x axis.

    Attributes:
        joint: index of the joint that carries the axis.
        axis: unit, in the frame of that joint; 0 where neither a hinge nor the rest pose tells a side.
        scale: unit of bends: (heads between root and end) x (length of the chain at rest).
    """

    joint: int
    axis: Vector
    scale: float


def chain_bend(heads: Sequence[Vector], end: Vector, axis: Vector, scale: float) -> Vector:
    """The bend of a chain across its line, the model's unit; 0 where there is no line.

    Args:
        heads: of the chain's joints, root first, model space.
        end: of the chain.
        axis: `BendAxis.axis` in model space.
        scale: `BendAxis.scale`.

    See `kernel/goals.chain_bend`.
    """
    bend = np.empty(3)
    points = np.array([*(head[:] for head in heads), end[:]], np.float64).reshape(-1)
    measure_bend(points, np.array(axis[:], np.float64), scale, bend)
    return Vector(bend.tolist())


def bend_axis_of(skeleton: Skeleton, chain: Sequence[int], effector: Vector) -> BendAxis:
    """The axis about which a chain bends where it is nearly straight; see `PoleGoal.bend_axis`.

    Args:
        skeleton: its hinges and rest pose tell the axis.
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
        bend = _hinge_bend(skeleton.joints[i], to_joint @ (head - root), to_joint @ (end - head))
        if bend is not None and bend[1] > largest:
            axis, largest = bend
            if skeleton.joints[i].inherit_rotation:
                # A hinge does not turn its own axis, so its parent carries it.
                best = best._replace(
                    joint=skeleton.joints[i].parent,
                    axis=(skeleton.joints[i].rest_rotation @ axis).freeze(),
                )
            else:
                best = best._replace(joint=i, axis=axis.freeze())
    line = end - root
    if largest > 0.0 or line.length <= POLE_NOISE * best.scale:
        return best
    line = line.normalized()
    across = sum((head - root for head in heads[1:]), Vector())
    across -= line * across.dot(line)
    if across.length <= REST_BEND * best.scale:
        return best
    axis = rest[chain[0]].rotation.conjugated() @ _cross(across, line).normalized()
    return best._replace(axis=axis.freeze())


def _hinge_bend(joint: Joint, before: Vector, after: Vector) -> tuple[Vector, float] | None:
    """The axis of a hinge, signed so that it bends to the positive side, and the size of the bend.

    None where the hinge bends to no side in particular.

    Args:
        joint: the joint that bends.
        before: from the root's head to the joint, at rest, in the joint's frame.
        after: from the joint to the chain's end, at rest, in the joint's frame.
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
