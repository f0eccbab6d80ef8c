# SPDX-License-Identifier: GPL-3.0-or-later
"""Influences of constraints as they count at a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..properties.constraint_values import Constraint, Kind

PLANTED = 0.5
"""Influence above which a bone is planted; there is no half of it."""


def in_force(
    armature_object: Any, constraints: Sequence[Constraint], influences: Sequence[float]
) -> tuple[float, ...]:
    """Influences as they count at a frame: a planted bone is held fully, and nothing else reaches with it.

    The end of the bone that it is connected to is a part of it.
    """
    pairs = list(zip(constraints, influences, strict=True))
    planted = {
        constraint.tip
        for constraint, influence in pairs
        if constraint.kind is Kind.PLANT and influence > PLANTED
    }
    if not planted:
        return unplanted(constraints, influences)
    bones = [armature_object.pose.bones[name].bone for name in planted]
    above = {bone.parent.name for bone in bones if bone.use_connect and bone.parent is not None}
    counted = []
    for constraint, influence in pairs:
        if constraint.kind is Kind.PLANT:
            counted.append(1.0 if influence > PLANTED else 0.0)
        else:
            waits = constraint.tip in planted or (constraint.use_tail and constraint.tip in above)
            counted.append(0.0 if constraint.kind is Kind.REACH and waits else influence)
    return tuple(counted)


def unplanted(constraints: Sequence[Constraint], influences: Sequence[float]) -> tuple[float, ...]:
    """Influences as they would count if nothing was planted."""
    pairs = zip(constraints, influences, strict=True)
    return tuple(0.0 if constraint.kind is Kind.PLANT else influence for constraint, influence in pairs)
