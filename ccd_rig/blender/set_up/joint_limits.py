# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits for the joints of a figure's chains, from the preset for such a figure."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ...errors import RigError
from ..figures.role import Figure, Kind
from ..limit_sources import presets
from ..properties import constraint_list
from .planned_rows import Group, PlannedRow

PRESETS = {Kind.HUMAN: "HUMAN", Kind.QUADRUPED: "QUADRUPED"}


def apply(armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow]) -> list[str]:
    """Give bones of the rows' chains limits where they have none; what to know about it, in sentences."""
    notes = []
    if figure.kind in PRESETS:
        limbs = [row for row in rows if row.group not in (Group.HIPS, Group.TAIL)]
        notes += _apply(armature_object, limbs, PRESETS[figure.kind])
    notes += _apply(armature_object, [row for row in rows if row.group is Group.TAIL], "TAIL")
    return notes


def _apply(armature_object: bpy.types.Object, rows: Sequence[PlannedRow], preset: str) -> list[str]:
    wanted = {name for row in rows for name in _chain(armature_object, row)}
    bones = [bone for bone in armature_object.pose.bones if bone.name in wanted]
    free = [bone for bone in bones if bone.ccd_rig.limit.kind == "NONE"]
    if not free:
        return []
    try:
        return list(presets.apply_preset(free, preset).notes)
    except RigError as error:
        return [f"No limits: {error}"]


def _chain(armature_object: bpy.types.Object, row: PlannedRow) -> list[str]:
    names = [bone.name for bone in constraint_list.chain(armature_object, row.tip)]
    return names[: names.index(row.top) + 1]
