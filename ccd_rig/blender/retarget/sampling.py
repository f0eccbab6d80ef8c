# SPDX-License-Identifier: GPL-3.0-or-later
"""An armature's motion as arrays of the world, and an armature as the figure that gets it."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...errors import RigError
from ...maths import batch
from ...maths.batch import Array
from ...motion.retargeting.figure_map import MOST_LEGS, FigureMap
from ...motion.retargeting.motions import SourceMotion, TargetFigure, inverse, product
from ...skeleton.joints import Skeleton
from ..checks.setup import uneven_scale
from ..properties.joints import joint_settings
from ..rig import armature
from ..rig.armature import RigReading
from ..scene.isolation import isolated_scene, set_frame

NEAR_GROUND = 0.1
"""Part of a figure's height up to which its lowest bone may be off its origin for that to be its ground."""


class Reference(enum.Enum):
    """The pose of the source that is brought in line with the target's rest pose."""

    REST = "REST"
    FRAME = "FRAME"


class RestIsNoPose(RigError):
    """The rest of a source cannot be its reference: a frame can.

    Attributes:
        source: name of the armature.
        foot: of a bone that is above the hips at rest.
    """

    def __init__(self, source: str, foot: str) -> None:
        super().__init__(
            f"the rest pose of '{source}' is no pose of a body: '{foot}' is above the hips. Choose "
            "Reference: Frame, and a frame in which arms and legs are about straight"
        )
        self.source, self.foot = source, foot


@dataclass(frozen=True)
class SourceChoice:
    """What of an armature is carried over.

    Attributes:
        frames: of the scene, which may be fractional; one for each frame that is keyed.
        seconds: from one of them to the next, as they are played on the target.
        reference: which pose is the source's own.
        reference_frame: for `FRAME`.
    """

    frames: Sequence[float]
    seconds: float
    reference: Reference = Reference.REST
    reference_frame: float = 1.0


def source_motion(
    scene: bpy.types.Scene, source: bpy.types.Object, figure_map: FigureMap, choice: SourceChoice
) -> SourceMotion:
    """The mapped bones of an armature, as they play; the scene stays as it is.

    Points are seen from where the armature object is at the first frame, in the axes of the world.

    Raises:
        RestIsNoPose: its rest is no pose of a body.
        RigError: the armature is shown in rest position, mirrored or sheared; a bone is nowhere.
    """
    if source.data.pose_position == "REST":
        raise RigError(f"armature '{source.name}' is shown in Rest Position: switch it to Pose Position")
    names = tuple(dict.fromkeys(figure_map.sources.values()))
    require_even(source.matrix_world, source.name)
    with _played(scene, source, names) as at:
        played = np.array([at(frame) for frame in choice.frames])
        world, matrices = played[0, 0], played[:, 1:]
        if choice.reference is Reference.FRAME:
            reference = at(choice.reference_frame)[1:]
        else:
            reference = world @ _rest(source, names)
    _require_finite(matrices, names, choice.frames)
    _require_finite(reference[None], names, [choice.reference_frame])
    heads, rotations = split(np.concatenate((reference[None], matrices)))
    heads -= world[:3, 3]
    own = {ours: heads[0, names.index(theirs)] for ours, theirs in figure_map.sources.items()}
    feet, hips, top = figure_map.middles(own)
    up = upward(feet, hips, top)
    # Legs must lead down at rest, else the rest is no pose: such are the rests of many BVH files.
    lead_down = 0 < len(figure_map.legs) <= MOST_LEGS
    if lead_down and choice.reference is Reference.REST and float((feet - hips) @ np.array(up)) >= 0.0:
        raise RestIsNoPose(source.name, figure_map.sources[figure_map.legs[0].end])
    turn = np.array(up.rotation_difference(Vector((0.0, 0.0, 1.0)))[:])
    heads = batch.rotate(np.broadcast_to(turn, (*heads.shape[:-1], 4)), heads, -1)
    rotations = batch.multiply(np.broadcast_to(turn, rotations.shape), rotations, -1)
    times = np.arange(len(choice.frames)) * choice.seconds
    stands = choice.reference is Reference.REST
    return SourceMotion(names, times, heads[1:], rotations[1:], heads[0], rotations[0], stands)


def target_figure(target: bpy.types.Object, figure_map: FigureMap) -> tuple[TargetFigure, RigReading]:
    """An armature at rest as the figure that gets a motion, and the reading that its keys are made from.

    Raises:
        RigError: the armature is mirrored or unevenly scaled, or cannot be read as joints.
    """
    require_even(target.matrix_world, target.name)
    chains = [(name, 0) for name in figure_map.sources]
    bones = dict.fromkeys(
        bone.name for name in figure_map.sources for bone in _upwards(target.pose.bones.get(name))
    )
    reading = armature.read(target, chains, joint_settings(target, list(bones)))
    figure = figure_at_rest(target, reading.skeleton)
    return _upright(figure, figure_map), reading


def figure_at_rest(target: bpy.types.Object, skeleton: Skeleton) -> TargetFigure:
    """A skeleton of an armature's bones, at rest, where the armature object has them."""
    place, turn, scale = target.matrix_world.decompose()
    count = len(skeleton)
    return TargetFigure(
        skeleton,
        np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)),
        np.zeros((count, 3)),
        np.array(turn[:]),
        np.array(place[:]),
        float(np.mean(scale[:])),
        ground_of(target),
    )


