"""Forward kinematics of one pose (mathutils) and of many (arrays), and bends of chains for pole goals.

Of joint i with parent p (R model rotation, t position of the head):

    t_i = t_p + R_p (offset_i + rest_i (translation_i + coupled_i))        R_i = R_p rest_i rotation_i

With `inherit_rotation` off `R_i = rest_i rotation_i`, rest in model space. A root: `t = offset + rest
(translation + coupled)`, `R = rest rotation`. Coupled offsets are functions of the rotations
(`skeleton/joints`). The formula stands once, in `kernel/kinematics`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from mathutils import Quaternion, Vector

from ..kernel import POLE_NOISE, measure_bend, place_joints
from ..limits.shapes import as_hinge
from ..maths.batch import Array, directions, dot, length, unit_rows
from ..maths.rotations import FULL_TURN
from .joints import Joint, Skeleton
from .pose import Pose, check_pose


class Transform(NamedTuple):
    """A joint in model space: `translation` of its head and `rotation` of its frame."""

    translation: Vector
    rotation: Quaternion

    def point(self, local: Vector) -> Vector:
        """The model-space position of a point of the joint's frame."""
        return self.translation + self.rotation @ local


def forward_kinematics(skeleton: Skeleton, pose: Pose) -> tuple[Transform, ...]:
    """Place each joint of one pose in model space, in the order of the skeleton.

    Raises:
        InvalidInput: if the pose was made for a skeleton with another number of joints.
    """
    heads, frames = placed_joints(skeleton, pose)
    places = zip(heads[0].tolist(), frames[0].tolist(), strict=True)
    return tuple([Transform(Vector(t), Quaternion(q)) for t, q in places])


def placed_joints(skeleton: Skeleton, pose: Pose) -> tuple[Array, Array]:
    """Place each joint of one pose: (1, J, 3) heads and (1, J, 4) rotations, model space.

    Both are rounded to single precision: they equal `forward_kinematics` to the bit.
    """
    check_pose(skeleton, pose)
    rotations, translations = pose.arrays
    if skeleton.couplings:
        shifted = coupled_translations(skeleton, pose.rotations, pose.translations)
        translations = np.array([[t[:] for t in shifted]], np.float64)

    def bones() -> tuple[Array, Array]:
        offsets = np.array([[joint.offset[:] for joint in skeleton.joints]], np.float64)
        rests = unit_rows([joint.rest_rotation[:] for joint in skeleton.joints])
        return offsets.reshape(1, -1), rests.reshape(1, -1)

    offsets, rests = skeleton.computed_once("bones at rest", bones)
    joints = len(skeleton)
    placed = np.empty((1, 7 * joints))
    place_joints(
        *_parents(skeleton),
        offsets,
        rests,
        rotations.reshape(1, -1),
        translations.reshape(1, -1),
        placed[:, : 3 * joints],
        placed[:, 3 * joints :],
    )
    placed = placed.astype(np.float32).astype(np.float64)
    return placed[:, : 3 * joints].reshape(1, joints, 3), placed[:, 3 * joints :].reshape(1, joints, 4)


def _parents(skeleton: Skeleton) -> tuple[Any, Any]:
    """(J) ints: the joints' parents, and 1 for joints that inherit rotation."""
    return skeleton.original.computed_once(
        "parents",
        lambda: (
            np.array([joint.parent for joint in skeleton.joints], np.int32),
            np.array([joint.inherit_rotation for joint in skeleton.joints], np.int32),
        ),
    )


def coupled_translations(
    skeleton: Skeleton, rotations: Sequence[Quaternion], translations: Sequence[Vector]
) -> list[Vector]:
    """Translations plus the coupled offsets at these rotations."""
    shifted = list(translations)
    for coupling in skeleton.couplings:
        shifted[coupling.joint] = shifted[coupling.joint] + coupling.shift(rotations[coupling.driver])
    return shifted


def forward_kinematics_of_frames(
    skeleton: Skeleton, offsets: Array, rests: Array, rotations: Array, translations: Array
) -> tuple[Array, Array]:
    """Place each joint in model space, at F frames.

    Args:
        skeleton: tells each joint's parent, and whether it inherits rotation.
        offsets: (F, J, 3) heads in the parent's joint frame (a root's: in model space). One frame (1, J, ...)
            of offsets, rests and translations stands for all.
        rests: (F, J, 4) unit rest rotations, relative to the parent (a root's, or without inheritance: to
            the model).
        rotations: (F, J, 4) unit rotations relative to rest.
        translations: (F, J, 3) translations relative to rest, in the joint's rest axes.

    Returns:
        (F, J, 3) heads and (F, J, 4) rotations, in model space.
    """
    joints, size = len(skeleton), max(len(each) for each in (offsets, rests, rotations, translations))
    heads, frames = np.empty((size, 3 * joints)), np.empty((size, 4 * joints))
    offset, rest, rotation, translation = (
        np.ascontiguousarray(values, np.float64).reshape(len(values), -1)
        for values in (offsets, rests, rotations, translations)
    )
    place_joints(*_parents(skeleton), offset, rest, rotation, translation, heads, frames)
    return heads.reshape(size, joints, 3), frames.reshape(size, joints, 4)


# Bends of chains --------------------------------------------------------------------------------------------


REST_BEND = 1e-3
"""Least mean offset of the heads at rest, in parts of the chain's length, that is a bend."""
SQUARE_ON = 0.1
"""Least sine between a hinge's axis and the bones below it; below, the hinge twists rather than bends."""


class BendAxis(NamedTuple):
    """The axis about which a chain bends where its pose is straight; the bend is then line x axis."""

    joint: int  # index of the joint that carries the axis
    axis: Vector  # unit, in the frame of that joint; 0 where neither a hinge nor the rest pose tells a side
    scale: float  # unit of bends: (heads between root and end) x (length of the chain at rest)


def chain_bend(heads: Sequence[Vector], end: Vector, axis: Vector, scale: float) -> Vector:
    """The bend of a chain across its line, the model's unit; 0 where there is no line.

    Args:
        heads: of the chain's joints, root first, model space.
        axis: `BendAxis.axis` in model space.
        scale: `BendAxis.scale`.

    See `kernel/goals.chain_bend`.
    """
    bend = np.empty(3)
    points = np.array([*(head[:] for head in heads), end[:]], np.float64).reshape(-1)
    measure_bend(points, np.array(axis[:], np.float64), scale, bend)
    return Vector(bend.tolist())


BENT = 1e-3
"""Least bend of a chain with a side, as a part of its length."""


def bend_sides(heads: Array, end: Array, size: float) -> Array:
    """(F, 3) unit vectors from the line of a chain towards its bend; 0 where it is straight.

    Args:
        heads: (F, K, 3) of the chain's joints, root first.
        end: (F, 3) of its last joint.
        size: length of the chain.
    """
    line = directions(end - heads[:, 0])[:, None]
    inner = heads - heads[:, :1]
    inner -= dot(inner, line, -1)[..., None] * line
    mean = inner.sum(axis=1) / max(heads.shape[1] - 1, 1)  # the root's own is 0
    return np.where(length(mean, -1)[:, None] > BENT * size, directions(mean), 0.0)


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
