# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets and poles as Pose Mode shows them: where they are on the screen, which lies below the pointer."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from ..figures import words
from ..figures.role import Side
from ..properties.constraint_values import Kind
from ..properties.new_targets import Target
from ..scene.targets import FAR
from . import rows

DISC, RING = 7.0, 16.0
"""Radii of a mark and of the ring that turns it [pixels at interface scale 1]."""
REACH = 3.0
"""Pixels beside a mark or ring that count as it."""

Floats = NDArray[np.float64]


class TargetMark(NamedTuple):
    """A target or pole of a constraint.

    Attributes:
        row: place of the constraint in the list; of several with one target the active one, or the first.
        target: the object or bone.
        point: where the constraint looks, its offset included, world.
        is_pole: whether it is a pole.
        turns: whether it has a ring: the constraint is the active one and asks for its rotation.
        is_active: whether the constraint is the active one.
        side: of the constraint's bone.
    """

    row: int
    target: Target
    point: Vector
    is_pole: bool
    turns: bool
    is_active: bool
    side: Side


class Hit(NamedTuple):
    """What lies below the pointer: a mark by its place in the list, or its ring."""

    place: int
    is_ring: bool


def target_marks(armature_object: bpy.types.Object, shown: Container[str]) -> list[TargetMark]:
    """The targets and poles of constraints that are on, each once, those of the active constraint last.

    Args:
        armature_object: carries the constraints.
        shown: names of the bones that the view shows.
    """
    group = armature_object.ccd_rig
    active = group.active_index
    marks: dict[tuple[Target, bool, Vector], TargetMark] = {}
    for place, row in enumerate(group.constraints):
        if not row.enabled or row.tip not in shown:
            continue
        side = _side(row.tip)
        ends = [(row.target, row.target_bone, rows.target_point(row), False)]
        if row.kind == Kind.REACH and row.pole_target is not None:
            ends.append((row.pole_target, row.pole_bone, _pole_point(row), True))
        for thing, bone, point, is_pole in ends:
            if point is None or not all(abs(part) < FAR for part in point):
                continue
            target = Target(thing, bone)
            # What an offset shifts for one constraint alone is a mark of its own.
            key = target, is_pole, point.copy().freeze()
            is_active = place == active
            turns = is_active and not is_pole and row.kind == Kind.REACH and row.rotation != "NONE"
            if key not in marks or is_active:
                marks[key] = TargetMark(place, target, point, is_pole, turns, is_active, side)
    return sorted(marks.values(), key=lambda mark: mark.is_active)


def _pole_point(row: Any) -> Vector | None:
    if not row.pole_bone:
        return Vector(row.pole_target.matrix_world.translation)
    pose = row.pole_target.pose
    bone = None if pose is None else pose.bones.get(row.pole_bone)
    return None if bone is None else row.pole_target.matrix_world @ bone.head


@lru_cache(maxsize=4096)
def _side(name: str) -> Side:
    return words.read(name).side


def places_on_screen(points: Sequence[Vector], perspective: Matrix, size: tuple[int, int]) -> Floats:
    """(n, 2) pixels of a region where world points are seen; not a number behind the viewer.

    Args:
        points: world.
        perspective: the view's, from world to clip space.
        size: of the region, pixels.
    """
    if not points:
        return np.empty((0, 2))
    matrix = np.array(perspective)
    clip = np.array([(*point, 1.0) for point in points]) @ matrix.T
    depth = np.where(clip[:, 3] > 1e-9, clip[:, 3], np.nan)
    return (0.5 + 0.5 * clip[:, :2] / depth[:, None]) * np.array(size, dtype=np.float64)


def hit(
    marks: Sequence[TargetMark], places: Floats, pointer: tuple[float, float], scale: float
) -> Hit | None:
    """The mark or ring below the pointer; of several marks the nearest, and a mark before any ring.

    Args:
        marks: what is shown.
        places: where, (n, 2) pixels.
        pointer: pixels.
        scale: of the interface.
    """
    if not marks:
        return None
    away = np.nan_to_num(np.hypot(*(places - np.array(pointer)).T), nan=np.inf)
    nearest = int(np.argmin(away))
    if away[nearest] <= scale * (DISC + REACH):
        return Hit(nearest, False)
    off_ring = np.where([mark.turns for mark in marks], abs(away - scale * RING), np.inf)
    nearest = int(np.argmin(off_ring))
    return Hit(nearest, True) if off_ring[nearest] <= scale * REACH else None
