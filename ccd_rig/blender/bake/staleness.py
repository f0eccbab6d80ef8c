# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a stored report still speaks of what is there: constraints, bones, settings and keys.

A panel asks at every redraw. Keys are read once, and again after their action has changed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import bpy

from ..keys import channels, keyframes
from ..properties import constraint_list
from . import originals

OURS = "ccd_rig."
"""In the path of what animates a setting."""


class _Keys(NamedTuple):
    """What is known of an action's keys: a checksum, and the paths of our settings that they move."""

    checksum: int
    moved: frozenset[str]


_known: dict[tuple[int, int], _Keys] = {}
"""By the ids, for this session, of an action and of what it animates."""


def state_of(armature_object: bpy.types.Object) -> str:
    """A short text that changes with all that a bake of the armature depends on, but for its options."""
    group = armature_object.ccd_rig
    things = [armature_object, *_targets(armature_object)]
    keys = [each for thing in things for each in _keys_of(thing)]
    moved = frozenset[str]().union(*(each.moved for each in keys), _driven(armature_object))
    rows = [_content(row, f"ccd_rig.constraints[{i}]", moved) for i, row in enumerate(group.constraints)]
    bones = [
        (
            bone.name,
            bone.bone.length,
            [*map(tuple, bone.bone.matrix_local)],
            _content(bone.ccd_rig, f"{bone.path_from_id()}.ccd_rig", moved),
        )
        for bone in _chain_bones(armature_object)
    ]
    solver = _content(group.solver, "ccd_rig.solver", moved)
    places = [_place(thing) for thing in things[1:]]
    return originals.fingerprint(rows, bones, solver, group.body, places, [each.checksum for each in keys])


def is_stale(armature_object: bpy.types.Object) -> bool:
    """Whether something has changed since the armature's last bake."""
    report = armature_object.ccd_rig.report
    return bool(report.words) and report.state != state_of(armature_object)


def _targets(armature_object: bpy.types.Object) -> list[bpy.types.Object]:
    rows = armature_object.ccd_rig.constraints
    found = [thing for row in rows for thing in (row.target, row.pole_target) if thing is not None]
    return [thing for thing in dict.fromkeys(found) if thing != armature_object]


def _chain_bones(armature_object: bpy.types.Object) -> list[bpy.types.PoseBone]:
    rows = armature_object.ccd_rig.constraints
    chains = [constraint_list.chain(armature_object, row.tip, row.chain_length) for row in rows]
    return list({bone.name: bone for chain in chains for bone in chain}.values())


def _place(thing: bpy.types.Object) -> tuple[Any, ...]:
    """The name of a target and, where no action moves it, where it is."""
    if channels.is_animated(thing):
        return (thing.name,)
    return thing.name, *map(tuple, thing.matrix_basis)


def _content(group: Any, path: str, moved: frozenset[str]) -> tuple[Any, ...]:
    """All values of a group of properties, but for those that something moves."""
    values: list[Any] = []
    for name, sort in _fields(type(group)):
        value = getattr(group, name)
        if name == "kind" and value == "NONE":  # a limit that is none, whatever else is left over in it
            return (value,)
        if moved and f"{path}.{name}" in moved:
            continue
        if sort == "COLLECTION":
            values.append([_content(each, f"{path}.{name}[{i}]", moved) for i, each in enumerate(value)])
        elif sort == "POINTER" and value is not None:
            is_data = isinstance(value, bpy.types.ID)
            values.append(value.name_full if is_data else _content(value, f"{path}.{name}", moved))
        else:
            values.append(tuple(value) if sort == "ARRAY" else value)
    return tuple(values)


@lru_cache(maxsize=32)
def _fields(group: type) -> tuple[tuple[str, str], ...]:
    """Names of a group's properties and what they are; its kind, if it has one, first."""
    fields: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    found = [
        (name, "ARRAY" if getattr(field, "is_array", False) else field.type)
        for name, field in fields.items()
        if name != "rna_type" and not field.is_hidden
    ]
    return tuple(sorted(found, key=lambda pair: pair[0] != "kind"))


def _driven(armature_object: bpy.types.Object) -> frozenset[str]:
    animation = armature_object.animation_data
    drivers = () if animation is None else animation.drivers
    return frozenset(driver.data_path for driver in drivers if OURS in driver.data_path)


def _keys_of(thing: bpy.types.Object) -> Iterator[_Keys]:
    """Of each action that plays on an object."""
    for action, curves in channels.played(thing):
        if not isinstance(action, bpy.types.Action):  # a strip without one
            continue
        ids = action.session_uid, thing.session_uid
        if ids not in _known:
            _known[ids] = _read(curves)
        yield _known[ids]


def _read(curves: Iterator[bpy.types.FCurve]) -> _Keys:
    checksum, moved = 0, set()
    for curve in curves:
        place = f"{curve.data_path}[{curve.array_index}] {channels.plays(curve)}"
        checksum = zlib.crc32(place.encode(), checksum)
        checksum = zlib.crc32(keyframes.content(curve), checksum)
        if OURS in curve.data_path:
            moved.add(curve.data_path)
    return _Keys(checksum, frozenset(moved))


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def _forget_changed(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    if not depsgraph.id_type_updated("ACTION"):
        return
    changed = {update.id.original.session_uid for update in depsgraph.updates}
    for ids in [ids for ids in _known if changed.intersection(ids)]:
        del _known[ids]


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget(*_arguments: object) -> None:
    """Read all keys again when next asked: after undo, loading, or an edit that Blender has not seen yet."""
    _known.clear()


def register() -> None:
    """Listen to what changes keys."""
    bpy.app.handlers.depsgraph_update_post.append(_forget_changed)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post, bpy.app.handlers.load_post):
        handlers.append(forget)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.depsgraph_update_post.remove(_forget_changed)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post, bpy.app.handlers.load_post):
        handlers.remove(forget)
    _known.clear()
    _fields.cache_clear()
