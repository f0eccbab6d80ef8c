# SPDX-License-Identifier: GPL-3.0-or-later
"""An armature's motion as arrays of the world, and an armature as the figure that gets it.

What the channels of such a bone come to cannot be told from rest matrices. So the motion is made on a
skeleton of the mapped bones alone, one on the other as in the body, and then given to the rig from the hips
out: frames are evaluated with the keys so far, which shows where a bone would be without its own channels,
and these are set to what is missing. Bones between which nothing is constrained need no look.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...errors import RigError
from ...maths import batch
from ...maths.batch import Array
from ...motion.ground import seen_below
from ...motion.retargeting.figure_map import MOST_LEGS, FigureMap
from ...motion.retargeting.motions import SourceMotion, TargetFigure, inverse, product
from ...skeleton.joints import Joint, Skeleton
from ..checks.setup import uneven_scale
from ..properties.joints import joint_settings
from ..rig import armature, clamps
from ..rig.armature import RigReading
from ..scene.ground import extent, ground_of, rig_ground
from ..scene.isolation import isolated_scene, set_frame


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


STILL = 1e-5
"""Part of its size by which a matrix changes that stays."""


@dataclass(frozen=True)
class SourceChoice:
    """What of an armature is carried over.

    Attributes:
        frames: of the scene, which may be fractional; one for each frame that is keyed.
        seconds: from one of them to the next, as they are played on the target.
        reference: which pose is the source's own.
        reference_frame: for `FRAME`.
        stays: whether an armature object that moves is refused.
    """

    frames: Sequence[float]
    seconds: float
    reference: Reference = Reference.REST
    reference_frame: float = 1.0
    stays: bool = False


def source_motion(
    scene: bpy.types.Scene, source: bpy.types.Object, figure_map: FigureMap, choice: SourceChoice
) -> SourceMotion:
    """The mapped bones of an armature, as they play; the scene stays as it is.

    Points are seen from where the armature object is at the first frame, in the axes of the world.

    Raises:
        RestIsNoPose: its rest is no pose of a body.
        RigError: the armature is shown in rest position, mirrored or sheared; a bone is nowhere; the object
            moves and has to stay.
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
    if choice.stays and np.abs(played[:, 0] - world).max() > STILL * max(1.0, np.abs(world).max()):
        raise RigError(
            f"armature '{source.name}' moves as an object from frame {choice.frames[0]:g} to "
            f"{choice.frames[-1]:g}, by its keys, its parent or a constraint: take that off, and let its "
            "hips move"
        )
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


def chosen_ground(scene: bpy.types.Scene, target: bpy.types.Object) -> float | None:
    """World height of an armature's Ground below its origin, at the present frame; None at rest.

    Raises:
        RigError: none is chosen or there, or it has no faces.
    """
    low, high = extent(target)
    origin = np.array([[target.matrix_world.translation[:]]])
    ground = rig_ground(scene, target, [scene.frame_current_final], origin[0], max(high - low, 1e-3))
    if ground is None and target.ccd_rig.ground.kind == "REST":
        return None
    height = np.nan if ground is None else float(seen_below(ground, origin, np.array([high]))[0, 0])
    if np.isnan(height):
        raise RigError(
            f"'{target.name}': no ground is below its origin: move one of them, or choose another Ground"
        )
    return height


HARMLESS = {"COPY_SCALE", "LIMIT_SCALE"}
"""Constraints that do not turn or move a bone that is not scaled."""

Channels = Mapping[str, tuple[Array, Array | None]]
"""By bone: (F, 4) rotations relative to rest, and (F, 3) what its location holds, or None."""


def is_controlled(target: bpy.types.Object, figure_map: FigureMap) -> bool:
    """Whether a mapped bone, or one above it, is moved by anything but its channels."""
    driven = _driven(target)
    bones = {bone.name: bone for name in figure_map.sources for bone in _line(target, name)}
    return any(_is_moved(bone, driven) for bone in bones.values())


def without_carriers(target: bpy.types.Object, figure_map: FigureMap) -> FigureMap:
    """The map without bones of the spine that legs hang on, as some rigs have below their pivot: turning them
    would move the hips."""
    carriers = {
        bone.name
        for leg in figure_map.hind_legs
        for bone in _line(target, leg.upper)
        if bone.name in figure_map.trunk and bone.name != figure_map.hips
    }
    if not carriers:
        return figure_map
    sources = {ours: theirs for ours, theirs in figure_map.sources.items() if ours not in carriers}
    trunk = tuple(name for name in figure_map.trunk if name not in carriers)
    return replace(figure_map, sources=sources, trunk=trunk)


def figure_of_controls(target: bpy.types.Object, figure_map: FigureMap) -> TargetFigure:
    """The mapped bones alone, at rest, one on the other as in the body.

    Raises:
        RigError: the armature is mirrored or unevenly scaled, or settings of joints contradict one another.
    """
    require_even(target.matrix_world, target.name)
    names = sorted(figure_map.sources, key=lambda name: len(_line(target, name)))
    parents = {name: _body_parent(target, figure_map, name) for name in names}
    ordered: list[str] = []
    while len(ordered) < len(names):
        ordered += [name for name in names if name not in ordered and parents[name] in ("", *ordered)]
    settings = joint_settings(target, ordered)
    joints = []
    for name in ordered:
        rest, above = target.data.bones[name].matrix_local, Matrix.Identity(4)
        if parents[name]:
            above = target.data.bones[parents[name]].matrix_local
        local = above.inverted() @ rest
        keep = {key: settings[name][key] for key in ("limit", "stiffness")}
        joints.append(
            Joint(
                name,
                ordered.index(parents[name]) if parents[name] else -1,
                local.to_translation(),
                local.to_quaternion().normalized(),
                target.data.bones[name].length,
                **keep,
            )
        )
    return figure_at_rest(target, Skeleton(joints))


