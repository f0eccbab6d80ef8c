# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a pole stands: on the side to which a knee or an elbow bends."""

from __future__ import annotations

import math
from typing import Any

import bpy
from mathutils import Vector

from ..figures.role import Figure, Kind, Part, Side
from .planned_rows import PlannedRow

BENT = math.sin(math.radians(2.0))
"""Part of a limb's length by which its knee lies aside from which the bend says where the pole is."""
STRAIGHT = 0.0025
"""The same below which nothing tells a side: a bend of 0.6 degrees, see `solvers.problem_tables.STRAIGHT`."""
ONE_WAY = 0.6
"""Part of the largest bend that all bends together must be, for a limb to have one side; legs of animals bend
to both."""
KNEES = (Part.FOOT, Part.TOE)
"""Limbs that bend to the front, as a human's leg; others bend to the back, as an arm or a front leg."""
DISTANCE = 0.75
"""Part of the limb's length by which a pole stands away from the knee or elbow."""


def pole_place(evaluated: bpy.types.Object, row: PlannedRow, front: Vector | None) -> Vector | None:
    """World point for a pole; None for a limb that bends to both sides, or whose side nothing tells.

    The pole stands where `skeleton.bends.pole_bend` looks: on the side of the sum of all bends.

    Args:
        evaluated: the armature as it is posed.
        row: a constraint with a bend.
        front: where the figure faces, world, for limbs that are straight.
    """
    line, asides = _bends(evaluated, row)
    if not asides:
        return None
    aside: Vector = sum(asides, Vector())
    largest = max(each.length for each in asides)
    if largest < BENT * line.length:
        if front is None:
            return None
        knee = _knee(row, front)
        aside = knee - knee.project(line)
    elif aside.length < ONE_WAY * largest:
        return None
    knee_place = evaluated.matrix_world @ evaluated.pose.bones[row.bend].head
    return knee_place + DISTANCE * line.length * aside.normalized() if aside.length > 1e-9 else None


def needs_pole(evaluated: bpy.types.Object, row: PlannedRow, front: Vector | None) -> bool:
    """Whether a limb's pose does not tell to which side it bends, or tells the wrong one by a little."""
    line, asides = _bends(evaluated, row)
    largest = max((each.length for each in asides), default=0.0)
    if largest < STRAIGHT * line.length:
        return True
    if front is None or largest >= BENT * line.length:
        return False
    aside: Vector = sum(asides, Vector())
    return aside.dot(_knee(row, front)) <= 0.0


def _knee(row: PlannedRow, front: Vector) -> Vector:
    """Where a limb's knee or elbow points, for a figure that faces a way."""
    return front if row.role.part in KNEES else -front


def _bends(evaluated: bpy.types.Object, row: PlannedRow) -> tuple[Vector, list[Vector]]:
    """The line from a limb's root to its end, and how far each joint between lies beside it, world."""
    world, tip = evaluated.matrix_world, evaluated.pose.bones[row.tip]
    chain = [tip]
    while chain[-1].name != row.top:
        chain.append(chain[-1].parent)
    heads = [world @ bone.head for bone in reversed(chain)]
    start, end = heads[0], world @ (tip.tail if row.use_tail else tip.head)
    line = end - start
    if line.length < 1e-9:
        return line, []
    inner = heads[1:] if row.use_tail else heads[1:-1]
    return line, [(place - start) - (place - start).project(line) for place in inner]


def front_of(figure: Figure, evaluated: bpy.types.Object) -> Vector | None:
    """Where a figure faces, world; None where it has no pair of legs or arms."""
    bones, world = evaluated.pose.bones, evaluated.matrix_world.to_3x3()
    up = Vector((0.0, 0.0, 1.0))
    hips, head = figure.bones(Part.HIPS), figure.bones(Part.HEAD)
    if figure.kind is Kind.HUMAN and hips and head:
        up = world @ (bones[head[0]].head - bones[hips[0]].head)
    for part in (Part.THIGH, Part.UPPER_ARM, Part.LEG):
        pair = [figure.bones(part, side) for side in (Side.LEFT, Side.RIGHT)]
        if all(pair):
            left, right = (bones[names[0]].head for names in pair)
            front: Any = (world @ (left - right)).cross(up)
            if world.is_negative:  # mirrored, its left is on the other side
                front.negate()
            return front.normalized() if front.length > 1e-9 else None
    return None
