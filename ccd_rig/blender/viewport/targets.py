# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets in the viewport: marks, and dragging of targets and poles."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ..figures import words
from ..figures.role import Side
from ..properties.constraint_kinds import kind_of
from ..properties.new_targets import Target
from ..rig.rotation_modes import channel_values, rotation_channel
from ..scene.targets import FAR, object_channels
from . import constraints

DISC, RING = 7.0, 16.0
"""Radii of a mark and of the ring that turns it [pixels at interface scale 1]."""
REACH = 3.0
"""Tolerance of a hit beside a mark or ring [pixels at interface scale 1]."""

Floats = NDArray[np.float64]


class TargetMark(NamedTuple):
    """Mark of a target or pole of a constraint.

    Attributes:
        row: index of the constraint; if several share the target, of the active one, else of the first.
        target: the object or bone.
        point: point of the target, offset included, world.
        is_pole: whether it is a pole.
        turns: whether it has a ring: the constraint is active and uses the target's rotation.
        is_active: whether the constraint is active.
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
    """Mark below the pointer, by index, or its ring."""

    place: int
    is_ring: bool


def target_marks(armature_object: bpy.types.Object, shown: Container[str]) -> list[TargetMark]:
    """Return marks of the targets and poles of enabled constraints, each once, the active constraint's last.

    Args:
        armature_object: carries the constraints.
        shown: names of the visible bones.
    """
    group = armature_object.ccd_rig
    active = group.active_index
    marks: dict[tuple[Target, bool, Vector], TargetMark] = {}
    for place, row in enumerate(group.constraints):
        if not row.enabled or row.tip not in shown:
            continue
        side = _side(row.tip)
        ends = [(row.target, row.target_bone, constraints.target_point(row), False)]
        if kind_of(row).reaches and row.pole_target is not None:
            ends.append((row.pole_target, row.pole_bone, _pole_point(row), True))
        for thing, bone, point, is_pole in ends:
            if point is None or not all(abs(value) < FAR for value in point):
                continue
            target = Target(thing, bone)
            # Constraints that share a target but differ in the offset have separate marks.
            key = target, is_pole, point.copy().freeze()
            is_active = place == active
            turns = is_active and not is_pole and kind_of(row).reaches and row.rotation != "NONE"
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
    """Project world points to (n, 2) pixels of a region; NaN behind the viewer.

    Args:
        points: world.
        perspective: matrix of the view, from world to clip space.
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
    """Return the nearest mark below the pointer, else the nearest ring, else None.

    Args:
        marks: visible marks.
        places: of the marks, (n, 2) pixels.
        pointer: pixels.
        scale: of the interface.
    """
    if not marks:
        return None
    distances = np.nan_to_num(np.hypot(*(places - np.array(pointer)).T), nan=np.inf)
    nearest = int(np.argmin(distances))
    if distances[nearest] <= scale * (DISC + REACH):
        return Hit(nearest, False)
    off_ring = np.where([mark.turns for mark in marks], abs(distances - scale * RING), np.inf)
    nearest = int(np.argmin(off_ring))
    return Hit(nearest, True) if off_ring[nearest] <= scale * REACH else None


class Grip:
    """Dragged target or pole.

    A target that has other sources of motion, or belongs to another armature, is not moved: the Target Offset
    of the constraint changes instead. A pole has no offset.

    Attributes:
        can_move: whether it can be moved.
        can_turn: whether it can be turned.
        point: its point at the start of the drag, world.
    """

    def __init__(self, row: Any, target: Target, point: Vector, is_pole: bool) -> None:
        thing = target.thing
        self.point = point.copy()
        self.can_turn = is_free(target, row.id_data)
        self.can_move = self.can_turn or not is_pole
        self._world: Any = thing.matrix_world.copy()
        self._matrix: Any = self._world @ target.owner.matrix if target.bone else self._world
        self._owner: Any = target.owner if self.can_turn else row
        self._target = target
        self._channels = ["location", rotation_channel(self._owner)[0]] if self.can_turn else ["offset"]
        # The space of an object's channels: its parents, without the channels.
        self._carrier: Any = Matrix() if target.bone else self._world @ thing.matrix_basis.inverted_safe()
        frames: dict[str, Any] = {
            "TARGET": self._matrix,
            "ARMATURE": row.id_data.matrix_world,
            "WORLD": Matrix(),
        }
        self._to_offset: Any = frames[row.offset_space].to_3x3().inverted_safe()
        self._before = {name: tuple(getattr(self._owner, name)) for name in self._channels}

    def move(self, shift: Vector) -> None:
        """Shift the target relative to the start of the drag, world."""
        if self.can_turn:
            matrix = Matrix.Translation(shift) @ self._matrix
            self._owner.location = self._local(matrix)[0]
        elif self.can_move:
            self._owner.offset = Vector(self._before["offset"]) + self._to_offset @ shift
        self._tag()

    def turn(self, rotation: Quaternion) -> None:
        """Turn the target about its origin relative to the start of the drag, world."""
        if not self.can_turn:
            return
        place = self._matrix.to_translation()
        turned = Matrix.LocRotScale(None, rotation @ self._matrix.to_quaternion(), self._matrix.to_scale())
        _, local = self._local(Matrix.Translation(place) @ turned)
        name = self._channels[1]
        values = channel_values(self._owner.rotation_mode, [local[:]], self._before[name])
        setattr(self._owner, name, values[0].tolist())
        self._tag()

    def restore(self) -> None:
        """Restore the channels of the start of the drag."""
        for name, value in self._before.items():
            setattr(self._owner, name, value)
        self._tag()

    def changed(self) -> list[tuple[Any, str]]:
        """Return the changed channels: bone, object or constraint, and name of the channel."""
        before = self._before.items()
        return [(self._owner, name) for name, value in before if tuple(getattr(self._owner, name)) != value]

    def _local(self, world: Matrix) -> tuple[Vector, Quaternion]:
        """Return the location and rotation channels of the owner for a matrix in world space."""
        if self._target.bone:
            bone, parent = self._owner.bone, self._owner.parent
            above = {}
            if parent is not None:
                above = {"parent_matrix": parent.matrix, "parent_matrix_local": parent.bone.matrix_local}
            pose = self._world.inverted_safe() @ world
            basis = bone.convert_local_to_pose(pose, bone.matrix_local, invert=True, **above)
            location, rotation, _ = basis.decompose()
            return location, rotation
        return object_channels(self._target.thing, self._carrier.inverted_safe() @ world)

    def _tag(self) -> None:
        self._owner.id_data.update_tag()


def is_free(target: Target, armature_object: bpy.types.Object) -> bool:
    """Whether the channels of a target alone move it: an object, or a bone of the constraint's armature.

    It must be editable and have neither constraints nor drivers.
    """
    thing, owner = target.thing, target.owner
    is_same_armature = thing == armature_object
    if not thing.is_editable or is_same_armature != bool(target.bone):
        return False
    if any(not c.mute and c.influence > 0.0 for c in owner.constraints) or all(owner.lock_location):
        return False
    if target.bone and owner.parent is not None and owner.bone.use_connect:
        return False
    paths = [owner.path_from_id(name) for name in ("location", rotation_channel(owner)[0])]
    animation = thing.animation_data
    return animation is None or not any(curve.data_path in paths for curve in animation.drivers)
