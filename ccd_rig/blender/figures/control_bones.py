# SPDX-License-Identifier: GPL-3.0-or-later
"""Control bones: bones made as targets and poles, with their rest poses and custom shapes, and their removal.

They have a separate bone collection, deform nothing, and have wire shapes that a file contains once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import bpy
from mathutils import Matrix, Vector

from ...errors import RigError
from ..keys import channels

MADE = "ccd_rig_target"
"""Custom property of objects and bones that were made as targets, and of their collections."""
SIDE = "ccd_rig_side"
"""Custom property of these objects and bones: the side of the bone that reaches for them, see `Side`."""
SHAPE = "ccd_rig_shape"
"""Custom property of custom shape objects; its value is the name of the shape."""
COLLECTION = "Targets"
PALETTES = {"L": "THEME04", "R": "THEME01", "": "THEME09"}
"""Bone colors of the theme by side: blue, red, yellow in the middle."""
LINE = 2.0  # width of a shape's lines [pixels]


@dataclass(frozen=True)
class ControlBone:
    """A bone to make."""

    name: str  # Blender makes it unique
    side: str  # "L", "R" or empty, for its color
    shape: str  # one of `SHAPES`
    length: float  # radius of its shape, in armature space
    rest: Matrix  # matrix at rest, in armature space
    pose: Matrix  # present matrix, in armature space
    parent: str | int | None  # name of a bone, or index of an earlier control bone of the call; None for none


def is_control(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone was made as a target or pole."""
    return bool(bone.bone.get(MADE))


def is_made(obj: bpy.types.Object, name: str) -> bool:
    """Whether an object has a bone of this name that was made as a target or pole."""
    bone = obj.pose.bones.get(name) if obj.pose is not None else None
    return bone is not None and is_control(bone)


def require_editable(context: bpy.types.Context, obj: bpy.types.Object) -> None:
    """Check that an armature can get bones.

    Raises:
        RigError: it is linked or overridden, or cannot enter Edit Mode.
    """
    armature: Any = obj.data
    if not obj.is_editable or not armature.is_editable or armature.override_library is not None:
        raise RigError(
            f"'{obj.name}' comes from a library and cannot get control bones: switch Control "
            "Bones off, for empties"
        )
    if not obj.visible_get(view_layer=context.view_layer):
        raise RigError(f"'{obj.name}' is hidden or not in this view layer: show it first")


def make(
    context: bpy.types.Context, armature_object: bpy.types.Object, wanted: Sequence[ControlBone]
) -> list[str]:
    """Make bones in a single visit to Edit Mode, and return their names; references to bones become invalid.

    Raises:
        RigError: the armature cannot get bones. Nothing has changed then.
    """
    require_editable(context, armature_object)
    armature: Any = armature_object.data
    names: list[str] = []
    with _edit_bones(context, armature_object) as bones:
        for new in wanted:
            added = bones.new(new.name)
            added.tail = (0.0, new.length, 0.0)
            added.matrix = new.rest
            added.use_deform = False
            added[MADE], added[SIDE] = True, str(new.side)
            parent = names[new.parent] if isinstance(new.parent, int) else new.parent
            added.parent = bones[parent] if parent else None
            names.append(added.name)
    collection = _collection(armature)
    posed: dict[str, Matrix] = {}
    for name, new in zip(names, wanted, strict=True):
        bone = armature_object.pose.bones[name]
        for other in list(bone.bone.collections):
            other.unassign(bone.bone)
        collection.assign(bone.bone)
        bone.color.palette = PALETTES[new.side]
        bone.custom_shape = _shape(new.shape)
        bone.custom_shape_wire_width = LINE
        posed[name], above = new.pose, {}
        if bone.parent is not None:
            matrix = posed.get(bone.parent.name, bone.parent.matrix)
            above = {"parent_matrix": matrix, "parent_matrix_local": bone.parent.bone.matrix_local}
        basis = bone.bone.convert_local_to_pose(new.pose, bone.bone.matrix_local, invert=True, **above)
        bone.location, bone.rotation_quaternion, _ = basis.decompose()
    return names


