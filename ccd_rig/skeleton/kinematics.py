"""Forward kinematics of one pose (mathutils) and of many (arrays).

Of joint i with parent p (R model rotation, t position of the head):

    t_i = t_p + R_p (offset_i + rest_i (translation_i + coupled_i))        R_i = R_p rest_i rotation_i

With `inherit_rotation` off `R_i = rest_i rotation_i`, rest in model space. A root: `t = offset + rest
(translation + coupled)`, `R = rest rotation`. Coupled offsets are functions of the rotations
(`skeleton/coupled_offset`). The formula stands once, in `kernel/skeleton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mathutils import Quaternion, Vector

from ..kernel import place_joints
from ..maths.batch import Array
from .joints import Skeleton
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
        rests = np.array([[joint.rest_rotation[:] for joint in skeleton.joints]], np.float64)
        return offsets.reshape(1, -1), rests.reshape(1, -1)

    offsets, rests = skeleton.computed_once("bones at rest", bones)
    joints = len(skeleton)
    heads, frames = np.empty((1, 3 * joints)), np.empty((1, 4 * joints))
    place_joints(
        *_parents(skeleton),
        offsets,
        rests,
        rotations.reshape(1, -1),
        translations.reshape(1, -1),
        heads,
        frames,
    )
    return (
        heads.astype(np.float32).astype(np.float64).reshape(1, joints, 3),
        frames.astype(np.float32).astype(np.float64).reshape(1, joints, 4),
    )


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
