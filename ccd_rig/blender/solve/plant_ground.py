# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted bones that lie on the ground of their armature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import bpy
import numpy as np

from ...maths.batch import Array, matrices
from ...motion.ground import Ground, grade_of, plane_of
from ...motion.retargeting.alignment import shortest
from ..properties.constraint_values import Constraint
from ..scene.ground import ground_of
from .planting import PlantAnchor

SIDE = 0.25
"""Part of a planted bone's length beside it at which its roll is read off the ground."""
LEVEL = 0.3
"""Part of its length that a bone leads along the ground at least for the slope along it to count."""


@dataclass(frozen=True, eq=False)
class PlantSole:
    """The sole of a bone, as the armature stands at rest.

    Attributes:
        height: world metres from the ground up to the bone's head; 0 for a bone above its own length, such as
            a hand.
        up: (3,) the world's Z in the bone's axes.
        length: of the bone, world metres.
    """

    height: float
    up: Array
    length: float


@dataclass(frozen=True, eq=False)
class PlantGround:
    """The ground below planted bones.

    Attributes:
        ground: its rows are the frames of the bake.
        soles: of the constraints that plant a bone on it.
        tops: (F,) world heights from which it is looked for.
        steepest: radians up to which bones are turned to it.
    """

    ground: Ground
    soles: Mapping[int, PlantSole]
    tops: Array
    steepest: float

    def carried(self, anchor: PlantAnchor, row: int, rows: Array) -> list[PlantAnchor]:
        """The anchor of a row at other rows, carried by moving ground."""
        if not self.ground.moves:
            return [anchor] * len(rows)
        heads, turns = self.ground.carried(anchor.head, row, rows)
        axes = matrices(np.ascontiguousarray(turns.T)).transpose(2, 0, 1) @ anchor.axes
        return [PlantAnchor(head, columns) for head, columns in zip(heads, axes, strict=True)]

    def lying(self, anchor: PlantAnchor, row: int, c: int, is_held: bool) -> PlantAnchor:
        """The anchor with its sole on the surface, turned to its slope; unchanged over a hole.

        Args:
            anchor: of the bone.
            row: of the bake's frames.
            c: the constraint.
            is_held: whether its rotation is held, flat on the ground; else the slope turns its animation.
        """
        sole, axes = self.soles[c], anchor.axes / np.linalg.norm(anchor.axes, axis=0)
        ahead, size = axes[:, 1] * (1.0, 1.0, 0.0), float(np.linalg.norm(axes[:2, 1]))
        ahead = ahead / size if size > 0.0 else np.array((1.0, 0.0, 0.0))
        left, side = np.array((-ahead[1], ahead[0], 0.0)), SIDE * sole.length
        reach = max(size, LEVEL) * sole.length
        places = anchor.head + np.stack((0.0 * ahead, reach * ahead, side * left, -side * left))
        places[:, 2] = self.tops[row]
        heights, normals = self.ground.below(places, np.full(4, row))
        if not np.isfinite(heights[0]):  # all of the figure may be below it
            places[:, 2] = np.inf
            heights, normals = self.ground.below(places, np.full(4, row))
        if not np.isfinite(heights[0]):
            return anchor
        lean = float(heights[1] - heights[0]) / reach
        roll = float(heights[2] - heights[3]) / (2.0 * side)
        grade = grade_of(normals[0], ahead, left, (lean, roll), self.steepest)
        plane = plane_of(grade, ahead, left)
        head = np.array((*anchor.head[:2], heights[0] + sole.height * float(np.linalg.norm(plane))))
        start = axes @ sole.up if is_held else np.array((0.0, 0.0, 1.0))
        turn = matrices(shortest(start[None], plane[None]).T)[..., 0]
        return PlantAnchor(head, turn @ anchor.axes)


GroundNear: TypeAlias = Callable[[Array, float], Ground | None]
"""Gives the ground near points (P, 3) of the world, within metres of them; None without any there."""


def plant_ground(
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    heads: Mapping[str, Array],
    root_bone: str,
    ground_near: GroundNear,
) -> PlantGround | None:
    """The ground below the planted bones of a bake; None if no constraint lies on it.

    Args:
        armature_object: the original object.
        constraints: of the bake.
        heads: (F, 3) of animated planted bones and the root bone, world metres.
        root_bone: carries them.
        ground_near: gives the ground; its rows are the frames.

    Raises:
        RigError: no ground is chosen, or it has no faces.
    """
    planting = [c for c, each in enumerate(constraints) if each.kind.plants and each.on_ground]
    if not planting:
        return None
    names = [constraints[c].tip for c in planting]
    points = np.stack([heads[name] for name in names], axis=1)
    room = max(float(np.linalg.norm(points - heads[root_bone][:, None], axis=2).max()), 1e-3)
    ground = ground_near(points.reshape(-1, 3), room)
    if ground is None:
        return None
    world, low = armature_object.matrix_world, ground_of(armature_object)
    scale = float(np.mean([abs(each) for each in world.to_scale()]))
    soles = {}
    for c, name in zip(planting, names, strict=True):
        bone = armature_object.data.bones[name]
        axes = np.array((world @ bone.matrix_local).to_3x3())
        axes = axes / np.linalg.norm(axes, axis=0)
        height, length = float((world @ bone.head_local).z) - low, scale * bone.length
        up = axes.T @ np.array((0.0, 0.0, 1.0))
        soles[c] = PlantSole(height if height <= length else 0.0, up, length)
    tops = np.maximum(heads[root_bone][:, 2], points[..., 2].max(axis=1))
    return PlantGround(ground, soles, tops, float(armature_object.ccd_rig.walk.steepest))
