# SPDX-License-Identifier: GPL-3.0-or-later
"""What channels of bones hold at a frame by values and F-curves at hand, whatever plays there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import bpy
from mathutils import Quaternion

from ...skeleton.pose import Pose
from ..keys import channels
from ..rig.armature import RigReading
from ..rig.rotation_modes import rotation_channel, rotation_of
from ..scene.evaluation import FrameSample

Values = dict[str, dict[str, list[float]]]
"""Bone -> channel -> its values."""
Curves = Mapping[tuple[str, int], bpy.types.FCurve]
"""Data path and component -> the F-curve that moves it."""


def curves_by_path(curves: Iterable[bpy.types.FCurve]) -> Curves:
    """F-curves that play, by what they move."""
    return {(curve.data_path, curve.array_index): curve for curve in curves if channels.plays(curve)}


class _Part(NamedTuple):
    """A channel of a joint's bone that curves move.

    Attributes:
        joint: of a reading.
        mode: the rotation mode; empty for the location.
        values: of its components, where no curve says otherwise.
        curves: of its components.
    """

    joint: int
    mode: str
    values: Sequence[float]
    curves: Sequence[bpy.types.FCurve | None]

    def at(self, time: float) -> list[float]:
        """What the channel holds at the time of a key."""
        return [
            value if curve is None else float(curve.evaluate(time))
            for curve, value in zip(self.curves, self.values, strict=True)
        ]


class _Plan(NamedTuple):
    """What a reading of some bones gets.

    Attributes:
        bones: of each joint.
        rotations: of joints that stay.
        locations: {joint: its location channel}, of those that stay.
        moved: the channels that curves move.
    """

    bones: tuple[str, ...]
    rotations: Mapping[int, Quaternion]
    locations: Mapping[int, Sequence[float]]
    moved: Sequence[_Part]


def _differ_in_place(one: RigReading, other: RigReading) -> bool:
    """Whether two readings hold the same pose of the same bones, and so may differ in their parents alone."""
    return one.pose is other.pose and one.shifts is other.shifts and one.bones is other.bones


@dataclass
class NotedMotion:
    """Channels of some bones; others are what they are evaluated to.

    Attributes:
        armature_object: the original object.
        time: what a frame is multiplied by to give the time of keys.
        values: of the channels, where no curve says otherwise.
        curves: of their components.
    """

    armature_object: bpy.types.Object
    time: float
    values: Values
    curves: Curves
    _before: tuple[RigReading, RigReading] | None = field(default=None, init=False)
    _plan: _Plan | None = field(default=None, init=False)

    def based(self, sample: FrameSample) -> FrameSample:
        """The sample with its base pose replaced; while nothing changes, with the very same reading."""
        reading, before = sample.reading, self._before
        if before is None or before[0] is not reading or self.curves:
            if before is not None and not self.curves and _differ_in_place(before[0], reading):
                self._before = reading, reading.posed(before[1].pose)
            else:
                self._before = reading, self._read(reading, sample.frame * self.time)
        return sample._replace(reading=self._before[1])

    def _read(self, reading: RigReading, at: float) -> RigReading:
        plan = self._plan
        if plan is None or plan.bones != reading.bones:
            plan = self._plan = self._planned(reading.bones)
        rotations, translations = list(reading.pose.rotations), list(reading.pose.translations)
        for j, rotation in plan.rotations.items():
            rotations[j] = rotation
        for j, location in plan.locations.items():
            translations[j] = reading.translation(j, location)
        for part in plan.moved:
            if part.mode:
                rotations[part.joint] = rotation_of(part.mode, part.at(at))
            else:
                translations[part.joint] = reading.translation(part.joint, part.at(at))
        return reading.posed(Pose.trusted(tuple(rotations), tuple(translations)))

    def _planned(self, bones: tuple[str, ...]) -> _Plan:
        """What readings of these bones get; of a bone in another rotation mode than noted its location."""
        plan = _Plan(bones, rotations := {}, locations := {}, moved := [])
        for j, bone in enumerate(bones):
            noted = self.values.get(bone, {})
            pose_bone = self.armature_object.pose.bones[bone]
            connected = pose_bone.bone.use_connect  # Blender ignores the location there
            channel, _ = rotation_channel(pose_bone)
            for name, mode in ((channel, pose_bone.rotation_mode), ("location", "")):
                if name not in noted or (not mode and connected):
                    continue
                path = channels.data_path(self.armature_object, bone, name)
                part = _Part(
                    j, mode, noted[name], [self.curves.get((path, i)) for i in range(len(noted[name]))]
                )
                if any(curve is not None for curve in part.curves):
                    moved.append(part)
                elif mode:
                    rotations[j] = rotation_of(mode, part.values)
                else:
                    locations[j] = part.values
        return plan
