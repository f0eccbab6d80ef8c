# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to become of one of Blender's constraints, as a value: nothing has changed yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import bpy

from ...errors import RigError

MakeTarget = Callable[[bpy.types.Context], bpy.types.Object]


class NotConverted(RigError):
    """One of Blender's constraints has no counterpart; the message says why, without its name."""


@dataclass(frozen=True)
class NewRow:
    """A constraint to add.

    Attributes:
        tip: name of its bone.
        chain_length: how many bones may turn, counted from it.
        fields: its other properties, by name.
        make_target: makes an empty as its target; None where `fields` names one.
    """

    tip: str
    chain_length: int
    fields: Mapping[str, Any]
    make_target: MakeTarget | None = None


@dataclass(frozen=True)
class Conversion:
    """One of Blender's constraints and what takes its place.

    Attributes:
        rows: at least one.
        notes: what it did that the rows do not, in sentences without its name.
    """

    rows: tuple[NewRow, ...]
    notes: tuple[str, ...] = ()


def require_target(armature_object: bpy.types.Object, constraint: Any) -> None:
    """Raise NotConverted unless the target of a constraint is one that a row can have."""
    target, bone = constraint.target, constraint.subtarget
    if target is None:
        raise NotConverted("it has no target")
    if bone and target.pose is None:
        raise NotConverted(f"its target is the vertex group '{bone}' of '{target.name}'")
    if bone and bone not in target.pose.bones:
        raise NotConverted(f"its target '{target.name}' has no bone '{bone}'")
    if target == armature_object and not bone:
        raise NotConverted("its target is the armature itself")
