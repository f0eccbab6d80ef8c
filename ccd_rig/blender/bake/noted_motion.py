# SPDX-License-Identifier: GPL-3.0-or-later
"""What channels of bones hold at a frame by values and F-curves at hand, whatever plays there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import bpy

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

    def based(self, sample: FrameSample) -> FrameSample:
        """The sample with its base pose replaced; while nothing changes, with the very same reading."""
        reading = sample.reading
        if self._before is None or self._before[0] is not reading or self.curves:
            self._before = reading, self._read(reading, sample.frame * self.time)
        return sample._replace(reading=self._before[1])

    def _read(self, reading: RigReading, at: float) -> RigReading:
        rotations, translations = list(reading.pose.rotations), list(reading.pose.translations)
        for j, bone in enumerate(reading.bones):
            if bone not in self.values:
                continue
            pose_bone = self.armature_object.pose.bones[bone]
            rotation = self._values_at(bone, rotation_channel(pose_bone)[0], at)
            if rotation is not None:
                rotations[j] = rotation_of(pose_bone.rotation_mode, rotation)
            location = self._values_at(bone, "location", at)
            if location is not None and not pose_bone.bone.use_connect:  # Blender ignores it there
                translations[j] = reading.translation(j, location)
        return replace(reading, pose=Pose.trusted(tuple(rotations), tuple(translations)))

    def _values_at(self, bone: str, channel: str, at: float) -> list[float] | None:
        noted = self.values[bone].get(channel)
        if noted is None:  # nobody asked, or it is in another rotation mode
            return None
        path = channels.data_path(self.armature_object, bone, channel)
        components = (self.curves.get((path, i)) for i in range(len(noted)))
        return [
            value if curve is None else float(curve.evaluate(at))
            for curve, value in zip(components, noted, strict=True)
        ]
