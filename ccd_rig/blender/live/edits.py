# SPDX-License-Identifier: GPL-3.0-or-later
"""What tells an edit of a set-up: values that an update compares with those before.

Blender reports the armature after each update of its clamps, in the same way as after an edit of a property.
Its reports alone so cannot tell one from the other. Properties that are keyed, or set by a script, are not
reported at all. Reading the values costs a small part of checking a set-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any

import bpy
import numpy as np

from ..bake.staleness import fields
from ..properties import body
from ..rig.pose_values import foreach

POSE_BONES = {
    "rotation_mode": 1,
    "lock_rotation": 3,
    "lock_rotation_w": 1,
    "lock_rotations_4d": 1,
    "lock_location": 3,
}
"""Properties of pose bones that a set-up depends on, with how many values each has."""
BONES = {
    "matrix_local": 16,
    "length": 1,
    "use_connect": 1,
    "use_inherit_rotation": 1,
    "inherit_scale": 1,
    "use_local_location": 1,
}
"""The same of the armature's bones."""

Values = tuple[Any, ...]
_Getter = Callable[[Any], Values]


def state_of(armature_object: bpy.types.Object, names: Iterable[str]) -> Values:
    """Values that change with every edit of a set-up that the user's scene does not report.

    Args:
        armature_object: the original object.
        names: of the bones of its chains.
    """
    group, pose_bones = armature_object.ccd_rig, armature_object.pose.bones
    bones = [pose_bones.get(name) for name in names]
    return (
        pose_bones.keys(),
        [_row_values(row) for row in group.constraints],
        [None if bone is None else _values(bone.ccd_rig) for bone in bones],
        [(bone.ccd_rig.mass, len(bone.ccd_rig.coupled_offsets)) for bone in pose_bones],
        [foreach(pose_bones, name, width).tobytes() for name, width in POSE_BONES.items()],
        [foreach(armature_object.data.bones, name, width).tobytes() for name, width in BONES.items()],
        _values(group.solver),
        list(_library(group.poses)),
        group.body,
        body.body_of(armature_object),
    )


def is_rebuilt(depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a scene was edited, or what depends on what in it; a key that moves it is no edit.

    Blender reports that when objects, constraints, drivers, actions or their first keys come or go.
    """
    if not depsgraph.id_type_updated("SCENE"):
        return False
    return any(
        isinstance(each.id, bpy.types.Scene) and not each.is_updated_shading for each in depsgraph.updates
    )


def _row_values(row: Any) -> Values:
    """A constraint, but for its influence, which every sample has."""
    return (_values(row), _end(row.target, row.target_bone), _end(row.pole_target, row.pole_bone))


def _end(thing: bpy.types.Object | None, bone: str) -> tuple[int, str, bool] | None:
    """A target or a pole, and whether it has the bone that is meant."""
    if thing is None:
        return None
    return thing.session_uid, thing.name_full, thing.pose is not None and bone in thing.pose.bones


def _library(poses: Any) -> Iterator[tuple[str, bytes]]:
    """The name and the rotations of each pose."""
    for pose in poses:
        rotations = np.empty(4 * len(pose.rotations), np.float32)
        pose.rotations.foreach_get("rotation", rotations)
        yield pose.name, rotations.tobytes()


def _values(group: Any) -> Values:
    """All values of a group of properties. A limit that is none has no others."""
    if getattr(group, "kind", "") == "NONE":
        return ("NONE",)
    single, arrays, groups, lists = _getters(type(group))
    return (
        single(group),
        *map(tuple, arrays(group)),
        *map(_values, groups(group)),
        *([_values(each) for each in rows] for rows in lists(group)),
    )


@lru_cache(maxsize=32)
def _getters(group: type) -> tuple[_Getter, _Getter, _Getter, _Getter]:
    """Functions that read the single values of a group, its arrays, its groups and its collections."""
    properties: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    names: dict[str, list[str]] = {"ARRAY": [], "POINTER": [], "COLLECTION": []}
    single: list[str] = []
    for name, sort in fields(group):
        if name == "influence" or (sort == "POINTER" and not _is_group(properties[name])):
            continue
        names.get(sort, single).append(name)
    return _getter(single), _getter(names["ARRAY"]), _getter(names["POINTER"]), _getter(names["COLLECTION"])


def _is_group(field: Any) -> bool:
    """Whether a pointer leads to a group of properties, not to a data-block."""
    base = field.fixed_type.base
    return base is not None and base.identifier == "PropertyGroup"


def _getter(names: list[str]) -> _Getter:
    """A function that reads these attributes of a thing, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)
