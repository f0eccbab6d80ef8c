# SPDX-License-Identifier: GPL-3.0-or-later
"""What channels of bones hold at a frame by values and F-curves at hand, whatever plays there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import bpy
import numpy as np

from ...maths.batch import Array
from ..keys import channels
from ..rig.rotation_modes import rotation_channel, rotation_of
from ..scene.evaluation import Samples

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
        values: of the channels, where no curve says otherwise; of a bone in another rotation mode than noted
            the location alone counts.
        curves: of their components.
    """

    armature_object: bpy.types.Object
    time: float
    values: Values
    curves: Curves

    def based(self, samples: Samples) -> Samples:
        """The samples with their base poses replaced."""
        rotations, translations = samples.rig.rotations.copy(), samples.rig.translations.copy()
        for j, bone in enumerate(samples.rig.layout.names):
            noted = self.values.get(bone, {})
            if not noted:
                continue
            pose_bone = self.armature_object.pose.bones[bone]
            channel, _ = rotation_channel(pose_bone)
            if channel in noted:
                mode = pose_bone.rotation_mode
                turns = self._channel(bone, channel, samples.frames)
                rotations[:, j] = [rotation_of(mode, values)[:] for values in turns.tolist()]
            if "location" in noted and not pose_bone.bone.use_connect:  # Blender ignores it there
                locations = self._channel(bone, "location", samples.frames)
                translations[:, j] = samples.rig.translations_of(j, locations)
        return samples.posed(rotations, translations)

    def _channel(self, bone: str, name: str, frames: Array) -> Array:
        """(R, K) what a channel holds at R frames; (1, K) where no curve moves it."""
        noted, path = self.values[bone][name], channels.data_path(self.armature_object, bone, name)
        curves = [self.curves.get((path, i)) for i in range(len(noted))]
        if not any(curves):
            return np.array([noted], np.float64)
        values = np.tile(np.array(noted, np.float64), (len(frames), 1))
        for i, curve in enumerate(curves):
            if curve is not None:
                values[:, i] = [curve.evaluate(frame * self.time) for frame in frames.tolist()]
        return values