def _upright(figure: TargetFigure, figure_map: FigureMap) -> TargetFigure:
    """The figure with its reference pose turned upright, where its rest lies: such as in files with Y up."""
    heads, _ = figure.reference
    names = [joint.name for joint in figure.skeleton.joints]
    up = upward(*figure_map.middles({name: heads[names.index(name)] for name in figure_map.sources}))
    if up.z == 1.0:
        return figure
    turn = np.array(up.rotation_difference(Vector((0.0, 0.0, 1.0)))[:])
    rotations = figure.rotations.copy()
    for i, joint in enumerate(figure.skeleton.joints):
        if joint.parent < 0:
            base = product(figure.turn, figure.rests[i])
            rotations[i] = product(inverse(base), product(turn, base))
    turned = replace(figure, rotations=rotations)
    lowest = min(turned.reference[0][names.index(name), 2] for name in figure_map.sources)
    return replace(turned, ground=float(lowest))


def require_even(matrix: Matrix, name: str) -> None:
    """Raises RigError unless a matrix moves, turns and scales alike along all axes."""
    axes = np.array(matrix.to_3x3())
    sizes = np.linalg.norm(axes, axis=0)
    if not np.isfinite(axes).all() or sizes.min() <= 0.0:
        raise RigError(f"armature '{name}' has no size or is nowhere: clear its transform")
    if np.linalg.det(axes) < 0.0:
        raise RigError(f"armature '{name}' is mirrored by its object: apply its scale (Ctrl A)")
    if uneven := uneven_scale(matrix, name):
        raise RigError(uneven)


def _upwards(pose_bone: Any) -> tuple[Any, ...]:
    return () if pose_bone is None else (pose_bone, *pose_bone.parent_recursive)


@contextmanager
def _played(scene: bpy.types.Scene, source: bpy.types.Object, names: Sequence[str]) -> Iterator[Any]:
    """Gives a function: frame -> (1 + J, 4, 4) world matrices of the armature object and of the bones."""
    slots = [source.pose.bones.find(name) for name in names]
    with isolated_scene(scene, source, [(source, name) for name in names], ()) as isolated:

        def at(frame: float) -> Array:
            evaluated = source.evaluated_get(set_frame(isolated, frame))
            matrices = np.empty((len(source.pose.bones), 4, 4), np.float32)
            evaluated.pose.bones.foreach_get("matrix", matrices.ravel())
            world = np.array([row[:] for row in evaluated.matrix_world])
            bones = world @ matrices.transpose(0, 2, 1)[slots].astype(np.float64)
            return np.concatenate((world[None], bones))

        yield at


def _rest(source: bpy.types.Object, names: Sequence[str]) -> Array:
    """(J, 4, 4) matrices of bones at rest, armature space."""
    return np.array([[row[:] for row in source.data.bones[name].matrix_local] for name in names])


def split(matrices: Array) -> tuple[Array, Array]:
    """Heads (F, J, 3) and rotations (F, J, 4) of matrices (F, J, 4, 4)."""
    axes = matrices[..., :3, :3]
    left, _, right = np.linalg.svd(axes)
    turns = batch.quaternions(np.moveaxis(left @ right, (-2, -1), (0, 1)))
    return matrices[..., :3, 3].copy(), np.moveaxis(turns, 0, -1).copy()


def _require_finite(matrices: Array, names: Sequence[str], frames: Collection[float]) -> None:
    good = np.isfinite(matrices).all(axis=(2, 3))
    if not good.all():
        f, j = np.argwhere(~good)[0].tolist()
        raise RigError(
            f"bone '{names[j]}' is nowhere at frame {list(frames)[f]:g}: a key of it is not a "
            f"number; delete it"
        )
    mirrored = np.linalg.det(matrices[..., :3, :3]) <= 0.0
    if mirrored.any():
        f, j = np.argwhere(mirrored)[0].tolist()
        raise RigError(
            f"bone '{names[j]}' is mirrored or has no size at frame {list(frames)[f]:g}: clear its scale"
        )


def upward(feet: Array, hips: Array, top: Array) -> Vector:
    """The axis of the world along which a figure stands: Z, unless another one fits clearly better.

    Legs or the trunk tell. The trunk of a bird lies, and so may the legs of a figure that sits.
    """
    up = Vector((0.0, 0.0, 1.0))
    ways = [_axis_along(way) for way in (top - hips, hips - feet)]
    return up if up in ways else ways[0]


def _axis_along(way: Array) -> Vector:
    """The axis of the world that is nearest to a way (3,), Z by preference and for none."""
    k = int(np.argmax(np.abs(way) + np.array((0.0, 0.0, 0.3)) * (float(np.linalg.norm(way)) or 1.0)))
    axis = Vector((0.0, 0.0, 0.0))
    axis[k] = 1.0 if way[k] >= 0.0 else -1.0
    return axis


def ground_of(target: bpy.types.Object) -> float:
    """World height of the ground on which an armature stands at rest: its origin, or its lowest bone."""
    world = target.matrix_world
    points = [(world @ point).z for bone in target.data.bones for point in (bone.head_local, bone.tail_local)]
    low, high = min(points), max(points)
    origin = world.translation.z
    return float(origin if abs(low - origin) <= NEAR_GROUND * (high - low) else low)
