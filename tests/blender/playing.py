"""What Blender plays: bones of a rig at frames, and how far poses are turned from each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import bpy
import numpy as np
from mathutils import Matrix, Quaternion


def shown(thing: bpy.types.Object, frame: int | None = None) -> bpy.types.Object:
    """The evaluated object, at a frame if one is given."""
    if frame is None:
        bpy.context.view_layer.update()
    else:
        bpy.context.scene.frame_set(frame)
    return thing.evaluated_get(bpy.context.evaluated_depsgraph_get())


def play(
    rig: bpy.types.Object, frames: Iterable[int]
) -> Iterator[tuple[int, bpy.types.Object, bpy.types.Depsgraph]]:
    """Frames, with the evaluated armature object and the scene's depsgraph at each."""
    for frame in frames:
        yield frame, shown(rig, frame), bpy.context.evaluated_depsgraph_get()


def in_world(rig: bpy.types.Object, frame: int | None = None) -> dict[str, Matrix]:
    """The matrices of all bones in the world, by name."""
    seen = shown(rig, frame)
    return {bone.name: seen.matrix_world @ bone.matrix for bone in seen.pose.bones}


def target_in_world(row: bpy.types.PropertyGroup) -> Matrix:
    """The matrix of a constraint's target in the world."""
    return row.target.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world


def rotations(rig: bpy.types.Object, frames: Iterable[int]) -> np.ndarray:
    """(F, B, 4) rotations of all bones relative to rest."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append([bone.matrix_basis.to_quaternion()[:] for bone in rig.pose.bones])
    return np.array(found)


def angles(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Radians between rotations (..., 4), exact where they are near, unlike the arc cosine of a product."""
    apart = np.minimum(np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1))
    return 4.0 * np.arcsin(np.clip(0.5 * apart, 0.0, 1.0))


def angle(one: Matrix | Quaternion, other: Matrix | Quaternion) -> float:
    """Radians between two rotations, or those of two matrices."""
    one, other = (each.to_quaternion() if isinstance(each, Matrix) else each for each in (one, other))
    return float(angles(np.array(one.normalized()), np.array(other.normalized())))


def largest_turn(poses: Iterable[Mapping[str, Matrix]], names: Iterable[str] | None = None) -> float:
    """Degrees of the largest turn of a bone from one pose to the next, of these bones or all."""
    poses = list(poses)
    turns = [
        [pose[name].to_quaternion().normalized()[:] for name in (poses[0] if names is None else names)]
        for pose in poses
    ]
    return math.degrees(angles(np.array(turns[1:]), np.array(turns[:-1])).max())


def bends(rig: bpy.types.Object, upper: str, lower: str, frames: range) -> list[float]:
    """Radians by which a limb is bent at frames, to the side of its rest."""
    turns = [rig.data.bones[name].matrix_local.to_3x3() for name in (upper, lower)]
    axis = turns[0].inverted() @ turns[0].col[1].cross(turns[1].col[1]).normalized()
    angles = []
    for frame in frames:
        pose = in_world(rig, frame)
        above, below = (pose[name].to_3x3().normalized() for name in (upper, lower))
        across = above @ axis
        along = [way - across * across.dot(way) for way in (above.col[1], below.col[1])]
        angles.append(math.atan2(across.dot(along[0].cross(along[1])), along[0].dot(along[1])))
    return angles
