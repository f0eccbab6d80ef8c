# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a bone's limit stands in the viewport, and the rotation that the bone shows in it."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Quaternion

from ...errors import InvalidInput
from ...limits.shapes import Limit
from ..properties.joints import limit_value

SIZE = 0.75
"""Radius of a limit's drawing, as a part of the bone's length."""


class BoneAxes(NamedTuple):
    """The frame of a bone's limit.

    Attributes:
        matrix: from the joint's frame at rest, in parts of the drawing's size, to world space.
        rotation: that the bone shows relative to rest, constraints included.
    """

    matrix: Matrix
    rotation: Quaternion


def bone_axes(pose_bone: bpy.types.PoseBone) -> BoneAxes:
    """The frame of a bone's limit as Blender has evaluated the bone and its parent."""
    axes = _rest_matrix(pose_bone).to_quaternion()
    head: Any = Matrix.LocRotScale(pose_bone.head, axes, None)
    size = Matrix.Scale(SIZE * pose_bone.length, 4)
    rotation = axes.conjugated() @ pose_bone.matrix.to_quaternion()
    return BoneAxes(pose_bone.id_data.matrix_world @ head @ size, rotation)


def drawable_limit(pose_bone: bpy.types.PoseBone, group: Any) -> Limit | None:
    """A limit of a bone, from how it is stored.

    None for a free bone, where the bounds contradict themselves, and of a bone that is nowhere.
    """
    if not isfinite(sum(map(sum, pose_bone.matrix))):  # one number that is not makes the sum so
        return None
    try:
        return limit_value(group)
    except InvalidInput:  # the checks before a solve say it in words
        return None


def _rest_matrix(pose_bone: bpy.types.PoseBone) -> Matrix:
    """The pose matrix that the bone would have with empty channels, in armature space."""
    bone, parent = pose_bone.bone, pose_bone.parent
    if parent is None:
        return bone.convert_local_to_pose(Matrix.Identity(4), bone.matrix_local)
    return bone.convert_local_to_pose(
        Matrix.Identity(4),
        bone.matrix_local,
        parent_matrix=parent.matrix,
        parent_matrix_local=parent.bone.matrix_local,
    )
