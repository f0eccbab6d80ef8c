# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose library of an armature object: stored with it, posed from it, and read and written as JSON.

Rotations are unit quaternions (w, x, y, z) relative to rest, whatever rotation mode a bone has.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import bpy
from bpy.props import CollectionProperty, FloatVectorProperty, StringProperty

from ...errors import InvalidInput, RigError
from ...json_text import shown
from ...skeleton.pose_library import PoseEntry, from_json, to_json
from ..rig.rotation_modes import channel_values, rotation_channel
from ..whole_files import read_text, replacing
from . import overrides, renamed_bones
from .names_in_words import named
from .solver_settings import OVERRIDE
from .unique_names import UniqueNames, unique_name

DEFAULT_NAME = "Pose"


class CCD_RIG_PG_pose_bone(bpy.types.PropertyGroup):
    """The rotation of one bone; `name` is the bone's."""

    # Not animated: rows may be removed, and F-curves would then point at other rows.
    name: StringProperty(name="Bone", description="Name of the bone", override=OVERRIDE, options=set())
    rotation: FloatVectorProperty(
        name="Rotation",
        description="Rotation of the bone relative to rest, as a unit quaternion (w, x, y, z)",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
        override=OVERRIDE,
        options=set(),
    )


class CCD_RIG_PG_pose(bpy.types.PropertyGroup):
    """One pose of the library. Its property `name` is added by `register_names`."""

    rotations: CollectionProperty(
        name="Rotations",
        description="The rotation of each bone that the pose knows",
        type=CCD_RIG_PG_pose_bone,
        override=OVERRIDE | {"USE_INSERTION"},
    )


def register_names() -> None:
    """Add the property `name`, which calls a function, before the class is registered."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    CCD_RIG_PG_pose.__annotations__["name"] = StringProperty(
        name="Name", description="Name of the pose", update=_keep_name_unique, override=OVERRIDE
    )


def unregister_names() -> None:
    """Take it away after the class was unregistered."""
    del CCD_RIG_PG_pose.__annotations__["name"]


_unique_already: list[bool] = []  # not empty: the name that is being set is known to be free


@contextmanager
def _named_before() -> Iterator[None]:
    """Names that are set meanwhile are unique: to look through all of them for each one would take long."""
    _unique_already.append(True)
    try:
        yield
    finally:
        _unique_already.pop()


def _keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    if _unique_already:
        return
    taken = {row.name for row in self.id_data.ccd_rig.poses if row != self}
    free = unique_name(self.name or DEFAULT_NAME, taken)
    if free != self.name:
        self.name = free  # runs this function once more, which then finds nothing to do


# What is stored ---------------------------------------------------------------------------------------------


def entries(armature_object: bpy.types.Object) -> tuple[PoseEntry, ...]:
    """The poses as the core's values, in their order.

    Raises:
        RigError: a pose holds no bone, or what is no rotation.
    """
    return tuple(_entry(armature_object, row) for row in armature_object.ccd_rig.poses)


def active(armature_object: bpy.types.Object) -> Any:
    """The row that is chosen in the list, or None."""
    rows, index = armature_object.ccd_rig.poses, armature_object.ccd_rig.active_pose
    return rows[index] if 0 <= index < len(rows) else None


def add(armature_object: bpy.types.Object, added: Iterable[PoseEntry]) -> None:
    """Append poses and choose the last of them. Names get a number where they are taken."""
    group, bones = armature_object.ccd_rig, set[str]()
    names = UniqueNames(row.name for row in group.poses)
    for entry in added:
        row = group.poses.add()
        with _named_before():
            row.name = names.take(entry.name)
        for bone, rotation in entry.rotations.items():
            line = row.rotations.add()
            line.name = bone
            line.rotation = rotation
        group.active_pose = len(group.poses) - 1
        bones.update(entry.rotations)
    renamed_bones.note(armature_object, bones)
    overrides.keep(armature_object)


def remove(armature_object: bpy.types.Object, indices: Iterable[int]) -> None:
    """Take poses away.

    Raises:
        RigError: one of them comes from the library of an override, and Blender keeps those. Nothing has
            changed then.
    """
    group, removed = armature_object.ccd_rig, sorted(set(indices), reverse=True)
    for index in removed:
        if is_from_library(armature_object, index):
            raise RigError(
                f"pose '{group.poses[index].name}' comes from the library that '{armature_object.name}' "
                "overrides: it can be removed only in the library's file"
            )
    for index in removed:
        group.poses.remove(index)
    group.active_pose = max(0, min(group.active_pose, len(group.poses) - 1))


def is_from_library(armature_object: bpy.types.Object, index: int) -> bool:
    """Whether a pose comes from the library of an override: Blender keeps those."""
    override = armature_object.override_library
    if override is None or override.reference is None:
        return False
    # Blender puts rows that are added to an override after those of the library.
    return index < len(override.reference.ccd_rig.poses)


def _entry(armature_object: bpy.types.Object, row: Any) -> PoseEntry:
    try:
        return PoseEntry(row.name, {line.name: tuple(line.rotation) for line in row.rotations})
    except InvalidInput as error:
        raise RigError(
            f"armature '{armature_object.name}', pose library: {error}; remove this pose"
        ) from error


# Which bones it is for --------------------------------------------------------------------------------------


def missing(armature_object: bpy.types.Object, entry: PoseEntry) -> tuple[str, ...]:
    """Names of the entry's bones that the armature does not have."""
    return tuple(bone for bone in entry.rotations if bone not in armature_object.pose.bones)


def strangers(armature_object: bpy.types.Object, entry: PoseEntry) -> str:
    """What is to be said of an entry's missing bones; empty if none is missing."""
    gone = missing(armature_object, entry)
    if not gone:
        return ""
    where = f"armature '{armature_object.name}'"
    if len(gone) == len(entry.rotations):
        return f"Pose '{shown(entry.name)}': none of its bones ({named(gone)}) is in {where}"
    if len(gone) == 1:
        return f"Pose '{shown(entry.name)}': bone {named(gone)} is not in {where}"
    return f"Pose '{shown(entry.name)}': bones {named(gone)} are not in {where}"


def apply(armature_object: bpy.types.Object, entry: PoseEntry) -> None:
    """Write an entry's rotations into the bones' own channels; bones it does not know stay as they are.

    Raises:
        RigError: the armature has none of its bones.
    """
    bones = [armature_object.pose.bones.get(name) for name in entry.rotations]
    if not any(bones):
        raise RigError(strangers(armature_object, entry))
    for bone, rotation in zip(bones, entry.rotations.values(), strict=True):
        if bone is not None:
            channel, _ = rotation_channel(bone)
            values = channel_values(bone.rotation_mode, [tuple(rotation)], tuple(getattr(bone, channel)))
            setattr(bone, channel, values[0].tolist())


# Files ------------------------------------------------------------------------------------------------------


def save(path: str | os.PathLike[str], saved: Sequence[PoseEntry]) -> None:
    """Write poses as JSON, the file as a whole or not at all.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    with replacing(path) as temporary:
        temporary.write_text(to_json(saved) + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str]) -> tuple[PoseEntry, ...]:
    """The poses of a JSON file.

    Raises:
        RigError: names the file, and what cannot be read or the field that is wrong.
    """
    text = read_text(path)
    try:
        return from_json(text)
    except InvalidInput as error:
        raise RigError(f"{path}: {error}") from error
