# SPDX-License-Identifier: GPL-3.0-or-later
"""What is looked at for a constraint, its target and its pole, and where they are at a frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Vector

from ..errors import RigError
from .aims import AXES, Aim, orthonormal
from .dependence import pole_object, target_object
from .properties import Constraint

FAR = 1e18  # armature space: the squares of lengths above this overflow float32


class Mark(NamedTuple):
    """An object that is looked at, or one of its bones."""

    thing: bpy.types.Object
    bone: str  # its name, or none
    own: bool  # whether the object is the armature itself


class Sight(NamedTuple):
    """What is looked at for one constraint: its target and, if it has one, its pole."""

    row: Constraint
    offset: Vector  # that of the row
    target: Mark | None
    pole: Mark | None

    def things(self) -> tuple[tuple[bpy.types.Object, str], ...]:
        """Objects, each with the name of the bone that is meant, or none."""
        return tuple((mark.thing, mark.bone) for mark in (self.target, self.pole) if mark is not None)


def sights_of(armature_object: bpy.types.Object, constraints: Sequence[Constraint]) -> list[Sight]:
    def mark(thing: bpy.types.Object | None, bone: str) -> Mark | None:
        return None if thing is None else Mark(thing, bone, thing == armature_object)

    return [
        Sight(
            row,
            Vector(row.offset),
            mark(target_object(row), row.target_bone),
            mark(pole_object(row), row.pole_bone),
        )
        for row in constraints
    ]


def things_of(sights: Sequence[Sight]) -> list[tuple[bpy.types.Object, str]]:
    return [thing for sight in sights for thing in sight.things()]


def aim_at(
    evaluated: bpy.types.Object,
    to_armature: Matrix,
    sight: Sight,
    graphs: tuple[bpy.types.Depsgraph, bpy.types.Depsgraph],
    frame: float,
) -> Aim:
    """Where a constraint's targets are, in armature space.

    Args:
        evaluated: the armature object.
        to_armature: from world space to armature space.
        sight: the constraint with its objects, original.
        graphs: those that evaluate the target and the pole.
    """
    row, offset, target, pole = sight
    if target is None:  # a bone that is planted where it is
        return Aim(Vector())
    frame_of = _frame(evaluated, to_armature, target, graphs[0])
    point = frame_of @ offset
    x, y, z = point
    if not (abs(x) < FAR and abs(y) < FAR and abs(z) < FAR):  # what is not a number in the frame is so here
        what = "too far away to compute with" if all(map(math.isfinite, point)) else "not a number"
        bone = f"bone '{row.target_bone}' of " if row.target_bone else ""
        raise RigError(
            f"Constraint '{row.name}': target {bone}'{target.thing.name}' has a place that is {what} at "
            f"frame {frame:g}: look at its transform and keys, and at the constraint's offset"
        )
    rotation = direction = bend = None
    if row.kind != "BALANCE" and row.rotation != "NONE":
        axes: Any = frame_of.to_3x3()
        if row.rotation == "ORIENTATION":
            rotation = orthonormal(axes)
        else:
            # A direction goes through shear and mirroring as it is: in the world it is the target's own.
            direction = axes @ AXES[row.target_axis]
            direction = direction.normalized() if direction.length > 0.0 else None
        if rotation is None and direction is None:
            raise RigError(
                f"Constraint '{row.name}': target '{target.thing.name}' has a scale of 0 at frame {frame:g}, "
                "so it has no rotation: give it another scale"
            )
    if pole is not None:
        bend = _frame(evaluated, to_armature, pole, graphs[1]).to_translation()
        if not all(map(math.isfinite, bend)):
            raise RigError(
                f"Constraint '{row.name}': pole target '{pole.thing.name}' has a place that is not a number "
                f"at frame {frame:g}: look at its transform and keys"
            )
    return Aim(point, rotation, direction, bend)


def _frame(
    evaluated: bpy.types.Object, to_armature: Matrix, mark: Mark, depsgraph: bpy.types.Depsgraph
) -> Any:
    """Of an object or one of its bones, in armature space."""
    # The armature's own bones are where they should be already, which saves the way through the world.
    seen = evaluated if mark.own else mark.thing.evaluated_get(depsgraph)
    matrix: Any = Matrix.Identity(4) if mark.own else to_armature @ seen.matrix_world
    return matrix @ seen.pose.bones[mark.bone].matrix if mark.bone else matrix
