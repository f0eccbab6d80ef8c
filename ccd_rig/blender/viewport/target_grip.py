# SPDX-License-Identifier: GPL-3.0-or-later
"""A target or pole that is moved or turned in the world: by its channels, else by its constraint's offset."""

from __future__ import annotations

from typing import Any

import bpy
from mathutils import Matrix, Quaternion, Vector

from ..properties.new_targets import Target
from ..rig.rotation_modes import channel_values, rotation_channel
from ..scene.targets import object_channels


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
