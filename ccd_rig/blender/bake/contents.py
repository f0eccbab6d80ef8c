# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties and F-curves as plain values, to tell whether anything has changed."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import bpy

from ...solvers.stepping import Work
from ..keys import channels, keyframes

Components: TypeAlias = frozenset[tuple[str, int]]
"""Of channels that something moves: data path and component."""


class Curves(NamedTuple):
    """What is known of F-curves: a checksum, and what they move."""

    checksum: int
    moved: Components


def read_curves(curves: Iterable[bpy.types.FCurve]) -> Work[Curves]:
    """All that decides what F-curves play; an item per F-curve."""
    checksum, moved = 0, set()
    for curve in curves:
        yield
        plays = channels.plays(curve)
        words = f"{curve.data_path}[{curve.array_index}] {plays} {curve.extrapolation}"
        modifiers = [values(each, "", frozenset(), SHOWN_ONLY) for each in curve.modifiers]
        checksum = zlib.crc32(f"{words} {modifiers}".encode(), checksum)
        checksum = zlib.crc32(keyframes.content(curve), checksum)
        if plays:
            moved.add((curve.data_path, curve.array_index))
    return Curves(checksum, frozenset(moved))


SHOWN_ONLY = frozenset(("active", "error_location", "error_rotation", "is_valid", "show_expanded"))
"""Of constraints and modifiers, what does not change what they do."""


def values(
    group: Any, path: str, moved: Collection[tuple[str, int]], left_out: Collection[str] = ()
) -> tuple[Any, ...]:
    """All values of a group of properties, but for those that something moves.

    Args:
        group: a property group, a constraint or a modifier.
        path: its data path from the data-block.
        moved: data paths and components that are left out.
        left_out: names that are left out.
    """
    found: list[Any] = []
    for name, sort in fields(type(group)):
        if name in left_out:
            continue
        value = getattr(group, name)
        if name == "kind" and value == "NONE":  # a limit that is none, whatever else is left over in it
            return (value,)
        found.append(_value(value, sort, f"{path}.{name}", moved, left_out))
    return tuple(found)


def channel_values(owner: Any, names: Iterable[str], path: str, moved: Components) -> tuple[Any, ...]:
    """The values of channels by name, but for the components that something moves."""
    sorts = dict(fields(type(owner)))
    return tuple(_value(getattr(owner, name), sorts[name], f"{path}{name}", moved, ()) for name in names)


def _value(
    value: Any, sort: str, path: str, moved: Collection[tuple[str, int]], left_out: Collection[str]
) -> Any:
    if sort == "COLLECTION":
        return [values(each, f"{path}[{i}]", moved, left_out) for i, each in enumerate(value)]
    if sort == "POINTER" and value is not None:
        is_data = isinstance(value, bpy.types.ID)
        return value.name_full if is_data else values(value, path, moved, left_out)
    if sort == "MATRIX":
        return tuple(map(tuple, value))
    if sort == "ARRAY":
        return tuple(None if (path, i) in moved else each for i, each in enumerate(value))
    return None if (path, 0) in moved else value


@lru_cache(maxsize=128)
def fields(group: type) -> tuple[tuple[str, str], ...]:
    """Names of a group's properties and what they are; its kind, if it has one, first."""
    properties: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    found = [
        (name, _sort(field))
        for name, field in properties.items()
        if name != "rna_type" and not field.is_hidden
    ]
    return tuple(sorted(found, key=lambda pair: pair[0] != "kind"))


def _sort(field: Any) -> str:
    if not getattr(field, "is_array", False):
        return str(field.type)
    return "MATRIX" if field.subtype == "MATRIX" else "ARRAY"