def channels_of(
    scene: bpy.types.Scene,
    target: bpy.types.Object,
    figure_map: FigureMap,
    figure: TargetFigure,
    pose: tuple[Array, Array],
    played: tuple[Array, Callable[[Channels], AbstractContextManager[Any]]],
) -> Channels:
    """What channels must hold for the bones to be as in the figure's motion.

    Args:
        scene: in which the target plays.
        target: the armature.
        figure_map: what is mapped.
        figure: of `figure_of_controls`.
        pose: (F, n, 4) and (F, n, 3) of the figure.
        played: (F,) scene frames, and what lets the target play channels within a block.
    """
    frames, playing = played
    heads, world = figure.world(*pose)
    heads, turns = figure.points_to_model(heads), figure.rotations_to_model(world)
    driven = _driven(target)
    done: dict[str, tuple[Array, Array | None]] = {}
    waiting = [joint.name for joint in figure.skeleton.joints]
    while waiting:
        free = [name for name in waiting if not any(bone.name in waiting for bone in _line(target, name)[1:])]
        looked_at = [name for name in free if not _is_rigid(target, figure, name, driven)]
        for name in free:
            done[name] = pose[0][:, figure.index(name)], None
        if looked_at:
            shown = {name: done[name] for name in done if name not in free or name not in looked_at}
            with playing(shown):
                bases = _bases(scene, target, looked_at, frames)
            for name, base in bases.items():
                j = figure.index(name)
                _, turned = split(base[:, None])
                rotations = product(inverse(turned[:, 0]), turns[:, j])
                location: Array | None = None
                if name == figure_map.hips:
                    ends = np.concatenate((heads[:, j], np.ones((len(frames), 1))), axis=1)
                    location = np.asarray(np.linalg.solve(base, ends[..., None])[:, :3, 0], np.float64)
                done[name] = batch.unit(rotations, -1), location
        waiting = [name for name in waiting if name not in free]
    hips = figure_map.hips
    if done[hips][1] is None:
        done[hips] = done[hips][0], pose[1][:, figure.index(hips)]
    return done


def _bases(
    scene: bpy.types.Scene, target: bpy.types.Object, names: Sequence[str], frames: Array
) -> dict[str, Array]:
    """By bone, (F, 4, 4) where it would be in armature space with empty channels."""
    found: dict[str, Array] = {name: np.empty((len(frames), 4, 4)) for name in names}
    with isolated_scene(scene, target, [(target, name) for name in names], ()) as isolated:
        for f, frame in enumerate(frames):
            bones: Any = target.evaluated_get(set_frame(isolated, float(frame))).pose.bones
            for name in names:
                basis = bones[name].matrix_basis.inverted_safe()
                found[name][f] = [row[:] for row in bones[name].matrix @ basis]
    return found


def _line(target: bpy.types.Object, name: str) -> tuple[Any, ...]:
    """A pose bone and those above it."""
    bone: Any = target.pose.bones[name]
    return (bone, *bone.parent_recursive)


def _driven(target: bpy.types.Object) -> set[str]:
    """Names of bones with drivers on their transforms."""
    animation = target.animation_data
    paths = [curve.data_path for curve in animation.drivers] if animation is not None else []
    parts = ("].location", "].rotation_quaternion", "].rotation_euler", "].rotation_axis_angle")
    return {path.split('"')[1] for path in paths if path.startswith("pose.bones[") and path.endswith(parts)}


def _is_moved(bone: Any, driven: set[str]) -> bool:
    own = [each for each in clamps.user_constraints(bone) if not each.mute and each.type not in HARMLESS]
    return bool(own) or bone.name in driven


def _is_rigid(target: bpy.types.Object, figure: TargetFigure, name: str, driven: set[str]) -> bool:
    """Whether a bone hangs on that of its joint's parent without anything that moves those between."""
    joint = figure.skeleton.joints[figure.index(name)]
    if joint.parent < 0 or _is_moved(target.pose.bones[name], driven):
        return False
    above = figure.skeleton.joints[joint.parent].name
    for bone in _line(target, name)[1:]:
        if bone.name == above:
            return True
        if _is_moved(bone, driven) or bone.matrix_basis != Matrix.Identity(4):
            return False
    return False


def _body_parent(target: bpy.types.Object, figure_map: FigureMap, name: str) -> str:
    """The mapped bone that a bone hangs on in the body; empty for the hips."""
    if name == figure_map.hips:
        return ""
    trunk = (figure_map.hips, *(each for each in figure_map.trunk if each != figure_map.hips))
    if name in trunk:
        return trunk[trunk.index(name) - 1]
    if name in {leg.upper for leg in figure_map.hind_legs}:
        return figure_map.hips
    mapped = [bone.name for bone in _line(target, name)[1:] if bone.name in figure_map.sources]
    for limb in figure_map.limbs:
        if name in limb.joints[1:]:
            above = limb.joints[limb.joints.index(name) - 1]
            return mapped[0] if above in mapped else above
    return mapped[0] if mapped else figure_map.hips
