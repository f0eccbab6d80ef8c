# SPDX-License-Identifier: GPL-3.0-or-later
"""The range of each joint of a figure's chains, from the preset for such a figure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import bpy

from ...errors import RigError
from ...limits.shapes import Hinge, Limit
from ...limits.widening import loosened
from ..figures.role import Figure, Kind, Part
from ..limit_sources import motion, presets
from ..properties import constraint_list
from ..properties.limit_groups import store_limits
from .made import Ranges
from .planned_rows import Group, PlannedRow

PRESETS = {Kind.HUMAN: "HUMAN", Kind.QUADRUPED: "QUADRUPED"}
ASIDE = math.radians(30.0)
"""Radians by which a hinge that is to copy a target's rotation gives way to the sides."""
HINGES = (Part.LOWER_ARM, Part.SHIN, Part.FRONT_SHIN)
"""Parts that begin at an elbow or a knee."""
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
        names = [name for row in limbs for name in _chain(armature_object, row)]
        if ranges is Ranges.HINGES:
            names = [name for name in names if name in figure.roles and figure.roles[name].part in HINGES]
        turned = {row.tip for row in limbs if row.copies_rotation}
        notes += _apply(armature_object, names, turned, PRESETS[figure.kind], ranges)
    tails = [row for row in rows if row.group is Group.TAIL and ranges is not Ranges.HINGES]
    names = [name for row in tails for name in _chain(armature_object, row)]
    return notes + _apply(armature_object, names, set(), "TAIL", ranges)


def _apply(
    armature_object: bpy.types.Object,
    names: Collection[str],
    turned: Collection[str],
    preset: str,
    ranges: Ranges,
) -> list[str]:
    bones = [bone for bone in armature_object.pose.bones if bone.name in names and _is_free(bone)]
    if not bones:
        return []
    try:
        limits, notes = presets.preset_limits(bones, preset)
    except RigError as error:
        return [f"No ranges of joints: {error}"]
    limits = {bone: _loose(limit) if bone.name in turned else limit for bone, limit in limits.items()}
    limits, for_pose = presets.held(limits, presets.present_rotations(bones), "the present pose")
    limits, for_motion = presets.held(limits, motion.played_rotations(bones), "the motion")
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
