"""Differences between what Blender evaluates and what the core works out, for the tests of rigs."""

from __future__ import annotations

import random

import bpy
import numpy as np
from mathutils import Vector
from rigs import (
    random_rotation,
    update,
)

FLOAT32 = 1e-5  # of the rig's size: Blender and the core both calculate in float32


def defect(bone):
    """How far the rest matrices of a bone and its ancestors are from rotations, summed: Blender's own error.

    It is 1e-6 for most bones and up to 1e-4 for those that point near to -Y, as in Rigify's horse.
    """
    total = 0.0
    for one in (bone, *bone.parent_recursive):
        matrix = np.array(one.matrix_local.to_3x3(), dtype=float)
        total += float(np.abs(matrix @ matrix.T - np.eye(3)).max())
    return total


def differences(ext, rig, reading, pose, signed=True):
    """What differs between Blender's evaluated bones and forward kinematics, one line per bone; empty if
    nothing does.

    With `signed` off, the X and Z axes may be mirrored: negative scale does that to a matrix, but not to a
    rotation.
    """
    transforms = ext.module("ccd_rig.skeleton.kinematics").forward_kinematics(reading.skeleton, pose)
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    size = max([1.0, *(t.translation.length for t in transforms)])
    found = []
    tolerances = {name: FLOAT32 + defect(rig.data.bones[name]) for name in reading.bones}
    for name, joint, transform in zip(reading.bones, reading.skeleton.joints, transforms, strict=True):
        bone = seen[name]
        tail = transform.point(Vector((0.0, joint.length, 0.0)))
        if (bone.head - transform.translation).length > tolerances[name] * size:
            found.append(f"{name}: head {bone.head} instead of {transform.translation}")
        if (bone.tail - tail).length > tolerances[name] * size:
            found.append(f"{name}: tail {bone.tail} instead of {tail}")
        axes = transform.rotation.to_matrix()
        for axis, letter in enumerate("XYZ"):
            column = bone.matrix.col[axis].to_3d().normalized()
            same = (column - axes.col[axis]).length
            if not signed and letter != "Y":
                same = min(same, (column + axes.col[axis]).length)
            if same > tolerances[name]:
                found.append(f"{name}: {letter} axis {column} instead of {axes.col[axis]}")
    return found


def turned(reading, seed):
    """The pose with every rotation that is not locked drawn anew."""
    rng = random.Random(seed)
    free = [i for i, joint in enumerate(reading.skeleton.joints) if joint.stiffness < 1.0]
    return reading.pose.with_rotations({i: random_rotation(rng) for i in free})


def round_trip(ext, bones, rig, chains, settings=None, seed=0, signed=True):
    """Read, compare, turn, write, compare; the last reading must give back what was written."""
    settings = settings or {}
    reading = bones.read(rig, chains, settings)
    found = differences(ext, rig, reading, reading.pose, signed)
    pose = turned(reading, seed)
    bones.apply(rig, reading, pose)
    update()
    found += differences(ext, rig, reading, pose, signed)
    again = bones.read(rig, chains, settings)
    for name, wanted, got in zip(reading.bones, pose.rotations, again.pose.rotations, strict=True):
        if min((wanted - got).magnitude, (wanted + got).magnitude) > FLOAT32:
            found.append(f"{name}: rotation {got} instead of {wanted}")
    return found
