# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits put into where a bone stores them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import bpy

from ...errors import RigError
from ...limits.shapes import Cone, EulerBox, Hinge, Limit, SwingTwist
from . import overrides
from .joints import TURN, CCD_RIG_PG_limit

_BONE = (0.0, 1.0, 0.0)
_SLACK = 1e-6  # of numbers that were stored in single precision


def store_limits(
    limits: Mapping[bpy.types.PoseBone, Limit | None],
    regions: Mapping[bpy.types.PoseBone, Limit | None] | None = None,
) -> None:
    """Give bones their limits, and comfort regions. What their other kinds of limit have stored stays.

    Args:
        limits: by bone.
        regions: comfort regions, by bone.

    Raises:
        RigError: names the bone whose properties cannot hold its limit. Nothing has changed then.
    """
    stored = {bone: _storable(bone, limit) for bone, limit in limits.items()}
    preferred = {bone: _storable(bone, region) for bone, region in (regions or {}).items()}
    for group, each in (("limit", stored), ("comfort.region", preferred)):
        for bone, values in each.items():
            owner = bone.ccd_rig.path_resolve(group)
            for field, value in values.items():
                setattr(owner, field, value)
    for owner in {bone.id_data for bone in (*stored, *preferred)}:
        overrides.keep(owner)


def _storable(pose_bone: bpy.types.PoseBone, limit: Limit | None) -> dict[str, Any]:
    values = _values(limit)
    if values is None:
        raise RigError(
            f"bone '{pose_bone.name}': a limit about an axis askew to the bone cannot be stored; use a hinge"
        )
    for field, value in values.items():
        prop: Any = CCD_RIG_PG_limit.bl_rna.properties[field]
        if prop.type != "FLOAT":
            continue
        for number in value if prop.is_array else (value,):
            if not prop.hard_min - _SLACK <= number <= prop.hard_max + _SLACK:
                least, most = math.degrees(prop.hard_min), math.degrees(prop.hard_max)
                raise RigError(
                    f"bone '{pose_bone.name}': {prop.name} of {math.degrees(number):.4g}° is outside what a "
                    f"limit can hold, {least:.0f}° to {most:.0f}°"
                )
    return values


def copy_limit(source: bpy.types.PoseBone, target: bpy.types.PoseBone) -> None:
    """Give a bone the limit of another, with what its other kinds of limit have stored."""
    for prop in source.ccd_rig.limit.bl_rna.properties:
        if not prop.is_readonly and prop.identifier != "name":
            value = getattr(source.ccd_rig.limit, prop.identifier)
            setattr(target.ccd_rig.limit, prop.identifier, value)
    overrides.keep(target.id_data)


def _values(limit: Limit | None) -> dict[str, Any] | None:
    """The properties of a limit by name; None if there are none for it."""
    if limit is None:
        return {"kind": "NONE"}
    if isinstance(limit, Hinge):
        lower, upper = _within(limit.lower, limit.upper)
        return {"kind": "HINGE", "axis": limit.axis, "hinge_lower": lower, "hinge_upper": upper}
    if isinstance(limit, EulerBox):
        ends = [_within(*bounds) for bounds in zip(limit.lower, limit.upper, strict=True)]
        values: dict[str, Any] = {"kind": "EULER", "euler_order": limit.order}
        values["euler_lower"], values["euler_upper"] = zip(*ends, strict=True)
        return values
    if isinstance(limit, SwingTwist):
        is_off = max(abs(a - b) for a, b in zip(limit.axis, _BONE, strict=True)) > _SLACK
        return None if is_off else _swing_values(limit)
    return None


def _swing_values(limit: SwingTwist) -> dict[str, Any]:
    swing = limit.swing
    values: dict[str, Any] = {"use_twist": limit.twist is not None}
    if limit.twist is not None:
        values["twist_lower"], values["twist_upper"] = _within(*limit.twist, 0.5 * TURN)
    if swing is None:
        return {**values, "kind": "NONE" if limit.twist is None else "TWIST"}
    if isinstance(swing, Cone):
        return {**values, "kind": "CONE", "cone_radius": swing.radius}
    sides = {name: getattr(swing, name) for name in ("x_lower", "x_upper", "z_lower", "z_upper")}
    return {**values, "kind": "ELLIPSE", **sides}


def _within(lower: float, upper: float, most: float = TURN) -> tuple[float, float]:
    """A range of angles; of one that leaves the angle free a full turn about rest."""
    if upper - lower >= TURN and max(-lower, upper) > most:
        return -0.5 * TURN, 0.5 * TURN
    return lower, upper
