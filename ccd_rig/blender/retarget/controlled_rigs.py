# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs whose bones hang on others by constraints or drivers, such as those that Rigify generates.

What the channels of such a bone come to cannot be told from rest matrices. So the motion is made on a
skeleton of the mapped bones alone, one on the other as in the body, and then given to the rig from the hips
out: frames are evaluated with the keys so far, which shows where a bone would be without its own channels,
and these are set to what is missing. Bones between which nothing is constrained need no look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ...maths import batch
from ...maths.batch import Array
from ...motion.retargeting.figure_map import FigureMap
from ...motion.retargeting.motions import TargetFigure, inverse, product
from ...skeleton.joints import Joint, Skeleton
from ..properties.joints import joint_settings
from ..rig import clamps
from ..scene.isolation import isolated_scene, set_frame
from .sampling import figure_at_rest, require_even, split

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
