# SPDX-License-Identifier: GPL-3.0-or-later
"""The range of each joint of a figure's chains, from the preset for such a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import bpy

from ...errors import RigError
from ...limits.shapes import Hinge, Limit
from ...limits.widening import loosened
from ..figures.role import Figure, Kind
from ..limit_sources import holding, motion, presets
from ..properties import constraint_list
from ..properties.limit_groups import store_limits
from .made import Ranges
from .planned_rows import Group, PlannedRow

PRESETS = {Kind.HUMAN: "HUMAN", Kind.QUADRUPED: "QUADRUPED"}
ASIDE = math.radians(30.0)
"""Radians by which a hinge that is to copy a target's rotation gives way to the sides."""
FREE = "NONE"
"""The kind of a limit that there is none."""


def apply(
    armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow], ranges: Ranges
) -> list[str]:
    """Give bones of the rows' chains ranges where they have none; what to know about it, in sentences.

    The ranges hold the pose that the figure stands in and the motion that plays on it.
    """
    notes = []
    if figure.kind in PRESETS:
        limbs = [row for row in rows if row.group not in (Group.HIPS, Group.TAIL)]
        notes += _apply(armature_object, limbs, PRESETS[figure.kind], ranges)
    tails = [row for row in rows if row.group is Group.TAIL]
    return notes + _apply(armature_object, tails, "TAIL", ranges)


def _apply(
    armature_object: bpy.types.Object, rows: Sequence[PlannedRow], preset: str, ranges: Ranges
) -> list[str]:
    wanted = {name for row in rows for name in _chain(armature_object, row)}
    bones = [bone for bone in armature_object.pose.bones if bone.name in wanted and _is_free(bone)]
    if not bones:
        return []
    try:
        limits, notes = presets.preset_limits(bones, preset)
    except RigError as error:
        return [f"No ranges of joints: {error}"]
    turned = {row.tip for row in rows if row.copies_rotation}
    limits = {bone: _loose(limit) if bone.name in turned else limit for bone, limit in limits.items()}
    limits, for_pose = holding.held(limits, holding.present_rotations(bones), "the present pose")
    limits, for_motion = holding.held(limits, motion.played_rotations(bones), "the motion")
    if ranges is Ranges.COMFORT:
        store_limits({}, limits)
    else:
        store_limits(limits)
    return [*notes, *for_pose, *for_motion]


def _loose(limit: Limit | None) -> Limit | None:
    """A hinge with room to the sides: a paw that turns as its target does cannot do so about one axis."""
    return loosened(limit, ASIDE) or limit if isinstance(limit, Hinge) else limit


def _is_free(bone: bpy.types.PoseBone) -> bool:
    return bool(bone.ccd_rig.limit.kind == FREE and bone.ccd_rig.comfort.region.kind == FREE)


def _chain(armature_object: bpy.types.Object, row: PlannedRow) -> list[str]:
    names = [bone.name for bone in constraint_list.chain(armature_object, row.tip)]
    return names[: names.index(row.top) + 1]
