# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a pole keeps a chain on the side to which it is bent at a frame."""

from __future__ import annotations

from typing import NamedTuple

import bpy
import numpy as np
from mathutils import Vector

from ...errors import RigError
from ..properties import constraint_list
from ..properties.constraint_values import Constraint
from ..scene.evaluation import playback

BENT = 1e-3
"""Part of its length by which a chain is off straight at least, to have a side."""


class PolePlace(NamedTuple):
    """Where a pole belongs.

    Attributes:
        bone: the parent of the chain, which carries the pole; empty for the armature object itself.
        location: from there: from the tail of the bone along its axes, or in armature space.
    """

    bone: str
    location: Vector


def pole_place(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, constraint: Constraint, frame: float
) -> PolePlace:
    """A chain's length off the middle of its line from root to end, on the side of its bend.

    Args:
        scene: in which the armature plays.
        armature_object: carries the constraint.
        constraint: whose chain.
        frame: at which the bend is looked at.

    Raises:
        RigError: the chain is straight there.
    """
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    with playback(scene, armature_object, [constraint]) as playing:
        matrices = playing.pose(frame)[0].astype(np.float64)
    places = [matrices[armature_object.pose.bones.find(bone.name)] for bone in chain]
    heads = np.array([place[:3, 3] for place in places])
    end = heads[0] + (places[0][:3, 1] * chain[0].bone.length if constraint.use_tail else 0.0)
    root = heads[-1]
    length = sum(bone.bone.length for bone in chain)
    line = end - root
    line /= max(float(np.linalg.norm(line)), 1e-12)
    inner = heads[:-1] - root
    aside = (inner - np.outer(inner @ line, line)).mean(axis=0)
    size = float(np.linalg.norm(aside))
    if size < BENT * length:
        raise RigError(
            f"Constraint '{constraint.name}': its chain is straight at frame {frame:g}, so it has no side: "
            "choose a Pole Target yourself"
        )
    point = 0.5 * (root + end) + aside / size * length
    parent = chain[-1].parent
    if parent is None:
        return PolePlace("", Vector(point))
    carrier = matrices[armature_object.pose.bones.find(parent.name)]
    local = np.linalg.solve(carrier, np.append(point, 1.0))[:3]
    return PolePlace(parent.name, Vector(local) - Vector((0.0, parent.bone.length, 0.0)))
