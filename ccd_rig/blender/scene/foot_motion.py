# SPDX-License-Identifier: GPL-3.0-or-later
"""How planted bones move as a range of frames plays, and when they are down.

A bone is looked at where a Plant holds it, at its head. In the shapes F counts the frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import bpy
import numpy as np

from ...errors import RigError
from ...motion.contacts import Array, ContactThresholds, Phase, contact_phases, ground_velocity
from ..properties import constraint_list
from ..properties.constraint_values import Constraint
from .evaluation import playback


@dataclass(frozen=True)
class FootMotion:
    """The bones of some constraints over a range.

    Attributes:
        frames: (F,) in a row.
        times: (F,) seconds.
        heads: by constraint, (F, 3) of its bone's head, world metres.
        legs: by constraint, how long its leg is at rest, world metres.
    """

    frames: range
    times: Array
    heads: Mapping[str, Array]
    legs: Mapping[str, float]

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
        legs = {each.name: _leg(armature_object, each) for each in constraints}
        tips = [armature_object.pose.bones.find(each.tip) for each in constraints]
        heads = np.empty((len(constraints), len(frames), 3))
        with playback(scene, armature_object, constraints) as play:
            for f, frame in enumerate(frames):
                shown = play(float(frame), False, False)
                heads[:, f] = (shown.world @ shown.matrices[tips])[:, :3, 3]
        seconds = scene.render.fps_base / scene.render.fps
        times = np.arange(len(frames)) * seconds
        names = [each.name for each in constraints]
        return cls(frames, times, dict(zip(names, heads, strict=True)), legs)

    def ground_velocity(self, thresholds: ContactThresholds | None) -> Array:
        """(3,) metres per second of the ground; with thresholds, 0 if a foot that slow would be at rest."""
        velocity = ground_velocity(list(self.heads.values()), self.times)
        if thresholds is None:
            return velocity
        leg = sum(self.legs.values()) / len(self.legs)
        is_still = float(np.linalg.norm(velocity)) <= thresholds.speed * leg
        return np.zeros(3) if is_still else velocity

    def phases(self, name: str, velocity: Array, thresholds: ContactThresholds) -> list[Phase]:
        """The contacts of one constraint's bone, by frames; `velocity` is that of the ground."""
        found = contact_phases(self.heads[name], self.times, self.legs[name], velocity, thresholds)
        return [Phase(self.frames[first], self.frames[last]) for first, last in found]


def _leg(armature_object: bpy.types.Object, constraint: Any) -> float:
    """World metres along the heads of a planted bone's chain, from below the one that carries the figure."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if not chain:
        raise RigError(
            f"Constraint '{constraint.name}': bone '{constraint.tip}' is not in armature "
            f"'{armature_object.name}' (renamed or deleted?): choose its bone again"
        )
    between = chain[:-1] if len(chain) > 2 else chain
    size = armature_object.matrix_world.median_scale
    joints = [bone.bone.head_local for bone in between]
    length = size * math.fsum((b - a).length for a, b in pairwise(joints))
    if not length > 0.0:
        raise RigError(
            f"Constraint '{constraint.name}': no leg hangs between '{constraint.tip}' and "
            f"'{chain[-1].name}': set Chain Length to end at the bone that carries the figure"
        )
    return length
