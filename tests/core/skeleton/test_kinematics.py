"""Forward kinematics, of one pose and of many frames, against products of matrices."""

import numpy as np
import pytest
from chains import straight
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.errors import InvalidInput
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


def placed(skeleton, rotations, translations):
    """Heads and rotations of joints by 4x4 matrices."""
    found = []
    for joint, rotation, shift in zip(skeleton.joints, rotations, translations, strict=True):
        rest = joint.rest_rotation.to_matrix().to_4x4()
        turned = rest @ Quaternion(rotation).to_matrix().to_4x4()
        head = Matrix.Translation(joint.offset) @ rest @ Matrix.Translation(Vector(shift))
        above = found[joint.parent] if joint.parent >= 0 else Matrix.Identity(4)
        place = (above @ head).to_translation()
        axes = (above.to_3x3() if joint.inherit_rotation else Matrix.Identity(3)) @ turned.to_3x3()
        found.append(Matrix.Translation(place) @ axes.to_4x4())
    return found


def test_joints_are_where_matrices_put_them():
    random, count, joints = np.random.default_rng(11), 25, 7
    offsets, translations = random.normal(size=(2, count, joints, 3))
    rests, rotations = random_rotations(12, 2, count, joints)
    skeleton = skeleton_of(offsets[0], rests[0])
    heads, axes = forward_kinematics_of_frames(skeleton, offsets, rests, rotations, translations)
    for f in range(count):
        present = skeleton_of(offsets[f], rests[f])
        pose = Pose(tuple(map(Quaternion, rotations[f])), tuple(map(Vector, translations[f])))
        matrices = placed(present, rotations[f], translations[f])
        for i, (transform, matrix) in enumerate(
            zip(forward_kinematics(present, pose), matrices, strict=True)
        ):
            expected = np.array(matrix.to_quaternion())
            for head, rotation in ((heads[f, i], axes[f, i]), (transform.translation, transform.rotation)):
                assert np.abs(np.array(head) - matrix.to_translation()).max() < 20 * FLOAT32
                seen = np.array(rotation)
                assert min(np.linalg.norm(seen - expected), np.linalg.norm(seen + expected)) < 3 * FLOAT32


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


def test_what_is_no_skeleton_is_refused():
    with pytest.raises(InvalidInput, match="the skeleton must be a Skeleton, not None"):
        forward_kinematics(None, Pose.rest(straight(2)))
