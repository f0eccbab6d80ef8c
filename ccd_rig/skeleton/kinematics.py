"""Forward kinematics: where the joints of a pose are in model space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mathutils import Quaternion, Vector

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
