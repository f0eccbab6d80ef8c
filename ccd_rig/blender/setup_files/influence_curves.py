# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of constraints' influences in a set-up.

Drivers are not part of one: what they read are things of their own file, and often of other rigs. F-curves
with modifiers lose these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import bpy

from ...errors import RigError
from ...json_text import shown
from ..keys.channels import fcurves_of
from ..properties import constraint_list, influence_keys
from ..properties.influence_keys import FIELD

NUMBERS = ("frame", "value")
CHOICES = ("interpolation", "easing", "handle_left_type", "handle_right_type")
HANDLES = ("handle_left", "handle_right")

Curve = Mapping[str, Any]
"""{"extrapolation": name, "keys": [{"frame", "value", "interpolation", "easing", handles}]}."""


def curves_of(armature_object: bpy.types.Object) -> dict[str, Curve]:
    """The keys of influences in the present action, by the names of the constraints."""
    found: dict[str, Curve] = {}
    for row in armature_object.ccd_rig.constraints:
        curve = _curve(row)
        if curve is not None and len(curve.keyframe_points):
            keys = [_key(point) for point in curve.keyframe_points]
            found[row.name] = {"extrapolation": curve.extrapolation, "keys": keys}
    return found


def driven(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the constraints whose influence has a driver."""
    animation = armature_object.animation_data
    paths = set() if animation is None else {driver.data_path for driver in animation.drivers}
    rows = armature_object.ccd_rig.constraints
    return tuple(row.name for row in rows if f"{row.path_from_id()}.{FIELD}" in paths)


def left_out(armature_object: bpy.types.Object) -> dict[str, tuple[str, ...]]:
    """By label of a setting that keys or drivers move, Influence apart, the names of the constraints."""
    names: dict[str, tuple[str, ...]] = {}
    for row, setting in constraint_list.moved_settings(armature_object, armature_object.ccd_rig.constraints):
        if setting.identifier != FIELD:
            names[setting.name] = (*names.get(setting.name, ()), row.name)
    return names


def checked(value: object) -> dict[str, Curve]:
    """The same as read from a file; raises RigError, which names what is wrong."""
    if not isinstance(value, dict):
        raise RigError("the field 'influence' is not an object")
    for name, curve in value.items():
        where = f"influence['{shown(name)}']"
        if not isinstance(curve, dict) or set(curve) != {"extrapolation", "keys"}:
            raise RigError(f"{where} must have the fields 'extrapolation' and 'keys', and no others")
        _require_choice(bpy.types.FCurve.bl_rna, "extrapolation", curve["extrapolation"], where)
        if not isinstance(curve["keys"], list) or not curve["keys"]:
            raise RigError(f"{where}.keys must be a list of keys")
        for number, key in enumerate(curve["keys"]):
            _require_key(key, f"{where}.keys[{number}]")
    return value


def give(row: Any, curve: Curve) -> None:
    """Give a constraint's influence these keys in place of those that it has in the present action.

    Raises:
        RigError: it cannot be keyed. Nothing has changed then.
    """
    influence_keys.require_keyable(row.id_data, [row])
    shown = row.influence
    before = _curve(row)
    for frame in [] if before is None else [point.co[0] for point in before.keyframe_points]:
        row.keyframe_delete(FIELD, frame=frame)
    for key in curve["keys"]:
        row.influence = key["value"]
        row.keyframe_insert(FIELD, frame=key["frame"])
    row.influence = shown
    made: Any = _curve(row)
    made.extrapolation = curve["extrapolation"]
    for point, key in zip(
        made.keyframe_points, sorted(curve["keys"], key=lambda each: each["frame"]), strict=True
    ):
        for name in (*CHOICES, *HANDLES):
            setattr(point, name, key[name])
    made.update()


def _key(point: bpy.types.Keyframe) -> dict[str, Any]:
    key: dict[str, Any] = {"frame": point.co[0], "value": point.co[1]}
    key |= {name: getattr(point, name) for name in CHOICES}
    return key | {name: list(getattr(point, name)) for name in HANDLES}


def _require_key(key: object, where: str) -> None:
    wanted = {*NUMBERS, *CHOICES, *HANDLES}
    if not isinstance(key, dict) or set(key) != wanted:
        raise RigError(f"{where} must have the fields {', '.join(sorted(wanted))}, and no others")
    for name, numbers in _numbers(key):
        if not all(type(each) in (int, float) and math.isfinite(each) for each in numbers):
            raise RigError(f"{where}.{name} must be a number, and of handles two")
    for name in CHOICES:
        _require_choice(bpy.types.Keyframe.bl_rna, name, key[name], where)


def _numbers(key: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for name in NUMBERS:
        yield name, [key[name]]
    for name in HANDLES:
        pair = key[name]
        yield name, pair if isinstance(pair, list) and len(pair) == 2 else [None]


def _require_choice(rna: Any, name: str, value: object, where: str) -> None:
    known = [item.identifier for item in rna.properties[name].enum_items]
    if value not in known:
        value = shown(repr(value))
        raise RigError(f"{where}.{name} is {value}; give one of {', '.join(known)}")


def _curve(row: Any) -> Any | None:
    path = f"{row.path_from_id()}.{FIELD}"
    return next((curve for curve in fcurves_of(row.id_data) if curve.data_path == path), None)
