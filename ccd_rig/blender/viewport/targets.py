# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets in the viewport: where they are marked, and what is moved when they are dragged."""

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
from ..properties.constraint_values import Kind
from ..properties.new_targets import Target
from ..rig.rotation_modes import channel_values, rotation_channel
from ..scene.targets import FAR, object_channels
from . import constraints

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
        ends = [(row.target, row.target_bone, constraints.target_point(row), False)]
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


class Grip:
    """Holds a target or pole while it is dragged.

    A target that something else moves, or that belongs to another armature, stays where it is: then Target
    Offset of the constraint moves the point to reach. A pole has no offset.

    Attributes:
        can_move: whether it can be moved.
        can_turn: whether it can be turned.
        point: where it was at first, world.
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
        # What carries an object: its parents, but not its own channels.
        self._carrier: Any = Matrix() if target.bone else self._world @ thing.matrix_basis.inverted_safe()
        frames: dict[str, Any] = {
            "TARGET": self._matrix,
            "ARMATURE": row.id_data.matrix_world,
            "WORLD": Matrix(),
        }
        self._to_offset: Any = frames[row.offset_space].to_3x3().inverted_safe()
        self._before = {name: tuple(getattr(self._owner, name)) for name in self._channels}

    def move(self, shift: Vector) -> None:
        """Shift the target from where it was at first, world."""
        if self.can_turn:
            matrix = Matrix.Translation(shift) @ self._matrix
            self._owner.location = self._local(matrix)[0]
        elif self.can_move:
            self._owner.offset = Vector(self._before["offset"]) + self._to_offset @ shift
        self._tag()

    def turn(self, rotation: Quaternion) -> None:
        """Turn the target about its own origin from how it was at first, world."""
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
        """Put everything back."""
        for name, value in self._before.items():
            setattr(self._owner, name, value)
        self._tag()

    def changed(self) -> list[tuple[Any, str]]:
        """What holds other values than at first: bones, objects or constraints, each with a channel."""
        before = self._before.items()
        return [(self._owner, name) for name, value in before if tuple(getattr(self._owner, name)) != value]

    def _local(self, world: Matrix) -> tuple[Vector, Quaternion]:
        """Location and rotation of the owner's channels that bring it to a place in the world."""
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
    """Whether a target goes where its channels say: an object, or a bone of the constraint's own armature.

    Nothing else moves it, and the file may change it.
    """
    thing, owner = target.thing, target.owner
    is_own = thing == armature_object
    if not thing.is_editable or is_own != bool(target.bone):
        return False
    if any(not each.mute and each.influence > 0.0 for each in owner.constraints) or all(owner.lock_location):
        return False
    if target.bone and owner.parent is not None and owner.bone.use_connect:
        return False
    paths = [owner.path_from_id(name) for name in ("location", rotation_channel(owner)[0])]
    animation = thing.animation_data
    return animation is None or not any(curve.data_path in paths for curve in animation.drivers)
