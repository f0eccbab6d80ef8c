# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted bones that lie on the ground of their armature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import bpy
import numpy as np
from mathutils import Matrix

from ...maths.batch import Array, Indices, matrices
from ...motion.ground import Ground, grade_of, plane_of, seen_below
from ...motion.retargeting.alignment import shortest
from ...motion.retargeting.feet import heel_from_ball
from ..properties.constraint_values import Constraint
from ..scene.ground import ground_of

SIDE = 0.25
"""Part of a planted bone's length beside it at which its roll is read off the ground."""
LEVEL = 0.3
"""Part of its length that a bone leads along the ground at least for the slope along it to count."""


@dataclass(frozen=True, eq=False)
class PlantSole:
    """The sole of a bone, as the armature stands at rest."""

    # World metres from the ground up to the bone's head; 0 for a bone above its own length, such as a hand.
    height: float
    up: Array  # (3,) the world's Z in the bone's axes
    length: float  # of the bone, world metres
    points: Array  # (P, 3) of the sole from the bone's head, in its axes, world metres
    foot: str  # name of the bone above, if that lies on the ground with a heel; else empty
    heel: Array | None  # (3,) of that from the bone's head, in the axes of the foot; None without one
    clearance: float  # world metres by which it stays above what it swings over


@dataclass(frozen=True, eq=False)
class PlantGround:
    """The ground below planted bones."""

    ground: Ground  # its rows are the frames of the bake
    soles: Mapping[int, PlantSole]  # of the constraints that plant a bone on it
    tops: Array  # (F,) world heights from which it is looked for
    steepest: float  # radians up to which bones are turned to it

    def carried(self, anchor: Array, row: int, rows: Array) -> Array:
        """(R, 4, 4) the anchor (4, 4) of a row at other rows, carried by moving ground."""
        carried = np.tile(anchor, (len(rows), 1, 1))
        if self.ground.moves:
            carried[:, :3, 3], turns = self.ground.carried(anchor[:3, 3], row, rows)
            axes = matrices(np.ascontiguousarray(turns.T)).transpose(2, 0, 1)
            carried[:, :3, :3] = axes @ anchor[:3, :3]
        return carried

    def heights(self, points: Array, rows: Indices) -> Array:
        """(R, P) heights of the ground below points (R, P, 3) at rows; minus infinity where there is none."""
        heights = seen_below(self.ground, points, self.tops[rows, None], rows)
        return np.where(np.isnan(heights), -np.inf, heights)

    def lying(self, anchor: Array, row: int, c: int, is_held: bool) -> Array:
        """The anchor (4, 4) with its sole on the surface, turned to its slope; unchanged over a hole.

        Args:
            row: of the bake's frames.
            is_held: whether its rotation is held, flat on the ground; else the slope turns its animation.
        """
        sole, start = self.soles[c], anchor[:3, 3]
        axes = anchor[:3, :3] / np.linalg.norm(anchor[:3, :3], axis=0)
        ahead, size = axes[:, 1] * (1.0, 1.0, 0.0), float(np.linalg.norm(axes[:2, 1]))
        ahead = ahead / size if size > 0.0 else np.array((1.0, 0.0, 0.0))
        left, side = np.array((-ahead[1], ahead[0], 0.0)), SIDE * sole.length
        reach = max(size, LEVEL) * sole.length
        places = start + np.stack((0.0 * ahead, reach * ahead, side * left, -side * left))
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
        up = axes @ sole.up if is_held else np.array((0.0, 0.0, 1.0))
        lying = anchor.copy()
        lying[:3, :3] = matrices(shortest(up[None], plane[None]).T)[..., 0] @ anchor[:3, :3]
        lying[2, 3] = heights[0] + sole.height * float(np.linalg.norm(plane))
        return lying


GroundNear: TypeAlias = Callable[[Array, float], Ground | None]
"""Gives the ground near points (P, 3) of the world, within metres of them; None without any there."""


def plant_ground(
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    heads: Mapping[str, Array],
    root_bone: str,
    rest: Matrix,
    ground_near: GroundNear,
) -> PlantGround | None:
    """The ground below the planted bones of a bake; None if no constraint lies on it.

    Args:
        armature_object: the original object.
        heads: (F, 3) of animated planted bones and the root bone, world metres.
        root_bone: carries them.
        rest: armature space to world, as the armature stands at rest.
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
    walk = armature_object.ccd_rig.walk
    soles = {
        c: _sole(armature_object, constraints[c], root_bone, rest, float(walk.clearance)) for c in planting
    }
    tops = np.maximum(heads[root_bone][:, 2], points[..., 2].max(axis=1))
    return PlantGround(ground, soles, tops, float(walk.steepest))


def _sole(
    armature_object: bpy.types.Object,
    constraint: Constraint,
    root_bone: str,
    world: Matrix,
    clearance: float,
) -> PlantSole:
    """The sole of a planted bone as the armature stands at rest; `clearance` is in lengths of its leg."""
    low = ground_of(armature_object, world)
    scale = float(np.mean([abs(each) for each in world.to_scale()]))
    bone = armature_object.data.bones[constraint.tip]
    leg = [bone]
    while len(leg) < constraint.chain_length - 1 or not constraint.chain_length:
        parent = leg[-1].parent
        if parent is None or parent.name == root_bone:
            break
        leg.append(parent)
    head, tail = (np.array(world @ end) for end in (bone.head_local, bone.tail_local))
    height, length = float(head[2]) - low, scale * bone.length
    if height > length:
        height = 0.0
    axes = _axes(world, bone)
    down = np.array((0.0, 0.0, -height))
    ends = [down]
    if height > 0.0 and tail[2] < low + length:
        ends.append((tail - head) * (1.0, 1.0, 0.0) + down)
    foot, heel = "", None
    if height > 0.0 and len(leg) > 2:
        ankle = np.array(world @ leg[1].head_local) - head
        behind = heel_from_ball(ankle, -height, scale * sum(each.length for each in leg[2:]))
        if behind[2] < ankle[2]:  # not in the air
            foot, heel = leg[1].name, behind @ _axes(world, leg[1])
    room = clearance * scale * sum(each.length for each in leg[1:] or leg)
    up = axes.T @ np.array((0.0, 0.0, 1.0))
    return PlantSole(height, up, length, np.array(ends) @ axes, foot, heel, room)


def _axes(world: Matrix, bone: bpy.types.Bone) -> Array:
    """(3, 3) unit axes of a bone at rest in the world, as columns."""
    axes = np.array((world @ bone.matrix_local).to_3x3())
    return np.asarray(axes / np.linalg.norm(axes, axis=0))
