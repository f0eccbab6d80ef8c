"""The open file as plain values: what a failed or cancelled operation must leave as it was."""

from __future__ import annotations

import marshal
from typing import Any

import bpy
import numpy as np

KINDS = ("scenes", "objects", "armatures", "actions", "collections", "worlds", "meshes", "texts", "libraries")
VOLATILE = {"use_nodes", "rna_type", "session_uid", "view_layers", "tool_settings", "preview"}
VOLATILE |= {"storage_type"}  # of a mesh's attributes: Blender packs them as it likes when they are read
# Blender works these out from the evaluated pose, through the inverse of the object's matrix: without a scale
# there is none, and they hold whatever was there before.
VOLATILE |= {"bound_box", "dimensions"}
# Blender's own keying sets point to what was keyed with them last, also when that is gone from the file.
VOLATILE |= {"keying_sets_all"}
UPWARDS = {"original", "id_data"}
DEEPEST = 6  # an action's keys are five levels below it


def dump() -> dict[str, Any]:
    """Every property of every data-block that a bake could touch, and what is active and selected.

    Not a number differs from itself: compare by `differences` where the file may hold one.
    """
    bpy.context.view_layer.update()
    state: dict[str, Any] = {}
    for kind in KINDS:
        for block in getattr(bpy.data, kind):
            state[f"{kind}/{block.name_full}"] = properties_of(block, 0, {})
    state["counts"] = {name: len(getattr(bpy.data, name)) for name in KINDS}
    context = bpy.context
    state["context"] = (context.scene.name, context.mode, context.object and context.object.name)
    state["selected"] = [thing.name for thing in context.selected_objects]
    state["frame"] = (context.scene.frame_current, context.scene.frame_subframe)
    return state


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Where two dumps differ, by path; a number that is none equals itself.

    pytest would take minutes to compare whole dumps.
    """
    if _bits(before) == _bits(after):
        return []
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return [line for key in before for line in differences(before[key], after[key], f"{path}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for i, (old, new) in pairs for line in differences(old, new, f"{path}/{i}")]
    return [f"{path}: {before!r:.200} -> {after!r:.200}"]


def _bits(values: Any) -> bytes:
    """Plain values as bytes, equal for the same bits: not a number equals itself, 0.0 is not -0.0."""
    return marshal.dumps(values, 2)  # later versions tell which objects are shared


def fill_caches() -> None:
    """Read all meshes: the first look at one fills its caches, which a dump would tell as changes."""
    for mesh in bpy.data.meshes:
        properties_of(mesh, 0, {})


Seen = dict[tuple[str, int], tuple[int, int]]


def properties_of(struct: Any, depth: int, seen: Seen) -> dict[str, Any]:
    """A struct's properties by name; other data-blocks by their names, and structs that were read by numbers.

    `seen` has the number and the depth of each struct of the data-block: one that was met at a greater depth
    is read anew, since less of what hangs on it was. Bones lead to their parents, curves to their groups.
    """
    result = {}
    for name, kind, is_array in _fields(struct.bl_rna):
        value = getattr(struct, name)
        if kind == "POINTER":
            value = _item(value, depth, seen)
        elif kind == "COLLECTION":
            value = [_item(item, depth, seen) for item in value]
        elif is_array:
            value = _numbers(value)
        elif isinstance(value, set):
            value = sorted(value)
        result[name] = value
    return result


_FIELDS: dict[tuple[str, int], list[tuple[str, str, bool]]] = {}


def _fields(rna: Any) -> list[tuple[str, str, bool]]:
    """(name, type, whether it is an array) of each property of a kind of struct.

    Blender takes longer to tell this than the values, and it only changes with the number of properties: when
    an extension comes or goes.
    """
    key = (rna.identifier, len(rna.properties))
    if key not in _FIELDS:
        _FIELDS[key] = [
            (prop.identifier, prop.type, bool(getattr(prop, "is_array", False)))
            for prop in rna.properties
            if prop.identifier not in VOLATILE | UPWARDS
        ]
    return _FIELDS[key]


def _numbers(value: Any) -> Any:
    """An array as numbers in a row, whatever its shape."""
    numbers = value[:]
    # A slice of a matrix holds its rows, which would go on changing with it.
    return np.array(value).ravel().tolist() if numbers and hasattr(numbers[0], "__len__") else list(numbers)


def _item(value: Any, depth: int, seen: Seen) -> Any:
    if value is None or isinstance(value, bpy.types.ID):
        return value and value.name_full
    if depth >= DEEPEST:
        return "deep"
    key = (value.bl_rna.identifier, value.as_pointer())
    number, least = seen.get(key, (len(seen), DEEPEST + 1))
    if least <= depth:
        return number
    seen[key] = (number, depth)
    return properties_of(value, depth + 1, seen)
