# SPDX-License-Identifier: GPL-3.0-or-later
"""Property groups as plain values: what was set in them, for JSON, and back.

Numbers come back bit for bit. What is at its default is left out. An object is {"object": name}, the armature
itself {"object": ""}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import bpy

from ...errors import RigError
from ...json_text import shown

Values = dict[str, Any]

NOTES = ("rna_type", "known_as")
"""Fields that are no setting: what they hold stays."""


def values_of(group: bpy.types.PropertyGroup) -> Values:
    """What was set in a group, by field; groups inside as values, lists of groups as lists of them."""
    found: Values = {}
    for name, prop in _fields(group.bl_rna).items():
        if prop.type == "COLLECTION":
            rows = [values_of(row) for row in getattr(group, name)]
            if rows:
                found[name] = rows
        elif _is_group(prop):
            if inner := values_of(getattr(group, name)):
                found[name] = inner
        elif group.is_property_set(name):
            found[name] = _value_of(group, name, prop)
    return found


def _value_of(group: bpy.types.PropertyGroup, name: str, prop: Any) -> Any:
    value = getattr(group, name)
    if prop.type == "POINTER":
        return None if value is None else {"object": "" if value == group.id_data else value.name}
    if getattr(prop, "is_array", False):
        return list(value)
    return value


def check_values(rna: Any, values: object, where: str) -> Values:
    """`values` if a group of this type can hold them.

    Args:
        rna: `bl_rna` of the group's class.
        values: as `values_of` gives them.
        where: what they are, for messages.

    Raises:
        RigError: names the field that is wrong or that this version does not know.
    """
    if not isinstance(values, dict):
        raise RigError(f"{where} must be an object with fields, not {_shown(values)}")
    fields = _fields(rna)
    for name, value in values.items():
        if name not in fields:
            name = shown(name)
            raise RigError(f"{where}: '{name}' is not known to this version: update CCD Rig, or remove it")
        _check_value(fields[name], value, f"{where}: '{name}'")
    return values


def _check_value(prop: Any, value: object, where: str) -> None:
    if prop.type == "COLLECTION":
        if not isinstance(value, list):
            raise RigError(f"{where} must be a list, not {_shown(value)}")
        for number, row in enumerate(value):
            check_values(prop.fixed_type, row, f"{where}[{number}]")
    elif _is_group(prop):
        check_values(prop.fixed_type, value, where)
    elif prop.type == "POINTER":
        is_object = isinstance(value, dict) and list(value) == ["object"] and isinstance(value["object"], str)
        if not (value is None or is_object):
            raise RigError(f'{where} must be null or {{"object": name}}, not {_shown(value)}')
    elif prop.type == "ENUM":
        items = [item.identifier for item in prop.enum_items]
        if value not in items:
            raise RigError(f"{where} must be one of {', '.join(items)}, not {_shown(value)}")
    elif getattr(prop, "is_array", False):
        if not isinstance(value, list) or len(value) != prop.array_length:
            raise RigError(f"{where} must be a list of {prop.array_length}, not {_shown(value)}")
        for part in value:
            _check_plain(prop, part, where)
    else:
        _check_plain(prop, value, where)


def _check_plain(prop: Any, value: object, where: str) -> None:
    kinds: Mapping[str, tuple[tuple[type, ...], str]] = {
        "BOOLEAN": ((bool,), "true or false"),
        "INT": ((int,), "a whole number"),
        "FLOAT": ((int, float), "a number"),
        "STRING": ((str,), "text"),
    }
    types, words = kinds[prop.type]
    if not isinstance(value, types) or (isinstance(value, bool) and prop.type != "BOOLEAN"):
        raise RigError(f"{where} must be {words}, not {_shown(value)}")
    if prop.type in ("INT", "FLOAT"):
        assert isinstance(value, (int, float))
        slack = 1e-6 * max(1.0, abs(prop.hard_max)) if prop.type == "FLOAT" else 0.0
        if not (math.isfinite(value) and prop.hard_min - slack <= value <= prop.hard_max + slack):
            raise RigError(f"{where} must be {prop.hard_min:.6g} to {prop.hard_max:.6g}, not {_shown(value)}")


def give_values(group: bpy.types.PropertyGroup, values: Values) -> None:
    """Let a group hold checked values, and its defaults beside them. Objects that are not there are None."""
    for name, prop in _fields(group.bl_rna).items():
        if prop.type == "COLLECTION":
            rows = getattr(group, name)
            rows.clear()
            for row in values.get(name, ()):
                give_values(rows.add(), row)
        elif _is_group(prop):
            give_values(getattr(group, name), values.get(name, {}))
        elif name not in values:
            group.property_unset(name)
        elif prop.type == "POINTER":
            setattr(group, name, object_of(group.id_data, values[name]))
        else:
            setattr(group, name, values[name])


def object_of(owner: bpy.types.ID, value: Mapping[str, str] | None) -> bpy.types.Object | None:
    """The object that a value names; None for none, and where there is no such object."""
    if value is None:
        return None
    found: Any = bpy.data.objects.get(value["object"]) if value["object"] else owner
    return found


def _fields(rna: Any) -> dict[str, Any]:
    """The fields that a group stores, by name."""
    return {
        name: prop
        for name, prop in rna.properties.items()
        if not (prop.is_readonly and prop.type not in ("COLLECTION", "POINTER")) and name not in NOTES
    }


def _is_group(prop: Any) -> bool:
    base = prop.fixed_type.base if prop.type == "POINTER" else None
    return base is not None and base.identifier == "PropertyGroup"


def _shown(value: object) -> str:
    return shown(json.dumps(value, default=str))
