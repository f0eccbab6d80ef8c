# SPDX-License-Identifier: GPL-3.0-or-later
"""The base poses that a bake starts from.

A bone without keys plays whatever pose Solve, a hand or another tool has left it in. A bake replaces that
pose by keys. Unless the user asks for it, it has no say: the same action and targets give the same bake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import bpy

from ..keys import channels
from ..properties.constraint_values import Constraint, Kind
from ..rig.armature import RigLayout
from ..rig.rotation_modes import rotation_channel
from ..scene.evaluation import Samples
from ..solve.constraint_goals import chain_joints
from . import originals
from .noted_motion import NotedMotion, Values, curves_by_path
from .settings import Start

REST: dict[str, tuple[float, ...]] = {
    "rotation_quaternion": (1.0, 0.0, 0.0, 0.0),
    "rotation_euler": (0.0, 0.0, 0.0),
    "rotation_axis_angle": (0.0, 0.0, 1.0, 0.0),
    "location": (0.0, 0.0, 0.0),
}
"""What channels hold at rest."""
BaseOf = Callable[[Samples], Samples]
"""Puts base poses into samples."""
POSED = 1e-4
"""Radians, parts of a quaternion or Blender units off rest from which a bone is posed."""


@dataclass(frozen=True)
class StartPoses:
    """Where a bake starts from.

    Attributes:
        values: of the channels that do not start from what plays.
        posed: names of the bones that stand in a pose that nothing plays, and start from rest.
        based: a function that puts the base poses into samples.
    """

    values: Values
    posed: tuple[str, ...]
    based: BaseOf


@dataclass(frozen=True)
class _Channel:
    """A channel that a bake may key.

    Attributes:
        bone, name: of the channel.
        parts: data path and index of its components.
        present: what they hold now.
        rest: what they hold at rest; components that a bake cannot change stay as they are.
        follows: whether it belongs to a root bone that planted bones take along, from where it plays.
    """

    bone: str
    name: str
    parts: tuple[tuple[str, int], ...]
    present: tuple[float, ...]
    rest: tuple[float, ...]
    follows: bool

    @classmethod
    def of(
        cls, armature_object: bpy.types.Object, bone: str, name: str, free: Sequence[bool], follows: bool
    ) -> _Channel:
        """One whose components are `free` for a bake to change."""
        path = channels.data_path(armature_object, bone, name)
        present = tuple(getattr(armature_object.pose.bones[bone], name))
        rest = tuple(r if f else p for r, p, f in zip(REST[name], present, free, strict=True))
        return cls(bone, name, tuple((path, i) for i in range(len(rest))), present, rest, follows)

    def is_posed(self, animated: Collection[tuple[str, int]]) -> bool:
        """Whether a component that nothing animates is off rest."""
        return any(
            part not in animated and abs(now - at_rest) > POSED
            for part, now, at_rest in zip(self.parts, self.present, self.rest, strict=True)
        )


def start_poses(
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout,
    start: Start,
    time: float,
) -> StartPoses:
    """The base poses of all bones that constraints move; see `Start`.

    A channel of which strips or drivers play some components only starts from what is evaluated.

    Args:
        armature_object: the original object.
        constraints: those that are baked.
        layout: of their bones.
        start: what is asked for.
        time: what a frame is multiplied by to give the time of keys.

    Raises:
        RigError: the motion before the first bake is asked for, but not known.
    """
    animated = channels.animated_components(armature_object)
    curves = curves_by_path(channels.fcurves_of(armature_object))
    values: Values = {}
    played: dict[tuple[str, int], bpy.types.FCurve] = {}
    posed: dict[str, None] = {}  # in order
    for channel in _keyed_channels(armature_object, constraints, layout):
        if start in (Start.ACTION, Start.ORIGINAL) or channel.follows:
            moving = animated.intersection(channel.parts)
            if len(moving) == len(channel.parts) or not moving <= curves.keys():
                continue
            played |= {part: curves[part] for part in moving}
        held = channel.present if start is Start.POSE else channel.rest
        values.setdefault(channel.bone, {})[channel.name] = list(held)
        if start is not Start.POSE and channel.is_posed(animated):
            posed[channel.bone] = None
    based: BaseOf = NotedMotion(armature_object, time, values, played).based if values else _as_it_is
    if start is Start.ORIGINAL:
        based = _then(based, originals.base_from(armature_object, time))
    return StartPoses(values, tuple(posed), based)


def _as_it_is(samples: Samples) -> Samples:
    return samples


def _then(first: BaseOf, second: BaseOf) -> BaseOf:
    return lambda samples: second(first(samples))


def _keyed_channels(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], layout: RigLayout
) -> Iterator[_Channel]:
    """The channels that a bake of constraints may key."""
    skeleton = layout.skeleton
    moved = {j for each in constraints if each.kind is not Kind.PLANT for j in chain_joints(skeleton, each)}
    roots: set[int] = set()
    for constraint in constraints:
        if constraint.kind is Kind.PLANT:
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
            yield _Channel.of(armature_object, bone, name, free, j in roots)
        slides = layout.joint_settings.get(bone, {}).get("slides", ())
        slid = [j in roots or any(slide.axis[i] for slide in slides) for i in range(3)]
        if any(slid):
            yield _Channel.of(armature_object, bone, "location", slid, j in roots)
