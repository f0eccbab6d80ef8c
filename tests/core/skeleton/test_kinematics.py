"""Forward kinematics of many frames at once against that of one pose."""

import numpy as np
from mathutils import Quaternion, Vector

from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics, forward_kinematics_of_frames
from ccd_rig.skeleton.pose import Pose

FLOAT32 = 2e-6


def random_rotations(seed, *shape):
    values = np.random.default_rng(seed).normal(size=(*shape, 4))
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def skeleton_of(offsets, rests):
    parents, inherits = (-1, 0, 1, 1, 3, -1, 5), (True, True, True, False, True, True, False)
    return Skeleton(
        Joint(f"j{i}", parent, Vector(offset), Quaternion(rest), inherit_rotation=inherit)
        for i, (parent, inherit, offset, rest) in enumerate(
            zip(parents, inherits, offsets, rests, strict=True)
        )
    )


def test_every_frame_is_as_that_pose_alone():
    random, count, joints = np.random.default_rng(11), 25, 7
    offsets, translations = random.normal(size=(2, count, joints, 3))
    rests, rotations = random_rotations(12, 2, count, joints)
    skeleton = skeleton_of(offsets[0], rests[0])
    heads, axes = forward_kinematics_of_frames(skeleton, offsets, rests, rotations, translations)
    for f in range(count):
        pose = Pose(tuple(map(Quaternion, rotations[f])), tuple(map(Vector, translations[f])))
        for i, transform in enumerate(forward_kinematics(skeleton_of(offsets[f], rests[f]), pose)):
            assert np.abs(heads[f, i] - transform.translation).max() < 20 * FLOAT32
            expected = np.array(transform.rotation)
            assert min(np.linalg.norm(axes[f, i] - expected), np.linalg.norm(axes[f, i] + expected)) < FLOAT32


def test_one_frame_is_enough_of_what_stays_the_same():
    random, count, joints = np.random.default_rng(3), 6, 7
    offsets, translations = random.normal(size=(2, 1, joints, 3))
    rests, rotations = random_rotations(4, 1, joints), random_rotations(5, count, joints)
    skeleton = skeleton_of(offsets[0], rests[0])
    once = forward_kinematics_of_frames(skeleton, offsets, rests, rotations, translations)
    each = forward_kinematics_of_frames(
        skeleton, *(np.repeat(a, count, axis=0) for a in (offsets, rests)), rotations, translations
    )
    assert all(np.array_equal(a, b) for a, b in zip(once, each, strict=True))