def remove(context: bpy.types.Context, armature_object: bpy.types.Object, names: Sequence[str]) -> None:
    """Remove control bones with their keys in the present action, and collections and shapes without users.

    Raises:
        RigError: the armature cannot be edited. Nothing has changed then.
    """
    require_editable(context, armature_object)
    starts = tuple(armature_object.pose.bones[name].path_from_id() + "." for name in names)
    if (bag := channels.bag_of(armature_object)) is not None:
        for curve in [curve for curve in bag.fcurves if curve.data_path.startswith(starts)]:
            bag.fcurves.remove(curve)
    for name in names:
        armature_object.pose.bones[name].custom_shape = None
    with _edit_bones(context, armature_object) as bones:
        for name in names:
            bones.remove(bones[name])
    armature: Any = armature_object.data
    for collection in list(armature.collections_all):
        if collection.get(MADE) and not collection.bones and not collection.children:
            armature.collections.remove(collection)
    for obj in [obj for obj in bpy.data.objects if obj.get(SHAPE) and not obj.users]:
        mesh: Any = obj.data
        bpy.data.objects.remove(obj)
        bpy.data.meshes.remove(mesh)


@contextmanager
def _edit_bones(
    context: bpy.types.Context, armature_object: bpy.types.Object
) -> Iterator[bpy.types.ArmatureEditBones]:
    """Give the edit bones of an armature; modes and selection of objects are restored at the end."""
    layer = context.view_layer
    active, selected = layer.objects.active, list(layer.objects.selected)
    mode = "OBJECT" if active is None else active.mode
    in_pose_mode = list(context.objects_in_mode) if mode == "POSE" else []
    if mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    _select(layer, armature_object, [armature_object])
    mirrored = armature_object.data.use_mirror_x
    armature_object.data.use_mirror_x = False
    bpy.ops.object.mode_set(mode="EDIT")
    try:
        yield armature_object.data.edit_bones
    finally:
        bpy.ops.object.mode_set(mode="OBJECT")
        armature_object.data.use_mirror_x = mirrored
        if active is not None and mode != "OBJECT":
            _select(layer, active, in_pose_mode or [active])
            bpy.ops.object.mode_set(mode=mode)
        _select(layer, active, selected)


def _select(
    layer: bpy.types.ViewLayer, active: bpy.types.Object | None, selected: Sequence[bpy.types.Object]
) -> None:
    for obj in list(layer.objects.selected):
        obj.select_set(False, view_layer=layer)
    for obj in selected:
        obj.select_set(True, view_layer=layer)
    layer.objects.active = active


def _collection(armature: Any) -> bpy.types.BoneCollection:
    """Return the bone collection of an armature's control bones; makes it if it is missing."""
    known = next((each for each in armature.collections_all if each.get(MADE)), None)
    if known is None:
        known = armature.collections.new(COLLECTION)
        known[MADE] = True
    return known


# Shapes -----------------------------------------------------------------------------------------------------

Lines = tuple[tuple[tuple[float, float, float], ...], ...]


CORNERS = 32  # of a circle


def _circle(a: int, b: int) -> tuple[tuple[float, float, float], ...]:
    """A unit circle in the plane of two axes."""
    points = []
    for angle in (2.0 * math.pi * i / CORNERS for i in range(CORNERS + 1)):
        point = [0.0, 0.0, 0.0]
        point[a], point[b] = math.cos(angle), math.sin(angle)
        points.append((point[0], point[1], point[2]))
    return tuple(points)


_TOP, _BOTTOM = (
    tuple((0.8 * x, 0.8 * y, z) for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1), (1, 1))) for z in (0.8, -0.8)
)
_RING = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0))
SHAPES: Mapping[str, Lines] = MappingProxyType(
    {
        "SPHERE": (_circle(0, 1), _circle(1, 2), _circle(2, 0)),
        "CUBE": (_TOP, _BOTTOM, *((a, b) for a, b in zip(_TOP[:4], _BOTTOM[:4], strict=True))),
        "PLAIN_AXES": (_RING, *(((0.0, 0.0, 1.0), corner, (0.0, 0.0, -1.0)) for corner in _RING[:4])),
    }
)
"""Polylines of unit size, by the display type of the empty that they replace."""


def _shape(name: str) -> bpy.types.Object:
    """Return the object of a shape; makes it if the file has no local one."""
    for obj in bpy.data.objects:
        if obj.get(SHAPE) == name and obj.library is None:
            return obj
    points: list[Vector] = []
    edges: list[tuple[int, int]] = []
    for row in SHAPES[name]:
        edges += pairwise(range(len(points), len(points) + len(row)))
        points += map(Vector, row)
    mesh = bpy.data.meshes.new(f"WGT-target_{name.lower()}")
    mesh.from_pydata(points, edges, [])
    obj = bpy.data.objects.new(mesh.name, mesh)
    obj[SHAPE] = name
    return obj
