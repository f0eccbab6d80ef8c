# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets and poles of a figure's constraints."""

from __future__ import annotations

from typing import Any

import bpy
from mathutils import Vector

from ..properties import constraint_list
from ..properties.new_targets import NewTarget, Target
from ..scene.targets import orthonormal
from .planned_rows import PlannedRow

ROOM = 1.0
"""Part of the figure's size by which a bone that carries it may be shifted by its target."""


def add_row(armature_object: bpy.types.Object, planned: PlannedRow, plants: bool) -> Any:
    """A constraint that lacks its target."""
    row = constraint_list.add(armature_object, planned.tip, planned.tip)
    chain = [each.name for each in constraint_list.chain(armature_object, planned.tip)]
    row.chain_length = chain.index(planned.top) + 1
    row.use_tail, row.use_position = planned.use_tail, planned.reaches
    if planned.copies_rotation:
        row.rotation = "ORIENTATION"
    if planned.slides and not plants:  # planted feet shift the bone that they carry
        _let_slide(armature_object, planned.tip)
    return row


def new_target(evaluated: bpy.types.Object, planned: PlannedRow, carrier: Target | int | None) -> NewTarget:
    """A target at the bone of a constraint, turned as the bone is."""
    bone = evaluated.pose.bones[planned.tip]
    axes: Any = (evaluated.matrix_world @ bone.matrix).to_3x3()
    return NewTarget(
        f"Target {planned.tip}",
        planned.tip,
        evaluated.matrix_world @ (bone.tail if planned.use_tail else bone.head),
        orthonormal(axes) if planned.copies_rotation else None,
        "CUBE" if planned.copies_rotation else "SPHERE",  # a cube shows how it is turned
        planned.role.side,
        carrier=carrier,
    )


def new_pole(planned: PlannedRow, place: Vector, carrier: Target | int | None) -> NewTarget:
    """A pole of a constraint; at rest it stands beside the bone that begins at the knee or elbow."""
    side = planned.role.side
    return NewTarget(
        f"Pole {planned.tip}", planned.tip, place, None, "PLAIN_AXES", side, planned.bend, carrier
    )


def _let_slide(armature_object: bpy.types.Object, name: str) -> None:
    """Let a bone be shifted to all sides as far as the figure is large."""
    bone = armature_object.pose.bones[name]
    points = [point for each in armature_object.data.bones for point in (each.head_local, each.tail_local)]
    spans = [max(point[k] for point in points) - min(point[k] for point in points) for k in range(3)]
    room = ROOM * Vector(spans).length
    joint = bone.ccd_rig
    joint.use_slide = (True, True, True)
    joint.slide_lower, joint.slide_upper = (-room,) * 3, (room,) * 3
