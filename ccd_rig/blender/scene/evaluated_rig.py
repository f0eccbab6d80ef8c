# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of an evaluated armature object: its place, its chains and their pose, and influences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import bpy
from mathutils import Matrix

from ...errors import RigError
from ..properties import constraint_list, coupled_offsets, joints
from ..properties.constraint_values import Constraint, Kind
from ..properties.joints import masses
from ..rig import armature
from ..rig.armature import RigLayout, RigReading
from .influences import in_force, unplanted

FLAT = 1e-8  # a length of an axis of the armature object below this cannot be inverted in float32

InfluenceReader = Callable[[bpy.types.Object, float], tuple[tuple[float, ...], tuple[float, ...]]]
"""Reads influences of an armature object, original or evaluated, at a frame; see `influence_reader`."""


def indices_of(armature_object: bpy.types.Object, constraints: Sequence[Constraint]) -> tuple[int, ...]:
    """Where the constraints are in the armature's list."""
    names = [constraint.name for constraint in armature_object.ccd_rig.constraints]
    for constraint in constraints:
        if constraint.name not in names:
            where = f"Armature '{armature_object.name}'"
            raise RigError(f"{where} has no constraint '{constraint.name}': choose another one")
    return tuple(names.index(constraint.name) for constraint in constraints)


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
    chains = [(constraint.tip, constraint.chain_length) for constraint in constraints]
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
        for bone in constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    }
    bones += coupled_offsets.followers(armature_object, chains)
    return [(armature_object, bone) for bone in bones]


def is_evaluated(thing: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a depsgraph keeps an object up to date: hidden objects it leaves as they were."""
    return thing.evaluated_get(depsgraph).is_evaluated and thing.visible_get(view_layer=depsgraph.view_layer)


def place_reader() -> Callable[[bpy.types.Object, float], tuple[Matrix, Matrix]]:
    """A function that gives an armature object's matrix and its inverse; while it stays, the same ones."""
    known: list[Matrix] = []

    def read(evaluated: bpy.types.Object, frame: float) -> tuple[Matrix, Matrix]:
        if not known or evaluated.matrix_world != known[0]:
            matrix = world_matrix(evaluated, frame)
            known[:] = matrix, matrix.inverted()
        return known[0], known[1]

    return read


def world_matrix(evaluated: bpy.types.Object, frame: float) -> Matrix:
    """Of the armature object; it must lead back as well."""
    matrix = evaluated.matrix_world.copy()
    where = f"Armature '{evaluated.name}'"
    if not _is_finite(matrix):
        raise RigError(f"{where} has a place that is not a number at frame {frame:g}: look at its transform")
    if min(column.to_3d().length for column in matrix.col[:3]) < FLAT or matrix.determinant() == 0.0:
        raise RigError(f"{where} has a scale of 0 at frame {frame:g}: give it another scale")
    return matrix


def influence_reader(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], indices: Sequence[int]
) -> InfluenceReader:
    """A function that reads the influences of constraints, those with these indices, as they count.

    It takes the armature object, original or evaluated, and the frame. Its second result is
    `FrameSample.unplanted`.
    """
    plants = any(constraint.kind is Kind.PLANT for constraint in constraints)

    def read(seen: bpy.types.Object, frame: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        listed = seen.ccd_rig.constraints
        influences = tuple([listed[index].influence for index in indices])
        if not all(map(math.isfinite, influences)):  # the property's range does not keep NaN out
            wrong = next(
                index for index, value in zip(indices, influences, strict=True) if not math.isfinite(value)
            )
            raise RigError(
                f"Constraint '{listed[wrong].name}': influence is not a number at frame {frame:g}: set it to "
                "0 to 1, and look at its keys"
            )
        if not plants:
            return influences, ()
        return in_force(armature_object, constraints, influences), unplanted(constraints, influences)

    return read


def pose_reader(layout: RigLayout) -> Callable[[bpy.types.Object, float], RigReading]:
    """A function that reads the pose of a frame; as long as nothing changes, it gives the same reading."""
    look = layout.watch()
    known: bytes | None = None
    reading: RigReading | None = None

    def read(evaluated: bpy.types.Object, frame: float) -> RigReading:
        nonlocal known, reading
        seen = look(evaluated.pose.bones)
        if reading is None or seen.whole != known:
            try:
                known, reading = seen.whole, layout.read(evaluated, seen, reading)
            except RigError as error:  # what is wrong with a bone there is said with the frame
                raise RigError(f"frame {frame:g}: {error}") from error
        return reading

    return read


def _is_finite(matrix: Matrix) -> bool:
    return all(math.isfinite(value) for row in matrix for value in row)
