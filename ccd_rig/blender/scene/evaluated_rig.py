# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of an evaluated armature object: its place, and the layout of its chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ...errors import RigError
from ...maths.batch import Array, cross, dot, length
from ..properties import constraint_list, coupled_offsets, joints
from ..properties.constraint_values import Constraint, Kind
from ..properties.joints import masses
from ..rig import armature
from ..rig.armature import RigLayout

FLAT = 1e-8  # a length of an axis of the armature object below this cannot be inverted in float32


def rig_layout(
    armature_object: bpy.types.Object, seen: bpy.types.Object, constraints: Sequence[Any], fixed: str = ""
) -> RigLayout:
    """The layout of the constraints' bones.

    Args:
        armature_object: the original object, which carries the settings of joints.
        seen: itself, or an evaluated copy.
        constraints: those of its list, in either form.
        fixed: name of a bone that stays as it is, whatever chains it is in.

    Raises:
        CCDRigError: as `armature.layout`, and for settings that contradict one another.
    """
    chains = [(each.tip, getattr(each, "body_length", 0) or each.chain_length) for each in constraints]
    bones = [
        bone.name for tip, length in chains for bone in constraint_list.chain(armature_object, tip, length)
    ]
    settings = joints.joint_settings(armature_object, list(dict.fromkeys(bones)))
    for name in coupled_offsets.followers(armature_object, settings):
        offsets = coupled_offsets.coupled_offsets(armature_object.pose.bones[name])
        settings[name] = {"stiffness": 1.0, "coupled_offsets": offsets}
    if fixed in settings:
        settings[fixed] = {"stiffness": 1.0, "mass": settings[fixed]["mass"]}
    balances = any(constraint.kind == Kind.BALANCE for constraint in constraints)
    return armature.layout(seen, chains, settings, masses(armature_object) if balances else None)


def own_bones(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint]
) -> list[tuple[bpy.types.Object, str]]:
    """The ends of all that is read of the armature: what is above them is evaluated with them."""
    bones = [constraint.tip for constraint in constraints]
    if any(constraint.kind == Kind.BALANCE for constraint in constraints):
        bones += masses(armature_object)
    chains = {
        bone.name
        for constraint in constraints
        for bone in constraint_list.chain(
            armature_object, constraint.tip, constraint.body_length or constraint.chain_length
        )
    }
    bones += coupled_offsets.followers(armature_object, chains)
    return [(armature_object, bone) for bone in bones]


def is_evaluated(thing: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a depsgraph keeps an object up to date: hidden objects it leaves as they were."""
    return thing.evaluated_get(depsgraph).is_evaluated and thing.visible_get(view_layer=depsgraph.view_layer)


def world_matrices(
    armature_object: bpy.types.Object, frames: Sequence[float], worlds: Sequence[Matrix]
) -> Array:
    """(R, 4, 4) places of the armature object at R frames, in the world; each must lead back as well."""
    matrices = np.array([[*row] for matrix in worlds for row in matrix]).reshape(-1, 4, 4)
    where = f"Armature '{armature_object.name}'"
    good = np.isfinite(matrices).all(axis=(1, 2))
    if not good.all():
        frame = frames[int(np.argmin(good))]
        raise RigError(f"{where} has a place that is not a number at frame {frame:g}: look at its transform")
    sizes, (x, y, z) = length(matrices[:, :3, :3], axis=1), (matrices[:, :3, k] for k in range(3))
    flat = (sizes < FLAT).any(axis=1) | (dot(x, cross(y, z, axis=-1), axis=-1) == 0.0)
    if flat.any():
        frame = frames[int(np.argmax(flat))]
        raise RigError(f"{where} has a scale of 0 at frame {frame:g}: give it another scale")
    return matrices
