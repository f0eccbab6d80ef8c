# SPDX-License-Identifier: GPL-3.0-or-later
"""How planted bones move as a range of frames plays, and when they are down.

A bone is looked at where a Plant holds it, at its head. In the shapes F counts the frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ...errors import RigError
from ...maths.batch import Array
from ...motion.contacts import ContactThresholds, Phase, contact_phases, ground_velocity
from ..properties import constraint_list
from ..properties.constraint_values import Constraint
from .played_frames import playback

SAME_FOOT = 0.4
"""Leg lengths up to which bones that never part are taken for those of one foot."""


@dataclass(frozen=True)
class FootMotion:
    """The bones of some constraints over a range.

    Attributes:
        frames: (F,) in a row.
        times: (F,) seconds.
        heads: by constraint, (F, 3) of its bone's head, world metres.
        leg: world metres, how far the nearest foot gets from the bone that carries the figure.
    """

    frames: range
    times: Array
    heads: Mapping[str, Array]
    leg: float

    @classmethod
    def of(
        cls,
        scene: bpy.types.Scene,
        armature_object: bpy.types.Object,
        constraints: Sequence[Constraint],
        frames: range,
    ) -> FootMotion:
        """As Blender plays it; the scene stays as it is.

        Raises:
            RigError: a bone is missing, its leg has no length, or something cannot be evaluated.
        """
        count, bones = len(constraints), armature_object.pose.bones
        names = [each.tip for each in constraints]
        names += [_root_bone(armature_object, each) for each in constraints]
        places = [bones.find(name) for name in names]
        heads = np.empty((2 * count, len(frames), 3))
        with playback(scene, armature_object, constraints) as playing:
            for f, frame in enumerate(frames):
                matrices, world = playing.pose(float(frame))
                heads[:, f] = (world @ matrices[places])[:, :3, 3]
        leg = float(np.linalg.norm(heads[:count] - heads[count:], axis=2).max(axis=1).min())
        if not leg > 0.0:
            raise RigError(f"'{names[0]}' never leaves '{names[count]}': set Chain Length to end at the hips")
        seconds = scene.render.fps_base / scene.render.fps
        times = np.arange(len(frames)) * seconds
        feet = zip((each.name for each in constraints), heads[:count], strict=True)
        return cls(frames, times, dict(feet), leg)

    def ground_velocity(self, thresholds: ContactThresholds, moves: bool) -> Array:
        """(3,) metres per second of the ground, see `motion.contacts`."""
        return ground_velocity(list(self.heads.values()), self.times, self.leg, thresholds, moves)

    def phases(self, name: str, velocity: Array, thresholds: ContactThresholds) -> list[Phase]:
        """The contacts of one constraint's bone, by frames; `velocity` is that of the ground."""
        found = contact_phases(
            self.heads[name], self.times, self.leg, velocity, thresholds, self._beside(name)
        )
        return [Phase(self.frames[first], self.frames[last]) for first, last in found]

    def _beside(self, name: str) -> Array | None:
        """(F, 3) of the foot that is nearest to one on average; heel and ball of one foot are one foot."""
        own = self.heads[name]
        far = {
            other: float(np.linalg.norm(heads - own, axis=1).mean())
            for other, heads in self.heads.items()
            if other != name and np.linalg.norm(heads - own, axis=1).max() > SAME_FOOT * self.leg
        }
        return self.heads[min(far, key=far.__getitem__)] if far else None


def _root_bone(armature_object: bpy.types.Object, constraint: Any) -> str:
    """Name of the bone that carries the figure over a planted one, for which a chain must lead to it."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if not chain:
        raise RigError(
            f"Constraint '{constraint.name}': bone '{constraint.tip}' is not in armature "
            f"'{armature_object.name}' (renamed or deleted?): choose its bone again"
        )
    if len(chain) == 1:
        raise RigError(
            f"Constraint '{constraint.name}': no leg hangs between '{constraint.tip}' and "
            "the bone that carries the figure: set Chain Length to end at that bone"
        )
    return str(chain[-1].name)
