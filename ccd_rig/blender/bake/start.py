# SPDX-License-Identifier: GPL-3.0-or-later
"""The base poses that a bake starts from.

A bone without keys keeps the pose in which Solve, an animator or another tool has left it. A bake replaces
that pose by keys. By default the bake ignores such poses, so equal actions and targets give equal bakes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ...errors import RigError
from ...maths.batch import Array
from ..keys import channels
from ..properties import stored_poses
from ..properties.constraint_values import Constraint
from ..properties.stored_poses import MODE, POSE, Values, pose_of
from ..rig.armature import RigLayout
from ..rig.rotation_modes import CHANNELS, channel_values, mode_of_number, rotation_channel, rotation_of
from ..scene.evaluation import Samples
from ..solve.methods import Reference, whole_chain
from .settings import Start

Curves = Mapping[tuple[str, int], bpy.types.FCurve]
"""Data path and component -> its F-curve."""


BaseOf = Callable[[Samples], Samples]
"""Replaces the base poses of samples."""


def curves_by_path(curves: Iterable[bpy.types.FCurve]) -> Curves:
    """Playing F-curves by data path and component."""
    return {(curve.data_path, curve.array_index): curve for curve in curves if channels.plays(curve)}


@dataclass
class StoredCurves:
    """Stored curves and values of channels, in place of evaluated ones."""

    armature_object: bpy.types.Object  # the original object
    time: float  # factor from frames to the time of keys
    values: Values  # of channels without a curve
    curves: Curves  # of components

    def based(self, samples: Samples) -> Samples:
        """The samples with these base poses."""
        rotations, translations = samples.rig.rotations.copy(), samples.rig.translations.copy()
        for j, bone in enumerate(samples.rig.layout.names):
            noted = self.values.get(bone, {})
            if not noted:
                continue
            pose_bone = self.armature_object.pose.bones[bone]
            mode = noted_mode(pose_bone, noted)
            if mode is not None:
                turns = self._channel(bone, CHANNELS[mode][0], samples.frames)
                rotations[:, j] = [rotation_of(mode, values)[:] for values in turns.tolist()]
            if "location" in noted and not pose_bone.bone.use_connect:  # Blender ignores it there
                locations = self._channel(bone, "location", samples.frames)
                translations[:, j] = samples.rig.translations_of(j, locations)
        return samples.posed(rotations, translations)

    def _channel(self, bone: str, name: str, frames: Array) -> Array:
        """(R, K) values of a channel at R frames; (1, K) without a curve."""
        noted, curves = self.values[bone][name], list[bpy.types.FCurve | None]()
        if self.curves:
            path = channels.data_path(self.armature_object, bone, name)
            curves = [self.curves.get((path, i)) for i in range(len(noted))]
        if not any(curves):
            return np.array([noted], np.float64)
        values = np.tile(np.array(noted, np.float64), (len(frames), 1))
        for i, curve in enumerate(curves):
            if curve is not None:
                values[:, i] = [curve.evaluate(frame * self.time) for frame in frames.tolist()]
        return values


def noted_mode(pose_bone: bpy.types.PoseBone, noted: Mapping[str, Sequence[float]]) -> str | None:
    """The rotation mode of noted values: the present one where none is noted; None without a rotation."""
    mode = mode_of_number(noted[MODE][0]) if MODE in noted else pose_bone.rotation_mode
    return mode if mode in CHANNELS and CHANNELS[mode][0] in noted else None


REMEMBERED = "ccd_rig_original"
"""Custom property of a baked action: the action it was copied from; None once that is deleted."""
STRIPS = "STRIPS"
"""`REMEMBERED` where strips moved keyed bones: their motion cannot be evaluated below the baked action."""
SETTINGS = "ccd_rig_bake_settings"
"""Custom property of a baked action: the `fingerprint` of its last bake."""
HELPED = "ccd_rig_helped"
"""Custom property of a baked action: the bone that carries a figure whose body has helped, and a hash of its
keys."""


def fingerprint(*made_with: Any) -> str:
    """A hash of values whose `repr` is complete."""
    return hashlib.sha256("\n".join(map(repr, made_with)).encode()).hexdigest()[:16]


def note_helped(
    action: bpy.types.Action, armature_object: bpy.types.Object, bone: str, undo: ExitStack
) -> None:
    """Note that the keys of a bone come from a body that helps, and what they are; empty to forget it.

    Args:
        action: the present action, with the keys.
        bone: name of the bone that carries the figure; empty where the body has not helped.
        undo: gets the callback that takes it back.
    """
    store(action, HELPED, [bone, _keys_of(armature_object, bone)] if bone else None, undo)


def store(action: Any, name: str, value: Any, undo: ExitStack) -> None:
    """Set a custom property, or remove it where the value is None; see `note_helped`."""
    before = action.get(name)
    if before is None:
        undo.callback(action.pop, name, None)
    else:
        undo.callback(action.__setitem__, name, getattr(before, "to_list", lambda: before)())
    if value is None:
        action.pop(name, None)
    else:
        action[name] = value


def has_helped_keys(armature_object: bpy.types.Object, bone: str) -> bool:
    """Whether a body that helps has made the keys of a bone in the present action, and nothing since."""
    action = channels.action_of(armature_object)
    noted = None if action is None else action.get(HELPED)
    return isinstance(noted, list) and noted == [bone, _keys_of(armature_object, bone)]


def _keys_of(armature_object: bpy.types.Object, bone: str) -> str:
    """A hash of the keys of a bone in the present action."""
    path = armature_object.pose.bones[bone].path_from_id() + "."
    keys = []
    for curve in channels.fcurves_of(armature_object):
        if curve.data_path.startswith(path):
            places = np.empty(2 * len(curve.keyframe_points), np.float32)
            curve.keyframe_points.foreach_get("co", places)
            keys.append((curve.data_path, curve.array_index, places.tobytes()))
    return fingerprint(*sorted(keys))


def was_baked_so(armature_object: bpy.types.Object, fingerprint: str) -> bool:
    """Whether the present action, or else the top strip, was baked with this fingerprint."""
    animation, action = armature_object.animation_data, channels.action_of(armature_object)
    if animation is not None and action is None and animation.use_nla and len(animation.nla_tracks):
        strips = animation.nla_tracks[-1].strips
        action = strips[0].action if len(strips) else None
    return action is not None and action.get(SETTINGS) == fingerprint


def moved_by_strips(armature_object: bpy.types.Object, bones: Iterable[str]) -> bool:
    """Whether NLA strips move bones that the present action has no note of."""
    animation, action = armature_object.animation_data, channels.action_of(armature_object)
    if animation is None:
        return False
    curves = (each for strip in channels.playing_strips(animation) for each in channels.strip_fcurves(strip))
    moved = set(curves_by_path(curves))
    if animation.action_extrapolation == "HOLD":  # else strips play before or after the action's keys
        moved -= curves_by_path(channels.fcurves_of(armature_object)).keys()
    noted = {} if action is None else pose_of(action)
    paths = {
        channels.data_path(armature_object, bone, channel)
        for bone in bones
        if bone not in noted
        for channel in ("location", rotation_channel(armature_object.pose.bones[bone])[0])
    }
    return any(path in paths for path, _ in moved)


def remember(
    action: bpy.types.Action,
    original: bpy.types.Action | None,
    pose: Values,
    is_by_strips: bool,
    undo: ExitStack,
) -> None:
    """Note the source of a baked action; a copy of a baked action keeps the note.

    Args:
        original: the action before the bake.
        pose: values of channels of keyed bones without keys; added for bones that are not noted yet.
        is_by_strips: whether strips moved bones that are not noted yet.
        undo: gets the callback that takes it back.
    """
    properties: Any = action  # the stubs do not know that data-blocks hold custom properties
    if POSE not in properties and original is not None and original != action:
        properties[REMEMBERED] = original
    if is_by_strips and is_source_known(action):
        store(action, REMEMBERED, STRIPS, undo)
    noted = {}
    if POSE in properties:
        noted = pose_of(action)
        undo.callback(properties.__setitem__, POSE, noted)
    properties[POSE] = {**pose, **noted}


def is_source_known(action: Any) -> bool:
    """Whether the action that a baked action was copied from is there, or there was none."""
    return REMEMBERED not in action or isinstance(action[REMEMBERED], bpy.types.Action)


def known_base(armature_object: bpy.types.Object, time: float) -> BaseOf | None:
    """A function that restores the base poses of samples to the motion before the first bake.

    None: the action was not baked, its source is not known, or is not for this object.

    Args:
        time: factor from frames to the time of keys.
    """
    action: Any = channels.action_of(armature_object)
    is_known = action is not None and POSE in action and is_source_known(action)
    values = pose_of(action) if is_known else {}
    for bone, noted in values.items():
        pose_bone = armature_object.pose.bones.get(bone)
        has_turns = any(channel in noted for channel, _ in CHANNELS.values())
        is_known &= pose_bone is None or not has_turns or noted_mode(pose_bone, noted) is not None
    if not is_known:
        return None
    original = action.get(REMEMBERED)
    curves = {} if original is None else curves_by_path(channels.fcurves_for(original, armature_object))
    return StoredCurves(armature_object, time, values, curves).based


def reference_from(armature_object: bpy.types.Object, time: float) -> Reference | None:
    """A function that gives reference poses: the base poses before any bake. None: those of now.

    This makes a second bake lead to the result of the first. Arguments as of `known_base`.
    """
    based = known_base(armature_object, time)
    return None if based is None else lambda samples: based(samples).rig.rotations


def before_solve(armature_object: bpy.types.Object, samples: Samples, joints: Collection[int]) -> Samples:
    """Samples of the present state with the pose before **Solve** of joints that are as it has left them."""
    values = stored_poses.base_values(armature_object)
    names = [samples.rig.layout.names[j] for j in joints] if values else []
    stored = {name: values[name] for name in names if name in values}
    return StoredCurves(armature_object, 1.0, stored, {}).based(samples) if stored else samples


REST: dict[str, tuple[float, ...]] = {
    "rotation_quaternion": (1.0, 0.0, 0.0, 0.0),
    "rotation_euler": (0.0, 0.0, 0.0),
    "rotation_axis_angle": (0.0, 0.0, 1.0, 0.0),
    "location": (0.0, 0.0, 0.0),
}
"""Values of channels at rest."""
POSED = 1e-4
"""Least difference from rest of a posed channel, in its units."""


@dataclass(frozen=True)
class StartPoses:
    """Base poses of a bake."""

    values: Values  # of channels that do not start from the animation
    posed: tuple[str, ...]  # names of bones with a pose without animation, which start from rest
    based: BaseOf  # a function that replaces the base poses of samples


def start_poses(
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout,
    start: Start,
    time: float,
) -> StartPoses:
    """The base poses of all bones that constraints move, see `Start`.

    Bones of a constraint at influence 0 throughout get no keys, and keep their animation. A channel with
    components that strips or drivers animate keeps its evaluated value.

    Args:
        armature_object: the original object.
        time: factor from frames to the time of keys.

    Raises:
        RigError: the motion before the first bake is chosen, but not known.
    """
    animated = channels.animated_components(armature_object)
    curves = curves_by_path(channels.fcurves_of(armature_object))
    values: Values = {}
    played: dict[tuple[str, int], bpy.types.FCurve] = {}
    posed: dict[str, None] = {}  # in order
    rows = armature_object.ccd_rig.constraints
    moving_rows = [
        each
        for each in constraints
        if rows[each.name].influence > 0.0 or (f"{rows[each.name].path_from_id()}.influence", 0) in animated
    ]
    for bone, name, free, follows in _keyed_channels(armature_object, moving_rows, layout):
        path = channels.data_path(armature_object, bone, name)
        present = tuple(getattr(armature_object.pose.bones[bone], name))
        components = [(path, i) for i in range(len(present))]
        if start in (Start.ACTION, Start.ORIGINAL) or follows:
            moving = animated.intersection(components)
            if len(moving) == len(components) or not moving <= curves.keys():
                continue
            played |= {component: curves[component] for component in moving}
        # Components that a bake cannot change stay as they are.
        still_at = REST[name] if start is Start.REST else _without_animation(armature_object, bone, name)
        rest = [r if f else p for r, p, f in zip(still_at, present, free, strict=True)]
        values.setdefault(bone, {})[name] = list(present) if start is Start.POSE else rest
        off = [abs(p - r) > POSED for p, r in zip(present, rest, strict=True)]
        still = [is_off for is_off, each in zip(off, components, strict=True) if each not in animated]
        if start is not Start.POSE and any(still):
            posed[bone] = None
    noted = StoredCurves(armature_object, time, values, played)
    original: BaseOf | None = None
    if start is Start.ORIGINAL or (
        start is Start.ACTION and _has_helped(armature_object, constraints, layout)
    ):
        original = known_base(armature_object, time)
    if start is Start.ORIGINAL and original is None:
        raise RigError(
            f"Armature '{armature_object.name}': its action does not know what it was baked from: choose "
            "another way to start, or assign the original action by hand"
        )

    def based(samples: Samples) -> Samples:
        started = noted.based(samples) if values else samples
        return started if original is None else original(started)

    return StartPoses(values, tuple(posed), based)


def _without_animation(armature_object: bpy.types.Object, bone: str, name: str) -> Sequence[float]:
    """Values of a channel from which a bone without animation starts."""
    pose_bone: Any = armature_object.pose.bones[bone]
    rotation = pose_bone.ccd_rig.start_rotation
    if name == "location" or not any(rotation):
        return REST[name]
    values: list[float] = channel_values(pose_bone.rotation_mode, [rotation[:]])[0].tolist()
    return values


def _has_helped(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], layout: RigLayout
) -> bool:
    """Whether a helping body has keyed the bone that carries a planted figure.

    Then the figure starts from the motion before the first bake. So its body comes back where it is needed no
    more.
    """
    plants = next((each for each in constraints if each.kind.plants), None)
    if plants is None or not stored_poses.is_baked(armature_object):
        return False
    root = layout.skeleton.chain(plants.tip, plants.chain_length)[0]
    return has_helped_keys(armature_object, layout.names[root])


def _keyed_channels(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], layout: RigLayout
) -> Iterator[tuple[str, str, Sequence[bool], bool]]:
    """Yield the channels that a bake of constraints may key: bone, name, and which components it can change.

    The last value says whether a channel is of a root bone that follows planted bones, and so starts from its
    animation.
    """
    skeleton = layout.skeleton
    moved = {j for each in constraints if not each.kind.plants for j in whole_chain(skeleton, each)}
    roots: set[int] = set()
    for constraint in constraints:
        if constraint.kind.plants:
            root, *leg = skeleton.chain(constraint.tip, constraint.chain_length)
            moved |= set(leg)
            roots |= set() if constraint.keeps_body else {root}
    for j in sorted(moved | roots):
        bone = layout.names[j]
        pose_bone: Any = armature_object.pose.bones[bone]
        name, width = rotation_channel(pose_bone)
        if not skeleton.joints[j].locked:
            # Locks of other rotations than Eulers are refused, or lock the whole joint.
            free = [not lock for lock in pose_bone.lock_rotation] if width == 3 else [True] * width
            yield bone, name, free, j in roots
        slides = layout.joint_settings.get(bone, {}).get("slides", ())
        slid = [j in roots or any(slide.axis[i] for slide in slides) for i in range(3)]
        if any(slid):
            yield bone, "location", slid, j in roots
