# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes as bones are planted and let go: where they are held, and how joints go on afterwards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from mathutils import Quaternion

from ...maths.batch import Array, inverse
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform, forward_kinematics
from ...skeleton.pose import Pose
from ..scene.evaluation import FrameSample
from .contact_poses import RETURN, JointPoses, blended
from .planting import ContactState, PlantAnchor, homogeneous

SHARPER = 0.1
"""Part of the tolerances to which a planted figure is solved: of planted bones beside the base what is left
of it slides, and where one more is planted all others would make up for it."""


def anchor_of(tip: str, skeleton: Skeleton, pose: Pose, world: Array) -> PlantAnchor:
    """Where a bone is in a pose, given with (4, 4) from armature space to the world at that time."""
    return PlantAnchor.of(forward_kinematics(skeleton, pose)[skeleton.index(tip)], world)


def target_anchor(c: int, sample: FrameSample, world: Array) -> PlantAnchor | None:
    """Where the target of a planted bone is; None if it has none."""
    target = sample.targets[c]
    if target.rotation is None:
        return None
    return PlantAnchor.of(Transform(target.point, target.rotation), world)


def let_go(before: ContactState, moved: frozenset[int], root_bone: int) -> dict[int, Quaternion]:
    """Joints that nothing moves any more, with what they are turned by beside their animation."""
    return {
        j: (before.pose.rotations[j] @ before.animated.rotations[j].conjugated()).normalized()
        for j in before.moved - moved - {root_bone}
    }


def lifted(skeleton: Skeleton, before: ContactState, root_bone: int) -> Array:
    """(4, 4) in the world: what the root bone is moved by beside its animation once nothing is planted."""
    if before.base < 0:
        return before.drift
    solved, animated = (
        before.world @ homogeneous(forward_kinematics(skeleton, pose)[root_bone])
        for pose in (before.pose, before.animated)
    )
    return solved @ inverse(animated)


def released_joints(
    before: ContactState, moved: frozenset[int], root_bone: int, frame: float
) -> dict[int, tuple[float, Quaternion]]:
    """Joints that nothing moves any more and that are not back yet; see `ContactState.released`."""
    released = {j: at for j, at in before.released.items() if j not in moved and frame - at[0] < RETURN}
    return released | {j: (before.frame, turn) for j, turn in let_go(before, moved, root_bone).items()}


def turned_between(skeleton: Skeleton, base: Pose, solved: Pose, influences: Mapping[int, float]) -> Pose:
    """The base pose with joints turned as far to the solved one as their influence says."""
    poses, weights = JointPoses.of([base]), np.zeros((1, len(skeleton.joints)))
    for j, influence in influences.items():
        weights[0, j] = influence
    limits = [joint.limit for joint in skeleton.joints]
    rotations = blended(poses.rotations, JointPoses.of([solved]).rotations, weights, limits)
    return JointPoses(rotations, poses.translations).pose(0)
