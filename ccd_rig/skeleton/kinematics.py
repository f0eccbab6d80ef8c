"""Forward kinematics: where joints are in model space, of one pose (mathutils) and of many (arrays).

Of joint i with parent p (R model rotation, t position of the head):

    t_i = t_p + R_p (offset_i + rest_i (translation_i + coupled_i))        R_i = R_p rest_i rotation_i

With `inherit_rotation` off `R_i = rest_i rotation_i`, rest in model space. A root: `t = offset + rest
(translation + coupled)`, `R = rest rotation`. Coupled offsets are functions of the rotations
(`skeleton/coupled_offset`). The kernel has its own for the pose that it changes by steps: `kernel/skeleton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from mathutils import Quaternion, Vector

from ..maths import batch
from ..maths.batch import Array
from .joints import Skeleton
from .pose import Pose, check_pose


class Transform(NamedTuple):
    """Where a joint is: `translation` of its head and `rotation` of its frame, in model space."""

    translation: Vector
    rotation: Quaternion

    def point(self, local: Vector) -> Vector:
        """A point given in the joint's frame, in model space."""
        return self.translation + self.rotation @ local


def forward_kinematics(skeleton: Skeleton, pose: Pose) -> tuple[Transform, ...]:
    """Where each joint is in model space, in the order of the skeleton.

    Raises:
        InvalidInput: if the pose was made for a skeleton with another number of joints.
    """
    check_pose(skeleton, pose)
    return _transforms(skeleton, pose.rotations, pose.translations)


def _transforms(
    skeleton: Skeleton, rotations: Sequence[Quaternion], translations: Sequence[Vector]
) -> tuple[Transform, ...]:
    if skeleton.couplings:
        translations = coupled_translations(skeleton, rotations, translations)
    found: list[Transform] = []
    for joint, rotation, translation in zip(skeleton.joints, rotations, translations, strict=True):
        local = joint.offset + joint.rest_rotation @ translation
        if joint.parent == -1:
            found.append(Transform(local, (joint.rest_rotation @ rotation).normalized()))
            continue
        parent = found[joint.parent]
        head = parent.translation + parent.rotation @ local
        base = parent.rotation @ joint.rest_rotation if joint.inherit_rotation else joint.rest_rotation
        # Normalised at every joint: float32 products drift in long chains.
        found.append(Transform(head, (base @ rotation).normalized()))
    return tuple(found)


def coupled_translations(
    skeleton: Skeleton, rotations: Sequence[Quaternion], translations: Sequence[Vector]
) -> list[Vector]:
    """The translations with the coupled offsets at these rotations on top."""
    found = list(translations)
    for coupling in skeleton.couplings:
        found[coupling.joint] = found[coupling.joint] + coupling.shift(rotations[coupling.driver])
    return found


def forward_kinematics_of_frames(
    skeleton: Skeleton, offsets: Array, rests: Array, rotations: Array, translations: Array
) -> tuple[Array, Array]:
    """Where each joint is in model space, at F frames at once.

    Args:
        skeleton: says which joint hangs on which, and which take over their parent's rotation.
        offsets: (F, J, 3) heads in the parent's joint frame (a root's: in model space). Of these, of rests
            and of translations one frame (1, J, ...) is enough where nothing changes.
        rests: (F, J, 4) unit rest rotations, relative to the parent (a root's, or without inheritance: to
            the model).
        rotations: (F, J, 4) unit rotations relative to rest.
        translations: (F, J, 3) translations relative to rest, in the joint's rest axes.

    Returns:
        (F, J, 3) heads and (F, J, 4) rotations, in model space.
    """
    # From here on (components, J, F): what is reckoned together lies together.
    given = (rests, rotations, offsets, translations)
    rest, rotation, offset, translation = (values.transpose(2, 1, 0).copy() for values in given)
    turned = batch.multiply(rest, rotation)
    shifts = offset + batch.rotate(rest, translation)
    below = [i for i, joint in enumerate(skeleton.joints) if joint.parent >= 0]
    above = [skeleton.joints[i].parent for i in below]
    for i, parent in zip(below, above, strict=True):
        if skeleton.joints[i].inherit_rotation:
            turned[:, i] = batch.multiply(turned[:, parent], turned[:, i])
    heads = np.empty((3, *turned.shape[1:]))
    heads[:] = shifts
    heads[:, below] = batch.rotate(turned[:, above], shifts[:, below])
    for i, parent in zip(below, above, strict=True):
        heads[:, i] += heads[:, parent]
    return heads.transpose(2, 1, 0), turned.transpose(2, 1, 0)
